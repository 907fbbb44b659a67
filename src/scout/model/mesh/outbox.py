"""The outbox: one row for each envelope that another node has to take, stored with what caused it.

A row refers to records and copies no text, so that a redacted message is gone here too.
"""

from enum import StrEnum

from scout.base.machine import Machine, Mutable
from scout.base.time import Time
from scout.model.mesh.envelope import EnvelopeKind


class OutboxState(StrEnum):
    """`forwarded`: the server has it. `accepted`: the other node stored it. `delivered`: its agent has it."""

    QUEUED = "queued"
    FORWARDED = "forwarded"
    ACCEPTED = "accepted"
    DELIVERED = "delivered"
    REFUSED = "refused"
    EXPIRED = "expired"


class OutboxMove(StrEnum):
    FORWARD = "forward"
    RETRY = "retry"
    ACCEPT = "accept"
    DELIVER = "deliver"
    REFUSE = "refuse"
    EXPIRE = "expire"


_ANSWERED = {
    OutboxMove.ACCEPT: OutboxState.ACCEPTED,
    OutboxMove.DELIVER: OutboxState.DELIVERED,
    OutboxMove.REFUSE: OutboxState.REFUSED,
    OutboxMove.EXPIRE: OutboxState.EXPIRED,
}
OUTBOX = Machine(
    "outbox entry",
    OutboxState.QUEUED,
    {
        # A receipt may arrive before the server's own acknowledgement is recorded.
        OutboxState.QUEUED: {OutboxMove.FORWARD: OutboxState.FORWARDED, **_ANSWERED},
        OutboxState.FORWARDED: {OutboxMove.RETRY: OutboxState.QUEUED, **_ANSWERED},
        OutboxState.ACCEPTED: {OutboxMove.DELIVER: OutboxState.DELIVERED},
        OutboxState.DELIVERED: {},
        OutboxState.REFUSED: {},
        OutboxState.EXPIRED: {},
    },
    settled=frozenset({OutboxState.ACCEPTED}),
)


class OutboxEntry(Mutable):
    """One envelope to one node. Its id is the envelope's id; the record it tells about is `subject`."""

    node_id: str
    kind: EnvelopeKind
    subject: str
    sender: str | None = None
    conversation_id: str | None = None
    delivery_id: str | None = None
    wake: bool = False
    state: OutboxState = OutboxState.QUEUED
    attempts: int = 0
    next_attempt_at: Time
    expires_at: Time
    problem: str = ""
