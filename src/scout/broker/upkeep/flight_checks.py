"""Whether anything still works on a flight, and what becomes of it."""

from collections.abc import Callable
from typing import Any, Protocol

from scout.broker.delivery import recovery
from scout.broker.delivery.dispatcher import Dispatcher
from scout.broker.effects import flight_state, held_flights, reminders
from scout.broker.transaction.transaction import Turn
from scout.model.delivery import Delivery, DeliveryState, Found
from scout.model.endpoint import Endpoint, is_online
from scout.model.events.asks import FLIGHT_EVENTS
from scout.model.flight import (
    Flight,
    FlightMove,
    FlightPhase,
    FlightState,
    fail_flight,
    note_flight,
    postpone_flight,
    resume_flight,
    wait_flight,
)
from scout.model.waiting import WaitingKind
from scout.policy.swept import CheckFlight, FailFlight, Liveness, ResumeFlight, Swept, WaitFlight, Watch
from scout.store.ledger import Ledger

__all__ = ["House", "follow", "look", "watch"]

_SEEN = {Found.TAKEN: Liveness.ALIVE, Found.NOT_TAKEN: Liveness.DEAD, Found.UNKNOWN: Liveness.UNKNOWN}


class House(Protocol):
    """The broker, as far as this looks at it."""

    dispatcher: Dispatcher

    async def read(self, work: Callable[[Ledger], Any]) -> Any: ...


# -- looking -----------------------------------------------------------------------------------------


async def look(house: House, flight_id: str) -> Liveness | None:
    """What can be seen of the program that works on a flight; nothing of an agent that reads its inbox."""
    flight, delivery = await house.read(lambda ledger: _under_way(ledger, flight_id))
    if delivery is None or flight.state is FlightState.QUEUED:
        return None
    if delivery.state is not DeliveryState.ACKED or house.dispatcher.is_at(delivery):
        return Liveness.ALIVE
    on = flight.waiting_on
    if on is not None and on.kind is not WaitingKind.PEER:
        return None  # its program may well have ended: something else is to happen first
    return _SEEN[await house.dispatcher.look(delivery)]


def _under_way(ledger: Ledger, flight_id: str) -> tuple[Flight | None, Delivery | None]:
    return ledger.get(Flight, flight_id), _program(ledger, flight_id)


def _program(ledger: Ledger, flight_id: str) -> Delivery | None:
    """The delivery by which a program was started for a flight, if the last one was."""
    last = ledger.many(Delivery, "deliveries_of_flight", flight=flight_id)[-1:]
    return next((one for one in last if one.wake), None)


def watch(turn: Turn, flight: Flight, alive: Liveness | None) -> Watch:
    """A flight with what is known of it: what became of its program, or when its agent was heard from."""
    named = turn.ledger.get(Endpoint, flight.endpoint_id)
    known = [one for one in ([named] if named else turn.endpoints(flight.target)) if not one.held]
    within = turn.rules.periods.online_within
    if alive is None and any(is_online(one, turn.now, within) for one in known):
        alive = Liveness.ALIVE
    return Watch(
        record=flight,
        seen_at=max((one.last_seen for one in known if one.last_seen is not None), default=None),
        found=alive,
        address=turn.address(flight.target),
        title=reminders.title_of_record(turn, flight),
        **reminders.reminders(turn, flight.id),
    )


# -- what follows ------------------------------------------------------------------------------------


def follow(turn: Turn, flight: Flight, action: Swept, alive: Liveness | None) -> None:
    """What the sweeper found due for a flight."""
    match action:
        case CheckFlight() | ResumeFlight() if flight.state is FlightState.QUEUED:
            if not held_flights.look_again(turn, flight):
                _later(turn, flight, action)
        case CheckFlight():
            checked = {"reason": action.rule, "next_check_at": action.next_check}
            flight_state.note(turn, note_flight(flight, FlightPhase.CHECKING, turn.now, **checked))
        case ResumeFlight() if flight.state is FlightState.RUNNING:
            heard = {"reason": "the target works on it", "next_check_at": action.next_check}
            flight_state.note(turn, note_flight(flight, FlightPhase.WORKING, turn.now, **heard))
        case ResumeFlight():
            _resumed(turn, flight, action, alive)
        case WaitFlight():
            on, holder = action.waiting_on, action.holder_id
            waiting = wait_flight(flight, on, turn.now, next_move_owner_id=holder, reason=action.reason)
            _moved(turn, waiting, FlightMove.WAIT)
        case FailFlight():
            flight_state.finish(turn, flight, fail_flight(flight, action.error, turn.now))
            delivery = _program(turn.ledger, flight.id)
            if delivery is not None:
                recovery.ended(turn, delivery, action.rule)
        case _:
            _later(turn, flight, action)


def _later(turn: Turn, flight: Flight, action: Swept) -> None:
    flight_state.note(turn, postpone_flight(flight, action.next_check or turn.now))


def _resumed(turn: Turn, flight: Flight, action: Swept, alive: Liveness | None) -> None:
    """Its wait is over. A program that has ended meanwhile is started again for it."""
    resumed = resume_flight(flight, turn.now)
    _moved(turn, resumed, FlightMove.RESUME, action.rule)
    if alive is not Liveness.ALIVE and _program(turn.ledger, flight.id) is not None:
        held_flights.carry_again(turn, resumed, action.rule)


def _moved(turn: Turn, flight: Flight, move: FlightMove, reason: str = "") -> None:
    turn.record(FLIGHT_EVENTS[move], flight, move=move, reason=reason or flight.reason)
