"""A person at the command line is `you`, and short words mean the record that the person means."""

from collections.abc import Generator

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon, eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as shell:
        start_daemon(shell)
        yield shell


def register(shell: Shell, name: str, *more: str, folder: str = "") -> str:
    made = shell.data("agent", "register", name, "--project", ".", *more, cwd=shell.project(folder or name))
    return str(made.get("token") or "")


def test_the_person_is_you_in_everything_that_is_shown_and_has_a_name_in_what_a_program_reads(
    shell: Shell,
) -> None:
    register(shell, "arc", "--harness", "echo")
    token = register(shell, "elm")

    # What the person asked, ordered and called off,
    shell.say("question", "create", "@elm", "Which port?")
    shell.say("work", "create", "Fix it", "--owner", "@elm")
    shell.say("ask", "@arc", "!hang", "--no-wait")
    shell.say("flight", "cancel", "last")
    assert "cancelled by you" in shell.say("flight", "get", "last")
    # and what an agent asks of the person.
    shell.say("question", "create", "operator", "May I merge?", SCOUT_TOKEN=token)
    shell.say("attention", "raise", "May I?", "--kind", "permission", SCOUT_TOKEN=token)
    shell.say("approve", "last")

    looks = (
        ("question",),
        ("question", "show", "last"),
        ("work",),
        ("work", "show", "last"),
        ("flight", "list"),
        ("flight", "get", "last"),
        ("attention", "--all"),
        ("attention", "show", "last"),
        ("latest",),
        ("inbox", "--all"),
        ("log",),
        ("why", "last"),
        (),
    )
    for words in looks:
        assert "/me/direct" not in shell.say(*words), words
    assert "you" in shell.say("question").split()
    waited = shell.type("wait", "last")
    assert "cancelled by you" in waited.stderr

    # A program reads the name, and so does an agent.
    assert shell.data("question", "show", "last")["askerAddress"] == "@elm"
    assert shell.data("flight", "get", "last")["reason"] == "cancelled by /me/direct"
    assert "/me/direct" in shell.say("question", SCOUT_TOKEN=token)
    assert "/me/direct" in shell.say("whoami")
    assert shell.say("brief").startswith("You are the operator (/me/direct), ")


def test_why_takes_the_words_that_other_commands_take(shell: Shell) -> None:
    register(shell, "arc", "--harness", "echo")
    asked = shell.data("ask", "@arc", "hello")
    for word in ("last", "@arc", asked["id"], asked["id"][:14]):
        assert shell.data("why", word)["id"] == asked["id"], word
    open_one = shell.data("ask", "@arc", "!hang", "--no-wait")
    assert shell.data("why", "only")["id"] == open_one["flightId"]
    shell.say("flight", "cancel", "only")


def test_reviving_means_the_retired_agent_of_this_name_and_never_a_live_clone(shell: Shell) -> None:
    register(shell, "arc", "--workspace", "one", folder="one")
    register(shell, "arc", "--workspace", "two", folder="two")
    register(shell, "arc", "--workspace", "three", folder="three")
    paths = {one["workspace"]: one["path"] for one in shell.data("who", "arc")["items"]}

    # One of three is retired: what is left of the name means a live clone to others, not to `revive`.
    shell.say("agent", "retire", "@arc.one")
    shell.say("agent", "retire", "@arc.two")
    assert shell.data("resolve", "@arc")["path"] == paths["three"]
    refused = shell.type("agent", "revive", "@arc")
    assert refused.returncode == 4
    assert f"try: scout agent revive {paths['one']}" in refused.stderr
    assert f"try: scout agent revive {paths['two']}" in refused.stderr
    assert shell.data("agent", "revive", "@arc.two")["path"] == paths["two"]
    assert shell.data("agent", "revive", "@arc")["path"] == paths["one"]

    # Nobody of the name is retired any more: the refusal says so, of the agent that the name means.
    shell.say("agent", "retire", "@arc.one")
    shell.say("agent", "retire", "@arc.two")
    shell.say("agent", "revive", paths["one"])
    shell.say("agent", "revive", paths["two"])
    assert shell.type("agent", "revive", "@arc.two").returncode != 0


def test_the_only_open_flight_is_found_behind_many_that_ended(shell: Shell) -> None:
    for name in ("arc", "bow", "elm"):
        register(shell, name, "--harness", "echo")
    elm = shell.data("token", "create", "--agent", "@elm")["secret"]
    daemon = Daemon(shell.home, start_daemon(shell))

    # An agent's ask waits; then the person's asks come and end, more than a page of them.
    asked = shell.data("ask", "@arc", "!hang", "--no-wait", SCOUT_TOKEN=elm)
    for number in range(25):
        daemon.call("POST", "/v1/asks", {"to": "@bow", "body": f"hello {number}"})
    eventually(lambda: daemon.call("GET", "/v1/flights?agent=%40bow&open=true").json["items"] == [])
    assert shell.data("flight", "get", "only")["id"] == asked["flightId"]
    for flags in (("--open",), ("--open", "--limit", "5"), ("--state", "running", "--limit", "5")):
        page = shell.data("flight", "list", *flags)
        assert [one["id"] for one in page["items"]] == [asked["flightId"]], flags
    ended = shell.data("flight", "list", "--state", "completed", "--limit", "5")
    assert len(ended["items"]) == 5
    shell.say("flight", "cancel", "only")
    assert shell.data("flight", "list", "--open")["items"] == []
