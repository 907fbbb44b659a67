"""Differences between folders, git, the directory and running programs."""

from typing import Any

import pytest

from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.identity.path import AgentPath
from scout.model.agent import Agent, AgentConfig, Lifecycle, ToolRole, create_agent
from scout.policy.tree.reconcile import (
    REPAIRS,
    DeadSession,
    DifferenceFound,
    OngoingChanges,
    Repair,
    SeenFolder,
    SeenTree,
    SignedIdentity,
    TreeDifference,
    TreeSources,
    confirm_differences,
    find_differences,
)

ROOT = "/work/hudson"
TREES = f"{ROOT}/.scout/worktrees"
NOW = Time(1_800_000_000_000_000)
ADOPT = Remedy(operation="agent.register", parameters={"definitionId": "hudson"})


def agent(ident: str, path: str, **more: Any) -> Agent:
    facts: dict[str, Any] = {"project_root": ROOT, "working_dir": ROOT, **more}
    return create_agent(ident, AgentPath.parse(path), NOW, node="mini", by="agt_me", **facts)


ROOT_AGENT = agent(
    "agt_root", "/ada/agent/hudson", birth_branch="main", tool_role=ToolRole.TL, next_sub_index=2
)
AUTH = agent(
    "agt_auth",
    "/ada/agent/hudson/sub/0",
    parent_id="agt_root",
    birth_branch="main.auth",
    working_dir=f"{TREES}/auth",
)
HELPER = agent(
    "agt_helper",
    "/ada/agent/hudson/sub/1",
    parent_id="agt_root",
    tool_role=ToolRole.WORKER,
    config=AgentConfig(name="helper"),
)


def identity(one: Agent, **changes: Any) -> SignedIdentity:
    facts: dict[str, Any] = {
        "id": one.id,
        "path": str(one.path),
        "birth_branch": one.birth_branch,
        "parent": one.parent_id,
        "role": str(one.tool_role),
        "retired": one.lifecycle is Lifecycle.RETIRED,
    }
    return SignedIdentity(**{**facts, **changes})


def folder(one: Agent, **changes: Any) -> SeenFolder:
    worker = one.tool_role is ToolRole.WORKER
    kind = "worker" if worker else "root" if one.working_dir == ROOT else "worktree"
    where = f"{ROOT}/.scout/agents/{one.config.name}" if worker else one.working_dir or ""
    facts: dict[str, Any] = {"folder": where, "kind": kind, "identity": identity(one), **changes}
    return SeenFolder(**facts)


def tree(one: Agent, **changes: Any) -> SeenTree:
    facts: dict[str, Any] = {"path": one.working_dir, "branch": one.birth_branch, **changes}
    return SeenTree(**facts)


def compare(**changes: Any) -> tuple[DifferenceFound, ...]:
    """The differences of a whole tree of three agents, with these changes."""
    whole: dict[str, Any] = {
        "root": ROOT,
        "agents": (ROOT_AGENT, AUTH, HELPER),
        "names": {"agt_root": "@hudson", "agt_auth": "@hudson.auth", "agt_helper": "@hudson.w-1"},
        "folders": (folder(ROOT_AGENT), folder(AUTH), folder(HELPER)),
        "trees": (tree(ROOT_AGENT), tree(AUTH)),
        "branches": frozenset({"main", "main.auth"}),
    }
    return find_differences(TreeSources(**{**whole, **changes}))


def only(**changes: Any) -> DifferenceFound:
    (found,) = compare(**changes)
    return found


def changed(one: Agent, **changes: Any) -> Agent:
    facts: dict[str, Any] = {name: getattr(one, name) for name in one.__struct_fields__}
    return Agent(**{**facts, **changes})


def test_a_whole_tree_has_no_differences() -> None:
    assert compare() == ()


def test_every_repair_is_reached_by_a_difference() -> None:
    assert set(REPAIRS.values()) == set(Repair)


# -- folders -----------------------------------------------------------------------------------------


def test_a_signed_folder_without_an_agent_is_registered() -> None:
    found = only(agents=(ROOT_AGENT, HELPER))
    assert (found.kind, found.subject, found.repair) == (
        TreeDifference.UNREGISTERED,
        f"{TREES}/auth",
        Repair.REGISTER,
    )
    assert found.words == "its agent /ada/agent/hudson/sub/0 is not in the directory"


