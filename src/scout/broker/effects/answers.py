"""The end of a question: answered, declined or closed. The flight that waits for it resumes."""

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
from scout.policy.directory import Party
from scout.policy.wake import Cause


def find_answered_question(tx: Transaction, message: Message, agent_id: str) -> Question | None:
    """Return the open question that a message put to an agent; a reply to the message answers it."""
    if message.kind is not MessageKind.QUESTION:
        return None
    found = tx.ledger.one(Question, "question_of_message", message=message.id)
    is_its = found is not None and found.responder_id == agent_id and found.state is QuestionState.OPEN
    return found if is_its else None


def record_answer(
    tx: Transaction,
    question: Question,
    text: str,
    *,
    seen: int | None = None,
    spawn: SpawnWork | None = None,
    sender: str | None = None,
) -> Noticed[Question]:
    """Record the first answer, notify the asker, and create work that comes with it."""
    text = check_body(text)
    if spawn is None:
        return _notify_asker(tx, answer_question(question, text, tx.now, seen=seen), text, sender=sender)
    work_id = tx.mint("wrk")
    answered, item = answer_with_work(question, text, spawn, work_id, tx.now, seen=seen)
    text = f"{text}\n\nwork item {item.id}, of {tx.address(item.owner_id)}: {item.title}"
    told = _notify_asker(tx, answered, text, sender=sender)
    _create_work(tx, question, replace(item, conversation_id=told.record.conversation_id))
    return told


def _create_work(tx: Transaction, question: Question, item: WorkItem) -> None:
    """Create the work item of an answer; an asker who owns it is notified by the answer itself."""
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


def record_decline(
    tx: Transaction, question: Question, reason: str, *, seen: int | None = None
) -> Noticed[Question]:
    """Decline a question and notify the asker of the reason."""
    declined = decline_question(question, reason, tx.now, seen=seen)
    who = tx.address(question.responder_id)
    text = f"{who} declined: {reason or 'no reason given'}\nthe question was: {question.body}"
    return _notify_asker(tx, declined, text)


def _notify_asker(
    tx: Transaction, question: Question, text: str, *, sender: str | None = None
) -> Noticed[Question]:
    """Notify the asker in the session that asked; an asker that waits sees it now."""
    answered = question.state is QuestionState.ANSWERED
    step = QuestionMove.ANSWER if answered else QuestionMove.DECLINE
    said = MessageKind.ANSWER if answered else MessageKind.CHAT
    kind, asker, reason = QUESTION_EVENTS[step], question.asker_id, "" if answered else question.reason
    flight = resume_waiting_flight(tx, question)
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


def record_close(
    tx: Transaction, question: Question, reason: str, *, seen: int | None = None
) -> Noticed[Question]:
    """Close a question that needs no answer, and notify the responder's inbox."""
    closed = close_question(question, tx.now, seen=seen, reason=reason)
    resume_waiting_flight(tx, question)
    owes = question.responder_id if question.state is QuestionState.OPEN else None
    text = f"no answer is needed: {question.body}"
    step = QuestionMove.CLOSE
    return notices.record_and_notify(
        tx, QUESTION_EVENTS[step], closed, move=step, reason=reason, to=owes, text=text
    )


def resume_waiting_flight(tx: Transaction, question: Question) -> Flight | None:
    """Resume the flight that waited for the question, and return it."""
    flight = tx.get(Flight, question.flight_id)
    on = flight.waiting_on if flight is not None and flight.is_asking else None
    if flight is None or on is None or on.ref != question.id:
        return None
    step, resumed = FlightMove.RESUME, resume_flight(flight, tx.now)
    return tx.record(FLIGHT_EVENTS[step], resumed, move=step, reason=resumed.reason)
