"""Held flights: their target has to be started by hand, is unreachable, or may not be woken yet."""

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.effects import flight_state
from scout.broker.routing import attention_items, routes, wake
from scout.broker.routing.attention_items import close_held_item
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent, WakePolicy
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.conversation import Conversation, Message
from scout.model.delivery import Delivery, DeliveryState, cancel_delivery
from scout.model.events.asks import DeliveryCancelled
from scout.model.flight import Flight, FlightPhase, note_flight
from scout.policy.wake import WakeAction
from scout.store.ledger import LAST, Ledger

_SOME = 200


def find_held_flights(ledger: Ledger, agent_id: str) -> list[Flight]:
    """Return the flights to an agent that are held."""
    found = ledger.many(Flight, "flights_open_to", agent=agent_id, before=LAST, limit=_SOME)
    return [one for one in reversed(found) if one.phase is FlightPhase.HELD]


def release_held_flights(tx: Transaction, agent_id: str) -> None:
    """Try to release every held flight of an agent, the oldest first."""
    for flight in find_held_flights(tx.ledger, agent_id):
        release_if_deliverable(tx, flight)
    agent = tx.need(Agent, "agent", agent_id)
    if routes.is_live(tx, agent) or agent.config.wake_policy is not WakePolicy.MANUAL:
        close_held_item(tx, agent_id)


def release_if_deliverable(tx: Transaction, flight: Flight) -> bool:
    """Release a held flight if it can be delivered now; return whether it was released."""
    ask, agent = tx.get(Ask, flight.ask_id), tx.get(Agent, flight.target)
    pending = _find_inbox_deliveries(tx, flight)
    if flight.phase is not FlightPhase.HELD or ask is None or agent is None or not pending:
        return False
    message = tx.need(Message, "message", ask.message_id)
    try:
        route, waits = wake.find_route_again(tx, ask, agent)
    except Refused:
        return False
    conversation = tx.need(Conversation, "conversation", ask.conversation_id)
    decision = wake.decide_ask_wake(tx, ask, route, conversation)
    if waits or decision.action is not WakeAction.WAKE:
        return False
    reason = "it can be delivered now" if route.runs else "its target is online and finds it in its inbox"
    free = {"waiting_on": None, "next_move_owner_id": flight.target, "reason": reason}
    going = flight_state.record_note(tx, note_flight(flight, FlightPhase.ACCEPTED, tx.now, **free))
    if route.runs:
        _cancel_deliveries(tx, pending, reason)
        said = replace(message, flight_id=going.id)
        wake.deliver_ask(tx, ask, said, route=route, decision=decision, reason=reason)
    close_held_item(tx, flight.target)
    _close_budget_item(tx, flight)
    return True


def _close_budget_item(tx: Transaction, flight: Flight) -> None:
    """Close the operator's item about a wake budget: agents may wake others there again."""
    for item in tx.ledger.many(Attention, "attention_about", dedupe=f"wake_budget:{flight.conversation_id}"):
        attention_items.close_item(tx, item, "agents may wake others there again")


def _find_inbox_deliveries(tx: Transaction, flight: Flight) -> list[Delivery]:
    """Return the deliveries that the target of a flight has to take from its inbox."""
    found = tx.ledger.many(Delivery, "deliveries_of_flight", flight=flight.id)
    return [one for one in found if one.state is DeliveryState.PENDING and not one.wake]


def _cancel_deliveries(tx: Transaction, pending: list[Delivery], reason: str) -> None:
    """Cancel inbox deliveries: a program is started for them."""
    for old in pending:
        tx.record(DeliveryCancelled, cancel_delivery(old, reason, tx.now), move="cancel", reason=reason)


def reroute_flight(tx: Transaction, flight: Flight, reason: str) -> None:
    """Find another route for a flight that was not taken and whose route is gone; else hold it."""
    pending = _find_inbox_deliveries(tx, flight)
    if not pending or flight.phase is FlightPhase.HELD:
        return
    ask, agent = tx.need(Ask, "ask", flight.ask_id), tx.need(Agent, "agent", flight.target)
    message = tx.need(Message, "message", ask.message_id)
    route, waits = wake.find_route_again(tx, ask, agent, queue=True)
    conversation = tx.need(Conversation, "conversation", ask.conversation_id)
    decision = wake.decide_ask_wake(tx, ask, route, conversation)
    held = wake.hold_ask(tx, ask, flight, decision, waits and f"{reason}; {waits}")
    if held is not flight:
        flight_state.record_note(tx, held)
        return
    flight_state.record_note(
        tx, note_flight(flight, FlightPhase.ACCEPTED, tx.now, reason=f"routed again: {reason}")
    )
    if route.runs:
        _cancel_deliveries(tx, pending, reason)
        said = replace(message, flight_id=flight.id)
        wake.deliver_ask(tx, ask, said, route=route, decision=decision, reason=reason)


def restart_flight(tx: Transaction, flight: Flight, reason: str) -> None:
    """Start a program again for an open flight; if that fails, a sweep finds the flight silent."""
    ask, agent = tx.need(Ask, "ask", flight.ask_id), tx.need(Agent, "agent", flight.target)
    message = tx.need(Message, "message", ask.message_id)
    try:
        route, waits = wake.find_route_again(tx, ask, agent)
    except Refused:
        return
    conversation = tx.need(Conversation, "conversation", ask.conversation_id)
    decision = wake.decide_ask_wake(tx, ask, route, conversation)
    said = replace(message, flight_id=flight.id)
    wake.deliver_ask(tx, ask, said, route=route, decision=decision, reason=reason, waits=bool(waits))
