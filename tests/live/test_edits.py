"""Who edits what, with the real Claude Code: an edit of a file that another agent holds is refused."""

import json
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.live.machine import Machine, a_machine

# The first to come here installs the programs; once they are there, a test takes a few seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def machine() -> Generator[Machine]:
    with a_machine("claude") as made:
        yield made


def write_to(file: Path, text: str) -> str:
    """What a scripted model does: write a file, and repeat what its tool says."""
    return f"<<tool Write {json.dumps({'file_path': str(file), 'content': text})}>> <<echo>>"


def hold(machine: Machine, talkie: Path, *globs: str) -> Any:
    """Another agent, which holds these files."""
    other = machine.repository("other")
    machine.say("agent", "register", "hudson", "--project", str(other), "--command", "cat")
    words = ("reserve", "add", *globs, "--as", "@hudson", "--why", "moving the parser")
    return json.loads(machine.type(*words, "--json", cwd=talkie).stdout)


@pytest.mark.rows("R10.w-8")
def test_a_session_that_scout_started_is_kept_from_a_file_of_another(machine: Machine) -> None:
    talkie = machine.repository("talkie", "claude")
    held = hold(machine, talkie, "held.txt")
    flight = machine.ended(machine.ask(talkie, write_to(talkie / "held.txt", "mine")))
    assert "held.txt is reserved by @hudson until" in flight["output"]
    assert "moving the parser" in flight["output"]
    assert "scout ask @hudson" in flight["output"]
    assert not (talkie / "held.txt").exists()
    free = machine.ended(machine.ask(talkie, write_to(talkie / "free.txt", "mine")))
    assert "reserved" not in free["output"]
    assert (talkie / "free.txt").read_text() == "mine"
    machine.say("reserve", "release", held["id"])
    machine.ended(machine.ask(talkie, write_to(talkie / "held.txt", "now")))
    assert (talkie / "held.txt").read_text() == "now"


@pytest.mark.rows("R10.w-8")
def test_a_session_of_a_person_is_kept_from_a_file_of_another(machine: Machine) -> None:
    talkie = machine.repository("talkie")
    machine.say("setup", "claude", "--yes")
    assert "hook pre_edit" in (machine.person / ".claude" / "settings.json").read_text()
    hold(machine, talkie, "/held.txt")
    assert "held.txt is reserved by @hudson" in typed(machine, talkie, write_to(talkie / "held.txt", "mine"))
    assert not (talkie / "held.txt").exists()
    assert "reserved" not in typed(machine, talkie, write_to(talkie / "free.txt", "mine"))
    assert (talkie / "free.txt").read_text() == "mine"
    machine.say("down")  # the hook fails open
    typed(machine, talkie, write_to(talkie / "held.txt", "mine"))
    assert (talkie / "held.txt").read_text() == "mine"
    machine.up()
    machine.say("setup", "claude", "--undo", "--yes")
    assert not (machine.person / ".claude" / "settings.json").exists()


def typed(machine: Machine, folder: Path, prompt: str) -> str:
    """What Claude Code answers to a person who starts it in a folder."""
    words = ["claude", "-p", prompt, "--permission-mode", "acceptEdits", "--output-format", "json"]
    done = subprocess.run(
        words,
        cwd=folder,
        env=machine.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return str(json.loads(done.stdout)["result"])
