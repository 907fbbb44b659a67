"""Reminders to the holder of an overdue move: in the log, then as a message or an inbox item."""

from collections.abc import Sequence
from typing import Any

from scout.base.refusal import PLACEHOLDER, Remedy
from scout.base.time import Time
from scout.broker.routing import attention_items, posts, wake
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent, Lifecycle
from scout.model.ask import Ask
from scout.model.conversation import Message, derive_dm_id, derive_thread_id
from scout.model.delivery import Delivery, DeliveryState
from scout.model.events.asks import AskCreated, SweepNudged, SweepSettled, Unwatched
from scout.model.events.envelope import Event, Metadata
from scout.model.events.talk import MessagePosted, QuestionCreated, WorkItemEvent
from scout.model.flight import Flight
from scout.model.question import Question, QuestionState
from scout.model.ref import Ref
from scout.model.work_item import WorkItem, WorkState
from scout.policy.directory import Party
from scout.policy.sweep_actions import Delegation, Level, Round, SweepNudge, SweepSubject
from scout.policy.wake import Cause, Occasion, Role
from scout.protocol.operations import build_command_line
from scout.store.ledger import Ledger

_SOME = 20

Owing = Question | WorkItem | Flight | Message


_WORK_MOVES = {
    WorkState.OPEN: "work.start",
    WorkState.WORKING: "work.progress",
    WorkState.WAITING: "work.resume",
    WorkState.REVIEW: "work.accept",
}
_WHO = "/system/sweeper"  # cannot be a user's name
_MANY = 10_000
_MENTIONS = frozenset({Role.MENTION, Role.SOFT_MENTION})
_NOT_THERE = (DeliveryState.DEAD_LETTERED, DeliveryState.CANCELLED)


def read_reminders(tx: Transaction, ident: str) -> dict[str, Any]:
    """Return the reminders about a record so far."""
    found = tx.ledger.rows("sweep_of", id=ident)
    if not found or not found[0][0]:
        return {}
    nudges, *moments = found[0]
    nudged_at, next_at = (None if one is None else Time(one) for one in moments)
    return {"nudges": nudges, "nudged_at": nudged_at, "next_at": next_at}


def build_sweep_subject(tx: Transaction, record: Any) -> SweepSubject | None:
    """Return a record with its reminders so far."""
    if record is None:
        return None
    return SweepSubject(record=record, title=get_record_title(tx, record), **read_reminders(tx, record.id))


def record_reminder(tx: Transaction, record: Owing, nudge: SweepNudge) -> None:
    """Record a reminder and notify its holder; a person gets an inbox item, and nothing is started."""
    holder = tx.agent(nudge.holder_id)
    if holder is None or holder.is_person:
        tx.append(SweepNudged, nudge.id, nudge.stored)
        user = holder.owner if holder is not None else None
        attention_items.open_alarm(tx, nudge.alarm, user or tx.services.operator, nudge.escalated_from)
    else:
        _send_reminder(tx, record, nudge, holder)


def _send_reminder(tx: Transaction, record: Owing, nudge: SweepNudge, holder: Agent) -> None:
    place = posts.ensure_direct_conversation(tx, tx.sender, holder.id)
    occasion = Occasion(
        cause=Cause.NUDGE,
        sender=Party(agent_id=tx.sender),
        targets=(Party(agent_id=holder.id),),
        place=wake.build_wake_context(tx, place),
    )
    decision = wake.decide_who_is_woken(tx, occasion)
    beside = Metadata() if decision.holder else Metadata(wake=decision.stored)
    tx.append(SweepNudged, nudge.id, nudge.stored, beside)
    if holder.lifecycle is Lifecycle.RETIRED:
        return  # the next step of the escalation is notified
    message = posts.post_message(
        tx,
        place.id,
        _build_text(tx, record, nudge),
        work_item_id=_get_work_id(record),
        metadata=Metadata(target_agents=(holder.id,)),
    )
    wake.deliver_message(tx, message, holder.id, decision)


def _get_work_id(record: Owing) -> str | None:
    return record.id if isinstance(record, WorkItem) else record.work_item_id


# -- texts -------------------------------------------------------------------------------------------


def _build_text(tx: Transaction, record: Owing, nudge: SweepNudge) -> str:
    """Return the text of a reminder: the subject, since when, and commands to paste."""
    if nudge.level is Level.HOLDER:
        yours = "The next move is yours."
    else:
        yours = f"{tx.address(nudge.escalated_from)} was reminded and has not moved."
    why = Remedy(operation="why", parameters={"id": nudge.id})
    tries = [f"try: {build_command_line(one)}" for one in (_choose_remedy(tx, record, nudge.level), why)]
    about = f"{nudge.rule}: {get_record_title(tx, record)}"
    return "\n".join([about, f"{nudge.alarm.body}. {yours}", *tries])


def get_record_title(tx: Transaction, record: Any) -> str:
    """Return what a record is about in one line: its title, or the text that was asked."""
    match record:
        case WorkItem():
            return attention_items.shorten_title(record.title)
        case Flight():
            ask = tx.get(Ask, record.ask_id)
            message = tx.get(Message, ask.message_id) if ask is not None else None
            return attention_items.shorten_title(message.body if message is not None else record.reason)
        case Question() | Message():
            return attention_items.shorten_title(record.body)
        case _:
            return ""


