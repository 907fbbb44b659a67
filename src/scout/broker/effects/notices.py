"""Changes of obligations: recorded, and sent to the holder of the next move."""

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
from scout.policy.directory import Party
from scout.policy.obligation import read_obligation
from scout.policy.wake import Cause, Occasion, WakeDecision

T = TypeVar("T", Question, WorkItem)
_LINKS = {MessageKind.QUESTION: "message_id", MessageKind.ANSWER: "answer_message_id"}
_MANY = 1000


class Noticed(NamedTuple, Generic[T]):
    """The changed record, and the notice about it, if any."""

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
    """Record a change, then notify the holder of the next move with `text`.

    `target` is notified instead, if given; `flight` resumes with the notice. The decision is stored with
    the delivery, or with the event if there is no notice. A holder that cannot be woken finds the message
    in its inbox.
    """
    record, by = _replace_retired(tx, record), sender or tx.sender
    meant = target.agent_id if target else record.next_move_owner_id
    place = _find_conversation(tx, record, by, meant)
    occasion = Occasion(
        cause=cause,
        sender=Party(agent_id=by, session_id=tx.actor.session_id if by == tx.actor.agent_id else None),
        kind=message_kind,
        targets=(target,) if target else (),
        duty=read_obligation(record),
        place=wake.build_wake_context(tx, place) if place else None,
    )
    decision = wake.decide_who_is_woken(tx, occasion)
    holder = decision.holder
    recipient = holder.agent_id if holder else _find_recipient(tx, meant, by)
    place = place if recipient in (None, meant) else _find_conversation(tx, record, by, recipient)
    said = tx.mint("msg") if place is not None and (recipient or isinstance(record, Question)) else None
    record = _link_question(record, message_kind, place, said)
    beside = Metadata() if holder else Metadata(wake=decision.stored)
    tx.record(kind, record, move=move, reason=reason, metadata=beside, source=sender)
    _apply_effects(tx, record, sender)
    if said is None or place is None:
        return Noticed(record, decision)
    words = _Notice(said, text, message_kind, by, recipient)
    message = _post_notice(tx, record, place, words, flight)
    delivery = wake.deliver_message(tx, message, recipient, decision) if recipient else None
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
    """Record a change without waking anybody; `to` finds `text` in its inbox.

    `awaited`: `to` waits for this and sees it now, so the message is posted and not delivered.
    """
    record, by = _replace_retired(tx, record), sender or tx.sender
    recipient = _find_recipient(tx, to, by)
    place = _find_conversation(tx, record, by, recipient) if recipient else None
    said = tx.mint("msg") if place is not None else None
    record = _link_question(record, message_kind, place, said)
    tx.record(kind, record, move=move, reason=reason, source=sender)
    _apply_effects(tx, record, sender)
    if said is None or place is None or recipient is None:
        return Noticed(record)
    message = _post_notice(tx, record, place, _Notice(said, text, message_kind, by, recipient))
    if awaited:
        return Noticed(record, None, message)
    why = f"{read_obligation(record).noun} {record.id}: {move}"
    return Noticed(
        record, None, message, posts.create_delivery(tx, message, recipient, rule="notice", reason=why)
    )


def record_from_elsewhere(
    tx: Transaction, kind: type[Event], record: WorkItem, *, move: str, reason: str
) -> None:
    """Record a change that another node made, with its effects here; that node notifies."""
    tx.record(kind, record, move=move, reason=reason)
    _apply_effects(tx, record, None)


# -- agents in service-------------------------------------------------------------------------------


def find_first_in_service(tx: Transaction, *agents: str | None) -> str | None:
    """Return the first of these agents that is not retired, if any."""
    found = [tx.agent(one) for one in agents]
    return next((one.id for one in found if one is not None and one.lifecycle is not Lifecycle.RETIRED), None)


def _find_recipient(tx: Transaction, agent_id: str | None, sender: str) -> str | None:
    """Return the agent if it is not the sender and is in service."""
    return find_first_in_service(tx, agent_id) if agent_id != sender else None


