"""Conversations: members, names, read permission, and default recipients."""

from collections import Counter
from typing import TypeVar

from scout.base.refusal import BadRequest, Candidate, Refused, Remedy
from scout.broker.routing import posts
from scout.broker.routing.remote import find_node_name
from scout.broker.routing.unread import count_by_conversation
from scout.broker.routing.views import extend_record
from scout.broker.transaction.transaction import Transaction
from scout.identity.address import fold_segment
from scout.model.access.token import TokenKind
from scout.model.agent import Agent
from scout.model.conversation import (
    Conversation,
    ConversationKind,
    Member,
    Message,
    derive_channel_id,
    derive_thread_id,
)
from scout.model.problems.request import NotFound
from scout.policy.nearest import rank_names
from scout.policy.permit import Deed, Subject
from scout.protocol.channels import (
    ConversationView,
    MemberRole,
    MemberView,
)

V = TypeVar("V", bound=ConversationView)
_SHOWN = 200
_FEW = 3
_NEWEST = (1 << 63) - 1


def list_members(tx: Transaction, conversation_id: str, limit: int = _SHOWN) -> list[Member]:
    """Return the current members of a conversation."""
    found = tx.ledger.many(Member, "members_of", conversation=conversation_id, after="", limit=limit)
    return [member for member in found if member.left_at is None]


def name_conversation(tx: Transaction, conversation_id: str) -> str:
    """Return a conversation's display name: its channel name, else its members."""
    conversation = tx.conversation(conversation_id)
    if conversation is not None and conversation.name:
        return f"#{conversation.name}"
    members = list_members(tx, conversation_id, _FEW)
    return " and ".join(sorted(tx.address(one.agent_id) for one in members))


def find_membership(tx: Transaction, conversation_id: str) -> Member | None:
    """Return the caller's membership in a conversation, if any."""
    me = tx.actor.agent_id
    member = tx.ledger.one(Member, "membership", conversation=conversation_id, agent=me) if me else None
    return member if member is not None and member.left_at is None else None


def require_readable(tx: Transaction, conversation: Conversation) -> Conversation:
    """Return the conversation if the caller may read it, else refuse."""
    if conversation.kind is ConversationKind.THREAD:
        require_readable(tx, tx.need(Conversation, "conversation", conversation.parent_id or ""))
        return conversation
    mine = find_membership(tx, conversation.id)
    told_all = conversation.kind is ConversationKind.BROADCAST and conversation.owner == tx.actor.user
    if mine is None and not told_all:
        require_permission(tx, Deed.READ, conversation)
    return conversation


def require_permission(tx: Transaction, deed: Deed, conversation: Conversation) -> None:
    """Refuse an action that the caller may not take in a conversation; another user gets `not_found`.

    A channel's id is derived from its owner and name, so any other refusal would reveal that it exists.
    """
    subject, owner = build_subject(conversation), conversation.owner
    known = owner is None or owner in tx.view.users or tx.is_operator
    if not known and not tx.allows(deed, subject):
        raise tx.missing("conversation", conversation.id)
    tx.permit(deed, subject)


def require_joinable(tx: Transaction, channel: Conversation) -> Conversation:
    """Return a channel that the caller may join: it is open to its user's agents, others need a grant."""
    if channel.owner != tx.actor.user:
        require_permission(tx, Deed.ADDRESS, channel)
    return channel


def ensure_thread(tx: Transaction, message_id: str) -> Conversation:
    """Return the thread on a message, created if needed; readers of the message may create it."""
    message = tx.need(Message, "message", message_id)
    parent = require_readable(tx, tx.need(Conversation, "conversation", message.conversation_id))
    found = tx.conversation(derive_thread_id(message.id))
    if found is not None:
        return found
    thread = Conversation(
        id=derive_thread_id(message.id),
        created_at=tx.now,
        updated_at=tx.now,
        kind=ConversationKind.THREAD,
        owner=parent.owner,
        parent_id=parent.id,
        root_message_id=message.id,
        quiet=parent.quiet,
        created_by=tx.sender,
    )
    return posts.create_conversation(tx, thread)


