"""A small HTTP server for one webhook: one path, short requests, little patience."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import h11

from scout.base.record import Record
from scout.ports.connector import ConnectorError, FailureKind

_LOG = logging.getLogger("scout.connectors.whatsapp")
_PATIENCE = 10.0  # seconds to read a request, or to write a response
_MOST_OPEN = 64  # connections
_LONGEST_HEAD = 16 * 1024  # bytes
_LONGEST_BODY = 3 * 1024 * 1024  # bytes; the maximum that Meta sends
_CHUNK = 16 * 1024


class ListenAddress(Record):
    """Where to listen. `public_host`: the name under which Meta calls; empty: any."""

    host: str
    port: int
    path: str
    public_host: str = ""

    def is_for(self, host: str) -> bool:
        """Whether a Host header names this webhook. A proxy may put the address it forwards to there."""
        name = host.lower().removesuffix(f":{self.port}")
        return not self.public_host or name in (self.public_host, self.host, "localhost", "127.0.0.1")


class HookRequest(NamedTuple):
    """A request to the path of the webhook."""

    method: str
    query: str
    headers: dict[str, str]
    body: bytes


class HookResponse(NamedTuple):
    status: int
    text: str = ""


class _RefusedError(Exception):
    """The request is not worth reading further."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class WebhookListener:
    """Serves one path. Each connection carries one request."""

    def __init__(
        self, address: ListenAddress, answer: Callable[[HookRequest], Awaitable[HookResponse]]
    ) -> None:
        self._address = address
        self._answer = answer
        self._open = dict[asyncio.Task[None], bool]()  # the oldest first; whether it is still being read
        self._is_closed = False

    async def serve(self) -> None:
        """Serve until cancelled."""
        try:
            server = await asyncio.start_server(self._accept, self._address.host, self._address.port)
        except (OSError, OverflowError) as error:
            where = f"{self._address.host}:{self._address.port}"
            reason = f"whatsapp: cannot listen on {where}: {error}"
            raise ConnectorError(FailureKind.RETRY, reason) from None
        try:
            await server.serve_forever()
        finally:
            self._is_closed = True
            server.close()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection. When there are too many, the one that has been slow for longest has to go."""
        if self._is_closed:
            writer.transport.abort()
            return
        if len(self._open) >= _MOST_OPEN:
            slow = next((task for task, is_read in self._open.items() if is_read), None)
            if slow is None:
                writer.transport.abort()
                return
            slow.cancel()
            del self._open[slow]
        task = asyncio.create_task(self._serve_one(reader, writer))
        self._open[task] = True
        task.add_done_callback(lambda done: self._forget(done, writer))

    def _forget(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        """Close the connection here: a task that was cancelled before it began has not done so."""
        self._open.pop(task, None)
        writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)
        try:
            response = await self._respond(connection, reader, writer)
            async with asyncio.timeout(_PATIENCE):
                writer.write(_encode(connection, response))
                await writer.drain()
        except (TimeoutError, OSError, h11.ProtocolError) as error:
            _LOG.debug("a request to the webhook broke: %r", error)
            writer.transport.abort()
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _respond(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> HookResponse:
        try:
            async with asyncio.timeout(_PATIENCE):
                request = await self._read(connection, reader, writer)
        except _RefusedError as refused:
            return HookResponse(refused.status)
        except h11.RemoteProtocolError as error:
            return HookResponse(error.error_status_hint)
        self._mark_read()
        return await self._answer(request)

    def _mark_read(self) -> None:
        task = asyncio.current_task()
        if task in self._open:
            self._open[task] = False

    async def _read(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> HookRequest:
        head = await _next_event(connection, reader)
        if not isinstance(head, h11.Request):
            raise _RefusedError(400)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in head.headers}
        path, _, query = head.target.decode("latin-1").partition("?")
        if path != self._address.path:
            raise _RefusedError(404)
        if not self._address.is_for(headers.get("host", "")):
            raise _RefusedError(421)
        _check_head(head.method, headers)
        if connection.they_are_waiting_for_100_continue:
            writer.write(_encode_event(connection, h11.InformationalResponse(status_code=100, headers=[])))
        body = bytearray()
        while isinstance(event := await _next_event(connection, reader), h11.Data):
            body += event.data
            if len(body) > _LONGEST_BODY:
                raise _RefusedError(413)
        return HookRequest(head.method.decode(), query, headers, bytes(body))


def _check_head(method: bytes, headers: dict[str, str]) -> None:
    """Refuse a request by its head, before its body is read."""
    if method not in (b"GET", b"POST"):
        raise _RefusedError(405)
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length) > _LONGEST_BODY:
        raise _RefusedError(413)


async def _next_event(connection: h11.Connection, reader: asyncio.StreamReader) -> object:
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await reader.read(_CHUNK))
    return event


def _encode(connection: h11.Connection, response: HookResponse) -> bytes:
    body = response.text.encode()
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("X-Content-Type-Options", "nosniff"),
        ("Connection", "close"),
    ]
    head = h11.Response(status_code=response.status, headers=headers)
    return b"".join(
        _encode_event(connection, event) for event in (head, h11.Data(data=body), h11.EndOfMessage())
    )


def _encode_event(connection: h11.Connection, event: h11.Event) -> bytes:
    return connection.send(event) or b""
