"""Facts for tests: events with ids and numbers of their own."""

import itertools
import secrets
import sqlite3
from collections.abc import Callable
from typing import Any

from scout.base.ids import derive_id
from scout.base.time import Time
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.conversation import MessageKind
from scout.model.endpoint import Endpoint
from scout.model.events.directory import AliasCreated
from scout.model.events.envelope import Changed, Event
from scout.model.events.presence import AgentRegistered, EndpointRegistered, SessionStarted
from scout.model.events.talk import MessagePosted, Posted
from scout.model.ref import Ref
from scout.model.session import Session
from scout.store.ledger import append, read_last_seq

NOW = Time(1_700_000_000_000_000)
_numbers = itertools.count()
_RUN = secrets.token_hex(8)  # another process that fills the same file has other ids

SYSTEM = Ref.to(derive_id("agt", "system"))


def fact(
    connection: sqlite3.Connection, kind: type[Event], target: str, payload: Any, **fields: Any
) -> Event:
    """The next fact of the log, appended."""
    event = build_event(connection, kind, target, payload, **fields)
    append(connection, event)
    return event


def build_event(
    connection: sqlite3.Connection, kind: type[Event], target: str, payload: Any, **fields: Any
) -> Event:
    """The next fact of the log, not appended."""
    return kind(
        id=derive_id("evt", _RUN, str(next(_numbers))),
        seq=read_last_seq(connection) + 1,
        time=fields.pop("time", NOW),
        source=fields.pop("source", SYSTEM),
        target=Ref.to(target),
        payload=payload,
        **fields,
    )


def post_message(text: str, message: str = "") -> Callable[[sqlite3.Connection], int]:
    """A write that posts one message and gives back its number."""
    ident = derive_id("msg", message or f"{text}{_RUN}{next(_numbers)}")

    def work(connection: sqlite3.Connection) -> int:
        payload = Posted(message_id=ident, text=text, kind=MessageKind.CHAT)
        return fact(connection, MessagePosted, derive_id("cnv", "one"), payload).seq

    return work


_KINDS: dict[type, type[Event]] = {
    Agent: AgentRegistered,
    Alias: AliasCreated,
    Endpoint: EndpointRegistered,
    Session: SessionStarted,
}


def append_records(connection: sqlite3.Connection, *records: Agent | Alias | Endpoint | Session) -> None:
    """Append the fact that each of these records exists."""
    for record in records:
        fact(connection, _KINDS[type(record)], record.id, Changed(record=record, move="register"))
