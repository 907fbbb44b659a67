"""Finishing: merged, kept or discarded, in order, whole across a restart, and nothing is lost."""

import asyncio
import shlex
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scout.broker.tree.merges import Merges
from scout.model.agent import Lifecycle
from scout.model.events.presence import AgentRetired
from scout.policy.tree.projects import ProjectRules, WorkTreeRules
from scout.ports import GitFailed, MergePreview
from scout.protocol.access import CreateToken
from scout.protocol.agents import AgentDetail, RetireAgent, ReviveAgent, ShowAgent
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.attention import ListAttention
from scout.protocol.overview import PauseScout, ResumeScout
from scout.protocol.tree.finish import FinishAgent, FinishDone, FinishReport, FinishState
from scout.protocol.tree.spawn import SpawnAgents, SpawnedAgent
from scout.protocol.work import CreateWork
from tests.broker.project import person, ports, run
from tests.broker.rig import Rig, expect_refusal, open_rig, read_log, wait_for_end, wait_until
from tests.tree.repositories import commit, git, head, repository

pytestmark = pytest.mark.slow


async def spawn(rig: Rig, root: Path, slug: str, **more: Any) -> SpawnedAgent:
    given: dict[str, Any] = {"harness": "echo", **more}
    wish = SpawnAgents(slugs=(slug,), **given)
    return (await (await person(rig, root)).call(wish)).agents[0]


async def finish(rig: Rig, address: str, **more: Any) -> FinishReport:
    return await rig.operator(FinishAgent(address=address, **more))


async def show(rig: Rig, ident: str) -> AgentDetail:
    return await rig.operator(ShowAgent(address=ident))


def tree_of(child: SpawnedAgent) -> Path:
    return Path(child.working_dir or "")


async def grown(rig: Rig, root: Path, slug: str, **more: Any) -> SpawnedAgent:
    """A child with one commit."""
    child = await spawn(rig, root, slug, **more)
    commit(tree_of(child), f"{slug}.txt", f"{slug}\n")
    return child


def is_branch(root: Path, branch: str) -> bool:
    return bool(git(root, "rev-parse", "--verify", "-q", f"refs/heads/{branch}", check=False))


def paste(command: str) -> None:
    """A git command as it was printed."""
    subprocess.run(shlex.split(command), check=True, capture_output=True)


async def unfinished(rig: Rig) -> int:
    assert rig.broker.services.trees is not None
    return len(await asyncio.to_thread(rig.broker.services.trees.journal.unfinished))


# -- merge ---------------------------------------------------------------------------------------------


def test_a_merge_brings_the_work_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api")
        before, theirs = head(root), head(tree_of(child))
        report = await finish(rig, child.address, merge=True)
        assert (report.state, report.branch, report.into) == (FinishState.FINISHED, "main.api", "main")
        assert (root / "api.txt").read_text() == "api\n"
        assert git(root, "status", "--porcelain") == ""
        assert head(root) == report.merged
        assert git(root, "log", "-1", "--format=%P").split() == [before, theirs]
        message = git(root, "log", "-1", "--format=%B")
        assert "main.api" in message
        assert child.address in message
        assert not tree_of(child).exists()
        assert not is_branch(root, "main.api")
        assert git(root, "worktree", "list").count("\n") == 0
        assert (await show(rig, child.agent.id)).lifecycle is Lifecycle.RETIRED
        assert await unfinished(rig) == 0
        # What was done can be taken back with the commands that were printed.
        for command in report.undo:
            if command.startswith("git"):
                paste(command)
        assert head(root) == before
        assert not (root / "api.txt").exists()
        assert git(root, "rev-parse", "main.api") == theirs
        revived = await rig.operator(ReviveAgent(address=child.agent.id))
        assert revived.lifecycle is Lifecycle.ACTIVE
        assert tree_of(child).joinpath("api.txt").read_text() == "api\n"
        # And it can be finished again.
        again = await finish(rig, child.address, merge=True)
        assert again.state is FinishState.FINISHED
        assert (root / "api.txt").exists()

    run(tmp_path, scene)


