"""Events of a Matrix room: which of them concern people, and what they say."""

import re
from collections.abc import Iterable
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from scout.base.record import Record
from scout.connectors.wire import WireRecord, convert
from scout.ports.connector import RemoteFile

T = TypeVar("T")
TYPES = ("m.room.message", "m.room.member", "m.reaction", "m.room.encrypted")
_FILES = ("m.file", "m.image", "m.audio", "m.video")
_TEXTS = ("m.text", "m.emote", "m.notice")
_QUOTE = re.compile(r"(>[^\n]*\n)+\n?")  # older clients repeat the message that they answer


class _ReplyTo(WireRecord):
    event_id: str = ""


class _Relation(WireRecord):
    """How an event refers to an earlier one."""

    rel_type: str = ""
    event_id: str = ""
    key: str = ""
    is_falling_back: bool = False
    in_reply_to: _ReplyTo = msgspec.field(name="m.in_reply_to", default_factory=_ReplyTo)


class _Mentions(WireRecord):
    user_ids: list[str] = []


class _FileInfo(WireRecord):
    mimetype: str = "application/octet-stream"
    size: int | None = None


class Content(WireRecord):
    """The content of a message, a reaction or a membership."""

    msgtype: str = ""
    body: str = ""
    formatted_body: str = ""
    filename: str = ""
    url: str = ""
    info: _FileInfo = _FileInfo()
    membership: str = ""
    is_direct: bool = False
    relation: _Relation = msgspec.field(name="m.relates_to", default_factory=_Relation)
    mentions: _Mentions = msgspec.field(name="m.mentions", default_factory=_Mentions)
    new_content: dict[str, Any] | None = msgspec.field(name="m.new_content", default=None)


class _Unsigned(WireRecord):
    prev_content: dict[str, Any] = {}


class RoomEvent(WireRecord):
    type: str
    sender: str
    content: Content
    event_id: str = ""
    state_key: str | None = None
    unsigned: _Unsigned = _Unsigned()


class _Timeline(WireRecord):
    events: list[Any] = []
    limited: bool = False
    prev_batch: str | None = None


class JoinedRoom(WireRecord):
    timeline: _Timeline = _Timeline()


class _StrippedState(WireRecord):
    events: list[Any] = []


class InvitedRoom(WireRecord):
    invite_state: _StrippedState = _StrippedState()


class _Rooms(WireRecord):
    join: dict[str, JoinedRoom] = {}
    invite: dict[str, InvitedRoom] = {}


class Sync(WireRecord):
    """The answer of one sync."""

    next_batch: str
    rooms: _Rooms = _Rooms()


def read_events(raw: Iterable[Any]) -> list[RoomEvent]:
    """Return the events that have the expected form. Anybody can send an event of any form."""
    return [event for one in raw if (event := convert(one, RoomEvent)) is not None]


# -- membership --------------------------------------------------------------------------------------


def find_invitation(invited: InvitedRoom, user_id: str) -> RoomEvent | None:
    """Return the event that invites this user."""
    events = read_events(invited.invite_state.events)
    return next((one for one in events if _is_membership(one, user_id, "invite")), None)


def list_since_arrival(events: list[RoomEvent], user_id: str) -> list[RoomEvent]:
    """Return the events after the invitation of this user, or after joining without one.

    Without either, the user was there all the time. Older messages were not for them.
    """
    for index in range(len(events) - 1, -1, -1):
        if _is_arrival(events[index], user_id):
            return events[index + 1 :]
    return events


def is_arrival_in(events: list[RoomEvent], user_id: str) -> bool:
    """Whether this user was invited or joined in these events."""
    return any(_is_arrival(one, user_id) for one in events)


def _is_arrival(event: RoomEvent, user_id: str) -> bool:
    before = event.unsigned.prev_content.get("membership")
    if _is_membership(event, user_id, "join"):
        return before not in ("join", "invite")  # a join after a join is a change of the display name
    return _is_membership(event, user_id, "invite")


def _is_membership(event: RoomEvent, user_id: str, membership: str) -> bool:
    is_member = event.type == "m.room.member" and event.state_key == user_id
    return is_member and event.content.membership == membership


# -- messages ----------------------------------------------------------------------------------------


def is_message(event: RoomEvent) -> bool:
    """Whether it is a text or a file of a person or a program."""
    return event.type == "m.room.message" and event.content.msgtype in (*_TEXTS, *_FILES)


def read_replacement(event: RoomEvent) -> Content | None:
    """Return the new content if the event edits an earlier message."""
    if event.content.relation.rel_type != "m.replace" or event.content.new_content is None:
        return None
    return convert(event.content.new_content, Content)


def read_text(content: Content, *, is_reply: bool) -> str:
    """Return what a message says: its text, or the caption of its file."""
    if content.msgtype in _FILES:
        has_caption = content.filename and content.filename != content.body
        return content.body if has_caption else ""
    return (
        _QUOTE.sub("", content.body, count=1) if is_reply and content.body.startswith("> ") else content.body
    )


def read_files(content: Content) -> tuple[RemoteFile, ...]:
    """Return the file of a message. Files of encrypted rooms have no URL here."""
    if content.msgtype not in _FILES or not content.url.startswith("mxc://"):
        return ()
    file = RemoteFile(
        reference=content.url,
        name=content.filename or content.body or "file",
        media_type=content.info.mimetype,
        size=content.info.size,
    )
    return (file,)


# -- mentions ----------------------------------------------------------------------------------------


class Mentioned(Record):
    """The names of the bot, to find and to remove its mention."""

    user_id: str
    display_name: str = ""

    def is_in(self, content: Content) -> bool:
        """Whether a message names the bot."""
        link = f"matrix.to/#/{quote(self.user_id, safe='@:')}"
        return (
            self.user_id in content.mentions.user_ids
            or self.user_id in content.body
            or link in content.formatted_body
            or self._legacy().match(content.body) is not None
        )

    def remove_from(self, text: str) -> str:
        """Return the text without the mention at its beginning, and without the id of the bot anywhere."""
        rest = self._leading().sub("", text, count=1)
        return rest.replace(self.user_id, "").strip() if self.user_id in rest else rest.strip()

    def _legacy(self) -> re.Pattern[str]:
        return (
            re.compile(rf"\s*{re.escape(self.display_name)}[:,]\s", re.IGNORECASE)
            if self.display_name
            else _NOTHING
        )

    def _leading(self) -> re.Pattern[str]:
        names = {self.user_id, self.user_id.partition(":")[0]}
        names |= {self.display_name, f"@{self.display_name}"} if self.display_name else set()
        longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        return re.compile(rf"\s*(?:{longest_first})(?:[:,]|(?=\s)|$)\s*", re.IGNORECASE)


_NOTHING = re.compile(r"(?!)")
