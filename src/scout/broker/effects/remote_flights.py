"""Flights that another node runs: that node decides, and the record here follows what it tells."""

from msgspec.structs import replace

from scout.base.time import Time
from scout.broker.effects import flight_state
from scout.broker.routing.remote import build_unreachable, find_node
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.conversation import Message
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, settle_remotely
from scout.model.events.asks import DELIVERY_EVENTS, FLIGHT_EVENTS
from scout.model.flight import (
    FLIGHT,
    CompletedBy,
    Flight,
    FlightError,
    FlightMove,
    FlightPhase,
    FlightState,
    build_error,
    cancel_flight,
    fail_flight,
    note_flight,
    postpone_flight,
    resume_flight,
    retry_remedy,
    start_flight,
    wait_flight,
)
from scout.model.node import NODE, Node, NodeState
from scout.model.waiting import WaitingOn

_CHECK = 600.0  # seconds between two looks at the node that runs a flight


def request_cancel(tx: Transaction, flight: Flight, reason: str, seen: int | None = None) -> Flight:
    """Record that the asker wants to cancel the flight. The node that runs it ends it."""
    cancel_flight(flight, reason, tx.now, seen=seen)  # refuses what is refused for a flight of this node
    if flight.phase is FlightPhase.CANCELLING:
        return flight
    asked = f"cancel requested ({reason}): waiting for node {_name_node(tx, flight)}"
    return flight_state.record_note(tx, note_flight(flight, FlightPhase.CANCELLING, tx.now, reason=asked))


def _name_node(tx: Transaction, flight: Flight) -> str:
    agent = tx.agent(flight.target)
    return (agent.node if agent else None) or ""


# -- what the other node tells -----------------------------------------------------------------------


def follow_remote(tx: Transaction, flight: Flight, told: Flight, answer: Message | None) -> Flight:
    """Move a flight to the state that the node which runs it tells. A finished flight stays as it is."""
    if flight.state in FLIGHT.terminal:
        return flight
    if told.started_at is not None:
        take_deliveries(tx, flight)
    return _FOLLOW[told.state](tx, flight, told, answer)


def take_deliveries(tx: Transaction, flight: Flight) -> None:
    """Record that the target has the ask."""
    for delivery in tx.ledger.many(Delivery, "deliveries_of_flight", flight=flight.id):
        taken = settle_remotely(delivery, tx.now)
        if taken is not delivery and taken.state is DeliveryState.ACKED:
            tx.record(DELIVERY_EVENTS[DeliveryMove.ACK], taken, move=DeliveryMove.ACK, source=flight.target)


def _follow_queued(tx: Transaction, flight: Flight, told: Flight, _: Message | None) -> Flight:
    return _note(tx, flight, told)


def _follow_running(tx: Transaction, flight: Flight, told: Flight, _: Message | None) -> Flight:
    if flight.state is FlightState.QUEUED:
        flight = _keep_cancelling(flight, start_flight(flight, tx.now))
        return flight_state.record_start(tx, flight)
    if flight.state is FlightState.WAITING:
        return _record_move(tx, _keep_cancelling(flight, resume_flight(flight, tx.now)), FlightMove.RESUME)
    return _note(tx, flight, told)


def _follow_waiting(tx: Transaction, flight: Flight, told: Flight, _: Message | None) -> Flight:
    if flight.state is FlightState.QUEUED:
        flight = flight_state.record_start(tx, start_flight(flight, tx.now))
    if flight.state is FlightState.WAITING:
        return _note(tx, flight, told)
    on, owner = _read_wait(tx, flight, told)
    waiting = wait_flight(flight, on, tx.now, next_move_owner_id=owner, reason=told.reason)
    return _record_move(tx, _keep_cancelling(flight, waiting), FlightMove.WAIT)


def _read_wait(tx: Transaction, flight: Flight, told: Flight) -> tuple[WaitingOn, str]:
    """Return what the flight waits for. Times of the other node's clock are left out."""
    assert told.waiting_on is not None  # a flight that waits says for what
    known = tx.agent(told.next_move_owner_id) is not None
    owner = told.next_move_owner_id if known and told.next_move_owner_id else flight.target
    return replace(told.waiting_on, until=None), owner


