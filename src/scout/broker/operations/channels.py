"""Channels and conversations: members, master, and wake policy."""

from collections.abc import Sequence

from scout.base.refusal import BadRequest, Refused
from scout.broker.operations import agents
from scout.broker.routing import conversations, posts
from scout.broker.routing.unread import find_broadcast
from scout.broker.transaction.paging import build_page, decode_number, get_page_size
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.identity.address import fold_segment
from scout.model.agent import Agent
from scout.model.conversation import (
    Conversation,
    ConversationKind,
    Member,
    archive_conversation,
    derive_channel_id,
    leave,
    set_policy,
)
from scout.model.events.talk import ConversationArchived, ConversationMember, ConversationPolicy
from scout.policy.permit import Deed
from scout.protocol.channels import (
    ArchiveChannel,
    ChannelPolicy,
    ChannelView,
    ConversationView,
    CreateChannel,
    GetConversation,
    JoinChannel,
    LeaveChannel,
    ListChannels,
    ListConversations,
    ShowChannel,
)
from scout.protocol.request import Page

_NEWEST = (1 << 63) - 1


def create(tx: Transaction, request: CreateChannel) -> ChannelView:
    """Create a channel, or return the user's existing channel of this name."""
    owner, name = tx.actor.user or tx.services.operator, fold_segment(request.name)
    ident = derive_channel_id(owner, name)
    channel = tx.get(Conversation, ident)
    if channel is None:
        master = _resolve_addressable(tx, request.master) if request.master else None
        channel = Conversation(
            id=ident,
            created_at=tx.now,
            updated_at=tx.now,
            kind=ConversationKind.CHANNEL,
            name=name,
            owner=owner,
            master_id=master.id if master else None,
            soft_mentions=request.soft_mentions,
            quiet=request.quiet,
            created_by=tx.sender,
        )
        posts.create_conversation(tx, channel)
        _add_members(tx, channel, [master] if master else [])
    posts.ensure_member(tx, ident, tx.sender)
    _add_members(tx, channel, [_resolve_addressable(tx, one) for one in request.members])
    return _show(tx, channel)


def _add_members(tx: Transaction, channel: Conversation, several: Sequence[Agent]) -> None:
    for agent in several:
        posts.ensure_member(tx, channel.id, agent.id)


def _resolve_addressable(tx: Transaction, address: str) -> Agent:
    """Return an agent that the caller may address; only such agents can be added or made master."""
    agent = tx.resolve(address).agent
    tx.permit(Deed.ADDRESS, build_subject(agent))
    return agent


def _show(tx: Transaction, channel: Conversation) -> ChannelView:
    return conversations.build_conversation_view(tx, ChannelView, channel)


def list_channels(tx: Transaction, request: ListChannels) -> Page[ChannelView]:
    """List the channels of the caller's user, newest first."""
    wanted = get_page_size(request.limit, tx.rules.limits)
    bound = decode_number(request.cursor, _NEWEST)
    owner = tx.actor.user or tx.services.operator
    if request.joined:
        found = _list_joined(tx, bound)[: wanted + 1]
    else:
        found = tx.ledger.many(Conversation, "channels_of", owner=owner, before=bound, limit=wanted + 1)
    listed = build_page(found, wanted, lambda channel: int(channel.created_at))
    return Page(items=tuple(_show(tx, one) for one in listed.items), next=listed.next)


def _list_joined(tx: Transaction, before: int) -> list[Conversation]:
    """Return the channels that the caller is a member of, newest first."""
    rows = tx.ledger.rows("followed_all", agent=tx.sender)
    found = [tx.need(Conversation, "conversation", str(row[0])) for row in rows]
    channels = [one for one in found if one.kind is ConversationKind.CHANNEL and one.archived_at is None]
    channels = [one for one in channels if one.created_at < before]
    return sorted(channels, key=lambda one: one.created_at, reverse=True)


def show_channel(tx: Transaction, request: ShowChannel) -> ChannelView:
    """Return one channel."""
    return _show(tx, _find_visible(tx, request.name))


def _find_visible(tx: Transaction, name: str) -> Conversation:
    """Return a channel visible to the caller: its user's agents see it listed and may join to read it."""
    channel = conversations.require_channel(tx, name)
    return channel if channel.owner == tx.actor.user else conversations.require_readable(tx, channel)


