"""One lexer: each row of the table of forms, in order of precedence."""

import pytest

from scout.identity.branch import BirthBranch
from scout.identity.grammar import parse_handle
from scout.identity.lexer import lex, read_bare_branch
from scout.identity.name import (
    AliasName,
    BranchName,
    ChannelName,
    HandleName,
    IdName,
    Name,
    OperatorName,
    PathName,
    ProjectName,
    RelativeName,
    RootName,
    SessionName,
)
from scout.identity.path import AgentPath
from tests.identity.refusals import NO_READING, describe, expect_malformed


def expect(text: object, position: int, problem: str, expected: str, *readings: str) -> None:
    found = expect_malformed(lex, text)
    assert describe(found) == (position, problem, expected, readings or NO_READING)
    if isinstance(text, str):
        assert found.text == text[:200]


def handle(text: str, bare: bool) -> HandleName:
    return HandleName(address=parse_handle(text), text=text, bare=bare)


# ------------------------------------------------------------------------------------- row 1: ids


@pytest.mark.rows("R1.6-2")
@pytest.mark.parametrize("kind", ["agt", "ept", "ses", "flt", "ask", "wrk", "cnv"])
def test_ids(kind: str) -> None:
    for suffix in ("0", "01h455vb4pex5vsknk084sn02q", "me", "z" * 64):
        assert lex(f"{kind}_{suffix}") == IdName(kind=kind, id=f"{kind}_{suffix}")
        assert lex(f"{kind}_{suffix}", "main").canonical == f"{kind}_{suffix}"


@pytest.mark.rows("R1.6-1")
@pytest.mark.parametrize("suffix", ["A", "a-b", "a.b", "z" * 65, "a_b", "é", "a#codex", "a:b"])
def test_an_id_has_only_small_letters_and_digits(suffix: str) -> None:
    found = expect_malformed(lex, f"agt_{suffix}")
    assert describe(found)[:3] == (4, "no id", "a-z and 0-9 after 'agt_'")
    assert found.remedies[0].why in ("as a handle", "the forms of an address")


def test_a_bad_id_may_have_been_a_handle() -> None:
    expect("ask_Bob", 4, "no id", "a-z and 0-9 after 'ask_'", "@ask_Bob")
    expect("cnv_", 4, "no id", "a-z and 0-9 after 'cnv_'", "@cnv_")
    expect("agt_x:y", 4, "no id", "a-z and 0-9 after 'agt_'")


@pytest.mark.parametrize("text", ["AGT_01", "xyz_1", "agt", "agt-1", "my_agt_1"])
def test_other_prefixes_are_handles(text: str) -> None:
    assert lex(text) == handle(text, bare=True)


# -------------------------------------------------------------------------- row 1: explicit kinds


@pytest.mark.rows("R1.6-3")
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("session:ses_01", SessionName(id="ses_01")),
        ("SESSION:ses_01", SessionName(id="ses_01")),
        ("session:Claude:ab-C:d/e", SessionName(harness="claude", native_id="ab-C:d/e")),
        ("Session:codex:01", SessionName(harness="codex", native_id="01")),
        ("session:ses_A:x", SessionName(harness="ses-a", native_id="x")),
    ],
)
def test_sessions(text: str, name: Name) -> None:
    assert lex(text) == name


@pytest.mark.parametrize(
    "value",
    ["", "abc", "ses_", "ses_A", "ses_" + "a" * 65, "claude:", ":x", "日本:x", "agt_01", "xses_01"],
)
def test_bad_sessions(value: str) -> None:
    expect(f"session:{value}", 8, "no session", "ses_… or HARNESS:NATIVE-ID")


def test_a_session_is_typed_without_spaces() -> None:
    expect("session:a b:c", 9, "a space", "a name without spaces")
    expect("session:a:\x00", 10, "the invisible character U+0000", "visible characters")


