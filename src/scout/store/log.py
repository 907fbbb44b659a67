"""The log: one row for each request, with its events in order.

A row is keyed by the number of its last event; `first` is the number of its first one. The number of each
event follows from its place. So the seven events of an ask cost one statement and one place in one B-tree.

`data` is a JSON array. An event in it lacks what the row says already:

- its number, and all of its id but the counter, if it is of the same series as the id before it;
- its time, if the event before it has the same;
- its source and credential, if the event before it has both of them;
- its target, if that is the record that it changes, and the actor of the change, if that is its source;
- an empty `metadata`, and the version 1 of its type.

An event that was stored before rows had several events is in a row of its own and complete, with its number.
"""

import functools
import itertools
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
from msgspec.structs import fields, replace

from scout.base.codec import decode, encode_each_for_store, encode_for_store
from scout.base.ids import COUNTER, split_series
from scout.base.record import Record
from scout.base.time import Time
from scout.model.events.envelope import Changed, Event, Metadata
from scout.model.events.event_types import UPCASTS, get_event_class, get_event_type, read_event
from scout.model.ref import Ref
from scout.store.archive.files import StoredRow
from scout.store.archive.rows import find_archived_row, read_archived_rows
from scout.store.table import QUERIES

MOST = 64  # events in a row, so that one of them is found quickly
LAST = (1 << 63) - 1  # the highest number
_NOTHING = Metadata()
_PLAIN = msgspec.Raw(b"{}")


class PackedEvent(Record, omit_defaults=True):
    """An event as a row holds it. `seq`: only in an event from an earlier version, which is complete."""

    type: str
    id: str
    seq: int = 0
    time: Time | None = None
    v: int = 1
    source: Ref | None = None
    target: Ref | None = None
    metadata: msgspec.Raw = _PLAIN
    payload: msgspec.Raw


class PackedChange(Record, omit_defaults=True):
    """The payload of an event that changes one record. `by` is left out if it is the source."""

    move: str | None = None
    by: str | msgspec.UnsetType | None = msgspec.UNSET
    reason: str = ""
    record: msgspec.Raw


class LogRow(NamedTuple):
    """The events of one row; `seq` is the number of the last one."""

    seq: int
    events: list[Event]


# -- writing -----------------------------------------------------------------------------------------


def append_rows(
    connection: sqlite3.Connection, requests: Sequence[Sequence[Event]], records: Sequence[bytes | None]
) -> None:
    """Store the events of some requests; `records` has the stored record of each event that is a change."""
    parts = [part for events in requests for part in _split(events)]
    encoded = iter(records)
    lines = iter(encode_each_for_store([one for part in parts for one in _pack(part, encoded)]))
    rows = [(part[-1].seq, part[0].seq, b"[%b]" % b",".join([next(lines) for _ in part])) for part in parts]
    connection.executemany("INSERT INTO events (seq, first, data) VALUES (?, ?, ?)", rows)


