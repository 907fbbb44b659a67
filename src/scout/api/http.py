"""HTTP itself: uvicorn's protocol, with a bound on the head of a request and our form of refusal."""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scout.api.responses import problem
from scout.base.refusal import BadRequest

_HEAD_LIMIT = 64 * 1024
_HEAD_SECONDS = 20.0
_BODY_SECONDS = 30.0


class _Whole:
    """A transport that sends the head of an answer together with what follows it at once.

    uvicorn writes them one after the other: each write is a system call, and wakes the other side.
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
            self._loop.call_soon(self._flush)  # a head alone, as that of a stream, waits for nothing

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
    """The parser takes a head of any size; this one does not."""

    _head = 0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (as uvicorn declares it)
        super().connection_made(cast("asyncio.Transport", _Whole(transport, self.loop)))
        self._expect(_HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._head = 0
        self._expect(_HEAD_SECONDS)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._expect(_BODY_SECONDS)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._expect(_BODY_SECONDS)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._expect(None)
        super().on_message_complete()

    def _expect(self, seconds: float | None) -> None:
        """The next part of the request comes within so many seconds, or the connection is closed."""
        if self._late is not None:
            self._late.cancel()
        self._late = self.loop.call_later(seconds, self.transport.close) if seconds is not None else None

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value.rstrip(b" \t"))  # the parser leaves what HTTP says is no part of it

    def send_400_response(self, msg: str) -> None:
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison] (uvicorn says None is no cycle, and begins with None)
            self.transport.close()  # an answer is under way: a second one would be read as part of it
            return
        answer = problem(BadRequest(problem="this is not HTTP, or its head is too large"))
        lines = [b"HTTP/1.1 400 Bad Request", b"connection: close", b"content-length: %d" % len(answer.body)]
        lines += [b"%b: %b" % header for header in answer.headers]
        self.transport.write(b"\r\n".join((*lines, b"", answer.body)))
        self.transport.close()

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > _HEAD_LIMIT:
            raise ValueError("the head of the request is too large")
