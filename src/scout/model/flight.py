"""Flights: the lifecycle of an ask from queued to one outcome. A retry is a new flight of the same ask."""

from enum import StrEnum
from typing import Any, NamedTuple

from msgspec.structs import replace

from scout.base.machine import Machine, Mutable, change_record, move_record
from scout.base.record import Record
from scout.base.refusal import Diagnostic, Refused, Remedy, WrongState
from scout.base.time import Time
from scout.model.ask import Ask, SessionPolicy
from scout.model.delivery import DELIVERY, Delivery, DeliveryState, cancel_delivery
from scout.model.problems.session import EmptyReply, Layer, WakeFailed
from scout.model.waiting import OwedMove, WaitingKind, WaitingOn, check_waiting

CHECK_EVERY = 60.0


class FlightState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class FlightMove(StrEnum):
    START = "start"
    WAIT = "wait"
    RESUME = "resume"
    COMPLETE = "complete"
    FAIL = "fail"
    CANCEL = "cancel"


FLIGHT = Machine(
    "flight",
    FlightState.QUEUED,
    {
        FlightState.QUEUED: {
            FlightMove.START: FlightState.RUNNING,
            FlightMove.FAIL: FlightState.FAILED,
            FlightMove.CANCEL: FlightState.CANCELLED,
        },
        FlightState.RUNNING: {
            FlightMove.WAIT: FlightState.WAITING,
            FlightMove.COMPLETE: FlightState.COMPLETED,
            FlightMove.FAIL: FlightState.FAILED,
            FlightMove.CANCEL: FlightState.CANCELLED,
        },
        FlightState.WAITING: {
            FlightMove.RESUME: FlightState.RUNNING,
            FlightMove.COMPLETE: FlightState.COMPLETED,
            FlightMove.FAIL: FlightState.FAILED,
            FlightMove.CANCEL: FlightState.CANCELLED,
        },
        FlightState.COMPLETED: {},
        FlightState.FAILED: {},
        FlightState.CANCELLED: {},
    },
)


class FlightPhase(StrEnum):
    """A step within a state; never a separate state."""

    ACCEPTED = "accepted"
    HELD = "held"
    FORWARDED = "forwarded"
    WAKING = "waking"
    RETRYING = "retrying"
    WORKING = "working"
    STEERING = "steering"
    CHECKING = "checking"
    CANCELLING = "cancelling"
    WAITING = "waiting"
    DONE = "done"


class CompletedBy(StrEnum):
    """The way of finishing that came first."""

    REPLY = "reply"
    FINAL_TEXT = "final_text"
    COMPLETE = "complete"


class FlightError(Record, omit_defaults=True):
    """Why a flight failed: the diagnostic's code, if any, and its message."""

    code: str
    message: str
    remedies: tuple[Remedy, ...] = ()
    log: str | None = None


class Flight(Mutable):
    """One attempt at an ask. While it is open, `reason` and `next_check_at` say why and until when."""

    ask_id: str
    attempt: int = 1
    conversation_id: str
    requester_id: str
    target: str
    endpoint_id: str | None = None
    session_id: str | None = None
    work_item_id: str | None = None
    state: FlightState = FlightState.QUEUED
    phase: FlightPhase = FlightPhase.ACCEPTED
    reason: str
    next_check_at: Time | None
    waiting_on: WaitingOn | None = None
    next_move_owner_id: str | None = None
    output: str | None = None
    output_message_id: str | None = None
    completed_by: CompletedBy | None = None
    error: FlightError | None = None
    started_at: Time | None = None
    finished_at: Time | None = None

    @property
    def is_asking(self) -> bool:
        """Whether it waits for another agent or a person to answer a question."""
        on = self.waiting_on
        if self.state is not FlightState.WAITING or on is None:
            return False
        needs = on.kind is WaitingKind.OPERATOR and (on.ref or "").startswith("att_")
        return needs or on.kind is WaitingKind.QUESTION

    @property
    def owed_move(self) -> OwedMove | None:
        """The move that is owed for a flight that waits without an end time."""
        on = self.waiting_on
        return OwedMove("work_waiting", self.updated_at) if on is not None and on.until is None else None


def create_flight(flight_id: str, ask: Ask, now: Time, *, attempt: int = 1) -> Flight:
    """Return the next flight of an ask."""
    return Flight(
        id=flight_id,
        ask_id=ask.id,
        attempt=attempt,
        conversation_id=ask.conversation_id,
        requester_id=ask.sender,
        target=ask.target,
        # A fork is a new session; only an existing session is known beforehand.
        session_id=ask.target_session_id if ask.session_policy is SessionPolicy.EXISTING else None,
        work_item_id=ask.work_item_id,
        reason="accepted",
        next_check_at=now.plus(CHECK_EVERY),
        next_move_owner_id=ask.target,
        created_at=now,
        updated_at=now,
    )


