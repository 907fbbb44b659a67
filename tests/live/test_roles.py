"""Roles with the real Claude Code and Codex: the settings name a model and an effort, and the program uses them."""

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.live.machine import DIALECTS, Machine, a_machine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MODELS = {"claude": "claude-opus-4-6", "codex": "gpt-5.1-codex"}
MEMORY = "claude-haiku-4-5"


@pytest.fixture
def machine() -> Generator[Machine]:
    with a_machine("claude", "codex") as made:
        yield made


def list_requests(machine: Machine, harness: str, text: str) -> list[Any]:
    """What the program sent to its model in the turns with this text."""
    found = [one for one in machine.model.of(DIALECTS[harness]) if text in str(one.heard.turns)]
    assert found, f"{harness} never said {text!r}"
    return [one.body for one in found]


@pytest.mark.rows("R9.r-1", "R9.r-3", "R9.r-4")
@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_the_role_decides_what_the_real_program_runs(machine: Machine, harness: str) -> None:
    model = MODELS[harness]
    machine.say("config", "set", "roles.user", f"{harness}/{model}/high")
    talkie = machine.repository("talkie")
    flight = machine.ended(machine.ask(talkie, "<<say by its role>>"))
    assert flight["output"] == "by its role"
    assert (flight["harnessRequested"], flight["modelRequested"]) == (None, None)
    assert (flight["harnessObserved"], flight["modelResolved"], flight["effort"]) == (harness, model, "high")
    assert flight["modelObserved"] == model
    sent = list_requests(machine, harness, "by its role")[-1]
    assert sent["model"] == model
    assert '"effort": "high"' in json.dumps(sent)
    shown = machine.say("flight", "get", flight["id"])
    assert re.search(rf"model +{model}\n", shown)
    (session,) = machine.data("session", "list")["items"]
    assert (session["modelObserved"], session["effort"]) == (model, "high")

    # An agent's own model comes before the role's, in a new session.
    machine.say("session", "stop", session["id"])
    machine.say("agent", "config", "@talkie", "--set", f"harness={harness}", "--set", "effort=low")
    again = machine.data("ask", "@talkie", "<<say by its own settings>>")
    assert (again["modelResolved"], again["effort"]) == (model, "low")
    assert '"effort": "low"' in json.dumps(list_requests(machine, harness, "by its own settings")[-1])


@pytest.mark.rows("R9.m-1", "R9.m-3", "R9.r-4")
def test_the_memory_of_an_agent_reads_the_transcripts_of_another_program(machine: Machine) -> None:
    machine.say("config", "set", "roles.user", f"codex/{MODELS['codex']}")
    machine.say("config", "set", "roles.memory", f"claude/{MEMORY}")
    talkie = machine.repository("talkie")
    machine.ended(machine.ask(talkie, "Remember the word zebra. <<say noted>>"))
    machine.say("agent", "config", "@talkie", "--set", "description=turns voice notes into issues")
    path = machine.data("show", "@talkie")["path"]
    asked = machine.data("ask", f"{path}/memory", "Which word? <<say it was zebra>>")
    assert (asked["harnessObserved"], asked["modelObserved"]) == ("claude", MEMORY)

    told = json.dumps(list_requests(machine, "claude", "it was zebra")[-1])
    assert "past work of @talkie (turns voice notes into issues)" in told
    named = re.findall(rf"{re.escape(str(machine.person))}/\.codex/[^\s\"\\]+", told)
    files = [file for one in named for file in find_files(machine.person, one)]
    assert files, told
    assert any("Remember the word zebra" in file.read_text() for file in files)

    # It only reads: what would change a file is denied without asking anybody.
    wish = json.dumps({"command": "touch made", "description": "try"})
    machine.data("ask", f"{path}/memory", f"<<tool Bash {wish}>> <<say could not>>")
    assert not (talkie / "made").exists()
    assert machine.attention() == []


def find_files(person: Path, pattern: str) -> list[Path]:
    """The files of a name that may contain `*`."""
    return [one for one in person.glob(str(Path(pattern).relative_to(person))) if one.is_file()]