def check_recipients(tx: Transaction, conversation: Conversation, agent: Agent) -> Conversation:
    """Return the conversation; refuse a recipient that is not one of a direct conversation's two members."""
    if conversation.kind is ConversationKind.THREAD:
        parent = tx.need(Conversation, "conversation", conversation.parent_id or "")
        check_recipients(tx, parent, agent)
        return conversation
    direct = conversation.kind is ConversationKind.DM
    if not direct or agent.id in [one.agent_id for one in list_members(tx, conversation.id)]:
        return conversation
    address = tx.address(agent.id)
    speak = {"to": address, "body": "…"}
    remedy = Remedy(operation="send", parameters=speak, why="in the direct conversation with it")
    problem = f"{address} takes no part in this direct conversation"
    raise Refused(BadRequest(problem=problem, field="conversationId", remedies=(remedy,)))


def choose_default_recipients(tx: Transaction, conversation: Conversation) -> list[str]:
    """Return the recipients of a message without a target: the partner, or the author of the root message."""
    if conversation.kind is ConversationKind.DM:
        return [one.agent_id for one in list_members(tx, conversation.id) if one.agent_id != tx.sender]
    if conversation.kind is not ConversationKind.THREAD:
        return []
    root = tx.get(Message, conversation.root_message_id)
    if root is not None and root.sender != tx.sender:
        return [root.sender]
    return choose_default_recipients(tx, tx.need(Conversation, "conversation", conversation.parent_id or ""))


def build_subject(conversation: Conversation) -> Subject:
    """Return a conversation as the subject of a permission check."""
    return Subject(
        name=conversation.name or conversation.id,
        conversation_id=conversation.id,
        user=conversation.owner,
    )


def build_conversation_view(tx: Transaction, kind: type[V], conversation: Conversation) -> V:
    """Return a conversation with its members and the caller's unread count."""
    views = tuple(_build_member_view(tx, conversation, one) for one in list_members(tx, conversation.id))
    return extend_record(kind, conversation, members=views, unread=_count_unread(tx)[conversation.id])


def _count_unread(tx: Transaction) -> Counter[str]:
    """Return the caller's unread counts by conversation."""
    me = tx.actor.agent_id
    return count_by_conversation(tx, me) if me else Counter()


def _build_member_view(tx: Transaction, conversation: Conversation, member: Member) -> MemberView:
    channel = conversation.kind is ConversationKind.CHANNEL
    owns = channel and conversation.created_by == member.agent_id
    roles = [MemberRole.OWNER] if owns else []
    roles += [MemberRole.MASTER] if conversation.master_id == member.agent_id else []
    return extend_record(
        MemberView,
        member,
        address=tx.address(member.agent_id),
        node=find_node_name(tx, member.agent_id),
        roles=tuple(roles),
    )


def require_channel(tx: Transaction, name: str) -> Conversation:
    """Return a channel by its name or id, else refuse."""
    owner = tx.actor.user or tx.services.operator
    folded = name if name.startswith("cnv_") else fold_segment(name.removeprefix("channel:").lstrip("#"))
    ident = folded if name.startswith("cnv_") else derive_channel_id(owner, folded)
    found = tx.get(Conversation, ident)
    if found is None or found.kind is not ConversationKind.CHANNEL:
        make = Remedy(operation="channel.create", parameters={"name": folded}, why="make it")
        look = Remedy(operation="channel.list", parameters={}, why="list the channels")
        remedies = (look,) if name.startswith("cnv_") else (make, look)
        near = tuple(Candidate(address=one) for one in _find_nearest_channels(tx, owner, folded))
        raise Refused(NotFound(noun="channel", id=name[:60], candidates=near, remedies=remedies))
    return found


def _find_nearest_channels(tx: Transaction, owner: str, name: str) -> tuple[str, ...]:
    """Return the names of channels that may be meant; a guest learns none."""
    if tx.actor.kind is TokenKind.GUEST:
        return ()
    known = tx.ledger.many(Conversation, "channels_of", owner=owner, before=_NEWEST, limit=_SHOWN)
    return rank_names(name, [one.name for one in known if one.name], _FEW)
