"""The dependency of a waiting flight or work item, and the next move that is owed for a record."""

from enum import StrEnum
from typing import NamedTuple

from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time


class WaitingKind(StrEnum):
    ACTOR = "actor"
    WORK_ITEM = "work_item"
    APPROVAL = "approval"
    ARTIFACT = "artifact"
    CONDITION = "condition"
    QUESTION = "question"
    OPERATOR = "operator"
    PEER = "peer"
    QUOTA = "quota"
    BUDGET = "budget"


class WaitingOn(Record):
    """The dependency: `ref` names it (an id, a path, a sentence); at `until` the wait ends automatically."""

    kind: WaitingKind
    ref: str | None = None
    until: Time | None = None


WAIT_ENDS = "wait_ends"  # the period of a wait that ends by itself: nothing is owed, it ends at its time


class OwedMove(NamedTuple):
    """Since when the next move of a record is owed, and the setting for when it is overdue."""

    period: str
    since: Time


def check_waiting(on: WaitingOn, next_move_owner_id: str | None) -> WaitingOn:
    """Return the dependency; refuse one with neither an owner nor an end time."""
    if not next_move_owner_id and on.until is None:
        problem = "waiting needs a next move owner (nextMoveOwnerId) or an end time (until)"
        raise Refused(BadRequest(problem=problem, field="nextMoveOwnerId"))
    return on
