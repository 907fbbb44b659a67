"""A change of who owes what: stored, and told to the one who holds the next move now."""

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from scout.broker.routing import attention_items, posts, wake
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Lifecycle
from scout.model.conversation import Conversation, Member, Message, MessageKind
from scout.model.delivery import Delivery
from scout.model.events.envelope import Event, Metadata
from scout.model.events.talk import WorkItemUpdated
from scout.model.flight import Flight
from scout.model.question import Question
from scout.model.work_item import WORK_ITEM, WorkItem, WorkMove, WorkState, resume_work
from scout.policy.obligation import Party, obligation_of
from scout.policy.wake import Cause, Occasion, WakeDecision

T = TypeVar("T", Question, WorkItem)
_LINKS = {MessageKind.QUESTION: "message_id", MessageKind.ANSWER: "answer_message_id"}
_MANY = 1000


class Noticed(NamedTuple, Generic[T]):
    """The record as it is now, and what was said to whom; nothing when nobody else owes anything."""

    record: T
    decision: WakeDecision | None = None
    message: Message | None = None
    delivery: Delivery | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        return (self.decision.reason,) if self.decision and self.decision.reason else ()


def record_and_wake(
    tx: Transaction,
    kind: type[Event],
    record: T,
    *,
    move: str,
    cause: Cause,
    text: str,
    reason: str = "",
    message_kind: MessageKind = MessageKind.CHAT,
    sender: str | None = None,
    target: Party | None = None,
    flight: Flight | None = None,
) -> Noticed[T]:
    """Store that a record is now like this, then tell the one holder of its next move, in `text`.

    `target` is told first, where that is another; `flight`: it goes on with what is told. The decision
    stands beside the delivery, or beside the fact itself when nobody is told. Who is meant and cannot be
    woken finds the message in its inbox all the same.
    """
    record, by = _kept(tx, record), sender or tx.sender
    meant = target.agent_id if target else record.next_move_owner_id
    place = _place(tx, record, by, meant)
    occasion = Occasion(
        cause=cause,
        sender=Party(agent_id=by, session_id=tx.actor.session_id if by == tx.actor.agent_id else None),
        kind=message_kind,
        targets=(target,) if target else (),
        duty=obligation_of(record),
        place=wake.wake_context(tx, place) if place else None,
    )
    decision = wake.decide_who_is_woken(tx, occasion)
    holder = decision.holder
    heard = holder.agent_id if holder else _other(tx, meant, by)
    place = place if heard in (None, meant) else _place(tx, record, by, heard)
    said = tx.mint("msg") if place is not None and (heard or isinstance(record, Question)) else None
    record = _linked(record, message_kind, place, said)
    beside = Metadata() if holder else Metadata(wake=decision.stored)
    tx.record(kind, record, move=move, reason=reason, metadata=beside, source=sender)
    _follow(tx, record, sender)
    if said is None or place is None:
        return Noticed(record, decision)
    words = _Words(said, text, message_kind, by, heard)
    message = _said(tx, record, place, words, flight)
    delivery = wake.deliver_message(tx, message, heard, decision) if heard else None
    return Noticed(record, decision, message, delivery)


def record_and_notify(
    tx: Transaction,
    kind: type[Event],
    record: T,
    *,
    move: str,
    reason: str = "",
    sender: str | None = None,
    to: str | None = None,
    text: str = "",
    message_kind: MessageKind = MessageKind.STATUS,
    awaited: bool = False,
) -> Noticed[T]:
    """Store that a record is now like this; nobody is woken. `to` finds `text` in its inbox.

    `awaited`: it waits for exactly this and sees it now, so that it is said and not delivered.
    """
    record, by = _kept(tx, record), sender or tx.sender
    heard = _other(tx, to, by)
    place = _place(tx, record, by, heard) if heard else None
    said = tx.mint("msg") if place is not None else None
    record = _linked(record, message_kind, place, said)
    tx.record(kind, record, move=move, reason=reason, source=sender)
    _follow(tx, record, sender)
    if said is None or place is None or heard is None:
        return Noticed(record)
    message = _said(tx, record, place, _Words(said, text, message_kind, by, heard))
    if awaited:
        return Noticed(record, None, message)
    why = f"{obligation_of(record).noun} {record.id}: {move}"
    return Noticed(record, None, message, posts.deliver(tx, message, heard, rule="notice", reason=why))


# -- who is there ------------------------------------------------------------------------------------


def first_in_service(tx: Transaction, *agents: str | None) -> str | None:
    """The first of these who is not retired, if any."""
    found = [tx.agent(one) for one in agents]
    return next((one.id for one in found if one is not None and one.lifecycle is not Lifecycle.RETIRED), None)


