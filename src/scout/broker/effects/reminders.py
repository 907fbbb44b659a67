"""Reminding one holder: in the log, and then as a message, or in the inbox of a person."""

from collections.abc import Sequence
from typing import Any

from scout.base.refusal import PLACEHOLDER, Remedy
from scout.base.time import Time
from scout.broker.routing import attention_items, posts, wake
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent, Lifecycle
from scout.model.ask import Ask
from scout.model.conversation import Message, dm_id, thread_id
from scout.model.delivery import Delivery, DeliveryState
from scout.model.events.asks import AskCreated, SweepNudged, SweepSettled, Unwatched
from scout.model.events.envelope import Event, Metadata
from scout.model.events.talk import MessagePosted, QuestionCreated, WorkItemEvent
from scout.model.flight import Flight
from scout.model.question import Question, QuestionState
from scout.model.ref import Ref
from scout.model.work_item import WorkItem, WorkState
from scout.policy.obligation import Party
from scout.policy.sweep_actions import Delegation, Level, Round, SweepNudge, SweepSubject
from scout.policy.wake import Cause, Occasion, Role
from scout.protocol.operations import command_line
from scout.store import receipts
from scout.store.ledger import Ledger

_SOME = 20

Owing = Question | WorkItem | Flight | Message


_WORK_MOVES = {
    WorkState.OPEN: "work.start",
    WorkState.WORKING: "work.progress",
    WorkState.WAITING: "work.resume",
    WorkState.REVIEW: "work.accept",
}
_WHO = "/system/sweeper"  # no user is called like that
_MANY = 10_000
_MENTIONS = frozenset({Role.MENTION, Role.SOFT_MENTION})
_NOT_THERE = (DeliveryState.DEAD_LETTERED, DeliveryState.CANCELLED)


def reminders(tx: Transaction, ident: str) -> dict[str, Any]:
    """Who was reminded of a record so far, as its row says; nothing when nobody was."""
    found = tx.ledger.rows("sweep_of", id=ident)
    if not found or not found[0][0]:
        return {}
    nudges, *moments = found[0]
    nudged_at, next_at = (None if one is None else Time(one) for one in moments)
    return {"nudges": nudges, "nudged_at": nudged_at, "next_at": next_at}


def watch(tx: Transaction, record: Any) -> SweepSubject | None:
    """A record and the reminders of it so far."""
    if record is None:
        return None
    return SweepSubject(record=record, title=title_of_record(tx, record), **reminders(tx, record.id))


def remind(tx: Transaction, record: Owing, nudge: SweepNudge) -> None:
    """Store it and tell exactly this holder; a person finds it in the inbox, and nothing is started."""
    holder = tx.agent(nudge.holder_id)
    if holder is None or attention_items.is_person(holder):
        tx.append(SweepNudged, nudge.id, nudge.stored)
        user = holder.owner if holder is not None else None
        attention_items.open_alarm(tx, nudge.alarm, user or tx.services.operator, nudge.escalated_from)
    else:
        _told(tx, record, nudge, holder)


def _told(tx: Transaction, record: Owing, nudge: SweepNudge, holder: Agent) -> None:
    place = posts.direct_conversation(tx, tx.sender, holder.id)
    occasion = Occasion(
        cause=Cause.NUDGE,
        sender=Party(agent_id=tx.sender),
        targets=(Party(agent_id=holder.id),),
        place=wake.wake_context(tx, place),
    )
    decision = wake.decide_who_is_woken(tx, occasion)
    beside = Metadata() if decision.holder else Metadata(wake=decision.stored)
    tx.append(SweepNudged, nudge.id, nudge.stored, beside)
    if holder.lifecycle is Lifecycle.RETIRED:
        return  # the next one on the ladder hears of it
    message = posts.post(
        tx,
        place.id,
        _text(tx, record, nudge),
        work_item_id=_work_item(record),
        metadata=Metadata(target_agents=(holder.id,)),
    )
    wake.deliver_message(tx, message, holder.id, decision)


def _work_item(record: Owing) -> str | None:
    return record.id if isinstance(record, WorkItem) else record.work_item_id


# -- words -------------------------------------------------------------------------------------------


def _text(tx: Transaction, record: Owing, nudge: SweepNudge) -> str:
    """What it is about, since when, and what to do next, ready to be pasted."""
    if nudge.level is Level.HOLDER:
        yours = "The next move is yours."
    else:
        yours = f"{tx.address(nudge.escalated_from)} was reminded and has not moved."
    why = Remedy(operation="why", parameters={"id": nudge.id})
    tries = [f"try: {command_line(one)}" for one in (_next(tx, record, nudge.level), why)]
    about = f"{nudge.rule}: {title_of_record(tx, record)}"
    return "\n".join([about, f"{nudge.alarm.body}. {yours}", *tries])


def title_of_record(tx: Transaction, record: Any) -> str:
    """What a record is about, in a line: its title, or the text that was asked."""
    match record:
        case WorkItem():
            return attention_items.title_of(record.title)
        case Flight():
            ask = tx.get(Ask, record.ask_id)
            message = tx.get(Message, ask.message_id) if ask is not None else None
            return attention_items.title_of(message.body if message is not None else record.reason)
        case Question() | Message():
            return attention_items.title_of(record.body)
        case _:
            return ""


