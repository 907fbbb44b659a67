"""Building envelopes: the records that a row of the outbox refers to, as another node takes them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from scout.base.codec import encode
from scout.base.record import Record
from scout.broker.mesh.files import build_piece
from scout.broker.mesh.remote_attention import build_decision
from scout.broker.operations.ask_limits import list_ancestors
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.conversation import Message
from scout.model.delivery import Delivery
from scout.model.flight import Flight
from scout.model.mesh.entry import AgentEntry
from scout.model.mesh.envelope import (
    AskPayload,
    AttentionPayload,
    CancelPayload,
    Envelope,
    EnvelopeKind,
    FetchPayload,
    FlightPayload,
    MessagePayload,
    Payload,
    QuestionPayload,
    ReceiptPayload,
    ReceiptState,
    SignedEnvelope,
    build_signed_bytes,
)
from scout.model.mesh.outbox import OutboxEntry
from scout.model.question import Question
from scout.model.remote_agent import build_entry
from scout.model.status import get_status
from scout.ports.mesh import NodeKeys


class MeshIdentity(NamedTuple):
    """Who this node is in its mesh."""

    mesh_id: str
    node_id: str
    keys: NodeKeys

    def sign(self, envelope: Envelope) -> bytes:
        """Return the bytes of an envelope with the signature of this node."""
        body, signed = build_signed_bytes(envelope)
        return encode(SignedEnvelope(body=body, signature=self.keys.sign(signed)))


def build_envelope(
    tx: Transaction, identity: MeshIdentity, entry: OutboxEntry, after: str | None
) -> Envelope | None:
    """Return the envelope of a row; None if what it tells about is gone."""
    payload = _BUILDERS[entry.kind](tx, entry)
    sender = _build_sender(tx, identity.node_id, entry.sender)
    if payload is None or (entry.sender is not None and sender is None):
        return None
    return Envelope(
        id=entry.id,
        mesh=identity.mesh_id,
        from_node=identity.node_id,
        to_node=entry.node_id,
        sent_at=tx.now,
        lives=max(entry.expires_at.since(tx.now), 0.0),
        conversation_id=entry.conversation_id,
        after=after,
        sender=sender,
        payload=payload,
    )


def build_receipt(tx: Transaction, identity: MeshIdentity, node_id: str, receipt: ReceiptPayload) -> Envelope:
    """Return the envelope of a receipt, which has no row: a lost one is asked for again."""
    return Envelope(
        id=tx.mint("env"),
        mesh=identity.mesh_id,
        from_node=identity.node_id,
        to_node=node_id,
        sent_at=tx.now,
        lives=tx.rules.periods.queue_expiry,
        payload=receipt,
    )


def _build_sender(tx: Transaction, node_id: str, agent_id: str | None) -> AgentEntry | None:
    """Return the sender as the directory lists it: the other node may not have its entry yet."""
    agent = tx.get(Agent, agent_id)
    if agent is None or agent.is_remote:
        return None
    endpoints, within = tx.endpoints(agent.id), tx.rules.periods.online_within
    status = get_status(agent, endpoints, tx.now, within=within)
    return build_entry(agent, endpoints, status, node_id=node_id, revision=0, now=tx.now, within=within)


# -- payloads ----------------------------------------------------------------------------------------


def _build_message(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    message, delivery = tx.get(Message, entry.subject), tx.get(Delivery, entry.delivery_id)
    if message is None or delivery is None or message.redacted_at is not None:
        return None
    return MessagePayload(message=message, to=delivery.target, wake=entry.wake)


def _build_ask(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    flight = tx.get(Flight, entry.subject)
    ask = tx.get(Ask, flight.ask_id) if flight else None
    message = tx.get(Message, ask.message_id) if ask else None
    if flight is None or ask is None or message is None or message.redacted_at is not None:
        return None
    return AskPayload(message=message, ask=replace(ask, ancestors=list_ancestors(tx, ask)), flight=flight)


def _build_flight(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    flight = _read_version(tx, entry, Flight)
    if flight is None:
        return None
    answer = tx.get(Message, flight.output_message_id)
    return FlightPayload(flight=replace(flight, output=None) if answer else flight, answer=answer)


def _build_cancel(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    flight = tx.get(Flight, entry.subject)
    return CancelPayload(flight_id=entry.subject, reason=flight.reason if flight else "")


def _build_question(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    found = _read_change(tx, entry)
    if found is None or not isinstance(found.record, Question):
        return None
    delivery = tx.get(Delivery, entry.delivery_id)
    message = tx.get(Message, delivery.message_id) if delivery else None
    return QuestionPayload(
        question=found.record,
        move=found.move or "create",
        message=message,
        to=delivery.target if delivery else None,
        wake=entry.wake,
    )


def _build_attention(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    item = _read_version(tx, entry, Attention)
    return AttentionPayload(item=item) if item else None


def _build_decision(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    item = _read_version(tx, entry, Attention)
    return build_decision(item) if item else None


def _build_delivered(_: Transaction, entry: OutboxEntry) -> Payload:
    return ReceiptPayload(of=entry.subject, state=ReceiptState.DELIVERED)


def _build_file(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    return build_piece(tx, entry.subject, entry.offset)


def _build_fetch(_: Transaction, entry: OutboxEntry) -> Payload:
    return FetchPayload(sha256=entry.subject, offset=entry.offset)


class _Change(NamedTuple):
    record: Any
    move: str | None


def _read_change(tx: Transaction, entry: OutboxEntry) -> _Change | None:
    """Return the record as the event of the row left it, so that each attempt carries the same."""
    event = tx.ledger.log.get(entry.seq) if entry.seq is not None else None
    return _Change(event.payload.record, event.payload.move) if event is not None else None


def _read_version(tx: Transaction, entry: OutboxEntry, kind: type[Record]) -> Any:
    found = _read_change(tx, entry)
    return found.record if found is not None and isinstance(found.record, kind) else None


_BUILDERS: Mapping[EnvelopeKind, Callable[[Transaction, OutboxEntry], Payload | None]] = {
    EnvelopeKind.MESSAGE: _build_message,
    EnvelopeKind.ASK: _build_ask,
    EnvelopeKind.FLIGHT: _build_flight,
    EnvelopeKind.CANCEL: _build_cancel,
    EnvelopeKind.QUESTION: _build_question,
    EnvelopeKind.ATTENTION: _build_attention,
    EnvelopeKind.DECISION: _build_decision,
    EnvelopeKind.RECEIPT: _build_delivered,
    EnvelopeKind.FETCH: _build_fetch,
    EnvelopeKind.FILE: _build_file,
}
