"""The store as the broker sees it: records by id and by named query, events to append, answers by key.

The log is the truth: events and the rows that follow from them are written in one transaction.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from msgspec.structs import replace

from scout.base.record import Record
from scout.base.time import Time
from scout.model.agent import Agent
from scout.model.endpoint import Endpoint
from scout.model.events.envelope import Event
from scout.model.mesh.entry import AgentEntry
from scout.model.node import Node
from scout.model.remote_agent import RemoteAgent
from scout.model.session import Session
from scout.store import mirror
from scout.store.history.feed import Batch, prepare_batch, store_batch
from scout.store.log import read_last_seq
from scout.store.memory import KEPT, LONGEST
from scout.store.table import QUERIES, QUERY_TABLES, get_table
from scout.store.touched import EventReader
from scout.store.unit_of_work import UnitOfWork

T = TypeVar("T", bound=Record)
_OF_NODE = frozenset({Agent, Endpoint, Session})  # records that name their node
LAST = "~"  # sorts after every id: where a list that starts with the newest record starts


class Remembered(NamedTuple):
    """The first answer under an idempotency key; `hash` shows whether a later request is the same."""

    hash: str
    answer: bytes


class Ledger:
    """The records and the log, through one connection inside one transaction.

    `unit` holds what the transaction and others of its commit group appended; a reader has none. Every query
    sees it. An event is appended to the log by adding it to `appended`. `signs` are endpoints that showed a
    sign of life after their rows were written, by id.

    `node`: the name of this machine. A record holds the name that the machine had when it was written, and
    is returned with the name of today, so that a rename changes one record. None: as it was written.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        signs: Mapping[str, Endpoint] = {},
        unit: UnitOfWork | None = None,
        node: str | None = None,
    ) -> None:
        self._connection = connection
        self._signs = signs
        self._unit = unit
        self.node = node
        self.appended: list[Event] = unit.events if unit is not None else []

    @property
    def connection(self) -> sqlite3.Connection:
        """Return the connection for any statement, after writing every appended event."""
        if self._unit:
            self._unit.flush()
        return self._connection

    @property
    def has_signs(self) -> bool:
        """Whether a sign of life is newer than its row."""
        return bool(self._signs)

    def select(self, tables: Collection[str], query: str, values: Any) -> sqlite3.Cursor:
        """Run a query on tables that have every appended event."""
        if self._unit and self._unit.has_changed(tables):
            self._unit.flush()
        return self._connection.execute(query, values)

    def _query(self, name: str, values: Mapping[str, Any]) -> sqlite3.Cursor:
        return self.select(QUERY_TABLES[name], QUERIES[name], values)

    def get(self, kind: type[T], ident: str | None) -> T | None:
        """Return the record with this id."""
        if ident is None:
            return None
        unit = self._unit
        known = unit.find(ident) if unit is not None else None
        found: T | None = known if isinstance(known, kind) else get_table(kind).get(self._connection, ident)
        if found is None:
            return self._get_remote(ident) if kind is Agent else None  # pyright: ignore[reportReturnType] (T is Agent)
        if kind is Agent and cast("Agent", found).moved_to is not None:
            return cast("T", self._follow_forward(cast("Agent", found)))
        if unit is not None and found is not known:
            unit.memory.keep(found)
        return self.complete(found) if kind in _OF_NODE else found

    def own_agent(self, ident: str) -> Agent | None:
        """Return an agent that has a row here: one of this node, or the forward of one that moved."""
        known = self._unit.find(ident) if self._unit is not None else None
        found = known if isinstance(known, Agent) else get_table(Agent).get(self._connection, ident)
        return self.complete(found) if found is not None else None

    def _follow_forward(self, forward: Agent) -> Agent:
        """Return an agent that moved to another node, as that node lists it; else the forward itself."""
        found = self.remote_agent(forward.id)
        if found is not None:
            return replace(found.agent, moved_to=found.node_id)
        home = self.get(Node, forward.moved_to)
        return replace(forward, node=home.name) if home is not None else forward

    def _get_remote(self, ident: str) -> Agent | None:
        found = self.remote_agent(ident)
        return found.agent if found is not None else None

    def remote_agent(self, ident: str) -> RemoteAgent | None:
        """Return an agent of another node from the mirror."""
        return next(iter(self.remote_agents(mirror.BY_ID, ident)), None)

    def list_sender(self, entry: AgentEntry, owner: str) -> None:
        """Add an agent of another node that speaks before the directory has brought its entry."""
        mirror.write_entries(self.connection, [entry], owner)

    def hand_over_agent(self, ident: str, node_id: str) -> None:
        """Record in the mirror that an agent of another node moved to a third one."""
        mirror.hand_over(self.connection, ident, node_id)

    def drop_remote_agent(self, ident: str) -> None:
        """Remove an agent from the mirror: it lives on this node now."""
        mirror.drop_agent(self.connection, ident)

    def remote_agents(self, query: str, *values: Any) -> list[RemoteAgent]:
        """Return the agents of other nodes that a query of the mirror finds."""
        return [mirror.read_row(*row) for row in self.select(mirror.MIRROR_TABLES, query, values)]

    def count_remote_agents(self, node_id: str, limit: int) -> int:
        """Count the agents that a node lists, up to a limit."""
        return int(self.select(mirror.MIRROR_TABLES, mirror.COUNT, (node_id, limit)).fetchone()[0])

    def has_remote_agents(self) -> bool:
        """Whether agents of other nodes are known."""
        return bool(self._connection.execute(mirror.EXISTS).fetchone()[0])

    def beginning(self, kind: type[Record], start: str, limit: int) -> list[str]:
        """Return the first ids that begin with this text."""
        table = get_table(kind)
        found = self.select((table.name,), table.starting, table.bounds(start, limit))
        return [ident for (ident,) in found]

    def one(self, kind: type[T], query: str, **values: Any) -> T | None:
        """Return the first record that a named query finds."""
        found = self._query(query, values).fetchone()
        return self.complete(get_table(kind).read(found[0])) if found else None

    def many(self, kind: type[T], query: str, **values: Any) -> list[T]:
        """Return the records that a named query finds."""
        read = get_table(kind).read
        if self._unit is not None and query in KEPT:
            found = self._find_kept(query, values, read)
        else:
            found = [read(data) for (data,) in self._query(query, values)]
        return [self.complete(one) for one in found] if kind in _OF_NODE else found

    def _find_kept(self, query: str, values: Mapping[str, Any], read: Callable[[bytes], T]) -> list[T]:
        """Return the result of a query from memory; a long one is not kept there."""
        assert self._unit is not None  # a reader has no memory
        found = self._unit.find_all(query, values)
        if found is None:
            whole = {**values, "after": "", "before": LAST, "limit": LONGEST + 1}
            stored = self._connection.execute(QUERIES[query], whole).fetchall()
            if len(stored) > LONGEST:
                return [read(data) for (data,) in self._query(query, values)]
            found = self._unit.load_all(query, values, [read(data) for (data,) in stored])
        return found

    def complete(self, record: T) -> T:
        """Return a record with what is newer than its row: the name of this node, and a sign of life."""
        if record.__class__ not in _OF_NODE:
            return record
        known: Any = record
        if known.__class__ is Endpoint:
            sign = self._signs.get(known.id)
            known = sign if sign is not None and sign.revision == known.revision else known
        if known.node == self.node or self.node is None or (known.__class__ is Agent and known.moved_to):
            return known
        return replace(known, node=self.node)

    def value(self, query: str, **values: Any) -> Any:
        """Return the single value of a named query."""
        return self._query(query, values).fetchone()[0]

    def times(self, query: str, **values: Any) -> list[Time]:
        """Return the times of a named query."""
        return [Time(moment) for (moment,) in self._query(query, values)]

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a named query that returns no records."""
        return self._query(query, values).fetchall()

    def facts(self, query: str, **values: Any) -> list[Event]:
        """Return the events whose numbers a named query finds."""
        found = [self.log.get(seq) for (seq,) in self.rows(query, **values)]
        return [event for event in found if event is not None]

    def has_received(self, envelope_id: str) -> bool:
        """Whether an envelope of another node was taken, by an unwritten request of the group too."""
        if self._unit is not None and self._unit.has_received(envelope_id):
            return True
        query = QUERIES["envelope_received"]
        return self._connection.execute(query, {"envelope": envelope_id}).fetchone() is not None

    def list_taken(self, idents: Iterable[str]) -> frozenset[str]:
        """Return which of these envelopes of other nodes were taken."""
        found = self.rows("envelopes_taken", ids=json.dumps(list(idents)))
        return frozenset(ident for (ident,) in found)

    @property
    def log(self) -> EventReader:
        """Return the reader of the log, after writing every appended event."""
        return EventReader(self.connection)

    def last_seq(self) -> int:
        """Return the number of the newest event."""
        unwritten = self._unit.last_seq if self._unit else None
        return unwritten or read_last_seq(self._connection)

    def refresh(self, record: Record) -> None:
        """Write a row without an event: only for volatile fields, such as a sign of life."""
        get_table(type(record)).write(self.connection, record)
        if self._unit is not None:
            self._unit.memory.apply(record)

    # -- what no event explains: these tables are written at once -------------------------------------

    def prepare_history(self, limit: int) -> Batch | None:
        """Return the rows of the history that follow from the next events; None if there are none."""
        return prepare_batch(self._connection, limit)

    def store_history(self, batch: Batch) -> None:
        """Write them. They depend on committed events only, so nothing else is written first."""
        store_batch(self._connection, batch)

    def recall(self, actor: str, operation: str, key: str) -> Remembered | None:
        """Return the stored answer of this actor, operation and key."""
        query = "SELECT hash, answer FROM receipts WHERE actor = ? AND operation = ? AND key = ?"
        found = self._connection.execute(query, (actor, operation, key)).fetchone()
        return Remembered(*found) if found else None

    def remember(self, actor: str, operation: str, key: str, *, receipt: Remembered, now: Time) -> None:
        """Store the answer in the transaction of its request. A known key raises IntegrityError."""
        self._connection.execute(
            "INSERT INTO receipts (actor, operation, key, hash, answer, time) VALUES (?, ?, ?, ?, ?, ?)",
            (actor, operation, key, *receipt, int(now)),
        )

    def forget_answers(self, before: Time, limit: int) -> int:
        """Delete answers older than `before`, the oldest first; return how many."""
        old = "SELECT actor, operation, key FROM receipts WHERE time < ? ORDER BY time LIMIT ?"
        gone = f"DELETE FROM receipts WHERE (actor, operation, key) IN ({old})"
        return self._connection.execute(gone, (int(before), limit)).rowcount

    def has_older_answers(self, before: Time) -> bool:
        """Whether there are answers to delete."""
        query = "SELECT 1 FROM receipts WHERE time < ? ORDER BY time LIMIT 1"
        return self._connection.execute(query, (int(before),)).fetchone() is not None

    def read_last_look(self, user: str) -> Time | None:
        """Return when this person last looked, or None."""
        found = self._connection.execute("SELECT time FROM looks WHERE user = ?", (user,)).fetchone()
        return Time(found[0]) if found else None

    def mark_look(self, user: str, now: Time) -> None:
        """Record that this person looks now; a clock set back does not undo a later look."""
        later = "ON CONFLICT (user) DO UPDATE SET time = max(time, excluded.time)"
        self._connection.execute(f"INSERT INTO looks VALUES (?, ?) {later}", (user, int(now)))

    def read_cursor(self, connector: str) -> str | None:
        """Return how far a connector has read."""
        query = "SELECT cursor FROM chat_cursors WHERE connector = ?"
        found = self._connection.execute(query, (connector,)).fetchone()
        return found[0] if found else None

    def move_cursor(self, connector: str, cursor: str | None) -> None:
        """Store how far a connector has read; None forgets it."""
        self._connection.execute("DELETE FROM chat_cursors WHERE connector = ?", (connector,))
        if cursor is not None:
            self._connection.execute("INSERT INTO chat_cursors VALUES (?, ?)", (connector, cursor))

    def record_attempt(self, connector: str, chat: str, now: Time, since: Time) -> None:
        """Store that a wrong link code was typed in a chat; attempts that no longer count are removed."""
        old = "DELETE FROM link_attempts WHERE connector = ? AND time <= ?"
        self._connection.execute(old, (connector, int(since)))
        self._connection.execute("INSERT INTO link_attempts VALUES (?, ?, ?)", (connector, chat, int(now)))

    def move_back_look(self, user: str, now: Time) -> None:
        """Move looks in the future back to now, after the clock was corrected."""
        self._connection.execute("UPDATE looks SET time = min(time, ?) WHERE user = ?", (int(now), user))
