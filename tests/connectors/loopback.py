"""A server on loopback for the fake of a platform: HTTP and WebSocket, on a thread, outside of Scout's loop."""

import asyncio
import itertools
import json
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs

import uvicorn

__all__ = [
    "Application",
    "Loopback",
    "Receive",
    "Request",
    "Response",
    "Send",
    "find_port",
    "parse_form",
    "respond",
]

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
_WAIT = 20.0
_STEP = 0.01


class Application(Protocol):
    """The fake itself."""

    async def handle(self, request: "Request") -> "Response":
        """Answer an HTTP request."""
        ...

    async def handle_socket(self, path: str, query: str, receive: Receive, send: Send) -> None:
        """Serve a WebSocket that wants to be opened."""
        ...


class Request(NamedTuple):
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")


class Response(NamedTuple):
    """`cut`: the connection breaks in the middle of the body."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}
    cut: bool = False


def respond(body: Any, status: int = 200, **headers: str) -> Response:
    """A response in JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, json.dumps(body).encode(), {"content-type": "application/json", **named})


def parse_form(body: bytes) -> dict[str, str]:
    """A form whose names are given once."""
    found = parse_qs(body.decode(), keep_blank_values=True, strict_parsing=bool(body))
    assert all(len(values) == 1 for values in found.values()), found
    return {name: values[0] for name, values in found.items()}


class _Server(uvicorn.Server):
    """Ends at once: uvicorn's own looks ten times a second whether it should, and then sleeps."""

    async def main_loop(self) -> None:
        while not self.should_exit:  # noqa: ASYNC110 (another thread sets it)
            await asyncio.sleep(_STEP)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in [*self.server_state.connections]:
            connection.shutdown()
        await asyncio.sleep(_STEP)


class Loopback:
    """Serves a fake on one port of loopback. It can be stopped and started again there."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._listener = _listen(0)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin to answer."""
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            ws="websockets-sansio",
            loop="asyncio",
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._run, args=(self._server, self._listener))
        self._thread.start()
        until = time.monotonic() + _WAIT
        while not self._server.started:
            assert time.monotonic() < until
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop answering; connections are refused from now on."""
        server, thread = self._server, self._thread
        self._server = self._thread = self.loop = None
        if server is None or thread is None:
            return
        server.force_exit = True
        server.should_exit = True
        thread.join(_WAIT)
        assert not thread.is_alive()

    def close(self) -> None:
        """Stop for good."""
        self.stop()
        self._listener.close()

    def restart(self) -> None:
        """Stop, and start again on the same port."""
        self.stop()
        self.resume()

    def resume(self) -> None:
        """Start again on the same port."""
        self._listener = _listen(self.port)
        self.start()

    def call(self, work: Callable[[], None]) -> None:
        """Do something on the thread of the server, if it runs."""
        loop = self.loop
        if loop is not None:
            loop.call_soon_threadsafe(work)

    def _run(self, server: uvicorn.Server, listener: socket.socket) -> None:
        async def serve() -> None:
            self.loop = asyncio.get_running_loop()
            await server.serve(sockets=[listener])

        asyncio.run(serve())

    async def _serve(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._application.handle_socket(
                scope["path"], scope["query_string"].decode(), receive, send
            )
            return
        request = await _read(scope, receive)
        if request is None:
            return
        response = await self._application.handle(request)
        headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
        if response.cut:
            headers.append((b"content-length", b"%d" % (len(response.body) + 10)))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})


async def _read(scope: dict[str, Any], receive: Receive) -> Request | None:
    """The whole request; None if its sender was gone before its end."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    return Request(scope["method"], scope["path"], scope["query_string"].decode(), headers, body)


_ports = itertools.count(os.getpid() * 37)


def find_port() -> int:
    """A port that nobody listens on, outside of the range from which the system gives ports to others."""
    while True:
        port = 20_000 + next(_ports) % 12_000
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    return listener
