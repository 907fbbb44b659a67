"""What the webhook of WhatsApp reports: messages, edits, pressed buttons, and failed deliveries."""

from typing import Any, TypeVar

import msgspec

from scout.connectors.whatsapp.errors import describe_error
from scout.connectors.wire import WireRecord, convert
from scout.ports.connector import (
    ChatPlace,
    ExternalSender,
    InboundEvent,
    InboundFailure,
    InboundPress,
    InboundText,
    RemoteFile,
)

T = TypeVar("T")
_EXTENSIONS = {
    "application/pdf": ".pdf",
    "audio/aac": ".aac",
    "audio/amr": ".amr",
    "audio/mp4": ".m4a",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "text/plain": ".txt",
    "video/3gpp": ".3gp",
    "video/mp4": ".mp4",
}
_FILES = ("image", "document", "audio", "video", "sticker")


class _Metadata(WireRecord):
    phone_number_id: str


class _Profile(WireRecord):
    name: str = ""


class _Contact(WireRecord):
    profile: _Profile = _Profile()
    wa_id: str = ""
    user_id: str = ""


class _Text(WireRecord):
    body: str


class _Context(WireRecord):
    id: str = ""


class _Pressed(WireRecord):
    id: str


class _Interactive(WireRecord):
    button_reply: _Pressed | None = None
    list_reply: _Pressed | None = None


class _Media(WireRecord):
    id: str
    mime_type: str = "application/octet-stream"
    caption: str = ""
    filename: str = ""


class _Edit(WireRecord):
    original_message_id: str
    message: dict[str, Any]


class _Message(WireRecord):
    """A message; `from_user_id` names a person who hides their phone number, too."""

    id: str
    type: str
    sender: str = msgspec.field(name="from", default="")
    from_user_id: str = ""
    group_id: str = ""
    text: _Text | None = None
    context: _Context = _Context()
    interactive: _Interactive | None = None
    image: _Media | None = None
    document: _Media | None = None
    audio: _Media | None = None
    video: _Media | None = None
    sticker: _Media | None = None
    edit: _Edit | None = None


class _Content(WireRecord):
    """The new content of an edited message."""

    type: str
    text: _Text | None = None
    image: _Media | None = None
    document: _Media | None = None
    video: _Media | None = None


class _Problem(WireRecord):
    code: int = 0
    title: str = ""
    message: str = ""
    error_data: dict[str, Any] = {}


class _Status(WireRecord):
    id: str
    status: str
    recipient_id: str = ""
    recipient_user_id: str = ""
    errors: list[_Problem] = []


class _Value(WireRecord):
    metadata: _Metadata
    contacts: list[_Contact] = []
    messages: list[Any] = []
    statuses: list[Any] = []


class _Change(WireRecord):
    field: str
    value: dict[str, Any]


class _Entry(WireRecord):
    changes: list[_Change] = []


class Notification(WireRecord):
    """One POST of the webhook. It may report several things."""

    object: str
    entry: list[_Entry] = []


def read_notification(notification: Notification, phone_number_id: str) -> list[InboundEvent]:
    """Return what a notification reports about one phone number of the bot."""
    changes = [change for entry in notification.entry for change in entry.changes]
    values = [convert(change.value, _Value) for change in changes if change.field == "messages"]
    found = list[InboundEvent]()
    for value in values:
        if value is not None and value.metadata.phone_number_id == phone_number_id:
            found += _read_messages(value)
            found += _read_statuses(value)
    return found


def _read_messages(value: _Value) -> list[InboundEvent]:
    messages = [message for one in value.messages if (message := convert(one, _Message)) is not None]
    read = [_read_message(message, _find_contact(message, value.contacts)) for message in messages]
    return [inbound for inbound in read if inbound is not None]


def _read_message(message: _Message, contact: _Contact) -> InboundEvent | None:
    """Return what a message says. Groups and other kinds of messages are left alone."""
    sender_id = message.from_user_id or contact.user_id or message.sender
    if not sender_id or message.group_id:
        return None
    sender = ExternalSender(id=sender_id, name=contact.profile.name)
    if message.type == "interactive" and message.interactive is not None:
        return _read_press(message, message.interactive, sender)
    if message.type == "edit" and message.edit is not None:
        return _read_edit(message, message.edit, sender)
    files = _read_files(message)
    if message.text is None and not files:
        return None
    return InboundText(
        id=message.id,
        place=ChatPlace(chat_id=sender_id),
        sender=sender,
        message_id=message.id,
        text=_read_words(message),
        reply_to=message.context.id or None,
        files=files,
    )


def _read_press(message: _Message, pressed: _Interactive, sender: ExternalSender) -> InboundPress | None:
    choice = pressed.button_reply or pressed.list_reply
    if choice is None or not message.context.id:
        return None
    return InboundPress(
        id=message.id,
        place=ChatPlace(chat_id=sender.id),
        sender=sender,
        message_id=message.context.id,
        value=choice.id,
    )


def _read_edit(message: _Message, edit: _Edit, sender: ExternalSender) -> InboundText | None:
    content = convert(edit.message, _Content)
    if content is None:
        return None
    return InboundText(
        id=message.id,
        place=ChatPlace(chat_id=sender.id),
        sender=sender,
        message_id=edit.original_message_id,
        text=_read_words(content),
        edits=edit.original_message_id,
    )


def _read_words(message: _Message | _Content) -> str:
    """Return the text of a message, or the caption of its file."""
    if message.text is not None:
        return message.text.body
    media = message.image or message.document or message.video
    return media.caption if media is not None else ""


def _read_files(message: _Message) -> tuple[RemoteFile, ...]:
    media: _Media | None = getattr(message, message.type, None) if message.type in _FILES else None
    if media is None:
        return ()
    media_type = media.mime_type.partition(";")[0].strip()
    name = media.filename or f"{message.type}{_EXTENSIONS.get(media_type, '')}"
    return (RemoteFile(reference=media.id, name=name, media_type=media_type),)


def _find_contact(message: _Message, contacts: list[_Contact]) -> _Contact:
    ids = {message.sender, message.from_user_id} - {""}
    matching = [one for one in contacts if {one.wa_id, one.user_id} & ids]
    if not matching and not ids and len(contacts) == 1:
        return contacts[0]  # a person without a phone number is named beside the message only
    return matching[0] if matching else _Contact()


def _read_statuses(value: _Value) -> list[InboundEvent]:
    """Return the messages that were accepted at first and not delivered in the end."""
    statuses = [status for one in value.statuses if (status := convert(one, _Status)) is not None]
    return [_read_failure(one) for one in statuses if one.status == "failed"]


def _read_failure(status: _Status) -> InboundFailure:
    recipient = status.recipient_user_id or status.recipient_id
    problem = status.errors[0] if status.errors else _Problem()
    details = str(problem.error_data.get("details") or problem.message or problem.title)
    return InboundFailure(
        id=f"{status.id}:failed",
        place=ChatPlace(chat_id=recipient),
        sender=ExternalSender(id=recipient),
        message_id=status.id,
        reason=f"whatsapp: {describe_error(problem.code, details)}",
    )