def test_a_repeated_request_returns_the_first_report(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api")
        wish = FinishAgent(address=child.address, merge=True, idempotency_key="once")
        first = await rig.operator(wish)
        assert await rig.operator(wish) == first
        assert git(root, "rev-list", "--count", "--merges", "HEAD") == "1"
        # Another request for the same agent is refused, with the way back.
        gone = await expect_refusal(finish(rig, child.agent.id, merge=True))
        assert gone.code == "retired_target"

    run(tmp_path, scene)


def test_a_merge_without_commits_only_retires(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await spawn(rig, root, "api")
        before = head(root)
        report = await finish(rig, child.address, merge=True)
        assert (report.merged, head(root)) == (None, before)
        assert not is_branch(root, "main.api")
        assert not tree_of(child).exists()

    run(tmp_path, scene)


def test_a_preview_changes_nothing(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api")
        tree_of(child).joinpath("new.txt").write_text("new\n")
        before = git(root, "for-each-ref"), git(root, "status", "--porcelain"), len(await read_log(rig))
        report = await finish(rig, child.address)
        assert report.state is FinishState.PREVIEW
        assert (report.uncommitted, report.ahead, report.unpushed) == (("new.txt",), 1, 1)
        assert [one.problem == "" for one in report.options] == [False, True, True]
        assert report.options[0].command == f"scout finish --merge {child.address}"
        assert (
            git(root, "for-each-ref"),
            git(root, "status", "--porcelain"),
            len(await read_log(rig)),
        ) == before

    run(tmp_path, scene)


def test_uncommitted_files_and_a_dirty_parent_are_refused(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api")
        mine = tree_of(child).joinpath("new.txt")
        mine.write_text("new\n")
        assert (await expect_refusal(finish(rig, child.address, merge=True))).directory == child.working_dir
        mine.unlink()
        (root / "a.txt").write_text("changed\n")
        told = await expect_refusal(finish(rig, child.address, merge=True))
        assert (told.code, told.directory, told.files) == ("uncommitted_changes", str(root), ("a.txt",))
        assert (root / "a.txt").read_text() == "changed\n"
        assert await unfinished(rig) == 0
        # A file that git does not know is in nobody's way.
        git(root, "checkout", "-q", "--", "a.txt")
        (root / "notes.md").write_text("mine\n")
        assert (await finish(rig, child.address, merge=True)).state is FinishState.FINISHED
        assert (root / "notes.md").read_text() == "mine\n"

    run(tmp_path, scene)


# -- conflicts -----------------------------------------------------------------------------------------


async def torn(rig: Rig, root: Path, slug: str = "api") -> SpawnedAgent:
    """A child whose work conflicts with its parent's."""
    child = await spawn(rig, root, slug)
    commit(tree_of(child), "a.txt", f"{slug}\n")
    commit(root, "a.txt", "parent\n")
    return child


def test_a_conflict_goes_back_to_the_child_once(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await torn(rig, root)
        before = head(root)
        report = await finish(rig, child.address, merge=True)
        assert (report.state, report.conflicts, report.resolver) == (
            FinishState.CONFLICT,
            ("a.txt",),
            child.address,
        )
        assert head(root) == before
        asked = await rig.operator(GetFlight(flight_id=report.flight_id or ""))
        for words in ("- a.txt", "git merge main", child.working_dir or ""):
            assert words in asked.body
        await wait_for_end(rig, report.flight_id or "")
        # The same conflict is not asked about twice.
        assert (await finish(rig, child.address, merge=True)).flight_id == report.flight_id
        # Resolved, it is merged.
        tree = tree_of(child)
        git(tree, "merge", "-q", "main", check=False)
        commit(tree, "a.txt", "both\n")
        assert (await finish(rig, child.address, merge=True)).state is FinishState.FINISHED
        assert (root / "a.txt").read_text() == "both\n"

    run(tmp_path, scene)


def test_a_conflict_can_go_to_a_resolver_or_to_nobody(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child, other = await torn(rig, root), await spawn(rig, root, "docs")
        told = await expect_refusal(finish(rig, child.address, merge=True, ask=False))
        assert (told.code, told.files) == ("merge_conflict", ("a.txt",))
        report = await finish(rig, child.address, merge=True, resolver=other.address)
        assert report.resolver == other.address
        asked = await rig.operator(GetFlight(flight_id=report.flight_id or ""))
        assert asked.target_address == other.address
        assert f"{child.address}'s branch" in asked.body

    run(tmp_path, scene)


# -- the check command ---------------------------------------------------------------------------------


def checked(root: Path, command: str, **more: Any) -> dict[str, Any]:
    return {"projects": {str(root): ProjectRules(worktree=WorkTreeRules(check=command, **more))}}


def test_a_failing_check_prevents_the_merge(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api")
        before = head(root)
        told = await expect_refusal(finish(rig, child.address, merge=True))
        assert (told.code, told.exit_code) == ("check_failed", 3)
        assert "api.txt and a.txt are here" in told.output
        assert head(root) == before
        assert (await show(rig, child.agent.id)).lifecycle is Lifecycle.ACTIVE
        assert await unfinished(rig) == 0
        commit(tree_of(child), "good", "yes\n")
        assert (await finish(rig, child.address, merge=True)).state is FinishState.FINISHED

    command = "test -e api.txt && test -e a.txt && echo api.txt and a.txt are here; test -e good || exit 3"
    run(tmp_path, scene, **checked(tmp_path / "home" / "arc", command))


# -- keep and discard ----------------------------------------------------------------------------------


def test_keep_leaves_tree_and_branch_and_can_be_revived(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api")
        tree = tree_of(child)
        (tree / "new.txt").write_text("new\n")
        report = await finish(rig, child.address, keep=True, reason="later")
        assert report.undo == (f"scout agent revive {child.agent.id}",)
        assert (tree / "new.txt").exists()
        assert is_branch(root, "main.api")
        assert '"retiredAt"' in (tree / ".scout" / "identity.json").read_text()
        await rig.operator(ReviveAgent(address=child.agent.id))
        assert '"retiredAt"' not in (tree / ".scout" / "identity.json").read_text()

    run(tmp_path, scene)


def test_a_retired_agent_is_marked_in_its_folder_too(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await spawn(rig, root, "api")
        await rig.operator(RetireAgent(address=child.address))
        assert '"retiredAt"' in tree_of(child).joinpath(".scout", "identity.json").read_text()

    run(tmp_path, scene)


def test_a_discard_keeps_the_files_in_a_commit(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api")
        tree = tree_of(child)
        (tree / "new.txt").write_text("new\n")
        (tree / "a.txt").write_text("changed\n")
        assert (await expect_refusal(finish(rig, child.address, discard=True))).code == "work_would_be_lost"
        report = await finish(rig, child.address, discard=True, reason="The idea did not work.")
        assert not tree.exists()
        assert not is_branch(root, "main.api")
        assert git(root, "show", f"{report.saved}:new.txt") == "new"
        retired = [one for one in await read_log(rig) if isinstance(one, AgentRetired)]
        assert "The idea did not work." in retired[-1].payload.reason
        left = retired[-1].metadata.finished
        assert left is not None
        assert (left.choice, left.saved) == ("discard", report.saved)
        for command in report.undo:
            if command.startswith("scout"):
                await rig.operator(ReviveAgent(address=child.agent.id))
            else:
                paste(command)
        assert (tree / "new.txt").read_text() == "new\n"
        assert (tree / "a.txt").read_text() == "changed\n"
        assert (tree / "api.txt").exists()
        assert (await show(rig, child.agent.id)).lifecycle is Lifecycle.ACTIVE

    run(tmp_path, scene)


def test_a_worker_is_only_retired(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        one, two = await spawn(rig, root, "lint", role="worker"), await spawn(rig, root, "fix", role="worker")
        await finish(rig, one.address, merge=True)
        await finish(rig, two.address, keep=True)
        assert [path.name for path in (root / ".scout" / "agents").iterdir()] == ["fix"]
        assert (await show(rig, one.agent.id)).lifecycle is Lifecycle.RETIRED

    run(tmp_path, scene)


# -- who may, and when ---------------------------------------------------------------------------------


def test_open_flights_and_children_come_first(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api", role="tl")
        await rig.operator(SpawnAgents(slugs=("db",), from_=child.address, harness="echo"))
        told = await expect_refusal(finish(rig, child.address, merge=True))
        assert (told.code, told.children) == ("unfinished_work", ("@arc.api-db",))
        await rig.operator(PauseScout())
        other = await grown(rig, root, "docs")
        receipt = await rig.operator(MakeAsk(to=other.address, body="Wait."))
        told = await expect_refusal(finish(rig, other.address, discard=True, reason="no"))
        assert (told.code, told.flights) == ("unfinished_work", (receipt.flight_id,))
        assert [one.operation for one in told.remedies] == ["flight.cancel"]
        await rig.operator(ResumeScout())
        await wait_for_end(rig, receipt.flight_id)
        assert (await finish(rig, other.address, merge=True)).state is FinishState.FINISHED

    run(tmp_path, scene)


def test_an_agent_finishes_those_below_it_and_nobody_else(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        lead = await grown(rig, root, "api", role="tl")
        below = (await rig.operator(SpawnAgents(slugs=("db",), from_=lead.address, harness="echo"))).agents[0]
        commit(tree_of(below), "db.txt", "db\n")
        other = await grown(rig, root, "docs")
        token = (await rig.operator(CreateToken(agent=lead.agent.id))).secret
        scout = await rig.scout(token)
        assert (await expect_refusal(scout.call(FinishAgent(address="self", merge=True)))).code == "forbidden"
        assert (
            await expect_refusal(scout.call(FinishAgent(address=other.address, keep=True)))
        ).code == "forbidden"
        assert (
            await expect_refusal(scout.call(FinishAgent(address="parent", keep=True)))
        ).code == "forbidden"
        done = await scout.call(FinishAgent(address="./sub/0", merge=True))
        assert (done.into, done.state) == ("main.api", FinishState.FINISHED)
        assert tree_of(lead).joinpath("db.txt").exists()

    run(tmp_path, scene)


def test_roots_and_strangers_are_not_finished(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        await spawn(rig, root, "api")
        await rig.register("lone")
        for address in ("@arc", "@lone"):
            told = await expect_refusal(finish(rig, address, merge=True))
            assert (told.code, told.remedies[-1].operation) == ("bad_request", "agent.retire")

    run(tmp_path, scene)


# -- in order ------------------------------------------------------------------------------------------


def test_merges_into_one_branch_come_in_the_order_of_arrival(tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def scene(rig: Rig, root: Path) -> None:
        slugs = ("e", "b", "d", "a", "c")
        children = [await grown(rig, root, slug) for slug in slugs]
        for one in children:
            assert (await finish(rig, one.address, merge=True, wait=0)).state is FinishState.RUNNING
        waiting = [asyncio.ensure_future(finish(rig, one.address, merge=True)) for one in reversed(children)]
        gate.touch()
        done = [*reversed(await asyncio.gather(*waiting))]
        assert {one.state for one in done} == {FinishState.FINISHED}
        merged = git(root, "log", "--first-parent", "--reverse", "--merges", "--format=%H").split()
        assert merged == [one.merged for one in done]
        assert git(root, "status", "--porcelain") == ""

    wait = f"while test ! -e {shlex.quote(str(gate))}; do sleep 0.05; done"
    run(tmp_path, scene, **checked(tmp_path / "home" / "arc", wait))


def test_another_choice_waits_until_a_finish_has_ended(tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api")
        assert (await finish(rig, child.address, merge=True, wait=0)).state is FinishState.RUNNING

        async def is_checked() -> bool:
            return (await finish(rig, child.address)).reason == "its check command runs"

        await wait_until(is_checked)
        assert (await expect_refusal(finish(rig, child.address, keep=True))).code == "busy"
        assert (await finish(rig, child.address)).state is FinishState.RUNNING
        gate.touch()
        assert (await finish(rig, child.address, merge=True)).state is FinishState.FINISHED

    wait = f"while test ! -e {shlex.quote(str(gate))}; do sleep 0.05; done"
    run(tmp_path, scene, **checked(tmp_path / "home" / "arc", wait))


def test_a_place_that_is_left_early_holds_up_nobody() -> None:
    async def play() -> list[str]:
        merges, seen = Merges(), list[str]()
        first, second, third = (merges.enter("/arc", "main") for _ in range(3))
        other = merges.enter("/arc", "dev")
        assert [one.ahead for one in (first, second, third, other)] == [0, 1, 2, 0]

        async def take(name: str, place: Any) -> None:
            async with place:
                seen.append(name)

        waiting = [
            asyncio.ensure_future(take(name, one)) for name, one in (("third", third), ("first", first))
        ]
        second.leave()
        second.leave()
        await asyncio.gather(*waiting)
        return seen

    assert asyncio.run(play()) == ["first", "third"]


# -- a whole subtree -----------------------------------------------------------------------------------


def test_a_subtree_is_finished_leaves_first(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        lead = await grown(rig, root, "api", role="tl")
        below = (await rig.operator(SpawnAgents(slugs=("db",), from_=lead.address, harness="echo"))).agents[0]
        commit(tree_of(below), "db.txt", "db\n")
        busy, idle, dirty = [await spawn(rig, root, slug) for slug in ("busy", "idle", "dirty")]
        await rig.operator(CreateWork(title="A thing", owner_id=busy.address))
        commit(tree_of(dirty), "d.txt", "d\n")
        tree_of(dirty).joinpath("new.txt").write_text("new\n")
        done = await (await person(rig, root)).call(FinishDone(idempotency_key="all"))
        assert [one.address for one in done.items] == [below.address, lead.address]
        assert (root / "db.txt").exists()
        left = {one.address: (one.code, one.reason) for one in done.left}
        assert left[idle.address] == ("", "it has not worked yet")
        assert left[busy.address][0] == "unfinished_work"
        assert left[dirty.address][0] == "uncommitted_changes"
        assert await (await person(rig, root)).call(FinishDone(idempotency_key="all")) == done
        # Named, the agent itself is finished too.
        git(tree_of(dirty), "add", "--all")
        git(tree_of(dirty), "commit", "-q", "-m", "new")
        done = await rig.operator(FinishDone(address=dirty.address))
        assert [one.address for one in done.items] == [dirty.address]

    run(tmp_path, scene)


def test_a_parent_waits_for_a_child_that_is_left(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        lead = await grown(rig, root, "api", role="tl")
        below = (await rig.operator(SpawnAgents(slugs=("db",), from_=lead.address, harness="echo"))).agents[0]
        tree_of(below).joinpath("new.txt").write_text("new\n")
        await wait_for_end(rig, (await rig.operator(MakeAsk(to=below.address, body="hi"))).flight_id)
        token = (await rig.operator(CreateToken(agent=lead.agent.id))).secret
        done = await (await rig.scout(token)).call(FinishDone())
        assert [one.address for one in done.left] == [below.address]
        done = await (await person(rig, root)).call(FinishDone())
        assert [(one.address, one.code) for one in done.left] == [
            (below.address, "uncommitted_changes"),
            (lead.address, "unfinished_work"),
        ]

    run(tmp_path, scene)


# -- what changes under way ----------------------------------------------------------------------------


class Meddling:
    """Work trees in which somebody does something just before or after a step."""

    def __init__(self, real: Any, before: dict[str, Any], instead: dict[str, Any]) -> None:
        self._real = real
        self._before = before
        self._instead = instead

    def __getattr__(self, name: str) -> Any:
        real = self._instead.get(name) or getattr(self._real, name)
        if name not in self._before:
            return real

        def meddled(*values: Any) -> Any:
            if (act := self._before.pop(name, None)) is not None:
                act()
            return real(*values)

        return meddled


def meddle(rig: Rig, instead: dict[str, Any] | None = None, **before: Callable[[], object]) -> None:
    trees = rig.broker.services.trees
    assert trees is not None
    meddling: Any = Meddling(trees.work_trees, before, instead or {})
    rig.broker.services.trees = trees._replace(work_trees=meddling)


def test_a_merge_that_waits_is_not_refused_for_the_files_of_the_one_before(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        first, second = await grown(rig, root, "api"), await grown(rig, root, "docs")
        begun, looked = threading.Event(), threading.Event()

        def stop_halfway() -> None:
            (root / "a.txt").write_text("as after the merge\n")
            begun.set()
            assert looked.wait(30)
            git(root, "checkout", "-q", "--", "a.txt")

        meddle(rig, merge=stop_halfway)
        merging = asyncio.ensure_future(finish(rig, first.address, merge=True))
        assert await asyncio.to_thread(begun.wait, 30)
        waiting = asyncio.ensure_future(finish(rig, second.address, merge=True))
        await wait_until(lambda: "it waits for" in place_of(rig, second) or waiting.done())
        looked.set()
        assert [one.state for one in (await merging, await waiting)] == [FinishState.FINISHED] * 2
        assert git(root, "status", "--porcelain") == ""

    run(tmp_path, scene)


def place_of(rig: Rig, child: SpawnedAgent) -> str:
    """Where the finish of a child stands."""
    running = rig.broker.merges.find(child.agent.id, None)
    return running.reason[-1] if running is not None else ""


def test_files_that_appear_during_a_merge_stay(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api")
        tree = tree_of(child)
        meddle(rig, merge=lambda: (tree / "late.txt").write_text("late\n"))
        report = await finish(rig, child.address, merge=True)
        assert (tree / "late.txt").read_text() == "late\n"
        assert "late.txt" in report.notes[0]
        assert is_branch(root, "main.api")
        assert (await show(rig, child.agent.id)).lifecycle is Lifecycle.RETIRED

    run(tmp_path, scene)


def test_a_commit_after_the_merge_keeps_its_branch(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api")
        tree = tree_of(child)
        meddle(rig, merge=lambda: commit(tree, "late.txt", "late\n"))
        report = await finish(rig, child.address, merge=True)
        assert report.notes
        assert git(root, "show", "main.api:late.txt") == "late"

    run(tmp_path, scene)


def test_a_merge_that_fails_before_it_moves_anything_is_undone(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api")
        meddle(rig, merge=lambda: commit(root, "other.txt", "other\n"))
        told = await expect_refusal(finish(rig, child.address, merge=True))
        assert told.code == "git_failed"
        assert await unfinished(rig) == 0
        assert (await show(rig, child.agent.id)).lifecycle is Lifecycle.ACTIVE
        assert (await finish(rig, child.address, merge=True)).state is FinishState.FINISHED

    run(tmp_path, scene)


# -- a restart -----------------------------------------------------------------------------------------


def fail(step: str) -> Callable[[], object]:
    def act() -> None:
        raise GitFailed(f"{step} was interrupted")

    return act


@pytest.mark.parametrize("step", ["remove", "delete_branch", "save_uncommitted"])
def test_a_step_that_fails_is_taken_again(tmp_path: Path, step: str) -> None:
    """The agent is retired, or its files are not stored yet; the rest happens at the next start."""
    home = tmp_path
    root = repository(home / "home" / "arc")

    async def play() -> None:
        options: dict[str, Any] = {"trees": ports(home), "roots": (str(home),)}
        async with open_rig(home, **options) as rig:
            child = await grown(rig, root, "api")
            tree = tree_of(child)
            (tree / "new.txt").write_text("new\n")
            meddle(rig, None, **{step: fail(step)})
            wish = FinishAgent(address=child.agent.id, discard=True, reason="no", idempotency_key="k")
            if step == "delete_branch":
                assert "was left" in (await rig.operator(wish)).notes[0]
                return
            assert (await expect_refusal(rig.operator(wish))).code == "git_failed"
            assert await unfinished(rig) == 1
        async with open_rig(home, **options) as rig:
            assert await unfinished(rig) == 0
            assert not tree.exists()
            assert not is_branch(root, "main.api")
            report = await rig.operator(wish)
            assert git(root, "show", f"{report.saved}:new.txt") == "new"

    asyncio.run(play())


def test_a_finish_that_stopped_after_the_retirement_can_be_repeated(tmp_path: Path) -> None:
    async def scene(rig: Rig, root: Path) -> None:
        child = await grown(rig, root, "api")
        meddle(rig, remove=fail("remove"))
        assert (await expect_refusal(finish(rig, child.address, merge=True))).code == "git_failed"
        assert (await show(rig, child.agent.id)).lifecycle is Lifecycle.RETIRED
        report = await finish(rig, child.agent.id, merge=True)
        assert report.state is FinishState.FINISHED
        assert not tree_of(child).exists()
        assert await unfinished(rig) == 0

    run(tmp_path, scene)


def test_a_merge_that_had_not_begun_begins_again(tmp_path: Path) -> None:
    home = tmp_path
    root = repository(home / "home" / "arc")

    async def play() -> None:
        options: dict[str, Any] = {"trees": ports(home), "roots": (str(home),)}
        async with open_rig(home, **options) as rig:
            child = await grown(rig, root, "api")
            trees = rig.broker.services.trees
            assert trees is not None
            entries: list[Any] = []

            def remember() -> None:
                entries.extend(trees.journal.unfinished())

            meddle(rig, merge=remember)
            await finish(rig, child.address, merge=True, idempotency_key="k")
            await rig.operator(ReviveAgent(address=child.agent.id))
            commit(tree_of(child), "more.txt", "more\n")
            await asyncio.to_thread(trees.journal.begin, entries[0])  # as if it had stopped there
        async with open_rig(home, **options) as rig:
            report = await finish(rig, child.agent.id, merge=True, idempotency_key="k")
            assert report.state is FinishState.FINISHED
            assert await unfinished(rig) == 0

    asyncio.run(play())


def test_a_merge_that_cannot_be_completed_is_told_to_the_operator(tmp_path: Path) -> None:
    home = tmp_path
    root = repository(home / "home" / "arc")

    async def play() -> None:
        options: dict[str, Any] = {"trees": ports(home), "roots": (str(home),)}
        async with open_rig(home, **options) as rig:
            child = await grown(rig, root, "api")
            trees = rig.broker.services.trees
            assert trees is not None
            entries: list[Any] = []
            real = trees.work_trees.merge

            def merge(root_: str, preview: MergePreview, message: str, begun: Callable[[str], None]) -> Any:
                done = real(root_, preview, message, begun)
                entries.extend(trees.journal.unfinished())
                return done

            meddle(rig, instead={"merge": merge})
            await finish(rig, child.address, merge=True)
            await rig.operator(ReviveAgent(address=child.agent.id))
            git(root, "reset", "-q", "--hard", "HEAD~1")
            commit(root, "other.txt", "other\n")
            await asyncio.to_thread(trees.journal.begin, entries[0])
        async with open_rig(home, **options) as rig:
            assert await unfinished(rig) == 0
            assert (await show(rig, child.agent.id)).lifecycle is Lifecycle.ACTIVE
            assert tree_of(child).joinpath("api.txt").exists()
            titles = [one.title for one in (await rig.operator(ListAttention())).items]
            assert any("was not completed" in title for title in titles), titles

    asyncio.run(play())
