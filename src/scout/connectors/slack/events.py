"""What Slack reports through a socket: messages, edits and pressed buttons."""

from typing import Any, TypeVar

from scout.connectors.slack.text import is_mentioned, read_text
from scout.connectors.wire import WireRecord, convert
from scout.ports.connector import (
    ChatPlace,
    ExternalSender,
    InboundEvent,
    InboundPress,
    InboundText,
    RemoteFile,
)

T = TypeVar("T")
_SPOKEN = ("", "file_share", "thread_broadcast", "me_message", "bot_message")


class SlackEnvelope(WireRecord):
    """One frame of the socket."""

    type: str
    envelope_id: str = ""
    reason: str = ""
    payload: dict[str, Any] = {}


class _File(WireRecord):
    id: str
    name: str | None = None
    mimetype: str = "application/octet-stream"
    size: int | None = None
    mode: str = "hosted"
    is_external: bool = False


class _Edited(WireRecord):
    ts: str


class _Message(WireRecord):
    type: str
    ts: str
    subtype: str = ""
    user: str = ""
    bot_id: str = ""
    text: str = ""
    channel: str = ""
    channel_type: str = ""
    thread_ts: str | None = None
    parent_user_id: str = ""
    files: list[Any] = []
    edited: _Edited | None = None
    message: dict[str, Any] | None = None
    previous_message: dict[str, Any] = {}


class _Named(WireRecord):
    id: str
    name: str = ""


class _Container(WireRecord):
    message_ts: str
    channel_id: str
    thread_ts: str | None = None


class _Action(WireRecord):
    type: str
    action_ts: str
    value: str = ""


class _Interaction(WireRecord):
    type: str
    user: _Named
    container: _Container
    actions: list[_Action]


class SlackReader:
    """Reads envelopes for one bot: its user, and its id as a bot."""

    def __init__(self, user_id: str, bot_id: str) -> None:
        self._user_id = user_id
        self._bot_id = bot_id

    def read(self, envelope: SlackEnvelope) -> list[InboundEvent]:
        """Return what an envelope reports."""
        if envelope.type == "interactive":
            return self._read_interaction(envelope.payload)
        event = convert(envelope.payload.get("event"), _Message) if envelope.type == "events_api" else None
        if event is None or event.type not in ("message", "app_mention"):
            return []
        if event.subtype == "message_changed":
            return self._read_edit(event)
        return self._read_message(event, event.channel, event.channel_type)

    def _read_edit(self, event: _Message) -> list[InboundEvent]:
        """Return the new text. Slack also reports a change when it adds a preview of a link."""
        message = convert(event.message, _Message)
        if message is None or message.edited is None or message.text == event.previous_message.get("text"):
            return []
        return self._read_message(message, event.channel, event.channel_type)

    def _read_message(self, message: _Message, channel: str, channel_type: str) -> list[InboundEvent]:
        is_own = message.user == self._user_id or message.bot_id == self._bot_id != ""
        sender = message.user or message.bot_id
        if is_own or not sender or not channel or message.subtype not in _SPOKEN:
            return []
        thread = message.thread_ts if message.thread_ts != message.ts else None
        place = _build_place(channel, thread, is_private=channel_type == "im")
        answers_bot = place.thread_id is not None and message.parent_user_id == self._user_id
        edited = f":{message.edited.ts}" if message.edited is not None else ""
        text = InboundText(
            id=f"{channel}:{message.ts}{edited}",
            place=place,
            sender=ExternalSender(id=sender, program=bool(message.bot_id)),
            message_id=message.ts,
            text=read_text(message.text, self._user_id),
            addressed=not place.group or is_mentioned(message.text, self._user_id) or answers_bot,
            reply_to=place.thread_id if answers_bot else None,
            edits=message.ts if edited else None,
            files=_read_files(message.files),
        )
        return [text]

    def _read_interaction(self, payload: dict[str, Any]) -> list[InboundEvent]:
        pressed = convert(payload, _Interaction)
        if pressed is None or pressed.type != "block_actions":
            return []
        container = pressed.container
        return [
            InboundPress(
                id=f"{container.channel_id}:{container.message_ts}:{pressed.user.id}:{action.action_ts}",
                place=_build_place(container.channel_id, container.thread_ts),
                sender=ExternalSender(id=pressed.user.id, name=pressed.user.name),
                message_id=container.message_ts,
                value=action.value,
            )
            for action in pressed.actions
            if action.type == "button"
        ]


def _build_place(channel: str, thread: str | None, *, is_private: bool = False) -> ChatPlace:
    """Return a place. The id of a chat of one person with the bot begins with D."""
    group = not is_private and not channel.startswith("D")
    return ChatPlace(chat_id=channel, thread_id=thread, group=group)


def _read_files(files: list[Any]) -> tuple[RemoteFile, ...]:
    """Return the files that Slack itself stores. The token must not be sent anywhere else."""
    found = [file for one in files if (file := convert(one, _File)) is not None]
    return tuple(
        RemoteFile(reference=file.id, name=file.name or file.id, media_type=file.mimetype, size=file.size)
        for file in found
        if file.mode in ("hosted", "snippet") and not file.is_external
    )