def _other(tx: Transaction, agent_id: str | None, sender: str) -> str | None:
    """The same, where that is somebody else than who speaks, and there to hear it."""
    return first_in_service(tx, agent_id) if agent_id != sender else None


def _kept(tx: Transaction, record: T) -> T:
    """The same record; an unsettled work item never rests with somebody who is out of service."""
    if isinstance(record, Question) or record.state in WORK_ITEM.settled:
        return record
    owner, holder = keepers(tx, record)
    in_review = record.state is WorkState.REVIEW
    reviewer = first_in_service(tx, record.reviewer_id) or (holder if in_review else record.reviewer_id)
    kept = (record.owner_id, record.next_move_owner_id, record.reviewer_id)
    if kept == (owner, holder, reviewer):
        return record
    return replace(record, owner_id=owner, next_move_owner_id=holder, reviewer_id=reviewer)


def keepers(tx: Transaction, item: WorkItem) -> tuple[str, str]:
    """Its owner and the holder of its next move, each still in service, or who comes after them.

    A requester takes back what nobody does, the operator what nobody wants; no owner reviews its own work.
    """
    operator = tx.services.operator_agent
    owner = first_in_service(tx, item.owner_id, item.requester_id) or operator
    others = () if item.state is WorkState.REVIEW else (owner,)
    holder = first_in_service(tx, item.next_move_owner_id, *others, item.requester_id) or operator
    return owner, holder


def _follow(tx: Transaction, record: Question | WorkItem, sender: str | None) -> None:
    """What follows of a change: the person's inbox, and the items that waited for this one."""
    attention_items.sync_item(tx, record)
    if not isinstance(record, WorkItem) or record.state not in WORK_ITEM.settled:
        return
    for waiting in items_waiting_for(tx, record.id):
        reason = f"{record.id} is {record.state}"
        record_and_wake(
            tx,
            WorkItemUpdated,
            resume_work(waiting, tx.now),
            move=WorkMove.RESUME,
            cause=Cause.MOVE,
            text=f"{reason} ({record.title}): go on with {waiting.id} ({waiting.title})",
            reason=reason,
            sender=sender,
        )


def items_waiting_for(tx: Transaction, work_item_id: str) -> Iterator[WorkItem]:
    """The items that wait for one."""
    last = ""
    while some := tx.ledger.many(WorkItem, "work_awaiting", item=work_item_id, after=last, limit=_MANY):
        yield from some
        last = some[-1].id


# -- where and how -----------------------------------------------------------------------------------


def _place(
    tx: Transaction, record: Question | WorkItem, sender: str, other: str | None
) -> Conversation | None:
    """The record's own conversation, where both take part in it; else the direct one of the two."""
    own = tx.conversation(record.conversation_id) if record.conversation_id else None
    both = tuple(dict.fromkeys((sender, other or sender)))
    if own is not None and all(_takes_part(tx, own, one) for one in both):
        return own
    return posts.direct_conversation(tx, sender, other) if other and other != sender else None


def _takes_part(tx: Transaction, conversation: Conversation, agent_id: str) -> bool:
    found = tx.ledger.one(Member, "membership", conversation=conversation.id, agent=agent_id)
    return found is not None and found.left_at is None


def _linked(record: T, kind: MessageKind, place: Conversation | None, message_id: str | None) -> T:
    """A question knows the messages by which it was asked and answered, and where it was asked."""
    link = _LINKS.get(kind)
    if not isinstance(record, Question) or link is None or place is None or message_id is None:
        return record
    where = place.id if kind is MessageKind.QUESTION else record.conversation_id
    return replace(record, conversation_id=where, **{link: message_id})


class _Words(NamedTuple):
    """What is said, by whom and for whom."""

    message_id: str
    text: str
    kind: MessageKind
    sender: str
    heard: str | None


def _said(
    tx: Transaction,
    record: Question | WorkItem,
    place: Conversation,
    words: _Words,
    flight: Flight | None = None,
) -> Message:
    asked = None
    if isinstance(record, Question) and words.kind is not MessageKind.QUESTION:
        asked = record.message_id if record.conversation_id == place.id else None
    return posts.post(
        tx,
        place.id,
        words.text,
        sender=words.sender,
        kind=words.kind,
        message_id=words.message_id,
        ask_id=flight.ask_id if flight else None,
        flight_id=flight.id if flight else None,
        work_item_id=record.id if isinstance(record, WorkItem) else record.work_item_id,
        metadata=Metadata(target_agents=(words.heard,) if words.heard else (), in_reply_to=asked),
    )
