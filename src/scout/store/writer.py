"""One writer, group commit: requests that wait together share one transaction and one sync.

A sync of the disk costs milliseconds, the statements of a request cost a fraction of one. So requests
gather while the sync before them runs, and then share the next: under load the number of syncs stays the
same and the number of requests for each grows.

Statements run on the event-loop thread. Nothing else runs meanwhile, so what a request reads is what it
decides from, and no lock is needed. Only COMMIT runs in a thread. While it runs, nothing may touch the
connection: new requests wait in a queue, and `_drain` is the only task that takes them out of it.

An answer is given after the commit and never before. Callers wait for a future; `committed` is called
in the order of the log, so that what is published is on disk and in order.

What requests append collects in a unit of work, which is written just before COMMIT. A request that is
refused takes its changes back, and the others do not notice. There are no savepoints, since almost no request
fails after its changes were written. When one does, the whole group is rolled back and its requests run one
by one; that is why `work` may run twice and must only touch the store.

Between two groups, nobody writes: there the write-ahead log can be folded to its end, and SQLite begins it
anew. Beside a busy writer a fold never reaches the end, and the log would grow without bound. `fold_soon`
says that it is long.

A group ends after a number of requests or a slice of processor time, whichever is first, because the loop
answers no request while a group runs.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from scout.base.refusal import Refused, Remedy
from scout.model.problems.request import StoreDamaged, StoreFull
from scout.store.archive.rows import ArchivedRows, ArchiveNotLoaded
from scout.store.disk import Fault, classify_error
from scout.store.unit_of_work import UnitOfWork

T = TypeVar("T")
Work = Callable[[UnitOfWork], Any]

# Limits of a group, so that the loop can do its other work: requests, and seconds of processor time.
_GROUP = 256
_SLICE = 0.02


def build_refusal(error: sqlite3.Error, path: str) -> Refused | None:
    """Return an SQLite error about the disk or the file as a refusal; None for any other error."""
    fault = classify_error(error)
    if fault is Fault.FULL:
        return Refused(StoreFull(path=path))
    if fault is Fault.DAMAGED:
        verify = Remedy(operation="verify", parameters={}, why="see what can be read and what is lost")
        return Refused(StoreDamaged(path=path, problems=(str(error),), remedies=(verify,)))
    return None


def fold(connection: sqlite3.Connection) -> int:
    """Copy what is committed from the write-ahead log into the file; return the number of pages in the log.

    It waits for nobody, and nobody waits for it. Pages that are committed meanwhile, and those that a reader
    holds back, are left to the next fold. If all of them are copied, the next write begins the log anew.
    """
    with contextlib.suppress(sqlite3.OperationalError):  # the disk is full: the next fold tries again
        return int(connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1])
    return 0


def describe_damage(refusal: Refused | None) -> str:
    """Return what is wrong with the file, if that is why something was refused; else nothing."""
    diagnostic = refusal.diagnostic if refusal is not None else None
    return "; ".join(diagnostic.problems) if isinstance(diagnostic, StoreDamaged) else ""


class _Request(NamedTuple):
    work: Work
    answer: "asyncio.Future[Any]"
    committed: Callable[[], None]
    failed: Callable[[], None]


class _Outcome(NamedTuple):
    request: _Request
    result: Any = None
    error: BaseException | None = None

    def deliver(self) -> None:
        answer = self.request.answer
        if self.error is None:
            self.request.committed()
        else:
            self.request.failed()
        if answer.cancelled():
            return  # the caller is gone; the commit stays
        if self.error is not None:
            answer.set_exception(self.error)
        else:
            answer.set_result(self.result)


class _Spoilt(Exception):  # noqa: N818 (a signal between two methods)
    """A request failed after it had written: the group cannot be committed."""


class Writer:
    """Runs functions in transactions, in order of arrival, and answers when they are on disk."""

    def __init__(
        self, connection: sqlite3.Connection, path: str, undone: Callable[[], None] = lambda: None
    ) -> None:
        self._connection = connection
        self._unit = UnitOfWork(connection)
        self._path = path
        self._undone = undone
        self._waiting: deque[_Request] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scout-commit")
        self._running: asyncio.Task[None] | None = None
        self._is_long = False  # the write-ahead log
        self.commits = 0
        self.damage = ""  # what SQLite last said about a damaged file

    async def run(
        self,
        work: Callable[[UnitOfWork], T],
        committed: Callable[[], None] = lambda: None,
        failed: Callable[[], None] = lambda: None,
    ) -> T:
        """Return the result of `work` once it is on disk. It may run twice, so it only touches the store.

        `committed` is called once it is on disk, in the order of the log, even if the caller is gone;
        `failed` is called instead if nothing of it is stored. If it needs files of the archive, these are
        loaded in a thread, and it runs again.
        """
        loop = asyncio.get_running_loop()
        held: list[ArchivedRows | None] = []  # a loaded file is found as long as it is held
        while True:
            request = _Request(work, loop.create_future(), committed, failed)
            self._waiting.append(request)
            if self._running is None or self._running.done():
                self._running = loop.create_task(self._drain())
            try:
                return await request.answer
            except ArchiveNotLoaded as needed:
                held.append(await loop.run_in_executor(None, needed.load))

    def fold_soon(self) -> None:
        """Fold the write-ahead log after the next group. It may be called from another thread."""
        self._is_long = True

    async def close(self) -> None:
        """Finish waiting requests, then end the thread."""
        if self._running is not None:
            await self._running
        self._thread.shutdown(wait=True)

    async def _drain(self) -> None:
        while self._waiting:
            group: list[_Request] = []
            try:
                await self._run_group(group)
            except _Spoilt:
                for request in group:
                    await self._run_alone(request)
            if self._is_long:
                self._is_long = False
                await asyncio.get_running_loop().run_in_executor(self._thread, fold, self._connection)

    async def _run_group(self, group: list[_Request]) -> None:
        """Run waiting requests in one transaction, for a slice of time, and add each to `group`."""
        self._begin()
        outcomes: list[_Outcome] = []
        until = time.thread_time() + _SLICE
        while self._waiting and len(group) < _GROUP and (not group or time.thread_time() < until):
            request = self._waiting.popleft()
            group.append(request)
            self._unit.begin_request()
            try:
                outcomes.append(_Outcome(request, self._work(request)))
            except Exception as error:
                if not self._unit.take_back():
                    self._rollback()
                    raise _Spoilt from error
                outcomes.append(_Outcome(request, error=error))  # it changed nothing: the others are fine
        try:
            self._flush()
        except Exception as error:
            self._rollback()
            raise _Spoilt from error
        await self._commit(outcomes)

    async def _run_alone(self, request: _Request) -> None:
        self._begin()
        try:
            outcome = _Outcome(request, self._work(request))
            self._flush()
        except Exception as error:  # noqa: BLE001 (it is given to the caller)
            self._rollback()
            _Outcome(request, error=error).deliver()
            return
        await self._commit([outcome])

    def _rollback(self) -> None:
        self._unit.clear()
        if self._connection.in_transaction:
            self._connection.rollback()
        self._undone()

    def _begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def _work(self, request: _Request) -> Any:
        try:
            return request.work(self._unit)
        except sqlite3.DatabaseError as error:
            raise self._refusal(error) from error

    def _flush(self) -> None:
        """Write what the requests of the group appended."""
        if not self._unit:
            return
        try:
            self._unit.flush()
        except sqlite3.DatabaseError as error:
            raise self._refusal(error) from error

    async def _commit(self, outcomes: list[_Outcome]) -> None:
        """Commit in the thread, and answer only when that has succeeded."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._connection.commit)
            self.commits += 1
        except sqlite3.Error as error:
            self._rollback()
            outcomes = [_Outcome(one.request, error=self._refusal(error)) for one in outcomes]
        for outcome in outcomes:
            outcome.deliver()

    def _refusal(self, error: sqlite3.Error) -> Exception:
        """Return a full disk or a damaged file as a refusal; any other error is a bug and stays as it is."""
        refusal = build_refusal(error, self._path)
        self.damage = describe_damage(refusal) or self.damage
        return refusal or error
