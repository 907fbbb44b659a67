"""Paths: the strict grammar and everything that is read off it."""

import pytest

from scout.base.codec import decode, encode
from scout.identity.path import MAX_BYTES, MAX_SUFFIXES, PATH_WORDS, AgentPath, Kind, ModelRole, is_segment
from tests.identity.refusals import NO_READING, describe, expect_malformed

ROOTS = [
    ("/u1/telegram", Kind.CONNECTOR, ModelRole.USER, "u1", "telegram", "telegram"),
    ("/u1/whatsapp", Kind.CONNECTOR, ModelRole.USER, "u1", "whatsapp", "whatsapp"),
    ("/u1/direct", Kind.CONNECTOR, ModelRole.USER, "u1", "direct", "direct"),
    ("/u1/My-Thing_2~x", Kind.CONNECTOR, ModelRole.USER, "u1", "My-Thing_2~x", "My-Thing_2~x"),
    ("/u1/agents", Kind.CONNECTOR, ModelRole.USER, "u1", "agents", "agents"),
    ("/u1/Agent", Kind.CONNECTOR, ModelRole.USER, "u1", "Agent", "Agent"),
    ("/u1/agent/arc.main.dev", Kind.AGENT, ModelRole.USER, "u1", None, "arc.main.dev"),
    ("/u1/agent/claude", Kind.AGENT, ModelRole.USER, "u1", None, "claude"),
    ("/u1/cron/daily-sync", Kind.CRON, None, "u1", None, "cron daily-sync"),
    ("/u1/task/xyz789", Kind.TASK, ModelRole.TASK, "u1", None, "task xyz789"),
    ("/u1/subuser/s4", Kind.SUBUSER, ModelRole.USER, "u1", None, "s4"),
    ("/system/gc", Kind.SYSTEM, None, None, None, "gc"),
]


@pytest.mark.rows(
    "R1.4-1", "R1.4-2", "R1.4-3", "R1.4-4", "R1.4-5", "R1.4-6", "R1.4-7", "R1.4-23", "R1.4-24", "R1.4-25"
)
@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root[0])
def test_root_paths(root: tuple[str, Kind, ModelRole | None, str | None, str | None, str]) -> None:
    text, kind, role, user, connector, label = root
    path = AgentPath.parse(text)
    assert path == text
    assert (path.kind, path.model_role, path.parent) == (kind, role, None)
    assert (path.user, path.connector, path.label()) == (user, connector, label)


@pytest.mark.rows("R1.4-8", "R1.4-9", "R1.4-10", "R1.4-22", "R1.4-23", "R1.4-24", "R1.4-25")
@pytest.mark.parametrize("root", [case[0] for case in ROOTS])
def test_suffixes_decide_before_the_root(root: str) -> None:
    parent = AgentPath.parse(root)
    for path, kind, role, label in (
        (parent.sub(0), Kind.SUB, ModelRole.SUBAGENT, "subagent 0"),
        (parent.search(12), Kind.SEARCH, ModelRole.MEMORY_SEARCH, "search 12"),
        (parent.memory(), Kind.MEMORY, ModelRole.MEMORY, f"memory of {root}"),
    ):
        assert (path.kind, path.model_role, path.parent, path.label()) == (kind, role, parent, label)
        assert (path.user, path.connector) == (parent.user, None)
        assert isinstance(path.parent, AgentPath)


@pytest.mark.rows("R1.4-22", "R1.4-23")
def test_suffixes_stack() -> None:
    path = AgentPath.parse("/u1/agent/claude/sub/1/search/20/memory")
    assert path.kind is Kind.MEMORY
    lineage: list[str] = []
    above = path.parent
    while above is not None:
        lineage.append(f"{above.kind} {above}")
        above = above.parent
    assert lineage == [
        "search /u1/agent/claude/sub/1/search/20",
        "sub /u1/agent/claude/sub/1",
        "agent /u1/agent/claude",
    ]
    assert path.segments == ("u1", "agent", "claude", "sub", "1", "search", "20", "memory")


