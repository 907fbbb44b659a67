"""The spellings of a new agent, derived once when it is created."""

from collections.abc import Callable

import pytest

from scout.base.refusal import Refused
from scout.identity.address import Address
from scout.identity.branch import BirthBranch
from scout.identity.lexer import lex
from scout.identity.name import RootName
from scout.identity.path import PATH_WORDS
from scout.identity.problem import DepthCap, ReservedName
from scout.identity.reserved import RESERVED
from scout.identity.spelling import (
    Spelling,
    list_import_names,
    name_clone_workspace,
    name_directory_agent,
    name_node,
    name_operator,
    name_registered,
    name_session_alias,
    name_spawned,
    name_worker,
    name_worktree_folder,
)
from tests.identity.refusals import NO_READING, describe, expect_malformed, expect_refusal, list_offered


def free(name: object) -> bool:
    return False


def build_taken(*names: str) -> Callable[[Address], bool]:
    return lambda address: address.canonical in names


def spell(spelling: Spelling) -> tuple[str, str, str | None]:
    return str(spelling.path), spelling.address.canonical, spelling.birth_branch


ROOT = name_registered("u1", "arc", root_branch="main")


@pytest.mark.rows("R1.1-37", "R1.1-39", "R1.2-16")
@pytest.mark.parametrize(
    ("names", "path", "handle"),
    [
        (("arc",), "/u1/agent/arc", "@arc"),
        (("arc", "main"), "/u1/agent/arc.main", "@arc.main"),
        (("arc", "main", "dev"), "/u1/agent/arc.main.dev", "@arc.main.profile:dev"),
        (("arc", None, "dev"), "/u1/agent/arc.dev", "@arc.profile:dev"),
        (
            ("Super Refactor", "Feature/X", "Dev Browser"),
            "/u1/agent/super-refactor.feature-x.dev-browser",
            "@super-refactor.feature-x.profile:dev-browser",
        ),
        (("agent", "x"), "/u1/agent/agent.x", "@agent.x"),
    ],
)
def test_a_registered_agent(names: tuple[str | None, ...], path: str, handle: str) -> None:
    definition, workspace, profile = (*names, None, None)[:3]
    assert definition is not None
    assert spell(name_registered("u1", definition, workspace, profile)) == (path, handle, None)


@pytest.mark.rows("R1.1-1", "R1.1-18", "R1.1-38", "R1.5-4")
def test_only_a_projects_root_agent_is_born_on_the_root_branch() -> None:
    assert spell(ROOT) == ("/u1/agent/arc", "@arc", "main")
    assert spell(name_registered("u1", "arc", root_branch="release-1.2"))[2] == "release-1.2"
    assert name_registered("u1", "arc").birth_branch is None
    assert lex("root") == RootName()


@pytest.mark.rows("R1.2-55")
@pytest.mark.parametrize("word", RESERVED)
def test_a_reserved_word_is_not_registered(word: str) -> None:
    found = expect_refusal(name_registered, "u1", word.title())
    assert isinstance(found, ReservedName)
    assert (found.word, found.teaches) == (word, RESERVED[word])
    assert name_registered("u1", f"my-{word}").address.canonical == f"@my-{word}"


@pytest.mark.parametrize("word", sorted(PATH_WORDS))
def test_a_path_word_is_not_registered(word: str) -> None:
    found = expect_refusal(name_registered, "u1", word)
    assert isinstance(found, ReservedName)
    teaches = RESERVED.get(word, f"it is a path word, as in `/user/{word}`")
    assert found.message == f"'{word}' is reserved: {teaches}"
    assert list_offered(found) == (f"@my-{word}",)
    assert found.remedies[0].why.startswith("a free name")


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("u1", "日本"), "no letter or digit in the name"),
        (("u1", "arc", ""), "no letter or digit in the name"),
        (("u1", "arc", None, "…"), "no letter or digit in the name"),
        (("u 1", "arc"), "the character ' '"),
        (("agent", "arc"), "the reserved word 'agent'"),
        (("u1", "a" * 1020), "too much text"),
    ],
)
def test_a_name_that_cannot_be_registered(names: tuple[str | None, ...], problem: str) -> None:
    assert expect_malformed(name_registered, *names).problem == problem


