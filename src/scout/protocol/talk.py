"""Requests about talk: messages, the inbox, conversations and channels."""

from typing import Annotated, Any, ClassVar

from scout.base.record import Record
from scout.base.time import Time
from scout.model.conversation import (
    Attachment,
    DeliveryReceipt,
    Message,
    MessageKind,
    Receipt,
)
from scout.protocol.parameters import Body, Cursor, Limit, Words, says
from scout.protocol.request import Page, Request, Write

__all__ = [
    "Blob",
    "GetBlob",
    "GetMessage",
    "Hit",
    "Latest",
    "LatestItem",
    "ListMessages",
    "MessageLine",
    "MessageView",
    "PutBlob",
    "RedactMessage",
    "Reply",
    "Search",
    "Send",
]


class Send(Write[Receipt]):
    """Post a durable message. It starts no program unless it says so."""

    operation: ClassVar[str] = "send"
    route: ClassVar[str] = "POST /v1/messages"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("to", "body")
    flags: ClassVar[dict[str, str]] = {"attachments": "attach", "conversationId": "conversation"}
    permission: ClassVar[str] = "who may address the target, or takes part in the conversation"
    settings_field: ClassVar[str] = "create"

    to: Annotated[Words | None, says("whom: any address, or a card's id")] = None
    body: Body
    channel: Annotated[Words | None, says("a channel by its name")] = None
    conversation_id: Annotated[Words | None, says("a conversation you take part in")] = None
    thread: Annotated[Words | None, says("in the thread that hangs on this message")] = None
    broadcast: Annotated[bool, says("to every agent of yours; wakes nobody")] = False
    kind: MessageKind = MessageKind.CHAT
    in_reply_to: Annotated[Words | None, says("the message it answers")] = None
    reply_to: Annotated[Words | None, says("where answers go, if not to you")] = None
    follow_up: Annotated[bool, says("you may be woken by your own message")] = False
    wake: Annotated[bool, says("start or resume the target's program for it")] = False
    attachments: Annotated[
        tuple[Words, ...], says("stored files, each as SHA256 or SHA256:NAME; at most 32")
    ] = ()
    create: Annotated[
        dict[str, Any] | None, says("the config of the agent to make, if nobody has this path yet")
    ] = None


class Reply(Write[Receipt]):
    """Answer a message or ask, in its conversation; the first answer to an ask completes it."""

    operation: ClassVar[str] = "reply"
    route: ClassVar[str] = "POST /v1/replies"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("body",)
    flags: ClassVar[dict[str, str]] = {"inReplyTo": "to", "attachments": "attach"}
    permission: ClassVar[str] = "who takes part in the conversation"

    body: Body
    in_reply_to: Annotated[
        Words | None, says("a message, ask or flight; the latest you were sent, unless said")
    ] = None
    attachments: Annotated[
        tuple[Words, ...], says("stored files, each as SHA256 or SHA256:NAME; at most 32")
    ] = ()


class MessageView(Message):
    """A message and what became of it at each target; `read` and `replied` only when it is so."""

    deliveries: tuple[DeliveryReceipt, ...] = ()
    read_by: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()


class GetMessage(Request[MessageView]):
    """Show one message and what became of it."""

    operation: ClassVar[str] = "message.show"
    route: ClassVar[str] = "GET /v1/messages/{messageId}"
    words: ClassVar[tuple[str, ...]] = ("messageId",)
    permission: ClassVar[str] = "who may read the conversation"

    message_id: Words


class MessageLine(Message):
    """A message and what its sender is called."""

    sender_address: str


class ListMessages(Request[Page[MessageLine]]):
    """List a conversation's messages, oldest first."""

    operation: ClassVar[str] = "message.list"
    route: ClassVar[str] = "GET /v1/messages"
    flags: ClassVar[dict[str, str]] = {"newest": "newest"}
    permission: ClassVar[str] = "who may read the conversation"

    conversation: Annotated[Words | None, says("the conversation's id")] = None
    channel: Annotated[Words | None, says("or a channel by its name")] = None
    to: Annotated[Words | None, says("or the direct talk with this address")] = None
    newest: Annotated[bool, says("the last page instead of the first")] = False
    cursor: Cursor = None
    limit: Limit = None


class RedactMessage(Write[MessageView]):
    """Take a message's body out of history; that it was there stays."""

    operation: ClassVar[str] = "redact"
    route: ClassVar[str] = "POST /v1/messages/{messageId}/redact"
    words: ClassVar[tuple[str, ...]] = ("messageId",)
    permission: ClassVar[str] = "the operator"

    message_id: Words


class LatestItem(Record):
    """A conversation, its newest message, and how much of it you have not read."""

    conversation_id: str
    kind: str
    name: str
    message: Message | None
    unread: int


class Latest(Request[Page[LatestItem]]):
    """Show the newest message of each of your conversations."""

    operation: ClassVar[str] = "latest"
    route: ClassVar[str] = "GET /v1/latest"
    permission: ClassVar[str] = "your own"

    cursor: Cursor = None
    limit: Limit = None


class Hit(Record):
    """Something that was found: which record, where, and the words around the match."""

    noun: str
    id: str
    conversation_id: str | None = None
    sender: str | None = None
    at: Time
    snippet: str


class Search(Request[Page[Hit]]):
    """Search the words of messages and work, newest first."""

    operation: ClassVar[str] = "search"
    route: ClassVar[str] = "GET /v1/search"
    words: ClassVar[tuple[str, ...]] = ("query",)
    permission: ClassVar[str] = "what you may read"

    query: Annotated[Words, says("the words to find")]
    cursor: Cursor = None
    limit: Limit = None


class Blob(Record):
    """The bytes of an attachment."""

    attachment: Attachment
    data: bytes


class PutBlob(Write[Attachment]):
    """Store a file, to be attached to a message by its SHA-256."""

    operation: ClassVar[str] = "attachment.put"
    route: ClassVar[str] = "POST /v1/attachments"
    status: ClassVar[int] = 201
    permission: ClassVar[str] = "the operator and every agent"

    name: Annotated[Words, says("what the file is called")]
    media_type: Annotated[Words, says("what it holds")] = "application/octet-stream"
    data: Annotated[bytes, says("its bytes, as base64")]


class GetBlob(Request[Blob]):
    """Get a stored file."""

    operation: ClassVar[str] = "attachment.get"
    route: ClassVar[str] = "GET /v1/attachments/{sha256}"
    words: ClassVar[tuple[str, ...]] = ("sha256",)
    permission: ClassVar[str] = "the operator, those who stored it, and those who may read a message with it"

    sha256: Words
