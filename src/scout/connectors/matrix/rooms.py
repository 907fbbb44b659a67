"""What the Matrix connector knows about rooms, and asks for when it does not."""

import logging
from collections import OrderedDict
from collections.abc import Awaitable
from typing import TypeVar

from scout.connectors.matrix.events import (
    JoinedRoom,
    RoomEvent,
    is_arrival_in,
    list_since_arrival,
    read_events,
)
from scout.connectors.matrix.homeserver import EventPage, Homeserver
from scout.ports.connector import ConnectorError, FailureKind

_LOG = logging.getLogger("scout.connectors.matrix")
_MOST_EVENTS = 4096
_MOST_ROOMS = 1024
_MOST_PAGES = 20  # of a hundred events each, for one room after one interruption

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")


class _Recent(OrderedDict[K, V]):
    """The entries that were set last, up to a maximum."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > self._most:
            self.popitem(last=False)


class Rooms:
    """The rooms of the bot: who is in them, and which of their events the bot sent."""

    def __init__(self, server: Homeserver, user_id: str) -> None:
        self._server = server
        self._user_id = user_id
        self._members = _Recent[str, dict[str, str]](_MOST_ROOMS)
        self._own = _Recent[str, bool](_MOST_EVENTS)

    def note(self, room: str, event: RoomEvent) -> None:
        """Note what an event says about its room."""
        if event.type == "m.room.member":
            self._members.pop(room, None)
        else:
            self._own[event.event_id] = event.sender == self._user_id

    async def is_group(self, room: str) -> bool:
        """Whether others than one person read a room, or will; yes for one that the bot cannot look into."""
        return len(await self._list_members(room)) != 2

    async def has_others(self, room: str) -> bool:
        """Whether more than the bot and one person are in a room, or are invited."""
        return len(await self._list_members(room)) > 2

    async def get_name(self, room: str, user_id: str) -> str:
        """Return how a user is called in a room."""
        return (await self._list_members(room)).get(user_id) or user_id

    async def is_own(self, room: str, event_id: str) -> bool:
        """Whether the bot sent an event."""
        if not event_id:
            return False
        if event_id not in self._own:
            event = await accept_refusal(self._server.get_event(room, event_id), None)
            self._own[event_id] = event is not None and event.sender == self._user_id
        return self._own[event_id]

    async def list_new(self, room: str, joined: JoinedRoom, since: str) -> list[RoomEvent]:
        """Return the events of a room since a position, oldest first, without a gap."""
        events = read_events(joined.timeline.events)
        start = joined.timeline.prev_batch if joined.timeline.limited else None
        pages = 0
        while start and pages < _MOST_PAGES and not is_arrival_in(events, self._user_id):
            page = await accept_refusal(self._server.read_earlier(room, start, since), EventPage())
            events = [*reversed(read_events(page.chunk)), *events]
            start, pages = (page.end if page.chunk else None), pages + 1
        if pages == _MOST_PAGES:
            _LOG.warning("room %s has too many new events: the oldest are left out", room)
        return list_since_arrival(events, self._user_id)

    async def _list_members(self, room: str) -> dict[str, str]:
        if room not in self._members:
            self._members[room] = await accept_refusal(self._server.list_members(room), dict[str, str]())
        return self._members[room]


async def accept_refusal(call: Awaitable[V], instead: W) -> V | W:
    """Return the result of a call, or something instead of what does not exist or may not be seen."""
    try:
        return await call
    except ConnectorError as error:
        if error.kind is not FailureKind.REFUSED:
            raise
        _LOG.debug("not available: %s", error)
        return instead