@pytest.mark.rows("R1.1-40", "R1.1-41", "R1.5-1", "R1.5-2")
def test_a_spawned_agent() -> None:
    child = name_spawned(ROOT, "main", "auth", 0, taken=free)
    assert spell(child) == ("/u1/agent/arc/sub/0", "@arc.auth", "main.auth")
    grandchild = name_spawned(child, "main", "db-2", 7, taken=free)
    assert spell(grandchild) == ("/u1/agent/arc/sub/0/sub/7", "@arc.auth-db-2", "main.auth.db-2")
    assert name_spawned(ROOT, "main", "auth", 0, taken=free) == child


@pytest.mark.rows("R1.1-40", "R1.1-41")
@pytest.mark.parametrize("root_branch", ["release-1.2", "feature/x"])
def test_the_root_branch_is_no_part_of_the_workspace(root_branch: str) -> None:
    root = name_registered("u1", "arc", "wt", "dev", root_branch=root_branch)
    child = name_spawned(root, root_branch, "auth", 3, taken=free)
    assert spell(child) == ("/u1/agent/arc.wt.dev/sub/3", "@arc.auth", f"{root_branch}.auth")


@pytest.mark.rows("R1.1-42")
def test_a_taken_handle_gets_six_hex_digits_of_the_branch() -> None:
    child = name_spawned(ROOT, "main", "auth", 0, taken=build_taken("@arc.auth"))
    assert child.address.canonical == "@arc.auth-496362"
    one = name_spawned(
        name_spawned(ROOT, "main", "a-b", 0, taken=free), "main", "c", 0, taken=build_taken("@arc.a-b-c")
    )
    assert one.address.canonical == "@arc.a-b-c-c9af7d"
    assert one.birth_branch == "main.a-b.c"
    assert (
        name_spawned(ROOT, "main", "auth", 0, taken=build_taken("@arc.x", "@arc")).address.canonical
        == "@arc.auth"
    )


@pytest.mark.rows("R1.1-18", "R1.1-43", "R1.1-44")
def test_a_worker_has_no_branch() -> None:
    assert spell(name_worker(ROOT, 0)) == ("/u1/agent/arc/sub/0", "@arc.w-0", None)
    child = name_spawned(ROOT, "main", "auth", 0, taken=free)
    assert spell(name_worker(child, 12)) == ("/u1/agent/arc/sub/0/sub/12", "@arc.auth-12", None)
    assert spell(name_worker(name_worker(ROOT, 0), 1)) == ("/u1/agent/arc/sub/0/sub/1", "@arc.w-0-1", None)
    assert name_worker(name_registered("u1", "arc", profile="dev"), 1).address.canonical == "@arc.w-1"
    taken = name_worker(ROOT, 0, taken=lambda one: one.workspace_qualifier == "w-0")
    assert taken.address.canonical.startswith("@arc.w-0-")
    assert len(taken.address.canonical) == len("@arc.w-0-123456")


def test_what_cannot_be_spawned() -> None:
    found = expect_malformed(name_spawned, name_worker(ROOT, 0), "main", "auth", 0, taken=free)
    assert describe(found) == (
        0,
        "a parent without a branch",
        "an agent that was born on a branch",
        NO_READING,
    )
    assert found.text == "auth"
    assert expect_malformed(name_spawned, ROOT, "main", "Au th", 0, taken=free).problem == "the slug 'Au th'"
    assert (
        expect_malformed(name_spawned, ROOT, "dev", "auth", 0, taken=free).problem == "a branch outside 'dev'"
    )
    assert expect_malformed(name_spawned, ROOT, "main", "auth", -1, taken=free).problem == "the index '-1'"
    assert isinstance(expect_refusal(name_spawned, ROOT, "main", "codex", 0, taken=free), ReservedName)


@pytest.mark.rows("R1.5-15")
def test_spawning_stops_at_the_depth_cap() -> None:
    child = name_spawned(ROOT, "main", "a", 0, taken=free)
    grandchild = name_spawned(child, "main", "b", 0, taken=free)
    assert isinstance(expect_refusal(name_spawned, grandchild, "main", "c", 0, taken=free), DepthCap)
    assert isinstance(expect_refusal(name_spawned, child, "main", "c", 0, taken=free, cap=1), DepthCap)
    deeper = name_spawned(grandchild, "main", "c", 0, taken=free, cap=3)
    assert deeper.address.canonical == "@arc.a-b-c"


