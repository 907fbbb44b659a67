"""Rows of the outbox: queued in the transaction of what causes them, and every change of one recorded."""

from scout.broker.transaction.transaction import Transaction
from scout.model.events.mesh import OUTBOX_EVENTS
from scout.model.mesh.envelope import EnvelopeKind
from scout.model.mesh.outbox import OutboxEntry

_LASTING = (EnvelopeKind.MOVE, EnvelopeKind.MAIL)  # only the other node's answer ends these
_EVER = 100 * 366 * 86_400.0


def queue_entry(
    tx: Transaction,
    node_id: str,
    kind: EnvelopeKind,
    subject: str,
    *,
    sender: str | None = None,
    conversation_id: str | None = None,
    delivery_id: str | None = None,
    seq: int | None = None,
    offset: int = 0,
    wake: bool = False,
) -> OutboxEntry:
    """Queue an envelope in the transaction of what causes it. The envelope is built when it is published."""
    entry = OutboxEntry(
        id=tx.mint("env"),
        created_at=tx.now,
        updated_at=tx.now,
        node_id=node_id,
        kind=kind,
        subject=subject,
        seq=seq,
        offset=offset,
        sender=sender,
        conversation_id=conversation_id,
        delivery_id=delivery_id,
        wake=wake,
        next_attempt_at=tx.now,
        expires_at=tx.now.plus(_EVER if kind in _LASTING else tx.rules.periods.queue_expiry),
    )
    return record_entry(tx, entry, "queue")


def record_entry(tx: Transaction, entry: OutboxEntry, move: str, reason: str = "") -> OutboxEntry:
    """Record a change of an outbox row."""
    by = entry.sender or tx.services.system_agent
    return tx.record(OUTBOX_EVENTS[entry.state], entry, move=move, reason=reason, source=by)
