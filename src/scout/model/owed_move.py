"""The next move that is owed for a question, a work item or a flight."""

from typing import NamedTuple

from scout.base.time import Time
from scout.model.flight import Flight
from scout.model.question import Question, QuestionState
from scout.model.waiting import WaitingOn
from scout.model.work_item import WorkItem, WorkState

_QUESTION = {QuestionState.OPEN: "question_open", QuestionState.ANSWERED: "question_answered"}
_WORK = {
    WorkState.OPEN: "work_open",
    WorkState.WORKING: "work_working",
    WorkState.WAITING: "work_waiting",
    WorkState.REVIEW: "work_review",
}
# The settings that define when a move is overdue.
PERIODS = tuple(dict.fromkeys((*_QUESTION.values(), *_WORK.values())))


class OwedMove(NamedTuple):
    """Since when the next move of a record is owed, and the setting for when it is overdue."""

    period: str
    since: Time


def find_owed_move(record: Question | WorkItem | Flight) -> OwedMove | None:
    """Return the move that is owed for a record, or None."""
    match record:
        case Question(state=state) if state in _QUESTION:
            return OwedMove(_QUESTION[state], record.updated_at)
        case WorkItem(state=state, waiting_on=on) if state in _WORK:
            until = on.until if on is not None else None
            return OwedMove(_WORK[state], max(record.updated_at, until or record.updated_at))
        case Flight(waiting_on=WaitingOn(until=None)):
            return OwedMove("work_waiting", record.updated_at)
        case _:
            return None
