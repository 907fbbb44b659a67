"""Conversations (DM, channel, thread, broadcast) with their members, messages and receipts."""

import functools
import re
from enum import StrEnum

import msgspec
from msgspec import UNSET

from scout.base.ids import derive_id
from scout.base.machine import Mutable, change_record
from scout.base.record import Record
from scout.base.refusal import PLACEHOLDER, BadRequest, Refused, Remedy
from scout.base.time import Time
from scout.model.imported import Origin
from scout.model.mesh_receipt import MeshReceipt
from scout.model.problems.request import TooLarge

BODY_LIMIT = 256 * 1024
_HALF = re.compile("[\ud800-\udfff]")
_NUL, _SHOWN_NUL = "\0", "\u2400"
_UNREADABLE = "\ufffd"


class ConversationKind(StrEnum):
    DM = "dm"
    CHANNEL = "channel"
    THREAD = "thread"
    BROADCAST = "broadcast"


class SoftMentions(StrEnum):
    """The effect of a mention inside a body in this conversation."""

    RECORD = "record"
    WAKE = "wake"


class Conversation(Mutable):
    """One conversation. `master_id`: the agent responsible by default; `quiet`: no agent is woken."""

    kind: ConversationKind
    name: str | None = None
    owner: str | None = None
    master_id: str | None = None
    parent_id: str | None = None
    root_message_id: str | None = None
    soft_mentions: SoftMentions = SoftMentions.RECORD
    quiet: bool = False
    archived_at: Time | None = None
    created_by: str
    imported_from: Origin = UNSET


class Member(Mutable):
    """The membership of one agent in one conversation. `read_seq` is the last event it has read."""

    conversation_id: str
    agent_id: str
    read_seq: int = 0
    muted: bool = False
    left_at: Time | None = None


class MessageKind(StrEnum):
    CHAT = "chat"
    STATUS = "status"
    FINAL = "final"
    QUESTION = "question"
    ANSWER = "answer"


class Attachment(Record):
    """A file attached to a message, stored once under its SHA-256."""

    sha256: str
    name: str
    size: int
    media_type: str = "application/octet-stream"


class Message(Record):
    """One message, ordered by `seq`. The body is stored as the sender wrote it; only redaction removes it.

    `reply_to`: the agent that receives the answers, if it is not the sender.
    """

    id: str
    seq: int = 0
    conversation_id: str
    sender: str
    sender_session_id: str | None = None
    body: str
    kind: MessageKind = MessageKind.CHAT
    follow_up: bool = False
    in_reply_to: str | None = None
    reply_to: str | None = None
    mentions: tuple[str, ...] = ()
    target_agents: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    ask_id: str | None = None
    work_item_id: str | None = None
    flight_id: str | None = None
    created_at: Time
    redacted_at: Time | None = None
    imported_from: Origin = UNSET


class DeliveryReceipt(Record):
    """The outcome of a message at one target."""

    delivery_id: str
    target: str
    address: str
    state: str
    reason: str = ""
    attempts: int = 0
    may_repeat: bool = False
    mesh: MeshReceipt | None = None


class Receipt(Record):
    """The result returned to the sender once the message is on disk; it pins the alias that was used.

    `to`: the address that a reply went to.
    """

    conversation_id: str
    message_id: str
    to: str = ""
    deliveries: tuple[DeliveryReceipt, ...] = ()
    notes: tuple[str, ...] = ()
    alias_id: str | None = None
    alias_revision: int | None = None


@functools.lru_cache(maxsize=8192)
def derive_dm_id(agent_a: str, agent_b: str) -> str:
    """Return the id of the DM of two agents; it does not depend on their order or node."""
    return derive_id("cnv", "dm", *sorted((agent_a, agent_b)))


def derive_channel_id(owner: str, name: str) -> str:
    """Return the id of a user's channel with this name."""
    return derive_id("cnv", "channel", owner, name)


@functools.lru_cache(maxsize=1024)
def derive_broadcast_id(user: str) -> str:
    """Return the id of the conversation for broadcasts to all agents of a user."""
    return derive_id("cnv", "broadcast", user)


