"""Questions and work, typed at a real daemon: a person reads whose move it is."""

from typing import Any

import pytest

from tests.cli.running import Shell

pytestmark = pytest.mark.slow  # each command is a process of its own


def _agent(shell: Shell, name: str) -> dict[str, Any]:
    """An agent's token, as it stands in its environment."""
    told = shell.data("agent", "register", name, "--project", str(shell.project(name)))
    return {"SCOUT_TOKEN": told["token"]}


@pytest.mark.rows("R3.1-33")
def test_a_question_is_asked_answered_and_becomes_work(shell: Shell) -> None:
    oak, elm = _agent(shell, "oak"), _agent(shell, "elm")
    told = shell.say("question", "create", "@elm", "Which port?", "--option", "80", "--option", "90", **oak)
    assert "Which port?" in told
    assert "80, 90" in told
    ident = told.splitlines()[1]
    assert told.startswith("asked qst_")
    assert ident[:14] in shell.say("question", "list", "--owed", **elm)
    spawn = ("--spawn-work", "title=Open the port", "--spawn-work", "ownerId=@elm")
    done = shell.data("question", "answer", ident, "90", *spawn, **elm)
    assert (done["state"], done["workItem"]["title"]) == ("answered", "Open the port")
    shown = shell.say("question", "show", ident, **oak)
    assert "Open the port" in shown
    assert "answer     90" in shown
    late = shell.type("question", "answer", ident, "80", **elm)
    assert late.returncode != 0
    assert "answered does not allow 'answer'" in late.stderr
    shell.say("question", "close", ident, **oak)


@pytest.mark.rows("R3.1-33", "R2.2-74")
def test_work_is_made_moved_and_shown_with_its_steps(shell: Shell) -> None:
    ash, fir = _agent(shell, "ash"), _agent(shell, "fir")
    made = shell.data("work", "create", "Fix the build", "--owner", "@fir", "--label", "ci", **ash)
    ident = made["id"]
    listed = shell.say("work", "list", "--owed", **fir)
    assert "Fix the build" in listed
    assert "NEXT MOVE" in listed
    shell.say("work", "start", ident, **fir)
    shell.say("work", "progress", ident, "half of it", "--done", "2", "--total", "4", **fir)
    waiting = shell.say("work", "wait", ident, "--on", "actor", "--ref", "@ash", "--reason", "stuck", **fir)
    assert "waits for" in waiting
    shell.say("work", "resume", ident, **ash)
    shell.say("work", "submit", ident, "green", **fir)
    shell.say("work", "accept", ident, **ash)
    shown = shell.say("work", "show", ident, **ash)
    assert "2 of 4, 50 %, green" in shown
    for move in ("create", "start", "progress", "wait", "resume", "submit", "accept"):
        assert f"  {move} " in shown
    foreign = shell.type("work", "reopen", ident, "mine", **_agent(shell, "yew"))
    assert foreign.returncode == 6
    assert "belongs to" in foreign.stderr
    assert shell.say("work", "list", **fir).strip() == "No work."


def test_who_waits_for_a_flight_that_asks_back_is_told_so(shell: Shell) -> None:
    bay = _agent(shell, "bay")
    receipt = shell.data("ask", "@bay", "deploy", "--no-wait", "--if-unreachable", "queue")
    flight = receipt["flightId"]
    person = shell.data("whoami")["address"]
    asked = shell.data("question", "create", person, "Which port?", "--flight", flight, **bay)
    waited = shell.type("wait", flight)
    assert f"scout question answer {asked['id']}" in waited.stderr
    assert "Which port?" in waited.stderr
    shell.say("question", "answer", asked["id"], "80")
    shell.say("flight", "complete", flight, "done", **bay)
    assert shell.say("wait", flight) == "done\n"
