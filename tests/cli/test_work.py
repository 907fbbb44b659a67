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


def test_a_move_that_comes_too_late_or_names_no_record_is_refused_with_a_command_that_works(
    shell: Shell,
) -> None:
    """Each `try:` line is pasted: it shows the record, undoes its state, or lists what there is."""
    shell.say("agent", "register", "cat", "--command", "cat", cwd=shell.project("cats"))
    work = shell.data("work", "create", "Try it")["id"]
    shell.say("work", "cancel", work)
    asked = shell.data("question", "create", "@arc", "Which?")["id"]
    shell.say("question", "close", asked)
    flight = shell.data("ask", "@cat", "hello")["id"]
    shell.say("agent", "retire", "@cat")
    for words, code, tries in (
        (("work", "start", work), 7, [f"scout work show {work}"]),
        (("question", "close", asked), 7, [f"scout question show {asked}"]),
        (("flight", "cancel", flight), 7, [f"scout flight get {flight}"]),
        (("agent", "retire", "@cat"), 7, ["scout agent revive @cat", "scout show @cat"]),
        (("work", "start", "wrk_x"), 3, ["scout work list"]),
        (("question", "close", "qst_x"), 3, ["scout question list"]),
        (("user", "show", "nobody"), 3, ["scout user list"]),
    ):
        refused = shell.type(*words)
        assert refused.returncode == code, (words, refused.stderr)
        lines = [one.partition("  #")[0] for one in refused.stderr.splitlines() if one.startswith("try: ")]
        assert lines == [f"try: {one}" for one in tries]
        for line in tries:
            shell.say(*line.split()[1:])


def test_a_misspelt_channel_is_refused_with_the_message_to_the_nearest_one(shell: Shell) -> None:
    shell.say("channel", "create", "release")
    refused = shell.type("send", "--channel", "relaese", "It is out.")
    assert refused.returncode == 3
    assert "no channel 'relaese'; nearest: release" in refused.stderr
    line = next(one for one in refused.stderr.splitlines() if one.startswith("try: "))
    assert line == "try: scout send --channel release 'It is out.'"
    assert "to channel release" in shell.say("send", "--channel", "release", "It is out.")
