"""What is read off a screen: recorded ones of real programs, and the small shapes that decide."""

from pathlib import Path

import pytest

from scout.adapters.tmux.screen import find_new_lines, find_question, is_ready, sanitize, split_lines
from scout.ports import Asked

RECORDED = Path(__file__).parents[1] / "data" / "harness" / "tmux"


def read_screen(name: str) -> tuple[str, ...]:
    return split_lines((RECORDED / f"{name}.txt").read_text())


def test_the_permission_dialog_of_claude_code() -> None:
    wish = find_question(read_screen("claude-2.1.325-permission"))
    assert wish is not None
    assert (wish.kind, wish.question) == (Asked.PERMISSION, "Do you want to proceed?")
    assert wish.detail.splitlines()[-2:] == ["Run shell command", "touch x; date"]
    assert (wish.options[0], wish.options[3]) == ("Yes", "No")
    assert wish.answer(True, "") == ("1",)
    assert wish.answer(False, "") == ("Escape",)
    assert wish.answer(True, "no") == ("4",)
    assert wish.answer(True, "3") == ("3",)


def test_a_turn_of_claude_code_is_over_when_its_footer_is_back() -> None:
    before, after = read_screen("claude-2.1.325-idle"), read_screen("claude-2.1.325-answered")
    assert find_question(before) is None
    assert find_question(after) is None
    assert is_ready(before, after)
    assert not is_ready(before, read_screen("claude-2.1.325-permission"))
    prompt = "hello, this is a prompt that is long enough for the program to break it into two lines"
    said = find_new_lines(before, after, prompt)
    assert said.splitlines()[0] == "  Ran 1 shell command"
    assert "● it is done" in said
    assert "manual mode" not in said
    assert "hello" not in said


@pytest.mark.parametrize(
    ("before", "after", "prompt", "said"),
    [
        ((">",), ("> hi", "hi", ">"), "hi", "hi"),
        (("ready", ">"), ("ready", "> a", "b", "c", "", "d", ">"), "a\nb", "c\n\nd"),
        ((), ("hi", "HI"), "hi", "HI"),
        (("$",), ("$ date", "Mon", "$"), "date", "Mon"),
        (
            ("x", ">"),
            ("x", "> [Pasted text #1 +10 lines]", "done", ">"),
            "long",
            " [Pasted text #1 +10 lines]\ndone",
        ),
        ((">",), ("> hi", ">"), "hi", ""),
        (("> a", "a", ">"), ("> a", "a", "> a", "a", ">"), "a", "a"),
    ],
)
def test_what_is_new_is_without_its_echo(
    before: tuple[str, ...], after: tuple[str, ...], prompt: str, said: str
) -> None:
    assert find_new_lines(before, after, prompt) == said


@pytest.mark.parametrize(
    ("before", "after", "ready"),
    [
        ((">",), ("> x", "y", ">"), True),
        ((">",), ("> x", "y"), False),
        (("In [1]:",), ("…", "In [2]:"), True),
        (("ctx 100%", ""), ("ctx 98%", ""), True),
        (("~/a $",), ("~/b $",), True),
        ((), ("something",), True),
        ((), (), False),
        (("status: ok",), ("status: busy",), False),
    ],
)
def test_a_program_waits_for_input_as_it_did_before(
    before: tuple[str, ...], after: tuple[str, ...], ready: bool
) -> None:
    assert is_ready(before, after) is ready


@pytest.mark.parametrize(
    "screen",
    [
        ("1. Yes", "2. No"),  # a list in a text: nothing is marked
        ("❯ 1. Yes",),
        ("❯ 1. Yes", "2. No", "a", "b", "c", "d", "e"),  # long past
        ("Go on? [y/N]", "yes, it went on"),
        ("[y/N] is how programs ask",),
        (),
    ],
)
def test_what_only_looks_like_a_question_is_none(screen: tuple[str, ...]) -> None:
    assert find_question(screen) is None


@pytest.mark.parametrize("line", ["Go on? [y/N]", "Go on (yes/no)?", "overwrite? [Y/n]: "])
def test_yes_or_no_is_typed(line: str) -> None:
    wish = find_question(("before", line))
    assert wish is not None
    assert wish.question == line.strip()
    assert wish.answer(True, "") == ("y", "Enter")
    assert wish.answer(False, "") == ("n", "Enter")


def test_a_list_without_a_yes_is_a_question() -> None:
    wish = find_question(("Which colour?", "› 1. red", "  2. green", "", "enter to select"))
    assert wish is not None
    assert (wish.kind, wish.question, wish.options) == (Asked.QUESTION, "Which colour?", ("red", "green"))
    assert wish.answer(True, "Green") == ("2",)


def test_no_character_of_a_text_is_a_key() -> None:
    assert sanitize("a\x1b[201~\x03\x7fb\tc\r\nd\re\x9b") == "a[201~b\tc\nd\ne"