def _next(tx: Transaction, record: Owing, level: Level) -> Remedy:
    """What the party that is reminded may do: make the move, or see to it that somebody does."""
    holds = level is Level.HOLDER
    match record:
        case Question():
            return _answer(record) if holds and record.state is QuestionState.OPEN else _close(record)
        case WorkItem():
            return _move_work(record) if holds else _hand_over(record)
        case Flight():
            return _push_flight(tx, record) if holds else _look(record)
        case Message():
            return _reply(record) if holds else _ask_again(tx, record)


def _answer(question: Question) -> Remedy:
    return Remedy(operation="question.answer", parameters={"questionId": question.id, "answer": PLACEHOLDER})


def _close(question: Question) -> Remedy:
    """The asker has its answer, or asks somebody else."""
    return Remedy(operation="question.close", parameters={"questionId": question.id})


def _move_work(item: WorkItem) -> Remedy:
    words = {"summary": PLACEHOLDER} if item.state is WorkState.WORKING else {}
    return Remedy(operation=_WORK_MOVES[item.state], parameters={"workItemId": item.id, **words})


def _hand_over(item: WorkItem) -> Remedy:
    return Remedy(operation="work.hand-over", parameters={"workItemId": item.id, "to": PLACEHOLDER})


def _push_flight(tx: Transaction, flight: Flight) -> Remedy:
    """Whoever a flight waits for tells its target what it waits for."""
    return Remedy(operation="send", parameters={"to": tx.address(flight.target), "body": PLACEHOLDER})


def _look(flight: Flight) -> Remedy:
    return Remedy(operation="flight.get", parameters={"flightId": flight.id})


def _reply(message: Message) -> Remedy:
    return Remedy(operation="reply", parameters={"inReplyTo": message.id, "body": PLACEHOLDER})


def _ask_again(tx: Transaction, message: Message) -> Remedy:
    """Its sender asks the one whom the message was for, tracked this time."""
    deliveries = tx.ledger.many(Delivery, "deliveries_of_message", message=message.id, limit=_SOME)
    target = next((one.target for one in deliveries if one.delegates), message.sender)
    return Remedy(operation="ask", parameters={"to": tx.address(target), "body": message.body})


# -- up to when they have been looked at -------------------------------------------------------------


def start_watching(ledger: Ledger, now: Time) -> None:
    """Nothing before the first start is anybody's to remind of."""
    if receipts.last_look(ledger.connection, _WHO) is None:
        move_mark(ledger, now)


def move_mark(ledger: Ledger, until: Time) -> None:
    """Every delegation up to then was answered, or somebody has been reminded of it."""
    receipts.mark_look(ledger.connection, _WHO, until)


def rewind_mark(ledger: Ledger, now: Time) -> None:
    """The clock was put back: what comes from here on is looked at again."""
    receipts.rewind_look(ledger.connection, _WHO, now)


def overdue_delegations(ledger: Ledger, this: Round, limit: int) -> list[Delivery]:
    """Those that have become overdue since the last look, oldest first; none during a grace period."""
    after = receipts.last_look(ledger.connection, _WHO) or this.now
    before = this.now.plus(-this.periods.sweeps.delegation)
    wanted = {"after": int(after), "before": int(before), "limit": limit}
    return [
        one
        for one in ledger.many(Delivery, "deliveries_delegating", **wanted)
        if this.is_past(one.created_at.plus(this.periods.sweeps.delegation))
    ]


def mark_of(overdue: Sequence[Delivery], limit: int) -> Time | None:
    """Up to when these are all; the last moment of a full page may have had more."""
    if not overdue:
        return None
    last = overdue[-1].created_at
    return last if len(overdue) < limit else Time(last - 1)


# -- whether somebody has answered -------------------------------------------------------------------


def watch_delegation(tx: Transaction, message: Message) -> SweepSubject | None:
    """The delegation in a message, unless it is settled by now; if somebody was reminded, that is stored."""
    deliveries = tx.ledger.many(Delivery, "deliveries_of_message", message=message.id, limit=_MANY)
    delivery = next(one for one in deliveries if one.delegates)
    settled = _settled(tx, message, delivery)
    known = reminders(tx, message.id)
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
    return SweepSubject(record=one, title=title_of_record(tx, message), **known)


def _settled(tx: Transaction, message: Message, delivery: Delivery) -> str:
    """Why nobody needs to be reminded; nothing while it is unanswered."""
    if message.redacted_at is not None:
        return "the message was taken back"
    if delivery.state in _NOT_THERE:
        return "it did not get there, and its sender knows"
    places = {message.conversation_id, thread_id(message.id), dm_id(delivery.target, delivery.sender)}
    since = tx.ledger.facts("events_from", ref=str(Ref.to(delivery.target)), after=message.seq, limit=_MANY)
    return next((said for event in since if (said := _answers(event, delivery, places))), "")


def _answers(event: Event, delivery: Delivery, places: set[str]) -> str:
    """Whether something that the target did shows that it has taken it up: a reply, an ask, a work item."""
    match event:
        case MessagePosted() if event.target.id in places:
            return "it was answered"
        case AskCreated() | QuestionCreated():
            return "its target asked on"
        case WorkItemEvent():
            item = event.payload.record
            mine = delivery.sender in (item.requester_id, item.owner_id) or item.conversation_id in places
            return "there is work on it" if mine else ""
        case _:
            return ""
