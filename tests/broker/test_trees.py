"""Trees in the broker: a disk that does not answer, and identities that cannot be registered again."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.base.time import Time
from scout.broker.tree import view
from scout.model.agent import Lifecycle
from scout.policy.tree.projects import ProjectRules
from scout.ports import GitFailed, IdentityFile, TreePorts, TreeState, TreeToCompare
from scout.protocol.access import CreateToken
from scout.protocol.agents import RetireAgent, ShowAgent
from scout.protocol.talk import Send
from scout.protocol.tree.view import AgentTree, ReconcileTree, ScanTree, ShowTree, TreeScan
from scout.tree.tree_ports import build_tree_ports
from scout.tree.worktrees import GitWorkTrees
from tests.broker.rig import Rig, expect_refusal, open_rig
from tests.tree.repositories import KEY

pytestmark = pytest.mark.slow

IDS = [f"agt_0000000000{digit}00000000000000{digit}" for digit in "0123456789"]
PARENT = IDS[0]
BORN = Time(1_000_000)


class Stand:
    """A project folder with identities, and a broker that knows the project."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "home" / "hudson"
        self.root.mkdir(parents=True)
        self.ports = build_tree_ports(home, KEY)
        self.ports.folders.prepare(str(self.root))

    def identity(self, number: int = 0, **facts: Any) -> IdentityFile:
        """The identity of the root agent, or of its child with a number."""
        base = IdentityFile(
            id=IDS[number],
            path="/ada/agent/hudson",
            definition="hudson",
            birth_branch="main",
            role="tl",
            project_root=str(self.root),
            created_at=BORN,
        )
        if number:
            name = f"c{number}"
            base = replace(
                base,
                path=f"/ada/agent/hudson/sub/{number}",
                workspace=name,
                birth_branch=f"main.{name}",
                parent=PARENT,
                role="dev",
            )
        return replace(base, **facts)

    def write(self, identity: IdentityFile, folder: str = "") -> Path:
        """Write a signed identity into the root, or a folder for a work tree."""
        path = self.root / ".scout" / "worktrees" / folder if folder else self.root
        path.mkdir(parents=True, exist_ok=True)
        self.ports.folders.write_identity(str(path), identity)
        return path

    def open(self, trees: TreePorts | None = None) -> Any:
        known = {str(self.root): ProjectRules()}
        return open_rig(self.home, trees=trees or self.ports, projects=known, roots=(str(self.home),))


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


async def scan(rig: Rig) -> TreeScan:
    return await rig.operator(ScanTree())


async def tree(rig: Rig, stand: Stand, **more: Any) -> AgentTree:
    return await rig.operator(ShowTree(project_root=str(stand.root), **more))


# -- found again -------------------------------------------------------------------------------------


def test_parents_come_before_children_whatever_the_folders_are_called(stand: Stand) -> None:
    deep = stand.identity(2, path="/ada/agent/hudson/sub/1/sub/0", parent=IDS[1], birth_branch="main.c1.a")
    stand.write(deep, "a")  # sorted before the folder of its parent
    stand.write(stand.identity(1), "z")
    stand.write(stand.identity())

    async def play() -> None:
        async with stand.open() as rig:
            shown = await tree(rig, stand)
            assert [(one.id, one.depth) for one in shown.agents] == [(PARENT, 0), (IDS[1], 1), (IDS[2], 2)]
            assert {one.lifecycle for one in shown.agents} == {Lifecycle.SLEEPING}
            parent = await rig.operator(ShowAgent(address=IDS[1]))
            assert (parent.next_sub_index, parent.created_at) == (1, BORN)
            assert (await rig.operator(ShowAgent(address="@hudson"))).next_sub_index == 2

    asyncio.run(play())


def test_a_child_without_its_parent_keeps_its_names_and_is_reported(stand: Stand) -> None:
    stand.write(stand.identity(1, harness="nothing-here", model="m"), "c1")

    async def play() -> None:
        async with stand.open() as rig:
            found = await rig.operator(ShowAgent(address=IDS[1]))
            assert (found.parent_id, found.config.harness, found.config.model) == (PARENT, None, None)
            kinds = [one.kind for one in (await rig.operator(ReconcileTree())).findings]
            assert "missing_parent" in kinds

    asyncio.run(play())


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"id": "agt_evil"}, "its identity file names no agent"),
        ({"id": IDS[1].replace("agt", "ses")}, "its identity file names no agent"),
        ({"path": "no path"}, "its identity file names no agent"),
        ({"path": "/bob/agent/hudson/sub/1"}, "it belongs to the user bob"),
        ({"project_root": "/elsewhere"}, "it belongs to the project /elsewhere"),
        ({"path": "/ada/agent/hudson"}, "another agent has the path /ada/agent/hudson"),
        ({"birth_branch": "main"}, "another agent was born on main"),
        ({"workspace": None}, "another agent is called @hudson"),
    ],
)
def test_a_signed_identity_that_clashes_is_offered_with_its_reason(
    stand: Stand, facts: dict[str, Any], reason: str
) -> None:
    stand.write(stand.identity())
    stand.write(stand.identity(1, **facts), "c1")

    async def play() -> None:
        async with stand.open() as rig:
            found = await scan(rig)
            assert (found.registered, found.known) == ((), 1)
            assert [one.reason for one in found.offered] == [reason]
            assert [one.id for one in (await tree(rig, stand)).agents] == [PARENT]
            assert [one.reason for one in (await tree(rig, stand)).orphans] == [reason]
            (difference,) = (await rig.operator(ReconcileTree(fix=True))).findings
            assert (difference.kind, difference.repair, difference.fixed) == (
                "unregistered_agent",
                None,
                False,
            )

    asyncio.run(play())


