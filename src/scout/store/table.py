"""The tables projected from the log, one per noun, and the named queries of `sql/queries.sql`.

A row holds the whole record as JSON (`data`) and, as columns, only what queries search.
"""

import functools
import re
import sqlite3
from collections.abc import Iterable
from importlib import resources
from operator import attrgetter
from typing import Any

from scout.base.codec import decode, drop_defaults, encode_each_for_store
from scout.base.record import Record
from scout.base.time import Time
from scout.model.access.allowance import Allowance
from scout.model.access.grant import Grant
from scout.model.access.token import Token
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.card import Card
from scout.model.conversation import Conversation, Member, Message
from scout.model.delivery import Delivery
from scout.model.endpoint import Endpoint
from scout.model.flight import Flight
from scout.model.mesh.member import Invitation
from scout.model.mesh.outbox import OutboxEntry
from scout.model.node import Node
from scout.model.people.binding import Binding
from scout.model.people.chat_post import ChatPost
from scout.model.people.link_code import LinkCode
from scout.model.people.schedule import Schedule
from scout.model.people.user import ConnectorKey, User
from scout.model.question import Question
from scout.model.reservation import Reservation
from scout.model.retention.archive import Archive
from scout.model.session import Session
from scout.model.usage import Usage
from scout.model.work_item import WorkItem


class Table:
    """A table of records; `columns` are the fields that are also columns, dotted if nested.

    `key`: the unique column, if it is not the id. `has_unique_columns`: whether others are unique too.
    """

    def __init__(
        self,
        name: str,
        record: type[Record],
        fields: tuple[str, ...],
        key: tuple[str, ...] = ("id",),
        *,
        has_unique_columns: bool = False,
    ) -> None:
        self.name = name
        self.has_unique_columns = has_unique_columns
        self.record = record
        self.columns = tuple(field.rpartition(".")[2] for field in fields)
        names = ("id", *self.columns, "data")
        changes = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
        self.upsert = (
            f"INSERT INTO {name} ({', '.join(names)}) VALUES ({', '.join('?' for _ in names)}) "
            f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
        )
        self._select = f"SELECT data FROM {name} WHERE id = ?"
        self.starting = f"SELECT id FROM {name} WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
        # With `id` there are always several, so the result is always a tuple.
        self._cells = attrgetter("id", *fields)

    def row(self, record: Record, data: bytes) -> tuple[Any, ...]:
        """Return the values of a record's row; `data` is the stored record."""
        # Text for names and states, integers for times and flags; no function is called for each column.
        cells = [
            one
            if one is None or (kind := one.__class__) is str
            else int(one)
            if kind in _NUMBERS
            else str(one)
            for one in self._cells(record)
        ]
        return (*cells, data)

    def write(self, connection: sqlite3.Connection, record: Record) -> None:
        """Insert or replace one row."""
        connection.execute(self.upsert, self.row(record, *encode_records([record])))

    def get(self, connection: sqlite3.Connection, ident: str) -> Any:
        """Return the record with this id, or None."""
        found = connection.execute(self._select, (ident,)).fetchone()
        return self.read(found[0]) if found else None

    def bounds(self, start: str, limit: int) -> tuple[str, str, int]:
        """Return the values of `starting` for ids that begin with a text; an id has nothing beyond 'z'."""
        return start, f"{start}{{", limit

    def read(self, data: bytes) -> Any:
        """Return the record of a row; kinds that every request reads are decoded once."""
        return _decode_shared(data, self.record) if self.record in _SHARED else decode(data, self.record)


def encode_records(records: Iterable[Record]) -> list[bytes]:
    """Return records as their rows hold them: without fields that have their defaults."""
    return encode_each_for_store(drop_defaults(records))


@functools.lru_cache(maxsize=8192)
def _decode_shared(data: bytes, kind: type[Record]) -> Any:
    return decode(data, kind)


_SHARED = frozenset({Agent, Endpoint, Conversation, Session, Token})


_NUMBERS = frozenset({bool, int, Time})


