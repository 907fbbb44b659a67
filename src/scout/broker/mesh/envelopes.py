"""Building envelopes: the records that a row of the outbox refers to, as another node takes them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from scout.base.codec import encode
from scout.base.record import Record
from scout.broker.mesh.files import build_piece
from scout.broker.mesh.moves.departure import build_move
from scout.broker.mesh.remote_attention import build_decision
from scout.broker.operations.ask_limits import list_ancestors
from scout.broker.routing.traces import build_flight_context
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
    BroadcastPayload,
    CancelPayload,
    Envelope,
    EnvelopeKind,
    FetchPayload,
    FlightPayload,
    MailPayload,
    MessagePayload,
    Payload,
    QuestionPayload,
    ReceiptPayload,
    ReceiptsPayload,
    ReceiptState,
    SignedBundle,
    SignedEnvelope,
    WorkPayload,
    build_bundle,
)
from scout.model.mesh.outbox import OutboxEntry
from scout.model.question import Question
from scout.model.remote_agent import build_entry
from scout.model.status import get_status
from scout.model.work_item import WorkItem, list_parties
from scout.ports.mesh import NodeKeys


class MeshIdentity(NamedTuple):
    """Who this node is in its mesh."""

    mesh_id: str
    node_id: str
    keys: NodeKeys

    def sign(self, envelope: Envelope) -> bytes:
        """Return the bytes of an envelope with the signature of this node."""
        return self.sign_bodies([encode(envelope)])

    def sign_bodies(self, bodies: Sequence[bytes]) -> bytes:
        """Return the bytes of encoded envelopes with one signature of this node: one, or a bundle."""
        if len(bodies) == 1:
            parcel = SignedEnvelope(body=bodies[0].decode(), signature="")
        else:
            parcel = SignedBundle(bundle=build_bundle(bodies), signature="")
        return encode(replace(parcel, signature=self.keys.sign(parcel.signed_bytes)))


Senders = dict[str | None, AgentEntry | None]


def build_envelope(
    tx: Transaction, identity: MeshIdentity, entry: OutboxEntry, after: str | None, senders: Senders
) -> Envelope | None:
    """Return the envelope of a row; None if what it tells about is gone.

    `senders`: the agents that speak in the envelopes which are built together.
    """
    payload = _BUILDERS[entry.kind](tx, entry)
    if entry.sender not in senders:
        senders[entry.sender] = _build_sender(tx, identity.node_id, entry.sender)
    sender = senders[entry.sender]
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


def build_receipt(
    tx: Transaction, identity: MeshIdentity, node_id: str, receipts: Sequence[ReceiptPayload]
) -> Envelope:
    """Return the envelope of receipts, which have no rows: a lost one is asked for again."""
    return Envelope(
        id=tx.mint("env"),
        mesh=identity.mesh_id,
        from_node=identity.node_id,
        to_node=node_id,
        sent_at=tx.now,
        lives=tx.rules.periods.queue_expiry,
        payload=receipts[0] if len(receipts) == 1 else ReceiptsPayload(receipts=tuple(receipts)),
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


def _build_broadcast(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    message = tx.get(Message, entry.subject)
    if message is None or message.redacted_at is not None:
        return None
    return BroadcastPayload(message=message)


def _build_ask(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    flight = tx.get(Flight, entry.subject)
    ask = tx.get(Ask, flight.ask_id) if flight else None
    message = tx.get(Message, ask.message_id) if ask else None
    if flight is None or ask is None or message is None or message.redacted_at is not None:
        return None
    context = build_flight_context(tx, ask, flight)
    sent = replace(ask, ancestors=list_ancestors(tx, ask), traceparent=context)
    return AskPayload(message=message, ask=sent, flight=flight)


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


def _build_work(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    found = _read_change(tx, entry)
    if found is None or not isinstance(found.record, WorkItem):
        return None
    item = found.record
    parties = _build_parties(tx, entry, list_parties(item))
    return WorkPayload(item=item, move=found.move or "update", reason=item.reason, parties=parties)


def _build_parties(
    tx: Transaction, entry: OutboxEntry, idents: Iterable[str | None]
) -> tuple[AgentEntry, ...]:
    """Return the agents of this node among these, as the directory would list them."""
    named = (one for one in dict.fromkeys(idents) if one not in (None, entry.subject))
    found = (_build_sender(tx, tx.services.node_id, one) for one in named)
    return tuple(one for one in found if one is not None)


def _build_move(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    forward = tx.ledger.own_agent(entry.subject)
    if forward is None or forward.moved_to != entry.node_id:
        return None
    moved = build_move(tx, replace(forward, node=tx.services.node))
    asked = (ident for one in moved.questions for ident in (one.asker_id, one.responder_id))
    working = (ident for one in moved.work_items for ident in list_parties(one))
    return replace(moved, parties=_build_parties(tx, entry, (*asked, *working)))


def _build_mail(tx: Transaction, entry: OutboxEntry) -> Payload | None:
    message, delivery = tx.get(Message, entry.subject), tx.get(Delivery, entry.delivery_id)
    if message is None or delivery is None or message.redacted_at is not None:
        return None
    return MailPayload(message=message, to=delivery.target)


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
    EnvelopeKind.BROADCAST: _build_broadcast,
    EnvelopeKind.ASK: _build_ask,
    EnvelopeKind.FLIGHT: _build_flight,
    EnvelopeKind.CANCEL: _build_cancel,
    EnvelopeKind.QUESTION: _build_question,
    EnvelopeKind.ATTENTION: _build_attention,
    EnvelopeKind.DECISION: _build_decision,
    EnvelopeKind.WORK: _build_work,
    EnvelopeKind.MOVE: _build_move,
    EnvelopeKind.MAIL: _build_mail,
    EnvelopeKind.RECEIPT: _build_delivered,
    EnvelopeKind.FETCH: _build_fetch,
    EnvelopeKind.FILE: _build_file,
}
