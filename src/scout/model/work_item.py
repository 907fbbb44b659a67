"""Work items: durable, owned work. An unsettled item has exactly one owner and one next move owner."""

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET

from scout.base.machine import Machine, Mutable, change_record, move_record
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.flight import Flight, FlightState
from scout.model.imported import Origin
from scout.model.waiting import WAIT_ENDS, OwedMove, WaitingKind, WaitingOn


class WorkState(StrEnum):
    OPEN = "open"
    WORKING = "working"
    WAITING = "waiting"
    REVIEW = "review"
    DONE = "done"
    CANCELLED = "cancelled"


class WorkMove(StrEnum):
    START = "start"
    PROGRESS = "progress"
    WAIT = "wait"
    RESUME = "resume"
    SUBMIT = "submit"
    ACCEPT = "accept"
    REOPEN = "reopen"
    HAND_OVER = "hand_over"
    CANCEL = "cancel"


WORK_ITEM = Machine(
    "work item",
    WorkState.OPEN,
    {
        WorkState.OPEN: {
            WorkMove.START: WorkState.WORKING,
            WorkMove.WAIT: WorkState.WAITING,
            WorkMove.SUBMIT: WorkState.REVIEW,
            WorkMove.HAND_OVER: WorkState.OPEN,
            WorkMove.CANCEL: WorkState.CANCELLED,
        },
        WorkState.WORKING: {
            WorkMove.PROGRESS: WorkState.WORKING,
            WorkMove.WAIT: WorkState.WAITING,
            WorkMove.SUBMIT: WorkState.REVIEW,
            WorkMove.HAND_OVER: WorkState.WORKING,
            WorkMove.CANCEL: WorkState.CANCELLED,
        },
        WorkState.WAITING: {
            WorkMove.PROGRESS: WorkState.WAITING,
            WorkMove.RESUME: WorkState.WORKING,
            WorkMove.HAND_OVER: WorkState.WAITING,
            WorkMove.CANCEL: WorkState.CANCELLED,
        },
        WorkState.REVIEW: {
            WorkMove.ACCEPT: WorkState.DONE,
            WorkMove.REOPEN: WorkState.WORKING,
            WorkMove.HAND_OVER: WorkState.REVIEW,
            WorkMove.CANCEL: WorkState.CANCELLED,
        },
        WorkState.DONE: {WorkMove.REOPEN: WorkState.WORKING},
        WorkState.CANCELLED: {},
    },
    settled=frozenset({WorkState.DONE, WorkState.CANCELLED}),
)


class Acceptance(StrEnum):
    """Whether the result must be accepted, independent of the state. `none`: not required."""

    NONE = "none"
    PENDING = "pending"
    ACCEPTED = "accepted"
    REOPENED = "reopened"


class Priority(StrEnum):
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    URGENT = "urgent"


class RelationKind(StrEnum):
    BLOCKS = "blocks"
    SPAWNS = "spawns"
    RELATES = "relates"


class Relation(Record):
    """A relation from the item that holds it to another item."""

    kind: RelationKind
    work_item_id: str


class Progress(Record):
    """Progress of the work: steps done of total, percent, and a summary."""

    done: int = 0
    total: int | None = None
    percent: float | None = None
    summary: str = ""


# The settings that define when a move is overdue.
WORK_PERIODS = {
    WorkState.OPEN: "work_open",
    WorkState.WORKING: "work_working",
    WorkState.WAITING: "work_waiting",
    WorkState.REVIEW: "work_review",
}


class WorkItem(Mutable):
    """One piece of work. `next_move_owner_id` is set exactly while the item is unsettled."""

    title: str
    description: str = ""
    requester_id: str
    owner_id: str
    next_move_owner_id: str | None
    reviewer_id: str | None = None
    state: WorkState = WorkState.OPEN
    acceptance: Acceptance = Acceptance.PENDING
    waiting_on: WaitingOn | None = None
    progress: Progress = Progress()
    priority: Priority = Priority.NORMAL
    labels: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    reason: str = ""
    conversation_id: str | None = None
    ask_id: str | None = None
    question_id: str | None = None
    due_at: Time | None = None
    settled_at: Time | None = None
    imported_from: Origin = UNSET

    @property
    def awaits(self) -> str | None:
        """The id of the work item that this item waits for, or None."""
        on = self.waiting_on
        return on.ref if on is not None and on.kind is WaitingKind.WORK_ITEM else None

    @property
    def owed_move(self) -> OwedMove | None:
        """The move that is owed for an unsettled item, or when its wait ends by itself."""
        period = WORK_PERIODS.get(self.state)
        until = self.waiting_on.until if self.waiting_on is not None else None
        if until is not None:
            return OwedMove(WAIT_ENDS, until)
        return OwedMove(period, self.updated_at) if period else None


