"""Requests about conversations and channels."""

from enum import StrEnum
from typing import Annotated, ClassVar

from scout.model.conversation import Conversation, Member, SoftMentions
from scout.protocol.parameters import Cursor, Limit, Words, describe
from scout.protocol.request import Page, Request, Write


class MemberRole(StrEnum):
    """A member's role in a channel."""

    OWNER = "owner"
    MASTER = "master"


class MemberView(Member):
    """A member with its address and roles, and its node if it is another one."""

    address: str
    node: str | None = None
    roles: tuple[MemberRole, ...] = ()


class ConversationView(Conversation):
    """A conversation with its members and your unread count."""

    members: tuple[MemberView, ...] = ()
    unread: int = 0


class ListConversations(Request[Page[ConversationView]]):
    """List your conversations, newest first."""

    operation: ClassVar[str] = "conversation.list"
    route: ClassVar[str] = "GET /v1/conversations"
    permission: ClassVar[str] = "only your own"

    cursor: Cursor = None
    limit: Limit = None


class GetConversation(Request[ConversationView]):
    """Show one conversation."""

    operation: ClassVar[str] = "conversation.show"
    route: ClassVar[str] = "GET /v1/conversations/{conversationId}"
    words: ClassVar[tuple[str, ...]] = ("conversationId",)
    permission: ClassVar[str] = "callers who may read it"

    conversation_id: Words


class MarkRead(Write[ConversationView]):
    """Mark a conversation as read. The mark never moves back."""

    operation: ClassVar[str] = "conversation.read"
    route: ClassVar[str] = "POST /v1/conversations/{conversationId}/read"
    words: ClassVar[tuple[str, ...]] = ("conversationId",)
    permission: ClassVar[str] = "members"

    conversation_id: Words
    message_id: Annotated[Words | None, describe("up to this message; default: the newest")] = None


class ChannelView(ConversationView):
    """A channel."""


class CreateChannel(Write[ChannelView]):
    """Create a channel, or return the existing one of that name."""

    operation: ClassVar[str] = "channel.create"
    route: ClassVar[str] = "POST /v1/channels"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("name",)
    flags: ClassVar[dict[str, str]] = {"members": "member"}
    permission: ClassVar[str] = "the operator and all agents"

    name: Annotated[Words, describe("the channel's name, in lower case")]
    members: Annotated[tuple[Words, ...], describe("member addresses")] = ()
    master: Annotated[Words | None, describe("the member responsible for messages without another owner")] = (
        None
    )
    soft_mentions: Annotated[SoftMentions, describe("what a mention inside a message does")] = (
        SoftMentions.RECORD
    )
    quiet: Annotated[bool, describe("messages here wake no agent")] = False


Channel = Annotated[Words, describe("the channel's name or id")]


class ListChannels(Request[Page[ChannelView]]):
    """List channels, newest first."""

    operation: ClassVar[str] = "channel.list"
    route: ClassVar[str] = "GET /v1/channels"
    permission: ClassVar[str] = "only what you may see"

    joined: Annotated[bool, describe("only channels you are a member of")] = False
    cursor: Cursor = None
    limit: Limit = None


class ShowChannel(Request[ChannelView]):
    """Show one channel and its members."""

    operation: ClassVar[str] = "channel.show"
    route: ClassVar[str] = "GET /v1/channels/{name}"
    words: ClassVar[tuple[str, ...]] = ("name",)
    permission: ClassVar[str] = "callers who may read it"

    name: Channel


class JoinChannel(Write[ChannelView]):
    """Join a channel, or add members to it."""

    operation: ClassVar[str] = "channel.join"
    route: ClassVar[str] = "POST /v1/channels/{name}/join"
    words: ClassVar[tuple[str, ...]] = ("name",)
    flags: ClassVar[dict[str, str]] = {"members": "member"}
    permission: ClassVar[str] = "agents of the channel's user"

    name: Channel
    members: Annotated[tuple[Words, ...], describe("the members; default: you")] = ()


class LeaveChannel(Write[ChannelView]):
    """Leave a channel, or remove members. Messages stay."""

    operation: ClassVar[str] = "channel.leave"
    route: ClassVar[str] = "POST /v1/channels/{name}/leave"
    words: ClassVar[tuple[str, ...]] = ("name",)
    flags: ClassVar[dict[str, str]] = {"members": "member"}
    permission: ClassVar[str] = "yourself; others: the channel's creator, or callers who control them"

    name: Channel
    members: Annotated[tuple[Words, ...], describe("the members; default: you")] = ()


class ChannelPolicy(Write[ChannelView]):
    """Set a channel's master and whom its messages wake."""

    operation: ClassVar[str] = "channel.policy"
    route: ClassVar[str] = "POST /v1/channels/{name}/policy"
    words: ClassVar[tuple[str, ...]] = ("name",)
    permission: ClassVar[str] = "its creator, or the operator"

    name: Channel
    master: Annotated[Words | None, describe("the member responsible for messages without another owner")] = (
        None
    )
    no_master: Annotated[bool, describe("remove the master")] = False
    soft_mentions: Annotated[SoftMentions | None, describe("what a mention inside a message does")] = None
    quiet: Annotated[bool | None, describe("messages here wake no agent")] = None


class ArchiveChannel(Write[ChannelView]):
    """Archive a channel. Nothing is deleted."""

    operation: ClassVar[str] = "channel.archive"
    route: ClassVar[str] = "POST /v1/channels/{name}/archive"
    words: ClassVar[tuple[str, ...]] = ("name",)
    permission: ClassVar[str] = "its creator, or the operator"

    name: Channel
