"""Spawning: the names, the preconditions, whole or not at all, and once for each name."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.base.time import Time
from scout.model.agent import Lifecycle, ToolRole
from scout.policy.limits import Limits
from scout.policy.tree.projects import ProjectRules, WorkTreeRules
from scout.ports import JournalEntry
from scout.protocol.access import AddGrant, CreateToken
from scout.protocol.agents import AgentDetail, RegisterAgent, RetireAgent, ReviveAgent, ShowAgent, Who
from scout.protocol.asks import MakeAsk
from scout.protocol.attention import ListAttention
from scout.protocol.enrolment import Enrol
from scout.protocol.tree.spawn import SpawnAgents, Spawned, SpawnRole
from tests.broker.project import person, ports, run
from tests.broker.rig import Rig, expect_refusal, open_rig, read_log, run_scene, wait_for_end, wait_until
from tests.tree.repositories import commit, git, head, repository

pytestmark = pytest.mark.slow


async def spawn(rig: Rig, folder: Path, *slugs: str, **more: Any) -> Spawned:
    given: dict[str, Any] = {"harness": "echo", **more}
    wish = SpawnAgents(slugs=slugs, **given)
    return await (await person(rig, folder)).call(wish)


async def show(rig: Rig, address: str) -> AgentDetail:
    return await rig.operator(ShowAgent(address=address))


async def unfinished(rig: Rig) -> tuple[JournalEntry, ...]:
    assert rig.broker.services.trees is not None
    return await asyncio.to_thread(rig.broker.services.trees.journal.unfinished)


# -- names -------------------------------------------------------------------------------------------


@pytest.mark.rows("R1.5-1", "R1.5-2", "R1.5-17")
def test_a_child_has_a_branch_a_work_tree_and_three_names(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        made = (await spawn(rig, root, "auth")).agents[0]
        tree = root / ".scout" / "worktrees" / "auth"
        assert (made.address, made.path) == ("@arc.auth", "/ada/agent/arc/sub/0")
        assert (made.birth_branch, made.working_dir) == ("main.auth", str(tree))
        assert (made.created, made.base) == (True, head(root))
        assert (made.agent.tool_role, made.agent.project_root) == (ToolRole.DEV, str(root))
        assert git(tree, "branch", "--show-current") == "main.auth"
        assert (tree / "below" / "c.txt").read_text() == "below/c.txt\n"
        assert git(root, "status", "--porcelain") == git(tree, "status", "--porcelain") == ""
        parent = await show(rig, "@arc")
        assert (parent.birth_branch, parent.tool_role, parent.next_sub_index) == ("main", ToolRole.TL, 1)
        assert made.agent.parent_id == parent.id

    run(tmp_path, scene)


def test_identity_files_are_written_for_the_root_and_the_child(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        made = (await spawn(rig, root, "auth")).agents[0]
        own = json.loads((root / ".scout/worktrees/auth/.scout/identity.json").read_text())
        above = json.loads((root / ".scout/identity.json").read_text())
        assert (own["id"], own["birthBranch"], own["parent"]) == (made.agent.id, "main.auth", above["id"])
        assert (above["birthBranch"], above["role"]) == ("main", "tl")
        found = await asyncio.to_thread(ports(rig.home).folders.scan, str(root))
        assert [one.identity.path for one in found if one.identity] == ["/ada/agent/arc", made.path]
        assert await unfinished(rig) == ()

    run(tmp_path, scene)


def test_count_numbers_the_slugs_and_several_are_made_at_once(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        made = await spawn(rig, root, "fix", "try", count=2)
        assert [one.slug for one in made.agents] == ["fix-1", "fix-2", "try-1", "try-2"]
        assert sorted(one.path[-1] for one in made.agents) == ["0", "1", "2", "3"]
        assert len(git(root, "worktree", "list").splitlines()) == 5

    run(tmp_path, scene)


@pytest.mark.rows("R1.5-27")
def test_one_slug_under_two_parents_has_two_folders(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        await spawn(rig, root, "api", "ui")
        one = (await spawn(rig, root, "tests", from_="@arc.api")).agents[0]
        other = (await spawn(rig, root, "tests", from_="@arc.ui")).agents[0]
        assert (one.birth_branch, other.birth_branch) == ("main.api.tests", "main.ui.tests")
        assert (one.address, other.address) == ("@arc.api-tests", "@arc.ui-tests")
        folders = [Path(str(made.working_dir)).name for made in (one, other)]
        assert folders[0] == "tests"
        assert folders[1].startswith("tests-")
        assert len(folders[1]) == len("tests-123456")

    run(tmp_path, scene)


@pytest.mark.parametrize("branch", ["release-1.2", "feature/x", "grüße"])
def test_a_dotted_slashed_or_unicode_root_branch_is_one_unit(tmp_path: Path, branch: str) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        git(root, "checkout", "-q", "-b", branch)
        child = (await spawn(rig, root, "auth")).agents[0]
        deep = (await spawn(rig, root, "tests", from_=child.path)).agents[0]
        assert (child.birth_branch, deep.birth_branch) == (f"{branch}.auth", f"{branch}.auth.tests")
        assert (child.address, deep.address) == ("@arc.auth", "@arc.auth-tests")
        told = await expect_refusal(spawn(rig, root, "more", from_=deep.path))
        assert (told.code, told.depth) == ("depth_cap", 2)

    run(tmp_path, scene)


def test_a_worker_shares_the_directory_of_its_parent(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        made = (await spawn(rig, root, "lint", role=SpawnRole.WORKER)).agents[0]
        assert (made.address, made.birth_branch, made.working_dir) == ("@arc.w-0", None, str(root))
        assert (made.agent.config.name, made.agent.label) == ("lint", "lint")
        assert (root / ".scout" / "agents" / "lint" / "identity.json").exists()
        assert git(root, "worktree", "list").count("\n") == 0
        again = (await spawn(rig, root, "lint", role=SpawnRole.WORKER)).agents[0]
        assert (again.created, again.agent.id) == (False, made.agent.id)
        await spawn(rig, root, "api")
        below = (await spawn(rig, root, "lint", role=SpawnRole.WORKER, from_="@arc.api")).agents[0]
        assert (below.address, below.working_dir) == ("@arc.api-0", str(root / ".scout/worktrees/api"))
        assert (root / ".scout" / "agents" / "lint-2" / "identity.json").exists()

    run(tmp_path, scene)


def test_a_worker_needs_no_repository(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        plain = root.parent / "plain"
        plain.mkdir()
        made = (await spawn(rig, plain, "lint", role=SpawnRole.WORKER)).agents[0]
        assert made.working_dir == str(plain)
        told = await expect_refusal(spawn(rig, plain, "lint"))
        assert (told.code, told.remedies[0].parameters["role"]) == ("not_a_repository", "worker")

    run(tmp_path, scene)


def test_a_worker_never_takes_the_handle_of_a_child(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        taken = (await spawn(rig, root, "w-1")).agents[0]
        made = (await spawn(rig, root, "lint", role=SpawnRole.WORKER)).agents[0]
        assert taken.address == "@arc.w-1"
        assert made.address.startswith("@arc.w-1-")

    run(tmp_path, scene)


# -- once --------------------------------------------------------------------------------------------


def test_the_same_slug_is_the_same_child_while_it_lives(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        first = (await spawn(rig, root, "auth")).agents[0]
        commit(Path(str(first.working_dir)), "work.txt", "mine\n")
        again = (await spawn(rig, root, "auth")).agents[0]
        assert (again.created, again.agent.id) == (False, first.agent.id)
        assert (await show(rig, "@arc")).next_sub_index == 1
        await rig.operator(RetireAgent(address="@arc.auth"))
        told = await expect_refusal(spawn(rig, root, "auth"))
        assert (told.code, told.remedies[0].operation) == ("retired_target", "agent.revive")
        await rig.operator(ReviveAgent(**told.remedies[0].parameters))
        assert not (await spawn(rig, root, "auth")).agents[0].created

    run(tmp_path, scene)


def test_a_work_tree_that_was_deleted_is_checked_out_again(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        tree = Path(str((await spawn(rig, root, "auth")).agents[0].working_dir))
        commit(tree, "work.txt", "mine\n")
        shutil.rmtree(tree)
        again = (await spawn(rig, root, "auth")).agents[0]
        assert (again.created, again.notes) == (
            False,
            ("its work tree was missing, and was checked out again",),
        )
        assert (tree / "work.txt").read_text() == "mine\n"
        assert json.loads((tree / ".scout/identity.json").read_text())["parentPath"] == "/ada/agent/arc"
        shutil.rmtree(tree)
        git(root, "worktree", "prune")
        git(root, "branch", "-D", "main.auth")
        assert "cannot be restored" in (await spawn(rig, root, "auth")).agents[0].notes[0]

    run(tmp_path, scene)


def test_a_key_gives_the_first_answer_again(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        first = await spawn(rig, root, "auth", task="Say hello.", idempotency_key="k1")
        again = await spawn(rig, root, "auth", task="Say hello.", idempotency_key="k1")
        assert again == first
        told = await expect_refusal(spawn(rig, root, "other", idempotency_key="k1"))
        assert told.code == "key_reused"

    run(tmp_path, scene)


@pytest.mark.rows("R1.4-28")
def test_concurrent_spawns_have_gapless_indexes_and_one_name_is_made_once(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        names = [f"n{number}" for number in range(6)]
        made = await asyncio.gather(*(spawn(rig, root, name) for name in [*names, "n0", "n1"]))
        agents = [one.agents[0] for one in made]
        assert sorted(one.path for one in agents if one.created) == [
            f"/ada/agent/arc/sub/{number}" for number in range(6)
        ]
        assert len({one.agent.id for one in agents}) == 6

    run(tmp_path, scene)


# -- preconditions -----------------------------------------------------------------------------------


async def nothing_made(rig: Rig, root: Path) -> None:
    """No agent, no branch, no work tree, no journal entry."""
    assert (await rig.operator(Who())).items == ()
    assert git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads") in ("main", "")
    assert await unfinished(rig) == ()
    folder = root / ".scout" / "worktrees"
    assert not folder.exists() or list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("slug", "code", "offer"),
    [
        ("Super Auth", "malformed_address", ["super-auth"]),
        ("a.b", "malformed_address", ["a-b"]),
        ("x" * 51, "malformed_address", ["x" * 50]),
        ("root", "reserved_name", ["my-root"]),
    ],
)
def test_a_slug_is_refused_with_the_callers_own_command_corrected(
    tmp_path: Path, slug: str, code: str, offer: list[str]
) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        told = await expect_refusal(spawn(rig, root, slug))
        assert told.code == code
        assert told.remedies[0].operation == "spawn"
        assert told.remedies[0].parameters["slugs"] == offer
        await nothing_made(rig, root)

    run(tmp_path, scene)


def test_uncommitted_changes_are_refused_and_can_be_left_behind(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        (root / "a.txt").write_text("changed\n")
        told = await expect_refusal(spawn(rig, root, "api", "ui"))
        assert (told.code, told.files, told.directory) == ("uncommitted_changes", ("a.txt",), str(root))
        assert told.remedies[0].parameters == {
            "slugs": ("api", "ui"),
            "harness": "echo",
            "allowDirty": True,
        }
        await nothing_made(rig, root)
        made = await spawn(rig, root, "api", allow_dirty=True)
        assert (Path(str(made.agents[0].working_dir)) / "a.txt").read_text() == "a.txt\n"
        assert (root / "a.txt").read_text() == "changed\n"

    run(tmp_path, scene)


def test_new_files_are_only_noted(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        (root / "notes.md").write_text("mine\n")
        made = await spawn(rig, root, "api")
        assert "notes.md" in made.notes[0]
        assert not (root / ".scout/worktrees/api/notes.md").exists()

    run(tmp_path, scene)


def test_a_repository_without_a_commit_is_refused(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        unborn = root.parent / "unborn"
        unborn.mkdir()
        git(unborn, "init", "-q")
        told = await expect_refusal(spawn(rig, unborn, "api"))
        assert (told.code, told.root, told.revision) == ("no_commit", str(unborn), None)
        await nothing_made(rig, unborn)
        told = await expect_refusal(spawn(rig, root, "api", base="v9"))
        assert (told.code, told.revision) == ("no_commit", "v9")
        assert told.remedies[0].parameters["base"] == "HEAD"

    run(tmp_path, scene)


def test_the_base_is_the_parents_branch_or_a_named_revision(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        first = head(root)
        child = (await spawn(rig, root, "api")).agents[0]
        tip = commit(Path(str(child.working_dir)), "api.txt", "api\n")
        deep = (await spawn(rig, root, "tests", from_="@arc.api")).agents[0]
        named = (await spawn(rig, root, "old", base=first, from_="@arc.api")).agents[0]
        assert (deep.base, named.base) == (tip, first)
        git(root, "checkout", "-q", "-b", "aside")
        made = await spawn(rig, root, "ui")
        assert (made.agents[0].birth_branch, made.agents[0].base) == ("main.ui", first)
        assert "aside" in made.notes[0]

    run(tmp_path, scene)


def test_a_branch_that_git_has_is_never_taken_over(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        git(root, "branch", "main.api")
        told = await expect_refusal(spawn(rig, root, "api", "ui"))
        assert (told.code, told.branch) == ("branch_exists", "main.api")
        assert told.remedies[0].parameters["slugs"] == ["api-2", "ui"]
        assert (await rig.operator(Who())).items == ()
        made = await (await person(rig, root)).call(
            SpawnAgents(slugs=tuple(told.remedies[0].parameters["slugs"]), harness="echo", allow_dirty=True)
        )
        assert [one.birth_branch for one in made.agents] == ["main.api-2", "main.ui"]

    run(tmp_path, scene)


def test_the_caps_are_refused_with_what_to_do(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        told = await expect_refusal(spawn(rig, root, "a", "b", "c"))
        assert (told.code, told.limit) == ("rate_limited", 2)
        assert [one.operation for one in told.remedies] == ["tree", "config.set"]
        await nothing_made(rig, root)
        await spawn(rig, root, "a", "b")
        assert (await expect_refusal(spawn(rig, root, "c"))).code == "rate_limited"
        assert len((await spawn(rig, root, "a", "b")).agents) == 2
        told = await expect_refusal(spawn(rig, root, "deep", from_="@arc.a"))
        assert (told.code, told.depth, told.cap) == ("depth_cap", 1, 1)
        worker, higher = (one.parameters for one in told.remedies)
        assert (worker["role"], worker["from"]) == ("worker", "@arc.a")
        assert (higher["from"], higher["slugs"]) == ("@arc", ("deep",))
        made = await rig.operator(SpawnAgents(slugs=("deep",), from_="@arc.a", role=SpawnRole.WORKER))
        assert made.agents[0].created

    run(tmp_path, scene, limits=Limits(fan_out=2, depth_cap=1))


def test_no_tree_below_the_root_if_the_depth_is_nought(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        told = await expect_refusal(spawn(rig, root, "a"))
        assert (told.code, [one.parameters["role"] for one in told.remedies]) == ("depth_cap", ["worker"])

    run(tmp_path, scene, limits=Limits(depth_cap=0))


def test_the_harness_must_be_ready(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        told = await expect_refusal(spawn(rig, root, "a", harness="eco"))
        assert (told.code, told.remedies[0].parameters["harness"]) == ("harness_unavailable", "echo")
        await nothing_made(rig, root)

    run(tmp_path, scene)


def test_a_child_inherits_the_program_of_its_parent(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        made = RegisterAgent(definition_id="arc", project_root=str(root), command=("cat",), model="m1")
        await rig.operator(made)
        child = (await spawn(rig, root, "a", harness=None)).agents[0].agent.config
        assert (child.harness, child.command, child.model) == ("command", ("cat",), "m1")
        other = (await spawn(rig, root, "b", harness="echo")).agents[0].agent.config
        assert (other.harness, other.command, other.model) == ("echo", (), None)

    run(tmp_path, scene)


def test_a_parent_without_a_branch_can_only_have_workers(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        await rig.operator(RegisterAgent(definition_id="bo", project_root=str(root)))
        told = await expect_refusal(spawn(rig, root, "a", from_="@bo"))
        assert (told.code, told.field) == ("bad_request", "from")
        assert [one.parameters.get("role") for one in told.remedies] == ["worker"]
        assert (await spawn(rig, root, "a")).parent == "@arc"
        told = await expect_refusal(spawn(rig, root, "b", from_="@bo"))
        assert told.remedies[0].parameters["from"] == "@arc"
        assert (await spawn(rig, root, "b", from_="@bo", role=SpawnRole.WORKER)).agents[
            0
        ].address == "@bo.w-0"

    run(tmp_path, scene)


def test_a_disk_without_room_is_refused(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        trees = rig.broker.services.trees
        assert trees is not None

        class Full:
            """The real work trees on a disk that is nearly full."""

            def __getattr__(self, name: str) -> Any:
                return getattr(trees.work_trees, name)

            def look(self, directory: str, most: int = 20) -> Any:
                facts = trees.work_trees.look(directory, most)
                return replace(facts, free_bytes=1024) if facts else None

        rig.broker.services.trees = trees._replace(work_trees=Full())  # pyright: ignore[reportArgumentType] (it has them all)
        told = await expect_refusal(spawn(rig, root, "a"))
        assert (told.code, told.free) == ("disk_space", 1024)
        rig.broker.services.trees = trees
        await nothing_made(rig, root)

    run(tmp_path, scene)


# -- who may -----------------------------------------------------------------------------------------


def test_an_agent_spawns_below_itself_and_not_elsewhere(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        await spawn(rig, root, "api", "ui")
        token = (await rig.operator(CreateToken(agent="@arc.api"))).secret
        scout = await rig.scout(token)
        made = await scout.call(SpawnAgents(slugs=("tests",)))
        assert (made.parent, made.agents[0].birth_branch) == ("@arc.api", "main.api.tests")
        assert made.agents[0].agent.config.harness == "echo"
        told = await expect_refusal(scout.call(SpawnAgents(slugs=("x",), from_="@arc.ui")))
        assert (told.code, told.action) == ("forbidden", "spawn")
        grant = next(one for one in told.remedies if one.operation == "grant.add")
        await rig.operator(AddGrant(**grant.parameters))
        made = await scout.call(SpawnAgents(slugs=("x",), from_="@arc.ui"))
        assert made.agents[0].birth_branch == "main.ui.x"

    run(tmp_path, scene)


# -- tasks -------------------------------------------------------------------------------------------


def test_a_task_is_asked_in_the_callers_name_in_the_work_tree(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        made = RegisterAgent(definition_id="arc", project_root=str(root), command=("sh", "-c", "cat; pwd"))
        await rig.operator(made)
        spawned = await spawn(rig, root, "a", "b", harness=None, task="Where are you?")
        for one in spawned.agents:
            assert one.flight_id is not None
            flight = await wait_for_end(rig, one.flight_id)
            assert str(flight.output).rstrip().endswith(str(one.working_dir))
            assert flight.requester_id == rig.broker.services.operator_agent

    run(tmp_path, scene)


def test_a_task_that_is_too_long_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        assert (await expect_refusal(spawn(rig, root, "a", task="x" * 300_000))).code == "too_large"
        await nothing_made(rig, root)

    run(tmp_path, scene)


def test_a_task_that_cannot_be_asked_is_a_note(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        made = await spawn(rig, root, "a", task="one", within="flt_unknown")
        assert made.agents[0].flight_id is None
        assert "its task was not asked" in made.agents[0].notes[0]

    run(tmp_path, scene)


# -- work trees that can build -----------------------------------------------------------------------


def rules(root: Path, **worktree: Any) -> dict[str, ProjectRules]:
    return {str(root): ProjectRules(worktree=WorkTreeRules(**worktree))}


def test_files_are_copied_and_the_setup_command_runs_before_the_agent_is_there(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        (root / ".env").write_text("KEY=1\n")
        (root / ".gitignore").write_text(".env*\nbuilt\n")
        commit(root, ".gitignore", ".env*\nbuilt\n")
        made = (await spawn(rig, root, "a")).agents[0]
        tree = Path(str(made.working_dir))
        assert ((tree / ".env").read_text(), made.copied) == ("KEY=1\n", (".env",))
        assert (tree / "built").read_text() == "KEY=1\n"
        assert made.setup is not None
        assert made.setup.output == "ready\n"

    home = tmp_path / "home" / "arc"
    projects = rules(home, copy=(".env*",), setup="cp .env built && echo ready")
    run(tmp_path, scene, projects=projects)


def test_a_setup_that_fails_undoes_this_child_only(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        made = await spawn(rig, root, "good", "bad")
        assert [one.slug for one in made.agents] == ["good"]
        failed = made.failed[0]
        assert (failed.slug, failed.error["code"], failed.error["exitCode"]) == ("bad", "setup_failed", 3)
        assert failed.error["output"] == "no network\n"
        assert failed.error["remedies"][0]["parameters"] == {
            "slugs": ("bad",),
            "harness": "echo",
            "noSetup": True,
        }
        assert git(root, "branch", "--list", "main.bad") == ""
        assert not (root / ".scout" / "worktrees" / "bad").exists()
        told = await expect_refusal(spawn(rig, root, "bad"))
        assert told.code == "setup_failed"
        assert (await spawn(rig, root, "bad", no_setup=True)).agents[0].created
        assert (await show(rig, "@arc")).next_sub_index == 2

    command = 'case "$PWD" in *bad) echo no network; exit 3;; esac'
    run(tmp_path, scene, projects=rules(tmp_path / "home" / "arc", setup=command))


def test_a_setup_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        told = await expect_refusal(spawn(rig, root, "a"))
        assert (told.code, told.timed_out) == ("setup_failed", True)
        assert told.remedies[1].parameters["setting"] == "worktree.setupSeconds"
        assert git(root, "branch", "--list", "main.a") == ""

    projects = rules(tmp_path / "home" / "arc", setup="sleep 60", setup_seconds=0.2)
    run(tmp_path, scene, projects=projects)


# -- people inside a work tree -----------------------------------------------------------------------


def test_a_session_or_an_ask_in_the_work_tree_is_the_childs(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        made = (await spawn(rig, root, "a")).agents[0]
        below = Path(str(made.working_dir)) / "below"
        for folder in (made.working_dir, str(below)):
            enrolled = await rig.operator(
                Enrol(cwd=str(folder), harness="claude", native_session_id=str(folder))
            )
            assert enrolled.agent_id == made.agent.id
        asked = await rig.operator(MakeAsk(project_path=str(below), body="Hello.", harness="echo"))
        assert asked.target == made.agent.id
        inside = await spawn(rig, Path(str(made.working_dir)), "b")
        assert (inside.parent, inside.agents[0].birth_branch) == ("@arc", "main.b")

    run(tmp_path, scene)


# -- after a crash -----------------------------------------------------------------------------------


def entry(root: Path, **more: Any) -> JournalEntry:
    folder = f"{root}/.scout/worktrees/a"
    facts: dict[str, Any] = {
        "id": "agt_x",
        "what": "spawn",
        "root": str(root),
        "branch": "main.a",
        "folder": folder,
    }
    facts |= {"base": head(root), "agent_id": "agt_x", "begun_at": Time(1), **more}
    return JournalEntry(**facts)


@pytest.mark.parametrize("left", ["nothing", "branch", "tree", "files", "commits"])
def test_an_interrupted_spawn_is_undone_without_losing_work(tmp_path: Path, left: str) -> None:
    root = repository(tmp_path / "home" / "arc")
    trees = ports(tmp_path)
    trees.journal.begin(entry(root))
    base, tree = head(root), root / ".scout" / "worktrees" / "a"
    if left == "branch":
        git(root, "branch", "main.a")
    elif left != "nothing":
        trees.work_trees.add(str(root), "main.a", "a", base)
    if left == "files":
        (tree / "mine.txt").write_text("mine\n")
    if left == "commits":
        commit(tree, "mine.txt", "mine\n")

    async def scene(rig: Rig) -> None:
        item = (await rig.operator(ListAttention())).items[0]
        assert "main.a" in item.title
        assert await unfinished(rig) == ()
        if left == "commits":
            assert (tree / "mine.txt").exists()
            assert str(tree) in item.body
            return
        assert not tree.exists()
        assert git(root, "branch", "--list", "main.a") == ""
        assert len(git(root, "worktree", "list").splitlines()) == 1
        if left == "files":
            saved = next(word.strip(".") for word in item.body.split() if len(word.strip(".")) == 40)
            assert git(root, "show", f"{saved}:mine.txt") == "mine"

    run_scene(scene, tmp_path, trees=trees)


@pytest.mark.parametrize("lost", [False, True])
def test_an_interrupted_spawn_of_a_registered_agent_is_completed(tmp_path: Path, lost: bool) -> None:
    root = repository(tmp_path / "home" / "arc")
    trees = ports(tmp_path)

    async def play() -> None:
        async with open_rig(tmp_path, trees=trees) as rig:
            made = (await spawn(rig, root, "a")).agents[0]
        file = root / ".scout/worktrees/a/.scout/identity.json"
        file.unlink()
        if lost:
            shutil.rmtree(root / ".scout/worktrees/a")
        trees.journal.begin(entry(root, id=made.agent.id, agent_id=made.agent.id))
        async with open_rig(tmp_path, trees=trees) as rig:
            assert json.loads(file.read_text())["id"] == made.agent.id
            assert (root / ".scout/worktrees/a/a.txt").exists()
            assert await unfinished(rig) == ()
            titles = [one.title for one in (await rig.operator(ListAttention())).items]
            assert any("completed" in title for title in titles)
            assert (await show(rig, "@arc.a")).lifecycle is not Lifecycle.RETIRED

    asyncio.run(play())


def test_a_spawn_survives_a_caller_that_leaves(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        calling = asyncio.ensure_future(spawn(rig, root, "a"))
        await wait_until(lambda: any((root / ".scout").glob("worktrees/*")))
        calling.cancel()
        again = (await spawn(rig, root, "a")).agents[0]
        assert not again.created
        assert len([one for one in await read_log(rig) if type(one).__name__ == "AgentRegistered"]) >= 2

    run(tmp_path, scene, projects=rules(tmp_path / "home" / "arc", setup="sleep 0.3"))
