"""Nothing is ever lost, with a real daemon that is killed with kill -9 at any step (see `tests.stories.tree_work`)."""

import os
import random
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from scout import BlockingScout
from scout.base.refusal import Refused
from scout.daemon.start import start, stop
from scout.model.events.envelope import Event
from scout.protocol.agents import ShowAgent
from scout.protocol.log import ReadLog
from scout.protocol.tree.finish import FinishAgent
from scout.protocol.tree.spawn import SpawnAgents
from tests.cli.running import plain_environment
from tests.daemon.daemons import eventually
from tests.seeds import run_seed
from tests.soak import Soaked
from tests.stories.kill_points import TracedWrites, is_dead, kill
from tests.stories.spawning import PausedGit
from tests.stories.tree_work import CHOICES, TreeWork

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class DaemonWork(TreeWork):
    """The daemon is a process, and the person a client of it.

    A kill happens before the git command of a number, or before a write of the daemon to its store or journal.
    """

    def open_scout(self) -> None:
        self.data = self.home / "data"
        self.data.mkdir(mode=0o700)
        (self.data / "config.toml").write_text(f"roots = ['{self.home}']\n")
        self.paused = PausedGit(self.home / "git")
        self.pool = ThreadPoolExecutor(1)
        self.kills = 0
        self._start()

    def _start(self) -> None:
        environ = {**plain_environment(self.data), "HOME": str(self.home), "PATH": self.paused.path}
        self.pid = start(str(self.data), environ=environ, timeout=60)[0].pid
        self.scout = BlockingScout(home=self.data, directory=self.root)

    def close_scout(self) -> None:
        self.scout.close()
        self.pool.shutdown()
        stop(str(self.data), timeout=60)

    def call(self, request: Any) -> Any:
        try:
            return self.scout.call(request)
        except Refused:
            return None

    def read_log(self) -> Iterable[Event]:
        after, found = 0, list[Event]()
        while True:
            page = self.scout.call(ReadLog(after=after, family="collab.agent", limit=200))
            found += page.items
            if page.next is None:
                return found
            after = int(page.next)

    # -- kill -9 -----------------------------------------------------------------------------------

    def kill_a_finish(self, child: tuple[str, Path], choice: dict[str, Any], point: tuple[str, int]) -> None:
        self._kill(FinishAgent(address=child[0], **choice), point)

    def kill_a_spawn(self, point: tuple[str, int]) -> list[tuple[str, Path]]:
        """The child, if it is there afterwards."""
        slug = self.next()
        self._kill(SpawnAgents(slugs=(slug,), harness="echo"), point)
        made = self.call(ShowAgent(address=f"branch:main.{slug}"))
        return [(made.id, Path(made.working_dir or ""))] if made is not None else []

    def _kill(self, request: Any, point: tuple[str, int]) -> None:
        """Make a request, kill the daemon at this point of it if it comes to that, and start it again."""
        kind, step = point
        (self._kill_at_git if kind == "git" else self._kill_at_write)(request, step)
        if is_dead(self.pid):
            self.kills += 1
            self.scout.close()
            self._start()

    def _kill_at_git(self, request: Any, step: int) -> None:
        (self.paused.folder / "reached").unlink(missing_ok=True)
        self.paused.arm(step)
        asked = self.pool.submit(self.call, request)
        eventually(lambda: self.paused.reached or asked.done(), 120)
        self.paused.disarm()
        if stopped := self.paused.reached:
            kill(self.pid)
            os.kill(stopped, signal.SIGKILL)
        asked.result(60)

    def _kill_at_write(self, request: Any, step: int) -> None:
        journal = self.data / "trees" / "journal"
        writes = TracedWrites(self.home / "strace", (self.data / "scout.db-wal", journal))
        writes.begin(self.pid, kill_at=step)
        asked: Future[Any] = self.pool.submit(self.call, request)
        eventually(lambda: is_dead(self.pid) or asked.done(), 120)
        writes.end()
        asked.result(60)


def walk(seed: int, steps: int) -> int:
    """Random moves from this seed, a third of them kills; how often the daemon was killed."""
    chance, work = random.Random(seed), DaemonWork()
    try:
        children = [work.make_child(deep) for deep in (False, True)]
        for child in children:
            work.write_commit(child)
            work.write_file(child)
        for _ in range(steps):
            move(work, children, chance)
            check(work)
        work.reconcile(fix=True)
        check(work)
        return work.kills
    finally:
        work.teardown()


def move(work: DaemonWork, children: list[tuple[str, Path]], chance: random.Random) -> None:
    """One move, of an agent or a person, or a kill in the middle of one."""
    child, point = chance.choice(children), (chance.choice(("git", "write")), chance.randrange(50))
    ends, damage = chance.choice(CHOICES[:3]), chance.choice(("", "{}", None))
    moves: list[Callable[[], object]] = [
        *[lambda: work.kill_a_finish(child, ends, point)] * 3,
        lambda: children.extend(work.kill_a_spawn(point)),
        lambda: work.finish(child, chance.choice(CHOICES)),
        lambda: work.write_file(child),
        lambda: work.write_commit(child),
        work.write_commit_of_the_parent,
        lambda: work.damage_identity(child, damage),
        lambda: work.remove_folder(child),
        lambda: work.reconcile(fix=True),
        lambda: work.revive(child),
        work.finish_all_that_is_done,
    ]
    chance.choice(moves)()


def check(work: DaemonWork) -> None:
    work.every_commit_exists()
    work.every_file_exists()


@pytest.mark.rows("R10.6-10", "R1.5-33")
@pytest.mark.parametrize("number", range(2))
def test_nothing_is_lost_to_a_kill(number: int) -> None:
    assert walk(run_seed() + number, 12) > 0


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_nothing_is_lost_to_many_kills(soaked: Soaked) -> None:
    soaked(kills=sum(walk(run_seed() + 100 + number, 25) for number in range(20)), walks=20)
