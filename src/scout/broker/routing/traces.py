"""The trace that an ask belongs to, and the context that its work is given."""

from scout.broker.transaction.transaction import Transaction
from scout.model.ask import Ask
from scout.model.delivery import Delivery, DeliveryState
from scout.model.flight import Flight
from scout.model.trace import TraceContext, TraceStep, build_context, choose_parent, parse_traceparent


def find_parent(tx: Transaction, given: str | None, flight: Flight | None, ask: Ask | None) -> str | None:
    """Return the parent of a new ask: the context it was given, or the turn that it was made in."""
    if given is None and not _is_traced(tx, ask):
        return None
    within = _find_work_context(tx, ask, flight) if ask is not None and flight is not None else None
    return choose_parent(given, within)


def _find_work_context(tx: Transaction, ask: Ask, flight: Flight) -> TraceContext | None:
    if not tx.services.traced:
        return parse_traceparent(ask.traceparent)
    taken = [
        one
        for one in tx.ledger.many(Delivery, "deliveries_of_flight", flight=flight.id)
        if one.state is DeliveryState.ACKED and one.carried_with is None and one.target == flight.target
    ]
    if not taken:
        return build_context(ask, tx.services.node_id, TraceStep.ASK, flight.id)
    return build_context(ask, tx.services.node_id, TraceStep.TURN, taken[-1].id)


def build_turn_context(tx: Transaction, delivery: Delivery) -> str | None:
    """Return the context of a turn, for the program that runs it; of a message there is none."""
    ask = tx.get(Ask, delivery.ask_id) if delivery.flight_id is not None else None
    if ask is None or not _is_traced(tx, ask):
        return None
    if not tx.services.traced:
        return ask.traceparent  # nothing is exported here, so others continue where the asker was
    carried = delivery.carried_with or delivery.id
    return str(build_context(ask, tx.services.node_id, TraceStep.TURN, carried))


def build_flight_context(tx: Transaction, ask: Ask, flight: Flight) -> str | None:
    """Return the context that another node continues when it runs a flight of this node."""
    if not tx.services.traced:
        return ask.traceparent
    return str(build_context(ask, tx.services.node_id, TraceStep.ASK, flight.id))


def _is_traced(tx: Transaction, ask: Ask | None) -> bool:
    return tx.services.traced or (ask is not None and ask.traceparent is not None)
