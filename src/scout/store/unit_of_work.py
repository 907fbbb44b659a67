"""What the requests of one commit group have changed and not written yet.

A statement costs more than the row it writes. So the events and records of all requests of a group collect
here and are written once, just before COMMIT: one `executemany` for each table, and each record in its last
version only. The same transaction holds the events and their rows, so a crash keeps both or neither.

Requests read through it. A record by id is looked up here first. A named query is run on the tables, so it
needs them up to date: if one of its tables has unwritten changes, everything is written before the query
runs. That is always right. A message, an ask and its turn need no such query: what they ask for is kept in
`memory`.

A request that is refused takes its changes back (`take_back`), and the rest of the group is not touched. This
is not possible after some of them were written; then the writer rolls the group back and runs its requests
one by one.
"""

import itertools
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from scout.base.record import Record
from scout.model.events.envelope import Changed, Event
from scout.model.events.mesh import EnvelopeReceived
from scout.model.events.talk import ConversationCreated, MessagePosted, read_message
from scout.store.derived import DerivedMemory, derive, list_derived_tables
from scout.store.log import append_rows
from scout.store.memory import Memory
from scout.store.table import Table, encode_records, get_table

_OF_EVENTS = frozenset({"events"})
Change = tuple[Event, Sequence[Any]]


