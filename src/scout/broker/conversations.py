"""Conversations and channels: who takes part, who is responsible, how far each has read."""

from collections.abc import Sequence
from typing import TypeVar

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker import posting
from scout.broker.page import after_number, page, size
from scout.broker.turn import Turn, subject_of
from scout.broker.views import enriched
from scout.identity.segment import segment
from scout.model.conversation import (
    Conversation,
    ConversationKind,
    Member,
    Message,
    advance_cursor,
    archive_conversation,
    channel_id,
    leave,
    set_policy,
    thread_id,
)
from scout.model.delivery import Delivery
from scout.model.ref import Ref
from scout.model.request_problem import NotFound
from scout.model.talk_event import (
    ConversationArchived,
    ConversationCursor,
    ConversationMember,
    ConversationPolicy,
    MessagePosted,
    message_of,
)
from scout.policy.permit import Deed, Subject
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
    MarkRead,
    ShowChannel,
)
from scout.protocol.request import Page
from scout.protocol.talk import Latest, LatestItem
from scout.store.ledger import LAST

__all__ = [
    "archive",
    "channel_named",
    "company",
    "create",
    "get",
    "join_channel",
    "latest",
    "leave_channel",
    "list_channels",
    "list_conversations",
    "mark_read",
    "may_read",
    "members_of",
    "policy",
    "show_channel",
    "thread_on",
]

V = TypeVar("V", bound=ConversationView)
_SHOWN = 200
_COUNTED = 1000
_NEWEST = (1 << 63) - 1


def members_of(turn: Turn, conversation_id: str, limit: int = _SHOWN) -> list[Member]:
    """Who takes part."""
    found = turn.ledger.many(Member, "members_of", conversation=conversation_id, after="", limit=limit)
    return [member for member in found if member.left_at is None]


def _membership(turn: Turn, conversation_id: str) -> Member | None:
    me = turn.actor.agent_id
    member = turn.ledger.one(Member, "membership", conversation=conversation_id, agent=me) if me else None
    return member if member is not None and member.left_at is None else None


def may_read(turn: Turn, conversation: Conversation) -> Conversation:
    """The same conversation, if the caller may read it."""
    if conversation.kind is ConversationKind.THREAD:
        may_read(turn, turn.need(Conversation, "conversation", conversation.parent_id or ""))
        return conversation
    mine = _membership(turn, conversation.id)
    told_all = conversation.kind is ConversationKind.BROADCAST and conversation.owner == turn.actor.user
    if mine is None and not told_all:
        turn.permit(Deed.READ, _subject(conversation, ()))
    return conversation


def thread_on(turn: Turn, message_id: str) -> Conversation:
    """The thread that hangs on a message; who may read the message may open it."""
    message = turn.need(Message, "message", message_id)
    parent = may_read(turn, turn.need(Conversation, "conversation", message.conversation_id))
    found = turn.conversation(thread_id(message.id))
    if found is not None:
        return found
    thread = Conversation(
        id=thread_id(message.id),
        created_at=turn.now,
        updated_at=turn.now,
        kind=ConversationKind.THREAD,
        owner=parent.owner,
        parent_id=parent.id,
        root_message_id=message.id,
        quiet=parent.quiet,
        created_by=turn.sender,
    )
    return posting.opened(turn, thread)


def company(turn: Turn, conversation: Conversation) -> list[str]:
    """Whom a message without a target is for: the other of a direct talk, or who began the thread."""
    if conversation.kind is ConversationKind.DM:
        return [one.agent_id for one in members_of(turn, conversation.id) if one.agent_id != turn.sender]
    if conversation.kind is not ConversationKind.THREAD:
        return []
    root = turn.ledger.get(Message, conversation.root_message_id)
    if root is not None and root.sender != turn.sender:
        return [root.sender]
    return company(turn, turn.need(Conversation, "conversation", conversation.parent_id or ""))


def _may_see(turn: Turn, channel: Conversation) -> Conversation:
    """The same channel; its user's agents see it in the list, and may join to read it."""
    return channel if channel.owner == turn.actor.user else may_read(turn, channel)


def _subject(conversation: Conversation, members: tuple[str, ...]) -> Subject:
    return Subject(
        name=conversation.name or conversation.id,
        conversation_id=conversation.id,
        user=conversation.owner,
        members=members,
    )


