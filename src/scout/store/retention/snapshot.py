"""The snapshot: every table that follows from the log, as it was after the last archived event.

It is made by replay, from the snapshot before it, and never copied from the tables: so a fault in a table is
still found after its events are archived.
"""

import contextlib
import sqlite3
from pathlib import Path

from scout.model.retention.archive import Archive
from scout.store.archive.files import WrittenFile, get_folder, pack_file, unpack_file
from scout.store.database import connect
from scout.store.migrate import migrate
from scout.store.replay import replay_history, replay_log

DRAFT = ".draft"


def write_snapshot(path: Path, name: str, until: int, before: Archive | None) -> WrittenFile:
    """Write the tables after the event `until` of a store, starting with the snapshot before."""
    folder = get_folder(path)
    folder.mkdir(mode=0o700, exist_ok=True)
    draft = folder / f"{name}{DRAFT}"
    drop_draft(draft)
    try:
        with contextlib.closing(connect(path, readonly=True)) as store:
            store.execute("BEGIN")
            with contextlib.closing(open_replay(folder, before, draft)) as copy:
                after = before.last if before is not None else 0
                replay_log(store, copy, after, until)
                replay_history(store, copy, after, until)
                shrink(copy)
        return pack_file(folder, name, draft)
    finally:
        drop_draft(draft)


def open_replay(folder: Path, snapshot: Archive | None, target: Path) -> sqlite3.Connection:
    """Return a new file to replay into: empty, or with the content of a snapshot."""
    if snapshot is not None:
        unpack_file(folder / snapshot.file, snapshot.sha256, target)
    copy = connect(target)
    target.chmod(0o600)
    copy.execute("PRAGMA synchronous = OFF")  # a temporary file
    migrate(copy, keeps_copy=False)
    return copy


def shrink(copy: sqlite3.Connection) -> None:
    """Make one small file of it, without what was deleted."""
    copy.execute("VACUUM")
    copy.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    copy.execute("PRAGMA journal_mode = DELETE").fetchall()


def drop_draft(draft: Path) -> None:
    """Delete a temporary file and SQLite's files beside it."""
    for ending in ("", "-journal", "-wal", "-shm"):
        draft.with_name(f"{draft.name}{ending}").unlink(missing_ok=True)
