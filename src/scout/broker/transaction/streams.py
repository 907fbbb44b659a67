"""Following the log: long polls for one record, and streams of many events."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

from scout.base.refusal import Refused, Remedy
from scout.model.events.envelope import Event, list_concerned
from scout.model.problems.request import RateLimited

# Whether a reader wants an event and may read it; `list_concerned` gives the second argument.
EventFilter = Callable[[Event, frozenset[str]], bool]
# A listener and the event classes it is called for.
Subscriptions = tuple[tuple[Callable[[Any], None], tuple[type[Event], ...]], ...]
ReadEvents = Callable[[int], Awaitable[list[Event]]]
_PART = 50  # past events that are filtered and sent at once


class Listener:
    """One long poll, which listens while its context is open. A change between two waits is not lost.

    `record` is the one that the last change told of, if it told of one.
    """

    def __init__(self, waiting: dict[str, set["Listener"]], keys: tuple[str, ...]) -> None:
        self._waiting = waiting
        self._keys = keys
        self._is_told = False
        self._woken: asyncio.Future[None] | None = None
        self.record: Any = None

    def __enter__(self) -> "Listener":
        keys, self._keys = self._keys, ()
        self.add(*keys)
        return self

    def add(self, *keys: str) -> None:
        """Listen to more keys from now on."""
        self._keys += keys
        for key in keys:
            self._waiting.setdefault(key, set()).add(self)

    def __exit__(self, *_: object) -> None:
        for key in {*self._keys}:
            self._waiting[key].discard(self)
            if not self._waiting[key]:
                del self._waiting[key]

    def tell(self, record: Any) -> None:
        self._is_told, self.record = True, record
        self._wake()

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def wait(self, seconds: float) -> bool:
        """Wait for a change, at most this long; whether there was one."""
        if not self._is_told:
            loop = asyncio.get_running_loop()
            self._woken = loop.create_future()
            timer = loop.call_later(max(seconds, 0), self._wake)
            try:
                await self._woken
            finally:
                timer.cancel()
        told, self._is_told = self._is_told, False
        return told


class Waiters:
    """Long polls by key: the reference to a record, or another name such as that of an inbox."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[Listener]] = {}

    def is_awaited(self, key: str) -> bool:
        return key in self._waiting

    def tell(self, *keys: str, record: Any = None) -> None:
        """Wake the long polls of these keys; `record` is what they wait for, if it is known."""
        for key in keys:
            if key in self._waiting:
                for listener in self._waiting[key]:
                    listener.tell(record)

    def listening(self, *keys: str) -> Listener:
        """Return a listener to changes of these keys."""
        return Listener(self._waiting, keys)


class Feed:
    """One open stream: the events that its reader has not taken yet.

    `notify` is called after a commit that has events for the reader, and when the stream ends. A commit
    group is published before any reader runs, so a reader takes the events of the whole group at once.
    """

    def __init__(
        self,
        hub: "Hub",
        client: str,
        wanted: EventFilter,
        notify: Callable[[], None],
        *,
        place: int,
        read: ReadEvents | None,
    ) -> None:
        self.client = client
        self.is_closed = False
        self._hub = hub
        self._read = read
        self._wanted = wanted
        self._notify = notify
        self._place = place  # the number of the last event that the reader took
        self._events: deque[Event] = deque()
        self._overrun = False

    def offer(self, event: Event, concerned: frozenset[str]) -> None:
        """Add a committed event if the reader wants it and may read it."""
        if self._overrun or not self._wanted(event, concerned):
            return
        if len(self._events) >= self._hub.room:
            self._overrun = True
            self._events.clear()
        else:
            self._events.append(event)
        self._notify()

    def take(self) -> list[Event]:
        """Return the new events in order; a reader that fell too far behind is refused."""
        if self._overrun:
            self._hub.dropped += 1
            raise Refused(self._build_refusal())
        events = [event for event in self._events if event.seq > self._place]
        self._events.clear()
        if events:
            self._place = events[-1].seq
        return events

    async def read_past(self) -> AsyncIterator[list[Event]]:
        """Yield the events after the start from the log, in parts. Only new events need room meanwhile."""
        while self._read is not None and (page := await self._read_page(self._read)):
            while self._events and self._events[0].seq <= page[-1].seq:
                self._events.popleft()
            for start in range(0, len(page), _PART):
                part = page[start : start + _PART]
                self._place = part[-1].seq
                yield [event for event in part if self._wanted(event, list_concerned(event))]
                await asyncio.sleep(0)  # other requests are answered while a long past is read

    async def _read_page(self, read: ReadEvents) -> list[Event]:
        page = await read(self._place)
        if not page and self._overrun:  # too many came meanwhile: they are in the log by now
            self._overrun = False
            self._events.clear()
            page = await read(self._place)
        return page

    def end(self) -> None:
        """End the stream: its reader gets no more events."""
        self.is_closed = True
        self._notify()

    def close(self) -> None:
        """Stop following."""
        self._hub.remove(self)

    def _build_refusal(self) -> RateLimited:
        again = Remedy(operation="watch", parameters={"after": self._place}, why="resume where you stopped")
        return RateLimited(what="events that you have not read", limit=self._hub.room, remedies=(again,))


class Hub:
    """The open event streams."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.dropped = 0
        self._feeds: list[Feed] = []

    def count(self, client: str) -> int:
        """Return how many streams a client follows."""
        return sum(one.client == client for one in self._feeds)

    def __len__(self) -> int:
        return len(self._feeds)

    def open(
        self,
        client: str,
        wanted: EventFilter,
        notify: Callable[[], None],
        *,
        place: int,
        read: ReadEvents | None = None,
    ) -> Feed:
        """Return a stream of the events after `place` that a client wants and may read.

        `read` reads the log, for a reader that begins in the past.
        """
        feed = Feed(self, client, wanted, notify, place=place, read=read)
        self._feeds.append(feed)
        return feed

    def remove(self, feed: Feed) -> None:
        self._feeds.remove(feed)

    def publish(self, events: Iterable[Event]) -> None:
        """Offer committed events to every stream."""
        if self._feeds:
            for event in events:
                concerned = list_concerned(event)
                for feed in self._feeds:
                    feed.offer(event, concerned)

    def close(self, client: str | None = None) -> None:
        """End every stream, or those of one client whose credential has ended."""
        for feed in self._feeds:
            if client in (None, feed.client):
                feed.end()
