"""uvicorn's HTTP protocol with a size limit for the request head, timeouts, and Scout's form of refusal."""

import asyncio
import functools
import math
from collections.abc import Callable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from scout.api.asgi import EXCHANGE, Headers, Response, Scope
from scout.api.responses import build_problem
from scout.base.refusal import BadRequest

_HEAD_LIMIT = 64 * 1024
_HEAD_SECONDS = 20.0
_BODY_SECONDS = 30.0
_TOO_LARGE = "the head of the request is too large"
_EARLY = 0.002  # seconds by which a timer may be early
_CLOSE = (b"connection", b"close")


class _Whole:
    """A transport that sends the response head together with the data that immediately follows.

    uvicorn writes them separately: each write is a system call and wakes the other side.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""

    def write(self, data: bytes) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held + data)
        else:
            self._held = data
            self._loop.call_soon(self._flush)  # a head without a body, as of a stream, is sent at once

    def write_whole(self, data: bytes) -> None:
        """Write a complete response."""
        held, self._held = self._held, b""
        self._transport.write(held + data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Exchange:
    """One request of a connection and its response."""

    def __init__(self, protocol: "Protocol", cycle: RequestResponseCycle) -> None:
        self._protocol = protocol
        self._cycle = cycle
        self._is_head = cycle.scope["method"] == "HEAD"

    def respond(self, answer: Response) -> bool:
        """Write head and body at once, unless the client does not read or a response has begun."""
        cycle = self._cycle
        if cycle.response_started or cycle.disconnected or cycle.flow.write_paused or not cycle.keep_alive:
            return False
        if _CLOSE in answer.headers:
            return False
        head = _build_head(answer.status, answer.headers) + b"%d\r\n\r\n" % len(answer.body)
        self._protocol.whole.write_whole(head if self._is_head else head + answer.body)
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        cycle.on_response()
        return True

    def on_disconnect(self, callback: Callable[[], None] | None) -> None:
        """Call back when the client disconnects; None: no longer."""
        waiting = self._protocol.waiting
        if callback is None:
            waiting.pop(self, None)
        elif self._cycle.disconnected:
            self._protocol.loop.call_soon(callback)
        else:
            waiting[self] = callback


@functools.lru_cache(maxsize=256)
def _build_head(status: int, headers: Headers) -> bytes:
    """Return the head of a response up to the value of its length."""
    lines = [STATUS_LINE[status], *(b"%b: %b\r\n" % header for header in headers), b"content-length: "]
    return b"".join(lines)


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with a limit on the size of the request head, and with whole responses."""

    _head = 0
    _deadline: float | None = None
    _timer: asyncio.TimerHandle | None = None
    _timer_at = math.inf
    whole: _Whole

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (as uvicorn declares it)
        self.waiting: dict[_Exchange, Callable[[], None]] = {}
        self.whole = _Whole(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", self.whole))
        self._set_deadline(_HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline = None
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)
        for callback in list(self.waiting.values()):
            callback()

    def on_message_begin(self) -> None:
        self._head = 0
        self._set_deadline(_HEAD_SECONDS)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._set_deadline(_BODY_SECONDS)
        super().on_headers_complete()
        scope = cast("Scope", self.cycle.scope)
        scope["extensions"] = {EXCHANGE: _Exchange(self, self.cycle)}

    def on_body(self, body: bytes) -> None:
        self._set_deadline(_BODY_SECONDS)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._set_deadline(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Begin the next request that the client has sent already, or wait for one as long as is allowed."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._deadline is None:  # else the next request has begun to arrive
            self._set_deadline(self.timeout_keep_alive)

    def _set_deadline(self, seconds: float | None) -> None:
        """Close the connection unless the next part of the request arrives within this many seconds.

        A timer for each part would be made and cancelled several times for a request. One that is due too
        early looks at the deadline again instead, so a busy connection makes one in many requests.
        """
        if seconds is None:
            self._deadline = None
            return
        self._deadline = self.loop.time() + seconds
        if self._deadline < self._timer_at:
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        assert self._deadline is not None
        self._timer_at = self._deadline
        self._timer = self.loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer, self._timer_at = None, math.inf
        if self._deadline is None:
            return
        if self._deadline <= self.loop.time() + _EARLY:
            self.transport.close()
        else:
            self._arm()

    def on_url(self, url: bytes) -> None:
        self._head += len(url)
        if self._head > _HEAD_LIMIT:
            raise ValueError(_TOO_LARGE)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head += len(name) + len(value)
        if self._head > _HEAD_LIMIT:
            raise ValueError(_TOO_LARGE)
        super().on_header(name, value.rstrip(b" \t"))  # the parser keeps trailing whitespace

    def send_400_response(self, msg: str) -> None:
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison] (uvicorn says None is no cycle, and begins with None)
            self.transport.close()  # a response is in progress: a second one would be read as part of it
            return
        answer = build_problem(BadRequest(problem="this is not HTTP, or its head is too large"))
        lines = [b"HTTP/1.1 400 Bad Request", b"connection: close", b"content-length: %d" % len(answer.body)]
        lines += [b"%b: %b" % header for header in answer.headers]
        self.transport.write(b"\r\n".join((*lines, b"", answer.body)))
        self.transport.close()
