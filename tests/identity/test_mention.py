"""Mentions in a body: the hard signal and the soft hints."""

import pytest

from scout.identity.grammar import parse_handle
from scout.identity.mention import Mention, Mentions, find_mentions
from scout.identity.problem import MalformedAddress
from tests.identity.refusals import describe, expect_malformed


def mention(text: str, position: int) -> Mention:
    return Mention(text=text, position=position, address=parse_handle(text))


def soft(body: str) -> list[tuple[str, int]]:
    """The soft mentions of a body that has no leading one."""
    found = find_mentions(body)
    assert found.leading is None
    for one in found.soft:
        assert one == mention(one.text, one.position)
        assert body.startswith(one.text, one.position)
    return [(one.text, one.position) for one in found.soft]


@pytest.mark.rows("R1.3-47", "R1.3-53", "R1.3-55")
@pytest.mark.parametrize(
    ("body", "text", "position"),
    [
        ("@hudson", "@hudson", 0),
        ("@hudson review this", "@hudson", 0),
        ("  @hudson review", "@hudson", 2),
        ("\n\t@hudson", "@hudson", 2),
        ("\u00a0@hudson x", "@hudson", 1),
        ("@HUDSON x", "@HUDSON", 0),
        ("@hudson\nx", "@hudson", 0),
        ("@X x", "@X", 0),
    ],
)
def test_the_first_word_is_leading(body: str, text: str, position: int) -> None:
    assert find_mentions(body) == Mentions(leading=mention(text, position))
    assert find_mentions(body.encode()) == Mentions(leading=mention(text, position))


@pytest.mark.rows("R1.3-47", "R1.3-53", "R1.3-55")
def test_every_other_mention_is_soft() -> None:
    assert find_mentions("@a ask @b and\n@c") == Mentions(
        leading=mention("@a", 0), soft=(mention("@b", 7), mention("@c", 14))
    )
    assert soft("ask @b @b") == [("@b", 4), ("@b", 7)]
    assert soft("> @b\n- @c\n1. @d") == [("@b", 2), ("@c", 7), ("@d", 13)]


@pytest.mark.rows("R1.2-2", "R1.3-47", "R1.3-51")
@pytest.mark.parametrize(
    "body",
    [
        "",
        "hudson review this",
        "ask hudson.main#codex",
        "@",
        "@ arc",
        "x @",
        "@@",
        "@@ -1,3 +1,4 @@",
        "x @@arc",
        "a@b.com",
        "mail a@b.com now",
        "<a@b.com>",
        "mailto:a@b.com",
        "x/@arc",
        "x,@arc",
        "-@arc",
        "**@arc**",
        "\u200f@arc",
        "@...",
        "@#?!",
        "@--",
        "@_",
    ],
)
def test_no_mention(body: str) -> None:
    assert find_mentions(body) == Mentions()


@pytest.mark.rows("R1.3-48")
@pytest.mark.parametrize("opening", [*"([{<\"'“‘„‚«‹〈《「『【（", "((", '("', "[“'"])
def test_brackets_and_quotes_make_a_mention_soft(opening: str) -> None:
    assert soft(f"{opening}@arc.main) hi") == [("@arc.main", len(opening))]
    assert soft(f"x {opening}@arc") == [("@arc", len(opening) + 2)]
    assert soft(f"{opening} @arc") == [("@arc", len(opening) + 1)]


@pytest.mark.parametrize("closing", list(")]}>”’»」）*`|\\$%&=…"))
def test_other_signs_before_the_at_sign_hide_it(closing: str) -> None:
    assert soft(f"x {closing}@arc") == []


@pytest.mark.rows("R1.3-50")
@pytest.mark.parametrize(
    "tail",
    [
        *[".", ",", ";", ":", "!", "?", "#", "/", "~", "+", "-", "_", ")", "]", "}", ">", '"', "'", "…", "”"],
        *["'s", "’s", "...", "?!", "!!", ":-)", "--", ".)", "?)", ',"', "**", "👍", "\u200bx"],
    ],
)
def test_trailing_punctuation_is_no_part(tail: str) -> None:
    assert find_mentions(f"@arc.main{tail}") == Mentions(leading=mention("@arc.main", 0))
    assert soft(f"x @arc.main{tail} y") == [("@arc.main", 2)]


