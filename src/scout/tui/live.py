"""The connection with the daemon: requests, and the log as it grows.

The newest part of the log is read first; the stream then resumes behind its last event. So no event is missed
between the two, nor while the daemon restarts: after a lost connection the stream resumes at the same place.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any

from scout.base.codec import to_plain
from scout.base.refusal import Family, Refused
from scout.client.client import Scout
from scout.model.events.envelope import Event
from scout.protocol.log import ReadLog, Watch

_KEPT = 2000  # events in memory
_FIRST = 200
_PAUSE = 1.0  # seconds between two attempts to reach the daemon


class StreamState(Enum):
    """The state of the connection."""

    OPENING = "opening"
    OPEN = "open"
    LOST = "lost"
    REFUSED = "refused"


class Live:
    """Follows the log, and tells its listeners about events and about the connection."""

    def __init__(
        self,
        scout: Scout,
        on_events: Callable[[list[dict[str, Any]]], None],
        on_link: Callable[[StreamState], None],
    ) -> None:
        self._scout = scout
        self._on_events = on_events
        self._on_link = on_link
        self.link = StreamState.OPENING
        self.events: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self.last = 0

    async def begin(self) -> None:
        """Read the newest part of the log."""
        page = await self._scout.call(ReadLog(newest=True, limit=_FIRST))
        self._take(list(page.items))

    async def follow(self) -> None:
        """Follow the log until the daemon refuses this credential."""
        while True:
            try:
                async for event in self._scout.watch(Watch(after=self.last), on_change=self._note_link):
                    self._take([event])
            except Refused as refused:
                if refused.diagnostic.family is Family.CREDENTIAL:
                    self._set_link(StreamState.REFUSED)
                    raise
            self._set_link(StreamState.LOST)
            await asyncio.sleep(_PAUSE)

    def _take(self, events: list[Event]) -> None:
        fresh = [to_plain(event) for event in events if event.seq > self.last]
        if fresh:
            self.last = int(fresh[-1]["seq"])
            self.events.extend(fresh)
            self._on_events(fresh)

    def _note_link(self, is_open: bool) -> None:
        self._set_link(StreamState.OPEN if is_open else StreamState.LOST)

    def _set_link(self, link: StreamState) -> None:
        if link is not self.link:
            self.link = link
            self._on_link(link)