def join_channel(tx: Transaction, request: JoinChannel) -> ChannelView:
    """Join a channel, or add agents that the caller may address."""
    channel = conversations.require_joinable(tx, conversations.require_channel(tx, request.name))
    _add_members(tx, channel, [_resolve_addressable(tx, one) for one in request.members])
    if not request.members:
        posts.ensure_member(tx, channel.id, tx.sender)
    return _show(tx, channel)


def leave_channel(tx: Transaction, request: LeaveChannel) -> ChannelView:
    """Leave a channel, or remove others: allowed for the channel's creator and for their controller."""
    channel = _find_visible(tx, request.name)
    gone = [agents.find(tx, one) for one in request.members]
    for agent in gone:
        mine = channel.created_by == tx.sender or tx.allows(Deed.CONTROL, build_subject(agent))
        if not mine:
            conversations.require_permission(tx, Deed.ADMINISTER, channel)
    for agent_id in [one.id for one in gone] or [tx.sender]:
        channel = _remove_member(tx, channel, agent_id)
    return _show(tx, channel)


def _remove_member(tx: Transaction, channel: Conversation, agent_id: str) -> Conversation:
    """Record that an agent leaves; this also removes its master role."""
    member = tx.ledger.one(Member, "membership", conversation=channel.id, agent=agent_id)
    if member is not None and member.left_at is None:
        tx.record(ConversationMember, leave(member, tx.now), move="leave", target=channel.id)
    if channel.master_id != agent_id:
        return channel
    return tx.record(ConversationPolicy, set_policy(channel, tx.now, no_master=True), move="policy")


def set_channel_policy(tx: Transaction, request: ChannelPolicy) -> ChannelView:
    """Change a channel's master and wake policy."""
    channel = _get_own(tx, request.name)
    if request.master and request.no_master:
        raise Refused(BadRequest(problem="name a master or none, not both", field="noMaster"))
    master = _resolve_addressable(tx, request.master) if request.master else None
    changed = set_policy(
        channel,
        tx.now,
        master_id=master.id if master else None,
        no_master=request.no_master,
        soft_mentions=request.soft_mentions,
        quiet=request.quiet,
    )
    tx.record(ConversationPolicy, changed, move="policy")
    _add_members(tx, changed, [master] if master else [])
    return _show(tx, changed)


def archive(tx: Transaction, request: ArchiveChannel) -> ChannelView:
    """Archive a channel, which hides it from lists."""
    channel = _get_own(tx, request.name)
    archived = archive_conversation(channel, tx.now)
    if archived is not channel:
        tx.record(ConversationArchived, archived, move="archive")
    return _show(tx, archived)


def _get_own(tx: Transaction, name: str) -> Conversation:
    channel = conversations.require_channel(tx, name)
    if channel.created_by != tx.sender:
        conversations.require_permission(tx, Deed.ADMINISTER, channel)
    return channel


# -- conversations -----------------------------------------------------------------------------------


def get_conversation(tx: Transaction, request: GetConversation) -> ConversationView:
    """Return one conversation."""
    conversation = tx.need(Conversation, "conversation", request.conversation_id)
    return conversations.build_conversation_view(
        tx, ConversationView, conversations.require_readable(tx, conversation)
    )


def list_conversations(tx: Transaction, request: ListConversations) -> Page[ConversationView]:
    """List the conversations that the caller is a member of, newest first."""
    wanted = get_page_size(request.limit, tx.rules.limits)
    bound = decode_number(request.cursor, _NEWEST)
    mine = tx.ledger.many(Member, "memberships", agent=tx.sender, before=bound, limit=wanted + 1)
    listed = build_page(mine, wanted, lambda member: int(member.created_at))
    found = [tx.need(Conversation, "conversation", member.conversation_id) for member in listed.items]
    broadcast = find_broadcast(tx, tx.sender) if request.cursor is None else None
    if broadcast is not None and conversations.find_membership(tx, broadcast.id) is None:
        found = [broadcast, *found]  # it reaches the caller, which has read none of it yet
    return Page(
        items=tuple(conversations.build_conversation_view(tx, ConversationView, one) for one in found),
        next=listed.next,
    )
