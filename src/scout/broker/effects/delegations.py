"""Plain messages that somebody was to act on: which ones are overdue, and what counts as an answer."""

from collections.abc import Sequence

from scout.base.time import Time
from scout.broker.effects import reminders
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Message, dm_id, thread_id
from scout.model.delivery import Delivery, DeliveryState
from scout.model.events.asks import AskCreated, SweepSettled, Unwatched
from scout.model.events.envelope import Event
from scout.model.events.talk import MessagePosted, QuestionCreated, WorkItemEvent
from scout.model.ref import Ref
from scout.policy.sweep_actions import Delegation, Round, SweepSubject
from scout.policy.wake import Role
from scout.store import receipts
from scout.store.ledger import Ledger

_WHO = "/system/sweeper"  # no user is called like that
_MANY = 10_000
_MENTIONS = frozenset({Role.MENTION, Role.SOFT_MENTION})
_NOT_THERE = (DeliveryState.DEAD_LETTERED, DeliveryState.CANCELLED)


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
    known = reminders.reminders(tx, message.id)
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
    return SweepSubject(record=one, title=reminders.title_of_record(tx, message), **known)


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
