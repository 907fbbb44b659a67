"""Redactions in copies of the store: what was removed from the store is removed from a backup too."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import asdict, replace

from scout.base.ids import derive_id
from scout.model.conversation import Message
from scout.model.events.archives import ArchiveRewritten
from scout.model.events.envelope import Changed
from scout.model.events.event_types import get_event_type
from scout.model.events.talk import MessageRedacted
from scout.model.ref import Ref
from scout.model.retention.archive import ArchiveMove, rewrite_archive
from scout.store.archive.files import find_folder
from scout.store.archive.rows import forget_rows
from scout.store.database import connect, empty_log
from scout.store.log import read_last_seq, read_stored_rows, unpack
from scout.store.migrate import migrate
from scout.store.redact import redact
from scout.store.retention.copies import return_archives, take_archives
from scout.store.retention.erase import Rewritten, find_files, plan_erasure, rewrite_files
from scout.store.search import index_events, is_behind
from scout.store.table import get_table
from scout.store.unit_of_work import append

_REDACTING = get_event_type(MessageRedacted).encode()
_STEP = 1000  # rows of the log


def read_redactions(path: Path) -> list[MessageRedacted]:
    """Return the redactions in a store, oldest first."""
    with contextlib.closing(connect(path, readonly=True)) as store:
        return list(_list_redactions(store))


def _list_redactions(store: sqlite3.Connection) -> Iterator[MessageRedacted]:
    for row in read_stored_rows(store, 0):
        if _REDACTING in row.data:
            yield from (one for one in unpack(row.first, row.data) if isinstance(one, MessageRedacted))


def apply_redactions(redactions: list[MessageRedacted], path: Path) -> int:
    """Remove the same messages from a copy; return how many it still had. It gets the schema of today.

    The archives of the copy are in its folder, as `take_archives` puts them there.
    """
    if not redactions:
        return 0
    with contextlib.closing(connect(path)) as copy:
        migrate(copy, keeps_copy=False)  # a copy beside it would still have the messages
        copy.execute("BEGIN IMMEDIATE")
        done = sum(_apply_redaction(copy, one) for one in redactions)
        copy.execute("COMMIT")
        while is_behind(copy):  # the words leave the search index step by step
            index_events(copy, _STEP)
        empty_log(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    return done


def redact_backup(redactions: list[MessageRedacted], path: Path) -> int:
    """Remove messages from a backup, also from the archives in it; return how many it still had."""
    take_archives(path)
    try:
        return apply_redactions(redactions, path)
    finally:
        return_archives(path)


def _apply_redaction(copy: sqlite3.Connection, redaction: MessageRedacted) -> bool:
    known: Message | None = get_table(Message).get(copy, redaction.payload.record.id)
    erasure = plan_erasure(copy, redaction.payload.record.id, redaction.time)
    if known is None or erasure is None or known.redacted_at is not None:
        return False
    files = find_files(copy, erasure)
    gone = redact(copy, known.id, redaction.time)
    payload = replace(redaction.payload, record=gone.message)
    append(copy, replace(redaction, seq=read_last_seq(copy) + 1, payload=payload))
    for one in rewrite_files(find_folder(copy), files, [erasure]):
        _record_file(copy, redaction, one)
    forget_rows()
    return True


def _record_file(copy: sqlite3.Connection, redaction: MessageRedacted, done: Rewritten) -> None:
    """Record the new file of an archive, and delete the old one."""
    fresh = rewrite_archive(done.archive, redaction.time, **asdict(done.written))
    rewritten = ArchiveRewritten(
        id=derive_id("evt", redaction.id, fresh.file),
        seq=read_last_seq(copy) + 1,
        time=redaction.time,
        source=redaction.source,
        target=Ref.to(fresh.id),
        payload=Changed(record=fresh, move=ArchiveMove.REWRITE, by=redaction.payload.by),
    )
    append(copy, rewritten)
    (find_folder(copy) / done.archive.file).unlink(missing_ok=True)
