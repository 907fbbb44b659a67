"""The tables that are projected from the log: one per noun, its columns read off the record.

A row holds the whole record as JSON (`data`) and, as columns, only what queries look for.
"""

import sqlite3
from operator import attrgetter
from typing import Any, NamedTuple

from scout.base.codec import decode, stored
from scout.base.record import Record
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.binding import Binding
from scout.model.card import Card
from scout.model.conversation import Conversation, Member, Message
from scout.model.delivery import Delivery
from scout.model.endpoint import Endpoint
from scout.model.flight import Flight
from scout.model.grant import Grant
from scout.model.node import Node
from scout.model.question import Question
from scout.model.schedule import Schedule
from scout.model.session import Session
from scout.model.token import Token
from scout.model.usage import Usage
from scout.model.user import ConnectorKey, User
from scout.model.work_item import WorkItem

__all__ = ["TABLES", "Table", "table_of"]


class Table(NamedTuple):
    """A table of records; `columns` are the fields that are also columns, dotted when they lie deeper."""

    name: str
    record: type[Record]
    fields: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.rpartition(".")[2] for field in self.fields)

    @property
    def upsert(self) -> str:
        names = ("id", *self.columns, "data")
        marks = ", ".join("?" for _ in names)
        changes = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
        return (
            f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({marks}) "
            f"ON CONFLICT (id) DO UPDATE SET {changes}"
        )

    def row(self, record: Record) -> tuple[Any, ...]:
        """The values of a record's row."""
        values = (_cell(attrgetter(field)(record)) for field in self.fields)
        return (attrgetter("id")(record), *values, stored(record))

    def get(self, connection: sqlite3.Connection, ident: str) -> Any:
        """The record with this id, or None."""
        found = connection.execute(f"SELECT data FROM {self.name} WHERE id = ?", (ident,)).fetchone()
        return decode(found[0], self.record) if found else None


def _cell(value: object) -> object:
    """What SQLite stores: text for names and states, integers for times and flags."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) or value is None:
        return None if value is None else int(value)
    return str(value)


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
        ),
    ),
    Table("endpoints", Endpoint, ("agent_id", "session_id", "state", "last_seen", "held")),
    Table("sessions", Session, ("agent_id", "state")),
    Table("conversations", Conversation, ("kind", "owner", "name", "parent_id")),
    Table("members", Member, ("conversation_id", "agent_id", "read_seq")),
    Table("messages", Message, ("conversation_id", "sender", "created_at")),
    Table("asks", Ask, ("conversation_id", "sender", "target")),
    Table("flights", Flight, ("ask_id", "target", "requester_id", "state", "next_check_at")),
    Table(
        "deliveries",
        Delivery,
        ("target", "state", "next_attempt_at", "leased_until", "message_id", "flight_id"),
    ),
    Table("questions", Question, ("state", "next_move_owner_id")),
    Table("work_items", WorkItem, ("owner_id", "next_move_owner_id", "state")),
    Table("attention", Attention, ("user", "state", "dedupe", "expires_at")),
    Table("bindings", Binding, ("state",)),
    Table("cards", Card, ("agent_id", "state", "expires_at")),
    Table("aliases", Alias, ("owner", "name", "target.agent_id", "state")),
    Table("usage", Usage, ("agent_id", "category", "created_at")),
    Table("users", User, ("state",)),
    Table("connector_keys", ConnectorKey, ("connector", "external_id", "user", "state")),
    Table("nodes", Node, ("name", "state")),
    Table("tokens", Token, ("hashed", "kind", "agent_id", "session_id", "state")),
    Table("grants", Grant, ("state",)),
    Table("schedules", Schedule, ("state",)),
)

TABLES: dict[str, Table] = {table.name: table for table in _TABLES}
_BY_RECORD = {table.record: table for table in _TABLES}


def table_of(record: type[Record]) -> Table:
    """The table that holds records of this type."""
    return _BY_RECORD[record]
