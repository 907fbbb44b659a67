"""Finishes that run now, and the line of merges into each branch."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, NamedTuple

_KEPT = 1000  # finished tasks whose result a repeated request can still fetch


class MergePlace:
    """A place in the line of one branch. Entering it waits until every earlier place was left."""

    def __init__(self, line: deque["MergePlace"]) -> None:
        self._line = line
        self._moved = asyncio.Event()
        line.append(self)

    @property
    def ahead(self) -> int:
        """Return how many merges come first."""
        return self._line.index(self) if self in self._line else 0

    async def __aenter__(self) -> "MergePlace":
        while self.ahead:
            self._moved.clear()
            await self._moved.wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Leave the line, also without having been first. Leaving twice changes nothing."""
        if self in self._line:
            self._line.remove(self)
            for place in self._line:
                place.tell_moved()

    def tell_moved(self) -> None:
        self._moved.set()


class FinishTask(NamedTuple):
    """A finish that runs or has run: what it does, the key of its request, and where it stands."""

    what: str
    key: str | None
    task: asyncio.Task[Any]
    reason: list[str]


class Merges:
    """Every finish runs as a task here, so that a lost connection does not stop it halfway.

    Merges into one branch are made one at a time, in the order in which their requests arrived.
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], deque[MergePlace]] = {}
        self._running: dict[str, FinishTask] = {}

    def enter(self, root: str, branch: str) -> MergePlace:
        """Take the last place in the line of a branch. It must be left, whatever happens."""
        self._lines = {key: line for key, line in self._lines.items() if line}
        return MergePlace(self._lines.setdefault((root, branch), deque()))

    def find(self, ident: str, key: str | None) -> FinishTask | None:
        """Return the finish of this agent that runs now, or that the same request began before."""
        found = self._running.get(ident)
        if found is not None and found.task.done() and (key is None or found.key != key):
            return None
        return found

    def list_running(self) -> tuple[str, ...]:
        """Return the ids of the finishes that run now."""
        return tuple(ident for ident, one in self._running.items() if not one.task.done())

    def begin(
        self,
        ident: str,
        what: str,
        key: str | None,
        work: Callable[[list[str]], Coroutine[Any, Any, Any]],
    ) -> FinishTask:
        """Start a finish. `work` is given a list whose last text says where it stands."""
        if len(self._running) >= _KEPT:
            self._running = {name: one for name, one in self._running.items() if not one.task.done()}
        reason = [""]
        task = asyncio.get_running_loop().create_task(work(reason))
        task.add_done_callback(_retrieve)
        running = FinishTask(what, key, task, reason)
        self._running[ident] = running
        return running

    async def close(self) -> None:
        """Stop what runs. The journal completes it at the next start."""
        tasks = [one.task for one in self._running.values() if not one.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Take note of a failure that nobody waits for, so that asyncio does not report it."""
    if not task.cancelled():
        task.exception()


async def wait_for(running: FinishTask, seconds: float) -> bool:
    """Wait for the end of a finish; whether it ended in time."""
    done, _ = await asyncio.wait({running.task}, timeout=seconds)
    return bool(done)
