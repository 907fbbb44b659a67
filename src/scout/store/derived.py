"""What the resolver looks for besides the rows themselves: model words, native ids, nearest names."""

import sqlite3
from collections.abc import Callable
from typing import Any

from msgspec.structs import astuple

from scout.base.record import Record
from scout.identity.model_word import model_words
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.conversation import Member, Message
from scout.model.delivery import Delivery
from scout.model.endpoint import ACTIVE, Endpoint
from scout.model.flight import Flight
from scout.model.question import Question
from scout.model.session import Session
from scout.model.usage import Counters, Totals, Usage, day_of
from scout.model.work_item import WorkItem
from scout.policy.nearest import keys_of
from scout.store import files, followed, owed

_DAY_KEYS = ("day", "agent_id", "category", "harness", "model")
_DAY_SUMS = (*Totals.__struct_fields__, *Counters.__struct_fields__)

DERIVED_TABLES = {
    "endpoint_words": ("agent_id", "harness", "word", "endpoint_id"),
    "reachable": ("definition_id", "agent_id"),
    "native_sessions": ("harness", "native_id", "session_id"),
    "names": ("name",),
    "sweeps": ("id", "period", "since", "nudges", "nudged_at", "next_at"),
    "name_keys": ("key", "name"),
    "usage_days": (*_DAY_KEYS, *_DAY_SUMS),
    "work_relations": ("work_item_id", "from_id", "kind"),
    "followed": ("agent_id", "conversation_id", "read_seq"),
    "concerned": ("agent_id", "seq"),
    "file_uploads": ("sha256", "agent_id"),
    "file_messages": ("sha256", "message_id"),
}


def derive(connection: sqlite3.Connection, record: Record) -> None:
    """Bring the derived rows of a record up to date."""
    follow = _DERIVE.get(type(record))
    if follow is not None:
        follow(connection, record)


def _endpoint(connection: sqlite3.Connection, endpoint: Endpoint) -> None:
    words = {"", *(model_words(endpoint.model) if endpoint.model else ())}
    entered = connection.execute("SELECT word FROM endpoint_words WHERE endpoint_id = ?", (endpoint.id,))
    if {word for (word,) in entered} != words:
        rows = [(endpoint.agent_id, endpoint.harness or "", word, endpoint.id) for word in sorted(words)]
        connection.execute("DELETE FROM endpoint_words WHERE endpoint_id = ?", (endpoint.id,))
        connection.executemany("INSERT INTO endpoint_words VALUES (?, ?, ?, ?)", rows)
    _reachable(connection, endpoint)


def _reachable(connection: sqlite3.Connection, endpoint: Endpoint) -> None:
    agent_id = endpoint.agent_id
    active = "SELECT 1 FROM endpoints WHERE agent_id = ? AND state IN ('idle', 'working') LIMIT 1"
    name = "(SELECT definition_id FROM agents WHERE id = ? AND definition_id IS NOT NULL)"
    if endpoint.state in ACTIVE or connection.execute(active, (agent_id,)).fetchone():
        added = f"INSERT OR IGNORE INTO reachable SELECT definition_id, ? FROM {name}"
        connection.execute(added, (agent_id, agent_id))
    else:
        connection.execute(
            f"DELETE FROM reachable WHERE agent_id = ? AND definition_id = {name}", (agent_id,) * 2
        )


def _session(connection: sqlite3.Connection, session: Session) -> None:
    rows = [(session.harness, native, session.id) for native in session.native_ids.values()]
    connection.executemany("INSERT OR IGNORE INTO native_sessions VALUES (?, ?, ?)", rows)


def _name(connection: sqlite3.Connection, name: str) -> None:
    """A name is entered once; whether somebody still has it is asked when it is offered."""
    added = connection.execute("INSERT OR IGNORE INTO names VALUES (?)", (name,)).rowcount
    if added:
        rows = [(key, name) for key in keys_of(name)]
        connection.executemany("INSERT INTO name_keys VALUES (?, ?)", rows)


def _agent(connection: sqlite3.Connection, agent: Agent) -> None:
    if agent.definition_id is not None:
        _name(connection, agent.definition_id)


def _alias(connection: sqlite3.Connection, alias: Alias) -> None:
    _name(connection, alias.name)


def _work_item(connection: sqlite3.Connection, item: WorkItem) -> None:
    """Its next move is owed or not; a relation is never taken back, so each is entered once."""
    owed.follow(connection, item)
    rows = [(one.work_item_id, item.id, str(one.kind)) for one in item.relations]
    connection.executemany("INSERT OR IGNORE INTO work_relations VALUES (?, ?, ?)", rows)


def _message(connection: sqlite3.Connection, message: Message) -> None:
    followed.follow_message(connection, message)
    if message.attachments or message.redacted_at is not None:
        files.follow_message(connection, message)


_ADD_TO_DAY = (
    f"INSERT INTO usage_days ({', '.join((*_DAY_KEYS, *_DAY_SUMS))}) "
    f"VALUES ({', '.join('?' for _ in (*_DAY_KEYS, *_DAY_SUMS))}) "
    f"ON CONFLICT ({', '.join(_DAY_KEYS)}) DO UPDATE SET "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in _DAY_SUMS)
)


def _usage(connection: sqlite3.Connection, usage: Usage) -> None:
    """A report is a fact of its own and never changes: it is added once."""
    day = day_of(usage)
    keys = (day.day, day.agent_id, str(day.category), day.harness, day.model)
    connection.execute(_ADD_TO_DAY, (*keys, *astuple(day.totals), *astuple(day.counters)))


_DERIVE: dict[type[Record], Callable[[sqlite3.Connection, Any], None]] = {
    Agent: _agent,
    Alias: _alias,
    Delivery: followed.follow_delivery,
    Endpoint: _endpoint,
    Flight: owed.follow,
    Member: followed.follow_member,
    Message: _message,
    Question: owed.follow,
    Session: _session,
    Usage: _usage,
    WorkItem: _work_item,
}