def _shown(turn: Turn, kind: type[V], conversation: Conversation) -> V:
    members = members_of(turn, conversation.id)
    mine = next((one for one in members if one.agent_id == turn.actor.agent_id), None)
    return enriched(kind, conversation, members=tuple(members), unread=_unread(turn, mine))


def _unread(turn: Turn, member: Member | None) -> int:
    if member is None:
        return 0
    return turn.ledger.value(
        "messages_unread",
        conversation=member.conversation_id,
        after=member.read_seq,
        reader=member.agent_id,
        limit=_COUNTED,
    )


def get(turn: Turn, request: GetConversation) -> ConversationView:
    """One conversation."""
    conversation = turn.need(Conversation, "conversation", request.conversation_id)
    return _shown(turn, ConversationView, may_read(turn, conversation))


def list_conversations(turn: Turn, request: ListConversations) -> Page[ConversationView]:
    """The conversations that the caller takes part in, newest first."""
    wanted = size(request.limit, turn.rules.limits)
    bound = after_number(request.cursor, _NEWEST)
    mine = turn.ledger.many(Member, "memberships", agent=turn.sender, before=bound, limit=wanted + 1)
    listed = page(mine, wanted, lambda member: int(member.created_at))
    found = [turn.need(Conversation, "conversation", member.conversation_id) for member in listed.items]
    return Page(items=tuple(_shown(turn, ConversationView, one) for one in found), next=listed.next)


def mark_read(turn: Turn, request: MarkRead) -> ConversationView:
    """The caller has read up to a message, or to the end."""
    conversation = turn.need(Conversation, "conversation", request.conversation_id)
    member = _membership(turn, conversation.id)
    if member is None:
        may_read(turn, conversation)
        problem = "only who takes part in a conversation has a place in it"
        raise Refused(BadRequest(problem=problem, field="conversationId"))
    message = _newest(turn, conversation.id)
    if request.message_id is not None:
        message = turn.need(Message, "message", request.message_id)
        if message.conversation_id != conversation.id:
            raise turn.missing("message", request.message_id)
    moved = advance_cursor(member, message.seq if message else 0, turn.now)
    if moved is not member:
        turn.record(ConversationCursor, moved, move="read", target=conversation.id)
    return _shown(turn, ConversationView, conversation)


def _newest(turn: Turn, conversation_id: str) -> Message | None:
    return turn.ledger.one(Message, "messages_before", conversation=conversation_id, before=_NEWEST, limit=1)


def latest(turn: Turn, request: Latest) -> Page[LatestItem]:
    """The newest message of each conversation: those one last joined, and where something came or went."""
    wanted = size(request.limit, turn.rules.limits)
    reach = 4 * wanted
    said = turn.ledger.facts("said_by", ref=str(Ref.to(turn.sender)), limit=reach)
    ours = [message_of(event) for event in said if isinstance(event, MessagePosted)]
    came = turn.ledger.many(Delivery, "deliveries_to", agent=turn.sender, before=LAST, limit=reach)
    got = [turn.ledger.get(Message, one.message_id) for one in came]
    joined = turn.ledger.many(Member, "memberships", agent=turn.sender, before=_NEWEST, limit=reach)
    places = [one.conversation_id for one in (*ours, *(one for one in got if one), *joined)]
    found = [_newest(turn, place) for place in dict.fromkeys(places)]
    newest = sorted((one for one in found if one), key=lambda one: -one.seq)
    return Page(items=tuple(_latest_item(turn, message) for message in newest[:wanted]))


def _latest_item(turn: Turn, newest: Message) -> LatestItem:
    conversation = turn.need(Conversation, "conversation", newest.conversation_id)
    others = [one for one in members_of(turn, conversation.id, 3) if one.agent_id != turn.sender]
    name = conversation.name or ", ".join(turn.canonical(one.agent_id) for one in others)
    return LatestItem(
        conversation_id=conversation.id,
        kind=conversation.kind,
        name=name,
        message=newest,
        unread=_unread(turn, _membership(turn, conversation.id)),
    )


# -- channels ----------------------------------------------------------------------------------------


