"""The log as server-sent events: one task per stream, keep-alive comments, and a reason at the end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from scout.api.asgi import AsgiSend, Headers, Receive, Response
from scout.api.encoders import encode_result
from scout.api.requests import wait_for_disconnect
from scout.api.responses import build_problem_document
from scout.base.codec import encode
from scout.base.refusal import Diagnostic, Refused
from scout.model.events.envelope import Event
from scout.model.events.event_types import get_event_type
from scout.protocol.scout import EventFeed

_HEADERS: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_COMMENT = b": still here\n\n"
_STUCK = 60.0  # seconds after which a client that accepts no data is disconnected
_KEPT = 1024 * 1024


class Frames:
    """Encoded events, cached so that streams of the same events share the work."""

    def __init__(self) -> None:
        self.encoded = 0
        self._kept: dict[int, tuple[Event, bytes]] = {}
        self._size = 0

    def of(self, event: Event) -> bytes:
        kept = self._kept.get(event.seq)
        if kept is not None and kept[0] is event:
            return kept[1]
        frame = _build_frame(get_event_type(type(event)), encode_result(event), event.seq)
        self.encoded += 1
        self._size += len(frame)
        if self._size > _KEPT:
            self._kept.clear()
            self._size = len(frame)
        self._kept[event.seq] = (event, frame)
        return frame


async def follow(
    open_feed: Callable[[Callable[[], None]], Awaitable[EventFeed]],
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
    stream = _Stream(send, frames, comment)
    feed = await open_feed(stream.wake)
    stream.begin(asyncio.ensure_future(wait_for_disconnect(receive)), stopping)
    try:
        await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
        try:
            last = await stream.send_events(feed)
        except Refused as refused:
            last = _build_dropped(refused.diagnostic)
        except TimeoutError:
            raise ConnectionError("the client stopped reading") from None
        except ConnectionError:
            raise  # a client that disconnects is no fault
        except Exception as error:  # noqa: BLE001 (headers are sent: report the error in the stream and end it)
            last = _build_frame("dropped", fault(error).body)
        await stream.send(last, more=False)
    finally:
        feed.close()
        await stream.close()


class _Stream:
    """One open response. Its task sleeps until an event, a disconnect, a stop or a comment is due.

    Whatever happens sets one flag, so that a batch of events costs one step of one task and one write.
    """

    _gone: "asyncio.Future[None]"
    _stopping: "asyncio.Future[Diagnostic]"

    def __init__(self, send: AsgiSend, frames: Frames, comment: float) -> None:
        self._send = send
        self._frames = frames
        self._comment = comment
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._sent_at = self._loop.time()
        self._is_silent = False
        self._timer: asyncio.TimerHandle | None = None

    def wake(self, _: object = None) -> None:
        self._news.set()

    def begin(self, gone: "asyncio.Future[None]", stopping: "asyncio.Future[Diagnostic]") -> None:
        """Wake when the client disconnects, when the daemon stops, and after a silence."""
        self._gone, self._stopping = gone, stopping
        for one in (gone, stopping):
            one.add_done_callback(self.wake)
        self._measure_silence()

    async def send_events(self, feed: EventFeed) -> bytes:
        """Send every event, and return the final frame."""
        await self.send(b": following\n\n")
        async for past in feed.read_past():
            await self.send(self._encode(past))
            self._check_end()
        while not feed.is_closed:
            self._news.clear()
            await self.send(self._encode(feed.take()) or (_COMMENT if self._is_silent else b""))
            await self._news.wait()
            self._check_end()
        return b""

    async def send(self, data: bytes, *, more: bool = True) -> None:
        if data or not more:
            async with asyncio.timeout(_STUCK):
                await self._send({"type": "http.response.body", "body": data, "more_body": more})
            self._sent_at, self._is_silent = self._loop.time(), False

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._stopping.remove_done_callback(self.wake)
        self._gone.cancel()
        await asyncio.gather(self._gone, return_exceptions=True)

    def _encode(self, events: Sequence[Event]) -> bytes:
        return b"".join([self._frames.of(event) for event in events])

    def _check_end(self) -> None:
        if self._gone.done():
            raise ConnectionError("the client disconnected")
        if self._stopping.done():
            raise Refused(self._stopping.result())

    def _measure_silence(self) -> None:
        """Ask for a comment if nothing was sent for a whole period, and look again later."""
        left = self._sent_at + self._comment - self._loop.time()
        if left <= 0:
            self._is_silent = True
            self.wake()
        self._timer = self._loop.call_later(left if left > 0 else self._comment, self._measure_silence)


def _build_dropped(diagnostic: Diagnostic) -> bytes:
    return _build_frame("dropped", encode(build_problem_document(diagnostic)))


def _build_frame(kind: str, data: bytes, number: int | None = None) -> bytes:
    line = b"" if number is None else b"id: %d\n" % number
    return b"%bevent: %b\ndata: %b\n\n" % (line, kind.encode(), data)
