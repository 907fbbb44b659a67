"""A change of who owes what: stored, and told to the one who holds the next move now."""

from typing import Generic, NamedTuple, TypeVar

from scout.broker import messages, needing, posting
from scout.broker.turn import Turn
from scout.model.conversation import Conversation, Member, Message, MessageKind
from scout.model.delivery import Delivery
from scout.model.envelope import Event, Metadata
from scout.model.question import Question
from scout.model.work_item import WorkItem
from scout.policy.duty import Party, duty_of
from scout.policy.wake import Cause, Occasion, WakeDecision

__all__ = ["Told", "recorded"]

T = TypeVar("T", Question, WorkItem)


class Told(NamedTuple, Generic[T]):
    """The record as it is now, and what was said to whom; nothing when nobody else owes anything."""

    record: T
    decision: WakeDecision
    message: Message | None = None
    delivery: Delivery | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        return (self.decision.reason,) if self.decision.reason else ()


def recorded(
    turn: Turn,
    kind: type[Event],
    record: T,
    *,
    move: str,
    cause: Cause,
    text: str,
    reason: str = "",
    message_kind: MessageKind = MessageKind.CHAT,
) -> Told[T]:
    """Store that a record is now like this, then tell the one holder of its next move, in `text`.

    The decision stands beside the delivery, or beside the fact itself when nobody is told.
    """
    conversation = turn.conversation(record.conversation_id) if record.conversation_id else None
    decision = _decided(turn, record, cause, conversation, message_kind)
    holder = decision.holder
    beside = Metadata() if holder else Metadata(wake=decision.stored)
    turn.record(kind, record, move=move, reason=reason, metadata=beside)
    needing.follow(turn, record)
    if holder is None:
        return Told(record, decision)
    place = _place(turn, conversation, holder.agent_id)
    message = posting.post(
        turn,
        place.id,
        text,
        kind=message_kind,
        work_item_id=record.id if isinstance(record, WorkItem) else record.work_item_id,
        metadata=Metadata(target_agents=(holder.agent_id,)),
    )
    delivery = messages.carried(turn, message, holder.agent_id, decision)
    return Told(record, decision, message, delivery)


def _decided(
    turn: Turn,
    record: Question | WorkItem,
    cause: Cause,
    conversation: Conversation | None,
    kind: MessageKind,
) -> WakeDecision:
    occasion = Occasion(
        cause=cause,
        sender=Party(agent_id=turn.sender, session_id=turn.actor.session_id),
        kind=kind,
        duty=duty_of(record),
        place=messages.occasion_place(turn, conversation) if conversation else None,
    )
    return messages.decide(turn, occasion)


def _place(turn: Turn, conversation: Conversation | None, holder: str) -> Conversation:
    """The record's own conversation, where its holder takes part in it; else the direct one of the two."""
    if conversation is not None:
        both = (turn.sender, holder)
        members = [
            turn.ledger.one(Member, "membership", conversation=conversation.id, agent=one) for one in both
        ]
        if all(one is not None and one.left_at is None for one in members):
            return conversation
    return posting.dm_of(turn, turn.sender, holder)
