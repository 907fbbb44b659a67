"""How far something has come on its way to another node."""

from enum import StrEnum

from scout.base.record import Record
from scout.base.time import Time
from scout.model.flight import FlightError


class OutboxState(StrEnum):
    """`forwarded`: the server has it. `accepted`: the other node stored it. `delivered`: its agent has it."""

    QUEUED = "queued"
    FORWARDED = "forwarded"
    ACCEPTED = "accepted"
    DELIVERED = "delivered"
    REFUSED = "refused"
    EXPIRED = "expired"


class MeshReceipt(Record, omit_defaults=True):
    """The state of an envelope, and when it came that far, by the clock of this node.

    In the answer to the request that causes it, the envelope has no id yet.
    """

    node: str
    envelope_id: str | None = None
    state: OutboxState = OutboxState.QUEUED
    attempts: int = 0
    forwarded_at: Time | None = None
    accepted_at: Time | None = None
    delivered_at: Time | None = None
    problem: FlightError | None = None
