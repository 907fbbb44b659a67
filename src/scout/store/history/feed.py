"""Feeding the history: what events say about the states of records, written behind the log.

The log is read and compared with the history on a reader, in steps of a few hundred events. Only the rows
that follow from them are written in a transaction, together with the mark. So a step is stored whole or not
at all, and the next one continues from the mark. A history without a mark, or with one beyond the log, is
built anew.
"""

import itertools
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, get_args

import msgspec

from scout.base.intervals import find_fork
from scout.base.record import Record
from scout.base.time import Time
from scout.model.events.envelope import get_record
from scout.model.events.event_types import ALL, UPCASTS, get_event_type
from scout.model.history import FOLLOWED, list_parties
from scout.store.log import StoredRow, read_last_seq, read_stored_rows, unpack
from scout.store.touched import list_entries, outline, store_entries

# The tables and their columns, in the order of their keys.
HISTORY_TABLES = {
    "history_records": ("record", "id", "kind", "state", "entered"),
    "history_versions": ("record", "seq", "state"),
    "history_spans": ("kind", "state", "fork", "last", "entered", "record"),
    "history_parties": ("party", "kind", "record"),
    "history_moments": ("tenth", "seq"),
    "touched": ("key", "seq"),
}
FAR_BEHIND = 8000  # events: more than a request waits for
_TENTH = 100  # milliseconds
_REBUILD = -1
_UPSERT = (
    "INSERT INTO history_records VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (record) DO UPDATE SET state = excluded.state, entered = excluded.entered"
)


def _list_followed_types() -> Iterator[str]:
    """Yield the types of events whose records are followed. A renamed type may have been one of them."""
    for kind in ALL:
        (payload,) = [field.type for field in msgspec.structs.fields(kind) if field.name == "payload"]
        if FOLLOWED.keys() & {payload, *get_args(payload)}:
            yield get_event_type(kind)
    yield from (name for name, _ in UPCASTS)


_FOLLOWED = frozenset(_list_followed_types())


class CurrentSpan(NamedTuple):
    """The state that a record is in, since the event `entered`. `record`: the number of its first event."""

    record: int
    id: str
    kind: str
    state: str
    entered: int


class ClosedSpan(NamedTuple):
    """A state that a record has left, from its first event to its last."""

    kind: str
    state: str
    fork: int
    last: int
    entered: int
    record: int


class Batch(NamedTuple):
    """The rows that follow from the events after `after`, up to `last`."""

    after: int
    last: int
    records: Sequence[CurrentSpan]
    versions: Sequence[tuple[int, int, str]]
    spans: Sequence[ClosedSpan]
    parties: Sequence[tuple[str, str, int]]
    moments: Sequence[tuple[int, int]]
    touched: Sequence[tuple[str, int]]


def read_mark(connection: sqlite3.Connection) -> int | None:
    """Return the number of the last event that the history knows; None if it must be rebuilt."""
    found = connection.execute("SELECT max(seq) FROM history_mark").fetchone()[0]
    return None if found is None or found > read_last_seq(connection) else int(found)


def prepare_batch(connection: sqlite3.Connection, limit: int) -> Batch | None:
    """Return what follows from the next events of the log; None if there are none."""
    mark = read_mark(connection)
    if mark is None:
        return Batch(_REBUILD, 0, (), (), (), (), (), ())
    rows: list[StoredRow] = []
    for row in read_stored_rows(connection, mark):
        rows.append(row)
        if row.seq - mark >= limit:
            break
    return build_batch(connection, mark, rows) if rows else None


