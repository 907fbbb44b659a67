"""What becomes of a question: answered, declined or put away. The flight that waits for it goes on."""

from msgspec.structs import replace

from scout.broker.effects import notices
from scout.broker.effects.notices import Noticed
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Message, MessageKind, check_body
from scout.model.events.asks import FLIGHT_EVENTS
from scout.model.events.talk import QUESTION_EVENTS, WorkItemCreated, WorkItemUpdated
from scout.model.flight import Flight, FlightMove, resume_flight
from scout.model.question import (
    Question,
    QuestionMove,
    QuestionState,
    SpawnWork,
    answer_question,
    answer_with_work,
    close_question,
    decline_question,
)
from scout.model.work_item import RelationKind, WorkItem, relate_work
from scout.policy.obligation import Party
from scout.policy.wake import Cause


def question_answered_by(tx: Transaction, message: Message, agent_id: str) -> Question | None:
    """The open question that a message asked of an agent: what it says to that message is the answer."""
    if message.kind is not MessageKind.QUESTION:
        return None
    found = tx.ledger.one(Question, "question_of_message", message=message.id)
    is_its = found is not None and found.responder_id == agent_id and found.state is QuestionState.OPEN
    return found if is_its else None


def answer(
    tx: Transaction,
    question: Question,
    text: str,
    *,
    seen: int | None = None,
    spawn: SpawnWork | None = None,
    sender: str | None = None,
) -> Noticed[Question]:
    """The first answer wins: the asker holds the next move and is told, work may begin with it."""
    text = check_body(text)
    if spawn is None:
        return _tell(tx, answer_question(question, text, tx.now, seen=seen), text, sender=sender)
    work_id = tx.mint("wrk")
    answered, item = answer_with_work(question, text, spawn, work_id, tx.now, seen=seen)
    text = f"{text}\n\nwork item {item.id}, of {tx.address(item.owner_id)}: {item.title}"
    told = _tell(tx, answered, text, sender=sender)
    _begin(tx, question, replace(item, conversation_id=told.record.conversation_id))
    return told


def _begin(tx: Transaction, question: Question, item: WorkItem) -> None:
    """The work that an answer began; an asker who owns it has heard of it with the answer."""
    if item.owner_id == item.requester_id:
        notices.record_and_notify(tx, WorkItemCreated, item, move="create")
    else:
        assigned = f"{item.title}\n\nwork item {item.id}, from the question {question.id}: {question.body}"
        notices.record_and_wake(
            tx, WorkItemCreated, item, move="create", cause=Cause.ASSIGNMENT, text=assigned
        )
    about = tx.get(WorkItem, question.work_item_id)
    if about is not None:
        related = relate_work(about, RelationKind.SPAWNS, item.id, tx.now)
        notices.record_and_notify(
            tx, WorkItemUpdated, related, move="relate", reason=f"question {question.id}"
        )


def decline(
    tx: Transaction, question: Question, reason: str, *, seen: int | None = None
) -> Noticed[Question]:
    """The responder will not answer: the asker is told why."""
    declined = decline_question(question, reason, tx.now, seen=seen)
    who = tx.address(question.responder_id)
    text = f"{who} declined: {reason or 'no reason given'}\nasked was: {question.body}"
    return _tell(tx, declined, text)


def _tell(tx: Transaction, question: Question, text: str, *, sender: str | None = None) -> Noticed[Question]:
    """Tell the asker, in the session that asked; one who waits for it sees it now."""
    answered = question.state is QuestionState.ANSWERED
    step = QuestionMove.ANSWER if answered else QuestionMove.DECLINE
    said = MessageKind.ANSWER if answered else MessageKind.CHAT
    kind, asker, reason = QUESTION_EVENTS[step], question.asker_id, "" if answered else question.reason
    flight = _resumed(tx, question)
    if tx.services.is_awaited(f"{question.id} {asker}"):
        return notices.record_and_notify(
            tx,
            kind,
            question,
            move=step,
            reason=reason,
            sender=sender,
            to=asker,
            text=text,
            message_kind=said,
            awaited=True,
        )
    return notices.record_and_wake(
        tx,
        kind,
        question,
        move=step,
        cause=Cause.ANSWER,
        text=text,
        reason=reason,
        message_kind=said,
        sender=sender,
        target=Party(agent_id=asker, session_id=flight.session_id if flight else None),
        flight=flight,
    )


def close(tx: Transaction, question: Question, reason: str, *, seen: int | None = None) -> Noticed[Question]:
    """Nobody needs it any more; who was to answer finds that in its inbox."""
    closed = close_question(question, tx.now, seen=seen, reason=reason)
    _resumed(tx, question)
    owes = question.responder_id if question.state is QuestionState.OPEN else None
    text = f"no answer is needed any more: {question.body}"
    step = QuestionMove.CLOSE
    return notices.record_and_notify(
        tx, QUESTION_EVENTS[step], closed, move=step, reason=reason, to=owes, text=text
    )


def _resumed(tx: Transaction, question: Question) -> Flight | None:
    """The flight that waited for the question, running again."""
    flight = tx.get(Flight, question.flight_id)
    on = flight.waiting_on if flight is not None and flight.is_asking else None
    if flight is None or on is None or on.ref != question.id:
        return None
    step, resumed = FlightMove.RESUME, resume_flight(flight, tx.now)
    return tx.record(FLIGHT_EVENTS[step], resumed, move=step, reason=resumed.reason)
