"""Handle text: what is read, and how each mistake is told."""

import pytest

from scout.base.refusal import Refused
from scout.identity.address import QUALIFIERS, Address
from scout.identity.grammar import check_characters, parse_dimensions, parse_handle
from scout.identity.problem import suggest
from scout.identity.reserved import KEYS, RESERVED
from tests.identity.refusals import NO_READING, describe, expect_malformed

KEY_LIST = "one of workspace, branch, worktree, profile, persona, harness, runtime, model, node, host"
SHORTHANDS = "#harness, then ?model, at the end"
QUOTES = "quotes around a whole value"


def expect(text: str, position: int, problem: str, expected: str, *readings: str) -> None:
    found = expect_malformed(parse_handle, text)
    assert describe(found) == (position, problem, expected, readings or NO_READING)
    assert found.text == text[:200]


# ------------------------------------------------------------------------------------ what is read


@pytest.mark.rows("R1.2-1", "R1.2-3")
@pytest.mark.parametrize("text", ["arc", "@arc", "ARC", "@Arc", b"@aRC", "@-arc-", "@árc"])
def test_the_at_sign_is_optional_in_a_field(text: object) -> None:
    assert parse_handle(text) == Address(definition_id="arc")
    assert parse_handle(text).canonical == "@arc"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("@foo_bar", "@foo-bar"),
        ("@arc/x", "@arc-x"),
        ("@a+b", "@a-b"),
        ("@ARC.Main", "@arc.main"),
        ("@arc.super/Refactor", "@arc.super-refactor"),
        ("@1.2", "@1.2"),
        ("@arc.node:a:b", "@arc.node:a-b"),
    ],
)
def test_each_part_is_folded(text: str, canonical: str) -> None:
    assert parse_handle(text).canonical == canonical


@pytest.mark.rows("R1.2-18")
@pytest.mark.parametrize(
    "text",
    [
        "@arc.main.profile:p.node:n",
        "@arc.profile:p.main.node:n",
        "@arc.profile:p.node:n.main",
        "@arc.workspace:main.profile:p.node:n",
    ],
)
def test_the_one_positional_qualifier_is_the_workspace(text: str) -> None:
    assert parse_handle(text) == Address(
        definition_id="arc", workspace_qualifier="main", profile="p", node="n"
    )


@pytest.mark.rows("R1.2-4", "R1.2-20")
@pytest.mark.parametrize(
    "text",
    [
        "@arc.w.profile:p.harness:h.model:m.node:n",
        "@arc.node:n.model:m.harness:h.profile:p.w",
        "@arc.model:m.w.node:n.profile:p.harness:h",
        "@arc.node:n.profile:p.w#h?m",
    ],
)
def test_typed_qualifiers_come_in_any_order(text: str) -> None:
    assert parse_handle(text).canonical == "@arc.w.profile:p.harness:h.model:m.node:n"


@pytest.mark.rows("R1.2-21", "R1.2-22", "R1.2-23", "R1.2-24", "R1.2-25", "R1.2-26")
@pytest.mark.parametrize("write", [str, str.upper, str.title], ids=["lower", "upper", "title"])
@pytest.mark.parametrize(
    ("key", "canonical"),
    [
        ("workspace", "@arc.x"),
        ("branch", "@arc.x"),
        ("worktree", "@arc.x"),
        ("profile", "@arc.profile:x"),
        ("persona", "@arc.profile:x"),
        ("harness", "@arc.harness:x"),
        ("runtime", "@arc.harness:x"),
        ("model", "@arc.model:x"),
        ("node", "@arc.node:x"),
        ("host", "@arc.node:x"),
    ],
)
def test_each_key_in_any_case(key: str, canonical: str, write: type[str]) -> None:
    assert parse_handle(f"@arc.{write(key)}:x").canonical == canonical


def test_there_are_no_other_keys() -> None:
    assert f"one of {', '.join(KEYS)}" == KEY_LIST
    assert set(KEYS.values()) == set(QUALIFIERS)


