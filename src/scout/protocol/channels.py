"""Requests about where agents talk: conversations and channels."""

from enum import StrEnum
from typing import Annotated, ClassVar

from scout.model.conversation import Conversation, Member, SoftMentions
from scout.protocol.parameters import Cursor, Limit, Words, says
from scout.protocol.request import Page, Request, Write

__all__ = [
    "ArchiveChannel",
    "ChannelPolicy",
    "ChannelView",
    "ConversationView",
    "CreateChannel",
    "GetConversation",
    "JoinChannel",
    "LeaveChannel",
    "ListChannels",
    "ListConversations",
    "MarkRead",
    "MemberRole",
    "MemberView",
    "ShowChannel",
]


class MemberRole(StrEnum):
    """What somebody is in a channel, beside taking part."""

    OWNER = "owner"
    MASTER = "master"


class MemberView(Member):
    """One who takes part: what it is called, and what it is responsible for."""

    address: str
    roles: tuple[MemberRole, ...] = ()


class ConversationView(Conversation):
    """A conversation, who is in it, and where you have read to."""

    members: tuple[MemberView, ...] = ()
    unread: int = 0


class ListConversations(Request[Page[ConversationView]]):
    """List the conversations you take part in, newest first."""

    operation: ClassVar[str] = "conversation.list"
    route: ClassVar[str] = "GET /v1/conversations"
    permission: ClassVar[str] = "your own"

    cursor: Cursor = None
    limit: Limit = None


class GetConversation(Request[ConversationView]):
    """Show one conversation."""

    operation: ClassVar[str] = "conversation.show"
    route: ClassVar[str] = "GET /v1/conversations/{conversationId}"
    words: ClassVar[tuple[str, ...]] = ("conversationId",)
    permission: ClassVar[str] = "who may read it"

    conversation_id: Words


class MarkRead(Write[ConversationView]):
    """Say up to where you have read; a cursor never goes back."""

    operation: ClassVar[str] = "conversation.read"
    route: ClassVar[str] = "POST /v1/conversations/{conversationId}/read"
    words: ClassVar[tuple[str, ...]] = ("conversationId",)
    permission: ClassVar[str] = "who takes part in it"

    conversation_id: Words
    message_id: Annotated[Words | None, says("up to this message; to the end unless said")] = None


class ChannelView(ConversationView):
    """A channel."""


class CreateChannel(Write[ChannelView]):
    """Make a channel, or get the one that has this name."""

    operation: ClassVar[str] = "channel.create"
    route: ClassVar[str] = "POST /v1/channels"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("name",)
    flags: ClassVar[dict[str, str]] = {"members": "member"}
    permission: ClassVar[str] = "the operator and every agent"

    name: Annotated[Words, says("its name, folded to lower case")]
    members: Annotated[tuple[Words, ...], says("who takes part, by address")] = ()
    master: Annotated[Words | None, says("who is responsible for what nobody else owns")] = None
    soft_mentions: Annotated[SoftMentions, says("what a mention inside a body does")] = SoftMentions.RECORD
    quiet: Annotated[bool, says("wake nobody at all")] = False


Channel = Annotated[Words, says("the channel's name or id")]


class ListChannels(Request[Page[ChannelView]]):
    """List your user's channels, newest first."""

    operation: ClassVar[str] = "channel.list"
    route: ClassVar[str] = "GET /v1/channels"
    permission: ClassVar[str] = "what you may see"

    joined: Annotated[bool, says("only those you take part in")] = False
    cursor: Cursor = None
    limit: Limit = None


class ShowChannel(Request[ChannelView]):
    """Show one channel and its members."""

    operation: ClassVar[str] = "channel.show"
    route: ClassVar[str] = "GET /v1/channels/{name}"
    words: ClassVar[tuple[str, ...]] = ("name",)
    permission: ClassVar[str] = "who may read it"

    name: Channel


class JoinChannel(Write[ChannelView]):
    """Take part in a channel, or let another take part."""

    operation: ClassVar[str] = "channel.join"
    route: ClassVar[str] = "POST /v1/channels/{name}/join"
    words: ClassVar[tuple[str, ...]] = ("name",)
    flags: ClassVar[dict[str, str]] = {"members": "member"}
    permission: ClassVar[str] = "agents of the channel's user"

    name: Channel
    members: Annotated[tuple[Words, ...], says("who; you unless said")] = ()


class LeaveChannel(Write[ChannelView]):
    """Leave a channel, or take others out of it; what was said stays."""

    operation: ClassVar[str] = "channel.leave"
    route: ClassVar[str] = "POST /v1/channels/{name}/leave"
    words: ClassVar[tuple[str, ...]] = ("name",)
    flags: ClassVar[dict[str, str]] = {"members": "member"}
    permission: ClassVar[str] = "who takes part in it; others, who made it or controls them"

    name: Channel
    members: Annotated[tuple[Words, ...], says("who; you unless said")] = ()


class ChannelPolicy(Write[ChannelView]):
    """Say who is responsible in a channel, and whom its messages wake."""

    operation: ClassVar[str] = "channel.policy"
    route: ClassVar[str] = "POST /v1/channels/{name}/policy"
    words: ClassVar[tuple[str, ...]] = ("name",)
    permission: ClassVar[str] = "who made it, or the operator"

    name: Channel
    master: Annotated[Words | None, says("who is responsible for what nobody else owns")] = None
    no_master: Annotated[bool, says("nobody is responsible any more")] = False
    soft_mentions: Annotated[SoftMentions | None, says("what a mention inside a body does")] = None
    quiet: Annotated[bool | None, says("wake nobody at all")] = None


class ArchiveChannel(Write[ChannelView]):
    """Take a channel out of the lists; nothing is deleted."""

    operation: ClassVar[str] = "channel.archive"
    route: ClassVar[str] = "POST /v1/channels/{name}/archive"
    words: ClassVar[tuple[str, ...]] = ("name",)
    permission: ClassVar[str] = "who made it, or the operator"

    name: Channel
