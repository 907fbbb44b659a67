"""What a text in a chat means: the first rule that applies, in the order of the specification."""

from typing import Any

import pytest

from scout.model.events.chats import Meaning
from scout.policy.people.inbound import ChatCommand, ChatText, has_target, read_command, read_meaning

CASES: list[tuple[str, dict[str, Any], Meaning]] = [
    ("scout-k7qf-3m9t", {"code": True, "known": False}, Meaning.LINK),
    ("scout-k7qf-3m9t", {"code": True, "addressed": False, "decides": True, "bound": True}, Meaning.LINK),
    ("hello", {"known": False}, Meaning.STRANGER),
    ("hello", {"known": False, "addressed": False}, Meaning.IGNORED),
    ("hello", {"known": False, "addressed": False, "bound": True}, Meaning.IGNORED),
    ("/who", {"known": False, "addressed": False}, Meaning.STRANGER),
    ("/who", {"addressed": False}, Meaning.COMMAND),
    ("/stop", {"decides": True, "bound": True}, Meaning.COMMAND),
    ("/who", {"edits": True}, Meaning.CORRECTION),
    ("yes", {"decides": True, "bound": True}, Meaning.DECISION),
    ("@arc yes", {"decides": True}, Meaning.DECISION),
    ("@arc review this", {"bound": True}, Meaning.MENTION),
    (">> arc review this", {}, Meaning.MENTION),
    ("review this, @arc", {}, Meaning.PLAIN),
    ("review this", {"bound": True}, Meaning.BOUND),
    ("review this", {"bound": True, "addressed": False}, Meaning.BOUND),
    ("review this", {}, Meaning.PLAIN),
    ("review this", {"addressed": False}, Meaning.IGNORED),
    ("@arc review this", {"addressed": False}, Meaning.IGNORED),
    ("hello", {"by_program": True}, Meaning.IGNORED),
    ("scout-k7qf-3m9t", {"by_program": True, "code": True}, Meaning.IGNORED),
]


@pytest.mark.parametrize(("text", "known", "meaning"), CASES)
def test_the_first_rule_that_applies_decides(text: str, known: dict[str, Any], meaning: Meaning) -> None:
    assert read_meaning(ChatText(text=text, **known)) is meaning


def test_commands() -> None:
    assert read_command("/stop") is ChatCommand.STOP
    assert read_command("  /WHO now ") is ChatCommand.WHO
    assert read_command("/status\n") is ChatCommand.STATUS
    assert read_command("/start") is ChatCommand.HELP
    for text in ("/etc/hosts is broken", "/stopped", "stop", "/", "/unknown", "see /help"):
        assert read_command(text) is None


def test_a_target_is_named_at_the_beginning() -> None:
    assert has_target("@arc hello")
    assert has_target("  >> arc hello")
    assert not has_target(">>> quoted")
    assert not has_target("hello @arc")