@pytest.mark.rows("R1.2-30", "R1.2-31", "R1.2-36")
@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("@arc#codex", "@arc.harness:codex"),
        ("@arc?sonnet", "@arc.model:sonnet"),
        ("@arc?5.5", "@arc.model:5-5"),
        ("@arc?a.b.c", "@arc.model:a-b-c"),
        ("@arc?.5", "@arc.model:5"),
        ("@lattices#codex?5.5", "@lattices.harness:codex.model:5-5"),
        ("@arc.main#claude?sonnet", "@arc.main.harness:claude.model:sonnet"),
        ("@arc.node:n.main#Claude?Sonnet-4", "@arc.main.harness:claude.model:sonnet-4.node:n"),
        ("arc#x", "@arc.harness:x"),
    ],
)
def test_shorthands_stand_at_the_end(text: str, canonical: str) -> None:
    assert parse_handle(text).canonical == canonical


@pytest.mark.rows("R1.2-37", "R1.2-38")
@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("@arc.model:gpt-5.5", "@arc.model:gpt-5-5"),
        ("@arc.model:GPT-5.5", "@arc.model:gpt-5-5"),
        ("@arc.model:gpt-5.5.1", "@arc.model:gpt-5-5-1"),
        ("@arc.model:gpt-4.1-mini", "@arc.model:gpt-4-1-mini"),
        ("@arc.model:gpt-5.5.main", "@arc.main.model:gpt-5-5"),
        ("@arc.main.model:gpt-5.5", "@arc.main.model:gpt-5-5"),
        ("@arc.model:gpt-5.5.node:n", "@arc.model:gpt-5-5.node:n"),
        ("@arc.model:gpt-5.5#codex", "@arc.harness:codex.model:gpt-5-5"),
        ("@arc.model:0.9", "@arc.model:0-9"),
        ("@arc.model:gpt-4.1-mini.2", "@arc.2.model:gpt-4-1-mini"),  # `mini` ends in no digit
        ("@arc.model:gpt.5", "@arc.5.model:gpt"),
        ("@arc.model:gpt-5.x5", "@arc.x5.model:gpt-5"),
        ('@arc.model:"gpt-5".5', "@arc.5.model:gpt-5"),  # a quote says where the value ends
        ('@arc.model:gpt-5."5"', "@arc.5.model:gpt-5"),
        ("@arc.model:5.node:6.7", "@arc.7.model:5.node:6"),
        ("@arc.harness:x5.5", "@arc.5.harness:x5"),
        ("@arc5.5", "@arc5.5"),
    ],
)
def test_a_model_that_ends_in_a_digit_goes_on_with_digits(text: str, canonical: str) -> None:
    assert parse_handle(text).canonical == canonical


@pytest.mark.rows("R1.2-39")
@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("@arc.node:Mini.local", "@arc.node:mini-local"),
        ("@arc.host:mini.LOCAL", "@arc.node:mini-local"),
        ("@arc.node:mini.Local.main", "@arc.main.node:mini-local"),
        ("@arc.node:mini.local.local", "@arc.local.node:mini-local"),  # only once
        ("@arc.node:mini.local#codex", "@arc.harness:codex.node:mini-local"),
        ('@arc.node:"mini".local', "@arc.local.node:mini"),
        ('@arc.node:mini."local"', "@arc.local.node:mini"),
        ("@arc.harness:x.local", "@arc.local.harness:x"),
        ("@arc.workspace:x.profile:local", "@arc.x.profile:local"),
        ("@arc.local", "@arc.local"),
        ("@arc.node:mini.locale", "@arc.locale.node:mini"),
        ("@arc.node:5.5", "@arc.5.node:5"),
    ],
)
def test_local_belongs_to_the_node_before_it(text: str, canonical: str) -> None:
    assert parse_handle(text).canonical == canonical


