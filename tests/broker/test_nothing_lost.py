"""Nothing is ever lost: whatever is spawned, written, finished and interrupted, every file and commit is found.

Random sequences in a real repository. A commit or an uncommitted file is still where it was made, in the history
of a branch, or in the log: discarded by a named reason, in a commit that git still has.
"""

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from scout.base.refusal import Refused
from scout.model.events.presence import AgentRetired
from scout.ports import GitFailed
from scout.protocol.agents import ReviveAgent
from scout.protocol.finish import FinishAgent, FinishDone
from scout.protocol.tree import SpawnAgents, SpawnRole
from scout.tree.tree_ports import tree_ports
from tests.broker.rig import Rig, open_rig, read_log
from tests.tree.repositories import KEY, commit, git, repository

T = TypeVar("T")
REASON = "the property says so"
CHOICES: tuple[dict[str, Any], ...] = (
    {"merge": True, "ask": False},
    {"keep": True},
    {"discard": True, "reason": REASON},
    {"discard": True},
    {},
)


class Work(RuleBasedStateMachine):
    """A repository, its agents, and a list of everything that anybody wrote."""

    children = Bundle("children")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="sct-")
        self.home = Path(self.folder.name).resolve()
        self.root = repository(self.home / "home" / "arc")
        self.loop = asyncio.new_event_loop()
        self.number = 0
        self.commits: set[str] = set()
        self.files: list[tuple[Path, str]] = []  # what is not committed, with its text
        self._open()

    # -- the broker ------------------------------------------------------------------------------

    def _open(self) -> None:
        self.manager = open_rig(self.home, trees=tree_ports(self.home, KEY), roots=(str(self.home),))
        self.rig: Rig = self.run(self.manager.__aenter__())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        self.run(self.manager.__aexit__(None, None, None))
        self.loop.close()
        self.folder.cleanup()

    def call(self, request: Any) -> Any:
        """A request of the person in the project; None if it is refused."""

        async def ask() -> Any:
            try:
                return await (await self.rig.scout(directory=str(self.root))).call(request)
            except Refused:
                return None

        return self.run(ask())

    def next(self) -> str:
        self.number += 1
        return f"n{self.number}"

    # -- what people and agents do -----------------------------------------------------------------

    @rule(target=children, deep=st.booleans())
    def spawn(self, deep: bool) -> tuple[str, Path]:
        made = self.call(SpawnAgents(slugs=(self.next(),), harness="echo", role=SpawnRole.TL))
        child = made.agents[0]
        if deep:
            below = self.call(SpawnAgents(slugs=(self.next(),), from_=child.path, harness="echo"))
            child = below.agents[0] if below is not None else child
        return child.agent.id, Path(child.working_dir or "")

    @rule(child=children)
    def write_commit(self, child: tuple[str, Path]) -> None:
        self._commit(child[1])

    @rule()
    def write_commit_of_the_parent(self) -> None:
        self._commit(self.root)

    def _commit(self, tree: Path) -> None:
        if tree.exists():
            self.commits.add(commit(tree, "shared.txt", f"{self.next()}\n"))
            self.files = [one for one in self.files if one[0].parent != tree]  # they are in the commit

    @rule(child=children)
    def write_file(self, child: tuple[str, Path]) -> None:
        if child[1].exists():
            text = self.next()
            path = child[1] / f"{text}.txt"
            path.write_text(text)
            self.files.append((path, text))

    @rule(child=children, choice=st.sampled_from(CHOICES))
    def finish(self, child: tuple[str, Path], choice: dict[str, Any]) -> None:
        self.call(FinishAgent(address=child[0], **choice))

    @rule(
        child=children,
        choice=st.sampled_from(CHOICES[:3]),
        step=st.sampled_from(
            ("merge", "save_uncommitted", "remove", "delete_branch", "state", "find_commit")
        ),
    )
    def crash(self, child: tuple[str, Path], choice: dict[str, Any], step: str) -> None:
        """Git fails at a step of a finish, and Scout starts again."""
        trees = self.rig.broker.services.trees
        assert trees is not None

        def fail(*_: Any) -> None:
            raise GitFailed(f"{step} was interrupted")

        class Broken:
            def __getattr__(self, name: str) -> Any:
                return fail if name == step else getattr(trees.work_trees, name)

        broken: Any = Broken()
        self.rig.broker.services.trees = trees._replace(work_trees=broken)
        self.call(FinishAgent(address=child[0], **choice))
        self.run(self.manager.__aexit__(None, None, None))
        self._open()

    @rule(child=consumes(children))
    def revive(self, child: tuple[str, Path]) -> None:
        self.call(ReviveAgent(address=child[0]))

    @rule()
    def finish_all_that_is_done(self) -> None:
        self.call(FinishDone(ask=False))

    # -- nothing is lost ---------------------------------------------------------------------------

    @invariant()
    def every_commit_exists(self) -> None:
        for one in self.commits:
            assert git(self.root, "cat-file", "-t", one) == "commit"
        reached = set(git(self.root, "rev-list", "--branches", *self._discarded()).split())
        assert self.commits <= reached

    @invariant()
    def every_file_exists(self) -> None:
        gone = [path.name for path, text in self.files if not path.exists() or path.read_text() != text]
        trees = [git(self.root, "ls-tree", "--name-only", "-r", one).split() for one in self._discarded()]
        assert not [name for name in gone if not any(name in tree for tree in trees)]

    def _discarded(self) -> list[str]:
        """The commits that the log names as discarded by this reason."""
        log = self.run(read_log(self.rig))
        retired = [one for one in log if isinstance(one, AgentRetired) and REASON in one.payload.reason]
        found = [one.metadata.finished for one in retired if one.metadata.finished is not None]
        return [name for one in found for name in (one.commit, one.saved) if name is not None]


class LongWork(Work):
    """The same, for long."""


TestNothingIsEverLost = pytest.mark.slow(pytest.mark.timeout(600)(Work.TestCase))
TestNothingIsEverLost.settings = settings(max_examples=4, stateful_step_count=12, deadline=None)
TestNothingIsLostForLong = pytest.mark.soak(pytest.mark.timeout(7200)(LongWork.TestCase))
TestNothingIsLostForLong.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