def test_a_retired_name_may_be_used_again_and_the_retired_agent_is_found_too(stand: Stand) -> None:
    stand.write(stand.identity())
    stand.write(stand.identity(1, retired_at=BORN, workspace="c2"), "c1")
    stand.write(stand.identity(2), "c2")

    async def play() -> None:
        async with stand.open() as rig:
            shown = await tree(rig, stand, retired=True)
            assert [one.lifecycle for one in shown.agents] == ["sleeping", "retired", "sleeping"]

    asyncio.run(play())


def test_an_agent_that_was_retired_meanwhile_stays_retired(stand: Stand) -> None:
    stand.write(stand.identity())
    stand.write(stand.identity(1), "c1")

    async def play() -> None:
        async with stand.open() as rig:
            await rig.operator(RetireAgent(address=IDS[1]))
        async with stand.open() as rig:
            assert (await rig.operator(ShowAgent(address=IDS[1]))).lifecycle is Lifecycle.RETIRED
            assert (await rig.operator(ReconcileTree())).findings == ()
        for file in stand.home.glob("scout.db*"):
            file.unlink()
        async with stand.open() as rig:
            assert (await rig.operator(ShowAgent(address=IDS[1]))).lifecycle is Lifecycle.RETIRED

    asyncio.run(play())


def test_an_agent_may_neither_scan_nor_reconcile(stand: Stand) -> None:
    async def play() -> None:
        async with stand.open() as rig:
            arc = await rig.agent("arc")
            for request in (ScanTree(), ReconcileTree()):
                assert (await expect_refusal(arc.call(request))).code == "forbidden"

    asyncio.run(play())


# -- a disk that does not answer ---------------------------------------------------------------------


class SlowTrees(GitWorkTrees):
    """Work trees on a disk that answers only when it is released."""

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.released = threading.Event()

    def states(self, wanted: Sequence[TreeToCompare], most: int = 20) -> tuple[TreeState, ...]:
        assert self.released.wait(30)
        return tuple(TreeState(path=one.path, branch=one.branch) for one in wanted)


class BrokenTrees(GitWorkTrees):
    def states(self, wanted: Sequence[TreeToCompare], most: int = 20) -> tuple[TreeState, ...]:
        raise GitFailed("git is not installed")


def test_a_tree_on_a_disk_that_does_not_answer_says_what_it_does_not_know(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "_SECONDS", 0.2)
    stand.write(stand.identity())
    stand.write(stand.identity(1), "c1")
    slow = SlowTrees(stand.home / "trees")

    async def play() -> None:
        async with stand.open(stand.ports._replace(work_trees=slow)) as rig:
            for _ in range(4):  # more than there are threads
                shown = await tree(rig, stand)
                assert (len(shown.agents), shown.unread) == (2, 2)
                assert [one.facts for one in shown.agents] == [None, None]
            slow.released.set()
            assert (await tree(rig, stand)).unread == 0

    try:
        asyncio.run(play())
    finally:
        slow.released.set()


def test_a_problem_of_git_is_shown_with_each_agent(stand: Stand) -> None:
    stand.write(stand.identity())

    async def play() -> None:
        async with stand.open(stand.ports._replace(work_trees=BrokenTrees(stand.home / "trees"))) as rig:
            (shown,) = (await tree(rig, stand)).agents
            assert shown.facts is not None
            assert shown.facts.problem == "git is not installed"

    asyncio.run(play())


# -- who sees what -----------------------------------------------------------------------------------


def test_a_family_without_a_project_is_a_tree_too(stand: Stand) -> None:
    async def play() -> None:
        async with stand.open() as rig:
            arc = await rig.agent("arc")
            await arc.call(Send(to="/ada/agent/arc/sub/0", body="begin", create={"name": "helper"}))
            await arc.call(Send(to="/ada/agent/arc/sub/0/sub/0", body="begin", create={}))
            made = await rig.operator(CreateToken(agent="/ada/agent/arc/sub/0/sub/0"))
            rig.tokens["deep"] = made.secret
            shown = await (await rig.agent("deep")).call(ShowTree())
            assert [one.address for one in shown.agents] == [
                "@arc",
                "/ada/agent/arc/sub/0",
                "/ada/agent/arc/sub/0/sub/0",
            ]
            assert [one.here for one in shown.agents] == [False, False, True]
            everybody = await rig.operator(ShowTree(all=True))
            assert len(everybody.agents) == 3

    asyncio.run(play())