@pytest.mark.rows("R1.2-40")
@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('@arc.node:"a.b"', "@arc.node:a-b"),
        ('@arc.node:"Mini.Local".main', "@arc.main.node:mini-local"),
        ('@arc.model:"gpt-5.5"', "@arc.model:gpt-5-5"),
        ('@arc.node:"a#b?c:d"', "@arc.node:a-b-c-d"),
        ('@arc.node:"a.b"#codex?x', "@arc.harness:codex.model:x.node:a-b"),
        ('@arc."x.y"', "@arc.x-y"),
        ('@"a.b".main', "@a-b.main"),
    ],
)
def test_dots_in_quotes_do_not_split(text: str, canonical: str) -> None:
    assert parse_handle(text).canonical == canonical


@pytest.mark.rows("R1.2-54")
@pytest.mark.parametrize("word", RESERVED)
def test_a_reserved_word_is_still_read(word: str) -> None:
    assert parse_handle(f"@{word}") == Address(definition_id=word)


def test_the_longest_text() -> None:
    assert parse_handle("@" + "a" * 1023).definition_id == "a" * 1023
    expect("@" + "a" * 1024, 1024, "too much text", "at most 1024 characters")
    # What would be printed counts too: shorthands and some letters grow.
    expect("@" + "a" * 1010 + "#codex", 1017, "too much text", "at most 1024 characters when written out")
    expect("@" + "㎓" * 400, 401, "too much text", "at most 1024 characters when written out")


# --------------------------------------------------------------------------------- how it is refused


@pytest.mark.rows("R1.2-11")
@pytest.mark.parametrize(
    ("text", "position", "readings"),
    [
        ("arc main", 3, ["@arc-main"]),
        (" @arc", 0, ["@arc"]),
        ("@arc\n", 4, ["@arc"]),
        ("@a\tb c", 2, ["@a-b-c"]),
        ("@a\u00a0b", 2, ["@a-b"]),
        ("@a\u2028b", 2, ["@a-b"]),
        ("@a\x1fb", 2, ["@a-b"]),  # a separator of the ASCII table
        ('@arc.node:"a b"', 12, ['@arc.node:"a-b"']),
        ("branch:a b", 8, ["branch:a-b"]),
        ("hello @arc", 5, []),
        ("a \u200b", 1, []),
        ("branch: ~", 7, []),
    ],
)
def test_white_space(text: str, position: int, readings: list[str]) -> None:
    expect(text, position, "a space", "a name without spaces", *readings)


@pytest.mark.rows("R1.2-12")
@pytest.mark.parametrize(
    ("text", "position", "number", "readings"),
    [
        ("@a\x00b", 2, "0000", ["@ab"]),
        ("@a\x7f", 2, "007F", ["@a"]),
        ("@arc\x9b", 4, "009B", ["@arc"]),
        ("@arc\u200bx", 4, "200B", ["@arcx"]),
        ("\ufeff@arc", 0, "FEFF", ["@arc"]),
        ("@\u202ecra", 1, "202E", ["@cra"]),
        ("@\ud800", 1, "D800", []),
        ("@x\U000e0041", 2, "E0041", ["@x"]),
        ("@x\u200b\u200c y", 2, "200B", []),
    ],
)
def test_control_and_invisible_characters(text: str, position: int, number: str, readings: list[str]) -> None:
    found = expect_malformed(parse_handle, text)
    problem = f"the invisible character U+{number}"
    assert describe(found) == (position, problem, "visible characters", tuple(readings) or NO_READING)


@pytest.mark.rows("R1.2-13")
@pytest.mark.parametrize(
    ("text", "position", "readings"),
    [
        ("@arc@mini", 4, ["@arc.node:mini", "@arc"]),
        ("@arc@mini#main", 4, ["@arc.node:mini#main", "@arc"]),
        ("arc@mini", 3, ["@arc.node:mini", "@arc"]),
        ("@arc.main@mini", 9, ["@arc.main.node:mini", "@arc.main"]),
        ("@arc@", 4, ["@arc"]),
        ("@@arc", 1, ["@arc"]),
        ("@a@b@c", 2, ["@a"]),
    ],
)
def test_a_second_at_sign(text: str, position: int, readings: list[str]) -> None:
    expect(text, position, "a second '@'", "one address", *readings)


