"""Flights that are held: until their target is started by hand, can be reached, or may be woken again."""

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.effects import flight_state
from scout.broker.routing import attention_items, routes, wake
from scout.broker.routing.attention_items import settle_held
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent, WakePolicy
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.conversation import Conversation, Message
from scout.model.delivery import Delivery, DeliveryState, cancel_delivery
from scout.model.events.asks import DeliveryCancelled
from scout.model.flight import Flight, FlightPhase, note_flight
from scout.policy.reach import WakeAction
from scout.store.ledger import LAST, Ledger

_SOME = 200


def held_flights(ledger: Ledger, agent_id: str) -> list[Flight]:
    """Flights to an agent that wait until it can be reached, or may be."""
    found = ledger.many(Flight, "flights_open_to", agent=agent_id, before=LAST, limit=_SOME)
    return [one for one in reversed(found) if one.phase is FlightPhase.HELD]


def release_all(tx: Transaction, agent_id: str) -> None:
    """Look at all of them again, the oldest first."""
    for flight in held_flights(tx.ledger, agent_id):
        try_to_release(tx, flight)
    agent = tx.need(Agent, "agent", agent_id)
    if routes.is_live(tx, agent) or agent.config.wake_policy is not WakePolicy.MANUAL:
        settle_held(tx, agent_id)


def try_to_release(tx: Transaction, flight: Flight) -> bool:
    """Whether a flight that was held can go on now; then it has been sent on its way."""
    ask, agent = tx.get(Ask, flight.ask_id), tx.get(Agent, flight.target)
    pending = _in_the_inbox(tx, flight)
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
    reason = "it can be carried now" if route.runs else "its target is there, and finds it in its inbox"
    free = {"waiting_on": None, "next_move_owner_id": flight.target, "reason": reason}
    going = flight_state.record_note(tx, note_flight(flight, FlightPhase.ACCEPTED, tx.now, **free))
    if route.runs:
        _carry_instead(tx, pending, reason)
        said = replace(message, flight_id=going.id)
        wake.deliver_ask(tx, ask, said, route=route, decision=decision, reason=reason)
    settle_held(tx, flight.target)
    _settle_budget(tx, flight)
    return True


def _settle_budget(tx: Transaction, flight: Flight) -> None:
    """Agents may wake somebody in the conversation again: the operator need not raise its budget."""
    for item in tx.ledger.many(Attention, "attention_about", dedupe=f"wake_budget:{flight.conversation_id}"):
        attention_items.close_item(tx, item, "agents may wake somebody there again")


def _in_the_inbox(tx: Transaction, flight: Flight) -> list[Delivery]:
    """What waits for a flight's target to take it by itself."""
    found = tx.ledger.many(Delivery, "deliveries_of_flight", flight=flight.id)
    return [one for one in found if one.state is DeliveryState.PENDING and not one.wake]


def _carry_instead(tx: Transaction, pending: list[Delivery], reason: str) -> None:
    """Cancel what waits in an inbox: a program is started for it."""
    for old in pending:
        tx.record(DeliveryCancelled, cancel_delivery(old, reason, tx.now), move="cancel", reason=reason)


def route_again(tx: Transaction, flight: Flight, reason: str) -> None:
    """Send a flight that nobody took another way, now that the one it had is gone; else hold it."""
    pending = _in_the_inbox(tx, flight)
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
        _carry_instead(tx, pending, reason)
        said = replace(message, flight_id=flight.id)
        wake.deliver_ask(tx, ask, said, route=route, decision=decision, reason=reason)


def carry_again(tx: Transaction, flight: Flight, reason: str) -> None:
    """Start a program once more for a flight that goes on; one that cannot be carried is found silent."""
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
