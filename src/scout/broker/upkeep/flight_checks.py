"""Whether anything still works on a flight, and what becomes of it."""

from scout.broker.delivery import recovery
from scout.broker.delivery.dispatcher import Dispatching
from scout.broker.effects import flight_state, held_flights, reminders
from scout.broker.transaction.transaction import Transaction
from scout.model.delivery import Delivery, DeliveryState, InspectResult
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
from scout.policy.sweep_actions import (
    CheckFlight,
    Liveness,
    SweepFail,
    SweepResume,
    SweepSubject,
    Swept,
    WaitFlight,
)
from scout.store.ledger import Ledger

_SEEN = {
    InspectResult.TAKEN: Liveness.ALIVE,
    InspectResult.NOT_TAKEN: Liveness.DEAD,
    InspectResult.UNKNOWN: Liveness.UNKNOWN,
}


# -- looking -----------------------------------------------------------------------------------------


async def inspect_flight(broker: Dispatching, flight_id: str) -> Liveness | None:
    """What can be seen of the program that works on a flight; nothing of an agent that reads its inbox."""
    flight, delivery = await broker.read(lambda ledger: _under_way(ledger, flight_id))
    if flight is None or delivery is None or flight.state is FlightState.QUEUED:
        return None
    if delivery.state is not DeliveryState.ACKED or broker.dispatcher.is_at(delivery):
        return Liveness.ALIVE
    on = flight.waiting_on
    if on is not None and on.kind is not WaitingKind.PEER:
        return None  # its program may well have ended: something else is to happen first
    return _SEEN[await broker.dispatcher.look(delivery)]


def _under_way(ledger: Ledger, flight_id: str) -> tuple[Flight | None, Delivery | None]:
    return ledger.get(Flight, flight_id), _program(ledger, flight_id)


def _program(ledger: Ledger, flight_id: str) -> Delivery | None:
    """The delivery by which a program was started for a flight, if the last one was."""
    last = ledger.many(Delivery, "deliveries_of_flight", flight=flight_id)[-1:]
    return next((one for one in last if one.wake), None)


def watch_flight(tx: Transaction, flight: Flight, alive: Liveness | None) -> SweepSubject:
    """A flight with what is known of it: what became of its program, or when its agent was heard from."""
    named = tx.get(Endpoint, flight.endpoint_id)
    known = [one for one in ([named] if named else tx.endpoints(flight.target)) if not one.held]
    within = tx.rules.periods.online_within
    if alive is None and any(is_online(one, tx.now, within) for one in known):
        alive = Liveness.ALIVE
    return SweepSubject(
        record=flight,
        seen_at=max((one.last_seen for one in known if one.last_seen is not None), default=None),
        found=alive,
        address=tx.address(flight.target),
        title=reminders.title_of_record(tx, flight),
        **reminders.reminders(tx, flight.id),
    )


# -- what follows ------------------------------------------------------------------------------------


def follow_up(tx: Transaction, flight: Flight, action: Swept, alive: Liveness | None) -> None:
    """What the sweeper found due for a flight."""
    match action:
        case CheckFlight() | SweepResume() if flight.state is FlightState.QUEUED:
            if not held_flights.try_to_release(tx, flight):
                _later(tx, flight, action)
        case CheckFlight():
            checked = {"reason": action.rule, "next_check_at": action.next_check}
            flight_state.record_note(tx, note_flight(flight, FlightPhase.CHECKING, tx.now, **checked))
        case SweepResume() if flight.state is FlightState.RUNNING:
            heard = {"reason": "the target works on it", "next_check_at": action.next_check}
            flight_state.record_note(tx, note_flight(flight, FlightPhase.WORKING, tx.now, **heard))
        case SweepResume():
            _resumed(tx, flight, action, alive)
        case WaitFlight():
            on, holder = action.waiting_on, action.holder_id
            waiting = wait_flight(flight, on, tx.now, next_move_owner_id=holder, reason=action.reason)
            _moved(tx, waiting, FlightMove.WAIT)
        case SweepFail():
            flight_state.finish_flight(tx, flight, fail_flight(flight, action.error, tx.now))
            delivery = _program(tx.ledger, flight.id)
            if delivery is not None:
                recovery.end_run(tx, delivery, action.rule)
        case _:
            _later(tx, flight, action)


def _later(tx: Transaction, flight: Flight, action: Swept) -> None:
    flight_state.record_note(tx, postpone_flight(flight, action.next_check or tx.now))


def _resumed(tx: Transaction, flight: Flight, action: Swept, alive: Liveness | None) -> None:
    """Its wait is over. A program that has ended meanwhile is started again for it."""
    resumed = resume_flight(flight, tx.now)
    _moved(tx, resumed, FlightMove.RESUME, action.rule)
    if alive is not Liveness.ALIVE and _program(tx.ledger, flight.id) is not None:
        held_flights.carry_again(tx, resumed, action.rule)


def _moved(tx: Transaction, flight: Flight, move: FlightMove, reason: str = "") -> None:
    tx.record(FLIGHT_EVENTS[move], flight, move=move, reason=reason or flight.reason)
