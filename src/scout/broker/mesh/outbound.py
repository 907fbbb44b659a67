"""What goes out to other nodes, queued in the transaction of what causes it.

It is read off the events of a transaction at its end, so that no other part has to know about nodes:
deliveries to agents of other nodes, the states of flights that they asked for, and questions.
"""

from collections.abc import Callable, Sequence
from typing import Any

from scout.broker.mesh.gone_nodes import release_node
from scout.broker.mesh.outbox import drop_entry, queue_cancel
from scout.broker.mesh.outbox_rows import queue_entry
from scout.broker.mesh.remote_attention import queue_attention
from scout.broker.mesh.remote_work import queue_work
from scout.broker.routing.remote import has_open_entry, is_leaving, is_remote, list_entries
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.events.asks import DeliveryAcked, DeliveryRequested, FlightEvent
from scout.model.events.directory import NodeEvent
from scout.model.events.envelope import Event
from scout.model.events.event_types import ALL
from scout.model.events.mesh import EnvelopeReceived
from scout.model.events.talk import AttentionEvent, MessagePosted, QuestionEvent, WorkItemEvent
from scout.model.flight import FLIGHT, Flight, FlightPhase
from scout.model.mesh.envelope import EnvelopeKind, ReceiptState
from scout.model.mesh.outbox import OPEN
from scout.model.question import Question
from scout.policy.wake import WakeAction

_ONE = 1
_Queue = Callable[[Transaction, Any, Sequence[Event]], None]


def queue_envelopes(tx: Transaction) -> None:
    """Queue what the events of this transaction tell other nodes."""
    events = tuple(tx.events)
    for event in events:
        queue = _QUEUED.get(event.__class__)
        if queue is not None:
            queue(tx, event, events)


def _find_node_id(tx: Transaction, agent_id: str | None) -> str | None:
    """Return the node of an agent of another node."""
    agent = tx.agent(agent_id)
    return agent.home_id if agent is not None and agent.is_remote else None


def _is_own(tx: Transaction, agent_id: str) -> bool:
    agent = tx.get(Agent, agent_id)
    return agent is not None and not agent.is_remote


# -- deliveries --------------------------------------------------------------------------------------


def _queue_delivery(tx: Transaction, event: DeliveryRequested, events: Sequence[Event]) -> None:
    """Queue the ask or the message that is delivered to an agent of another node."""
    delivery = event.payload.record
    node_id = _find_node_id(tx, delivery.target)
    if node_id is None or delivery.message_id is None or not _is_own(tx, delivery.sender):
        return  # a node speaks only for its own agents
    if is_leaving(tx, delivery.target):
        return  # it follows when the other node has the agent
    if delivery.message_id in _list_asked(events):
        return  # the question carries it
    decision = event.metadata.wake
    more: dict[str, Any] = {
        "sender": delivery.sender,
        "conversation_id": delivery.conversation_id,
        "delivery_id": delivery.id,
        "wake": decision is not None and decision.action == WakeAction.WAKE,
    }
    if delivery.flight_id is not None and not list_entries(tx, delivery.flight_id):
        queue_entry(tx, node_id, EnvelopeKind.ASK, delivery.flight_id, **more)
    else:
        queue_entry(tx, node_id, EnvelopeKind.MESSAGE, delivery.message_id, **more)


def _list_asked(events: Sequence[Event]) -> set[str | None]:
    """Return the messages that ask or answer the questions which these events change."""
    asked = (one.payload.record for one in events if isinstance(one, QuestionEvent))
    return {ident for one in asked for ident in (one.message_id, one.answer_message_id)} - {None}


def _queue_broadcast(tx: Transaction, event: MessagePosted, _: Sequence[Event]) -> None:
    """Queue a message to all agents for the nodes that its sender named."""
    more: dict[str, Any] = {"sender": event.source.id, "conversation_id": event.target.id}
    for node_id in event.metadata.nodes:
        queue_entry(tx, node_id, EnvelopeKind.BROADCAST, event.payload.message_id, **more)


