"""A conversation and a flight leave Scout as Markdown."""

import re
from collections.abc import Generator

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon


@pytest.fixture(scope="module")
def shell() -> Generator[Shell]:
    with a_shell() as found:
        start_daemon(found)
        found.say("agent", "register", "arc", "--harness", "echo")
        found.say("ask", "@arc", "# A title\n- one\n\t- two \x1b[31mred")
        yield found


def test_a_conversation_is_printed_whole_and_quoted(shell: Shell) -> None:
    (shell.folder / "plan.txt").write_text("steps")
    shell.say("send", "@arc", "The plan.", "--attach", "plan.txt")
    shown = shell.say("export", "@arc")
    head, first, answer, second = shown.split("\n## ")
    assert head.startswith("# ")
    assert "- members: " in head
    assert "- 3 messages" in head
    assert first.splitlines()[2:] == ["> # A title", "> - one", ">     - two \\x1b[31mred"]
    assert answer.startswith("@arc · 20")
    assert second.splitlines()[2:4] == ["> The plan.", ""]
    assert "- file: plan.txt (5 bytes, SHA-256 `" in second
    conversation = shell.data("conversation", "list")["items"][0]["id"]
    assert shell.say("export", conversation) == shown
    assert shell.data("export", conversation)["markdown"] == shown.removesuffix("\n")


def test_a_long_channel_is_exported_to_its_end(shell: Shell) -> None:
    shell.say("channel", "create", "dev")
    assert "has no messages yet" in shell.type("export", "--channel", "dev").stderr
    daemon = Daemon(shell.home, start_daemon(shell))
    for number in range(205):  # more than a page
        reply = daemon.call("POST", "/v1/messages", {"channel": "dev", "body": f"number {number}"})
        assert reply.status == 201
    shown = shell.say("export", "--channel", "dev")
    assert shown.startswith("# dev\n")
    said = [line for line in shown.splitlines() if line.startswith("> ")]
    assert said == [f"> number {number}" for number in range(205)]


def test_an_erased_message_stays_erased(shell: Shell) -> None:
    shell.say("channel", "create", "secrets")
    sent = shell.data("send", "--channel", "secrets", "the password")
    shell.say("redact", sent["messageId"])
    shown = shell.say("export", "--channel", "secrets")
    assert "password" not in shown
    assert "*erased*" in shown


def test_a_flight_is_printed_with_its_answer(shell: Shell) -> None:
    flight = shell.data("ask", "@arc", "What is it?")["id"]
    shown = shell.say("export", flight)
    assert shown.startswith("# An ask to @arc\n")
    assert f"- flight: `{flight}`" in shown
    assert "- state: completed\n" in shown
    assert "- program: echo" in shown
    assert "## Ask\n\n> What is it?\n" in shown
    assert "## Answer\n\n> " in shown
    assert shell.say("export", "last") == shown


def test_a_failed_flight_says_why(shell: Shell) -> None:
    shell.say("agent", "register", "broken", "--command", "false", cwd=shell.project("talkie"))
    failed = shell.type("ask", "@broken", "Anything?")
    assert failed.returncode == 9
    flight = re.search(r"flt_\w+", failed.stderr)
    assert flight is not None
    shown = shell.say("export", flight[0])
    assert "- state: failed" in shown
    assert "## Error\n\n> " in shown
    assert "## Answer" not in shown


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "name one conversation"),
        (("@arc", "--channel", "dev"), "name one conversation"),
        (("@nobody",), "no agent"),
        (("nonsense",), "nonsense"),
    ],
)
def test_what_cannot_be_exported_is_refused(shell: Shell, words: tuple[str, ...], problem: str) -> None:
    done = shell.type("export", *words)
    assert done.returncode != 0
    assert problem in done.stderr
    assert "try: " in done.stderr


def test_a_misspelt_agent_is_answered_with_the_same_command(shell: Shell) -> None:
    assert "try: scout export @arc" in shell.type("export", "@arcc").stderr
