"""Redactions in archives: a file is written again without a message, under another name.

The new file is recorded in the transaction of the redaction. Then the old one is deleted.
"""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from scout.base.time import Time
from scout.model.conversation import Message, redact
from scout.model.flight import Flight
from scout.model.retention.archive import Archive, ArchiveKind
from scout.store.archive.files import StoredRow, WrittenFile, pack_file, read_rows, write_rows
from scout.store.redact import EMPTIED, WITHOUT_OUTPUT, list_outputs
from scout.store.retention.draft import list_kept, name_file
from scout.store.retention.snapshot import DRAFT, drop_draft, open_replay, shrink
from scout.store.table import get_table


class Erasure(NamedTuple):
    """What a redaction takes out: the event of a message, and those with the answer of its flight."""

    message_id: str
    flight_id: str | None
    posted: int
    outputs: tuple[int, ...]
    at: Time


class Rewritten(NamedTuple):
    """An archive and its new file."""

    archive: Archive
    written: WrittenFile


def plan_erasure(connection: sqlite3.Connection, message_id: str, now: Time) -> Erasure | None:
    """Return what a redaction takes out; None if there is no such message."""
    message: Message | None = get_table(Message).get(connection, message_id)
    if message is None:
        return None
    outputs = tuple(list_outputs(connection, message))
    return Erasure(message.id, message.flight_id if outputs else None, message.seq, outputs, now)


def find_files(connection: sqlite3.Connection, erasure: Erasure) -> list[Archive]:
    """Return the archives that a redaction concerns."""
    seqs = (erasure.posted, *erasure.outputs)
    rows = [one for one in list_kept(connection) if any(one.first <= seq <= one.last for seq in seqs)]
    tables = list_kept(connection, ArchiveKind.SNAPSHOT)
    return [*rows, *(one for one in tables if any(seq <= one.last for seq in seqs))]


def rewrite_files(
    folder: Path, archives: Iterable[Archive], erasures: Sequence[Erasure]
) -> Iterator[Rewritten]:
    """Write the files again that still have something to take out."""
    for archive in archives:
        again = _rewrite_snapshot if archive.kind is ArchiveKind.SNAPSHOT else _rewrite_rows
        written = again(folder, archive, erasures)
        if written is not None:
            yield Rewritten(archive, written)


def _choose_name(archive: Archive) -> str:
    return name_file(archive.kind, archive.first, archive.last, archive.revision + 1)


# -- rows of the log ---------------------------------------------------------------------------------


def _rewrite_rows(folder: Path, archive: Archive, erasures: Sequence[Erasure]) -> WrittenFile | None:
    before = read_rows(folder / archive.file, archive.sha256)
    with contextlib.closing(sqlite3.connect(":memory:")) as scratch:
        after = [_erase(scratch, row, erasures) for row in before]
    return write_rows(folder, _choose_name(archive), after) if after != before else None


def _erase(scratch: sqlite3.Connection, row: StoredRow, erasures: Sequence[Erasure]) -> StoredRow:
    for one in erasures:
        for seq, emptied in ((one.posted, EMPTIED), *((seq, WITHOUT_OUTPUT) for seq in one.outputs)):
            if row.first <= seq <= row.seq:
                query = f"SELECT {emptied} FROM (SELECT :data AS data, :first AS first)"
                values = {"seq": seq, "data": row.data, "first": row.first}
                row = row._replace(data=scratch.execute(query, values).fetchone()[0])
    return row


# -- the snapshot ------------------------------------------------------------------------------------


def _rewrite_snapshot(folder: Path, archive: Archive, erasures: Sequence[Erasure]) -> WrittenFile | None:
    name = _choose_name(archive)
    draft = folder / f"{name}{DRAFT}"
    drop_draft(draft)
    try:
        with contextlib.closing(open_replay(folder, archive, draft)) as copy:
            found = [_erase_records(copy, one) for one in erasures]
            shrink(copy)
        return pack_file(folder, name, draft) if any(found) else None
    finally:
        drop_draft(draft)


def _erase_records(copy: sqlite3.Connection, erasure: Erasure) -> bool:
    """Empty the message and the answer; whether there was one."""
    messages, flights = get_table(Message), get_table(Flight)
    message: Message | None = messages.get(copy, erasure.message_id)
    flight: Flight | None = flights.get(copy, erasure.flight_id) if erasure.flight_id else None
    if message is not None and message.redacted_at is None:
        messages.write(copy, redact(message, erasure.at))
    if flight is not None and flight.output:
        flights.write(copy, replace(flight, output=""))
    return bool(message and message.redacted_at is None) or bool(flight and flight.output)