def _split(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """Yield the events of each row. Their numbers follow each other, because a place stands for a number."""
    if not events:
        return
    if len(events) <= MOST and events[-1].seq - events[0].seq == len(events) - 1:
        yield events
        return
    start = 0
    for place in range(1, len(events) + 1):
        ends = place == len(events) or events[place].seq != events[place - 1].seq + 1
        if ends or place - start == MOST:
            yield events[start:place]
            start = place


def _pack(events: Sequence[Event], records: Iterator[bytes | None]) -> Iterator[Any]:
    time: Time | None = None
    source: Ref | None = None
    token: str | None = None
    series: tuple[str, str] | None = None
    for event in events:
        metadata, payload, target = event.metadata, event.payload, event.target
        head, counter, rest = split_series(event.id)
        same = event.source == source and metadata.token_id == token
        if same and token is not None:
            metadata = replace(metadata, token_id=None)
        if (record := next(records)) is not None:
            target = None if target.id == payload.record.id else target
            by = msgspec.UNSET if payload.by == event.source[6:] else payload.by
            raw = msgspec.Raw(record)
            payload = PackedChange(move=payload.move, by=by, reason=payload.reason, record=raw)
        # The fields may hold what is encoded as the declared type.
        yield _PACKED(
            type=get_event_type(event.__class__),
            id=counter if (head, rest) == series else event.id,
            time=None if event.time == time else int(event.time),
            v=event.v,
            source=None if same else str(event.source),
            target=target and str(target),
            metadata=_PLAIN if metadata == _NOTHING else metadata,
            payload=payload,
        )
        time, source, token, series = event.time, event.source, event.metadata.token_id, (head, rest)


_PACKED: Callable[..., PackedEvent] = PackedEvent


# -- reading -----------------------------------------------------------------------------------------


def unpack(first: int, data: bytes, low: int = 0, high: int = LAST) -> list[Event]:
    """Return the events of a row from the number `low` to `high`."""
    time: Time | None = None
    source: Ref | None = None
    token: str | None = None
    ident = ""
    found: list[Event] = []
    for seq, one in enumerate(decode(data, list[PackedEvent]), first):
        if seq > high:
            break
        metadata = _NOTHING if one.metadata == _PLAIN else decode(bytes(one.metadata), Metadata)
        if one.source is None and token is not None:
            metadata = replace(metadata, token_id=token)
        time = time if one.time is None else one.time
        source, token = one.source or source, metadata.token_id
        ident = _complete_id(one.id, ident)
        assert time is not None  # the first event of a row has a time
        assert source is not None  # and a source
        if seq >= low:
            found.append(_read(one, _Envelope(ident, seq, time, source, metadata)))
    return found


def _complete_id(stored: str, before: str) -> str:
    """Return an id of which only the counter may be stored."""
    if not before or len(stored) != COUNTER:
        return stored
    head, _, rest = split_series(before)
    return head + stored + rest


class _Envelope(NamedTuple):
    """What the row says about an event, complete."""

    id: str
    seq: int
    time: Time
    source: Ref
    metadata: Metadata


def _read(one: PackedEvent, known: _Envelope) -> Event:
    if (one.type, one.v) in UPCASTS:
        return _read_earlier(one, known)
    kind = get_event_class(one.type)
    payload = _get_payload_reader(kind)(one, known.source)
    return kind(
        id=known.id,
        seq=known.seq,
        time=known.time,
        v=one.v,
        source=known.source,
        target=one.target or Ref.to(payload.record.id),
        metadata=known.metadata,
        payload=payload,
    )


def _read_earlier(one: PackedEvent, known: _Envelope) -> Event:
    """Return an event of an earlier version of its type, complete, so that it can be upcast."""
    payload: dict[str, Any] = decode(bytes(one.payload), dict[str, Any])
    if not one.seq and "record" in payload:
        payload = {"by": known.source.id, **payload}
    target = one.target or Ref.to(payload["record"]["id"])
    whole = {"type": one.type, "v": one.v, **known._asdict(), "target": target, "payload": payload}
    return read_event(encode_for_store(whole))


@functools.cache
def _get_payload_reader(kind: type[Event]) -> Callable[[PackedEvent, Ref], Any]:
    """Return what reads the payload of a type of event."""
    (declared,) = [field.type for field in fields(kind) if field.name == "payload"]
    if get_origin(declared) is not Changed:
        return lambda one, _: decode(bytes(one.payload), declared)
    (record,) = get_args(declared)

    def read(one: PackedEvent, source: Ref) -> Changed[Any]:
        change = decode(bytes(one.payload), PackedChange)
        absent = None if one.seq else source.id
        by = absent if change.by is msgspec.UNSET else change.by
        return declared(
            move=change.move, by=by, reason=change.reason, record=decode(bytes(change.record), record)
        )

    return read


def read_last_seq(connection: sqlite3.Connection) -> int:
    """Return the number of the newest event; 0 if there is none."""
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])


def read_stored_rows(connection: sqlite3.Connection, seq: int) -> Iterator[StoredRow]:
    """Return the rows after the event `seq`, in order. A row that it is in is returned whole."""
    query = "SELECT seq, first, data FROM events WHERE seq > ? ORDER BY seq"
    return map(StoredRow._make, _add_archived(connection, seq, connection.execute(query, (seq,))))


def _add_archived(
    connection: sqlite3.Connection, seq: int, stored: Iterator[tuple[int, int, bytes]]
) -> Iterator[tuple[int, int, bytes]]:
    """Return rows after an event, with archived ones before them if the first of them is missing."""
    first = next(stored, None)
    if first is None:
        return iter(())
    found = itertools.chain((first,), stored)
    if first[1] <= seq + 1:
        return found
    return itertools.chain(read_archived_rows(connection, seq, first[1]), found)


def read_rows(connection: sqlite3.Connection, seq: int) -> Iterator[LogRow]:
    """Return the events of these rows."""
    for row in read_stored_rows(connection, seq):
        yield LogRow(row.seq, unpack(row.first, row.data))


def read_events(connection: sqlite3.Connection, seq: int, limit: int) -> Iterator[Event]:
    """Return events in order, from the one after `seq`."""
    stored = connection.execute(QUERIES["log_rows"], {"after": seq, "limit": limit})
    for _, first, data in _add_archived(connection, seq, stored):
        low = max(first, seq + 1)
        found = unpack(first, data, low, low + limit - 1)
        yield from found
        limit -= len(found)
        if not limit:
            break


def find_event(connection: sqlite3.Connection, seq: int) -> Event | None:
    """Return the event with this number."""
    row = connection.execute(QUERIES["log_row"], {"seq": seq}).fetchone()
    if row is not None and row[0] > seq:
        archived = find_archived_row(connection, seq)
        row = archived and archived[1:]
    events = unpack(row[0], row[1], seq, seq) if row is not None else []
    return events[0] if events else None
