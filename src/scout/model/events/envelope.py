"""The common part of every event: one source, one target, a payload, and the routing metadata."""

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

    `finished`: what an agent that was retired by `finish` left in git.
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


class Changed(Record, Generic[T], omit_defaults=True):
    """The record after a change, with the move, its actor and the reason; replay writes this record."""

    record: T
    move: str | None = None
    by: str | None = None
    reason: str = ""


class Event(Record, tag_field="type"):
    """One event. `v` is the version of its type; a type overrides it when its payload changes."""

    id: str
    seq: int
    time: Time
    v: int = 1
    source: Ref
    target: Ref
    payload: Any
    metadata: Metadata = Metadata()


def get_record(event: Event) -> Any:
    """Return the record after the event, or the payload itself if the event changes no record."""
    return getattr(event.payload, "record", event.payload)


_FIELDS = (
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
    "conversation_id",
    "session_id",
    "flight_id",
    "ask_id",
    "work_item_id",
    "message_id",
)


def list_concerned(event: Event) -> frozenset[str]:
    """Return the ids of every agent, conversation and record that an event is about."""
    found = {event.source.id, event.target.id, *event.metadata.target_agents}
    record = get_record(event)
    for name in _FIELDS:
        value = getattr(record, name, None)
        if isinstance(value, str):
            found.add(value)
    return frozenset(found)


def list_concerned_agents(event: Event) -> list[str]:
    """Return the agent ids among them, sorted."""
    return sorted(ident for ident in list_concerned(event) if ident.startswith("agt_"))