@pytest.mark.rows("R1.6-4")
@pytest.mark.parametrize("directory", [".", "..", "../x", "/a b/ü.c", "~", "C:\\x", " x", "@arc", "x" * 3000])
def test_projects(directory: str) -> None:
    assert lex(f"project:{directory}") == ProjectName(directory=directory)
    assert lex(f"PROJECT:{directory}") == ProjectName(directory=directory)


def test_bad_projects() -> None:
    expect("project:", 8, "nothing", "a directory", "project:.")
    expect("project:  ", 8, "nothing", "a directory", "project:.")
    assert expect_malformed(lex, "project:").remedies[0].why == "this directory"
    for text, position in (("project:\x00", 8), ("project:a\nb", 9), ("project:ab\u202e", 10)):
        expect(text, position, "a control character", "a directory")


@pytest.mark.rows("R1.6-5", "R1.6-6")
@pytest.mark.parametrize(("kind", "make"), [("channel", ChannelName), ("alias", AliasName)])
def test_channels_and_aliases(kind: str, make: type[ChannelName | AliasName]) -> None:
    for value, name in (
        ("dev", "dev"),
        ("Dev.Ops", "dev-ops"),
        ("#general", "general"),
        ("@bob", "bob"),
        ("root", "root"),
        ("é", "e"),
    ):
        assert lex(f"{kind}:{value}") == make(name=name)
        assert lex(f"{kind.upper()}:{value}").canonical == f"{kind}:{name}"
    at = len(kind) + 1
    expect(f"{kind}:My Chat", at + 2, "a space", "a name without spaces", f"{kind}:my-chat")
    expect(f"{kind}:a@b", at, "no name in 'a@b'", "a letter or a digit", f"{kind}:a-b")
    expect(f"{kind}:", at, "no name in ''", "a letter or a digit")
    expect(f"{kind}:@", at, "no name in '@'", "a letter or a digit")
    expect(f"{kind}:" + "日" * 61, at, f"no name in '{'日' * 60}'", "a letter or a digit")
    expect(f"{kind}:" + "a" * 1024, 1024, "too much text", "at most 1024 characters")
    assert expect_malformed(lex, f"{kind}:a b").remedies[0].why == "the folded name"


@pytest.mark.rows("R1.6-7")
def test_branches_by_name() -> None:
    assert lex("branch:main") == BranchName(text="main")
    assert lex("BRANCH:feature/x.y") == BranchName(text="feature/x.y")
    born = BirthBranch.parse("main.x", "main")
    assert lex("branch:main.x", "main") == BranchName(text="main.x", branch=born)
    expect("branch:", 7, "nothing", "a branch name that git accepts")
    expect("branch:a..b", 8, "'..'", "a branch name that git accepts")
    expect("branch:a b", 8, "a space", "a name without spaces", "branch:a-b")
    found = expect_malformed(lex, "branch:arc.x", "main")
    assert describe(found) == (7, "a branch outside 'main'", "main or main.SLUG", ("@arc.x",))
    assert found.text == "branch:arc.x"


def test_a_prefix_is_not_read_in_other_alphabets() -> None:
    expect(
        "ſession:x",  # a long s would match in any case
        0,
        "no definition",
        "the name of an agent before its qualifiers",
        "@ſession.x",
        "@x",
    )
    assert lex("sessions.x") == handle("sessions.x", bare=True)
    assert expect_malformed(lex, "xsession:ses_1").problem == "no definition"


# ------------------------------------------------------------------------------------ row 2: paths


@pytest.mark.rows("R1.6-8")
@pytest.mark.parametrize("text", ["/u1/telegram", "/u1/agent/arc.main/sub/0", "/system/gc"])
def test_paths(text: str) -> None:
    assert lex(text) == PathName(path=AgentPath.parse(text))
    assert lex(text, "main") == lex(text)


