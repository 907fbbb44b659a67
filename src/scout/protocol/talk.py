"""Requests about messages: send, reply, list, search and attach files."""

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
from scout.protocol.parameters import Body, Cursor, Limit, Words, describe
from scout.protocol.request import Page, Request, Write


class Send(Write[Receipt]):
    """Send a stored message. It starts no program unless you pass --wake."""

    operation: ClassVar[str] = "send"
    route: ClassVar[str] = "POST /v1/messages"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("to", "body")
    flags: ClassVar[dict[str, str]] = {"attachments": "attach", "conversationId": "conversation"}
    permission: ClassVar[str] = "callers who may address the target, or members of the conversation"
    settings_field: ClassVar[str] = "create"

    to: Annotated[Words | None, describe("the recipient: any address, or a card's id")] = None
    body: Body
    channel: Annotated[Words | None, describe("the name of a channel")] = None
    conversation_id: Annotated[Words | None, describe("a conversation you are a member of")] = None
    thread: Annotated[Words | None, describe("the message whose thread to post in")] = None
    broadcast: Annotated[bool, describe("send to all your agents without waking any")] = False
    all_nodes: Annotated[bool, describe("with broadcast: also to your agents on your other machines")] = False
    kind: MessageKind = MessageKind.CHAT
    in_reply_to: Annotated[Words | None, describe("the message this one answers")] = None
    reply_to: Annotated[Words | None, describe("where replies go; default: you")] = None
    follow_up: Annotated[bool, describe("allow this message to wake you")] = False
    wake: Annotated[bool, describe("start or resume the recipient's program")] = False
    attachments: Annotated[
        tuple[Words, ...], describe("stored files, each as SHA256 or SHA256:NAME; maximum 32")
    ] = ()
    create: Annotated[
        dict[str, Any] | None, describe("settings of the agent to create if the path is free")
    ] = None


class Reply(Write[Receipt]):
    """Reply to a message or ask in its conversation. The first reply to an ask completes it."""

    operation: ClassVar[str] = "reply"
    route: ClassVar[str] = "POST /v1/replies"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("body",)
    flags: ClassVar[dict[str, str]] = {"inReplyTo": "to", "attachments": "attach"}
    permission: ClassVar[str] = "members of the conversation"

    body: Body
    in_reply_to: Annotated[
        Words | None, describe("a message, ask or flight; default: the latest sent to you")
    ] = None
    attachments: Annotated[
        tuple[Words, ...], describe("stored files, each as SHA256 or SHA256:NAME; maximum 32")
    ] = ()


class MessageView(Message):
    """A message with its deliveries, readers and replies."""

    deliveries: tuple[DeliveryReceipt, ...] = ()
    read_by: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()


class GetMessage(Request[MessageView]):
    """Show a message with its deliveries, readers and replies."""

    operation: ClassVar[str] = "message.show"
    route: ClassVar[str] = "GET /v1/messages/{messageId}"
    words: ClassVar[tuple[str, ...]] = ("messageId",)
    permission: ClassVar[str] = "callers who may read the conversation"

    message_id: Words


class MessageLine(Message):
    """A message with its sender's address, and the sender's node if it is another one."""

    sender_address: str
    sender_node: str | None = None


class ListMessages(Request[Page[MessageLine]]):
    """List a conversation's messages, oldest first."""

    operation: ClassVar[str] = "message.list"
    route: ClassVar[str] = "GET /v1/messages"
    flags: ClassVar[dict[str, str]] = {"newest": "newest"}
    permission: ClassVar[str] = "callers who may read the conversation"

    conversation: Annotated[Words | None, describe("the conversation's id")] = None
    channel: Annotated[Words | None, describe("or the name of a channel")] = None
    to: Annotated[Words | None, describe("or the direct conversation with this address")] = None
    newest: Annotated[bool, describe("start with the newest page")] = False
    cursor: Cursor = None
    limit: Limit = None


class RedactMessage(Write[MessageView]):
    """Erase a message's body. The record that it was sent stays."""

    operation: ClassVar[str] = "redact"
    route: ClassVar[str] = "POST /v1/messages/{messageId}/redact"
    words: ClassVar[tuple[str, ...]] = ("messageId",)
    permission: ClassVar[str] = "the operator"

    message_id: Words


class LatestItem(Record):
    """A conversation with its newest message and unread count."""

    conversation_id: str
    kind: str
    name: str
    message: Message | None
    unread: int


class Latest(Request[Page[LatestItem]]):
    """Show the newest message of each of your conversations."""

    operation: ClassVar[str] = "latest"
    route: ClassVar[str] = "GET /v1/latest"
    permission: ClassVar[str] = "only your own"

    cursor: Cursor = None
    limit: Limit = None


class Hit(Record):
    """A search result: the record and the text around the match."""

    noun: str
    id: str
    conversation_id: str | None = None
    sender: str | None = None
    at: Time
    snippet: str


class Search(Request[Page[Hit]]):
    """Search messages and work items, newest first."""

    operation: ClassVar[str] = "search"
    route: ClassVar[str] = "GET /v1/search"
    words: ClassVar[tuple[str, ...]] = ("query",)
    permission: ClassVar[str] = "only what you may read"

    query: Annotated[Words, describe("the words to search for")]
    cursor: Cursor = None
    limit: Limit = None


class Blob(Record):
    """The bytes of an attachment."""

    attachment: Attachment
    data: bytes


class PutBlob(Write[Attachment]):
    """Store a file. Attach it to a message by its SHA-256."""

    operation: ClassVar[str] = "attachment.put"
    route: ClassVar[str] = "POST /v1/attachments"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("name",)
    permission: ClassVar[str] = "the operator and all agents"

    name: Annotated[Words, describe("file name")]
    media_type: Annotated[Words, describe("media type")] = "application/octet-stream"
    data: Annotated[bytes, describe("content, base64")]


class GetBlob(Request[Blob]):
    """Download a stored file."""

    operation: ClassVar[str] = "attachment.get"
    route: ClassVar[str] = "GET /v1/attachments/{sha256}"
    words: ClassVar[tuple[str, ...]] = ("sha256",)
    permission: ClassVar[str] = "the operator, the uploader, and readers of a message it is attached to"

    sha256: Words
