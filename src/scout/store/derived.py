"""Rows derived from the log in addition to the records, for the resolver, the sweeper and lists."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec.structs import astuple

from scout.base.record import Record
from scout.identity.model_word import list_model_words
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.conversation import Member, Message
from scout.model.delivery import Delivery
from scout.model.endpoint import ACTIVE, Endpoint
from scout.model.events.asks import SweepNudged, SweepSettled
from scout.model.events.chats import ChatReceived, ChatStranger
from scout.model.events.envelope import Event
from scout.model.events.mesh import EnvelopeReceived, EnvelopesForgotten
from scout.model.events.talk import AttachmentStored
from scout.model.flight import Flight
from scout.model.people.chat_post import ChatPost
from scout.model.question import Question
from scout.model.session import Session
from scout.model.usage import Counters, Totals, Usage, UsageDay, UsageLedger, get_day
from scout.model.work_item import WorkItem
from scout.policy.nearest import build_keys
from scout.store.table import QUERIES

_DAY_KEYS = ("day", "agent_id", "category", "harness", "model")
_REMEMBERED = 20_000  # records whose derived rows are known
K = TypeVar("K")
T = TypeVar("T")
_Place = tuple[str, str]  # an agent and a conversation
_Reach = tuple[str | None, str | None, bool]
_Statement = tuple[str, tuple[Any, ...]]
_DAY_SUMS = (*Totals.__struct_fields__, *Counters.__struct_fields__)

DERIVED_TABLES = {
    "envelopes_received": ("envelope_id", "node_id", "seq", "subject"),
    "endpoint_words": ("agent_id", "harness", "word", "endpoint_id"),
    "reachable": ("definition_id", "agent_id"),
    "native_sessions": ("harness", "native_id", "session_id"),
    "names": ("name",),
    "sweeps": ("id", "period", "since", "nudges", "nudged_at", "next_at"),
    "name_keys": ("key", "name"),
    "usage_days": (*_DAY_KEYS, *_DAY_SUMS),
    "work_relations": ("work_item_id", "from_id", "kind"),
    "followed": ("agent_id", "conversation_id", "read_seq"),
    "file_uploads": ("sha256", "agent_id"),
    "file_messages": ("sha256", "message_id"),
    "chat_parts": ("connector", "chat_id", "external_id", "post_id"),
    "chat_received": (
        "connector",
        "inbound_id",
        "seq",
        "chat_id",
        "thread_id",
        "external_id",
        "message_id",
        "asks",
    ),
    "chat_strangers": ("connector", "hashed", "day"),
}


class DerivedMemory:
    """What is known about derived rows, so that rows which stay as they are cost no statement.

    Owned by whoever writes the tables, and cleared when a transaction is rolled back. Without it, replay
    writes the same rows.
    """

    def __init__(self) -> None:
        self._endpoints: dict[str, _Reach] = {}
        self._settled: dict[str, None] = {}
        self._unfollowed: dict[_Place, None] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._endpoints.clear()
        self._settled.clear()
        self._unfollowed.clear()

    def is_unfollowed(self, place: _Place) -> bool:
        """Whether an agent is known to follow no conversation of this id, such as a direct one."""
        return place in self._unfollowed

    def note_unfollowed(self, place: _Place) -> None:
        """Remember that an agent has no read cursor to advance in a conversation."""
        _remember(self._unfollowed, place, None)

    def follow(self, place: _Place) -> None:
        """Forget that an agent does not follow a conversation."""
        self._unfollowed.pop(place, None)

    def is_reached_as_before(self, endpoint: Endpoint) -> bool:
        """Whether an endpoint leaves its rows as they are; remember how it is reached now."""
        reach = (endpoint.harness, endpoint.model, endpoint.state in ACTIVE)
        before = self._endpoints.get(endpoint.id)
        _remember(self._endpoints, endpoint.id, reach)
        return reach == before

    def settle(self, ident: str) -> bool:
        """Remember that a record owes no move; return whether that was known."""
        known = ident in self._settled
        _remember(self._settled, ident, None)
        return known

    def owe(self, ident: str) -> None:
        """Remember that a record owes a move."""
        self._settled.pop(ident, None)


def _remember(known: dict[K, T], ident: K, value: T) -> None:
    """Add an entry; the oldest ones make room."""
    known[ident] = value
    if len(known) > _REMEMBERED:
        del known[next(iter(known))]


class DerivedRows:
    """Writes the rows that follow from events and records, which are stored already.

    Most rows are written as each change is seen. Some depend only on the last version of a record, or on what
    is stored at the end. These are kept, and `finish` writes each of them once.
    """

    def __init__(self, connection: sqlite3.Connection, memory: DerivedMemory) -> None:
        self.connection = connection
        self._memory = memory
        self._endpoints: dict[str, Endpoint] = {}
        self._readers: dict[_Place, None] = {}
        self._moves: dict[str, list[_Statement]] = {}
        self._new: set[str] = set()

    def catch_up(self, agent_id: str, conversation_id: str) -> None:
        """Advance how far an agent has read, at the end: a later message is unread, or catches up itself."""
        self._readers[agent_id, conversation_id] = None

    def follow(self, agent_id: str, conversation_id: str) -> None:
        """Store how far an agent has read from now on."""
        self._memory.follow((agent_id, conversation_id))
        self.catch_up(agent_id, conversation_id)

    def change_endpoint(self, endpoint: Endpoint) -> None:
        self._endpoints[endpoint.id] = endpoint

    def owe(self, ident: str, statement: _Statement) -> None:
        """Change the owed move of a record."""
        self._memory.owe(ident)
        moves = self._moves.setdefault(ident, [])
        if moves[-1:] != [statement]:
            moves.append(statement)

    def owe_nothing(self, ident: str, revision: int = 0) -> None:
        """End the owed move of a record. One that is as new as these changes had no earlier move."""
        if revision == 1:
            self._new.add(ident)
        if self._memory.settle(ident) and ident not in self._moves:
            return
        self._moves[ident] = [] if ident in self._new else [(_OVER, (ident,))]

    def finish(self) -> None:
        """Write what was kept."""
        for endpoint in self._endpoints.values():
            if not self._memory.is_reached_as_before(endpoint):
                _write_endpoint(self.connection, endpoint)
        for moves in self._moves.values():
            for statement, values in moves:
                self.connection.execute(statement, values)
        for place in self._readers:
            if self._memory.is_unfollowed(place):
                continue
            if not self.connection.execute(_CATCH_UP, place).rowcount:
                self._memory.note_unfollowed(place)


def derive(
    connection: sqlite3.Connection,
    changes: Iterable[tuple[Event, Sequence[Record]]],
    memory: DerivedMemory,
) -> None:
    """Write the rows derived from events and the records that they changed, in order."""
    rows = DerivedRows(connection, memory)
    for event, records in changes:
        for record in records:
            if type(record) in _BY_RECORD:
                _BY_RECORD[type(record)](rows, record)
        if type(event) in _BY_EVENT:
            _BY_EVENT[type(event)](rows, event)
    rows.finish()


# -- names and endpoints ---------------------------------------------------------------------------


def _write_endpoint(connection: sqlite3.Connection, endpoint: Endpoint) -> None:
    words = {"", *(list_model_words(endpoint.model) if endpoint.model else ())}
    entered = connection.execute("SELECT word FROM endpoint_words WHERE endpoint_id = ?", (endpoint.id,))
    if {word for (word,) in entered} != words:
        rows = [(endpoint.agent_id, endpoint.harness or "", word, endpoint.id) for word in sorted(words)]
        connection.execute("DELETE FROM endpoint_words WHERE endpoint_id = ?", (endpoint.id,))
        connection.executemany("INSERT INTO endpoint_words VALUES (?, ?, ?, ?)", rows)
    _write_reachable(connection, endpoint)


def _write_reachable(connection: sqlite3.Connection, endpoint: Endpoint) -> None:
    agent_id = endpoint.agent_id
    active = "SELECT 1 FROM endpoints WHERE agent_id = ? AND state IN ('idle', 'working') LIMIT 1"
    name = "(SELECT coalesce(definition_id, '') AS definition_id FROM agents WHERE id = ?)"
    if endpoint.state in ACTIVE or connection.execute(active, (agent_id,)).fetchone():
        added = f"INSERT OR IGNORE INTO reachable SELECT definition_id, ? FROM {name}"
        connection.execute(added, (agent_id, agent_id))
    else:
        connection.execute(
            f"DELETE FROM reachable WHERE agent_id = ? AND definition_id = {name}", (agent_id,) * 2
        )


def _write_session(rows: DerivedRows, session: Session) -> None:
    known = [(session.harness, native, session.id) for native in session.native_ids.values()]
    rows.connection.executemany("INSERT OR IGNORE INTO native_sessions VALUES (?, ?, ?)", known)


def _write_name(rows: DerivedRows, name: str) -> None:
    """Store a name once; whether an agent still has it is checked at lookup."""
    added = rows.connection.execute("INSERT OR IGNORE INTO names VALUES (?)", (name,)).rowcount
    if added:
        keys = [(key, name) for key in build_keys(name)]
        rows.connection.executemany("INSERT INTO name_keys VALUES (?, ?)", keys)


def _write_agent(rows: DerivedRows, agent: Agent) -> None:
    if agent.definition_id is not None:
        _write_name(rows, agent.definition_id)


def _write_alias(rows: DerivedRows, alias: Alias) -> None:
    _write_name(rows, alias.name)


# -- owed moves ------------------------------------------------------------------------------------

# A new moment is a new owed move: reminders of the previous one are dropped.
_OWED = """
INSERT INTO sweeps VALUES (?, ?, ?, 0, NULL, NULL) ON CONFLICT (id) DO UPDATE
SET period = excluded.period, since = excluded.since, nudges = 0, nudged_at = NULL, next_at = NULL
WHERE period <> excluded.period OR since <> excluded.since
"""
# Only a message has no row yet: every other record got one when its move became owed.
_NUDGED = """
INSERT INTO sweeps VALUES (?, 'delegation', ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
SET nudges = excluded.nudges, nudged_at = excluded.nudged_at, next_at = excluded.next_at
"""
_OVER = "DELETE FROM sweeps WHERE id = ?"


def _write_sweep(rows: DerivedRows, record: Question | WorkItem | Flight) -> None:
    """Store since when the next move of a changed record is owed, or that none is."""
    late = record.owed_move
    if late is None:
        rows.owe_nothing(record.id, record.revision)
    else:
        rows.owe(record.id, (_OWED, (record.id, late.period, int(late.since))))


def _write_nudge(rows: DerivedRows, event: SweepNudged) -> None:
    nudge, moment = event.payload, int(event.time)
    next_at = None if nudge.next_at is None else int(nudge.next_at)
    rows.owe(nudge.about.id, (_NUDGED, (nudge.about.id, moment, nudge.count, moment, next_at)))


def _end_sweep(rows: DerivedRows, event: SweepSettled) -> None:
    rows.owe_nothing(event.payload.about.id)


def _write_work_item(rows: DerivedRows, item: WorkItem) -> None:
    """Store its next move and its relations; relations are never removed, so each is stored once."""
    _write_sweep(rows, item)
    related = [(one.work_item_id, item.id, str(one.kind)) for one in item.relations]
    rows.connection.executemany("INSERT OR IGNORE INTO work_relations VALUES (?, ?, ?)", related)


# -- how far each member has read ------------------------------------------------------------------

_JOIN = """
INSERT INTO followed SELECT ?, id, ? FROM conversations WHERE id = ? AND kind <> 'dm'
ON CONFLICT DO UPDATE SET read_seq = max(read_seq, excluded.read_seq)
"""
_LEAVE = "DELETE FROM followed WHERE agent_id = ? AND conversation_id = ?"
# The last message before the first unread one. A member's own or delivered messages are not unread.
_CATCH_UP = """
UPDATE followed SET read_seq = coalesce((
    SELECT m.seq FROM messages m
    WHERE m.conversation_id = followed.conversation_id AND m.seq > followed.read_seq AND m.seq < coalesce((
        SELECT u.seq FROM messages u
        WHERE u.conversation_id = followed.conversation_id AND u.seq > followed.read_seq
            AND u.sender <> followed.agent_id
            AND NOT EXISTS (
                SELECT 1 FROM deliveries d WHERE d.message_id = u.id AND d.target = followed.agent_id
            )
        ORDER BY u.seq LIMIT 1
    ), 1 << 62)
    ORDER BY m.seq DESC LIMIT 1
), read_seq)
WHERE agent_id = ? AND conversation_id = ?
"""


def _write_member(rows: DerivedRows, member: Member) -> None:
    """Store that an agent joined, left, or has read further."""
    if member.left_at is not None:
        rows.connection.execute(_LEAVE, (member.agent_id, member.conversation_id))
        return
    rows.connection.execute(_JOIN, (member.agent_id, member.read_seq, member.conversation_id))
    rows.follow(member.agent_id, member.conversation_id)


def _write_delivery(rows: DerivedRows, delivery: Delivery) -> None:
    """Mark a delivered message as read in its conversation: it is in the agent's inbox."""
    if delivery.revision == 1 and delivery.conversation_id is not None:
        rows.catch_up(delivery.target, delivery.conversation_id)


def _write_message(rows: DerivedRows, message: Message) -> None:
    """Mark a message as read by its sender; it keeps its files until it is redacted."""
    rows.catch_up(message.sender, message.conversation_id)
    if message.redacted_at is not None:
        rows.connection.execute("DELETE FROM file_messages WHERE message_id = ?", (message.id,))
    if message.attachments:
        files = [(one.sha256, message.id) for one in message.attachments]
        rows.connection.executemany("INSERT OR IGNORE INTO file_messages VALUES (?, ?)", files)


def _write_upload(rows: DerivedRows, event: AttachmentStored) -> None:
    row = (event.payload.sha256, event.source.id)
    rows.connection.execute("INSERT OR IGNORE INTO file_uploads VALUES (?, ?)", row)


# -- chats ------------------------------------------------------------------------------------------


def _write_post(rows: DerivedRows, post: ChatPost) -> None:
    """Store which messages on the platform are parts of a post."""
    parts = [(post.connector, post.chat_id, part, post.id) for part in post.parts]
    rows.connection.executemany("INSERT OR IGNORE INTO chat_parts VALUES (?, ?, ?, ?)", parts)


def _write_received(rows: DerivedRows, event: ChatReceived) -> None:
    """Store that something from a platform was taken. A second event of the same id is an error."""
    one, place = event.payload, event.payload.place
    where = (place.chat_id, place.thread_id or "", one.external_id, one.message_id)
    row = (one.connector, one.inbound_id, event.seq, *where, int(one.asks))
    rows.connection.execute("INSERT INTO chat_received VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def _write_envelope(rows: DerivedRows, event: EnvelopeReceived) -> None:
    """Store that an envelope was taken. A second event of the same id is an error."""
    one = event.payload
    if one.authentic:
        row = (one.envelope_id, one.node_id, event.seq, one.subject)
        rows.connection.execute("INSERT INTO envelopes_received VALUES (?, ?, ?, ?)", row)


def _forget_envelopes(rows: DerivedRows, event: EnvelopesForgotten) -> None:
    rows.connection.execute("DELETE FROM envelopes_received WHERE seq < ?", (event.payload.before,))


def _write_stranger(rows: DerivedRows, event: ChatStranger) -> None:
    row = (event.payload.connector, event.payload.hashed, event.payload.day)
    rows.connection.execute("INSERT OR IGNORE INTO chat_strangers VALUES (?, ?, ?)", row)


# -- usage by day ----------------------------------------------------------------------------------

_ADD_TO_DAY = (
    f"INSERT INTO usage_days ({', '.join((*_DAY_KEYS, *_DAY_SUMS))}) "
    f"VALUES ({', '.join('?' for _ in (*_DAY_KEYS, *_DAY_SUMS))}) "
    f"ON CONFLICT ({', '.join(_DAY_KEYS)}) DO UPDATE SET "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in _DAY_SUMS)
)


def _write_usage(rows: DerivedRows, usage: Usage) -> None:
    """Add a usage report to its day; reports never change."""
    day = get_day(usage)
    keys = (day.day, day.agent_id, str(day.category), day.harness, day.model)
    rows.connection.execute(_ADD_TO_DAY, (*keys, *astuple(day.totals), *astuple(day.counters)))


def read_days(connection: sqlite3.Connection, day: str) -> Iterator[UsageDay]:
    """Return the usage of each day since `day`, oldest first; read from sums, not from reports."""
    found = connection.execute(QUERIES["usage_since"], {"day": day})
    names = [column[0] for column in found.description]
    for values in found:
        row = dict(zip(names, values, strict=True))
        yield UsageDay(
            day=row["day"],
            agent_id=row["agent_id"],
            category=UsageLedger(row["category"]),
            harness=row["harness"],
            model=row["model"],
            totals=Totals(**{name: row[name] for name in Totals.__struct_fields__}),
            counters=Counters(**{name: row[name] for name in Counters.__struct_fields__}),
        )


_BY_RECORD: dict[type[Record], Callable[[DerivedRows, Any], None]] = {
    Agent: _write_agent,
    Alias: _write_alias,
    ChatPost: _write_post,
    Delivery: _write_delivery,
    Endpoint: DerivedRows.change_endpoint,
    Flight: _write_sweep,
    Member: _write_member,
    Message: _write_message,
    Question: _write_sweep,
    Session: _write_session,
    Usage: _write_usage,
    WorkItem: _write_work_item,
}
_BY_EVENT: dict[type[Event], Callable[[DerivedRows, Any], None]] = {
    AttachmentStored: _write_upload,
    ChatReceived: _write_received,
    ChatStranger: _write_stranger,
    EnvelopeReceived: _write_envelope,
    EnvelopesForgotten: _forget_envelopes,
    SweepNudged: _write_nudge,
    SweepSettled: _end_sweep,
}

_TABLES_OF: dict[type[Record], tuple[str, ...]] = {
    Agent: ("names", "name_keys"),
    Alias: ("names", "name_keys"),
    AttachmentStored: ("file_uploads",),
    ChatPost: ("chat_parts",),
    ChatReceived: ("chat_received",),
    ChatStranger: ("chat_strangers",),
    Delivery: ("followed",),
    Endpoint: ("endpoint_words", "reachable"),
    EnvelopeReceived: ("envelopes_received",),
    EnvelopesForgotten: ("envelopes_received",),
    Flight: ("sweeps",),
    Member: ("followed",),
    Message: ("followed", "file_messages"),
    Question: ("sweeps",),
    Session: ("native_sessions",),
    SweepNudged: ("sweeps",),
    SweepSettled: ("sweeps",),
    Usage: ("usage_days",),
    WorkItem: ("sweeps", "work_relations"),
}


def list_derived_tables(kind: type[Record]) -> frozenset[str]:
    """Return the tables whose rows are derived from records or events of this kind."""
    return frozenset(_TABLES_OF.get(kind, ()))
