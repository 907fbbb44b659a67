"""The store as the broker sees it: records by id and by named query, events to append, answers by key.

The log is the truth: events and the rows that follow from them are written in one transaction.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, TypeVar, cast

from scout.base.codec import encode_for_store
from scout.base.record import Record
from scout.base.time import Time
from scout.model.conversation import Conversation, Member, Message
from scout.model.endpoint import Endpoint
from scout.model.events.envelope import Changed, Event, list_concerned_agents
from scout.model.events.event_types import get_event_type, read_event
from scout.model.events.talk import ConversationCreated, MessagePosted, read_message
from scout.store.derived import derive, derive_from_event
from scout.store.table import QUERIES, get_table, list_read_kinds

T = TypeVar("T", bound=Record)
LAST = "~"  # sorts after every id: where a list that starts with the newest record starts


class Remembered(NamedTuple):
    """The first answer under an idempotency key; `hash` shows whether a later request is the same."""

    hash: str
    answer: bytes


class Ledger:
    """The records and the log, through one connection inside one transaction.

    A unit of work: appended events are collected in `unwritten` and written together, at the end of the
    transaction or before a query that reads what they change. So every query sees every event that concerns
    it, and most transactions write once.

    `signs` are endpoints that showed a sign of life after their rows were written, by id.
    """

    def __init__(self, connection: sqlite3.Connection, signs: Mapping[str, Endpoint] = {}) -> None:
        self._connection = connection
        self._signs = signs
        self.unwritten: list[Event] = []

    @property
    def connection(self) -> sqlite3.Connection:
        """Return the connection for any statement, after writing every appended event."""
        if self.unwritten:
            self.flush()
        return self._connection

    def _query(self, query: str, values: Mapping[str, Any]) -> sqlite3.Cursor:
        """Run a named query, after writing the appended events if one of them may change its result."""
        if self.unwritten and self._changes(list_read_kinds(query)):
            self.flush()
        return self._connection.execute(QUERIES[query], values)

    def _changes(self, kinds: Set[type[Record]] | None) -> bool:
        """Whether an unwritten event changes a record of these kinds; None stands for any."""
        return kinds is None or not kinds.isdisjoint(
            kind for event in self.unwritten for kind in list_changed_kinds(event)
        )

    @property
    def has_signs(self) -> bool:
        """Whether a sign of life is newer than its row."""
        return bool(self._signs)

    def flush(self) -> None:
        """Write the collected events and the rows that follow from them."""
        events, self.unwritten = self.unwritten, []
        append(self._connection, *events)

    def get(self, kind: type[T], ident: str | None) -> T | None:
        """Return the record with this id."""
        if ident is None:
            return None
        if self.unwritten and self._changes({kind}):
            self.flush()
        found = get_table(kind).get(self._connection, ident)
        return self.with_sign(found) if kind is Endpoint and found is not None else found

    def beginning(self, kind: type[Record], start: str, limit: int) -> list[str]:
        """Return the first ids that begin with this text."""
        return get_table(kind).beginning(self.connection, start, limit)

    def one(self, kind: type[T], query: str, **values: Any) -> T | None:
        """Return the first record that a named query finds."""
        found = self._query(query, values).fetchone()
        return self.with_sign(get_table(kind).read(found[0])) if found else None

    def many(self, kind: type[T], query: str, **values: Any) -> list[T]:
        """Return the records that a named query finds."""
        read = get_table(kind).read
        found = [read(data) for (data,) in self._query(query, values)]
        return [self.with_sign(one) for one in found] if kind is Endpoint and self._signs else found

    def with_sign(self, record: T) -> T:
        """Return an endpoint with its last sign of life, unless its row is newer; others unchanged."""
        if not isinstance(record, Endpoint):
            return record
        sign = self._signs.get(record.id)
        return cast("T", sign) if sign is not None and sign.revision == record.revision else record

    def value(self, query: str, **values: Any) -> Any:
        """Return the single value of a named query."""
        return self._query(query, values).fetchone()[0]

    def times(self, query: str, **values: Any) -> list[Time]:
        """Return the times of a named query."""
        return [Time(moment) for (moment,) in self._query(query, values)]

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a named query that returns no records."""
        return self._query(query, values).fetchall()

    def facts(self, query: str, **values: Any) -> Iterator[Event]:
        """Return the events that a named query finds."""
        for (data,) in self._query(query, values):
            yield read_event(data)

    def last_seq(self) -> int:
        """Return the number of the newest event."""
        return read_last_seq(self.connection)

    def refresh(self, record: Record) -> None:
        """Write a row without an event: only for volatile fields, such as a sign of life."""
        get_table(type(record)).write(self.connection, record)

    # -- answers by key, and when a person last looked ------------------------------------------------

    def recall(self, actor: str, operation: str, key: str) -> Remembered | None:
        """Return the stored answer of this actor, operation and key."""
        query = "SELECT hash, answer FROM receipts WHERE actor = ? AND operation = ? AND key = ?"
        found = self.connection.execute(query, (actor, operation, key)).fetchone()
        return Remembered(*found) if found else None

    def remember(self, actor: str, operation: str, key: str, *, receipt: Remembered, now: Time) -> None:
        """Store the answer in the transaction of its request. A known key raises IntegrityError."""
        self.connection.execute(
            "INSERT INTO receipts (actor, operation, key, hash, answer, time) VALUES (?, ?, ?, ?, ?, ?)",
            (actor, operation, key, *receipt, int(now)),
        )

    def forget_answers(self, before: Time, limit: int) -> int:
        """Delete answers older than `before`, the oldest first; return how many."""
        old = "SELECT actor, operation, key FROM receipts WHERE time < ? ORDER BY time LIMIT ?"
        gone = f"DELETE FROM receipts WHERE (actor, operation, key) IN ({old})"
        return self.connection.execute(gone, (int(before), limit)).rowcount

    def has_older_answers(self, before: Time) -> bool:
        """Whether there are answers to delete."""
        query = "SELECT 1 FROM receipts WHERE time < ? ORDER BY time LIMIT 1"
        return self.connection.execute(query, (int(before),)).fetchone() is not None

    def read_last_look(self, user: str) -> Time | None:
        """Return when this person last looked, or None."""
        found = self.connection.execute("SELECT time FROM looks WHERE user = ?", (user,)).fetchone()
        return Time(found[0]) if found else None

    def mark_look(self, user: str, now: Time) -> None:
        """Record that this person looks now; a clock set back does not undo a later look."""
        later = "ON CONFLICT (user) DO UPDATE SET time = max(time, excluded.time)"
        self.connection.execute(f"INSERT INTO looks VALUES (?, ?) {later}", (user, int(now)))

    def read_cursor(self, connector: str) -> str | None:
        """Return how far a connector has read."""
        query = "SELECT cursor FROM chat_cursors WHERE connector = ?"
        found = self.connection.execute(query, (connector,)).fetchone()
        return found[0] if found else None

    def move_cursor(self, connector: str, cursor: str | None) -> None:
        """Store how far a connector has read; None forgets it."""
        self.connection.execute("DELETE FROM chat_cursors WHERE connector = ?", (connector,))
        if cursor is not None:
            self.connection.execute("INSERT INTO chat_cursors VALUES (?, ?)", (connector, cursor))

    def record_attempt(self, connector: str, chat: str, now: Time, since: Time) -> None:
        """Store that a wrong link code was typed in a chat; attempts that no longer count are removed."""
        old = "DELETE FROM link_attempts WHERE connector = ? AND time <= ?"
        self.connection.execute(old, (connector, int(since)))
        self.connection.execute("INSERT INTO link_attempts VALUES (?, ?, ?)", (connector, chat, int(now)))

    def move_back_look(self, user: str, now: Time) -> None:
        """Move looks in the future back to now, after the clock was corrected."""
        self.connection.execute("UPDATE looks SET time = min(time, ?) WHERE user = ?", (int(now), user))


# -- the log -----------------------------------------------------------------------------------------


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


def list_changed_kinds(event: Event) -> Sequence[type[Record]]:
    """Return the kinds of the records that an event changes."""
    if isinstance(event, MessagePosted):
        return (Message,)
    if isinstance(event, ConversationCreated):
        return (Conversation, Member)
    record = getattr(event.payload, "record", None)
    return (type(record),) if isinstance(record, Record) else ()


def read_events(connection: sqlite3.Connection, seq: int, limit: int) -> Iterator[Event]:
    """Return events in order, from the one after `seq`."""
    query = "SELECT data FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
    for (data,) in connection.execute(query, (seq, limit)):
        yield read_event(data)
