"""The log as server-sent events: one task per stream, keep-alive comments, and a reason at the end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from scout.api.asgi import AsgiSend, Headers, Receive, Response
from scout.api.requests import wait_for_disconnect
from scout.api.responses import build_problem_document, encode_result
from scout.base.codec import encode
from scout.base.refusal import Diagnostic, Refused
from scout.model.events.envelope import Event
from scout.model.events.event_types import get_event_type

_HEADERS: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_COMMENT = b": still here\n\n"
_STUCK = 60.0  # seconds after which a client that accepts no data is disconnected
_BEGIN = 0.05  # seconds within which the broker has refused the filters or started listening
_KEPT = 1024 * 1024


class Frames:
    """Encoded events, cached so that streams of the same events share the work."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Event, bytes]] = {}
        self._size = 0

    def of(self, event: Event) -> bytes:
        kept = self._kept.get(event.seq)
        if kept is not None and kept[0] is event:
            return kept[1]
        frame = _build_frame(get_event_type(type(event)), encode_result(event), event.seq)
        self._size += len(frame)
        if self._size > _KEPT:
            self._kept.clear()
            self._size = len(frame)
        self._kept[event.seq] = (event, frame)
        return frame


async def follow(
    events: AsyncIterator[Event],
    send: AsgiSend,
    receive: Receive,
    *,
    frames: Frames,
    comment: float,
    stopping: "asyncio.Future[Diagnostic]",
    fault: Callable[[Exception], Response],
) -> None:
    """Send events until the client disconnects, the stream is dropped, or the daemon stops.

    An immediate refusal is an ordinary HTTP response; a later one is sent as an event in the stream.
    """
    following = _Following(events, receive, stopping)
    try:
        await following.begin()
        await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
        try:
            last = await _send_events(following, send, frames, comment)
        except Refused as refused:
            last = _build_dropped(refused.diagnostic)
        except TimeoutError:
            raise ConnectionError("the client stopped reading") from None
        except Exception as error:  # noqa: BLE001 (headers are sent: report the error in the stream and end it)
            last = _build_frame("dropped", fault(error).body)
        async with asyncio.timeout(_STUCK):
            await send({"type": "http.response.body", "body": last})
    finally:
        await following.let_go()


async def _send_events(following: "_Following", send: AsgiSend, frames: Frames, comment: float) -> bytes:
    """Send every event, and return the final frame."""
    words = b": following\n\n"
    while True:
        async with asyncio.timeout(_STUCK):
            await send({"type": "http.response.body", "body": words, "more_body": True})
        await following.wait_for_news(comment)
        if following.gone.done():
            raise ConnectionError("the client disconnected")
        if following.stopping.done():
            return _build_dropped(following.stopping.result())
        try:
            event = following.take()
        except StopAsyncIteration:
            return b""
        words = _COMMENT if event is None else frames.of(event)


class _Following:
    """The conditions one stream waits for: the next event, a disconnect, or the daemon stopping."""

    def __init__(
        self, events: AsyncIterator[Event], receive: Receive, stopping: "asyncio.Future[Diagnostic]"
    ) -> None:
        self._events = events
        self._next = self._ask()
        self.gone = asyncio.ensure_future(wait_for_disconnect(receive))
        self.stopping = stopping

    async def begin(self) -> None:
        """Wait briefly for the broker to check the filters, and raise its refusal."""
        await asyncio.wait({self._next}, timeout=_BEGIN)
        if self._next.done() and isinstance(self._next.exception(), Refused):
            self._next.result()

    async def wait_for_news(self, seconds: float) -> None:
        """Wait until an event, a disconnect or a stop, at most this many seconds."""
        waiting = {self._next, self.gone, self.stopping}
        await asyncio.wait(waiting, timeout=seconds, return_when="FIRST_COMPLETED")

    def take(self) -> Event | None:
        """Return the event that arrived, if any, and request the next one."""
        if not self._next.done():
            return None
        event = self._next.result()
        self._next = self._ask()
        return event

    async def let_go(self) -> None:
        """Cancel the pending tasks and close the event source."""
        for waiting in (self._next, self.gone):
            waiting.cancel()
        await asyncio.gather(self._next, self.gone, return_exceptions=True)
        close: Callable[[], Awaitable[None]] | None = getattr(self._events, "aclose", None)
        if close is not None:
            await close()

    def _ask(self) -> "asyncio.Future[Event]":
        step: Callable[[], Awaitable[Event]] = self._events.__anext__
        return asyncio.ensure_future(step())


def _build_dropped(diagnostic: Diagnostic) -> bytes:
    return _build_frame("dropped", encode(build_problem_document(diagnostic)))


def _build_frame(kind: str, data: bytes, number: int | None = None) -> bytes:
    line = b"" if number is None else b"id: %d\n" % number
    return b"%bevent: %b\ndata: %b\n\n" % (line, kind.encode(), data)