def test_a_signed_folder_whose_name_is_taken_is_only_offered() -> None:
    blocked = folder(AUTH, blocked="another agent has the path", adopt=ADOPT)
    found = only(agents=(ROOT_AGENT, HELPER), folders=(folder(ROOT_AGENT), blocked, folder(HELPER)))
    assert (found.kind, found.repair, found.remedy) == (TreeDifference.UNREGISTERED, None, ADOPT)
    assert found.words == "its agent cannot be registered again: another agent has the path"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"parent": "agt_other"}, "parent"),
        ({"role": "worker"}, "role"),
        ({"birth_branch": "main.x", "retired": True}, "birth branch, lifecycle"),
        ({"path": "/ada/agent/x"}, "path"),
    ],
)
def test_an_identity_file_that_differs_is_written_again(change: dict[str, Any], words: str) -> None:
    other = folder(AUTH, identity=identity(AUTH, **change))
    found = only(folders=(folder(ROOT_AGENT), other, folder(HELPER)))
    assert (found.kind, found.subject, found.repair) == (
        TreeDifference.OTHER_IDENTITY,
        "@hudson.auth",
        Repair.REWRITE_IDENTITY,
    )
    assert found.words == f"its identity file has another {words} than the directory"


def test_an_agent_that_works_elsewhere_than_in_its_work_tree_is_reported() -> None:
    moved = changed(AUTH, working_dir=f"{TREES}/other")
    trees = (tree(ROOT_AGENT), tree(AUTH), tree(moved, branch="main.auth"))
    found = only(agents=(ROOT_AGENT, moved, HELPER), trees=trees)
    assert (found.kind, found.repair) == (TreeDifference.MOVED, None)
    assert found.remedy == Remedy(
        operation="agent.config",
        parameters={"address": "@hudson.auth", "workingDir": f"{TREES}/auth"},
        why="if it is the same work",
    )


def test_the_kept_folder_of_a_retired_agent_is_no_difference() -> None:
    gone = changed(AUTH, lifecycle=Lifecycle.RETIRED, working_dir=None)
    folders = (folder(ROOT_AGENT), folder(AUTH, identity=identity(gone)), folder(HELPER))
    assert compare(agents=(ROOT_AGENT, gone, HELPER), folders=folders) == ()


@pytest.mark.parametrize(
    ("unsigned", "kind"),
    [
        ({"claimed": True, "problem": "its signature is not valid"}, TreeDifference.FORGED),
        ({"problem": "it has no identity file"}, TreeDifference.NO_IDENTITY),
        ({}, TreeDifference.NO_IDENTITY),
    ],
)
def test_an_unsigned_folder_of_an_agent_gets_its_identity_file_again(
    unsigned: dict[str, Any], kind: TreeDifference
) -> None:
    folders = (folder(ROOT_AGENT), folder(AUTH, identity=None, **unsigned), folder(HELPER))
    found = only(folders=folders)
    assert (found.kind, found.subject, found.repair) == (kind, "@hudson.auth", Repair.REWRITE_IDENTITY)
    assert found.words == unsigned.get("problem", "its identity file was not written by this Scout")


@pytest.mark.parametrize(
    ("unsigned", "kind", "words"),
    [
        (
            {"claimed": True, "problem": "its signature is not valid"},
            TreeDifference.FORGED,
            "its signature is not valid; Scout does not trust it",
        ),
        (
            {"problem": "it has no identity file"},
            TreeDifference.ORPHAN,
            "no agent works in it: it has no identity file",
        ),
    ],
)
def test_an_unsigned_folder_without_an_agent_is_only_offered(
    unsigned: dict[str, Any], kind: TreeDifference, words: str
) -> None:
    stray = SeenFolder(folder=f"{TREES}/stray", adopt=ADOPT, **unsigned)
    found = only(folders=(folder(ROOT_AGENT), folder(AUTH), folder(HELPER), stray))
    assert (found.kind, found.repair, found.remedy, found.words) == (kind, None, ADOPT, words)


