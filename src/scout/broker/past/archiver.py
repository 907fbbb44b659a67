"""The archiver: moves old rows of the log into files, and changes these files for redactions and purges.

One run at a time makes files. Each file is written in a thread, synced, and then recorded; rows leave the log
only after a snapshot is recorded too. So a run that was killed leaves files that no record names, which the
next run deletes, or rows that are archived and still in the log, which it takes out.

A redaction may come while a file is being written from rows that still had the message. It is noted, and the
message is taken out of the file before the file is recorded. `_files` keeps these two from overlapping.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from scout.base.time import Time
from scout.broker.transaction.transaction import ReadLedger, Transaction, WriteAsBroker
from scout.model.events.archives import ArchiveCreated, ArchivePurged, ArchiveReplaced, ArchiveRewritten
from scout.model.retention.archive import (
    Archive,
    ArchiveKind,
    ArchiveMove,
    ArchiveState,
    purge_archive,
    replace_snapshot,
    rewrite_archive,
)
from scout.policy.retention import choose_purged
from scout.store.archive.files import get_folder, remove_others
from scout.store.archive.rows import forget_rows
from scout.store.history.moments import find_seq
from scout.store.ledger import Ledger
from scout.store.retention.draft import (
    draft_rows,
    draft_snapshot,
    find_boundary,
    find_newest,
    has_archived_rows,
    list_kept,
    measure_reach,
    take_out_rows,
)
from scout.store.retention.erase import Erasure, Rewritten, find_files, plan_erasure, rewrite_files

_LOG = logging.getLogger("scout.archive")
_ROWS = 64  # rows that leave the log in one transaction
T = TypeVar("T")
RecordFiles = Callable[[list[Rewritten]], Awaitable[T]]


class Archiver:
    """Changes the files of the archive and their records."""

    def __init__(self, path: Path, read: ReadLedger, write: WriteAsBroker) -> None:
        self._path = path
        self._read = read
        self._write = write
        self._runs = asyncio.Lock()
        self._files = asyncio.Lock()
        self._erasures: list[Erasure] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """Stop. What was not finished is finished by the next run."""
        for task in list(self._tasks):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def wait(self) -> None:
        """Wait until nothing runs."""
        await asyncio.gather(*self._tasks)

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work to its end, also if the caller is gone: its threads write files."""
        return await asyncio.shield(self._start(work))

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- archiving ---------------------------------------------------------------------------------

    async def archive(self, write: WriteAsBroker, until: int) -> list[Archive]:
        """Archive the log up to an event; return the files that were made."""
        return await self._finish(self._archive(write, until))

    async def _archive(self, write: WriteAsBroker, until: int) -> list[Archive]:
        async with self._runs:
            await self._remove_leftovers()
            made = await self._write_files(write, until)
            await self._write_snapshot(write)
            await self._take_out_rows()
            await self._remove_leftovers()
        return made

    async def _write_files(self, write: WriteAsBroker, until: int) -> list[Archive]:
        boundary = await self._read(lambda ledger: find_boundary(ledger.connection, until))
        after = await self._read(lambda ledger: measure_reach(ledger.connection).archived)
        made: list[Archive] = []
        while after < boundary:
            made.append(await self._record(write, partial(draft_rows, self._path, after, boundary)))
            after = made[-1].last
        return made

    async def _write_snapshot(self, write: WriteAsBroker) -> None:
        """Write a snapshot after the last archived event, unless there is one."""
        reach = await self._read(lambda ledger: measure_reach(ledger.connection))
        last, before = reach.newest, reach.snapshot
        if last is not None and (before is None or before.last < last.last):
            await self._record(write, partial(draft_snapshot, self._path, last, before))

    async def _record(self, write: WriteAsBroker, make: Callable[[], Archive]) -> Archive:
        """Write a file and record it, without what is redacted meanwhile."""
        async with self._files:  # a redaction that has begun is stored before the rows are read
            self._erasures = []
        draft = await asyncio.to_thread(make)
        async with self._files:
            for done in await asyncio.to_thread(self._rewrite, [draft], self._erasures):
                draft = replace(draft, revision=2, **asdict(done.written))
            return await write(lambda tx: _record_archive(tx, draft))

    async def _take_out_rows(self) -> None:
        """Take archived rows out of the log, a few in each transaction, so that requests do not wait."""
        while await self._read(lambda ledger: has_archived_rows(ledger.connection)):
            await self._write(lambda tx: take_out_rows(tx.ledger.connection, _ROWS))

    async def _remove_leftovers(self) -> None:
        """Delete files that no record names: an interrupted run, redaction or purge has left them."""
        async with self._files:
            await self._remove_unnamed()

    async def _remove_unnamed(self) -> None:
        kept = await self._read(lambda ledger: [one.file for one in _list_all(ledger)])
        folder = get_folder(self._path)
        for name in await asyncio.to_thread(lambda: list(remove_others(folder, kept))):
            _LOG.info("deleted %s, which no record names", name)

    def archive_by_age(self, before: Time | None) -> None:
        """Start a run for what is older than a moment, unless one is running; None: only finish a run."""
        if not self._tasks:
            self._start(self._archive_by_age(before))

    async def _archive_by_age(self, before: Time | None) -> None:
        try:
            async with self._runs:
                await self._remove_leftovers()
            until = await self._read(lambda ledger: _find_due(ledger, before))
            if until is not None:
                await self._archive(self._write, until)
        except Exception:  # noqa: BLE001 (it is logged; the next check tries again)
            _LOG.exception("archiving by age")

    # -- redaction -----------------------------------------------------------------------------------

    async def redact(self, message_id: str, now: Time, write: RecordFiles[T]) -> T:
        """Take a message out of the archives. `write` redacts it in the store and records the new files."""
        return await self._finish(self._redact(message_id, now, write))

    async def _redact(self, message_id: str, now: Time, write: RecordFiles[T]) -> T:
        async with self._files:
            erasure = await self._read(lambda ledger: plan_erasure(ledger.connection, message_id, now))
            done: list[Rewritten] = []
            if erasure is not None:
                found = erasure
                concerned = await self._read(lambda ledger: find_files(ledger.connection, found))
                done = await asyncio.to_thread(self._rewrite, concerned, [erasure])
                self._erasures.append(erasure)
            answer = await write(done)
            await asyncio.to_thread(self._delete, [one.archive.file for one in done])
            if not self._runs.locked():  # else these may be files that a run has not recorded yet
                await self._remove_unnamed()
        return answer

    def _rewrite(self, archives: Sequence[Archive], erasures: Sequence[Erasure]) -> list[Rewritten]:
        if not erasures:
            return []
        return list(rewrite_files(get_folder(self._path), archives, erasures))

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            (get_folder(self._path) / name).unlink(missing_ok=True)
        forget_rows()

    # -- purging -------------------------------------------------------------------------------------

    async def purge(self, write: WriteAsBroker, before: Time | None) -> list[Archive]:
        """Delete the archives before a moment, or all; return what they were."""
        return await self._finish(self._purge(write, before))

    async def _purge(self, write: WriteAsBroker, before: Time | None) -> list[Archive]:
        async with self._runs:
            await self._take_out_rows()
            async with self._files:
                purged = await write(lambda tx: _record_purge(tx, before))
                await asyncio.to_thread(self._delete, [one.file for one in purged])
        return purged


