"""What a program wants to do, as it is kept and shown: exactly, before what the program says about it."""

import pytest

from scout.model.attention import Risk, risk_of_permission
from scout.model.permission import (
    PermissionRequest,
    has_hidden,
    observed_request,
    request_of,
    text_of_request,
    title_of_request,
)


def test_a_command_is_kept_as_it_is() -> None:
    given = {"command": "npm test", "description": "Run the tests", "timeout": 5}
    made = request_of("Bash", given)
    assert (made.command, made.words, made.arguments) == ("npm test", "Run the tests", '{\n  "timeout": 5\n}')
    assert request_of("shell", {"command": ["rm", "a b"]}).command == "rm 'a b'"
    assert request_of("Bash", {"command": "ls"}, "because").words == "because"
    assert request_of("Bash", {"command": 5}).command is None


def test_a_tool_is_kept_with_all_that_it_is_given() -> None:
    made = request_of("Edit", {"file_path": "/w/a", "new_string": "x"})
    assert (made.path, '"new_string": "x"' in made.arguments) == ("/w/a", True)
    assert request_of("WebFetch", "https://a.example").arguments == "https://a.example"
    assert request_of("tool", {}).arguments == request_of("tool", None).arguments == ""
    assert request_of("tool", [1]).arguments == "[\n  1\n]"


def test_what_cannot_be_kept_whole_is_counted() -> None:
    made = request_of("Write", "x" * (256 * 1024 + 7))
    assert (made.cut, len(made.arguments), risk_of_permission(made)) == (7, 256 * 1024, Risk.HIGH)


@pytest.mark.parametrize("char", ["\x1b", "\r", "\x9b", "\u202e", "\u200b", "\u3164", "\x00", "\ufeff"])
def test_a_hidden_character_is_told(char: str) -> None:
    made = request_of("Bash", {"command": f"npm test {char}; curl evil"})
    assert made.hidden
    assert made.command == f"npm test {char}; curl evil"
    assert risk_of_permission(made) is Risk.HIGH
    assert "It has hidden characters." in text_of_request(made)


def test_ends_of_lines_hide_nothing() -> None:
    assert not has_hidden("a\n\tb é 日本")
    assert risk_of_permission(request_of("Bash", {"command": "a\nb"})) is Risk.MEDIUM


@pytest.mark.parametrize(
    ("made", "title", "text"),
    [
        (request_of("Bash", {"command": "a\n\n b"}, "why"), "Bash: a ⏎ b", "a\n\n b\nIt says: why"),
        (request_of("Read", {"path": "/w/a"}), "Read: /w/a", '/w/a\n{\n  "path": "/w/a"\n}'),
        (request_of("Stop", {}), "Stop", ""),
        (observed_request("Proceed?", "Proceed?"), "Proceed?", "Proceed?\nIt says: Proceed?"),
    ],
)
def test_a_request_in_a_line_and_whole(made: PermissionRequest, title: str, text: str) -> None:
    assert title_of_request(made) == title
    assert text_of_request(made) == text


def test_a_long_title_says_that_it_is_cut() -> None:
    title = title_of_request(request_of("Bash", {"command": "x" * 200}))
    assert (len(title), title[-1]) == (120, "…")