def test_the_unsigned_folder_of_a_worker_belongs_to_the_agent_that_it_claims() -> None:
    forged = folder(HELPER, identity=None, claimed=True, claimed_id="agt_helper")
    found = only(folders=(folder(ROOT_AGENT), folder(AUTH), forged))
    assert (found.kind, found.subject) == (TreeDifference.FORGED, "@hudson.w-1")
    copied = folder(HELPER, folder=f"{ROOT}/.scout/agents/copy", identity=None, claimed=True)
    for claim in ("agt_helper", "agt_auth", None):
        stray = SeenFolder(folder=copied.folder, kind="worker", claimed=True, claimed_id=claim)
        found = only(folders=(folder(ROOT_AGENT), folder(AUTH), folder(HELPER), stray))
        assert (found.kind, found.subject) == (TreeDifference.FORGED, copied.folder)


# -- agents ------------------------------------------------------------------------------------------


def test_a_missing_work_tree_is_checked_out_again() -> None:
    folders = (folder(ROOT_AGENT), folder(HELPER))
    for trees in ((tree(ROOT_AGENT),), (tree(ROOT_AGENT), tree(AUTH, missing=True))):
        found = only(folders=folders, trees=trees)
        assert (found.kind, found.subject, found.repair) == (
            TreeDifference.MISSING,
            "@hudson.auth",
            Repair.RESTORE_TREE,
        )


def test_a_moved_work_tree_is_reported_with_its_new_place() -> None:
    trees = (tree(ROOT_AGENT), tree(AUTH, path="/elsewhere/auth"))
    found = only(folders=(folder(ROOT_AGENT), folder(HELPER)), trees=trees)
    assert (found.kind, found.repair) == (TreeDifference.MOVED, None)
    assert found.words.endswith("git has its branch at /elsewhere/auth")
    assert found.remedy is not None
    assert found.remedy.parameters["workingDir"] == "/elsewhere/auth"


def test_a_work_tree_whose_branch_is_gone_cannot_be_repaired() -> None:
    found = only(
        folders=(folder(ROOT_AGENT), folder(HELPER)),
        trees=(tree(ROOT_AGENT),),
        branches=frozenset({"main"}),
    )
    assert (found.kind, found.repair) == (TreeDifference.LOST, None)
    assert found.remedy == Remedy(operation="agent.retire", parameters={"address": "@hudson.auth"})


@pytest.mark.parametrize(
    ("branch", "branches", "words"),
    [
        (
            "login",
            {"main"},
            "login is checked out in its work tree; the branch main.auth was renamed or deleted; ",
        ),
        ("login", {"main", "main.auth"}, "login is checked out in its work tree; "),
        (None, {"main", "main.auth"}, "no branch is checked out in its work tree; "),
    ],
)
def test_a_renamed_branch_is_reported_and_changes_nothing(
    branch: str | None, branches: set[str], words: str
) -> None:
    found = only(trees=(tree(ROOT_AGENT), tree(AUTH, branch=branch)), branches=frozenset(branches))
    assert (found.kind, found.subject, found.repair) == (TreeDifference.RENAMED, "@hudson.auth", None)
    assert found.words == f"{words}the agent keeps its name"


def test_a_folder_that_git_does_not_list_is_left_to_git() -> None:
    assert compare(trees=(tree(ROOT_AGENT),)) == ()


def test_a_worker_without_a_folder_gets_it_again() -> None:
    found = only(folders=(folder(ROOT_AGENT), folder(AUTH)))
    assert (found.kind, found.subject, found.repair) == (
        TreeDifference.NO_IDENTITY,
        "@hudson.w-1",
        Repair.REWRITE_IDENTITY,
    )


def test_a_root_agent_with_children_needs_an_identity_file() -> None:
    found = only(folders=(folder(AUTH), folder(HELPER)))
    assert (found.kind, found.subject, found.folder) == (TreeDifference.NO_IDENTITY, "@hudson", ROOT)
    alone = changed(ROOT_AGENT, next_sub_index=0)
    assert compare(agents=(alone,), folders=(), trees=(tree(alone),)) == ()


def test_two_agents_in_one_work_tree_are_reported() -> None:
    twin = changed(AUTH, id="agt_twin", path=AgentPath.parse("/ada/agent/hudson/sub/0"))
    found = compare(agents=(ROOT_AGENT, AUTH, HELPER, twin))
    assert [one.kind for one in found] == [TreeDifference.DUPLICATE]
    assert found[0].words == "several agents work in it: @hudson.auth, /ada/agent/hudson/sub/0"


# -- families ----------------------------------------------------------------------------------------