def retry_remedy(flight: Flight) -> Remedy:
    """Return the call that retries a failed flight."""
    why = "a new flight of the same ask"
    return Remedy(operation="flight.retry", parameters={"flightId": flight.id}, why=why)


def build_error(diagnostic: Diagnostic, log: str | None = None) -> FlightError:
    """Return the flight error for a diagnostic."""
    return FlightError(
        code=diagnostic.code, message=diagnostic.message, remedies=diagnostic.remedies, log=log
    )


def start_flight(
    flight: Flight,
    now: Time,
    *,
    seen: int | None = None,
    endpoint_id: str | None = None,
    session_id: str | None = None,
) -> Flight:
    """Start the flight: the target accepted the prompt."""
    return move_record(
        FLIGHT,
        flight,
        FlightMove.START,
        now,
        seen=seen,
        endpoint_id=endpoint_id or flight.endpoint_id,
        session_id=session_id or flight.session_id,
        started_at=now,
        **_set_working(flight, "the target works on it", now),
    )


def wait_flight(
    flight: Flight,
    on: WaitingOn,
    now: Time,
    *,
    seen: int | None = None,
    next_move_owner_id: str | None = None,
    reason: str = "",
) -> Flight:
    """Mark the flight as waiting on a dependency; its owner or an end time is required."""
    waits = _set_waiting(on, next_move_owner_id, reason, now)
    return move_record(FLIGHT, flight, FlightMove.WAIT, now, seen=seen, phase=FlightPhase.WAITING, **waits)


def resume_flight(flight: Flight, now: Time, *, seen: int | None = None) -> Flight:
    """Resume the flight: its dependency is resolved."""
    working = _set_working(flight, "the wait has ended", now)
    return move_record(FLIGHT, flight, FlightMove.RESUME, now, seen=seen, **working)


def complete_flight(
    flight: Flight,
    text: str,
    now: Time,
    *,
    seen: int | None = None,
    by: CompletedBy = CompletedBy.COMPLETE,
    message_id: str | None = None,
) -> Flight:
    """Complete the flight with the first reply; an empty reply fails it."""
    FLIGHT.after(flight.state, FlightMove.COMPLETE)
    if not text.strip():
        empty = EmptyReply(flight_id=flight.id, remedies=(retry_remedy(flight),))
        return fail_flight(flight, build_error(empty), now, seen=seen)
    return move_record(
        FLIGHT,
        flight,
        FlightMove.COMPLETE,
        now,
        seen=seen,
        output=text,
        output_message_id=message_id,
        completed_by=by,
        **_set_done("completed", now),
    )


def fail_flight(flight: Flight, error: FlightError, now: Time, *, seen: int | None = None) -> Flight:
    """Fail the flight; the error carries the remedies."""
    done = _set_done(error.message, now)
    return move_record(FLIGHT, flight, FlightMove.FAIL, now, seen=seen, error=error, **done)


def cancel_flight(flight: Flight, reason: str, now: Time, *, seen: int | None = None) -> Flight:
    """Cancel the flight."""
    return move_record(
        FLIGHT, flight, FlightMove.CANCEL, now, seen=seen, **_set_done(reason or "cancelled", now)
    )


def retry_flight(flight: Flight, ask: Ask, flight_id: str, now: Time) -> Flight:
    """Return a new flight of the same ask; refuse unless this one failed or was cancelled."""
    if flight.state not in (FlightState.FAILED, FlightState.CANCELLED):
        raise _refuse_move(flight, "retry")
    return create_flight(flight_id, ask, now, attempt=flight.attempt + 1)


def hold_flight(
    flight: Flight,
    on: WaitingOn,
    now: Time,
    *,
    next_move_owner_id: str | None = None,
    reason: str = "",
) -> Flight:
    """Hold a queued flight until a dependency is resolved (a manual agent, a budget)."""
    if flight.state is not FlightState.QUEUED:
        raise _refuse_move(flight, "hold")
    return note_flight(flight, FlightPhase.HELD, now, **_set_waiting(on, next_move_owner_id, reason, now))


def note_flight(flight: Flight, phase: FlightPhase, now: Time, **changes: Any) -> Flight:
    """Set the phase, reason or next check in the same state; refuse for a finished flight."""
    if flight.state in FLIGHT.terminal:
        raise _refuse_move(flight, phase)
    facts = {"next_check_at": now.plus(CHECK_EVERY), **changes}
    return change_record("flight", flight, now, phase=phase, **facts)


