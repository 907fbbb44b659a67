"""Channels: where several talk, who takes part, who is responsible, and whom messages wake there."""

from collections.abc import Sequence

from scout.base.refusal import BadRequest, Refused
from scout.broker.operations import agents
from scout.broker.routing import conversations, posts
from scout.broker.transaction.paging import after_number, page, size
from scout.broker.transaction.transaction import Turn, subject_of
from scout.identity.segment import segment
from scout.model.agent import Agent
from scout.model.conversation import (
    Conversation,
    ConversationKind,
    Member,
    archive_conversation,
    channel_id,
    leave,
    set_policy,
)
from scout.model.events.talk import ConversationArchived, ConversationMember, ConversationPolicy
from scout.policy.permit import Deed
from scout.protocol.channels import (
    ArchiveChannel,
    ChannelPolicy,
    ChannelView,
    CreateChannel,
    JoinChannel,
    LeaveChannel,
    ListChannels,
    ShowChannel,
)
from scout.protocol.request import Page

__all__ = ["archive", "create", "join_channel", "leave_channel", "list_channels", "policy", "show_channel"]

_NEWEST = (1 << 63) - 1


def create(turn: Turn, request: CreateChannel) -> ChannelView:
    """Make a channel; the same name of the same user is the same channel."""
    owner, name = turn.actor.user or turn.world.operator, segment(request.name)
    ident = channel_id(owner, name)
    channel = turn.ledger.get(Conversation, ident)
    if channel is None:
        master = _addressed(turn, request.master) if request.master else None
        channel = Conversation(
            id=ident,
            created_at=turn.now,
            updated_at=turn.now,
            kind=ConversationKind.CHANNEL,
            name=name,
            owner=owner,
            master_id=master.id if master else None,
            soft_mentions=request.soft_mentions,
            quiet=request.quiet,
            created_by=turn.sender,
        )
        posts.opened(turn, channel)
        _let_in(turn, channel, [master] if master else [])
    posts.joined(turn, ident, turn.sender)
    _let_in(turn, channel, [_addressed(turn, one) for one in request.members])
    return _shown(turn, channel)


def _let_in(turn: Turn, channel: Conversation, several: Sequence[Agent]) -> None:
    for agent in several:
        posts.joined(turn, channel.id, agent.id)


def _addressed(turn: Turn, address: str) -> Agent:
    """An agent that the caller may speak to: others are neither let in nor made responsible."""
    agent = turn.resolve(address).agent
    turn.permit(Deed.ADDRESS, subject_of(agent))
    return agent


def _shown(turn: Turn, channel: Conversation) -> ChannelView:
    return conversations.shown(turn, ChannelView, channel)


def list_channels(turn: Turn, request: ListChannels) -> Page[ChannelView]:
    """The channels of the caller's user, newest first."""
    wanted = size(request.limit, turn.rules.limits)
    bound = after_number(request.cursor, _NEWEST)
    owner = turn.actor.user or turn.world.operator
    if request.joined:
        found = _joined(turn, bound)[: wanted + 1]
    else:
        found = turn.ledger.many(Conversation, "channels_of", owner=owner, before=bound, limit=wanted + 1)
    listed = page(found, wanted, lambda channel: int(channel.created_at))
    return Page(items=tuple(_shown(turn, one) for one in listed.items), next=listed.next)


def _joined(turn: Turn, before: int) -> list[Conversation]:
    """The channels that the caller takes part in, newest first."""
    rows = turn.ledger.rows("followed_all", agent=turn.sender)
    found = [turn.need(Conversation, "conversation", str(row[0])) for row in rows]
    channels = [one for one in found if one.kind is ConversationKind.CHANNEL and one.archived_at is None]
    channels = [one for one in channels if one.created_at < before]
    return sorted(channels, key=lambda one: one.created_at, reverse=True)


def show_channel(turn: Turn, request: ShowChannel) -> ChannelView:
    """One channel."""
    return _shown(turn, _visible(turn, request.name))


def _visible(turn: Turn, name: str) -> Conversation:
    """A channel that the caller may know of: its user's agents see it listed, and may join to read it."""
    channel = conversations.channel_named(turn, name)
    return channel if channel.owner == turn.actor.user else conversations.may_read(turn, channel)


def join_channel(turn: Turn, request: JoinChannel) -> ChannelView:
    """Take part, or let agents that one may address take part."""
    channel = conversations.channel_named(turn, request.name)
    if channel.owner != turn.actor.user:  # it is open to the agents of its user; others need a grant
        turn.permit(Deed.ADDRESS, conversations.subject_of_place(channel))
    _let_in(turn, channel, [_addressed(turn, one) for one in request.members])
    if not request.members:
        posts.joined(turn, channel.id, turn.sender)
    return _shown(turn, channel)


def leave_channel(turn: Turn, request: LeaveChannel) -> ChannelView:
    """No longer take part; or take others out, which is for who made it and for who controls them."""
    channel = _visible(turn, request.name)
    gone = [agents.find(turn, one) for one in request.members]
    for agent in gone:
        mine = channel.created_by == turn.sender or turn.allows(Deed.CONTROL, subject_of(agent))
        if not mine:
            turn.permit(Deed.ADMINISTER, conversations.subject_of_place(channel))
    for agent_id in [one.id for one in gone] or [turn.sender]:
        channel = _without(turn, channel, agent_id)
    return _shown(turn, channel)


def _without(turn: Turn, channel: Conversation, agent_id: str) -> Conversation:
    """The channel once somebody has left: who is not there is not responsible either."""
    member = turn.ledger.one(Member, "membership", conversation=channel.id, agent=agent_id)
    if member is not None and member.left_at is None:
        turn.record(ConversationMember, leave(member, turn.now), move="leave", target=channel.id)
    if channel.master_id != agent_id:
        return channel
    return turn.record(ConversationPolicy, set_policy(channel, turn.now, no_master=True), move="policy")


def policy(turn: Turn, request: ChannelPolicy) -> ChannelView:
    """Who is responsible, and whom messages wake."""
    channel = _mine(turn, request.name)
    if request.master and request.no_master:
        raise Refused(BadRequest(problem="name a master or none, not both", field="noMaster"))
    master = _addressed(turn, request.master) if request.master else None
    changed = set_policy(
        channel,
        turn.now,
        master_id=master.id if master else None,
        no_master=request.no_master,
        soft_mentions=request.soft_mentions,
        quiet=request.quiet,
    )
    turn.record(ConversationPolicy, changed, move="policy")
    _let_in(turn, changed, [master] if master else [])
    return _shown(turn, changed)


def archive(turn: Turn, request: ArchiveChannel) -> ChannelView:
    """Out of the lists."""
    channel = _mine(turn, request.name)
    archived = archive_conversation(channel, turn.now)
    if archived is not channel:
        turn.record(ConversationArchived, archived, move="archive")
    return _shown(turn, archived)


def _mine(turn: Turn, name: str) -> Conversation:
    channel = conversations.channel_named(turn, name)
    if channel.created_by != turn.sender:
        turn.permit(Deed.ADMINISTER, conversations.subject_of_place(channel))
    return channel
