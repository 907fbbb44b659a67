"""Messages and deliveries as facts: said once, carried to each target on its own."""

from msgspec.structs import replace

from scout.broker.routing.agent_wake import wake_agent
from scout.broker.transaction.transaction import Turn
from scout.model.conversation import (
    Attachment,
    Conversation,
    ConversationKind,
    DeliveryReceipt,
    Member,
    Message,
    MessageKind,
    broadcast_id,
    check_kind,
    dm_id,
    join,
    member_id,
)
from scout.model.delivery import Delivery, check_origin
from scout.model.events.asks import DeliveryRequested
from scout.model.events.envelope import Metadata, Wake
from scout.model.events.talk import (
    ConversationCreated,
    ConversationMember,
    MessagePosted,
    Opened,
    message_of,
    posted,
)

__all__ = [
    "broadcast_of",
    "deliver",
    "dm_of",
    "joined",
    "new_member",
    "newest_in",
    "opened",
    "post",
    "receipt_of",
]

_NEWEST = (1 << 63) - 1


def dm_of(turn: Turn, one: str, other: str) -> Conversation:
    """The one direct conversation of two agents; the first to speak makes it."""
    ident = dm_id(one, other)
    found = turn.conversation(ident)
    if found is not None:
        return found
    both = tuple(new_member(turn, ident, agent_id) for agent_id in dict.fromkeys((one, other)))
    return opened(turn, _made(turn, ident, ConversationKind.DM), both)


def broadcast_of(turn: Turn, user: str) -> Conversation:
    """The one conversation in which a user's agents are told something all together."""
    ident = broadcast_id(user)
    found = turn.ledger.get(Conversation, ident)
    return found or opened(turn, _made(turn, ident, ConversationKind.BROADCAST, owner=user))


def _made(turn: Turn, ident: str, kind: ConversationKind, owner: str | None = None) -> Conversation:
    return Conversation(
        id=ident, created_at=turn.now, updated_at=turn.now, kind=kind, owner=owner, created_by=turn.sender
    )


def opened(turn: Turn, conversation: Conversation, members: tuple[Member, ...] = ()) -> Conversation:
    """Store a new conversation with those who are in it from the first."""
    payload = Opened(record=check_kind(conversation), move="create", by=turn.sender, members=members)
    turn.append(ConversationCreated, conversation.id, payload)
    return conversation


def new_member(turn: Turn, conversation_id: str, agent_id: str) -> Member:
    """The place of an agent in a conversation, not stored yet."""
    return Member(
        id=member_id(conversation_id, agent_id),
        created_at=turn.now,
        updated_at=turn.now,
        conversation_id=conversation_id,
        agent_id=agent_id,
    )


def joined(turn: Turn, conversation_id: str, agent_id: str) -> Member:
    """An agent's place in a conversation; it takes part from here on, and has read what came before."""
    member = turn.ledger.one(Member, "membership", conversation=conversation_id, agent=agent_id)
    if member is not None and member.left_at is None:
        return member
    member = join(member, turn.now) if member else new_member(turn, conversation_id, agent_id)
    newest = newest_in(turn, conversation_id)
    member = replace(member, read_seq=max(member.read_seq, newest.seq if newest else 0))
    return turn.record(ConversationMember, member, move="join", target=conversation_id)


def newest_in(turn: Turn, conversation_id: str) -> Message | None:
    """The last message of a conversation."""
    return turn.ledger.one(Message, "messages_before", conversation=conversation_id, before=_NEWEST, limit=1)


def post(
    turn: Turn,
    conversation_id: str,
    body: str,
    *,
    sender: str | None = None,
    kind: MessageKind = MessageKind.CHAT,
    message_id: str | None = None,
    follow_up: bool = False,
    reply_to: str | None = None,
    attachments: tuple[Attachment, ...] = (),
    ask_id: str | None = None,
    flight_id: str | None = None,
    work_item_id: str | None = None,
    metadata: Metadata = Metadata(),
) -> Message:
    """Say something in a conversation."""
    who = sender or turn.sender
    message = Message(
        id=message_id or turn.mint("msg"),
        conversation_id=conversation_id,
        sender=who,
        sender_session_id=turn.actor.session_id if who == turn.actor.agent_id else None,
        body=body,
        kind=kind,
        follow_up=follow_up,
        reply_to=reply_to,
        attachments=attachments,
        ask_id=ask_id,
        flight_id=flight_id,
        work_item_id=work_item_id,
        created_at=turn.now,
    )
    event = turn.append(MessagePosted, conversation_id, posted(message), metadata, source=who)
    assert isinstance(event, MessagePosted)
    return message_of(event)


def deliver(
    turn: Turn,
    message: Message,
    target: str,
    *,
    wake: bool = False,
    delegates: bool = False,
    rule: str = "",
    reason: str = "",
    endpoint_id: str | None = None,
    session_id: str | None = None,
    decision: Wake | None = None,
    metadata: Metadata = Metadata(),
) -> Delivery:
    """Route a message to one target; for `wake` a program may be started, `delegates` expects an answer.

    An ask wakes a sleeping agent, and so does what starts a program; plain mail waits until it is awake.
    """
    if wake or message.flight_id is not None:
        wake_agent(turn, target, reason or "it was asked")
    delivery = Delivery(
        id=turn.mint("dlv"),
        created_at=turn.now,
        updated_at=turn.now,
        sender=message.sender,
        target=target,
        endpoint_id=endpoint_id,
        session_id=session_id,
        conversation_id=message.conversation_id,
        message_id=message.id,
        ask_id=message.ask_id,
        flight_id=message.flight_id,
        work_item_id=message.work_item_id,
        wake=wake,
        delegates=delegates,
        rule=rule,
        reason=reason,
        next_attempt_at=turn.now,
    )
    beside = Metadata(
        wake=decision,
        resolved=metadata.resolved,
        alias_id=metadata.alias_id,
        alias_revision=metadata.alias_revision,
    )
    return turn.record(
        DeliveryRequested,
        check_origin(delivery),
        move="request",
        reason=reason,
        metadata=beside,
        source=message.sender,
    )


def receipt_of(turn: Turn, delivery: Delivery) -> DeliveryReceipt:
    """What a receipt says of a delivery."""
    return DeliveryReceipt(
        delivery_id=delivery.id,
        target=delivery.target,
        address=turn.address(delivery.target),
        state=delivery.state,
        reason=delivery.problem or delivery.reason,
        attempts=delivery.attempts,
        may_repeat=delivery.may_repeat,
    )