@pytest.mark.rows("R1.1-48")
def test_the_workspace_of_a_second_clone() -> None:
    assert name_clone_workspace("hudson", "main", "/src/hudson") == "hudson-main-cddbe6"
    assert name_clone_workspace("Hudson X", "feature/Y", "/src/hudson") == "hudson-x-feature-y-cddbe6"
    assert name_clone_workspace("hudson", "main", "/srv/hudson") != name_clone_workspace(
        "hudson", "main", "/src/hudson"
    )
    assert len(name_clone_workspace("a", "b", "/bad\udcff")) == len("a-b-123456")
    assert (
        expect_malformed(name_clone_workspace, "hudson", "…", "/x").problem
        == "no letter or digit in the name"
    )


@pytest.mark.rows("R1.1-51")
def test_the_alias_of_a_second_session() -> None:
    assert name_session_alias("arc", 2) == "arc-2"
    assert name_session_alias("Super Refactor", 10) == "super-refactor-10"
    found = expect_malformed(name_session_alias, "arc", 1)
    assert describe(found) == (0, "session number 1", "2 or more", NO_READING)
    assert found.text == "arc-1"


@pytest.mark.rows("R1.5-26")
def test_the_folder_of_a_slug() -> None:
    branch = BirthBranch.parse("main.x.auth", "main")
    other = BirthBranch.parse("main.auth", "main")
    assert name_worktree_folder(branch, free) == "auth"
    assert name_worktree_folder(other, lambda folder: folder == "auth") == "auth-496362"
    assert name_worktree_folder(branch, lambda folder: folder != "auth") == "auth"
    assert name_worktree_folder(branch, lambda folder: folder == "auth") not in ("auth", "auth-496362")
    assert name_worktree_folder(BirthBranch.parse("main", "main"), free) == "main"


@pytest.mark.rows("R1.1-54")
@pytest.mark.parametrize(
    ("folder", "configured", "definition"),
    [
        ("arc", None, "arc"),
        ("Super Refactor.git", None, "super-refactor-git"),
        ("arc", "My Project", "my-project"),
        ("日本", "nihon", "nihon"),
        ("arc", "", "arc"),
    ],
)
def test_a_directorys_definition(folder: str, configured: str | None, definition: str) -> None:
    assert name_directory_agent(folder, "src", configured, free) == definition


@pytest.mark.rows("R1.1-55")
@pytest.mark.parametrize(
    ("folder", "configured", "taken", "definition"),
    [
        ("codex", None, "", "my-src-codex"),
        ("root", None, "", "my-src-root"),
        ("memory", None, "", "my-src-memory"),
        ("app", None, "", "my-src-app"),
        ("arc", None, "arc", "my-src-arc"),
        ("arc", "Node", "", "my-src-node"),
        ("x", "Arc", "arc", "my-src-arc"),
        ("arc", None, "other", "arc"),
    ],
)
def test_an_unusable_definition_gets_its_parents_name(
    folder: str, configured: str | None, taken: str, definition: str
) -> None:
    found = name_directory_agent(folder, "My Src", configured, lambda name: name == taken)
    assert found == definition


def test_a_directory_without_a_usable_name() -> None:
    assert (
        expect_malformed(name_directory_agent, "日本", "src", None, free).problem
        == "no letter or digit in the name"
    )
    assert isinstance(expect_refusal(name_directory_agent, "codex", "", None, free), ReservedName)


@pytest.mark.rows("R0-56")
@pytest.mark.parametrize(
    ("login", "user"),
    [
        ("ana", "ana"),
        ("Ana Maria", "ana-maria"),
        ("root", "me"),
        ("Root", "me"),
        ("operator", "me"),
        ("OPERATOR", "me"),
        ("system", "me"),
        ("agent", "me"),
        ("日本", "me"),
        ("", "me"),
        ("codex", "codex"),
    ],
)
def test_the_operators_user_id(login: str, user: str) -> None:
    assert name_operator(login) == user
    assert name_registered(user, "arc").path == f"/{user}/agent/arc"


@pytest.mark.rows("R0-59")
@pytest.mark.parametrize(("host", "name"), [("Mini.local", "mini-local"), ("db01", "db01"), ("A_B", "a-b")])
def test_the_node_name(host: str, name: str) -> None:
    assert name_node(host) == name


def test_a_host_without_a_name() -> None:
    with pytest.raises(Refused):
        name_node("…")


def test_an_imported_name_is_kept_or_gets_its_system_and_a_hash() -> None:
    first, second, third = list_import_names("Super Arc", "openscout", "id-1")
    assert (first, second) == ("super-arc", "super-arc-openscout")
    assert third.startswith("super-arc-openscout-")
    assert third != list_import_names("Super Arc", "openscout", "id-2")[2]
    assert list_import_names("\x00…", "daycare", "id")[0] == "daycare"
