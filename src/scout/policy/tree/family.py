"""Notices to a parent about its child: none, a note, or a message that wakes it."""

from collections.abc import Mapping
from enum import StrEnum

from scout.model.flight import Flight, FlightState
from scout.model.waiting import WaitingKind
from scout.model.work_item import WorkItem, WorkMove


class ChildFact(StrEnum):
    """A change of a child that its parent should know."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    WAITING = "waiting"
    DIED = "died"
    RETIRED = "retired"


class ParentNotice(StrEnum):
    """SILENT: the parent knows. NOTE: it reads it with its next turn. WAKE: it has to act."""

    SILENT = "silent"
    NOTE = "note"
    WAKE = "wake"


_FACTS: Mapping[FlightState, ChildFact] = {
    FlightState.COMPLETED: ChildFact.COMPLETED,
    FlightState.FAILED: ChildFact.FAILED,
    FlightState.CANCELLED: ChildFact.CANCELLED,
    FlightState.WAITING: ChildFact.WAITING,
}
# An owner finishes its part of a work item when it submits it; to accept the result is the reviewer's move.
_WORK_FACTS: Mapping[str, ChildFact] = {
    WorkMove.SUBMIT: ChildFact.COMPLETED,
    WorkMove.WAIT: ChildFact.WAITING,
    WorkMove.CANCEL: ChildFact.CANCELLED,
}
# Facts after which the child itself makes no move, so that somebody else has to.
_STUCK = frozenset({ChildFact.FAILED, ChildFact.WAITING, ChildFact.DIED})
# A wait of these kinds is announced to the owner of the next move by a separate message.
_ANNOUNCED = frozenset({WaitingKind.ACTOR, WaitingKind.QUESTION})


def read_fact(flight: Flight) -> ChildFact | None:
    """Return what a flight says about its target; None while it is queued or running."""
    return _FACTS.get(flight.state)


def decide_flight_notice(
    flight: Flight,
    parent_id: str,
    *,
    actor_id: str | None,
    replies_to: str | None,
    asker_in_service: bool,
    unfetched: bool = False,
) -> ParentNotice:
    """Decide whether the parent is told of a flight of its child.

    `actor_id`: the agent that caused the change. `replies_to`: the agent that gets the answer or the failure
    of the ask. `unfetched`: the asker has to fetch the answer and does not wait for it. The asker of a failed
    flight has the next move; the parent has it if no asker is left.
    """
    fact = read_fact(flight)
    if fact is None or actor_id == parent_id:
        return ParentNotice.SILENT
    if fact is ChildFact.WAITING:
        return _decide_wait(flight, parent_id)
    if parent_id in (flight.requester_id, replies_to):
        unknown = unfetched and fact is ChildFact.COMPLETED
        return ParentNotice.NOTE if unknown else ParentNotice.SILENT
    return decide_notice(fact, parent_moves=not asker_in_service)


def decide_work_notice(
    item: WorkItem, move: str | None, parent_id: str, *, actor_id: str | None
) -> tuple[ChildFact | None, ParentNotice]:
    """Return what a move of a work item says about its owner, and whether the owner's parent is told.

    The holder of the next move, and the requester of an item that its owner cancels, get a separate message.
    """
    fact = _WORK_FACTS.get(move or "")
    if fact is None or parent_id in (actor_id, item.next_move_owner_id):
        return fact, ParentNotice.SILENT
    if fact is ChildFact.CANCELLED and parent_id == item.requester_id and actor_id == item.owner_id:
        return fact, ParentNotice.SILENT
    return fact, decide_notice(fact, parent_moves=False)


def _decide_wait(flight: Flight, parent_id: str) -> ParentNotice:
    parent_moves = flight.next_move_owner_id == parent_id
    announced = flight.waiting_on is not None and flight.waiting_on.kind in _ANNOUNCED
    if parent_moves and announced:
        return ParentNotice.SILENT
    return decide_notice(ChildFact.WAITING, parent_moves=parent_moves)


def decide_notice(fact: ChildFact, *, parent_moves: bool) -> ParentNotice:
    """Return WAKE if the child is stuck and the parent has the next move, else NOTE."""
    return ParentNotice.WAKE if fact in _STUCK and parent_moves else ParentNotice.NOTE