@pytest.mark.rows("R1.4-34")
@pytest.mark.parametrize(
    ("text", "position", "readings"),
    [
        ("/srv/me/dir", 8, ["project:/srv/me/dir"]),
        ("/tmp", 4, ["project:/tmp"]),
        ("/", 1, ["project:/"]),
        ("/u1/agent/My Agent", 12, ["/u1/agent/My-Agent", "project:/u1/agent/My Agent"]),
        ("/u1/telegram/", 13, ["/u1/telegram", "project:/u1/telegram/"]),
        ("//telegram", 1, ["project://telegram"]),
        ("/u1/é", 4, ["/u1/-", "project:/u1/é"]),
        ("/u1/a#b", 5, ["/u1/a-b", "project:/u1/a#b"]),
        ("/u1/x/y\x00", 7, []),
        ("/" + "a" * 1023, 1024, ["project:/" + "a" * 1023]),
        ("/" + "a" * 1024, 1024, []),
    ],
)
def test_a_bad_path_may_be_a_directory(text: str, position: int, readings: list[str]) -> None:
    found = expect_malformed(lex, text)
    assert describe(found)[0] == position
    assert describe(found)[3] == (tuple(readings) or NO_READING)
    assert found.remedies[-1].why == ("if it is a directory" if readings else "the forms of an address")


# --------------------------------------------------------------------------------- row 3: relative


@pytest.mark.rows("R1.6-9", "R1.6-10")
@pytest.mark.parametrize(
    ("text", "up", "suffix"),
    [
        (".", False, ""),
        ("..", True, ""),
        ("self", False, ""),
        ("parent", True, ""),
        ("./sub/0", False, "/sub/0"),
        ("../sub/1", True, "/sub/1"),
        ("./memory", False, "/memory"),
        ("../search/10/memory", True, "/search/10/memory"),
        ("./sub/0/sub/1", False, "/sub/0/sub/1"),
        ("." + "/memory" * 16, False, "/memory" * 16),
    ],
)
def test_relative_to_the_caller(text: str, up: bool, suffix: str) -> None:
    assert lex(text) == RelativeName(text=text, up=up, suffix=suffix)
    assert lex(text, "main") == lex(text)


@pytest.mark.rows("R1.6-9")
def test_self_and_parent_in_any_case() -> None:
    assert lex("SELF") == RelativeName(text="self")
    assert lex("Parent") == RelativeName(text="parent", up=True)


@pytest.mark.rows("R1.6-11")
@pytest.mark.parametrize(
    "text",
    [
        "../name",
        "./x",
        "./",
        "../..",
        "../../sub/0",
        "./sub",
        "./sub/00",
        "./sub/-1",
        "./sub/x",
        "./sub/0/",
        "./SUB/0",
        ".//sub/0",
        "./memory/1",
        "../my dir",
        "./sub/\u0663",
        "." + "/memory" * 17,
        "~",
        "~/x",
        "./" + "a" * 1022,
    ],
)
def test_another_directory_is_no_relative_name(text: str) -> None:
    expected = "., .., ./sub/N, ../sub/N or project:DIR"
    expect(text, 0, "a relative directory", expected, f"project:{text}")
    assert expect_malformed(lex, text).remedies[0].why == "if it is a directory"


def test_a_directory_that_cannot_be_a_project() -> None:
    expected = "., .., ./sub/N, ../sub/N or project:DIR"
    expect("./a\x00", 0, "a relative directory", expected)
    expect("./" + "a" * 1023, 0, "a relative directory", expected)


# --------------------------------------------------------------------------- row 4: root, operator


@pytest.mark.parametrize("root_branch", [None, "main", "root", "operator"])
def test_root_and_operator(root_branch: str | None) -> None:
    for text in ("root", "ROOT", "Root"):
        assert lex(text, root_branch) == RootName()
    for text in ("operator", "OPERATOR"):
        assert lex(text, root_branch) == OperatorName()


# ---------------------------------------------------------------------------------- row 5: handles