@pytest.mark.rows("R1.1-9", "R1.1-21")
def test_the_kinds_and_the_model_roles() -> None:
    assert [str(kind) for kind in Kind] == [
        "connector",
        "agent",
        "cron",
        "task",
        "subuser",
        "system",
        "sub",
        "memory",
        "search",
    ]
    assert [str(role) for role in ModelRole] == ["user", "subagent", "memory", "memorySearch", "task"]


@pytest.mark.rows("R1.4-26")
@pytest.mark.parametrize("text", ["/u1/telegram", "/u1/cron/c", "/u1/telegram/memory", "/system/gc"])
def test_a_configured_name_is_the_label(text: str) -> None:
    path = AgentPath.parse(text)
    assert path.label("Bob") == "Bob"
    assert path.label("Bob", "bobby") == "Bob (@bobby)"
    assert path.label("Bob", "") == "Bob"
    assert path.label(name=None, username="bobby") == path.label() == path.label("")


@pytest.mark.rows("R1.4-18")
def test_case_is_kept() -> None:
    path = AgentPath.parse("/U1/agent/ARC.Main")
    assert str(path) == "/U1/agent/ARC.Main"
    assert path.user == "U1"
    assert path != AgentPath.parse("/u1/agent/arc.main")


def test_root_makes_a_path_from_its_parts() -> None:
    assert AgentPath.root("u1", "agent", "arc") == "/u1/agent/arc"
    assert AgentPath.root("system", "gc").kind is Kind.SYSTEM
    assert describe(expect_malformed(AgentPath.root, "u 1", "agent", "arc"))[:2] == (2, "the character ' '")
    assert expect_malformed(AgentPath.root, "u1").position == 3


def test_a_path_contains_itself_and_what_is_below() -> None:
    path = AgentPath.parse("/u1/telegram")
    assert path.contains(path)
    assert path.contains(path.sub(0).memory())
    assert not path.contains(AgentPath.parse("/u1/telegram2"))
    assert not path.sub(0).contains(path)


def test_a_path_travels_as_text() -> None:
    path = AgentPath.parse("/u1/telegram")
    assert encode(path) == b'"/u1/telegram"'
    assert decode(b'"/u1/telegram"', AgentPath) == path
    assert expect_malformed(decode, b'"/u1"', AgentPath).position == 3


def expect(text: str, position: int, problem: str, expected: str, *readings: str) -> None:
    found = expect_malformed(AgentPath.parse, text)
    assert describe(found) == (position, problem, expected, readings or NO_READING)


@pytest.mark.rows("R1.4-11", "R1.4-21")
@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("", []),
        ("u1/telegram", ["/u1/telegram"]),
        ("telegram", []),
        (" /u1/telegram", []),
        ("\\u1\\telegram", []),
        ("u1/" + "a" * 1100, []),
    ],
)
def test_a_path_begins_with_a_slash(text: str, readings: list[str]) -> None:
    expect(text, 0, "no '/'", "a path such as /user/agent/name", *readings)


@pytest.mark.rows("R1.4-12", "R1.4-21")
@pytest.mark.parametrize(
    ("text", "position", "letter", "readings"),
    [
        ("/u1/tele gram", 8, "' '", ["/u1/tele-gram"]),
        ("/u 1/telegram", 2, "' '", ["/u-1/telegram"]),
        ("/u1/agent/é", 10, "'é'", ["/u1/agent/-"]),
        ("/u1/a@b:c", 5, "'@'", ["/u1/a-b-c"]),
        ("/u1/a%2Fb", 5, "'%'", ["/u1/a-2Fb"]),
        ("/u1/a\x00", 5, "'\\x00'", ["/u1/a-"]),
        ("/u1/\ud800", 4, "'\\ud800'", ["/u1/-"]),
        ("/u1/telegram\n", 12, "'\\n'", ["/u1/telegram-"]),
        ("/u1/telegram/sub/\u0663", 17, "'\u0663'", []),
        ("/u1/x+y/z", 5, "'+'", []),
        ("/u1/telegram?x", 12, "'?'", ["/u1/telegram-x"]),
    ],
)
def test_a_segment_takes_few_characters(text: str, position: int, letter: str, readings: list[str]) -> None:
    expect(text, position, f"the character {letter}", "letters, digits and . _ ~ -", *readings)