def channel_named(turn: Turn, name: str) -> Conversation:
    """A channel by its name or id, or the refusal that there is none."""
    owner = turn.actor.user or turn.world.operator
    folded = name if name.startswith("cnv_") else segment(name.removeprefix("channel:").lstrip("#"))
    ident = folded if name.startswith("cnv_") else channel_id(owner, folded)
    found = turn.ledger.get(Conversation, ident)
    if found is None or found.kind is not ConversationKind.CHANNEL:
        make = Remedy(operation="channel.create", parameters={"name": folded}, why="make it")
        look = Remedy(operation="channel.list", parameters={}, why="the channels there are")
        remedies = (look,) if name.startswith("cnv_") else (make, look)
        raise Refused(NotFound(noun="channel", id=name[:60], remedies=remedies))
    return found


def create(turn: Turn, request: CreateChannel) -> ChannelView:
    """Make a channel; the same name of the same user is the same channel."""
    owner, name = turn.actor.user or turn.world.operator, segment(request.name)
    ident = channel_id(owner, name)
    channel = turn.ledger.get(Conversation, ident)
    if channel is None:
        channel = Conversation(
            id=ident,
            created_at=turn.now,
            updated_at=turn.now,
            kind=ConversationKind.CHANNEL,
            name=name,
            owner=owner,
            master_id=_agent(turn, request.master),
            soft_mentions=request.soft_mentions,
            quiet=request.quiet,
            created_by=turn.sender,
        )
        posting.opened(turn, channel)
    posting.joined(turn, ident, turn.sender)
    _let_in(turn, channel, request.members)
    return _shown(turn, ChannelView, channel)


def _let_in(turn: Turn, channel: Conversation, addresses: Sequence[str]) -> None:
    for address in addresses:
        agent = turn.resolve(address).agent
        turn.permit(Deed.ADDRESS, subject_of(agent))
        posting.joined(turn, channel.id, agent.id)


def _agent(turn: Turn, address: str | None) -> str | None:
    return turn.resolve(address).agent.id if address else None


def list_channels(turn: Turn, request: ListChannels) -> Page[ChannelView]:
    """The channels of the caller's user, newest first."""
    wanted = size(request.limit, turn.rules.limits)
    bound = after_number(request.cursor, _NEWEST)
    owner = turn.actor.user or turn.world.operator
    found = turn.ledger.many(Conversation, "channels_of", owner=owner, before=bound, limit=wanted + 1)
    listed = page(found, wanted, lambda channel: int(channel.created_at))
    return Page(items=tuple(_shown(turn, ChannelView, one) for one in listed.items), next=listed.next)


def show_channel(turn: Turn, request: ShowChannel) -> ChannelView:
    """One channel."""
    return _shown(turn, ChannelView, _may_see(turn, channel_named(turn, request.name)))


def join_channel(turn: Turn, request: JoinChannel) -> ChannelView:
    """Take part, or let an agent that one may address take part."""
    channel = channel_named(turn, request.name)
    _check_user(turn, channel)
    _let_in(turn, channel, request.members)
    if not request.members:
        posting.joined(turn, channel.id, turn.sender)
    return _shown(turn, ChannelView, channel)


def _check_user(turn: Turn, channel: Conversation) -> None:
    """A channel is open to the agents of its user; others need a grant."""
    if channel.owner != turn.actor.user:
        turn.permit(Deed.ADDRESS, _subject(channel, ()))


def leave_channel(turn: Turn, request: LeaveChannel) -> ChannelView:
    """No longer take part."""
    channel = _may_see(turn, channel_named(turn, request.name))
    member = _membership(turn, channel.id)
    if member is not None:
        turn.record(ConversationMember, leave(member, turn.now), move="leave", target=channel.id)
    return _shown(turn, ChannelView, channel)


def policy(turn: Turn, request: ChannelPolicy) -> ChannelView:
    """Who is responsible, and whom messages wake."""
    channel = _mine(turn, request.name)
    changed = set_policy(
        channel,
        turn.now,
        master_id=_agent(turn, request.master),
        soft_mentions=request.soft_mentions,
        quiet=request.quiet,
    )
    return _shown(turn, ChannelView, turn.record(ConversationPolicy, changed, move="policy"))


def archive(turn: Turn, request: ArchiveChannel) -> ChannelView:
    """Out of the lists."""
    channel = _mine(turn, request.name)
    archived = archive_conversation(channel, turn.now)
    if archived is not channel:
        turn.record(ConversationArchived, archived, move="archive")
    return _shown(turn, ChannelView, archived)


def _mine(turn: Turn, name: str) -> Conversation:
    channel = channel_named(turn, name)
    if channel.created_by != turn.sender:
        turn.permit(Deed.ADMINISTER, _subject(channel, ()))
    return channel
