"""What a flight does to the work item it belongs to.

`follow_flight` returns the item after each step, so that each can be recorded; no step, no change.
"""

from scout.base.time import Time
from scout.model.flight import Flight, FlightState
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

__all__ = ["follow_flight"]

_UNFINISHED = (WorkState.OPEN, WorkState.WORKING, WorkState.WAITING)


def follow_flight(item: WorkItem, flight: Flight, now: Time) -> tuple[WorkItem, ...]:
    """The item's steps after its flight has changed. In review or settled, it is past its flights."""
    if item.state not in _UNFINISHED:
        return ()
    match flight.state:
        case FlightState.RUNNING:
            return (start_work(item, now),) if item.state is WorkState.OPEN else _resumed(item, now)
        case FlightState.COMPLETED:
            return _completed(item, now)
        case FlightState.FAILED:
            return _failed(item, flight, now)
        case FlightState.CANCELLED:
            return (cancel_work(item, flight.reason, now),)
        case _:
            return ()


def _resumed(item: WorkItem, now: Time) -> tuple[WorkItem, ...]:
    return (resume_work(item, now),) if item.state is WorkState.WAITING else ()


def _completed(item: WorkItem, now: Time) -> tuple[WorkItem, ...]:
    steps = _resumed(item, now)
    submitted = submit_work((item, *steps)[-1], now)
    if item.acceptance is not Acceptance.NONE:
        return (*steps, submitted)
    return (*steps, submitted, accept_work(submitted, now))


def _failed(item: WorkItem, flight: Flight, now: Time) -> tuple[WorkItem, ...]:
    steps = _resumed(item, now)
    on = WaitingOn(kind=WaitingKind.ACTOR, ref=item.requester_id)
    waiting = wait_work((item, *steps)[-1], on, item.requester_id, now, reason=flight.reason)
    return (*steps, waiting)