_TABLES = (
    Table(
        "agents",
        Agent,
        (
            "owner",
            "path",
            "kind",
            "parent_id",
            "definition_id",
            "workspace",
            "profile",
            "node",
            "project_root",
            "working_dir",
            "birth_branch",
            "lifecycle",
            "config.wake_policy",
            "last_active_at",
        ),
        has_unique_columns=True,
    ),
    Table("endpoints", Endpoint, ("agent_id", "session_id", "state", "last_seen", "held", "wake_policy")),
    Table("sessions", Session, ("agent_id", "state")),
    Table("conversations", Conversation, ("kind", "owner", "name", "parent_id", "archived_at", "created_at")),
    Table(
        "members",
        Member,
        ("conversation_id", "agent_id", "read_seq", "left_at", "created_at"),
        ("conversation_id", "agent_id"),
    ),
    Table("messages", Message, ("conversation_id", "sender", "seq", "in_reply_to")),
    Table("asks", Ask, ("message_id", "sender", "target", "created_at")),
    Table("flights", Flight, ("ask_id", "target", "requester_id", "state", "next_check_at", "finished_at")),
    Table(
        "deliveries",
        Delivery,
        (
            "target",
            "state",
            "wake",
            "delegates",
            "next_attempt_at",
            "leased_until",
            "conversation_id",
            "message_id",
            "flight_id",
            "created_at",
            "expires_at",
        ),
    ),
    Table("questions", Question, ("state", "asker_id", "responder_id", "next_move_owner_id", "message_id")),
    Table(
        "work_items",
        WorkItem,
        ("owner_id", "requester_id", "next_move_owner_id", "state", "awaits", "settled_at"),
    ),
    Table(
        "attention",
        Attention,
        ("user", "agent_id", "state", "dedupe", "expires_at", "urgency", "rank", "allowance_id"),
        has_unique_columns=True,
    ),
    Table("allowances", Allowance, ("user", "kind", "subject", "session_id", "state")),
    Table(
        "bindings",
        Binding,
        ("surface", "name", "external_id", "topic_id", "conversation_id", "agent_id", "user", "state"),
        has_unique_columns=True,
    ),
    Table(
        "chat_posts",
        ChatPost,
        ("connector", "chat_id", "user", "message_id", "attention_id", "state", "next_attempt_at"),
    ),
    Table("cards", Card, ("agent_id", "created_by", "state", "expires_at")),
    Table(
        "aliases",
        Alias,
        ("owner", "name", "target.agent_id", "target.session_id", "until_session_ends", "state"),
        has_unique_columns=True,
    ),
    Table("usage", Usage, ("agent_id", "category", "created_at")),
    Table("users", User, ("name", "operator", "owner", "state"), has_unique_columns=True),
    Table(
        "connector_keys", ConnectorKey, ("connector", "external_id", "user", "state"), has_unique_columns=True
    ),
    Table("link_codes", LinkCode, ("hashed", "user", "connector", "state"), has_unique_columns=True),
    Table("archives", Archive, ("kind", "state", "first", "last")),
    Table("invitations", Invitation, ("state", "expires_at")),
    Table("nodes", Node, ("name", "local", "state"), has_unique_columns=True),
    Table(
        "tokens",
        Token,
        ("hashed", "kind", "agent_id", "session_id", "state", "expires_at"),
        has_unique_columns=True,
    ),
    Table("grants", Grant, ("agent_id", "user", "state", "expires_at")),
    Table("schedules", Schedule, ("state", "owner", "agent_id", "next_at", "updated_at")),
    Table(
        "reservations",
        Reservation,
        ("agent_id", "session_id", "flight_id", "root", "state", "expires_at"),
    ),
    Table(
        "outbox",
        OutboxEntry,
        (
            "node_id",
            "kind",
            "subject",
            "conversation_id",
            "delivery_id",
            "state",
            "next_attempt_at",
            "expires_at",
        ),
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in _TABLES}
_BY_RECORD = {table.record: table for table in _TABLES}


def get_table(record: type[Record]) -> Table:
    """Return the table of records of this type."""
    return _BY_RECORD[record]


_NAMED = re.compile(r"^-- (?P<name>[a-z_]+): .+\n(?P<statement>(?:(?!--).*\n?)+)", re.MULTILINE)


def _read_queries() -> dict[str, str]:
    text = (resources.files("scout.store") / "sql" / "queries.sql").read_text()
    return {found["name"]: found["statement"].strip().rstrip(";") for found in _NAMED.finditer(text)}


QUERIES: dict[str, str] = _read_queries()


def _list_tables(statement: str) -> frozenset[str]:
    """Return the names in a statement that may be tables."""
    return frozenset(re.findall(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+([a-z_]+)", statement))


QUERY_TABLES: dict[str, frozenset[str]] = {name: _list_tables(text) for name, text in QUERIES.items()}
