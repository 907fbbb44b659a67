"""What a text in a chat means: the first rule that applies, in the order of the specification."""

from typing import Any

import pytest

from scout.model.events.chats import Meaning
from scout.policy.people.inbound import (
    ChatCommand,
    ChatText,
    clean_file_name,
    has_target,
    read_command,
    read_meaning,
)

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


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", ".._.._etc_passwd"),
        ("a\\b\nc\u202etxt.exe", "a_b_c_txt.exe"),
        ("..", "file"),
        (" ", "file"),
    ],
)
def test_the_name_of_a_file_is_one_line_without_a_path(sent: str, kept: str) -> None:
    assert clean_file_name(sent) == kept


def test_a_long_file_name_keeps_its_ending() -> None:
    name = clean_file_name(f"{'x' * 5000}.pdf")
    assert len(name) < 300
    assert name.endswith(".pdf")
