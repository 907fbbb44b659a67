"""Obligations in a record: its owner, its next-move owner, and the session concerned."""

from scout.base.record import Record
from scout.model.flight import FLIGHT, Flight, FlightState
from scout.model.question import QUESTION, Question
from scout.model.work_item import WORK_ITEM, WorkItem, WorkState


class Obligation(Record, omit_defaults=True):
    """The owner and next-move owner of a question, work item or flight."""

    noun: str
    id: str
    state: str
    settled: bool = False
    waiting: bool = False
    owner_id: str | None = None
    next_move_owner_id: str | None = None


def read_obligation(record: Question | WorkItem | Flight) -> Obligation:
    """Return the obligation in a record. The asker owns a question, the requester owns a flight."""
    if isinstance(record, Question):
        noun, owner, settled = "question", record.asker_id, record.state in QUESTION.settled
    elif isinstance(record, WorkItem):
        noun, owner, settled = "work item", record.owner_id, record.state in WORK_ITEM.settled
    else:
        noun, owner, settled = "flight", record.requester_id, record.state in FLIGHT.settled
    return Obligation(
        noun=noun,
        id=record.id,
        state=record.state,
        settled=settled,
        waiting=record.state in (WorkState.WAITING, FlightState.WAITING),
        owner_id=owner,
        next_move_owner_id=record.next_move_owner_id,
    )
