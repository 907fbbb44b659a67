"""The common part of every event: one source, one target, a payload, and the routing metadata."""

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

from scout.base.record import Record
from scout.base.time import Time
from scout.model.ref import Ref

T = TypeVar("T")


class PassedOver(Record, omit_defaults=True):
    """An agent or session that was considered and not woken."""

    agent_id: str
    session_id: str | None = None
    role: str = ""
    why: str


class WakeFact(Record, omit_defaults=True):
    """A stored wake decision: the agent, the rule, the facts, and the candidates passed over."""

    agent_id: str | None = None
    session_id: str | None = None
    action: str = ""
    rule: str
    reason: str = ""
    instead_of: str | None = None
    passed_over: tuple[PassedOver, ...] = ()
    facts: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class FinishedTree(Record, omit_defaults=True):
    """What a finished agent left in git, so that it can be revived and the finish undone.

    `commit`: where its branch was. `saved`: the commit that holds its uncommitted files. `merged`: the commit
    that `into` was moved to, from `before`.
    """

    choice: str
    branch: str | None = None
    commit: str | None = None
    saved: str | None = None
    into: str | None = None
    before: str | None = None
    merged: str | None = None


class Metadata(Record, omit_defaults=True):
    """How the event came about. `resolved`: canonical address; `token_id`: the credential used.

    `finished`: what an agent that was retired by `finish` left in git. `nodes`: other nodes that are told.
    """

    mentions: tuple[str, ...] = ()
    target_agents: tuple[str, ...] = ()
    in_reply_to: str | None = None
    wake: WakeFact | None = None
    resolved: str | None = None
    alias_id: str | None = None
    alias_revision: int | None = None
    token_id: str | None = None
    finished: FinishedTree | None = None
    nodes: tuple[str, ...] = ()


class Changed(Record, Generic[T], omit_defaults=True):
    """The record after a change, with the move, its actor and the reason; replay writes this record.

    The record is the last field, here and in the event, so that the store encodes both at once.
    """

    move: str | None = None
    by: str | None = None
    reason: str = ""
    record: T


class Event(Record, tag_field="type"):
    """One event. `v` is the version of its type; a type overrides it when its payload changes."""

    id: str
    seq: int
    time: Time
    v: int = 1
    source: Ref
    target: Ref
    metadata: Metadata = Metadata()
    payload: Any


def get_record(event: Event) -> Any:
    """Return the record after the event, or the payload itself if the event changes no record."""
    return getattr(event.payload, "record", event.payload)


# The fields that may name an agent, and the other ones.
AGENT_FIELDS = (
    "id",
    "agent_id",
    "sender",
    "target",
    "requester_id",
    "owner_id",
    "next_move_owner_id",
    "holder_id",
    "asker_id",
    "responder_id",
)
_OTHERS = (
    "conversation_id",
    "session_id",
    "flight_id",
    "ask_id",
    "work_item_id",
    "message_id",
)


def list_concerned(event: Event) -> frozenset[str]:
    """Return the ids of every agent, conversation and record that an event is about."""
    record = get_record(event)
    named = (*_get_agents(record.__class__)(record), *_get_others(record.__class__)(record))
    ids = (one for one in named if isinstance(one, str))
    return frozenset((event.source.id, event.target.id, *event.metadata.target_agents, *ids))


def list_concerned_agents(event: Event) -> list[str]:
    """Return the agent ids among them, sorted."""
    # Every stored event passes here: no function is called for each field.
    payload = event.payload
    record = payload.record if payload.__class__ is Changed else getattr(payload, "record", payload)
    named = (*_get_agents(record.__class__)(record), *event.metadata.target_agents)
    both = (event.source[6:], event.target[6:])  # after `agent:`, if it is an agent
    return sorted({one for one in (*both, *named) if one.__class__ is str and one[:4] == "agt_"})


_Values = Callable[[Any], tuple[Any, ...]]


@functools.cache
def _get_agents(kind: type) -> _Values:
    """Return what reads the fields of a kind of record that may name an agent."""
    return _build_reader(kind, AGENT_FIELDS)


@functools.cache
def _get_others(kind: type) -> _Values:
    return _build_reader(kind, _OTHERS)


def _build_reader(kind: type, fields: tuple[str, ...]) -> _Values:
    names = [name for name in fields if hasattr(kind, name)]
    # With two names or more the result is a tuple; a class is no id.
    return attrgetter(*names, "__class__", "__class__")