@pytest.mark.rows("R1.4-13", "R1.4-21")
@pytest.mark.parametrize(
    ("text", "position", "segment", "readings"),
    [
        ("/./telegram", 1, ".", []),
        ("/u1/./telegram", 4, ".", ["/u1/telegram"]),
        ("/u1/agent/..", 10, "..", []),
        ("/u1/../telegram/..", 4, "..", ["/u1/telegram"]),
    ],
)
def test_dot_segments(text: str, position: int, segment: str, readings: list[str]) -> None:
    expect(text, position, f"the segment '{segment}'", "a name between the slashes", *readings)


@pytest.mark.parametrize("text", ["/u1/...", "/u1/.x", "/u1/agent/..x", "/.../x", "/u1/-", "/~/_"])
def test_other_dots_are_names(text: str) -> None:
    assert AgentPath.parse(text) == text


@pytest.mark.rows("R1.4-14", "R1.4-21")
@pytest.mark.parametrize(
    ("text", "position", "readings"),
    [
        ("/", 1, []),
        ("//", 1, []),
        ("//telegram", 1, []),
        ("/u1/", 4, []),
        ("/u1/telegram/", 13, ["/u1/telegram"]),
        ("/u1//telegram", 4, ["/u1/telegram"]),
        ("/u1/telegram//sub/0", 13, ["/u1/telegram/sub/0"]),
        ("//u1/x y", 1, []),
    ],
)
def test_empty_segments(text: str, position: int, readings: list[str]) -> None:
    expect(text, position, "an empty segment", "a name between the slashes", *readings)


@pytest.mark.rows("R1.4-15", "R1.4-21")
@pytest.mark.parametrize(
    ("text", "position", "number", "readings"),
    [
        ("/u1/telegram/sub/01", 17, "01", ["/u1/telegram/sub/1"]),
        ("/u1/telegram/search/00", 20, "00", ["/u1/telegram/search/0"]),
        ("/u1/telegram/sub/007/memory", 17, "007", ["/u1/telegram/sub/7/memory"]),
        ("/u1/telegram/sub/01/sub/02", 17, "01", ["/u1/telegram/sub/1/sub/2"]),
        ("/u1/agent/007/sub/01", 18, "01", ["/u1/agent/007/sub/1"]),
        ("/u1/telegram/sub/-1", 17, "-1", []),
        ("/u1/telegram/sub/1.0", 17, "1.0", []),
        ("/u1/telegram/sub/0x1", 17, "0x1", []),
        ("/u1/telegram/sub/00x", 17, "00x", []),
        ("/u1/telegram/sub/memory", 17, "memory", []),
        ("/u1/telegram/search/1e3", 20, "1e3", []),
    ],
)
def test_an_index_is_a_plain_decimal(text: str, position: int, number: str, readings: list[str]) -> None:
    expect(text, position, f"the index '{number}'", "a decimal number without leading zeros", *readings)


@pytest.mark.parametrize("index", ["0", "1", "9", "10", "19", "1000000"])
def test_good_indexes(index: str) -> None:
    assert AgentPath.parse(f"/u1/telegram/sub/{index}").label() == f"subagent {index}"


@pytest.mark.rows("R1.4-16", "R1.4-21")
@pytest.mark.parametrize(
    ("text", "position", "problem", "expected"),
    [
        ("/u1", 3, "the end", "a connector, or agent/NAME, after the user"),
        ("/system", 7, "the end", "a connector, or agent/NAME, after the user"),
        ("/u1/agent", 9, "the end", "a name after 'agent'"),
        ("/u1/cron", 8, "the end", "a name after 'cron'"),
        ("/u1/task", 8, "the end", "a name after 'task'"),
        ("/u1/subuser", 11, "the end", "a name after 'subuser'"),
        ("/u1/telegram/sub", 16, "the end", "an index after 'sub'"),
        ("/u1/telegram/sub/0/search", 25, "the end", "an index after 'search'"),
        ("/u1/telegram/sub/0/foo", 19, "the segment 'foo'", "sub/N, search/N, memory, or the end"),
        ("/u1/agent/x/y", 12, "the segment 'y'", "sub/N, search/N, memory, or the end"),
        ("/u1/telegram/agent/x", 13, "the segment 'agent'", "sub/N, search/N, memory, or the end"),
        ("/system/gc/x", 11, "the segment 'x'", "sub/N, search/N, memory, or the end"),
        ("/u1/telegram/memory/0", 20, "the segment '0'", "sub/N, search/N, memory, or the end"),
        ("/u1/telegram/Memory", 13, "the segment 'Memory'", "sub/N, search/N, memory, or the end"),
    ],
)
def test_a_suffix_only_after_an_agent(text: str, position: int, problem: str, expected: str) -> None:
    expect(text, position, problem, expected)


