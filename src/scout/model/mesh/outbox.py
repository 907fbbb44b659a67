"""The outbox: one row for each envelope that another node has to take, stored with what caused it.

A row refers to records and copies no text, so that a redacted message is gone here too.
"""

from enum import StrEnum

from msgspec.structs import replace

from scout.base.machine import Machine, Mutable, move_record
from scout.base.time import Time
from scout.model.flight import FlightError
from scout.model.mesh.envelope import EnvelopeKind, ReceiptState
from scout.model.mesh_receipt import MeshReceipt, OutboxState


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
    settled=frozenset(OutboxState) - {OutboxState.QUEUED, OutboxState.FORWARDED},
)


OPEN = frozenset({OutboxState.QUEUED, OutboxState.FORWARDED})  # without a receipt
_RECEIPTS = {
    ReceiptState.ACCEPTED: OutboxMove.ACCEPT,
    ReceiptState.DELIVERED: OutboxMove.DELIVER,
    ReceiptState.REFUSED: OutboxMove.REFUSE,
}


class OutboxEntry(Mutable):
    """One envelope to one node. Its id is the envelope's id; the record it tells about is `subject`.

    `seq`: the event that it tells about, so that each attempt carries the same state of the record.
    `offset`: the first byte of a piece of a file.
    """

    node_id: str
    kind: EnvelopeKind
    subject: str
    seq: int | None = None
    offset: int = 0
    sender: str | None = None
    conversation_id: str | None = None
    delivery_id: str | None = None
    wake: bool = False
    state: OutboxState = OutboxState.QUEUED
    attempts: int = 0
    next_attempt_at: Time
    expires_at: Time
    forwarded_at: Time | None = None
    accepted_at: Time | None = None
    delivered_at: Time | None = None
    problem: FlightError | None = None


def build_mesh_receipt(entry: OutboxEntry, node: str) -> MeshReceipt:
    """Return the receipt of an entry; `node` is the name of the other node."""
    return MeshReceipt(
        envelope_id=entry.id,
        node=node,
        state=entry.state,
        attempts=entry.attempts,
        forwarded_at=entry.forwarded_at,
        accepted_at=entry.accepted_at,
        delivered_at=entry.delivered_at,
        problem=entry.problem,
    )


def is_due_entry(entry: OutboxEntry, now: Time) -> bool:
    """Whether the entry may be published now."""
    return entry.state is OutboxState.QUEUED and entry.next_attempt_at <= now


def forward_entry(entry: OutboxEntry, retry_at: Time, now: Time) -> OutboxEntry:
    """Record that the server has the envelope; without a receipt it is published again at `retry_at`."""
    return move_record(
        OUTBOX,
        entry,
        OutboxMove.FORWARD,
        now,
        attempts=entry.attempts + 1,
        next_attempt_at=retry_at,
        forwarded_at=entry.forwarded_at or now,
    )


def retry_entry(entry: OutboxEntry, now: Time) -> OutboxEntry:
    """Publish a forwarded envelope again: no receipt came."""
    return move_record(OUTBOX, entry, OutboxMove.RETRY, now, next_attempt_at=now)


def take_receipt(
    entry: OutboxEntry, state: ReceiptState, now: Time, problem: FlightError | None = None
) -> OutboxEntry:
    """Return the entry after a receipt; one that tells nothing new, or comes too late, changes nothing."""
    move = _RECEIPTS[state]
    if move not in OUTBOX.accepts(entry.state):
        return entry
    moved = move_record(OUTBOX, entry, move, now, problem=problem)
    if state is ReceiptState.REFUSED:
        return moved
    moved = replace(moved, forwarded_at=entry.forwarded_at or now, accepted_at=entry.accepted_at or now)
    return replace(moved, delivered_at=now) if state is ReceiptState.DELIVERED else moved


def expire_entry(entry: OutboxEntry, problem: FlightError, now: Time) -> OutboxEntry:
    """Give the entry up: no receipt came in time, or it is no longer needed."""
    return move_record(OUTBOX, entry, OutboxMove.EXPIRE, now, problem=problem)