def postpone_flight(flight: Flight, next_check_at: Time) -> Flight:
    """Set only the next check; `updated_at` stays, so the last real change remains visible."""
    if flight.state in FLIGHT.terminal:
        raise _refuse_move(flight, "postpone")
    return replace(flight, revision=flight.revision + 1, next_check_at=next_check_at)


def _refuse_move(flight: Flight, move: str) -> Refused:
    state = flight.state
    accepts = tuple(FLIGHT.accepts(state))
    terminal = state in FLIGHT.terminal
    return Refused(WrongState(noun="flight", state=state, move=move, accepts=accepts, terminal=terminal))


def _set_working(flight: Flight, reason: str, now: Time) -> dict[str, Any]:
    return {
        "phase": FlightPhase.WORKING,
        "reason": reason,
        "next_check_at": now.plus(CHECK_EVERY),
        "waiting_on": None,
        "next_move_owner_id": flight.target,
    }


def _set_waiting(on: WaitingOn, next_move_owner_id: str | None, reason: str, now: Time) -> dict[str, Any]:
    check_waiting(on, next_move_owner_id)
    return {
        "reason": reason or _describe_wait(on),
        "next_check_at": on.until or now.plus(CHECK_EVERY),
        "waiting_on": on,
        "next_move_owner_id": next_move_owner_id,
    }


def _describe_wait(on: WaitingOn) -> str:
    what = f" {on.ref}" if on.ref else ""
    return f"waiting on {on.kind.replace('_', ' ')}{what}"


def _set_done(reason: str, now: Time) -> dict[str, Any]:
    return {
        "phase": FlightPhase.DONE,
        "reason": reason,
        "next_check_at": None,
        "waiting_on": None,
        "next_move_owner_id": None,
        "finished_at": now,
    }


# -- a flight and its delivery, in one transaction ---------------------------------------------------
# Only a delivery has leases, attempts and back-off; only a flight has an outcome.


class Trouble(NamedTuple):
    """Details of a failed attempt: the layer, the log, and the remedies other than a retry."""

    layer: Layer = Layer.ADAPTER
    log: str | None = None
    remedies: tuple[Remedy, ...] = ()


def follow_lease(flight: Flight, delivery: Delivery, now: Time) -> Flight:
    """Record that an attempt started and the target is being woken."""
    if flight.state is not FlightState.QUEUED:
        return flight
    reason = f"waking the target, attempt {delivery.attempts}"
    return note_flight(
        flight,
        FlightPhase.WAKING,
        now,
        reason=reason,
        next_check_at=delivery.leased_until or now,
        waiting_on=None,
        next_move_owner_id=flight.target,
    )


def follow_ack(flight: Flight, delivery: Delivery, now: Time) -> Flight:
    """Start the flight: the program accepted the prompt."""
    if flight.state is not FlightState.QUEUED:
        return flight
    return start_flight(flight, now, endpoint_id=delivery.endpoint_id, session_id=delivery.session_id)


def follow_return(flight: Flight, delivery: Delivery, now: Time) -> Flight:
    """Record that the attempt failed and will be retried."""
    if flight.state is not FlightState.QUEUED:
        return flight
    reason = f"attempt {delivery.attempts} failed: {delivery.problem or 'no reason given'}"
    check = delivery.next_attempt_at
    return note_flight(flight, FlightPhase.RETRYING, now, reason=reason, next_check_at=check)


def follow_dead_letter(
    flight: Flight,
    delivery: Delivery,
    now: Time,
    *,
    address: str = "",
    trouble: Trouble = Trouble(),
) -> Flight:
    """Fail the flight: no attempts are left. `address` is the asker's name for the target."""
    if flight.state in FLIGHT.terminal:
        return flight
    problem = WakeFailed(
        target=address or delivery.target,
        attempts=delivery.attempts,
        layer=trouble.layer,
        reason=delivery.problem or "no reason given",
        log=trouble.log,
        remedies=trouble.remedies or (retry_remedy(flight),),
    )
    return fail_flight(flight, build_error(problem, trouble.log), now)


_FOLLOW = {
    DeliveryState.PENDING: follow_return,
    DeliveryState.LEASED: follow_lease,
    DeliveryState.ACKED: follow_ack,
    DeliveryState.DEAD_LETTERED: follow_dead_letter,
}


def follow_delivery(flight: Flight, delivery: Delivery, now: Time) -> Flight:
    """Return the flight updated after a change of its delivery."""
    follow = _FOLLOW.get(delivery.state)
    return flight if follow is None else follow(flight, delivery, now)


def close_delivery(delivery: Delivery, flight: Flight, now: Time) -> Delivery:
    """Return the delivery, cancelled if its flight has finished."""
    if flight.state not in FLIGHT.terminal or delivery.state in DELIVERY.terminal:
        return delivery
    return cancel_delivery(delivery, f"its flight is {flight.state}", now)