def list_parties(item: WorkItem) -> tuple[str | None, ...]:
    """Return the agents that have a part in an item: its owner, requester, reviewer and holder."""
    return (item.owner_id, item.requester_id, item.reviewer_id, item.next_move_owner_id)


# The fields that can be edited without a move.
_EDITABLE = frozenset(
    {"title", "description", "priority", "labels", "reviewer_id", "conversation_id", "due_at"}
)


def create_work(
    work_id: str, title: str, now: Time, *, requester_id: str, owner_id: str, **more: Any
) -> WorkItem:
    """Return a new item; its owner holds the next move."""
    if not (title.strip() and owner_id and requester_id):
        raise Refused(BadRequest(problem="a work item needs a title, a requester and an owner"))
    return WorkItem(
        id=work_id,
        title=title,
        requester_id=requester_id,
        owner_id=owner_id,
        next_move_owner_id=owner_id,
        created_at=now,
        updated_at=now,
        **more,
    )


def start_work(item: WorkItem, now: Time, *, seen: int | None = None) -> WorkItem:
    """Start the work; the owner holds the next move."""
    return move_record(
        WORK_ITEM, item, WorkMove.START, now, seen=seen, next_move_owner_id=item.owner_id, reason=""
    )


def update_progress(item: WorkItem, progress: Progress, now: Time, *, seen: int | None = None) -> WorkItem:
    """Record progress; the state does not change."""
    return move_record(WORK_ITEM, item, WorkMove.PROGRESS, now, seen=seen, progress=_check_progress(progress))


def wait_work(
    item: WorkItem,
    on: WaitingOn,
    next_move_owner_id: str,
    now: Time,
    *,
    seen: int | None = None,
    reason: str = "",
) -> WorkItem:
    """Mark the item as waiting; the owner of the dependency holds the next move."""
    if not next_move_owner_id:
        problem = "a waiting work item needs a next-move owner"
        raise Refused(BadRequest(problem=problem, field="nextMoveOwnerId"))
    return move_record(
        WORK_ITEM,
        item,
        WorkMove.WAIT,
        now,
        seen=seen,
        waiting_on=on,
        next_move_owner_id=next_move_owner_id,
        reason=reason,
    )


def resume_work(item: WorkItem, now: Time, *, seen: int | None = None) -> WorkItem:
    """Resume the item: its dependency is resolved."""
    return move_record(WORK_ITEM, item, WorkMove.RESUME, now, seen=seen, **_return_to_owner(item))


def submit_work(
    item: WorkItem, now: Time, *, seen: int | None = None, reviewer_id: str | None = None, summary: str = ""
) -> WorkItem:
    """Submit for review; the reviewer (default: the requester) holds the next move."""
    reviewer = reviewer_id or item.reviewer_id or item.requester_id
    return move_record(
        WORK_ITEM,
        item,
        WorkMove.SUBMIT,
        now,
        seen=seen,
        reviewer_id=reviewer,
        next_move_owner_id=reviewer,
        acceptance=_choose_acceptance(item, Acceptance.PENDING),
        progress=msgspec.structs.replace(item.progress, summary=summary or item.progress.summary),
    )


def accept_work(item: WorkItem, now: Time, *, seen: int | None = None) -> WorkItem:
    """Accept the result; the item is settled."""
    acceptance = _choose_acceptance(item, Acceptance.ACCEPTED)
    return move_record(
        WORK_ITEM, item, WorkMove.ACCEPT, now, seen=seen, acceptance=acceptance, **_set_settled("", now)
    )


