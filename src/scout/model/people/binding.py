"""Bindings: durable links from an external chat, harness thread or A2A peer to a conversation or agent."""

from enum import StrEnum

from scout.base.ids import parse_prefix
from scout.base.machine import Machine, Mutable, move_record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time


class BindingState(StrEnum):
    ACTIVE = "active"
    CLOSED = "closed"


class BindingMove(StrEnum):
    CLOSE = "close"
    REOPEN = "reopen"


BINDING = Machine(
    "binding",
    BindingState.ACTIVE,
    {
        BindingState.ACTIVE: {BindingMove.CLOSE: BindingState.CLOSED},
        BindingState.CLOSED: {BindingMove.REOPEN: BindingState.ACTIVE},
    },
    settled=frozenset({BindingState.CLOSED}),
)


class Surface(StrEnum):
    """The kind of external system."""

    CONNECTOR = "connector"
    HARNESS = "harness"
    A2A = "a2a"


class Binding(Mutable):
    """One binding. `name`: the connector, harness or peer; `external_id`: the chat or task there.

    `topic_id`: only this thread of the chat. `user`: whose binding it is.

    A harness thread is bound by its session's id; the provider's id stays in the session.
    """

    surface: Surface
    name: str
    external_id: str
    topic_id: str | None = None
    conversation_id: str | None = None
    agent_id: str | None = None
    user: str | None = None
    state: BindingState = BindingState.ACTIVE
    reason: str = ""
    created_by: str


def check_binding(binding: Binding) -> Binding:
    """Return the binding; refuse one without exactly one target, or with a provider's id for a harness."""
    if (binding.conversation_id is None) == (binding.agent_id is None):
        raise Refused(BadRequest(problem="a binding leads to either a conversation or an agent"))
    if binding.surface is Surface.HARNESS and parse_prefix(binding.external_id) != "ses":
        problem = "a harness thread is bound by its session's id; the provider's own stays in the session"
        raise Refused(BadRequest(problem=problem, field="externalId"))
    return binding


def move_binding(
    binding: Binding, move: BindingMove, now: Time, *, seen: int | None = None, reason: str = ""
) -> Binding:
    """Close or reopen the binding."""
    return move_record(BINDING, binding, move, now, seen=seen, reason=reason)