@pytest.mark.rows("R1.6-1", "R1.6-14")
@pytest.mark.parametrize("root_branch", [None, "main"])
@pytest.mark.parametrize(
    "text",
    [
        "@arc",
        "@main",
        "@main.x",
        "@root",
        "@self",
        "@agt_01",
        "@operator.x",
        "arc.host:x",
        "main.host:x",
        "main#codex",
        "main.x#codex",
        "main?5.5",
        'main."x.y"',
    ],
)
def test_handles(text: str, root_branch: str | None) -> None:
    assert lex(text, root_branch) == handle(text, bare=False)


@pytest.mark.rows("R1.6-14")
@pytest.mark.parametrize("gap", ["", " ", "\t", "   "])
def test_after_the_route_operator_a_word_is_a_handle(gap: str) -> None:
    for text in ("arc", "main", "main.x", "@arc#codex"):
        assert lex(f">>{gap}{text}", "main") == handle(text, bare=False)


@pytest.mark.rows("R1.6-1")
@pytest.mark.parametrize(
    "text",
    ["root", "operator", "self", "..", "./sub/0", "/u1/x", "agt_1", "session:ses_1", "project:.", "alias:x"],
)
def test_earlier_rows_win_after_the_route_operator(text: str) -> None:
    assert lex(f">> {text}") == lex(text)


def test_a_branch_by_name_after_the_route_operator_is_checked_too() -> None:
    assert lex(">> branch:main.x", "main") == lex("branch:main.x", "main")
    assert describe(expect_malformed(lex, ">> branch:arc", "main"))[:2] == (10, "a branch outside 'main'")


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        (">>", 2, "nothing"),
        (">>  ", 4, "nothing"),
        (">>>arc", 2, "'>'"),
        (">> >> arc", 3, "'>'"),
        ('>> {"definitionId": "arc"}', 3, "'{'"),
    ],
)
def test_no_target_after_the_route_operator(text: str, position: int, problem: str) -> None:
    expect(text, position, problem, "a target after '>>'")


def test_a_bad_target_is_told_at_its_place() -> None:
    expect(">> @x..y", 6, "an empty workspace", "the name of a workspace", "@x.y")
    expect(">>a b", 3, "a space", "a name without spaces", "@a-b")
    expect(">>  /u1", 7, "the end", "a connector, or agent/NAME, after the user", "project:/u1")


def test_bad_handles_are_told_as_the_grammar_tells_them() -> None:
    for text in ("@x..main", "arc.a.b", "@arc@mini", "node:mini", "@日本", "", "a b", "#codex"):
        assert describe(expect_malformed(lex, text)) == describe(expect_malformed(parse_handle, text))


# -------------------------------------------------------------------- rows 6 and 7: bare texts


@pytest.mark.rows("R1.6-20")
def test_bare_dotted_text_is_a_branch_only_with_a_root_branch() -> None:
    assert lex("main.x") == handle("main.x", bare=True)
    born = BirthBranch.parse("main.x", "main")
    assert lex("main.x", "main") == BranchName(text="main.x", branch=born)
    assert lex("main.x", "main").canonical == "main.x"
    deep = lex("feature/x.auth.db", "feature/x")
    assert isinstance(deep, BranchName)
    assert deep.branch is not None
    assert deep.branch.depth == 2


@pytest.mark.rows("R1.6-20")
@pytest.mark.parametrize(
    ("text", "position", "problem", "expected", "readings"),
    [
        ("arc.main", 0, "a branch outside 'main'", "main or main.SLUG", ["@arc.main"]),
        ("a.b.c", 0, "a branch outside 'main'", "main or main.SLUG", ["@a.b-c"]),
        ("a@b.c", 0, "a branch outside 'main'", "main or main.SLUG", ["@a-b.c"]),
        ("main.", 4, "'.'", "a branch name that git accepts", []),
        ("main..x", 4, "'..'", "a branch name that git accepts", []),
        (".x", 0, "'.'", "a branch name that git accepts", []),
    ],
)
def test_bare_dotted_text_outside_the_tree(
    text: str, position: int, problem: str, expected: str, readings: list[str]
) -> None:
    found = expect_malformed(lex, text, "main")
    assert describe(found) == (position, problem, expected, tuple(readings) or NO_READING)