def reopen_work(item: WorkItem, reason: str, now: Time, *, seen: int | None = None) -> WorkItem:
    """Reopen the item because the result is not, or no longer, sufficient; the owner resumes work."""
    again = {**_return_to_owner(item), "reason": reason}
    return move_record(
        WORK_ITEM,
        item,
        WorkMove.REOPEN,
        now,
        seen=seen,
        acceptance=Acceptance.REOPENED,
        settled_at=None,
        **again,
    )


def hand_over_work(
    item: WorkItem, owner_id: str, now: Time, *, seen: int | None = None, reason: str = ""
) -> WorkItem:
    """Change the owner; the next move follows only if the old owner held it."""
    if not owner_id:
        raise Refused(BadRequest(problem="handing over needs the new owner", field="ownerId"))
    held = item.next_move_owner_id == item.owner_id
    holder = owner_id if held else item.next_move_owner_id
    return move_record(
        WORK_ITEM,
        item,
        WorkMove.HAND_OVER,
        now,
        seen=seen,
        owner_id=owner_id,
        next_move_owner_id=holder,
        reason=reason,
    )


def cancel_work(item: WorkItem, reason: str, now: Time, *, seen: int | None = None) -> WorkItem:
    """Cancel the item permanently."""
    return move_record(WORK_ITEM, item, WorkMove.CANCEL, now, seen=seen, **_set_settled(reason, now))


def give_next_move(item: WorkItem, holder_id: str, reason: str, now: Time) -> WorkItem:
    """Give the next move to another holder in the same state, when the current one cannot act."""
    if not holder_id or item.state in WORK_ITEM.settled:
        problem = "an open work item needs a next-move owner"
        raise Refused(BadRequest(problem=problem, field="nextMoveOwnerId"))
    return change_record("work item", item, now, next_move_owner_id=holder_id, reason=reason)


def relate_work(item: WorkItem, kind: RelationKind, other_id: str, now: Time) -> WorkItem:
    """Add a relation to another item; adding the same one again changes nothing."""
    if other_id == item.id:
        raise Refused(BadRequest(problem="a work item cannot be related to itself", field="workItemId"))
    relation = Relation(kind=kind, work_item_id=other_id)
    if relation in item.relations:
        return item
    return change_record("work item", item, now, relations=(*item.relations, relation))


def update_work(item: WorkItem, now: Time, *, seen: int | None = None, **changes: Any) -> WorkItem:
    """Edit the title, description, priority, labels, reviewer, conversation or due time."""
    for name in sorted(changes.keys() - _EDITABLE):
        problem = f"a work item's {name} changes by a move; editable: {', '.join(sorted(_EDITABLE))}"
        raise Refused(BadRequest(problem=problem, field=name))
    if not changes.get("title", item.title).strip():
        raise Refused(BadRequest(problem="a work item needs a title", field="title"))
    held = item.state is WorkState.REVIEW and item.next_move_owner_id == item.reviewer_id
    if held and "reviewer_id" in changes:
        changes["next_move_owner_id"] = changes["reviewer_id"] or item.requester_id
    return change_record("work item", item, now, seen=seen, **changes)


def _choose_acceptance(item: WorkItem, reached: Acceptance) -> Acceptance:
    return Acceptance.NONE if item.acceptance is Acceptance.NONE else reached


def _return_to_owner(item: WorkItem) -> dict[str, Any]:
    return {"waiting_on": None, "next_move_owner_id": item.owner_id, "reason": ""}


def _set_settled(reason: str, now: Time) -> dict[str, Any]:
    return {"waiting_on": None, "next_move_owner_id": None, "reason": reason, "settled_at": now}


def _check_progress(progress: Progress) -> Progress:
    total = progress.total
    steps = progress.done >= 0 and (total is None or progress.done <= total)
    if not steps or not 0 <= (progress.percent or 0) <= 100:
        problem = "progress is 0 to total steps and 0 to 100 percent"
        raise Refused(BadRequest(problem=problem, field="progress"))
    if progress.percent is not None or not total:
        return progress
    return msgspec.structs.replace(progress, percent=round(100 * progress.done / total, 1))


# -- an item and its flight, in one transaction ------------------------------------------------------

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
