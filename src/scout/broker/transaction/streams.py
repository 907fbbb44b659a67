"""Following the log: long polls for one record, and streams of many events."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

from scout.base.refusal import Refused, Remedy
from scout.model.events.envelope import Event
from scout.model.problems.request import RateLimited

EventFilter = Callable[[Event], bool]
# A listener and the event classes it is called for.
Subscriptions = tuple[tuple[Callable[[Any], None], tuple[type[Event], ...]], ...]
ReadEvents = Callable[[int], Awaitable[list[Event]]]


class Listener:
    """One long poll. A change between two waits is not lost."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def tell(self) -> None:
        self._news.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for a change, at most this long; whether there was one."""
        try:
            async with asyncio.timeout(max(seconds, 0)):  # wait_for could swallow the caller's cancellation
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True


class Waiters:
    """Long polls by key: the id of a record, or an inbox."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[Listener]] = {}

    def is_awaited(self, key: str) -> bool:
        return key in self._waiting

    def tell(self, *keys: str) -> None:
        """Wake the long polls of these keys."""
        for key in keys:
            for listener in self._waiting.get(key, ()):
                listener.tell()

    @contextmanager
    def listening(self, *keys: str) -> Generator[Listener]:
        """Listen to changes of these keys while the context is open."""
        listener = Listener()
        for key in keys:
            self._waiting.setdefault(key, set()).add(listener)
        try:
            yield listener
        finally:
            for key in keys:
                self._waiting[key].discard(listener)
                if not self._waiting[key]:
                    del self._waiting[key]


class _Follower:
    """One reader and its unread events. A reader that falls too far behind is dropped."""

    def __init__(self, client: str, wanted: EventFilter, room: int) -> None:
        self.client = client
        self.wanted = wanted
        self.room = room
        self.events: deque[Event] = deque()
        self.news = asyncio.Event()
        self.overrun = False
        self.closed = False

    def offer(self, event: Event) -> None:
        if self.overrun or not self.wanted(event):
            return
        if len(self.events) >= self.room:
            self.overrun = True
            self.events.clear()
        else:
            self.events.append(event)
        self.news.set()


class Hub:
    """The open event streams."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._followers: list[_Follower] = []
        self.dropped = 0

    def count(self, client: str) -> int:
        """Return how many streams a client follows."""
        return sum(one.client == client for one in self._followers)

    def __len__(self) -> int:
        return len(self._followers)

    def publish(self, events: Iterable[Event]) -> None:
        """Offer committed events to every stream."""
        if self._followers:
            for event in events:
                for follower in self._followers:
                    follower.offer(event)

    def close(self, client: str | None = None) -> None:
        """End every stream, or those of one client whose credential has ended."""
        for follower in self._followers:
            if client in (None, follower.client):
                follower.closed = True
                follower.news.set()

    async def follow(
        self, client: str, wanted: EventFilter, after: int | None, read: ReadEvents, last: int
    ) -> AsyncGenerator[Event]:
        """Yield the wanted events after a number, then new ones; a slow reader is dropped with a reason.

        Past events are read from the log, so that only new ones need room. `last` is the
        number of the newest event: the start for a reader of new events only.
        """
        follower = _Follower(client, wanted, self._room)
        self._followers.append(follower)
        try:
            place = last if after is None else after
            if after is not None:
                async for event in self._read_past(follower, place, read):
                    place = event.seq
                    yield event
            async for event in self._read_live(follower, place):
                yield event
        finally:
            self._followers.remove(follower)

    async def _read_past(self, follower: _Follower, place: int, read: ReadEvents) -> AsyncIterator[Event]:
        """Yield events from the log; new ones are buffered meanwhile, or read from the log if too many."""
        while True:
            page = await read(place)
            for event in page:
                place = event.seq
                if follower.wanted(event):
                    yield event
            if not page and not follower.overrun:
                return
            if not page:
                follower.overrun = False
                follower.events.clear()
            while follower.events and follower.events[0].seq <= place:
                follower.events.popleft()

    async def _read_live(self, follower: _Follower, place: int) -> AsyncIterator[Event]:
        while not follower.closed:
            if follower.overrun:
                self.dropped += 1
                raise Refused(self._build_refusal(place))
            while follower.events:
                event = follower.events.popleft()
                if event.seq > place:
                    place = event.seq
                    yield event
            follower.news.clear()
            if not follower.overrun and not follower.closed:
                await follower.news.wait()

    def _build_refusal(self, place: int) -> RateLimited:
        again = Remedy(operation="watch", parameters={"after": place}, why="resume where you stopped")
        return RateLimited(what="events that you have not read", limit=self._room, remedies=(again,))
