"""What the requests of one commit group have changed and not written yet.

A statement costs more than the row it writes. So the events and records of all requests of a group collect
here and are written once, just before COMMIT: one `executemany` for each table, and each record in its last
version only. The same transaction holds the events and their rows, so a crash keeps both or neither.

Requests read through it. A record by id is looked up here first. A named query is run on the tables, so it
needs them up to date: if one of its tables has unwritten changes, everything is written before the query
runs. That is always right. A send and most asks need no such query, because the cache answers them; the turn
that follows an ask still makes some.

A request that is refused takes its changes back (`take_back`), and the rest of the group is not touched. This
is not possible after some of them were written; then the writer rolls the group back and runs its requests
one by one.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence

from scout.base.codec import encode_for_store
from scout.base.record import Record
from scout.model.events.envelope import Changed, Event, list_concerned_agents
from scout.model.events.event_types import get_event_type, read_event
from scout.model.events.talk import ConversationCreated, MessagePosted, read_message
from scout.store.derived import DerivedMemory, derive, list_derived_tables
from scout.store.table import Table, get_table, has_table

_OF_EVENTS = frozenset({"events", "concerned"})
Change = tuple[Event, Sequence[Record]]


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
        self._memory = DerivedMemory()
        # What the current request replaced, and where its events begin; None: some of them were written.
        self._replaced: list[tuple[str, Record | None]] = []
        self._first: int | None = 0
        # The rows written on this connection before the current request wrote one itself.
        self._written = connection.total_changes

    def __bool__(self) -> bool:
        return bool(self.events)

    @property
    def last_seq(self) -> int | None:
        """Return the number of the last unwritten event."""
        return self.events[-1].seq if self.events else None

    def find(self, ident: str) -> Record | None:
        """Return the unwritten version of a record."""
        self._look_at_events()
        return self._records.get(ident)

    def has_changed(self, tables: Collection[str]) -> bool:
        """Whether one of these tables lacks an unwritten change."""
        self._look_at_events()
        return not self._tables.isdisjoint(tables)

    def _look_at_events(self) -> None:
        """Note what the events that were appended since the last look change."""
        for event in self.events[len(self._changes) :]:
            records = list_records(event)
            self._changes.append((event, records))
            self._tables |= list_changed_tables(type(event))
            for record in records:
                ident: str = getattr(record, "id")  # noqa: B009 (every stored record has one)
                self._replaced.append((ident, self._records.get(ident)))
                self._records[ident] = record
                self._tables |= list_changed_tables(type(record))

    def flush(self) -> None:
        """Write everything, in the transaction that is open."""
        self._look_at_events()
        changes = self._changes
        own_written = self._first is None or self._first < len(changes)
        self._forget_changes()
        self._first = None if own_written else 0
        _append(self.connection, changes, self._memory)
        self._written = self.connection.total_changes

    def _forget_changes(self) -> None:
        self.events.clear()
        self._changes = []
        self._records.clear()
        self._tables.clear()
        self._replaced.clear()

    # -- one request of the group ------------------------------------------------------------------

    def begin_request(self) -> None:
        """Remember where the changes of the next request begin."""
        self._look_at_events()
        self._replaced.clear()
        self._first = len(self.events)
        self._written = self.connection.total_changes

    def take_back(self) -> bool:
        """Remove the changes of the current request; return False if some of them were written."""
        if self._first is None or self.connection.total_changes != self._written:
            return False
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
        self._memory.clear()
        self.begin_request()


# -- the log and its rows ----------------------------------------------------------------------------


def append(connection: sqlite3.Connection, *events: Event) -> None:
    """Store events under their numbers and update their rows."""
    _append(connection, [(event, list_records(event)) for event in events], DerivedMemory())


def _append(connection: sqlite3.Connection, changes: Sequence[Change], memory: DerivedMemory) -> None:
    rows = [
        (
            event.seq,
            event.id,
            int(event.time),
            get_event_type(type(event)),
            str(event.source),
            str(event.target),
            encode_for_store(event),
        )
        for event, _ in changes
    ]
    connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    _project(connection, changes, memory)


def project(connection: sqlite3.Connection, event: Event) -> None:
    """Write the rows that follow from an event. Replay does only this and decides nothing."""
    _project(connection, [(event, list_records(event))], DerivedMemory())


def _project(connection: sqlite3.Connection, changes: Sequence[Change], memory: DerivedMemory) -> None:
    """Write rows. Events that are projected together leave the same rows as one after another."""
    _write_records(connection, [record for _, records in changes for record in records])
    derive(connection, changes, memory)
    rows = [(agent_id, event.seq) for event, _ in changes for agent_id in list_concerned_agents(event)]
    connection.executemany("INSERT INTO concerned VALUES (?, ?)", rows)


def _write_records(connection: sqlite3.Connection, records: Iterable[Record]) -> None:
    """Write each record in its last version.

    In a table with another unique column than the key, a value may have passed from one record to another.
    There every version is written, in order.
    """
    by_table: dict[Table, dict[object, Record]] = {}
    for number, record in enumerate(records):
        table = get_table(type(record))
        key = number if table.has_unique_columns else getattr(record, "id")  # noqa: B009 (every stored record has one)
        by_table.setdefault(table, {})[key] = record
    last = [record for versions in by_table.values() for record in versions.values()]
    encoded = iter([encode_for_store(record) for record in last])
    for table, versions in by_table.items():
        connection.executemany(table.upsert, [table.row(one, next(encoded)) for one in versions.values()])


def list_records(event: Event) -> Sequence[Record]:
    """Return the records as they are after an event; none for an event that changes no record."""
    if isinstance(event, MessagePosted):
        return (read_message(event),)
    if isinstance(event, ConversationCreated):
        return (event.payload.record, *event.payload.members)
    payload = event.payload
    return (payload.record,) if isinstance(payload, Changed) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] (generic)


def list_changed_tables(kind: type[Record]) -> frozenset[str]:
    """Return the tables that a record or event of this kind changes."""
    found = _CHANGED.get(kind)
    if found is None:
        own = frozenset({get_table(kind).name}) if has_table(kind) else _OF_EVENTS
        found = _CHANGED[kind] = own | list_derived_tables(kind)
    return found


_CHANGED: dict[type[Record], frozenset[str]] = {}


# -- reading the log ---------------------------------------------------------------------------------


def read_last_seq(connection: sqlite3.Connection) -> int:
    """Return the number of the newest event; 0 if there is none."""
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])


def read_events(connection: sqlite3.Connection, seq: int, limit: int) -> Iterator[Event]:
    """Return events in order, from the one after `seq`."""
    query = "SELECT data FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
    for (data,) in connection.execute(query, (seq, limit)):
        yield read_event(data)
