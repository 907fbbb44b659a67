"""Making archives, step by step. Each step can be repeated after a crash.

1. A file is written with the next rows of the log, synced, and then recorded.
2. When the log is archived far enough, a snapshot is written, synced and recorded.
3. The rows leave the log, a few at a time. Only now they are read from the files.
"""

import contextlib
import sqlite3
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import asdict

from scout.base.codec import decode
from scout.base.time import Time
from scout.model.retention.archive import Archive, ArchiveKind, ArchiveState
from scout.store.archive.files import StoredRow, WrittenFile, get_folder, write_rows
from scout.store.database import connect
from scout.store.history.feed import read_mark
from scout.store.log import unpack
from scout.store.redact import overwrite_freed
from scout.store.retention.snapshot import write_snapshot
from scout.store.search import keep_words
from scout.store.table import QUERIES

_SEGMENT = 2 << 20  # bytes of rows in a file, before compression
_MANY = 1 << 40


class ArchiveReach(NamedTuple):
    """How far the log is archived: the newest archive of events, also if it was purged, and the snapshot.

    `purged`: the newest archive whose file was deleted.
    """

    newest: Archive | None
    snapshot: Archive | None
    purged: Archive | None

    @property
    def archived(self) -> int:
        """Return the last archived event; 0 if there is none."""
        return self.newest.last if self.newest is not None else 0

    @property
    def first_left(self) -> int:
        """Return the first event that can be read, in the log or in an archive."""
        return self.purged.last + 1 if self.purged is not None else 1


def find_newest(connection: sqlite3.Connection, kind: ArchiveKind, state: ArchiveState) -> Archive | None:
    """Return the newest archive of a kind in a state."""
    values = {"kind": str(kind), "state": str(state)}
    found = connection.execute(QUERIES["archive_newest"], values).fetchone()
    return decode(found[0], Archive) if found is not None else None


def list_kept(connection: sqlite3.Connection, kind: ArchiveKind = ArchiveKind.EVENTS) -> list[Archive]:
    """Return the archives of a kind whose files are kept, oldest first."""
    values = {"kind": str(kind), "after": 0, "limit": _MANY}
    return [decode(data, Archive) for (data,) in connection.execute(QUERIES["archives_kept"], values)]


def measure_reach(connection: sqlite3.Connection) -> ArchiveReach:
    """Return how far the log is archived."""
    kept = find_newest(connection, ArchiveKind.EVENTS, ArchiveState.KEPT)
    purged = find_newest(connection, ArchiveKind.EVENTS, ArchiveState.PURGED)
    snapshot = find_newest(connection, ArchiveKind.SNAPSHOT, ArchiveState.KEPT)
    return ArchiveReach(kept or purged, snapshot, purged)  # what is purged is older than what is kept


def find_boundary(connection: sqlite3.Connection, until: int) -> int:
    """Return the last event that can be archived: the end of a row that the indexes have followed."""
    (indexed,) = connection.execute("SELECT seq FROM indexed").fetchone()
    followed = min(until, indexed, read_mark(connection) or 0)
    found = connection.execute("SELECT max(seq) FROM events WHERE seq <= ?", (followed,)).fetchone()[0]
    return max(int(found or 0), measure_reach(connection).archived)


def count_rows(connection: sqlite3.Connection, after: int, until: int) -> tuple[int, int]:
    """Return the events and the bytes of the rows after one event and up to another."""
    query = "SELECT sum(seq - first + 1), sum(length(data)) FROM events WHERE seq > ? AND seq <= ?"
    events, size = connection.execute(query, (after, until)).fetchone()
    return int(events or 0), int(size or 0)


# -- files -------------------------------------------------------------------------------------------


def name_file(kind: ArchiveKind, first: int, last: int, revision: int = 1) -> str:
    """Return the name of a file. A rewritten file has another one than before."""
    again = f".{revision}" if revision > 1 else ""
    if kind is ArchiveKind.SNAPSHOT:
        return f"snapshot-{last}{again}.db.gz"
    return f"events-{first}-{last}{again}.jsonl.gz"


def draft_rows(path: Path, after: int, until: int) -> Archive:
    """Write the next rows of the log into a file; there are some. The record is not stored yet."""
    with contextlib.closing(connect(path, readonly=True)) as store:
        rows = _take_rows(store, after, until)
    first, last = rows[0].first, rows[-1].seq
    written = write_rows(get_folder(path), name_file(ArchiveKind.EVENTS, first, last), rows)
    begin, end = _read_time(rows[0], 0), _read_time(rows[-1], -1)
    return _build_draft(ArchiveKind.EVENTS, written, first=first, last=last, since=begin, until=end)


def _take_rows(store: sqlite3.Connection, after: int, until: int) -> list[StoredRow]:
    rows: list[StoredRow] = []
    size = 0
    query = "SELECT seq, first, data FROM events WHERE seq > ? AND seq <= ? ORDER BY seq"
    for row in map(StoredRow._make, store.execute(query, (after, until))):
        rows.append(row)
        size += len(row.data)
        if size >= _SEGMENT:
            break
    return rows


def _read_time(row: StoredRow, place: int) -> Time:
    return unpack(row.first, row.data)[place].time


def draft_snapshot(path: Path, last: Archive, before: Archive | None) -> Archive:
    """Write the tables after the last archived event. The record is not stored yet."""
    name = name_file(ArchiveKind.SNAPSHOT, 1, last.last)
    written = write_snapshot(path, name, last.last, before)
    return _build_draft(
        ArchiveKind.SNAPSHOT, written, first=1, last=last.last, since=last.until, until=last.until
    )


def _build_draft(
    kind: ArchiveKind, written: WrittenFile, *, first: int, last: int, since: Time, until: Time
) -> Archive:
    """Return the record of a new file; who stores it adds an id, the time and a name."""
    span = {"first": first, "last": last, "since": since, "until": until}
    return Archive(id="", created_at=until, updated_at=until, kind=kind, by="", **span, **asdict(written))


# -- the log -----------------------------------------------------------------------------------------


def has_archived_rows(connection: sqlite3.Connection) -> bool:
    """Whether rows are in the log that are archived too."""
    snapshot = find_newest(connection, ArchiveKind.SNAPSHOT, ArchiveState.KEPT)
    if snapshot is None:
        return False
    query = "SELECT EXISTS (SELECT 1 FROM events WHERE seq <= ?)"
    return bool(connection.execute(query, (snapshot.last,)).fetchone()[0])


def take_out_rows(connection: sqlite3.Connection, limit: int) -> int:
    """Take the oldest archived rows out of the log, in the open transaction; return how many.

    Their bytes are overwritten: a later redaction would not find them any more.
    """
    snapshot = find_newest(connection, ArchiveKind.SNAPSHOT, ArchiveState.KEPT)
    until = snapshot.last if snapshot is not None else 0
    query = "SELECT seq, first FROM events WHERE seq <= ? ORDER BY seq LIMIT ?"
    rows: list[tuple[int, int]] = connection.execute(query, (until, limit)).fetchall()
    if rows:
        last = rows[-1][0]
        keep_words(connection, rows[0][1], last)
        with overwrite_freed(connection):
            connection.execute("DELETE FROM events WHERE seq <= ?", (last,))
    return len(rows)
