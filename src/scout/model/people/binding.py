"""A durable link from something outside (a chat, a harness thread, an A2A peer) to what is inside."""

from enum import StrEnum

from scout.base.ids import prefix_of
from scout.base.machine import Machine
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.change import Mutable, moved


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
    """What sort of thing is bound."""

    CONNECTOR = "connector"
    HARNESS = "harness"
    A2A = "a2a"


class Binding(Mutable):
    """`name` says which connector, harness or peer, `external_id` which chat or task there.

    A harness thread is bound by its session's id: the provider's own id stays in the session.
    """

    surface: Surface
    name: str
    external_id: str
    conversation_id: str | None = None
    agent_id: str | None = None
    user: str | None = None
    state: BindingState = BindingState.ACTIVE
    reason: str = ""
    created_by: str


def check_binding(binding: Binding) -> Binding:
    """The same binding, or the refusal of one that leads not to one place or holds a provider's id."""
    if (binding.conversation_id is None) == (binding.agent_id is None):
        raise Refused(BadRequest(problem="a binding leads to either a conversation or an agent"))
    if binding.surface is Surface.HARNESS and prefix_of(binding.external_id) != "ses":
        problem = "a harness thread is bound by its session's id; the provider's own stays in the session"
        raise Refused(BadRequest(problem=problem, field="externalId"))
    return binding


def move_binding(
    binding: Binding, move: BindingMove, now: Time, *, seen: int | None = None, reason: str = ""
) -> Binding:
    """Close it, or open it again."""
    return moved(BINDING, binding, move, now, seen=seen, reason=reason)
