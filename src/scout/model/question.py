"""Questions: requests for information. A question needs no work item and carries no progress."""

from enum import StrEnum

import msgspec
from msgspec import UNSET

from scout.base.machine import Machine, Mutable, move_record
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.imported import Origin
from scout.model.waiting import OwedMove
from scout.model.work_item import WorkItem, create_work


class QuestionState(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    CLOSED = "closed"
    DECLINED = "declined"


class QuestionMove(StrEnum):
    ANSWER = "answer"
    DECLINE = "decline"
    CLOSE = "close"
    REOPEN = "reopen"


QUESTION = Machine(
    "question",
    QuestionState.OPEN,
    {
        QuestionState.OPEN: {
            QuestionMove.ANSWER: QuestionState.ANSWERED,
            QuestionMove.DECLINE: QuestionState.DECLINED,
            QuestionMove.CLOSE: QuestionState.CLOSED,
        },
        QuestionState.ANSWERED: {
            QuestionMove.CLOSE: QuestionState.CLOSED,
            QuestionMove.REOPEN: QuestionState.OPEN,
        },
        QuestionState.DECLINED: {
            QuestionMove.CLOSE: QuestionState.CLOSED,
            QuestionMove.REOPEN: QuestionState.OPEN,
        },
        QuestionState.CLOSED: {QuestionMove.REOPEN: QuestionState.OPEN},
    },
    # The asker still has to read an answer; a declined question needs no further move.
    settled=frozenset({QuestionState.CLOSED, QuestionState.DECLINED}),
)


class SpawnWork(Record):
    """The work item that an answer creates."""

    title: str
    owner_id: str


# The settings that define when a move is overdue.
QUESTION_PERIODS = {QuestionState.OPEN: "question_open", QuestionState.ANSWERED: "question_answered"}


class Question(Mutable):
    """One question. While open, the responder holds the next move; once answered, the asker does."""

    asker_id: str
    responder_id: str
    next_move_owner_id: str | None
    body: str
    options: tuple[str, ...] = ()
    state: QuestionState = QuestionState.OPEN
    answer: str | None = None
    reason: str = ""
    conversation_id: str | None = None
    message_id: str | None = None
    answer_message_id: str | None = None
    ask_id: str | None = None
    flight_id: str | None = None
    work_item_id: str | None = None
    imported_from: Origin = UNSET

    @property
    def owed_move(self) -> OwedMove | None:
        """The answer that the responder owes, or the close that the asker owes."""
        period = QUESTION_PERIODS.get(self.state)
        return OwedMove(period, self.updated_at) if period else None


def create_question(
    question_id: str,
    body: str,
    now: Time,
    *,
    asker_id: str,
    responder_id: str,
    options: tuple[str, ...] = (),
    conversation_id: str | None = None,
    flight_id: str | None = None,
    work_item_id: str | None = None,
) -> Question:
    """Return a new question; the responder holds the next move."""
    if not (body.strip() and asker_id and responder_id):
        raise Refused(BadRequest(problem="a question needs a text, an asker and a responder"))
    return Question(
        id=question_id,
        asker_id=asker_id,
        responder_id=responder_id,
        next_move_owner_id=responder_id,
        body=body,
        options=options,
        conversation_id=conversation_id,
        flight_id=flight_id,
        work_item_id=work_item_id,
        created_at=now,
        updated_at=now,
    )


def answer_question(
    question: Question, answer: str, now: Time, *, seen: int | None = None, message_id: str | None = None
) -> Question:
    """Record the first answer; the asker then holds the next move."""
    QUESTION.after(question.state, QuestionMove.ANSWER)
    if not answer.strip():
        raise Refused(BadRequest(problem="an answer needs a text; to say no, decline", field="answer"))
    return move_record(
        QUESTION,
        question,
        QuestionMove.ANSWER,
        now,
        seen=seen,
        answer=answer,
        answer_message_id=message_id,
        next_move_owner_id=question.asker_id,
    )


def answer_with_work(
    question: Question, answer: str, spawn: SpawnWork, work_id: str, now: Time, *, seen: int | None = None
) -> tuple[Question, WorkItem]:
    """Return the answered question and the work item it creates, linked to each other."""
    answered = answer_question(question, answer, now, seen=seen)
    item = create_work(
        work_id,
        spawn.title,
        now,
        requester_id=question.asker_id,
        owner_id=spawn.owner_id,
        question_id=question.id,
        conversation_id=question.conversation_id,
    )
    return msgspec.structs.replace(answered, work_item_id=item.id), item


def decline_question(question: Question, reason: str, now: Time, *, seen: int | None = None) -> Question:
    """Decline the question with a reason."""
    return move_record(
        QUESTION, question, QuestionMove.DECLINE, now, seen=seen, reason=reason, next_move_owner_id=None
    )


def close_question(question: Question, now: Time, *, seen: int | None = None, reason: str = "") -> Question:
    """Close a question that is no longer needed."""
    return move_record(
        QUESTION, question, QuestionMove.CLOSE, now, seen=seen, reason=reason, next_move_owner_id=None
    )


def reopen_question(
    question: Question,
    now: Time,
    *,
    seen: int | None = None,
    responder_id: str | None = None,
    reason: str = "",
) -> Question:
    """Ask the same responder or another one again; the previous answer stays in the log."""
    responder = responder_id or question.responder_id
    return move_record(
        QUESTION,
        question,
        QuestionMove.REOPEN,
        now,
        seen=seen,
        responder_id=responder,
        next_move_owner_id=responder,
        answer=None,
        answer_message_id=None,
        reason=reason,
    )