@pytest.mark.rows("R1.4-17", "R1.4-21")
@pytest.mark.parametrize("word", sorted(PATH_WORDS))
def test_path_words_are_no_names(word: str) -> None:
    problem, expected = f"the reserved word '{word}'", "a name that is not a path word"
    expect(f"/u1/agent/{word}", 10, problem, expected)
    expect(f"/u1/cron/{word}", 9, problem, expected)
    expect(f"/u1/task/{word}", 9, problem, expected)
    expect(f"/u1/subuser/{word}", 12, problem, expected)
    expect(f"/system/{word}", 8, problem, expected)
    if word != "system":
        expect(f"/{word}/telegram", 1, problem, expected)
    if word not in ("agent", "cron", "task", "subuser"):
        expect(f"/u1/{word}", 4, problem, expected)
    assert not is_segment(word)
    assert is_segment(f"{word}s")
    assert is_segment(word.title())


@pytest.mark.rows("R1.4-17")
def test_the_path_words() -> None:
    assert {"agent", "cron", "task", "subuser", "system", "sub", "memory", "search", "app"} == PATH_WORDS
    for text in ("", ".", "..", "a b", "a/b", "é", "a\n"):
        assert not is_segment(text)
    for text in ("...", ".a", "A.b_c~d-9"):
        assert is_segment(text)


@pytest.mark.rows("R1.4-19", "R1.4-21")
def test_a_path_has_at_most_1024_bytes() -> None:
    assert MAX_BYTES == 1024
    longest = "/u1/" + "a" * 1020
    assert AgentPath.parse(longest) == longest
    expect(longest + "a", 1024, "too much text", "at most 1024 bytes")
    expect("/u1/" + "é" * 600, 4, "the character 'é'", "letters, digits and . _ ~ -", "/u1/-")


@pytest.mark.rows("R1.4-20", "R1.4-21")
def test_a_path_has_at_most_16_suffixes() -> None:
    assert MAX_SUFFIXES == 16
    path = AgentPath.parse("/u1/telegram")
    for index in range(8):
        path = path.sub(index).memory()
    assert expect_malformed(path.memory).position == len(path) + 1
    expect(f"{path}/sub/0", len(path) + 1, "too many suffixes", "at most 16 suffixes")
    expect(f"{path}/foo", len(path) + 1, "too many suffixes", "at most 16 suffixes")


@pytest.mark.parametrize("index", [-1, -10])
def test_no_negative_index(index: int) -> None:
    path = AgentPath.parse("/u1/telegram")
    assert expect_malformed(path.sub, index).problem == f"the index '{index}'"
    assert expect_malformed(path.search, index).problem == f"the index '{index}'"


def test_the_remedies_say_why() -> None:
    for text, why in (
        ("u1/x", "as a path"),
        ("/u1//x", "without it"),
        ("/u1/x y", "with '-' in its place"),
        ("/u1/x/sub/01", "without leading zeros"),
    ):
        assert [remedy.why for remedy in expect_malformed(AgentPath.parse, text).remedies] == [why]


@pytest.mark.parametrize("value", [None, 5, b"\xff", ["/u1/x"]])
def test_what_is_no_text_is_refused(value: object) -> None:
    assert expect_malformed(AgentPath.parse, value).expected in ("text", "UTF-8 text")
    assert AgentPath.parse(b"/u1/x") == "/u1/x"
