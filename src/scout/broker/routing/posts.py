"""Post messages and create deliveries: one message event, one delivery per target."""

from msgspec.structs import replace

from scout.broker.routing.remote import find_mesh_receipt
from scout.broker.routing.routes import wake_agent
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import (
    Attachment,
    Conversation,
    ConversationKind,
    DeliveryReceipt,
    Member,
    Message,
    MessageKind,
    check_kind,
    derive_broadcast_id,
    derive_dm_id,
    derive_member_id,
    join,
)
from scout.model.delivery import Delivery, check_origin
from scout.model.events.asks import DeliveryRequested
from scout.model.events.envelope import Metadata, WakeFact
from scout.model.events.talk import (
    ConversationCreated,
    ConversationMember,
    MessagePosted,
    Opened,
    build_post,
)

_NEWEST = (1 << 63) - 1


def ensure_direct_conversation(tx: Transaction, one: str, other: str) -> Conversation:
    """Return the direct conversation of two agents, created on first use."""
    ident = derive_dm_id(one, other)
    found = tx.conversation(ident)
    if found is not None:
        return found
    both = tuple(build_member(tx, ident, agent_id) for agent_id in dict.fromkeys((one, other)))
    return create_conversation(tx, _build_conversation(tx, ident, ConversationKind.DM), both)


def ensure_broadcast_conversation(tx: Transaction, user: str) -> Conversation:
    """Return a user's broadcast conversation, created on first use."""
    ident = derive_broadcast_id(user)
    found = tx.get(Conversation, ident)
    return found or create_conversation(
        tx, _build_conversation(tx, ident, ConversationKind.BROADCAST, owner=user)
    )


def _build_conversation(
    tx: Transaction, ident: str, kind: ConversationKind, owner: str | None = None
) -> Conversation:
    return Conversation(
        id=ident, created_at=tx.now, updated_at=tx.now, kind=kind, owner=owner, created_by=tx.sender
    )


def create_conversation(
    tx: Transaction, conversation: Conversation, members: tuple[Member, ...] = ()
) -> Conversation:
    """Store a new conversation with its initial members."""
    payload = Opened(record=check_kind(conversation), move="create", by=tx.sender, members=members)
    tx.append(ConversationCreated, conversation.id, payload)
    return conversation


def build_member(tx: Transaction, conversation_id: str, agent_id: str) -> Member:
    """Return a new membership, not stored yet."""
    return Member(
        id=derive_member_id(conversation_id, agent_id),
        created_at=tx.now,
        updated_at=tx.now,
        conversation_id=conversation_id,
        agent_id=agent_id,
    )


def ensure_member(tx: Transaction, conversation_id: str, agent_id: str) -> Member:
    """Return an agent's membership, created if needed with all earlier messages marked as read."""
    member = tx.ledger.one(Member, "membership", conversation=conversation_id, agent=agent_id)
    if member is not None and member.left_at is None:
        return member
    member = join(member, tx.now) if member else build_member(tx, conversation_id, agent_id)
    newest = find_newest_message(tx, conversation_id)
    member = replace(member, read_seq=max(member.read_seq, newest.seq if newest else 0))
    return tx.record(ConversationMember, member, move="join", target=conversation_id)


def find_newest_message(tx: Transaction, conversation_id: str) -> Message | None:
    """Return the newest message of a conversation."""
    return tx.ledger.one(Message, "messages_before", conversation=conversation_id, before=_NEWEST, limit=1)


def post_message(
    tx: Transaction,
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
    """Post a message in a conversation."""
    who = sender or tx.sender
    message = Message(
        id=message_id or tx.mint("msg"),
        conversation_id=conversation_id,
        sender=who,
        sender_session_id=tx.actor.session_id if who == tx.actor.agent_id else None,
        body=body,
        kind=kind,
        follow_up=follow_up,
        reply_to=reply_to,
        in_reply_to=metadata.in_reply_to,
        mentions=metadata.mentions,
        target_agents=metadata.target_agents,
        attachments=attachments,
        ask_id=ask_id,
        flight_id=flight_id,
        work_item_id=work_item_id,
        created_at=tx.now,
    )
    event = tx.append(MessagePosted, conversation_id, build_post(message), metadata, source=who)
    return replace(message, seq=event.seq)


def create_delivery(
    tx: Transaction,
    message: Message,
    target: str,
    *,
    wake: bool = False,
    delegates: bool = False,
    rule: str = "",
    reason: str = "",
    endpoint_id: str | None = None,
    session_id: str | None = None,
    decision: WakeFact | None = None,
    metadata: Metadata = Metadata(),
) -> Delivery:
    """Create a delivery of a message. `wake`: may start a program; `delegates`: expects an answer.

    An ask or a `wake` delivery wakes a sleeping agent; plain mail waits until the agent is awake.
    """
    if wake or message.flight_id is not None:
        wake_agent(tx, target, reason or "it was asked")
    delivery = Delivery(
        id=tx.mint("dlv"),
        created_at=tx.now,
        updated_at=tx.now,
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
        next_attempt_at=tx.now,
    )
    beside = Metadata(
        wake=decision,
        resolved=metadata.resolved,
        alias_id=metadata.alias_id,
        alias_revision=metadata.alias_revision,
    )
    recipient = tx.agent(target) if message.flight_id is None else None
    if recipient is not None and recipient.is_person and not recipient.is_remote:
        tx.mail_to_people.append(delivery)
    return tx.record(
        DeliveryRequested,
        check_origin(delivery),
        move="request",
        reason=reason,
        metadata=beside,
        source=message.sender,
    )


def build_delivery_receipt(tx: Transaction, delivery: Delivery) -> DeliveryReceipt:
    """Return a delivery's entry in a receipt."""
    return DeliveryReceipt(
        delivery_id=delivery.id,
        target=delivery.target,
        address=tx.address(delivery.target),
        state=delivery.state,
        reason=delivery.problem or delivery.reason,
        attempts=delivery.attempts,
        may_repeat=delivery.may_repeat,
        mesh=find_mesh_receipt(tx, delivery),
    )
