"""Birth branches: slugs, children, parents, depth."""

import pytest

from scout.base.codec import to_plain
from scout.base.refusal import Remedy
from scout.identity.branch import DEPTH_CAP, MAX_SLUG, BirthBranch, check_ref, check_slug
from scout.identity.problem import DepthCap, ReservedName
from scout.identity.reserved import RESERVED
from tests.identity.refusals import NO_READING, describe, expect_malformed, expect_refusal

ROOTS = ["main", "release-1.2", "feature/x", "v1.2.3", "a/b.c/d"]


@pytest.mark.rows("R1.5-1", "R1.5-2", "R1.5-11", "R1.5-12", "R1.5-13")
@pytest.mark.parametrize("root", ROOTS)
def test_the_root_is_one_unit(root: str) -> None:
    top = BirthBranch.parse(root, root)
    child = top.child("auth")
    grandchild = child.child("db-2")
    assert (top.text, top.depth, top.parent, top.slugs) == (root, 0, None, ())
    assert (child.text, child.depth, child.parent, child.slugs) == (f"{root}.auth", 1, top, ("auth",))
    assert (grandchild.text, grandchild.depth) == (f"{root}.auth.db-2", 2)
    assert (grandchild.parent, grandchild.slugs) == (child, ("auth", "db-2"))
    assert BirthBranch.parse(grandchild.text, root) == grandchild
    assert top.child("auth") == child


@pytest.mark.parametrize(
    ("root", "text", "depth", "parent"),
    [
        ("main", "main", 0, None),
        ("main", "main.feature.auth.middleware", 3, "main.feature.auth"),
        ("release-1.2", "release-1.2.auth", 1, "release-1.2"),
        ("release-1", "release-1.2.auth", 2, "release-1.2"),
        ("feature/x", "feature/x.auth.db", 2, "feature/x.auth"),
    ],
)
def test_depth_and_parent(root: str, text: str, depth: int, parent: str | None) -> None:
    branch = BirthBranch.parse(text, root)
    assert branch.depth == depth
    assert (branch.parent.text if branch.parent else None) == parent


@pytest.mark.rows("R1.5-3")
def test_a_birth_branch_cannot_be_changed() -> None:
    branch = BirthBranch.parse(b"main.a", b"main")
    with pytest.raises(AttributeError):
        branch.text = "main.b"  # pyright: ignore[reportAttributeAccessIssue] (that is the point)
    assert to_plain(branch) == {"root": "main", "text": "main.a"}


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("arc.main", ["@arc.main"]),
        ("mainx.a", ["@mainx.a"]),
        ("main-a", ["@main-a"]),
        ("foo.bar.baz", ["@foo.bar-baz"]),
        ("Feature/X.y", ["@feature-x.y"]),
        ("日本.x", []),
        ("x.日本", []),
        ("a" * 1024, []),
        ("a" * 1023, ["@" + "a" * 1023]),
    ],
)
def test_a_branch_outside_the_root(text: str, readings: list[str]) -> None:
    found = expect_malformed(BirthBranch.parse, text, "main")
    assert describe(found) == (
        0,
        "a branch outside 'main'",
        "main or main.SLUG",
        tuple(readings) or NO_READING,
    )
    assert found.text == text[:200]
    assert found.remedies[0].why == ("as a handle" if readings else "the forms of an address")


def test_a_long_root_is_cut_in_the_words() -> None:
    found = expect_malformed(BirthBranch.parse, "x", "r" * 70)
    cut = "r" * 60
    assert (found.problem, found.expected) == (f"a branch outside '{cut}'", f"{cut} or {cut}.SLUG")


GIT_REFUSES = [
    ("", 0, "nothing"),
    ("a b", 1, "' '"),
    ("a\tb", 1, "'\\t'"),
    ("a\x00", 1, "'\\x00'"),
    ("a\x1f", 1, "'\\x1f'"),
    ("a\x7f", 1, "'\\x7f'"),
    ("a\ud800", 1, "'\\ud800'"),
    ("a\udfff", 1, "'\\udfff'"),
    ("a~b", 1, "'~'"),
    ("a^b", 1, "'^'"),
    ("a:b", 1, "':'"),
    ("a?b", 1, "'?'"),
    ("a*b", 1, "'*'"),
    ("a[b", 1, "'['"),
    ("a\\b", 1, "'\\\\'"),
    ("a..b", 1, "'..'"),
    ("a@{b", 1, "'@{'"),
    ("a//b", 1, "'//'"),
    ("a/.b", 1, "'/.'"),
    ("main.lock", 4, "'.lock'"),
    ("a.lock/b", 1, "'.lock'"),
    ("/a", 0, "'/'"),
    (".a", 0, "'.'"),
    ("@a", 0, "'@'"),
    ("-a", 0, "'-'"),
    ("a/", 1, "'/'"),
    ("a.", 1, "'.'"),
]


@pytest.mark.parametrize(("text", "position", "problem"), GIT_REFUSES)
def test_a_branch_that_git_refuses(text: str, position: int, problem: str) -> None:
    expected = (position, problem, "a branch name that git accepts", NO_READING)
    assert describe(expect_malformed(check_ref, text)) == expected
    assert describe(expect_malformed(BirthBranch.parse, text, "main")) == expected
    assert describe(expect_malformed(BirthBranch.parse, "main", text)) == expected