def derive_thread_id(message_id: str) -> str:
    """Return the id of the thread of a message."""
    return derive_id("cnv", "thread", message_id)


def derive_member_id(conversation_id: str, agent_id: str) -> str:
    """Return the id of an agent's membership in a conversation."""
    return derive_id("mbr", conversation_id, agent_id)


def check_body(body: str) -> str:
    """Return the body; refuse one that cannot be stored unchanged."""
    try:
        size = len(body.encode())
    except UnicodeEncodeError as error:
        problem = f"a lone surrogate at character {error.start}: the body must be valid Unicode"
        raise Refused(BadRequest(problem=problem, field="body", remedies=(_ATTACH,))) from None
    if "\0" in body:
        problem = f"a NUL at character {body.index(chr(0))}: the body must be text"
        raise Refused(BadRequest(problem=problem, field="body", remedies=(_ATTACH,)))
    if size > BODY_LIMIT:
        raise Refused(TooLarge(what="body", size=size, limit=BODY_LIMIT, remedies=(_ATTACH,)))
    return body


def make_storable(text: str) -> str:
    """Return the text with unstorable characters made visible: NUL as ␀, a lone surrogate as �."""
    return _HALF.sub(_UNREADABLE, text.replace(_NUL, _SHOWN_NUL))


def shorten(text: str, limit: int) -> str:
    """Return as many whole characters as fit in `limit` bytes."""
    return text if len(text) * 4 <= limit else text.encode()[:limit].decode("utf-8", "ignore")


def check_kind(conversation: Conversation) -> Conversation:
    """Return the conversation; refuse one that lacks a field its kind needs."""
    problem = ""
    if conversation.kind is ConversationKind.CHANNEL and not (conversation.name and conversation.owner):
        problem = "a channel needs a name and an owner"
    if conversation.kind is ConversationKind.THREAD and conversation.parent_id is None:
        problem = "a thread needs its parent conversation"
    if problem:
        raise Refused(BadRequest(problem=problem, field="kind"))
    return conversation


def set_policy(
    conversation: Conversation,
    now: Time,
    *,
    seen: int | None = None,
    master_id: str | None = None,
    no_master: bool = False,
    soft_mentions: SoftMentions | None = None,
    quiet: bool | None = None,
) -> Conversation:
    """Set the master, the effect of soft mentions and quiet mode; None keeps the current value."""
    master = conversation.master_id if master_id is None else master_id
    return change_record(
        "conversation",
        conversation,
        now,
        seen=seen,
        master_id=None if no_master else master,
        soft_mentions=soft_mentions or conversation.soft_mentions,
        quiet=conversation.quiet if quiet is None else quiet,
    )


def archive_conversation(conversation: Conversation, now: Time, *, seen: int | None = None) -> Conversation:
    """Archive the conversation: it is no longer listed, but never deleted. Idempotent."""
    if conversation.archived_at is not None:
        return conversation
    return change_record("conversation", conversation, now, seen=seen, archived_at=now)


def join(member: Member, now: Time) -> Member:
    """Return the member as present again after leaving."""
    return member if member.left_at is None else change_record("member", member, now, left_at=None)


def leave(member: Member, now: Time) -> Member:
    """Return the member as having left; its read position is kept."""
    return member if member.left_at is not None else change_record("member", member, now, left_at=now)


def mute(member: Member, muted: bool, now: Time) -> Member:
    """Mute or unmute the conversation for this member."""
    return member if member.muted is muted else change_record("member", member, now, muted=muted)


def advance_cursor(member: Member, seq: int, now: Time) -> Member:
    """Move the read position to `seq`; it never moves back."""
    return member if seq <= member.read_seq else change_record("member", member, now, read_seq=seq)


def redact(message: Message, now: Time) -> Message:
    """Return the tombstone of a message: without body and attachments."""
    return msgspec.structs.replace(message, body="", attachments=(), redacted_at=now)


_ATTACH = Remedy(
    operation="send",
    parameters={"body": "see the attachment", "attachments": PLACEHOLDER},
    why="attach it as a file",
)
