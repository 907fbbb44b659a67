"""The log and what is projected from it: one append writes the fact and its rows in one transaction."""

import sqlite3
from collections.abc import Iterable, Iterator

from scout.base.codec import stored
from scout.base.record import Record
from scout.model.events.concern import concerned_agents
from scout.model.events.envelope import Changed, Event
from scout.model.events.event_types import event_type, read_event
from scout.model.events.talk import ConversationCreated, MessagePosted, message_of
from scout.store import files, owed
from scout.store.derived import derive
from scout.store.table import table_of


def last_seq(connection: sqlite3.Connection) -> int:
    """The number of the newest fact; 0 when there is none."""
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])


def append(connection: sqlite3.Connection, event: Event) -> None:
    """Store one fact under the number it carries, and bring its rows up to date."""
    values = (
        event.seq,
        event.id,
        int(event.time),
        event_type(type(event)),
        str(event.source),
        str(event.target),
        stored(event),
    )
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    project(connection, event)


def project(connection: sqlite3.Connection, event: Event) -> None:
    """Write the rows that follow from a fact. Replay does just this: nothing is decided again."""
    for record in records_of(event):
        table = table_of(type(record))
        connection.execute(table.upsert, table.row(record))
        derive(connection, record)
    owed.heard(connection, event)
    files.follow_upload(connection, event)
    rows = [(agent_id, event.seq) for agent_id in concerned_agents(event)]
    connection.executemany("INSERT INTO concerned VALUES (?, ?)", rows)


def records_of(event: Event) -> Iterable[Record]:
    """The records as they are after the fact; facts that change no row have none."""
    if isinstance(event, MessagePosted):
        return (message_of(event),)
    if isinstance(event, ConversationCreated):
        return (event.payload.record, *event.payload.members)
    payload = event.payload
    return (payload.record,) if isinstance(payload, Changed) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] (generic)


def events_after(connection: sqlite3.Connection, seq: int, limit: int) -> Iterator[Event]:
    """Facts in their order, from the one after `seq`."""
    query = "SELECT data FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
    for (data,) in connection.execute(query, (seq, limit)):
        yield read_event(data)
