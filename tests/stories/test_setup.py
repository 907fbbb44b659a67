"""A person connects Scout to the programs they work in, and asks them."""

import json
import re
import subprocess
from collections.abc import Generator

import pytest

from tests.daemon.daemons import eventually
from tests.live.machine import Machine, a_machine
from tests.live.terminals import tmux_here
from tests.stories.panes import a_shell_pane

# The first to come here installs the programs; once they are there, a story takes a few seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def machine() -> Generator[Machine]:
    with a_machine("claude", "codex") as made:
        yield made


CALLS = {"claude": "mcp__scout_run__", "codex": "mcp__scout_run/"}


def asks(harness: str, other: str, body: str) -> str:
    """What a scripted model does: ask the other agent, wait, and say what came back."""
    wish = json.dumps({"to": other, "body": body, "replyMode": "inline"})
    return f"<<tool ask {wish}>> <<follow {CALLS[harness]}>> <<echo>>"


@pytest.mark.rows("R5.3-1", "R5.3-7")
@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_the_contract_is_told_once_and_a_turn_begins_with_one_line(machine: Machine, harness: str) -> None:
    talkie = machine.repository("talkie", harness)
    machine.say("ask", "--project", str(talkie), "First. <<say one>>")
    session = machine.data("session", "list")["items"][0]["id"]
    machine.say("agent", "register", "hudson")
    machine.say("send", "@talkie", "By the way.")
    machine.say("ask", "@talkie", "Second. <<say two>>")
    machine.say("session", "stop", session)
    machine.say("session", "attach", session, "--agent", "@talkie")
    assert machine.say("ask", "@talkie", "Third. <<say three>>").strip() == "three"
    last = machine.model.of({"claude": "/v1/messages", "codex": "/v1/responses"}[harness])[-1]
    whole = json.dumps(last.body)
    assert whole.count("# Scout contract") == 1
    said = [turn.text for turn in last.heard.turns if "Scout: your user asks you." in turn.text]
    assert len(said) == 3
    assert "> By the way." in said[1]
    assert all(len(text) < 700 for text in said)
    shown = machine.say("session", "tail", session)
    assert "# Scout contract" not in shown


def test_a_session_of_mine_that_scout_took_up_shows_the_contract_as_one_line(machine: Machine) -> None:
    talkie = machine.repository("talkie", "claude")
    begun = ["claude", "-p", "Begun by me. <<say hello>>", "--output-format", "json"]
    done = subprocess.run(
        begun,
        cwd=talkie,
        env=machine.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    native = json.loads(done.stdout)["session_id"]
    words = ("session", "attach", native, "--harness", "claude", "--cwd", str(talkie))
    session = machine.data(*words)["id"]
    machine.say("ask", "--session-id", session, "Now by Scout. <<say done>>")
    assert "# Scout contract" in json.dumps(machine.model.of("/v1/messages")[-1].body)
    shown = machine.say("session", "tail", session)
    assert "# Scout contract" not in shown
    assert re.search(r"\[Scout contract, \d+ lines: scout contract\]", shown)
    assert "Now by Scout." in shown


def test_an_idle_session_of_scout_is_no_obstacle_and_one_that_works_is_named_first(machine: Machine) -> None:
    talkie = machine.repository("talkie", "claude")
    machine.say("ask", "--project", str(talkie), "<<say hello>>")
    done = machine.type("setup", "claude", "--yes")
    assert done.returncode == 0, done.stderr
    assert "an idle session of Scout's own" in done.stderr
    flight = machine.ask(talkie, "<<stall 600>> <<say never>>")
    eventually(lambda: machine.flight(flight)["state"] == "running")
    busy = machine.type("setup", "claude", "--undo")
    assert "Write this?" not in busy.stdout
    assert "try: scout session stop ses_" in busy.stderr
    machine.say("flight", "cancel", flight)


@pytest.mark.rows("R5.3-5")
def test_after_setup_both_programs_are_asked_and_ask_each_other(machine: Machine) -> None:
    arc, bow = machine.repository("arc"), machine.repository("bow")
    assert "set up" in machine.say("setup", "claude", "--yes")
    assert "set up" in machine.say("setup", "codex", "--yes")

    first = machine.say("ask", "--project", str(arc), "--harness", "claude", "<<say I am Claude>>")
    second = machine.say("ask", "--project", str(bow), "--harness", "codex", "<<say I am Codex>>")
    assert (first.strip(), second.strip()) == ("I am Claude", "I am Codex")

    there = machine.say("ask", "@arc", asks("claude", "@bow", "Six times seven? <<say forty-two>>"))
    back = machine.say("ask", "@bow", asks("codex", "@arc", "And eight? <<say fifty-six>>"))
    assert "forty-two" in there
    assert "fifty-six" in back

    for dialect in ("/v1/messages", "/v1/responses"):
        offered = {name for one in machine.model.of(dialect) for name in one.heard.offered}
        scouts = {name for name in offered if name.startswith("mcp__scout")}
        assert scouts, offered
        assert all(name.startswith("mcp__scout_run") for name in scouts), scouts

    agents = {one["harness"] for one in machine.data("session", "list")["items"]}
    assert agents == {"claude", "codex"}  # no relay enrolled a second session beside them
    assert len(machine.data("session", "list")["items"]) == 2


def test_a_person_with_two_programs_chooses_the_harness_for_new_sessions(machine: Machine) -> None:
    tmux_here()
    talkie = machine.repository("talkie")
    with a_shell_pane(machine, talkie) as terminal:
        terminal.type("scout setup", "Enter")
        terminal.shows("Write this? [y/N]")
        terminal.type("y", "Enter")
        terminal.shows("Harness for new sessions (claude, codex) [claude]")
        terminal.type("vim", "Enter")  # what is not offered is asked again
        terminal.shows("'vim' is not one of")
        terminal.type("codex", "Enter")
        screen = terminal.shows("now try, in a project: ")
        assert "new sessions run in codex" in screen
        assert "the running daemon uses it from now on" in screen

        terminal.type("scout config | grep -w ^harness", "Enter")
        eventually(lambda: re.search(r"^\W*harness +codex +file /", terminal.screen, re.MULTILINE))

        # The printed line works when it is pasted, and so does an ask that names no harness.
        pasted = screen.partition("now try, in a project: ")[2].splitlines()[0]
        assert "--harness codex" in pasted
        terminal.type(f"{pasted}; echo pasted and ended with $?", "Enter")
        terminal.shows("pasted and ended with 0")
    assert machine.say("ask", "@talkie", "<<say again>>").strip() == "again"
    assert (
        machine.say("ask", "--project", str(machine.repository("other")), "<<say me too>>").strip()
        == "me too"
    )
    assert {one["harness"] for one in machine.data("session", "list")["items"]} == {"codex"}
