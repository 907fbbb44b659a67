"""The few shapes of ASGI that Scout uses, and how a whole answer is sent."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from scout.protocol.scout import Scout

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
AsgiSend = Callable[[dict[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

JSON: Headers = ((b"content-type", b"application/json"),)


class Mount(Protocol):
    """Another surface below this one: it answers what its paths match, for whoever was admitted."""

    paths: re.Pattern[bytes]

    async def __call__(self, scout: Scout, scope: Scope, receive: Receive, send: AsgiSend) -> None: ...
    def stop(self) -> None: ...


class Gone(Exception):  # noqa: N818 (a fact about the client, not a fault)
    """The client went away before it was answered: there is nobody to tell."""


class Response(NamedTuple):
    """A whole response."""

    body: bytes
    status: int = 200
    headers: Headers = JSON


class WatchedResponse:
    """A way to send that knows whether an answer has begun, and can end it."""

    def __init__(self, send: AsgiSend) -> None:
        self._send = send
        self.started = False
        self._complete = False

    async def __call__(self, message: dict[str, Any]) -> None:
        self.started = True
        self._complete = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)

    async def finish(self) -> None:
        """End an answer that was left open."""
        if not self._complete:
            await self._send({"type": "http.response.body", "body": b""})


async def sent(answer: Response, send: AsgiSend) -> None:
    """Send the answer."""
    length = (b"content-length", b"%d" % len(answer.body))
    headers = [*answer.headers, length]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
