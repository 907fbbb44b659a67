"""Nothing is ever lost, with a broker in this process whose git fails at a step (see `tests.stories.tree_work`)."""

import asyncio
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from scout.base.refusal import Refused
from scout.model.events.envelope import Event
from scout.ports import GitFailed
from scout.protocol.tree.finish import FinishAgent
from scout.tree.tree_ports import build_tree_ports
from tests.broker.rig import Rig, open_rig, read_log
from tests.stories.tree_work import CHOICES, TreeWork
from tests.tree.repositories import KEY

T = TypeVar("T")
STEPS = ("merge", "save_uncommitted", "remove", "delete_branch", "state", "find_commit", "restore_missing")


class Work(TreeWork):
    """The broker lives in this process."""

    def open_scout(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._open()

    def _open(self) -> None:
        self.manager = open_rig(self.home, trees=build_tree_ports(self.home, KEY), roots=(str(self.home),))
        self.rig: Rig = self.run(self.manager.__aenter__())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def close_scout(self) -> None:
        self.run(self.manager.__aexit__(None, None, None))
        self.loop.close()

    def call(self, request: Any) -> Any:
        async def ask() -> Any:
            try:
                return await (await self.rig.scout(directory=str(self.root))).call(request)
            except Refused:
                return None

        return self.run(ask())

    def read_log(self) -> Iterable[Event]:
        return self.run(read_log(self.rig, "collab.agent"))

    @rule(
        child=TreeWork.children,
        choice=st.sampled_from(CHOICES[:3]),
        step=st.sampled_from(STEPS),
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


class LongWork(Work):
    """The same, for long."""


TestNothingIsEverLost = pytest.mark.slow(pytest.mark.timeout(600)(Work.TestCase))
TestNothingIsEverLost.settings = settings(max_examples=12, stateful_step_count=15, deadline=None)
TestNothingIsLostForLong = pytest.mark.soak(pytest.mark.timeout(7200)(LongWork.TestCase))
TestNothingIsLostForLong.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
