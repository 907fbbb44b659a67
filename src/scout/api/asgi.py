"""The ASGI types that Scout uses."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

from scout.protocol.scout import Credential, Scout

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
AsgiSend = Callable[[dict[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

EXCHANGE = "scout.exchange"
JSON: Headers = ((b"content-type", b"application/json"),)


class Response(NamedTuple):
    """A complete response."""

    body: bytes
    status: int = 200
    headers: Headers = JSON


class Mount(Protocol):
    """Another surface below this one: it answers the paths it matches, for an admitted caller."""

    paths: re.Pattern[bytes]

    async def __call__(self, scout: Scout, scope: Scope, receive: Receive, send: AsgiSend) -> None: ...
    def stop(self) -> None: ...


class OpenSurface(Protocol):
    """Pages that need no credential."""

    paths: re.Pattern[bytes]

    async def show(self, path: bytes, headers: Mapping[bytes, bytes]) -> Response: ...


class BrowserSurface(Protocol):
    """The web page: it answers browsers on its own host name, and reads the credentials they bring."""

    def answers(self, raw_path: bytes, headers: Mapping[bytes, bytes]) -> bool: ...
    def is_visit(self, method: str, headers: Mapping[bytes, bytes]) -> bool: ...
    def read_credential(self, headers: Mapping[bytes, bytes]) -> Credential | None: ...
    async def __call__(self, scope: Scope, headers: Mapping[bytes, bytes], send: AsgiSend) -> None: ...


class Gone(Exception):  # noqa: N818 (a fact about the client, not a fault)
    """The client disconnected before the response."""


class Exchange(Protocol):
    """One request and its response, beyond what ASGI offers. Scout's HTTP protocol adds it to the scope."""

    def respond(self, answer: Response) -> bool:
        """Write a complete response at once; whether that was possible."""
        ...

    def on_disconnect(self, callback: Callable[[], None] | None) -> None:
        """Call back when the client disconnects; None: no longer."""
        ...


class WatchedResponse:
    """A `send` that tracks whether a response has started, and can finish it."""

    def __init__(self, send: AsgiSend) -> None:
        self._send = send
        self.started = False
        self._complete = False

    async def __call__(self, message: dict[str, Any]) -> None:
        self.started = True
        self._complete = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)

    async def finish(self) -> None:
        """Finish a response that is still open."""
        if not self._complete:
            await self._send({"type": "http.response.body", "body": b""})