def _replace_retired(tx: Transaction, record: T) -> T:
    """Return the record; an unsettled work item is moved away from retired agents."""
    if isinstance(record, Question) or record.state in WORK_ITEM.settled:
        return record
    owner, holder = find_keepers(tx, record)
    in_review = record.state is WorkState.REVIEW
    reviewer = find_first_in_service(tx, record.reviewer_id) or (holder if in_review else record.reviewer_id)
    kept = (record.owner_id, record.next_move_owner_id, record.reviewer_id)
    if kept == (owner, holder, reviewer):
        return record
    return replace(record, owner_id=owner, next_move_owner_id=holder, reviewer_id=reviewer)


def find_keepers(tx: Transaction, item: WorkItem) -> tuple[str, str]:
    """Return the owner and the holder of the next move, replaced where they are retired.

    The requester replaces a retired owner, their user the requester; no owner reviews its own work.
    """
    operator = attention_items.find_person_for(tx, item.owner_id)
    owner = find_first_in_service(tx, item.owner_id, item.requester_id) or operator
    others = () if item.state is WorkState.REVIEW else (owner,)
    holder = find_first_in_service(tx, item.next_move_owner_id, *others, item.requester_id) or operator
    return owner, holder


def _apply_effects(tx: Transaction, record: Question | WorkItem, sender: str | None) -> None:
    """Update the person's inbox, and resume the items that waited for this one."""
    attention_items.sync_item(tx, record)
    if not isinstance(record, WorkItem) or record.state not in WORK_ITEM.settled:
        return
    for waiting in find_waiting_items(tx, record.id):
        reason = f"{record.id} is {record.state}"
        record_and_wake(
            tx,
            WorkItemUpdated,
            resume_work(waiting, tx.now),
            move=WorkMove.RESUME,
            cause=Cause.MOVE,
            text=f"{reason} ({record.title}): continue with {waiting.id} ({waiting.title})",
            reason=reason,
            sender=sender,
        )


def find_waiting_items(tx: Transaction, work_item_id: str) -> Iterator[WorkItem]:
    """Yield the items that wait for an item."""
    last = ""
    while some := tx.ledger.many(WorkItem, "work_awaiting", item=work_item_id, after=last, limit=_MANY):
        yield from some
        last = some[-1].id


# -- messages ----------------------------------------------------------------------------------------


def _find_conversation(
    tx: Transaction, record: Question | WorkItem, sender: str, other: str | None
) -> Conversation | None:
    """Return the record's conversation if both are members, else their direct one."""
    own = tx.conversation(record.conversation_id) if record.conversation_id else None
    both = tuple(dict.fromkeys((sender, other or sender)))
    if own is not None and all(_is_member(tx, own, one) for one in both):
        return own
    return posts.ensure_direct_conversation(tx, sender, other) if other and other != sender else None


def _is_member(tx: Transaction, conversation: Conversation, agent_id: str) -> bool:
    found = tx.ledger.one(Member, "membership", conversation=conversation.id, agent=agent_id)
    return found is not None and found.left_at is None


def _link_question(record: T, kind: MessageKind, place: Conversation | None, message_id: str | None) -> T:
    """Link a question to the message that asks or answers it."""
    link = _LINKS.get(kind)
    if not isinstance(record, Question) or link is None or place is None or message_id is None:
        return record
    where = place.id if kind is MessageKind.QUESTION else record.conversation_id
    return replace(record, conversation_id=where, **{link: message_id})


class _Notice(NamedTuple):
    """The text of a notice, its sender and its recipient."""

    message_id: str
    text: str
    kind: MessageKind
    sender: str
    recipient: str | None


def _post_notice(
    tx: Transaction,
    record: Question | WorkItem,
    place: Conversation,
    words: _Notice,
    flight: Flight | None = None,
) -> Message:
    asked = None
    if isinstance(record, Question) and words.kind is not MessageKind.QUESTION:
        asked = record.message_id if record.conversation_id == place.id else None
    return posts.post_message(
        tx,
        place.id,
        words.text,
        sender=words.sender,
        kind=words.kind,
        message_id=words.message_id,
        ask_id=flight.ask_id if flight else None,
        flight_id=flight.id if flight else None,
        work_item_id=record.id if isinstance(record, WorkItem) else record.work_item_id,
        metadata=Metadata(target_agents=(words.recipient,) if words.recipient else (), in_reply_to=asked),
    )