class UnitOfWork:
    """Unwritten events in the order of the log, and the records after them by id.

    Whoever appends to `events` needs no more; what an event changes is looked at when somebody asks.
    `connection` is that of the writer: its tables lack what is unwritten.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.events: list[Event] = []
        # The events that were looked at, each with the records after it.
        self._changes: list[Change] = []
        self._records: dict[str, Record] = {}
        self._tables: set[str] = set()
        self._received: set[str] = set()  # envelopes of other nodes
        self.memory = Memory()
        self._derived = DerivedMemory()
        # What the current request replaced, and where its events begin; None: some of them were written.
        self._replaced: list[tuple[str, Record | None]] = []
        self._first: int | None = 0
        # Where the events of each request begin.
        self._starts = [0]
        # The rows written on this connection before the current request wrote one itself.
        self._written = connection.total_changes

    def __bool__(self) -> bool:
        return bool(self.events)

    @property
    def last_seq(self) -> int | None:
        """Return the number of the last unwritten event."""
        return self.events[-1].seq if self.events else None

    def find(self, ident: str) -> Record | None:
        """Return a record that is unwritten or known."""
        if len(self.events) > len(self._changes):
            self._look_at_events()
        return self._records.get(ident) or self.memory.records.get(ident)

    def find_all(self, query: str, values: Mapping[str, Any]) -> list[Any] | None:
        """Return the result of a kept query; None if it is not known."""
        self._look_at_events()
        return self.memory.find(query, values)

    def load_all(self, query: str, values: Mapping[str, Any], stored: Iterable[Any]) -> list[Any]:
        """Keep what a query found in the tables, with the unwritten records; return its result."""
        return self.memory.load(query, values, stored, self._records.values())

    def has_received(self, envelope_id: str) -> bool:
        """Whether an unwritten event says that an envelope of another node was taken."""
        self._look_at_events()
        return envelope_id in self._received

    def has_changed(self, tables: Collection[str]) -> bool:
        """Whether one of these tables lacks an unwritten change."""
        self._look_at_events()
        return not self._tables.isdisjoint(tables)

    def _look_at_events(self) -> None:
        """Note what the events that were appended since the last look change."""
        known, replaced, apply = self._records, self._replaced, self.memory.apply
        for event in self.events[len(self._changes) :]:
            records = list_records(event)
            self._changes.append((event, records))
            self._tables |= _CHANGED.get(event.__class__) or list_changed_tables(event, records)
            if event.__class__ is EnvelopeReceived:
                self._received.add(event.payload.envelope_id)
            for record in records:
                ident = record.id
                replaced.append((ident, known.get(ident)))
                known[ident] = record
                apply(record)

    def flush(self) -> None:
        """Write everything, in the transaction that is open."""
        self._look_at_events()
        changes = self._changes
        own_written = self._first is None or self._first < len(changes)
        starts = self._starts
        self._forget_changes()
        self._first = None if own_written else 0
        _append(self.connection, changes, starts, self._derived)
        self._written = self.connection.total_changes

    def _forget_changes(self) -> None:
        self.events.clear()
        self._starts = [0]
        self._changes = []
        self._records.clear()
        self._tables.clear()
        self._received.clear()
        self._replaced.clear()

    # -- one request of the group ------------------------------------------------------------------

    def begin_request(self) -> None:
        """Remember where the changes of the next request begin."""
        self._look_at_events()
        self._replaced.clear()
        self._first = len(self.events)
        if self._starts[-1] != self._first:
            self._starts.append(self._first)
        self._written = self.connection.total_changes

    def take_back(self) -> bool:
        """Remove the changes of the current request; return False if some of them were written."""
        if self._first is None or self.connection.total_changes != self._written:
            return False
        for event, records in self._changes[self._first :]:
            if event.__class__ is EnvelopeReceived:
                self._received.discard(event.payload.envelope_id)
            for record in records:
                self.memory.drop(record)
        del self.events[self._first :], self._changes[self._first :]
        for ident, before in reversed(self._replaced):
            if before is None:
                del self._records[ident]
            else:
                self._records[ident] = before
        self._replaced.clear()
        return True

    def clear(self) -> None:
        """Forget everything, after a rollback."""
        self._forget_changes()
        self.memory.clear()
        self._derived.clear()
        self.begin_request()


# -- the log and its rows ----------------------------------------------------------------------------


def append(connection: sqlite3.Connection, *events: Event) -> None:
    """Store events under their numbers, as those of one request, and update their rows."""
    append_requests(connection, [events])


def append_requests(connection: sqlite3.Connection, requests: Iterable[Sequence[Event]]) -> None:
    """Store the events of several requests."""
    changes: list[Change] = []
    starts: list[int] = []
    for events in requests:
        starts.append(len(changes))
        changes += [(event, list_records(event)) for event in events]
    _append(connection, changes, starts, DerivedMemory())


def _append(
    connection: sqlite3.Connection, changes: Sequence[Change], starts: Sequence[int], memory: DerivedMemory
) -> None:
    """Store the changes of some requests; `starts` are the places at which they begin."""
    encoded = _encode_records(changes)
    events = [event for event, _ in changes]
    bounds = itertools.pairwise([*starts, len(events)])
    records = [
        data[0] if event.payload.__class__ is Changed else None
        for event, data in zip(events, encoded, strict=True)
    ]
    append_rows(connection, [events[start:end] for start, end in bounds], records)
    _project(connection, changes, memory, encoded)


def _encode_records(changes: Sequence[Change]) -> list[list[bytes]]:
    """Return the records of each event, as their rows and the log hold them."""
    encoded = iter(encode_records([one for _, records in changes for one in records]))
    return [[next(encoded) for _ in records] for _, records in changes]


def project(connection: sqlite3.Connection, event: Event) -> None:
    """Write the rows that follow from an event. Replay does only this and decides nothing."""
    changes = [(event, list_records(event))]
    _project(connection, changes, DerivedMemory(), _encode_records(changes))


def _project(
    connection: sqlite3.Connection,
    changes: Sequence[Change],
    memory: DerivedMemory,
    encoded: Sequence[Sequence[bytes]],
) -> None:
    """Write rows. Events that are projected together leave the same rows as one after another."""
    _write_records(connection, changes, encoded)
    derive(connection, changes, memory)


def _write_records(
    connection: sqlite3.Connection, changes: Sequence[Change], encoded: Sequence[Sequence[bytes]]
) -> None:
    """Write each record in its last version; `encoded` has the records of each event.

    In a table with another unique column than the key, a value may have passed from one record to another.
    There every version is written, in order.
    """
    by_table: dict[Table, dict[object, tuple[Any, bytes]]] = {}
    number = 0
    for (_, records), lines in zip(changes, encoded, strict=True):
        for record, data in zip(records, lines, strict=True):
            table = get_table(record.__class__)
            number += 1
            key = number if table.has_unique_columns else record.id
            versions = by_table.get(table)
            if versions is None:
                versions = by_table[table] = {}
            versions[key] = record, data
    for table, versions in by_table.items():
        connection.executemany(table.upsert, [table.row(one, data) for one, data in versions.values()])


def list_records(event: Event) -> Sequence[Any]:
    """Return the records as they are after an event; none for an event that changes no record."""
    payload = event.payload
    if payload.__class__ is Changed:  # as most are
        return (payload.record,)
    if isinstance(event, MessagePosted):
        return (read_message(event),)
    if isinstance(event, ConversationCreated):
        return (event.payload.record, *event.payload.members)
    return (payload.record,) if isinstance(payload, Changed) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] (generic)


def list_changed_tables(event: Event, records: Sequence[Any]) -> frozenset[str]:
    """Return the tables that events of this kind change; the records of one are always of the same kinds."""
    kinds: set[type[Record]] = {record.__class__ for record in records}
    derived = (list_derived_tables(kind) for kind in (type(event), *kinds))
    own = {get_table(kind).name for kind in kinds}
    found = _CHANGED[type(event)] = _OF_EVENTS.union(own, *derived)
    return found


_CHANGED: dict[type[Event], frozenset[str]] = {}
