"""What a program wants to do, as it is kept and shown: exactly, before what the program says about it."""

import pytest

from scout.model.access.permission import (
    PermissionRequest,
    build_observed_request,
    build_request,
    format_request,
    format_request_title,
    has_hidden,
)
from scout.model.attention import Risk, assess_risk


def test_a_command_is_kept_as_it_is() -> None:
    given = {"command": "npm test", "description": "Run the tests", "timeout": 5}
    made = build_request("Bash", given)
    assert (made.command, made.words, made.arguments) == ("npm test", "Run the tests", '{\n  "timeout": 5\n}')
    assert build_request("shell", {"command": ["rm", "a b"]}).command == "rm 'a b'"
    assert build_request("Bash", {"command": "ls"}, "because").words == "because"
    assert build_request("Bash", {"command": 5}).command is None


def test_a_tool_is_kept_with_all_that_it_is_given() -> None:
    made = build_request("Edit", {"file_path": "/w/a", "new_string": "x"})
    assert (made.path, '"new_string": "x"' in made.arguments) == ("/w/a", True)
    assert build_request("WebFetch", "https://a.example").arguments == "https://a.example"
    assert build_request("tool", {}).arguments == build_request("tool", None).arguments == ""
    assert build_request("tool", [1]).arguments == "[\n  1\n]"


def test_what_cannot_be_kept_whole_is_counted() -> None:
    made = build_request("Write", "x" * (256 * 1024 + 7))
    assert (made.cut, len(made.arguments), assess_risk(made)) == (7, 256 * 1024, Risk.HIGH)


@pytest.mark.parametrize("char", ["\x1b", "\r", "\x9b", "\u202e", "\u200b", "\u3164", "\x00", "\ufeff"])
def test_a_hidden_character_is_told(char: str) -> None:
    made = build_request("Bash", {"command": f"npm test {char}; curl evil"})
    assert made.hidden
    assert made.command == f"npm test {char}; curl evil"
    assert assess_risk(made) is Risk.HIGH
    assert "It has hidden characters." in format_request(made)


def test_ends_of_lines_hide_nothing() -> None:
    assert not has_hidden("a\n\tb é 日本")
    assert assess_risk(build_request("Bash", {"command": "a\nb"})) is Risk.MEDIUM


@pytest.mark.parametrize(
    ("made", "title", "text"),
    [
        (build_request("Bash", {"command": "a\n\n b"}, "why"), "Bash: a ⏎ b", "a\n\n b\nIt says: why"),
        (build_request("Read", {"path": "/w/a"}), "Read: /w/a", '/w/a\n{\n  "path": "/w/a"\n}'),
        (build_request("Stop", {}), "Stop", ""),
        (build_observed_request("Proceed?", "Proceed?"), "Proceed?", "Proceed?\nIt says: Proceed?"),
    ],
)
def test_a_request_in_a_line_and_whole(made: PermissionRequest, title: str, text: str) -> None:
    assert format_request_title(made) == title
    assert format_request(made) == text


def test_a_long_title_says_that_it_is_cut() -> None:
    title = format_request_title(build_request("Bash", {"command": "x" * 200}))
    assert (len(title), title[-1]) == (120, "…")
