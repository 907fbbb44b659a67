"""One project, two programs: each can be named, and whatever needs no program is never refused for having two."""

import json
import shlex
from collections.abc import Generator

import pytest

from tests.cli.running import Shell, a_shell, start_daemon

pytestmark = pytest.mark.slow


@pytest.fixture
def me() -> Generator[Shell]:
    with a_shell() as shell:
        start_daemon(shell)
        yield shell


def list_suggested(refusal: str) -> list[list[str]]:
    """The words of each command that a refusal offers."""
    lines = [line for line in refusal.splitlines() if line.startswith("try: scout ")]
    return [shlex.split(line.removeprefix("try: scout "), comments=True) for line in lines]


@pytest.mark.rows("R1.1-32")
def test_a_harness_that_is_named_is_started_beside_the_other(me: Shell) -> None:
    both = me.project("both")
    me.say("agent", "register", "both", "--project", ".", "--harness", "echo", cwd=both)
    me.say("agent", "config", "@both", "--set", 'command=["tr","a-z","A-Z"]')
    assert me.say("ask", "@both", "hello").strip() == "hello"
    assert me.say("ask", "@both", "--harness", "command", "hello").strip() == "HELLO"
    assert me.say("ask", "@both#command", "again").strip() == "AGAIN"
    assert {one["harness"] for one in me.data("session", "list", "--agent", "@both")["items"]} == {
        "echo",
        "command",
    }

    unclear = me.type("ask", "@both", "which one?")
    assert "can be reached through echo or command; choose one" in unclear.stderr
    assert me.say(*list_suggested(unclear.stderr)[0]).strip() in ("which one?", "WHICH ONE?")

    assert "sent" in me.say("send", "@both", "for your information")
    me.say("inbox", "--as", "@both")
    me.say("feed", "@both")
    me.say("show", "@both")
    me.say("question", "create", "@both", "Which port?")
    me.say("work", "create", "Fix it", "--owner", "@both")


def test_a_harness_that_is_not_there_is_said_with_the_nearest(me: Shell) -> None:
    me.say("agent", "register", "one", "--harness", "echo")
    me.say("ask", "@one", "hello")
    wrong = me.type("ask", "@one", "--harness", "ecko", "hello again")
    assert "harness_unavailable" in wrong.stderr
    nearest, look = list_suggested(wrong.stderr)
    assert look == ["runtimes"]
    assert me.say(*nearest).strip() == "hello again"


def test_wake_resolve_and_ask_mean_the_same_session(me: Shell) -> None:
    me.say("agent", "register", "d", "--harness", "echo")
    first = me.data("ask", "@d", "hello")["sessionId"]
    me.say("session", "stop", first)
    woken = me.data("wake", "@d")
    meant = json.loads(me.say("resolve", "@d", "--json"))
    asked = me.data("ask", "@d", "hello")
    assert woken["sessionId"] == meant["sessionId"] == asked["sessionId"]