@pytest.mark.rows("R1.3-49", "R3.7-12")
@pytest.mark.parametrize(
    ("body", "canonical"),
    [
        (
            "@arc.main.profile:dev.harness:claude.model:gpt-5.5.node:Mini.local x",
            "@arc.main.profile:dev.harness:claude.model:gpt-5-5.node:mini-local",
        ),
        ("@arc.main#claude?5.5, x", "@arc.main.harness:claude.model:5-5"),
        ("@arc#codex. x", "@arc.harness:codex"),
        ("@arc? x", "@arc"),
        ('@arc.node:"a.b#c", x', "@arc.node:a-b-c"),
        ('@arc.node:"a.b".main x', "@arc.main.node:a-b"),
        ("@arc.branch:feature/x_y+z~1 x", "@arc.feature-x-y-z-1"),
        ("@héllo x", "@hello"),
        ("@he\u0301llo x", "@hello"),
        ("@foo_bar-2 x", "@foo-bar-2"),
        ("@5 x", "@5"),
    ],
)
def test_a_mention_is_any_handle(body: str, canonical: str) -> None:
    found = find_mentions(body).leading
    assert found is not None
    assert found.address is not None
    assert found.address.canonical == canonical
    assert found.problem is None


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("@arc.a.b do it", "@arc.a.b"),
        ("@arc@mini, x", "@arc@mini"),
        ("@foo@bar.com", "@foo@bar.com"),
        ("@日本 x", "@日本"),
        ("@arc.foo:bar", "@arc.foo:bar"),
        ("@arc##x", "@arc##x"),
        ("@arc?a#b.", "@arc?a#b"),
        ('@arc.node:"" x', '@arc.node:""'),
        ("@.x", "@.x"),
        ("@" + "a" * 1100, "@" + "a" * 1100),
    ],
)
def test_a_malformed_first_word_is_kept_with_its_problem(body: str, text: str) -> None:
    found = find_mentions(body)
    assert found.soft == ()
    assert found.leading is not None
    assert (found.leading.text, found.leading.position, found.leading.address) == (text, 0, None)
    assert isinstance(found.leading.problem, MalformedAddress)
    assert describe(found.leading.problem) == describe(expect_malformed(parse_handle, text))
    assert soft(f"x {body}") == []


@pytest.mark.rows("R1.3-52")
@pytest.mark.parametrize(
    ("body", "mentions"),
    [
        ("run `@a` in code", []),
        ("run ` @a ` in code @b", [("@b", 19)]),
        ("` @a `", []),
        ("`` @a ` @b `` @c", [("@c", 14)]),
        ("x ` @a y", [("@a", 4)]),
        ("x `a\n@b` y", []),
        ("x ` a\n\n@b ` y", [("@b", 7)]),
        ("```\n@a\n```\n@b", [("@b", 11)]),
        ("~~~\n@a\n~~~\n@b", [("@b", 11)]),
        ("```\n@a", []),
        ("- ```py\n  @a\n\n  @b\n  ```\n@c", [("@c", 25)]),
        ("(`@a`) (@b", [("@b", 8)]),
    ],
)
def test_code_holds_no_mention(body: str, mentions: list[tuple[str, int]]) -> None:
    assert soft(body) == mentions


def test_a_mention_after_code_is_not_leading() -> None:
    assert soft("`x` @a") == [("@a", 4)]
    assert soft("```\n```\n@a") == [("@a", 8)]


@pytest.mark.parametrize("value", [None, 5, b"\xff", ["@arc"]])
def test_what_is_no_text_is_refused(value: object) -> None:
    assert expect_malformed(find_mentions, value).expected in ("text", "UTF-8 text")
