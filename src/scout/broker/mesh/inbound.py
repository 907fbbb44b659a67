"""What envelopes of other nodes become here: by the same functions as what local agents do.

The transaction runs in the name of the remote agent, so the limits, grants, wake rules and explanations of
this node are those of any agent. A refusal undoes the transaction.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused
from scout.broker.effects import flight_state, remote_flights
from scout.broker.mesh import files, remote_attention, remote_questions, remote_work
from scout.broker.mesh.messages import FILES, deliver_message, post_broadcast, require_recipient
from scout.broker.mesh.moves import arrival
from scout.broker.mesh.outbox import apply_receipt, confirm_ask
from scout.broker.mesh.outbox_rows import queue_entry
from scout.broker.operations import asks, talk
from scout.broker.operations.asks import AskIds
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.model.agent import Agent, Lifecycle
from scout.model.ask import Ask
from scout.model.conversation import Message
from scout.model.flight import FLIGHT, Flight, cancel_flight
from scout.model.mesh.entry import AgentEntry
from scout.model.mesh.envelope import (
    AskPayload,
    AttentionPayload,
    BroadcastPayload,
    CancelPayload,
    DecisionPayload,
    EnvelopeHeader,
    EnvelopeKind,
    FetchPayload,
    FilePayload,
    FlightPayload,
    MailPayload,
    MessagePayload,
    MovePayload,
    Payload,
    QuestionPayload,
    ReceiptPayload,
    WorkPayload,
)
from scout.model.node import Node
from scout.model.problems.request import NotFound, TooLarge
from scout.model.remote_agent import find_node_owner
from scout.model.trace import choose_parent
from scout.policy.permit import Deed
from scout.policy.wake import Cause
from scout.protocol.asks import MakeAsk, RetryFlight

_SPOKEN = (MessagePayload, BroadcastPayload, AskPayload, CancelPayload, QuestionPayload, DecisionPayload)


def is_spoken(payload: Payload) -> bool:
    """Whether an agent of the other node speaks, rather than the node itself."""
    return isinstance(payload, _SPOKEN)


def apply_payload(
    tx: Transaction, header: EnvelopeHeader, node: Node, payload: Payload, next_offset: int | None = None
) -> str | None:
    """Apply an envelope; return the record that it told about.

    `next_offset`: where the next piece of a file begins, which is asked for.
    """
    if next_offset is not None and isinstance(payload, FilePayload):
        sha256 = payload.attachment.sha256
        queue_entry(tx, node.id, EnvelopeKind.FETCH, sha256, offset=next_offset)
    apply = _APPLY.get(type(payload))
    if apply is None:
        raise Refused(BadRequest(problem=f"this node takes no {type(payload).__name__} envelopes"))
    speaks = (header.sender,) if header.sender is not None else ()
    _list_agents(tx, node, (*speaks, *getattr(payload, "parties", ())))
    return apply(tx, header, payload)


def _list_agents(tx: Transaction, node: Node, entries: Iterable[AgentEntry]) -> None:
    """Add agents of a node that the directory has not brought yet, or no longer lists, to the mirror."""
    for entry in entries:
        known = tx.agent(entry.id)
        lives = known is not None and _lives_on(known, node.id)
        if known is not None and lives and known.lifecycle is not Lifecycle.RETIRED:
            continue  # its node lists it
        foreign = entry.node_id != node.id or (known is not None and not lives)
        remote = tx.remote_agent(entry.id)
        if not foreign and (remote is None or not remote.listed):
            tx.ledger.list_sender(entry, find_node_owner(node, tx.services.operator))
            tx.services.meshed = True
            tx.cache.forget_remote([entry.id])


# -- messages ----------------------------------------------------------------------------------------


def _apply_message(tx: Transaction, header: EnvelopeHeader, payload: MessagePayload) -> str:
    message = payload.message
    agent = require_recipient(tx, payload.to)
    tx.permit(Deed.ADDRESS, build_subject(agent))
    talk.check_rate_to_person(tx, agent)
    cause = Cause.WAKE if payload.wake else Cause.SEND
    deliver_message(tx, message, agent, cause)
    files.request_files(tx, header.from_node, message)
    return message.id


def _apply_broadcast(tx: Transaction, header: EnvelopeHeader, payload: BroadcastPayload) -> str:
    post_broadcast(tx, payload.message)
    files.request_files(tx, header.from_node, payload.message)
    return payload.message.id


# -- asks --------------------------------------------------------------------------------------------


def _apply_ask(tx: Transaction, header: EnvelopeHeader, payload: AskPayload) -> str:
    ask, flight, message = payload.ask, payload.flight, payload.message
    tx.permit(Deed.ASK, build_subject(require_recipient(tx, ask.target)))
    if tx.get(Ask, ask.id) is not None:
        asks.retry_ask(tx, RetryFlight(flight_id=ask.id), flight.id)
        return flight.id
    if len(message.attachments) > FILES:
        raise Refused(TooLarge(what="list of attachments", size=len(message.attachments), limit=FILES))
    request = MakeAsk(
        to=None if ask.target_session_id else ask.target,
        target_session_id=ask.target_session_id,
        body=message.body,
        harness=ask.harness,
        model=ask.model,
        session_policy=ask.session_policy,
        reply_mode=ask.reply_mode,
        if_unreachable=ask.if_unreachable,
    )
    parent = choose_parent(ask.traceparent, None)
    ids = AskIds(ask.id, message.id, flight.id, ask.chain, ask.ancestors, message.attachments, parent)
    asks.make_ask(tx, request, ids)
    files.request_files(tx, header.from_node, message)
    return flight.id


def _lives_on(agent: Agent, node_id: str) -> bool:
    return agent.is_remote and agent.home_id == node_id


def _apply_cancel(tx: Transaction, header: EnvelopeHeader, payload: CancelPayload) -> str:
    """Cancel a flight for its asker. One that has ended tells its asker so by itself."""
    flight = tx.get(Flight, payload.flight_id)
    asker = tx.agent(flight.requester_id) if flight else None
    if flight is None or asker is None or not _lives_on(asker, header.from_node):
        raise Refused(NotFound(noun="flight", id=payload.flight_id[:60]))
    if flight.state not in FLIGHT.terminal:
        reason = payload.reason or f"cancelled by {tx.address(asker.id)}"
        flight_state.finish_flight(tx, flight, cancel_flight(flight, reason[:500], tx.now))
    return flight.id


def _apply_flight(tx: Transaction, header: EnvelopeHeader, payload: FlightPayload) -> str:
    """Move a flight of ours to the state that the node which runs it tells."""
    told = payload.flight
    flight = tx.get(Flight, told.id)
    target = tx.agent(flight.target) if flight else None
    if flight is None or target is None or not _lives_on(target, header.from_node):
        raise Refused(NotFound(noun="flight", id=told.id[:60]))
    confirm_ask(tx, header.from_node, flight.id)
    flight = tx.need(Flight, "flight", flight.id)
    answer = payload.answer
    if answer is not None and (answer.sender != flight.target or tx.get(Message, answer.id) is not None):
        answer = replace(answer, id=tx.mint("msg"), sender=flight.target)
    remote_flights.follow_remote(tx, flight, told, answer)
    if answer is not None:
        files.request_files(tx, header.from_node, answer)
    return flight.id


def _apply_question(tx: Transaction, header: EnvelopeHeader, payload: QuestionPayload) -> str:
    return remote_questions.apply_question(tx, header.from_node, payload)


def _apply_attention(tx: Transaction, header: EnvelopeHeader, payload: AttentionPayload) -> str:
    return remote_attention.apply_attention(tx, header.from_node, payload)


def _apply_decision(tx: Transaction, _: EnvelopeHeader, payload: DecisionPayload) -> str:
    return remote_attention.apply_decision(tx, payload)


def _apply_work(tx: Transaction, header: EnvelopeHeader, payload: WorkPayload) -> str:
    return remote_work.apply_work(tx, header.from_node, payload)


def _apply_move(tx: Transaction, header: EnvelopeHeader, payload: MovePayload) -> str:
    return arrival.take_agent(tx, header.from_node, payload)


def _apply_mail(tx: Transaction, header: EnvelopeHeader, payload: MailPayload) -> str:
    return arrival.take_mail(tx, header.from_node, payload)


def _apply_fetch(tx: Transaction, header: EnvelopeHeader, payload: FetchPayload) -> None:
    files.send_piece(tx, header.from_node, payload.sha256, payload.offset)


def _apply_file(_: Transaction, __: EnvelopeHeader, ___: FilePayload) -> None:
    """The piece is kept already."""


def _apply_delivered(tx: Transaction, header: EnvelopeHeader, payload: ReceiptPayload) -> str:
    apply_receipt(tx, header.from_node, payload)
    return payload.of


_APPLY: Mapping[type[Any], Callable[[Transaction, EnvelopeHeader, Any], str | None]] = {
    MessagePayload: _apply_message,
    BroadcastPayload: _apply_broadcast,
    AskPayload: _apply_ask,
    CancelPayload: _apply_cancel,
    FlightPayload: _apply_flight,
    QuestionPayload: _apply_question,
    AttentionPayload: _apply_attention,
    DecisionPayload: _apply_decision,
    WorkPayload: _apply_work,
    MovePayload: _apply_move,
    MailPayload: _apply_mail,
    ReceiptPayload: _apply_delivered,
    FetchPayload: _apply_fetch,
    FilePayload: _apply_file,
}