@pytest.mark.rows("R1.6-1")
def test_a_bare_word() -> None:
    assert lex("main") == handle("main", bare=True)
    assert lex("main", "main") == BranchName(text="main", branch=BirthBranch.parse("main", "main"))
    assert lex("feature/x", "feature/x").canonical == "feature/x"
    assert lex("release-1.2", "release-1.2").canonical == "release-1.2"
    assert lex("arc", "main") == handle("arc", bare=True)
    assert lex("feature/x", "main") == handle("feature/x", bare=True)
    assert lex(b"arc") == handle("arc", bare=True)


def test_a_bad_root_branch_is_told() -> None:
    assert expect_malformed(lex, "a.b", "x y").problem == "' '"
    assert expect_malformed(lex, "a.b", "").problem == "nothing"


# ------------------------------------------------------------------------------- structured input


@pytest.mark.rows("R1.2-15")
@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('{"definitionId": "Super Refactor"}', "@super-refactor"),
        ('{"definitionId": "arc", "node": "Mini.local", "model": "5.5"}', "@arc.model:5-5.node:mini-local"),
        ('{"definitionId":"arc"}\n', "@arc"),
        ('{"definitionId": "\\ud800x"}', "@x"),
        ('{"definitionId": "main.x"}', "@main-x"),
    ],
)
def test_a_json_object_is_a_handle(text: str, canonical: str) -> None:
    assert lex(text, "main") == HandleName(address=parse_handle(canonical), text=canonical, bare=False)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{arc}",
        '{"definitionId": "a"} x',
        "{'definitionId': 'a'}",
        '{"a":' * 100_000,
        '{"definitionId": 1' + "0" * 5000 + "}",
    ],
    ids=["open", "word", "more", "single", "deep", "number"],
)
def test_a_brace_begins_json(text: str) -> None:
    expect(text, 0, "'{'", "an address, or a JSON object with its dimensions")


@pytest.mark.parametrize(
    ("text", "problem", "expected"),
    [
        ("{}", "no definitionId", "the name of an agent"),
        ('{"definitionId": "a", "definitionId": "a"}', "a repeated dimension", "each dimension at most once"),
        ('{"definitionId": NaN}', "a value of type float", "text"),
        ('{"definitionId": {"a": "b"}}', "a value of type dict", "text"),
        ('{"definitionId": "日本"}', "no letter or digit in definitionId", "a letter or a digit"),
    ],
)
def test_a_bad_object(text: str, problem: str, expected: str) -> None:
    expect(text, 0, problem, expected)


# ------------------------------------------------------------------------------------ odds and ends


@pytest.mark.parametrize("value", [None, 5, ["@arc"], {"definitionId": "arc"}, object()])
def test_what_is_no_text_is_refused(value: object) -> None:
    expect(value, 0, f"a value of type {type(value).__name__}", "text")


def test_bytes_are_read_as_utf_8() -> None:
    assert lex("@héllo".encode()) == lex("@héllo")
    expect(b"\xff@arc", 0, "bytes that are not UTF-8", "UTF-8 text")


@pytest.mark.parametrize("text", ["main.x", "feature/x.y", "a.b.c", "a.b."])
def test_text_that_could_be_a_bare_branch(text: str) -> None:
    assert read_bare_branch(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "main",
        "@a.b",
        "/a.b",
        ".a.b",
        "~a.b",
        ">>a.b",
        "a.b:c",
        "a.b#c",
        "a.b?c",
        'a."b"',
        '{"a.b"',
        "a.b{",
        "a.b c",
        "a.b\t",
        "\u00a0a.b",
        "",
    ],
)
def test_text_that_could_not_be_a_bare_branch(text: str) -> None:
    assert read_bare_branch(text) is None
