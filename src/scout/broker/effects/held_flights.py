"""Flights that are held: until their target is started by hand, can be reached, or may be woken again."""

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.effects import flight_state
from scout.broker.routing import ask_routes, attention_items, routes
from scout.broker.routing.held_items import settle_held
from scout.broker.transaction.transaction import Turn
from scout.model.agent import Agent, WakePolicy
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.conversation import Conversation, Message
from scout.model.delivery import Delivery, DeliveryState, cancel_delivery
from scout.model.events.asks import DeliveryCancelled
from scout.model.flight import Flight, FlightPhase, note_flight
from scout.policy.reach import Action
from scout.store.ledger import LAST, Ledger

__all__ = ["carry_again", "held", "look_again", "release", "route_again"]

_SOME = 200


def held(ledger: Ledger, agent_id: str) -> list[Flight]:
    """Flights to an agent that wait until it can be reached, or may be."""
    found = ledger.many(Flight, "flights_open_to", agent=agent_id, before=LAST, limit=_SOME)
    return [one for one in reversed(found) if one.phase is FlightPhase.HELD]


def release(turn: Turn, agent_id: str) -> None:
    """Look at all of them again, the oldest first."""
    for flight in held(turn.ledger, agent_id):
        look_again(turn, flight)
    agent = turn.need(Agent, "agent", agent_id)
    if routes.is_live(turn, agent) or agent.config.wake_policy is not WakePolicy.MANUAL:
        settle_held(turn, agent_id)


def look_again(turn: Turn, flight: Flight) -> bool:
    """Whether a flight that was held can go on now; then it has been sent on its way."""
    ask, agent = turn.ledger.get(Ask, flight.ask_id), turn.ledger.get(Agent, flight.target)
    pending = _in_the_inbox(turn, flight)
    if flight.phase is not FlightPhase.HELD or ask is None or agent is None or not pending:
        return False
    message = turn.need(Message, "message", ask.message_id)
    try:
        route, waits = ask_routes.find_route_again(turn, ask, agent)
    except Refused:
        return False
    conversation = turn.need(Conversation, "conversation", ask.conversation_id)
    decision = ask_routes.decide_wake(turn, ask, route, conversation)
    if waits or decision.action is not Action.WAKE:
        return False
    reason = "it can be carried now" if route.runs else "its target is there, and finds it in its inbox"
    free = {"waiting_on": None, "next_move_owner_id": flight.target, "reason": reason}
    going = flight_state.note(turn, note_flight(flight, FlightPhase.ACCEPTED, turn.now, **free))
    if route.runs:
        _carry_instead(turn, pending, reason)
        said = replace(message, flight_id=going.id)
        ask_routes.deliver_ask(turn, ask, said, route=route, decision=decision, reason=reason)
    settle_held(turn, flight.target)
    _settle_budget(turn, flight)
    return True


def _settle_budget(turn: Turn, flight: Flight) -> None:
    """Agents may wake somebody in the conversation again: the operator need not raise its budget."""
    for item in turn.ledger.many(
        Attention, "attention_about", dedupe=f"wake_budget:{flight.conversation_id}"
    ):
        attention_items.put_away(turn, item, "agents may wake somebody there again")


def _in_the_inbox(turn: Turn, flight: Flight) -> list[Delivery]:
    """What waits for a flight's target to take it by itself."""
    found = turn.ledger.many(Delivery, "deliveries_of_flight", flight=flight.id)
    return [one for one in found if one.state is DeliveryState.PENDING and not one.wake]


def _carry_instead(turn: Turn, pending: list[Delivery], reason: str) -> None:
    """Cancel what waits in an inbox: a program is started for it."""
    for old in pending:
        turn.record(DeliveryCancelled, cancel_delivery(old, reason, turn.now), move="cancel", reason=reason)


def route_again(turn: Turn, flight: Flight, reason: str) -> None:
    """Send a flight that nobody took another way, now that the one it had is gone; else hold it."""
    pending = _in_the_inbox(turn, flight)
    if not pending or flight.phase is FlightPhase.HELD:
        return
    ask, agent = turn.need(Ask, "ask", flight.ask_id), turn.need(Agent, "agent", flight.target)
    message = turn.need(Message, "message", ask.message_id)
    route, waits = ask_routes.find_route_again(turn, ask, agent, queue=True)
    conversation = turn.need(Conversation, "conversation", ask.conversation_id)
    decision = ask_routes.decide_wake(turn, ask, route, conversation)
    held = ask_routes.hold_ask(turn, ask, flight, decision, waits and f"{reason}; {waits}")
    if held is not flight:
        flight_state.note(turn, held)
        return
    flight_state.note(
        turn, note_flight(flight, FlightPhase.ACCEPTED, turn.now, reason=f"routed again: {reason}")
    )
    if route.runs:
        _carry_instead(turn, pending, reason)
        said = replace(message, flight_id=flight.id)
        ask_routes.deliver_ask(turn, ask, said, route=route, decision=decision, reason=reason)


def carry_again(turn: Turn, flight: Flight, reason: str) -> None:
    """Start a program once more for a flight that goes on; one that cannot be carried is found silent."""
    ask, agent = turn.need(Ask, "ask", flight.ask_id), turn.need(Agent, "agent", flight.target)
    message = turn.need(Message, "message", ask.message_id)
    try:
        route, waits = ask_routes.find_route_again(turn, ask, agent)
    except Refused:
        return
    conversation = turn.need(Conversation, "conversation", ask.conversation_id)
    decision = ask_routes.decide_wake(turn, ask, route, conversation)
    said = replace(message, flight_id=flight.id)
    ask_routes.deliver_ask(turn, ask, said, route=route, decision=decision, reason=reason, waits=bool(waits))
