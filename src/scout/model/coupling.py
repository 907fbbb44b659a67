"""The effects of a delivery on its flight and of a flight on its delivery, in one transaction.

Only a delivery has leases, attempts and back-off; only a flight has an outcome.
"""

from typing import NamedTuple

from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.model.delivery import DELIVERY, Delivery, DeliveryState, cancel_delivery
from scout.model.flight import (
    FLIGHT,
    Flight,
    FlightPhase,
    FlightState,
    build_error,
    fail_flight,
    note_flight,
    retry_remedy,
    start_flight,
)
from scout.model.problems.session import Layer, WakeFailed
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import (
    Acceptance,
    WorkItem,
    WorkState,
    accept_work,
    cancel_work,
    resume_work,
    start_work,
    submit_work,
    wait_work,
)


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


_UNFINISHED = (WorkState.OPEN, WorkState.WORKING, WorkState.WAITING)


def follow_flight(item: WorkItem, flight: Flight, now: Time) -> tuple[WorkItem, ...]:
    """Return the item's steps after a change of its flight; none once it is in review or settled."""
    if item.state not in _UNFINISHED:
        return ()
    match flight.state:
        case FlightState.RUNNING:
            return (start_work(item, now),) if item.state is WorkState.OPEN else _resume_if_waiting(item, now)
        case FlightState.COMPLETED:
            return _complete(item, now)
        case FlightState.FAILED:
            return _fail(item, flight, now)
        case FlightState.CANCELLED:
            return (cancel_work(item, flight.reason, now),)
        case _:
            return ()


def _resume_if_waiting(item: WorkItem, now: Time) -> tuple[WorkItem, ...]:
    return (resume_work(item, now),) if item.state is WorkState.WAITING else ()


def _complete(item: WorkItem, now: Time) -> tuple[WorkItem, ...]:
    steps = _resume_if_waiting(item, now)
    submitted = submit_work((item, *steps)[-1], now)
    if item.acceptance is not Acceptance.NONE:
        return (*steps, submitted)
    return (*steps, submitted, accept_work(submitted, now))


def _fail(item: WorkItem, flight: Flight, now: Time) -> tuple[WorkItem, ...]:
    steps = _resume_if_waiting(item, now)
    on = WaitingOn(kind=WaitingKind.ACTOR, ref=item.requester_id)
    waiting = wait_work((item, *steps)[-1], on, item.requester_id, now, reason=flight.reason)
    return (*steps, waiting)