def _queue_delivered(tx: Transaction, event: DeliveryAcked, _: Sequence[Event]) -> None:
    """Tell the sender's node that its message has arrived at the agent; a flight tells it by its state."""
    delivery = event.payload.record
    node_id = _find_node_id(tx, delivery.sender)
    if node_id is None or delivery.flight_id is not None or tx.ledger.own_agent(delivery.target) is None:
        return  # an agent that moved from here passes its receipts on
    for came in tx.ledger.facts("envelopes_received_about", subject=delivery.message_id, limit=_ONE):
        if isinstance(came, EnvelopeReceived) and came.payload.outcome is ReceiptState.ACCEPTED:
            queue_entry(tx, node_id, EnvelopeKind.RECEIPT, came.payload.envelope_id)


# -- flights -----------------------------------------------------------------------------------------


def _queue_flight(tx: Transaction, event: FlightEvent, events: Sequence[Event]) -> None:
    """Queue the state of a flight for its asker's node, once for all events of the transaction."""
    flight = event.payload.record
    if is_remote(tx, flight.target):
        _follow_own(tx, flight)
        return
    node_id = _find_node_id(tx, flight.requester_id)
    newest = [one for one in events if isinstance(one, FlightEvent) and one.payload.record.id == flight.id][
        -1
    ]
    plain = flight.revision == 1 and flight.phase is FlightPhase.ACCEPTED  # as its asker has it already
    if node_id is None or newest is not event or plain:
        return
    queue_entry(
        tx,
        node_id,
        EnvelopeKind.FLIGHT,
        flight.id,
        sender=flight.target,
        conversation_id=flight.conversation_id,
        seq=event.seq,
    )


def _follow_own(tx: Transaction, flight: Flight) -> None:
    """Queue the cancel of a flight that another node runs; an ask that was not sent yet is not sent."""
    asked = [one for one in list_entries(tx, flight.id) if one.kind is EnvelopeKind.ASK]
    if flight.phase is FlightPhase.CANCELLING:
        if asked and not has_open_entry(tx, flight.id, EnvelopeKind.CANCEL):
            queue_cancel(tx, asked[-1])
    elif flight.state in FLIGHT.terminal:
        for entry in asked:
            if entry.state in OPEN:
                drop_entry(tx, entry, f"its flight is {flight.state}")


# -- questions ---------------------------------------------------------------------------------------


def _queue_question(tx: Transaction, event: QuestionEvent, events: Sequence[Event]) -> None:
    """Queue a question, or its new state, for the node of its other party; only an agent of ours moves it."""
    question: Question = event.payload.record
    mover = event.source.id
    if is_remote(tx, mover):
        return
    other = question.responder_id if is_remote(tx, question.responder_id) else question.asker_id
    node_id = _find_node_id(tx, other)
    if node_id is None:
        return
    sent = _find_sent(question, events)
    decision = sent.metadata.wake if sent else None
    speaker = question.asker_id if other == question.responder_id else question.responder_id
    queue_entry(
        tx,
        node_id,
        EnvelopeKind.QUESTION,
        question.id,
        sender=speaker,
        conversation_id=question.conversation_id,
        delivery_id=sent.payload.record.id if sent else None,
        seq=event.seq,
        wake=decision is not None and decision.action == WakeAction.WAKE,
    )


def _find_sent(question: Question, events: Sequence[Event]) -> DeliveryRequested | None:
    """Return the delivery of the message that asks or answers a question."""
    said = (question.message_id, question.answer_message_id)
    asked = (one for one in events if isinstance(one, DeliveryRequested))
    return next((one for one in asked if one.payload.record.message_id in said), None)


def _queue_attention(tx: Transaction, event: AttentionEvent, _: Sequence[Event]) -> None:
    queue_attention(tx, event)


def _release_node(tx: Transaction, event: NodeEvent, _: Sequence[Event]) -> None:
    release_node(tx, event.payload.record)


_KINDS: tuple[tuple[type[Event], _Queue], ...] = (
    (DeliveryRequested, _queue_delivery),
    (MessagePosted, _queue_broadcast),
    (DeliveryAcked, _queue_delivered),
    (FlightEvent, _queue_flight),
    (QuestionEvent, _queue_question),
    (AttentionEvent, _queue_attention),
    (WorkItemEvent, queue_work),
    (NodeEvent, _release_node),
)
_QUEUED: dict[type[Event], _Queue] = {
    kind: queue for base, queue in _KINDS for kind in ALL if issubclass(kind, base)
}
