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
from scout.store.log import read_last_seq
from scout.store.unit_of_work import UnitOfWork, append

NOW = Time(1_700_000_000_000_000)
_numbers = itertools.count()
_RUN = secrets.token_hex(8)  # another process that fills the same file has other ids

SYSTEM = Ref.to(derive_id("agt", "system"))


Store = sqlite3.Connection | UnitOfWork


def fact(store: Store, kind: type[Event], target: str, payload: Any, **fields: Any) -> Event:
    """The next fact of the log, appended: written at once, or with the others of a unit of work."""
    unit = store if isinstance(store, UnitOfWork) else None
    connection = store.connection if isinstance(store, UnitOfWork) else store
    last = unit.last_seq if unit else None
    event = kind(
        id=derive_id("evt", _RUN, str(next(_numbers))),
        seq=(last or read_last_seq(connection)) + 1,
        time=fields.pop("time", NOW),
        source=fields.pop("source", SYSTEM),
        target=Ref.to(target),
        payload=payload,
        **fields,
    )
    if unit is not None:
        unit.events.append(event)
    else:
        append(connection, event)
    return event


def post_message(text: str, message: str = "") -> Callable[[Store], int]:
    """A write that posts one message and gives back its number."""
    ident = derive_id("msg", message or f"{text}{_RUN}{next(_numbers)}")

    def work(store: Store) -> int:
        payload = Posted(message_id=ident, text=text, kind=MessageKind.CHAT)
        return fact(store, MessagePosted, derive_id("cnv", "one"), payload).seq

    return work


_KINDS: dict[type, type[Event]] = {
    Agent: AgentRegistered,
    Alias: AliasCreated,
    Endpoint: EndpointRegistered,
    Session: SessionStarted,
}


def append_records(store: Store, *records: Agent | Alias | Endpoint | Session) -> None:
    """Append the fact that each of these records exists."""
    for record in records:
        fact(store, _KINDS[type(record)], record.id, Changed(record=record, move="register"))
