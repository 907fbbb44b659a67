"""Reading archived rows of the log on demand.

The log answers first. If a row is not there, the record of its archive tells which file has it. A file is
read and unpacked whole, and the last few stay in memory.

The event loop reads no files. A transaction that needs a file there ends with `ArchiveNotLoaded`; the broker
loads the file in a thread and runs the transaction again. Files that it holds meanwhile are found here.
"""

import asyncio
import sqlite3
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakValueDictionary

from scout.base.codec import decode
from scout.model.retention.archive import Archive, ArchiveState
from scout.store.archive.files import StoredRow, build_refusal, find_folder, read_rows
from scout.store.table import QUERIES

_RECENT = 8  # files that stay in memory


class ArchivedRows:
    """The rows of one file, in order."""

    def __init__(self, rows: list[StoredRow]) -> None:
        self.rows = rows
        self._seqs = [row.seq for row in rows]

    def find(self, seq: int) -> StoredRow | None:
        """Return the row with an event."""
        place = bisect_left(self._seqs, seq)
        found = self.rows[place] if place < len(self.rows) else None
        return found if found is not None and found.first <= seq else None

    def list_after(self, seq: int) -> list[StoredRow]:
        """Return the rows after an event, with the one that it is in, unless it is its last."""
        return self.rows[bisect_right(self._seqs, seq) :]


class ArchiveNotLoaded(Exception):  # noqa: N818 (it asks for a file; nothing is wrong)
    """The event loop needs a file of the archive. `load` reads it, in a thread."""

    def __init__(self, path: Path, sha256: str) -> None:
        super().__init__(f"{path} is not loaded")
        self._path, self._sha256 = path, sha256

    def load(self) -> ArchivedRows | None:
        """Read the file; None if it was replaced meanwhile. It stays known while the result is held."""
        try:
            return _load(self._path, self._sha256)
        except FileNotFoundError:
            return None


_LOADED: WeakValueDictionary[tuple[str, str], ArchivedRows] = WeakValueDictionary()
_HELD: deque[ArchivedRows] = deque(maxlen=_RECENT)


def _load(path: Path, sha256: str) -> ArchivedRows:
    found = ArchivedRows(read_rows(path, sha256))
    _LOADED[str(path), sha256] = found
    _HELD.append(found)
    return found


def forget_rows() -> None:
    """Drop every file from memory, after one was replaced or deleted."""
    _LOADED.clear()
    _HELD.clear()


def _open(connection: sqlite3.Connection, archive: Archive) -> ArchivedRows:
    path = find_folder(connection) / archive.file
    found = _LOADED.get((str(path), archive.sha256))
    if found is not None:
        return found
    if _is_on_event_loop():
        raise ArchiveNotLoaded(path, archive.sha256)
    try:
        return _load(path, archive.sha256)
    except OSError as error:
        raise build_refusal(path, f"it cannot be read: {error.strerror}") from None


def _is_on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def find_archive(connection: sqlite3.Connection, seq: int) -> Archive | None:
    """Return the archive with an event, also if it was purged."""
    found = connection.execute(QUERIES["archive_of_event"], {"seq": seq}).fetchone()
    return decode(found[0], Archive) if found is not None else None


def find_archived_row(connection: sqlite3.Connection, seq: int) -> StoredRow | None:
    """Return the archived row with an event; None if it was purged or is in no archive."""
    archive = find_archive(connection, seq)
    if archive is None or archive.state is not ArchiveState.KEPT:
        return None
    return _open(connection, archive).find(seq)


def read_archived_rows(connection: sqlite3.Connection, after: int, before: int) -> Iterator[StoredRow]:
    """Return the archived rows after an event, up to those that begin at `before` or later."""
    while (found := connection.execute(QUERIES["archive_after"], {"seq": after}).fetchone()) is not None:
        archive = decode(found[0], Archive)
        for row in _open(connection, archive).list_after(after):
            if row.first >= before:
                return
            yield row
        after = archive.last
