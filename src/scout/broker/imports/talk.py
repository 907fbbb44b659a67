"""Imported conversations and messages. Nothing is delivered, and what was read there is read here."""

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.broker.imports.part import ImportPart
from scout.broker.routing import posts
from scout.broker.routing.conversations import list_members
from scout.identity.spelling import list_import_names
from scout.model.conversation import (
    Conversation,
    ConversationKind,
    Member,
    Message,
    advance_cursor,
    check_body,
    derive_channel_id,
    derive_dm_id,
    derive_thread_id,
    make_storable,
)
from scout.model.events.envelope import Metadata
from scout.model.events.talk import ConversationCursor, MessagePosted, build_post
from scout.protocol.imports.records import ImportedConversation, ImportedMessage
from scout.protocol.imports.requests import ImportOutcome

# -- conversations -----------------------------------------------------------------------------------


def take_conversation(part: ImportPart, record: ImportedConversation) -> ImportOutcome:
    """Store a conversation with its members. Two members are a direct one, of which each pair has one."""
    members = tuple(dict.fromkeys(part.resolve_agent(one) for one in record.members))
    if record.kind == "thread" and record.parent and record.root_message:
        parent = part.resolve_conversation(record.parent)
        root = part.derive_message_id(record.root_message)
        thread = _build_conversation(part, record, derive_thread_id(root), ConversationKind.THREAD)
        return _store(part, record, replace(thread, parent_id=parent, root_message_id=root), ())
    if record.kind == "dm" and len(members) == 2:
        direct = _build_conversation(part, record, derive_dm_id(*members), ConversationKind.DM)
        return _store(part, record, replace(direct, owner=None), members)
    return _take_channel(part, record, members)


def _take_channel(part: ImportPart, record: ImportedConversation, members: tuple[str, ...]) -> ImportOutcome:
    """Store a channel under its own name, or the next free one."""
    reason = ""
    for name in list_import_names(record.name, part.system, record.id):
        ident = derive_channel_id(part.tx.services.operator, name)
        there = part.tx.get(Conversation, ident)
        if there is None or there.imported_from == part.get_origin(record):
            channel = _build_conversation(part, record, ident, ConversationKind.CHANNEL)
            return _store(part, record, replace(channel, name=name), members, reason)
        reason = reason or f"#{name} was taken"
    raise Refused(BadRequest(problem=reason, field="name"))


def _build_conversation(
    part: ImportPart, record: ImportedConversation, ident: str, kind: ConversationKind
) -> Conversation:
    tx = part.tx
    return Conversation(
        id=ident,
        created_at=record.created_at or tx.now,
        updated_at=tx.now,
        kind=kind,
        owner=tx.services.operator,
        created_by=tx.sender,
        imported_from=part.get_origin(record),
    )


def _store(
    part: ImportPart,
    record: ImportedConversation,
    conversation: Conversation,
    members: tuple[str, ...],
    reason: str = "",
) -> ImportOutcome:
    name = f"#{conversation.name}" if conversation.name else conversation.kind
    if part.tx.get(Conversation, conversation.id) is not None:
        return part.find(record, conversation.id, name)
    if not part.dry:
        rows = tuple(posts.build_member(part.tx, conversation.id, one) for one in members)
        posts.create_conversation(part.tx, conversation, rows)
    return part.take(record, conversation.id, name, reason)


# -- messages ----------------------------------------------------------------------------------------


class ReadPositions:
    """Moves the members of a conversation past imported messages that were read in the other system.

    A member that had not read everything before stays where it is.
    """

    def __init__(self, part: ImportPart) -> None:
        self._tx = part.tx
        self._members: dict[str, list[Member]] = {}
        self._read: dict[str, int] = {}

    def open(self, conversation_id: str) -> None:
        """Remember who has read everything so far."""
        if conversation_id in self._members:
            return
        newest = posts.find_newest_message(self._tx, conversation_id)
        last = newest.seq if newest is not None else 0
        members = list_members(self._tx, conversation_id)
        self._members[conversation_id] = [one for one in members if one.read_seq >= last]

    def note(self, conversation_id: str, seq: int, *, unread: bool) -> None:
        """Note a new message; after one that was not read, nothing counts as read."""
        if not unread and self._read.get(conversation_id, 0) >= 0:
            self._read[conversation_id] = seq
        elif self._read.get(conversation_id, 0) >= 0:
            self._move(conversation_id)
            self._read[conversation_id] = -1

    def move_all(self) -> None:
        """Store the new positions."""
        for conversation_id in self._read:
            self._move(conversation_id)

    def _move(self, conversation_id: str) -> None:
        read = self._read.get(conversation_id, 0)
        for member in self._members[conversation_id]:
            moved = advance_cursor(member, read, self._tx.now)
            if moved is not member:
                self._tx.record(ConversationCursor, moved, move="import", target=conversation_id)


def take_message(part: ImportPart, record: ImportedMessage, positions: ReadPositions) -> ImportOutcome:
    """Store a message with the time at which it was written."""
    tx, ident = part.tx, part.derive_message_id(record.id)
    if tx.get(Message, ident) is not None:
        return part.find(record, ident)
    body = check_body(make_storable(record.body))
    if not body.strip():
        return part.skip(record, "it has no text")
    conversation = part.resolve_conversation(record.conversation)
    sender = part.resolve_agent(record.sender)
    if not part.dry:
        positions.open(conversation)
        message = Message(
            id=ident,
            conversation_id=conversation,
            sender=sender,
            body=body,
            kind=record.kind,
            in_reply_to=_find_asked(part, record),
            created_at=_clamp(record.created_at, tx.now),
            imported_from=part.get_origin(record),
        )
        posted = _post(part, message)
        positions.note(conversation, posted.seq, unread=record.unread)
        if record.unread:
            _leave_in_inboxes(part, posted)
    return part.take(record, ident)


def _post(part: ImportPart, message: Message) -> Message:
    beside, source = Metadata(in_reply_to=message.in_reply_to), message.sender
    event = part.tx.append(MessagePosted, message.conversation_id, build_post(message), beside, source=source)
    return replace(message, seq=event.seq)


def _leave_in_inboxes(part: ImportPart, message: Message) -> None:
    """Leave an unread direct message in the inbox of the other agent, which is not woken for it."""
    conversation = part.tx.conversation(message.conversation_id)
    if conversation is None or conversation.kind is not ConversationKind.DM:
        return  # a group message is unread by the position of its reader
    for member in list_members(part.tx, message.conversation_id):
        if member.agent_id != message.sender:
            posts.create_delivery(part.tx, message, member.agent_id, rule="import", reason="it was unread")


def _find_asked(part: ImportPart, record: ImportedMessage) -> str | None:
    """Return the message that this one replies to, if it was imported."""
    asked = part.derive_message_id(record.in_reply_to) if record.in_reply_to else None
    return asked if asked is not None and part.tx.get(Message, asked) is not None else None


def _clamp(written: Time | None, now: Time) -> Time:
    """Return when a message was written; one without a time, or from the future, is as old as its import."""
    return min(written, now) if written is not None else now