def _choose_remedy(tx: Transaction, record: Owing, level: Level) -> Remedy:
    """Return the remedy for the reminded agent: make the move, or ask its holder to make it."""
    holds = level is Level.HOLDER
    match record:
        case Question():
            return (
                _suggest_answer(record)
                if holds and record.state is QuestionState.OPEN
                else _suggest_close(record)
            )
        case WorkItem():
            return _suggest_work_move(record) if holds else _suggest_hand_over(record)
        case Flight():
            return _suggest_message(tx, record) if holds else _suggest_look(record)
        case Message():
            return _suggest_reply(record) if holds else _suggest_ask(tx, record)


def _suggest_answer(question: Question) -> Remedy:
    return Remedy(operation="question.answer", parameters={"questionId": question.id, "answer": PLACEHOLDER})


def _suggest_close(question: Question) -> Remedy:
    """Return the remedy of an asker: close the question."""
    return Remedy(operation="question.close", parameters={"questionId": question.id})


def _suggest_work_move(item: WorkItem) -> Remedy:
    words = {"summary": PLACEHOLDER} if item.state is WorkState.WORKING else {}
    return Remedy(operation=_WORK_MOVES[item.state], parameters={"workItemId": item.id, **words})


def _suggest_hand_over(item: WorkItem) -> Remedy:
    return Remedy(operation="work.hand-over", parameters={"workItemId": item.id, "to": PLACEHOLDER})


def _suggest_message(tx: Transaction, flight: Flight) -> Remedy:
    """Return the remedy of a flight's requester: message the target."""
    return Remedy(operation="send", parameters={"to": tx.address(flight.target), "body": PLACEHOLDER})


def _suggest_look(flight: Flight) -> Remedy:
    return Remedy(operation="flight.get", parameters={"flightId": flight.id})


def _suggest_reply(message: Message) -> Remedy:
    return Remedy(operation="reply", parameters={"inReplyTo": message.id, "body": PLACEHOLDER})


def _suggest_ask(tx: Transaction, message: Message) -> Remedy:
    """Return the remedy of a sender: ask the target again, as a tracked ask."""
    deliveries = tx.ledger.many(Delivery, "deliveries_of_message", message=message.id, limit=_SOME)
    target = next((one.target for one in deliveries if one.delegates), message.sender)
    return Remedy(operation="ask", parameters={"to": tx.address(target), "body": message.body})


# -- the mark of checked delegations -----------------------------------------------------------------


def start_watching(ledger: Ledger, now: Time) -> None:
    """Set the mark at the first start, so that nothing earlier causes a reminder."""
    if ledger.read_last_look(_WHO) is None:
        move_mark(ledger, now)


def move_mark(ledger: Ledger, until: Time) -> None:
    """Record that every delegation up to `until` was answered or reminded of."""
    ledger.mark_look(_WHO, until)


def move_back_mark(ledger: Ledger, now: Time) -> None:
    """Move the mark back after the clock was set back."""
    ledger.move_back_look(_WHO, now)


def find_overdue_delegations(ledger: Ledger, this: Round, limit: int) -> list[Delivery]:
    """Return delegations that became overdue since the mark, oldest first; none in a grace period."""
    after = ledger.read_last_look(_WHO) or this.now
    before = this.now.plus(-this.periods.sweeps.delegation)
    wanted = {"after": int(after), "before": int(before), "limit": limit}
    return [
        one
        for one in ledger.many(Delivery, "deliveries_delegating", **wanted)
        if this.is_past(one.created_at.plus(this.periods.sweeps.delegation))
    ]


def get_mark(overdue: Sequence[Delivery], limit: int) -> Time | None:
    """Return the time up to which these are complete; a full page may lack some of its last moment."""
    if not overdue:
        return None
    last = overdue[-1].created_at
    return last if len(overdue) < limit else Time(last - 1)


# -- answered delegations --------------------------------------------------------------------------


def find_delegation(tx: Transaction, message: Message) -> SweepSubject | None:
    """Return the delegation in a message; None once it is settled, recorded if it was reminded of."""
    deliveries = tx.ledger.many(Delivery, "deliveries_of_message", message=message.id, limit=_MANY)
    delivery = next(one for one in deliveries if one.delegates)
    settled = _find_settlement(tx, message, delivery)
    known = read_reminders(tx, message.id)
    if settled:
        if known:
            over = Unwatched(about=Ref.to(message.id), reason=settled)
            tx.append(SweepSettled, message.id, over)
        return None
    one = Delegation(
        id=message.id,
        target_id=delivery.target,
        sender_id=delivery.sender,
        created_at=delivery.created_at,
        kind="mention" if delivery.rule in _MENTIONS else "delegation",
    )
    return SweepSubject(record=one, title=get_record_title(tx, message), **known)


def _find_settlement(tx: Transaction, message: Message, delivery: Delivery) -> str:
    """Return why no reminder is needed; empty while the delegation is unanswered."""
    if message.redacted_at is not None:
        return "the message was redacted"
    if delivery.state in _NOT_THERE:
        return "it was not delivered, and its sender knows"
    places = {
        message.conversation_id,
        derive_thread_id(message.id),
        derive_dm_id(delivery.target, delivery.sender),
    }
    since = tx.ledger.log.list_deeds(delivery.target, message.seq, _MANY)
    return next((said for event in since if (said := _describe_response(event, delivery, places))), "")


def _describe_response(event: Event, delivery: Delivery, places: set[str]) -> str:
    """Return how the target's event takes up the delegation: a reply, an ask, a work item; else empty."""
    match event:
        case MessagePosted() if event.target.id in places:
            return "it was answered"
        case AskCreated() | QuestionCreated():
            return "its target asked another agent"
        case WorkItemEvent():
            item = event.payload.record
            mine = delivery.sender in (item.requester_id, item.owner_id) or item.conversation_id in places
            return "there is work on it" if mine else ""
        case _:
            return ""
