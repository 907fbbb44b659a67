"""Updates of the Bot API as inbound events. Unknown kinds and fields are ignored."""

from collections.abc import Iterable

import msgspec

from scout.connectors.wire import WireRecord
from scout.ports.connector import ChatPlace, ExternalSender, InboundPress, InboundText, RemoteFile


class _User(WireRecord):
    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""


class _Chat(WireRecord):
    id: int
    type: str = "private"


class _Entity(WireRecord):
    type: str
    offset: int
    length: int


class _File(WireRecord):
    file_id: str
    file_size: int | None = None
    file_name: str | None = None
    mime_type: str | None = None


class _Replied(WireRecord):
    message_id: int
    from_: _User | None = msgspec.field(name="from", default=None)


class _Message(WireRecord):
    message_id: int
    chat: _Chat
    from_: _User | None = msgspec.field(name="from", default=None)
    message_thread_id: int | None = None
    is_topic_message: bool = False
    text: str = ""
    caption: str = ""
    entities: tuple[_Entity, ...] = ()
    caption_entities: tuple[_Entity, ...] = ()
    edit_date: int | None = None
    reply_to_message: _Replied | None = None
    document: _File | None = None
    photo: tuple[_File, ...] = ()
    audio: _File | None = None
    video: _File | None = None
    voice: _File | None = None
    animation: _File | None = None
    video_note: _File | None = None


class _Query(WireRecord):
    id: str
    from_: _User = msgspec.field(name="from")
    message: _Message | None = None
    data: str | None = None


class Update(WireRecord):
    """One update of a kind that the connector asks for."""

    update_id: int
    message: _Message | None = None
    edited_message: _Message | None = None
    callback_query: _Query | None = None


class Bot(WireRecord):
    """The bot itself, as `getMe` returns it."""

    id: int
    username: str = ""
    first_name: str = ""


# Kinds of files, with the name and the media type of one that has none.
_KINDS = {
    "document": ("file", "application/octet-stream"),
    "audio": ("audio.mp3", "audio/mpeg"),
    "video": ("video.mp4", "video/mp4"),
    "voice": ("voice.ogg", "audio/ogg"),
    "animation": ("animation.mp4", "video/mp4"),
    "video_note": ("video.mp4", "video/mp4"),
}


def read_update(update: Update, bot: Bot) -> InboundText | InboundPress | None:
    """Return what happened; None for an update that is nothing for Scout."""
    if update.callback_query is not None:
        return _read_press(update.callback_query)
    message = update.message or update.edited_message
    if message is None or message.from_ is None:
        return None
    return _read_message(message, bot, is_edit=update.message is None)


def _read_press(query: _Query) -> InboundPress | None:
    """Return a pressed button; one on a message that is too old to be known is nothing."""
    if query.message is None or query.data is None:
        return None
    return InboundPress(
        id=f"press:{query.id}",
        place=_read_place(query.message),
        sender=_read_sender(query.from_),
        message_id=str(query.message.message_id),
        value=query.data,
        reference=query.id,
    )


def _read_message(message: _Message, bot: Bot, *, is_edit: bool) -> InboundText | None:
    assert message.from_ is not None
    files = tuple(_read_files(message))
    text, named = _strip_mention(
        message.text or message.caption, message.entities or message.caption_entities, bot
    )
    if not text.strip() and not files:
        return None  # somebody joined, a sticker, a location
    place = _read_place(message)
    edited = f":{message.edit_date}" if is_edit else ""
    replied = message.reply_to_message
    to_bot = replied is not None and replied.from_ is not None and replied.from_.id == bot.id
    return InboundText(
        # Not the number of the update: after a week of silence Telegram chooses a new one at random.
        id=f"message:{message.chat.id}:{message.message_id}{edited}",
        place=place,
        sender=_read_sender(message.from_),
        message_id=str(message.message_id),
        text=text,
        addressed=not place.group or named or to_bot,
        reply_to=str(replied.message_id) if replied is not None else None,
        edits=str(message.message_id) if is_edit else None,
        files=files,
    )


def _read_place(message: _Message) -> ChatPlace:
    is_topic = message.is_topic_message and message.message_thread_id is not None
    return ChatPlace(
        chat_id=str(message.chat.id),
        thread_id=str(message.message_thread_id) if is_topic else None,
        group=message.chat.type != "private",
    )


def _read_sender(user: _User) -> ExternalSender:
    name = f"{user.first_name} {user.last_name}".strip() or user.username
    return ExternalSender(id=str(user.id), name=name, program=user.is_bot)


def _strip_mention(text: str, entities: Iterable[_Entity], bot: Bot) -> tuple[str, bool]:
    """Return a text without the bot's name, and whether it was there. Places are counted in UTF-16 units."""
    units = text.encode("utf-16-le")
    own = f"@{bot.username}".lower().encode("utf-16-le")
    found = False
    for entity in sorted(entities, key=lambda one: -one.offset):
        start, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
        marked = units[start:end].decode("utf-16-le", "replace").lower()
        if entity.type == "mention" and marked.encode("utf-16-le") == own:
            units, found = units[:start] + units[end:], True
        elif entity.type == "bot_command" and marked.endswith(f"@{bot.username.lower()}"):
            units, found = units[: end - len(own)] + units[end:], True
    return units.decode("utf-16-le", "replace").strip() if found else text, found


def _read_files(message: _Message) -> Iterable[RemoteFile]:
    """Return the files of a message; of a photo, the largest size. A GIF comes as a document, too."""
    if message.photo:
        yield _describe_file(message.photo[-1], "photo.jpg", "image/jpeg")
    for kind, (name, media_type) in _KINDS.items():
        file: _File | None = getattr(message, kind)
        if file is not None and not (kind == "animation" and message.document is not None):
            yield _describe_file(file, name, media_type)


def _describe_file(file: _File, name: str, media_type: str) -> RemoteFile:
    return RemoteFile(
        reference=file.file_id,
        name=file.file_name or name,
        media_type=file.mime_type or media_type,
        size=file.file_size,
    )