@pytest.mark.rows("R1.2-14")
@pytest.mark.parametrize(
    ("text", "position", "readings"),
    [
        ('@arc.node:"a', 10, ["@arc.node:a"]),
        ('@arc.node:"a.b', 10, ["@arc.node:a.b"]),
        ('@arc.node:a"', 11, ["@arc.node:a"]),
        ('@arc.x.node:"', 12, []),
        ('@"', 1, []),
    ],
)
def test_an_unclosed_quote(text: str, position: int, readings: list[str]) -> None:
    expect(text, position, "a quote that is not closed", QUOTES, *readings)


@pytest.mark.parametrize(
    ("text", "position", "readings"),
    [
        ('@arc.node:a"b"', 11, ["@arc.node:ab"]),
        ('@arc.node:"a"b', 10, ["@arc.node:ab"]),
        ('@a"b"c', 2, ["@abc"]),
        ('@x."a"."b"c', 7, []),
    ],
)
def test_quotes_stand_around_a_whole_value(text: str, position: int, readings: list[str]) -> None:
    expect(text, position, "a quote inside a value", QUOTES, *readings)


@pytest.mark.rows("R1.2-17")
@pytest.mark.parametrize(
    ("text", "position", "readings"),
    [
        ("@x..main", 3, ["@x.main"]),
        ("@x.", 3, ["@x"]),
        ("@x.main.", 8, ["@x.main"]),
        ("@x.main..node:n", 8, ["@x.main.node:n"]),
        ("@x.#codex", 3, ["@x#codex"]),
        ("@x.?5", 3, ["@x?5"]),
        ('@x.""', 4, ["@x"]),
        ("@x.a..b", 5, []),
    ],
)
def test_an_empty_segment(text: str, position: int, readings: list[str]) -> None:
    expect(text, position, "an empty workspace", "the name of a workspace", *readings)


@pytest.mark.parametrize(
    ("text", "position", "readings"),
    [
        ("@", 1, ["@name"]),
        ("@.x", 1, ["@name.x"]),
        (".x", 0, ["@name.x"]),
        ("#codex", 0, ["@name#codex"]),
        ("@?5.5", 1, ["@name?5.5"]),
        ('@""', 1, []),
        ("@..", 1, []),
    ],
)
def test_no_definition(text: str, position: int, readings: list[str]) -> None:
    expect(text, position, "no definition", "the name of an agent", *readings)


@pytest.mark.parametrize(
    ("text", "position", "readings"),
    [
        ("node:mini", 0, ["@name.node:mini", "@mini"]),
        ("@Harness:codex.main", 1, ["@name.Harness:codex.main", "@codex"]),
        ("@arc:main", 1, ["@arc.main", "@main"]),
        ("http://localhost:1", 0, []),
        (":x", 0, ["@x"]),
    ],
)
def test_qualifiers_need_a_definition_before_them(text: str, position: int, readings: list[str]) -> None:
    expect(text, position, "no definition", "the name of an agent before its qualifiers", *readings)


def test_nothing_at_all() -> None:
    expect("", 0, "nothing", "an address such as @name")


