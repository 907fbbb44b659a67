"""uvicorn's HTTP protocol with a size limit for the request head, timeouts, and Scout's form of refusal."""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scout.api.responses import build_problem
from scout.base.refusal import BadRequest

_HEAD_LIMIT = 64 * 1024
_HEAD_SECONDS = 20.0
_BODY_SECONDS = 30.0


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

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with a limit on the size of the request head."""

    _head = 0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (as uvicorn declares it)
        super().connection_made(cast("asyncio.Transport", _Whole(transport, self.loop)))
        self._set_deadline(_HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_deadline(None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._head = 0
        self._set_deadline(_HEAD_SECONDS)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._set_deadline(_BODY_SECONDS)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._set_deadline(_BODY_SECONDS)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._set_deadline(None)
        super().on_message_complete()

    def _set_deadline(self, seconds: float | None) -> None:
        """Close the connection unless the next part of the request arrives within this many seconds."""
        if self._late is not None:
            self._late.cancel()
        self._late = self.loop.call_later(seconds, self.transport.close) if seconds is not None else None

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
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

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > _HEAD_LIMIT:
            raise ValueError("the head of the request is too large")
