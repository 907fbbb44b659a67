"""The grammar of addresses and mentions, rule by rule, as `scout parse` reads it."""

import json
import subprocess
import sys
from collections.abc import Callable, Generator
from typing import Any

import pytest

Parse = Callable[[str], Any]

RESERVED = ("agent", "cron", "task", "subuser", "system", "sub", "memory", "search", "app")


@pytest.fixture(scope="module")
def parse() -> Generator[Parse]:
    """One `scout parse -` that answers line by line."""
    command = [sys.executable, "-m", "scout", "parse", "-", "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        into, out = process.stdin, process.stdout

        def ask(text: str) -> Any:
            into.write(json.dumps(text) + "\n")
            into.flush()
            return json.loads(out.readline())

        yield ask
        into.close()


def read_as(parse: Parse, cases: dict[str, str]) -> None:
    assert {text: parse(text).get("canonical") for text in cases} == cases


def parse_refused(parse: Parse, text: str) -> Any:
    error = parse(text)["error"]
    assert error["code"] == "malformed_address", text
    return error


def list_offered(parse: Parse, text: str) -> list[str]:
    """The readings that a refusal offers."""
    found = [one["parameters"] for one in parse_refused(parse, text)["remedies"]]
    return [text for one in found for text in one.get("texts", ())]


@pytest.mark.rows("R1.2-3", "R1.2-4", "R1.2-18", "R1.2-20")
def test_dimensions_are_given_in_any_order_and_printed_in_one(parse: Parse) -> None:
    whole = "@arc.main.profile:dev.harness:codex.model:m1.node:mini"
    cases = dict.fromkeys(
        (
            "@arc.node:mini.model:m1.harness:codex.profile:dev.main",
            "@arc.harness:codex.main.node:mini.profile:dev.model:m1",
            "arc.main.model:m1.profile:dev.node:mini.harness:codex",
        ),
        whole,
    )
    read_as(parse, {**cases, "@arc.profile:dev.main": "@arc.main.profile:dev"})
    assert [*parse(whole)["dimensions"]] == [
        "definitionId", "workspaceQualifier", "profile", "harness", "model", "node",
    ]  # fmt: skip


@pytest.mark.rows("R1.2-5", "R1.2-6", "R1.2-7", "R1.2-8", "R1.2-9", "R1.2-10")
def test_names_are_folded(parse: Parse) -> None:
    read_as(
        parse,
        {
            "@Héllo": "@hello",
            "@ﬁne": "@fine",
            "@ARC.Main": "@arc.main",
            "@arc.branch:super/refactor": "@arc.super-refactor",
            "@arc.workspace:a__/b": "@arc.a-b",
            "@arc.workspace:-a-": "@arc.a",
            '@arc.node:"Mini.local"': "@arc.node:mini-local",
        },
    )
    parse_refused(parse, "@日本")
    parse_refused(parse, "@arc.profile:---")


@pytest.mark.rows("R1.2-11", "R1.2-12", "R1.2-13", "R1.2-14", "R1.2-17")
def test_what_is_no_handle_is_malformed_where_it_goes_wrong(parse: Parse) -> None:
    wrong = {
        "@arc main": 4,
        "@arc\tmain": 4,
        "@arc\x07": 4,
        "@arc@mini": 4,
        '@arc.node:"a': 10,
        "@x..main": 3,
        "@x.": 3,
    }
    assert {text: parse_refused(parse, text)["position"] for text in wrong} == wrong


@pytest.mark.rows("R1.2-19")
def test_a_second_workspace_is_refused_with_both_readings(parse: Parse) -> None:
    assert list_offered(parse, "@arc.dev.mini")[:2] == ["@arc.dev.node:mini", "branch:arc.dev.mini"]


@pytest.mark.rows("R1.2-21", "R1.2-22", "R1.2-23", "R1.2-24", "R1.2-25", "R1.2-26")
def test_each_dimension_has_its_keys_in_any_case(parse: Parse) -> None:
    for keys, canonical in (
        (("workspace", "branch", "worktree"), "@arc.x"),
        (("profile", "persona"), "@arc.profile:x"),
        (("harness", "runtime"), "@arc.harness:x"),
        (("model",), "@arc.model:x"),
        (("node", "host"), "@arc.node:x"),
    ):
        for key in keys:
            read_as(parse, {f"@arc.{spelt}:x": canonical for spelt in (key, key.upper(), key.title())})
    expected = parse_refused(parse, "@arc.engine:x")["expected"]
    assert expected.removeprefix("one of ").split(", ") == [
        "workspace", "branch", "worktree", "profile", "persona", "harness", "runtime", "model", "node", "host",
    ]  # fmt: skip


@pytest.mark.rows("R1.2-27", "R1.2-28", "R1.2-29")
def test_unknown_keys_empty_values_and_doubles_are_refused_with_their_position(parse: Parse) -> None:
    wrong = {
        "@arc.foo:bar": 5,
        "@arc.profile:": 13,
        "@arc.branch:a.branch:b": 14,
        "@arc.branch:a.branch:a": 14,
        "@arc.main.branch:dev": 10,
        "@arc.main.branch:main": 10,
    }
    assert {text: parse_refused(parse, text)["position"] for text in wrong} == wrong


@pytest.mark.rows("R1.2-30", "R1.2-31", "R1.2-36")
def test_shorthands_stand_for_harness_and_model(parse: Parse) -> None:
    read_as(
        parse,
        {
            "@arc#codex": "@arc.harness:codex",
            "@arc.main#codex": "@arc.main.harness:codex",
            "@arc?sonnet": "@arc.model:sonnet",
            "@arc#codex?5.5": "@arc.harness:codex.model:5-5",
        },
    )


@pytest.mark.rows("R1.2-32", "R1.2-33", "R1.2-34", "R1.2-35")
def test_a_wrong_shorthand_is_refused_with_the_long_form(parse: Parse) -> None:
    for text, long_form in {
        "@arc#a#b": "@arc.harness:a",
        "@arc?a?b": "@arc.model:a",
        "@arc?sonnet#claude": "@arc.harness:claude.model:sonnet",
        "@arc#codex.main": "@arc.main.harness:codex",
        "@arc?a:b": "@arc.model:a-b",
    }.items():
        assert list_offered(parse, text)[0] == long_form
        read_as(parse, {long_form: long_form})


@pytest.mark.rows("R1.2-37", "R1.2-38", "R1.2-39", "R1.2-40")
def test_dots_that_belong_to_a_value(parse: Parse) -> None:
    read_as(
        parse,
        {
            "@arc.model:gpt-5.5": "@arc.model:gpt-5-5",
            "@arc.model:gpt-5.5.main": "@arc.main.model:gpt-5-5",
            "@arc.model:gpt-4.1-mini": "@arc.model:gpt-4-1-mini",
            "@arc.node:Mini.local": "@arc.node:mini-local",
            "@arc.node:mini.LOCAL": "@arc.node:mini-local",
            '@arc.node:"a.b"': "@arc.node:a-b",
        },
    )


@pytest.mark.rows("R1.2-54")
def test_a_reserved_definition_still_parses(parse: Parse) -> None:
    words = ("root", "operator", "broadcast", "codex", "claude", "node", "workspace")
    read_as(parse, {f"@{word}": f"@{word}" for word in words})


@pytest.mark.rows("R1.3-45", "R1.3-46")
def test_what_is_printed_is_read_as_the_same(parse: Parse) -> None:
    for text in (
        "@ARC.Main",
        "@arc#codex?5.5",
        '@arc.node:"a.b".persona:Dev',
        "@Héllo",
        "@arc.model:gpt-4.1",
    ):
        first = parse(text)
        again = parse(first["canonical"])
        assert (again["canonical"], again["dimensions"]) == (first["canonical"], first["dimensions"])


@pytest.mark.rows("R1.4-2", "R1.4-18", "R1.4-22", "R1.4-23", "R1.4-24", "R1.4-25")
def test_a_path_says_its_kind_its_user_and_its_parent(parse: Parse) -> None:
    fields = ("kind", "userId", "parent", "connector")
    cases = {
        "/u1/telegram": ("connector", "u1", None, "telegram"),
        "/u1/whatsapp": ("connector", "u1", None, "whatsapp"),
        "/u1/direct": ("connector", "u1", None, "direct"),
        "/Ab/Irc": ("connector", "Ab", None, "Irc"),
        "/u1/agent/x": ("agent", "u1", None, None),
        "/u1/agent/X/sub/2": ("sub", "u1", "/u1/agent/X", None),
        "/u1/telegram/memory": ("memory", "u1", "/u1/telegram", None),
        "/system/gc/search/0": ("search", None, "/system/gc", None),
        "/system/gc": ("system", None, None, None),
    }
    for text, expected in cases.items():
        answer = parse(text)
        assert (answer["canonical"], *(answer[name] for name in fields)) == (text, *expected)


@pytest.mark.rows("R1.4-12", "R1.4-13", "R1.4-14", "R1.4-15", "R1.4-16", "R1.4-21")
def test_a_breach_of_the_path_grammar_is_malformed(parse: Parse) -> None:
    read_as(parse, {"/u1/agent/aZ0._~-": "/u1/agent/aZ0._~-", "/u1/x/sub/10": "/u1/x/sub/10"})
    for text in (
        *("/u1/a b", "/u1/a%b", "/u1/ä", "/u1/a@b"),
        *("/u1/./x", "/u1/../x", "/u1/agent/.", "/u1/agent/.."),
        *("/u1//x", "//telegram", "/u1/telegram/", "/"),
        *("/u1/telegram/sub/01", "/u1/telegram/sub/-1", "/u1/telegram/sub/a", "/u1/telegram/sub"),
        *("/u1/memory", "/u1/sub/0", "/u1/telegram/sub/0/foo", "/u1/agent/x/y"),
    ):
        parse_refused(parse, text)


@pytest.mark.rows("R1.4-17")
@pytest.mark.parametrize("word", RESERVED)
def test_a_path_word_is_no_name(parse: Parse, word: str) -> None:
    for text in (
        f"/u1/agent/{word}",
        f"/u1/cron/{word}",
        f"/u1/task/{word}",
        f"/system/{word}",
        f"/u1/{word}",
    ):
        parse_refused(parse, text)
    if word != "system":  # which begins the paths of the machine
        parse_refused(parse, f"/{word}/telegram")


@pytest.mark.rows("R1.4-19", "R1.4-20")
def test_paths_have_limits(parse: Parse) -> None:
    longest = "/u1/agent/" + "x" * 1014
    read_as(parse, {longest: longest})
    assert "1024 bytes" in parse_refused(parse, longest + "x")["expected"]
    deepest = "/u1/telegram" + "/sub/0" * 16
    read_as(parse, {deepest: deepest})
    assert "16 suffixes" in parse_refused(parse, deepest + "/sub/0")["expected"]


@pytest.mark.rows("R1.6-2", "R1.6-3", "R1.6-4", "R1.6-5", "R1.6-6", "R1.6-7", "R1.6-8")
def test_a_prefix_says_the_form(parse: Parse) -> None:
    forms = {
        **{f"{prefix}_01": "id" for prefix in ("agt", "ept", "ses", "flt", "ask", "wrk", "cnv")},
        "session:ses_01": "session",
        "session:claude:abc": "session",
        "project:../x": "project",
        "channel:dev": "channel",
        "alias:a": "alias",
        "branch:main.x": "branch",
        "/u1/direct": "path",
    }
    assert {text: parse(text).get("form") for text in forms} == forms


@pytest.mark.rows("R1.6-9", "R1.6-10", "R1.6-11")
def test_the_caller_and_its_parent(parse: Parse) -> None:
    cases = {
        ".": ("self", None),
        "self": ("self", None),
        "..": ("parent", None),
        "parent": ("parent", None),
        "./sub/0": ("self", "/sub/0"),
        "../sub/1": ("parent", "/sub/1"),
    }
    found = {text: parse(text) for text in cases}
    assert {text: (one["base"], one["suffix"]) for text, one in found.items()} == cases
    assert list_offered(parse, "../name") == ["project:../name"]


@pytest.mark.rows("R1.6-14")
def test_a_sign_of_a_handle_makes_it_one(parse: Parse) -> None:
    for text in ("@arc", ">>arc", ">> arc", "arc.node:mini", "arc#codex", "arc?sonnet"):
        assert parse(text).get("form") == "handle", text


# -- mentions -----------------------------------------------------------------------------------

MENTIONS: dict[str, tuple[str | None, list[str]]] = {
    "@hudson review this": ("@hudson", []),
    "  @hudson review this": ("@hudson", []),
    "please ask @hudson and @arc.main, thanks": (None, ["@hudson", "@arc.main"]),
    "@bow see @arc": ("@bow", ["@arc"]),
    "(@arc.main) hi": (None, ["@arc.main"]),
    '"@arc" hi': (None, ["@arc"]),
    "ask @arc.main.profile:dev#codex?5.5": (None, ["@arc.main.profile:dev.harness:codex.model:5-5"]),
    "it is @arc's turn, @bow! or @cat.": (None, ["@arc", "@bow", "@cat"]),
    "mail a@b.com": (None, []),
    "run `@hudson` in code": (None, []),
    "```\n@hudson\n```": (None, []),
}


@pytest.mark.rows("R1.3-47", "R1.3-48", "R1.3-49", "R1.3-50", "R1.3-51", "R1.3-52", "R1.3-53")
@pytest.mark.rows("R1.2-2")
def test_mentions_in_a_body() -> None:
    command = [sys.executable, "-m", "scout", "parse", "--json", "--mentions", "-"]
    texts = "".join(json.dumps(text) + "\n" for text in MENTIONS)
    done = subprocess.run(command, input=texts, capture_output=True, text=True, timeout=60, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert {one["input"]: (one["leading"], one["soft"]) for one in answers} == MENTIONS