@pytest.mark.rows("R1.2-19")
@pytest.mark.parametrize(
    ("text", "position", "readings"),
    [
        ("@arc.dev.mini", 9, ["@arc.dev.node:mini", "branch:arc.dev.mini", "@arc.dev-mini"]),
        ("arc.dev.mini", 8, ["@arc.dev.node:mini", "branch:arc.dev.mini", "@arc.dev-mini"]),
        ("@arc.dev.mini#codex", 9, ["@arc.dev.node:mini#codex", "@arc.dev-mini#codex"]),
        ("@arc.dev.mini.profile:p", 9, ["@arc.dev.node:mini.profile:p", "@arc.dev-mini.profile:p"]),
        ("@arc.dev.mini.node:n", 9, ["@arc.dev-mini.node:n"]),
        ('@arc.dev."a.b"', 9, ['@arc.dev.node:"a.b"']),
        ("@arc.dev.dev", 9, ["@arc.dev.node:dev", "branch:arc.dev.dev", "@arc.dev-dev"]),
        ("@arc.a.b.c", 7, ["branch:arc.a.b.c"]),
        ("@arc.a.b.lock", 7, []),  # git would refuse the branch
        ("@arc.model:gpt-5.main.5", 22, ["@arc.model:gpt-5.main.node:5", "@arc.model:gpt-5.main-5"]),
        ("@arc.node:mini.main.local", 20, ["@arc.node:mini.main-local"]),
    ],
)
def test_a_second_positional_qualifier(text: str, position: int, readings: list[str]) -> None:
    expect(text, position, "a second workspace", "key:value, or the end", *readings)


@pytest.mark.rows("R1.2-27")
@pytest.mark.parametrize(
    ("text", "position", "key", "readings"),
    [
        ("@arc.foo:bar", 5, "foo", ["@arc"]),
        ("@arc.main.Foo:bar.node:n", 10, "foo", ["@arc.main"]),
        ("@arc.:x", 5, "", ["@arc"]),
        ("@arc.model:5.5:x", 13, "5", ["@arc.model:5"]),
        ("@arc.models:x", 5, "models", ["@arc"]),
        ("@arc." + "k" * 61 + ":x", 5, "k" * 60, ["@arc"]),
    ],
)
def test_an_unknown_key(text: str, position: int, key: str, readings: list[str]) -> None:
    expect(text, position, f"the unknown key '{key}'", KEY_LIST, *readings)


@pytest.mark.rows("R1.2-28")
@pytest.mark.parametrize(
    ("text", "position", "name", "reading"),
    [
        ("@arc.profile:", 13, "profile", "@arc"),
        ("@arc.profile:.main", 13, "profile", "@arc.main"),
        ('@arc.persona:"".main', 14, "profile", "@arc.main"),
        ("@arc.branch:", 12, "workspace", "@arc"),
        ("@arc.main.runtime:#x", 18, "harness", "@arc.main#x"),
        ("@arc.model:", 11, "model", "@arc"),
        ("@arc.host:.local", 10, "node", "@arc.local"),
        ("@arc#", 5, "harness", "@arc"),
        ("@arc.main?", 10, "model", "@arc.main"),
        ("@arc#?x", 5, "harness", "@arc?x"),
        ("@arc#x?", 7, "model", "@arc#x"),
    ],
)
def test_an_empty_value(text: str, position: int, name: str, reading: str) -> None:
    expect(text, position, f"an empty {name}", f"the name of a {name}", reading)


@pytest.mark.rows("R1.2-29")
@pytest.mark.parametrize(
    ("text", "position", "name", "readings"),
    [
        ("@arc.branch:a.branch:b", 14, "workspace", ["@arc.branch:a"]),
        ("@arc.branch:a.worktree:a.node:n", 14, "workspace", ["@arc.branch:a.node:n"]),
        ("@arc.main.branch:dev", 10, "workspace", ["@arc.main"]),
        ("@arc.main.branch:main", 10, "workspace", ["@arc.main"]),
        ("@arc.branch:dev.main", 16, "workspace", ["@arc.branch:dev"]),
        ("@arc.profile:a.persona:b.main", 15, "profile", ["@arc.profile:a.main"]),
        ("@arc.harness:a.runtime:b", 15, "harness", ["@arc.harness:a"]),
        ("@arc.model:a.MODEL:a", 13, "model", ["@arc.model:a"]),
        ("@arc.node:a.host:b", 12, "node", ["@arc.node:a"]),
        ('@arc.node:a.node:"b.c".main', 12, "node", ["@arc.node:a.main"]),
        ("@arc.harness:claude#codex", 19, "harness", ["@arc.harness:claude"]),
        ("@arc.harness:claude#codex?5.5", 19, "harness", ["@arc.harness:claude?5.5"]),
        ("@arc.model:x?5.5", 12, "model", ["@arc.model:x"]),
        ("@arc.model:x#codex?5.5", 18, "model", ["@arc.model:x#codex"]),
        ("@arc.node:a.node:b.x.y", 12, "node", []),
    ],
)
def test_a_dimension_twice(text: str, position: int, name: str, readings: list[str]) -> None:
    expect(text, position, f"a second {name}", f"one {name}", *readings)