@pytest.mark.parametrize(
    "text", ["main", "feature/x", "v1.2", "a.locked", "a.lock.b", "a@b", "a{b", "ümlaut", "a-", "a]b", "#1"]
)
def test_a_branch_that_git_accepts(text: str) -> None:
    assert check_ref(text) == text


@pytest.mark.rows("R1.5-6")
@pytest.mark.parametrize("slug", ["a", "0", "auth", "fix-2", "a" * 50, "memory"])
def test_good_slugs(slug: str) -> None:
    assert check_slug(slug) == slug
    assert check_slug(slug.encode()) == slug


@pytest.mark.rows("R1.5-5", "R1.5-6", "R1.5-7", "R1.5-8", "R1.5-10")
@pytest.mark.parametrize(
    ("slug", "position", "readings"),
    [
        ("Auth", 0, ["auth"]),
        ("my Slug", 2, ["my-slug"]),
        ("a.b", 1, ["a-b"]),
        ("a/b", 1, ["a-b"]),
        ("a~b^c:d", 1, ["a-b-c-d"]),
        ("-a", 0, ["a"]),
        ("a-", 1, ["a"]),
        ("a--b", 2, ["a-b"]),
        ("héllo", 1, ["hello"]),
        ("a..lock", 1, ["a-lock"]),
        ("", 0, []),
        ("日本", 0, []),
        ("@{", 0, []),
        ("a" * 51, 50, ["a" * 50]),
        ("a" * 49 + "-b", 50, ["a" * 49]),
        ("A" * 60, 0, ["a" * 50]),
        ("a" * 60 + "B", 50, ["a" * 50]),
    ],
)
def test_bad_slugs_come_with_their_folded_proposal(slug: str, position: int, readings: list[str]) -> None:
    found = expect_malformed(check_slug, slug)
    problem = f"the slug '{slug[:60]}'"
    assert describe(found) == (position, problem, "a-z, 0-9 and '-', 1 to 50", tuple(readings) or NO_READING)
    assert found.text == slug
    for reading in readings:
        assert check_slug(reading) == reading
        assert found.remedies[0].why == "the folded slug"


@pytest.mark.rows("R1.2-55", "R1.5-9")
@pytest.mark.parametrize("word", RESERVED)
def test_a_reserved_word_is_no_slug(word: str) -> None:
    found = expect_refusal(check_slug, word)
    assert isinstance(found, ReservedName)
    assert found.word == word
    assert isinstance(expect_refusal(BirthBranch.parse("main", "main").child, word), ReservedName)


def test_the_limits() -> None:
    assert (DEPTH_CAP, MAX_SLUG) == (2, 50)


def spawn(why: str, slug: str, under: str, **more: str) -> Remedy:
    return Remedy(operation="spawn", parameters={"slugs": [slug], "from": f"branch:{under}", **more}, why=why)


@pytest.mark.rows("R1.5-15", "R1.5-16")
@pytest.mark.parametrize(
    ("text", "cap", "above"),
    [
        ("main.a.b", 2, "main.a"),
        ("main.a.b.c", 2, "main.a"),  # deeper than the cap: its parent could not either
        ("main.a", 1, "main"),
        ("main.a.b.c", 3, "main.a.b"),
    ],
)
def test_the_depth_cap(text: str, cap: int, above: str) -> None:
    branch = BirthBranch.parse(text, "main")
    found = expect_refusal(branch.child, "x", cap)
    assert isinstance(found, DepthCap)
    assert (found.branch, found.depth, found.cap) == (text, branch.depth, cap)
    assert found.remedies == (
        spawn("a worker needs no separate branch", slug="x", under=text, role="worker"),
        spawn("the deepest agent that can have children", slug="x", under=above),
    )
    assert BirthBranch.parse(above, "main").child("x", cap).depth == cap


@pytest.mark.rows("R1.5-15")
def test_the_cap_is_2_unless_given() -> None:
    branch = BirthBranch.parse("main", "main").child("a").child("b")
    assert isinstance(expect_refusal(branch.child, "c"), DepthCap)
    assert branch.child("c", 3).text == "main.a.b.c"
    assert branch.child("c", cap=3).child("d", cap=4).depth == 4


def test_with_a_cap_of_0_only_workers_are_left() -> None:
    found = expect_refusal(BirthBranch.parse("main", "main").child, "x", 0)
    assert found.remedies == (
        spawn("a worker needs no separate branch", slug="x", under="main", role="worker"),
    )


def test_a_bad_slug_is_told_before_the_cap() -> None:
    assert expect_malformed(BirthBranch.parse("main.a.b", "main").child, "X y").problem == "the slug 'X y'"


@pytest.mark.parametrize("value", [None, 5, b"\xff", ["main"]])
def test_what_is_no_text_is_refused(value: object) -> None:
    assert expect_malformed(BirthBranch.parse, value, "main").expected in ("text", "UTF-8 text")
    assert expect_malformed(BirthBranch.parse, "main", value).expected in ("text", "UTF-8 text")
    assert expect_malformed(check_slug, value).expected in ("text", "UTF-8 text")
