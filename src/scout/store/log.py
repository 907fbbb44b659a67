"""The log and its projection: events and their rows are written in one transaction."""

import sqlite3
from collections.abc import Iterator, Sequence

from scout.base.codec import encode_for_store
from scout.base.record import Record
from scout.model.events.envelope import Changed, Event, list_concerned_agents
from scout.model.events.event_types import get_event_type, read_event
from scout.model.events.talk import ConversationCreated, MessagePosted, read_message
from scout.store.derived import derive, derive_from_event
from scout.store.table import get_table


def read_last_seq(connection: sqlite3.Connection) -> int:
    """Return the number of the newest event; 0 if there is none."""
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])


def append(connection: sqlite3.Connection, *events: Event) -> None:
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
    project(connection, *events)


def project(connection: sqlite3.Connection, *events: Event) -> None:
    """Write the rows that follow from events, in order. Replay does only this and decides nothing."""
    changes = [(event, list_records(event)) for event in events]
    encoded = iter([encode_for_store(record) for _, records in changes for record in records])
    for event, records in changes:
        for record in records:
            table = get_table(type(record))
            connection.execute(table.upsert, table.row(record, next(encoded)))
            derive(connection, record)
        derive_from_event(connection, event)
    rows = [(agent_id, event.seq) for event in events for agent_id in list_concerned_agents(event)]
    connection.executemany("INSERT INTO concerned VALUES (?, ?)", rows)


def list_records(event: Event) -> Sequence[Record]:
    """Return the records as they are after an event; none for an event that changes no record."""
    if isinstance(event, MessagePosted):
        return (read_message(event),)
    if isinstance(event, ConversationCreated):
        return (event.payload.record, *event.payload.members)
    payload = event.payload
    return (payload.record,) if isinstance(payload, Changed) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] (generic)


def read_events(connection: sqlite3.Connection, seq: int, limit: int) -> Iterator[Event]:
    """Return events in order, from the one after `seq`."""
    query = "SELECT data FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
    for (data,) in connection.execute(query, (seq, limit)):
        yield read_event(data)
