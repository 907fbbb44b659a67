"""The route operator."""

import pytest

from scout.identity.lexer import lex
from scout.identity.route import Route, find_route
from tests.identity.refusals import NO_READING, describe, expect_malformed


@pytest.mark.rows("R1.2-41", "R1.6-14")
@pytest.mark.parametrize(
    ("text", "command", "target", "body"),
    [
        ("/scout:ask >> hudson Review this.", "/scout:ask", "hudson", "Review this."),
        (">> hudson", "", "hudson", ""),
        (">>hudson hi", "", "hudson", "hi"),
        ("a >>hudson  hi  ", "a", "hudson", "hi  "),
        ("a\n>>\t@arc.main#codex?5.5\n two\n lines\n", "a", "@arc.main#codex?5.5", "two\n lines\n"),
        ("a >> b >> c", "a", "b", ">> c"),
        ("x >> main.x y", "x", "main.x", "y"),
        ("`>> a` >> b c", "`>> a`", "b", "c"),
        ("```\n>> a\n```\n>> b c", "```\n>> a\n```", "b", "c"),
        ("a >>> b >> c d", "a >>> b", "c", "d"),
        ("a>>b >> c d", "a>>b", "c", "d"),
        ("x\u00a0>>\u00a0hudson\u00a0hi", "x", "hudson", "hi"),
    ],
)
def test_the_word_after_the_operator_is_the_target(text: str, command: str, target: str, body: str) -> None:
    found = find_route(text)
    assert found is not None
    assert found == Route(command=command, target=lex(f">>{target}"), address=found.address, body=body)
    assert found.address.removeprefix("@") == target.removeprefix("@")
    assert find_route(text.encode()) == find_route(text)


@pytest.mark.rows("R1.2-41")
@pytest.mark.parametrize(
    "target", ["root", "operator", "/u1/telegram", "session:ses_1", "branch:main.x", "agt_01", "../sub/1"]
)
def test_a_target_is_any_form(target: str) -> None:
    assert find_route(f"x >> {target} do it") == Route(
        command="x", target=lex(target), address=target, body="do it"
    )


@pytest.mark.parametrize("tail", [",", ";", ":", "!", ",;:!"])
def test_punctuation_after_the_target(tail: str) -> None:
    assert find_route(f">> X{tail} go") == Route(command="", target=lex(">>X"), address="@X", body="go")


@pytest.mark.rows("R1.2-42")
@pytest.mark.parametrize("text", ["", "no", "a>>b", "a>> b", "x a>>b c", "> > a", ">>> a", ">>>>", "`>> a`"])
def test_no_operator(text: str) -> None:
    assert find_route(text) is None


@pytest.mark.rows("R1.2-43")
@pytest.mark.parametrize(
    ("text", "position"),
    [(">>", 2), ("x >>", 4), ("x >>  ", 6), ("x >>\nhudson", 4), ("x >> ,; y", 5), ("x >> \t\nhi", 6)],
)
def test_no_target(text: str, position: int) -> None:
    found = expect_malformed(find_route, text)
    assert describe(found) == (position, "no target", "an address after '>>'", (">> operator",))
    assert found.text == text
    assert found.remedies[0].why == "the word after '>>' is the target"


@pytest.mark.rows("R1.2-43")
@pytest.mark.parametrize(
    ("text", "position", "problem", "expected", "readings"),
    [
        ("x >> @x..y hi", 8, "an empty workspace", "the name of a workspace", ["@x.y"]),
        (">>@x..y hi", 5, "an empty workspace", "the name of a workspace", ["@x.y"]),
        ("x >> >y", 5, "'>'", "a target after '>>'", []),
        ("x >> {y}", 5, "'{'", "a target after '>>'", []),
        ("x >>  日本 y", 6, "no letter or digit in '日本'", "a letter or a digit", []),
        ("x >> hudson. y", 12, "an empty workspace", "the name of a workspace", ["@hudson"]),
        ("x >> session:y z", 13, "no session", "ses_… or HARNESS:NATIVE-ID", []),
        ("x >> ../name z", 5, "a relative directory", None, ["project:../name"]),
    ],
)
def test_a_malformed_target(
    text: str, position: int, problem: str, expected: str | None, readings: list[str]
) -> None:
    found = expect_malformed(find_route, text)
    wording = expected or "., .., ./sub/N, ../sub/N or project:DIR"
    assert describe(found) == (position, problem, wording, tuple(readings) or NO_READING)
    assert found.text == text


@pytest.mark.parametrize("value", [None, 5, b"\xff", [">> arc"]])
def test_what_is_no_text_is_refused(value: object) -> None:
    assert expect_malformed(find_route, value).expected in ("text", "UTF-8 text")