@pytest.mark.rows("R1.2-32", "R1.2-33", "R1.2-34", "R1.2-35")
@pytest.mark.parametrize(
    ("text", "position", "problem", "readings"),
    [
        ("@arc##x", 5, "'#' after '#'", ["@arc.harness:x"]),
        ("@arc#a#b", 6, "'#' after '#'", ["@arc.harness:a"]),
        ("@arc?a?b", 6, "'?' after '?'", ["@arc.model:a"]),
        ("@arc#x?a?b", 8, "'?' after '?'", ["@arc.harness:x.model:a"]),
        ("@arc?sonnet#claude", 11, "'#' after '?'", ["@arc.harness:claude.model:sonnet"]),
        ("@arc?5.5#codex", 8, "'#' after '?'", ["@arc.harness:codex.model:5-5"]),
        ("@arc?v.next#codex", 11, "'#' after '?'", ["@arc.harness:codex.model:v-next"]),
        ("@arc#codex?5#x", 12, "'#' after '?'", ["@arc.harness:codex.model:5"]),
        ("@arc#codex.main", 10, "'.' after '#'", ["@arc.main.harness:codex", "@arc.harness:codex"]),
        (
            "@arc#codex.main.node:n?5.5",
            10,
            "'.' after '#'",
            ["@arc.main.node:n.harness:codex.model:5-5", "@arc.harness:codex.model:5-5"],
        ),
        ("@arc.x#codex.main", 12, "'.' after '#'", ["@arc.x.harness:codex"]),
        ("@arc#.", 5, "'.' after '#'", ["@arc"]),
        ("@arc#codex:x", 10, "':' after '#'", ["@arc.harness:codex-x"]),
        ("@arc?gpt:5", 8, "':' after '?'", ["@arc.model:gpt-5"]),
        ("@arc?5.node:mini", 11, "':' after '?'", ["@arc.node:mini.model:5", "@arc.model:5"]),
        ("@arc?5.5.node:mini", 13, "':' after '?'", ["@arc.node:mini.model:5-5", "@arc.model:5-5"]),
        ("@arc?:", 5, "':' after '?'", ["@arc"]),
        ('@arc#"codex"', 5, "'\"' after '#'", ["@arc.harness:codex"]),
        ('@arc?"5.5"', 5, "'\"' after '?'", ["@arc.model:5-5"]),
        ("@arc.harness:x?a#b", 16, "'#' after '?'", []),
    ],
)
def test_shorthands_in_a_wrong_place_show_the_long_form(
    text: str, position: int, problem: str, readings: list[str]
) -> None:
    expect(text, position, problem, SHORTHANDS, *readings)


@pytest.mark.rows("R1.2-9")
@pytest.mark.parametrize(
    ("text", "position", "value"),
    [
        ("@日本", 1, "日本"),
        ("日本.main", 0, "日本"),
        ("@-", 1, "-"),
        ("@arc.日本", 5, "日本"),
        ("@arc.---.node:n", 5, "---"),
        ("@arc.node:日本", 10, "日本"),
        ('@arc.node:"…"', 11, "…"),
        ("@arc#日本", 5, "日本"),
        ("@arc?..", 5, ".."),
        ("@" + "日" * 61, 1, "日" * 60),
    ],
)
def test_a_part_that_folds_to_nothing(text: str, position: int, value: str) -> None:
    expect(text, position, f"no letter or digit in '{value}'", "a letter or a digit")