def _note(tx: Transaction, flight: Flight, told: Flight) -> Flight:
    """Record a new phase or reason; nothing if both are known."""
    if flight.phase is FlightPhase.CANCELLING or (flight.phase, flight.reason) == (told.phase, told.reason):
        return flight
    return flight_state.record_note(tx, note_flight(flight, told.phase, tx.now, reason=told.reason))


def _keep_cancelling(before: Flight, after: Flight) -> Flight:
    """Return the flight; a requested cancel stays visible until the flight ends."""
    if before.phase is not FlightPhase.CANCELLING:
        return after
    return replace(after, phase=before.phase, reason=before.reason)


def _record_move(tx: Transaction, flight: Flight, move: FlightMove) -> Flight:
    return tx.record(FLIGHT_EVENTS[move], flight, move=move, reason=flight.reason, source=flight.target)


def _follow_completed(tx: Transaction, flight: Flight, told: Flight, answer: Message | None) -> Flight:
    by = told.completed_by or CompletedBy.REPLY
    text = answer.body if answer else told.output or ""
    files = answer.attachments if answer else ()
    said = answer.id if answer else None
    return flight_state.complete_with_answer(tx, flight, text, by, files, message_id=said)


def _follow_failed(tx: Transaction, flight: Flight, told: Flight, _: Message | None) -> Flight:
    error = told.error or FlightError(code="wake_failed", message=told.reason)
    return fail_remotely(tx, flight, error)


def fail_remotely(tx: Transaction, flight: Flight, error: FlightError) -> Flight:
    """Fail a flight for a reason of the other node. Its remedies work there; the one here is a retry."""
    here = replace(error, remedies=(retry_remedy(flight),), log=None)
    return flight_state.finish_flight(tx, flight, fail_flight(flight, here, tx.now))


def _follow_cancelled(tx: Transaction, flight: Flight, told: Flight, _: Message | None) -> Flight:
    return flight_state.finish_flight(tx, flight, cancel_flight(flight, told.reason, tx.now))


_FOLLOW = {
    FlightState.QUEUED: _follow_queued,
    FlightState.RUNNING: _follow_running,
    FlightState.WAITING: _follow_waiting,
    FlightState.COMPLETED: _follow_completed,
    FlightState.FAILED: _follow_failed,
    FlightState.CANCELLED: _follow_cancelled,
}


# -- a node that is away -----------------------------------------------------------------------------


def check_remote_flight(tx: Transaction, flight: Flight) -> None:
    """Look at the node that runs a flight: report that it is away, and fail the flight if it stays away."""
    agent = tx.need(Agent, "agent", flight.target)
    node = find_node(tx, agent)
    since = _find_absence(tx, node)
    if node is not None and since is None:
        if flight.phase is FlightPhase.CHECKING:
            flight_state.record_note(tx, note_flight(flight, FlightPhase.WORKING, tx.now, reason=_BACK))
        else:
            _look_later(tx, flight)
        return
    away = build_unreachable(tx, agent, node)
    gone = node is None or node.state in NODE.settled
    if gone or tx.now.since(since or tx.now) >= tx.rules.periods.queue_expiry:
        fail_remotely(tx, flight, build_error(away))
    elif flight.state is FlightState.QUEUED or flight.phase in (FlightPhase.CHECKING, FlightPhase.CANCELLING):
        _look_later(tx, flight)
    else:
        reason = f"{away.message}; the flight may still run there"
        flight_state.record_note(tx, note_flight(flight, FlightPhase.CHECKING, tx.now, reason=reason))


_BACK = "its node is back"


def _look_later(tx: Transaction, flight: Flight) -> None:
    flight_state.record_note(tx, postpone_flight(flight, tx.now.plus(_CHECK)))


def _find_absence(tx: Transaction, node: Node | None) -> Time | None:
    """Return since when a node is away; None while it answers."""
    if node is None or node.state is NodeState.ONLINE:
        return None
    return node.lost_at or node.updated_at or tx.now
