"""Pausing this machine: nothing starts, new work is accepted and waits until the pause ends."""

from scout.base.refusal import Refused, Remedy
from scout.broker.delivery import recovery
from scout.broker.effects import flight_state
from scout.broker.transaction.transaction import Transaction
from scout.model.endpoint import Endpoint, EndpointState
from scout.model.events.directory import NodePaused, NodeResumed
from scout.model.flight import FLIGHT, Flight, cancel_flight
from scout.model.node import Node, pause_node, resume_node
from scout.model.problems.session import Paused
from scout.policy.permit import Deed, Subject
from scout.protocol.overview import PauseScout, PauseView, ResumeScout

NOW = "pause now"  # a pause that interrupts running turns
_MANY = 10_000


def pause(tx: Transaction, request: PauseScout) -> PauseView:
    """Start nothing from now on; with `now`, interrupt running turns too."""
    node = _require_local_node(tx)
    paused = pause_node(node, tx.sender, tx.now, reason=request.reason, until_restart=request.until_restart)
    if paused is not node or request.now:
        move = NOW if request.now else "pause"
        tx.record(NodePaused, paused, move=move, reason=request.reason)
    return _show(tx, paused, _interrupt_all(tx) if request.now else ())


def resume(tx: Transaction, request: ResumeScout) -> PauseView:
    """End the pause. Resuming twice changes nothing."""
    node = _require_local_node(tx)
    resumed = resume_node(node, tx.now)
    if resumed is not node:
        tx.record(NodeResumed, resumed, move="resume")
    return _show(tx, resumed)


def check_not_paused(tx: Transaction) -> None:
    """Refuse a request that would start a program during a pause."""
    paused = tx.services.paused
    if paused is not None:
        remedy = Remedy(operation="resume", parameters={}, why="the operator ends the pause")
        raise Refused(Paused(since=paused.since, reason=paused.reason, remedies=(remedy,)))


def _require_local_node(tx: Transaction) -> Node:
    tx.permit(Deed.ADMINISTER, Subject(name=tx.services.node))
    node = tx.ledger.one(Node, "local_node")
    assert node is not None  # made at the first start
    return node


def _interrupt_all(tx: Transaction) -> tuple[str, ...]:
    """Cancel the flights of all running turns; the dispatcher interrupts their programs."""
    cancelled: list[str] = []
    for endpoint in tx.ledger.many(Endpoint, "endpoints_held", limit=_MANY):
        if endpoint.state is not EndpointState.WORKING:
            continue
        delivery = recovery.find_delivery_of_endpoint(tx.ledger, endpoint)
        flight = tx.get(Flight, delivery.flight_id) if delivery is not None else None
        if flight is not None and flight.state not in FLIGHT.terminal:
            reason = "interrupted: Scout was paused"
            flight_state.finish_flight(tx, flight, cancel_flight(flight, reason, tx.now))
            cancelled.append(flight.id)
    return tuple(cancelled)


def _show(tx: Transaction, node: Node, interrupted: tuple[str, ...] = ()) -> PauseView:
    held = tx.ledger.many(Endpoint, "endpoints_held", limit=_MANY)
    return PauseView(
        paused=node.paused,
        running=sum(one.state is EndpointState.WORKING for one in held) - len(interrupted),
        waiting=len(recovery.list_pending_deliveries(tx.ledger)),
        interrupted=interrupted,
    )