def test_the_remedies_say_why() -> None:
    remedy = expect_malformed(parse_handle, "@x..main").remedies[0]
    assert remedy == suggest("@x.main", "a valid spelling")
    assert remedy.operation == "parse"


@pytest.mark.parametrize("value", [None, 5, b"\xff", ["@arc"]])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(Refused):
        parse_handle(value)


# ----------------------------------------------------------------------------------- characters only


def test_good_characters_pass() -> None:
    check_characters("a")
    check_characters("x" * 1024)
    check_characters("anything@visible:#?")


def test_bad_characters_are_told_with_the_remedy_of_the_caller() -> None:
    remedy = suggest("channel:a-b", "the folded name")
    assert describe(expect_malformed(check_characters, "channel:a b", remedy)) == (
        9,
        "a space",
        "a name without spaces",
        ("channel:a-b",),
    )
    assert describe(expect_malformed(check_characters, "a b"))[3] == ("@a-b",)
    assert describe(expect_malformed(check_characters, ""))[:3] == (0, "nothing", "an address such as @name")


# -------------------------------------------------------------------------------- structured input


@pytest.mark.rows("R1.2-15")
@pytest.mark.parametrize(
    ("fields", "canonical"),
    [
        ({"definitionId": "Super Refactor"}, "@super-refactor"),
        ({"definitionId": "a.b#c?d:e@f"}, "@a-b-c-d-e-f"),
        ({"definitionId": "arc", "workspaceQualifier": "Mini.local"}, "@arc.mini-local"),
        (
            {
                "node": "My Mac.local",
                "model": "GPT 5.5",
                "harness": "Codex CLI",
                "profile": "Dev Browser",
                "workspaceQualifier": "feature/x.y",
                "definitionId": "Arc",
            },
            "@arc.feature-x-y.profile:dev-browser.harness:codex-cli.model:gpt-5-5.node:my-mac-local",
        ),
        ({"definitionId": "arc", "harnessType": "x", "authorityNode": "n"}, "@arc.harness:x.node:n"),
        ({"definitionId": "arc", "model": None, "node": None}, "@arc"),
        ({"definitionId": b"arc"}, "@arc"),
    ],
)
def test_each_dimension_is_folded_on_its_own(fields: dict[str, object], canonical: str) -> None:
    assert parse_dimensions(fields).canonical == canonical


EACH_ONCE = (
    "each of definitionId, workspaceQualifier, profile, harness, harnessType, model, node, authorityNode"
    " at most once"
)


@pytest.mark.parametrize(
    ("fields", "text", "problem", "expected"),
    [
        ({}, "", "no definitionId", "the name of an agent"),
        ({"definitionId": None}, "", "no definitionId", "the name of an agent"),
        ({"profile": "x"}, "", "no definitionId", "the name of an agent"),
        ({"definitionId": "a", "foo": "x"}, "foo", "the unknown dimension 'foo'", EACH_ONCE),
        ({"k" * 61: "x"}, "k" * 61, f"the unknown dimension '{'k' * 60}'", EACH_ONCE),
        (
            {"definitionId": "a", "harness": "x", "harnessType": "x"},
            "harnessType",
            "'harnessType' twice",
            EACH_ONCE,
        ),
        ({"definitionId": "日本"}, "日本", "no letter or digit in definitionId", "a letter or a digit"),
        ({"definitionId": "a", "node": " "}, " ", "no letter or digit in node", "a letter or a digit"),
        ({"definitionId": 5}, "", "a value of type int", "text"),
        ({"definitionId": "a", "model": ["x"]}, "", "a value of type list", "text"),
    ],
)
def test_a_bad_dimension(fields: dict[str, object], text: str, problem: str, expected: str) -> None:
    found = expect_malformed(parse_dimensions, fields)
    assert describe(found) == (0, problem, expected, NO_READING)
    assert found.text == text


def test_structured_input_may_not_grow_past_what_can_be_typed() -> None:
    assert expect_malformed(parse_dimensions, {"definitionId": "a" * 2000}).problem == "too much text"