# -- records -------------------------------------------------------------------------------------------


def _list_all(ledger: Ledger) -> list[Archive]:
    connection = ledger.connection
    return [*list_kept(connection), *list_kept(connection, ArchiveKind.SNAPSHOT)]


def _find_due(ledger: Ledger, before: Time | None) -> int | None:
    """Return the event up to which the log is to be archived; None if there is nothing to do."""
    connection, reach = ledger.connection, measure_reach(ledger.connection)
    until = find_boundary(connection, find_seq(connection, before) if before is not None else 0)
    last = reach.snapshot.last if reach.snapshot is not None else 0
    return until if until > last or has_archived_rows(connection) else None


def _record_archive(tx: Transaction, draft: Archive) -> Archive:
    """Record a new file. A new snapshot takes the place of the one before."""
    kind = draft.kind
    before = find_newest(tx.ledger.connection, kind, ArchiveState.KEPT)
    fresh = replace(draft, id=tx.mint("arc"), created_at=tx.now, updated_at=tx.now, by=tx.sender)
    tx.record(ArchiveCreated, fresh)
    if kind is ArchiveKind.SNAPSHOT and before is not None:
        tx.record(ArchiveReplaced, replace_snapshot(before, tx.now), move=ArchiveMove.REPLACE)
    return fresh


def record_rewritten(tx: Transaction, done: Sequence[Rewritten]) -> None:
    """Record the new files of archives."""
    for one in done:
        fresh = rewrite_archive(one.archive, tx.now, **asdict(one.written))
        tx.record(ArchiveRewritten, fresh, move=ArchiveMove.REWRITE)


def _record_purge(tx: Transaction, before: Time | None) -> list[Archive]:
    chosen = choose_purged(list_kept(tx.ledger.connection), before)
    for one in chosen:
        tx.record(ArchivePurged, purge_archive(one, tx.now, tx.sender), move=ArchiveMove.PURGE)
    return list(chosen)