def test_a_child_number_that_is_taken_is_raised() -> None:
    behind = changed(ROOT_AGENT, next_sub_index=1)
    found = only(agents=(behind, AUTH, HELPER))
    assert (found.kind, found.agent_id, found.repair) == (
        TreeDifference.INDEX,
        "agt_root",
        Repair.RAISE_INDEX,
    )


def test_a_parent_of_another_project_is_known() -> None:
    assert compare(agents=(AUTH, HELPER), parents=(ROOT_AGENT,)) == ()


def test_a_missing_parent_is_reported() -> None:
    found = compare(agents=(AUTH, HELPER), folders=(folder(AUTH), folder(HELPER)))
    assert [(one.kind, one.repair) for one in found] == [(TreeDifference.NO_PARENT, None)] * 2
    assert found[0].words == "its parent /ada/agent/hudson is not in the directory"


@pytest.mark.parametrize(
    "change",
    [{"birth_branch": "main.other.auth"}, {"path": AgentPath.parse("/ada/agent/other/sub/0")}],
)
def test_a_parent_that_path_or_branch_do_not_name_is_reported(change: dict[str, Any]) -> None:
    other = changed(AUTH, **change)
    found = only(
        agents=(ROOT_AGENT, other, HELPER),
        folders=(folder(ROOT_AGENT), folder(other), folder(HELPER)),
        trees=(tree(ROOT_AGENT), tree(other)),
        branches=frozenset({"main", "main.auth", "main.other.auth"}),
    )
    assert (found.kind, found.repair) == (TreeDifference.OTHER_PARENT, None)
    assert found.words == "its parent is @hudson, which its path or its branch does not say"


def test_a_child_of_a_parent_without_a_branch_has_any_branch() -> None:
    plain = changed(ROOT_AGENT, birth_branch=None)
    folders = (folder(AUTH), folder(HELPER))
    assert compare(agents=(plain, AUTH, HELPER), folders=folders) == ()


# -- git and programs --------------------------------------------------------------------------------


def test_an_entry_of_git_without_a_folder_is_removed() -> None:
    gone = SeenTree(path=f"{TREES}/old", branch="main.old", missing=True)
    others = (
        SeenTree(path="/elsewhere/old", branch="x", missing=True),
        SeenTree(path=f"{TREES}/there", branch="y"),
    )
    found = only(trees=(tree(ROOT_AGENT), tree(AUTH), gone, *others))
    assert (found.kind, found.subject, found.repair) == (
        TreeDifference.PRUNABLE,
        f"{TREES}/old",
        Repair.PRUNE,
    )


def test_a_session_without_a_program_is_ended() -> None:
    dead = (
        DeadSession(agent_id="agt_auth", session_id="ses_1", reason="its pane is gone"),
        DeadSession(agent_id="agt_unknown", session_id="ses_2", reason="its pane is gone"),
    )
    found = only(dead=dead)
    assert (found.kind, found.session_id, found.repair) == (TreeDifference.DEAD, "ses_1", Repair.END_SESSION)
    assert found.words == "its session ses_1 has no program any more: its pane is gone"


# -- changes during the comparison -------------------------------------------------------------------


def test_a_difference_counts_if_a_second_look_finds_it_too() -> None:
    both = DifferenceFound(kind=TreeDifference.LOST, subject="@auth", words="before")
    again = DifferenceFound(kind=TreeDifference.LOST, subject="@auth", words="after")
    once = DifferenceFound(kind=TreeDifference.MISSING, subject="@auth", words="its folder was being removed")
    assert confirm_differences((both, once), (again,)) == (again,)
    assert confirm_differences((both,), (again, once)) == (again,)


@pytest.mark.parametrize(
    ("found", "touched"),
    [
        ({"agent_id": "agt_auth"}, True),
        ({"agent_id": "agt_helper"}, False),
        ({"folder": f"{TREES}/new"}, True),
        ({"subject": f"{TREES}/new"}, True),
        ({"subject": f"{TREES}/other", "folder": f"{TREES}/other"}, False),
    ],
)
def test_ongoing_changes_touch_their_agents_and_folders(found: dict[str, Any], touched: bool) -> None:
    ongoing = OngoingChanges(agents=frozenset({"agt_auth"}), folders=frozenset({f"{TREES}/new"}))
    facts: dict[str, Any] = {"kind": TreeDifference.ORPHAN, "subject": "@auth", "words": "", **found}
    assert ongoing.touch(DifferenceFound(**facts)) is touched