def build_batch(history: sqlite3.Connection, after: int, rows: Sequence[StoredRow]) -> Batch:
    """Return what follows from some rows, for a history that has followed the log up to `after`."""
    outlines = [outline(row) for row in rows]
    followed = [row for row, said in zip(rows, outlines, strict=True) if not _FOLLOWED.isdisjoint(said.types)]
    events = [event for row in followed for event in unpack(row.first, row.data)]
    changes = [(event.seq, get_record(event)) for event in events if type(get_record(event)) in FOLLOWED]
    known = _read_current(history, [_get_id(record) for _, record in changes])
    changed: dict[int, CurrentSpan] = {}
    versions: list[tuple[int, int, str]] = []
    spans: list[ClosedSpan] = []
    parties: dict[tuple[str, str, int], None] = {}
    for seq, record in changes:
        kind, ident = FOLLOWED[type(record)], _get_id(record)
        state, before = kind.get_state(record), known.get(ident)
        number = before.record if before is not None else seq
        versions.append((number, seq, state))
        parties |= {(party, kind.name, number): None for party in list_parties(record)}
        if before is not None and before.state == state:
            continue
        if before is not None:
            spans.append(_close(before, seq - 1))
        known[ident] = changed[number] = CurrentSpan(number, ident, kind.name, state, seq)
    last, touched = rows[-1].seq, list_entries(outlines)
    moments = _list_moments(
        moment
        for row, said in zip(rows, outlines, strict=True)
        for moment in zip(said.times, itertools.count(row.first), strict=False)
    )
    return Batch(after, last, [*changed.values()], versions, spans, [*parties], moments, touched)


def _get_id(record: Record) -> str:
    return getattr(record, "id")  # noqa: B009 (every stored record has one)


def _read_current(history: sqlite3.Connection, idents: Sequence[str]) -> dict[str, CurrentSpan]:
    query = (
        "SELECT r.record, r.id, r.kind, r.state, r.entered FROM json_each(?) named "
        "CROSS JOIN history_records r ON r.id = named.value"
    )
    found = history.execute(query, (json.dumps([*dict.fromkeys(idents)]),))
    return {one.id: one for one in map(CurrentSpan._make, found)}


def _close(current: CurrentSpan, last: int) -> ClosedSpan:
    """Return the span of a state that was left after the event `last`."""
    fork = find_fork(current.entered, last)
    return ClosedSpan(current.kind, current.state, fork, last, current.entered, current.record)


def get_tenth(time: Time) -> int:
    """Return the first tenth of a second that does not end before a time."""
    return -(-(time // 1000) // _TENTH)


def _list_moments(events: Iterable[tuple[Time, int]]) -> list[tuple[int, int]]:
    """Return the last event of each tenth. An event takes the place of earlier ones with a later time."""
    found: list[tuple[int, int]] = []
    for time, seq in events:
        tenth = get_tenth(time)
        while found and found[-1][0] >= tenth:
            found.pop()
        found.append((tenth, seq))
    return found


def store_batch(connection: sqlite3.Connection, batch: Batch) -> None:
    """Write a step in the open transaction. A step that does not continue from the mark changes nothing."""
    if batch.after == _REBUILD:
        clear_history(connection)
        return
    moved = connection.execute(
        "UPDATE history_mark SET seq = ? WHERE seq = ?", (batch.last, batch.after)
    ).rowcount
    if not moved:
        return
    write = connection.executemany
    write(_UPSERT, batch.records)
    write("INSERT INTO history_versions VALUES (?, ?, ?)", batch.versions)
    write("INSERT INTO history_spans VALUES (?, ?, ?, ?, ?, ?)", batch.spans)
    write("INSERT OR IGNORE INTO history_parties VALUES (?, ?, ?)", batch.parties)
    # More than the current tenth is only replaced after the clock was set back.
    connection.execute("DELETE FROM history_moments WHERE tenth >= ?", batch.moments[0][:1])
    write("INSERT INTO history_moments VALUES (?, ?)", batch.moments)
    store_entries(connection, batch.touched)


def clear_history(connection: sqlite3.Connection) -> None:
    """Empty the history, so that it is built anew."""
    for table in HISTORY_TABLES:
        connection.execute(f"DELETE FROM {table}")
    connection.execute("DELETE FROM history_mark")
    connection.execute("INSERT INTO history_mark (seq) VALUES (0)")
