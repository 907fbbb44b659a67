"""The log and the rows that follow from it: events are stored, then projected on the tables."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from scout.base.codec import encode_for_store
from scout.base.record import Record
from scout.model.events.envelope import Changed, Event, list_concerned_agents
from scout.model.events.event_types import get_event_type, read_event
from scout.model.events.talk import ConversationCreated, MessagePosted, read_message
from scout.store.derived import DerivedMemory, derive, list_derived_tables
from scout.store.table import Table, get_table, has_table

_NONE: frozenset[str] = frozenset()


def append(connection: sqlite3.Connection, *events: Event, memory: DerivedMemory | None = None) -> None:
    """Store events under their numbers and update their rows."""
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
        for event in events
    ]
    connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    project(connection, *events, memory=memory)


def project(connection: sqlite3.Connection, *events: Event, memory: DerivedMemory | None = None) -> None:
    """Write the rows that follow from events. Replay does only this and decides nothing.

    Events that are projected together leave the same rows as one after another, with fewer statements.
    """
    changes = [(event, list_records(event)) for event in events]
    _write_records(connection, [record for _, records in changes for record in records])
    derive(connection, changes, memory or DerivedMemory())
    rows = [(agent_id, event.seq) for event in events for agent_id in list_concerned_agents(event)]
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
    for table, versions in by_table.items():
        rows = [table.row(record, encode_for_store(record)) for record in versions.values()]
        connection.executemany(table.upsert, rows)


def list_records(event: Event) -> Sequence[Record]:
    """Return the records as they are after an event; none for an event that changes no record."""
    if isinstance(event, MessagePosted):
        return (read_message(event),)
    if isinstance(event, ConversationCreated):
        return (event.payload.record, *event.payload.members)
    payload = event.payload
    return (payload.record,) if isinstance(payload, Changed) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] (generic)


def list_changed_tables(kind: type[Record]) -> frozenset[str]:
    """Return the tables that a record or event of this kind changes, `events` and `concerned` apart."""
    found = _CHANGED.get(kind)
    if found is None:
        own = frozenset({get_table(kind).name}) if has_table(kind) else _NONE
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
