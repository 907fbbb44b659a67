"""The few shapes of ASGI that Scout uses, and how a whole answer is sent."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from scout.protocol.scout import Scout

__all__ = ["Answer", "Gone", "Headers", "Mount", "Receive", "Scope", "Send", "sent"]

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

JSON: Headers = ((b"content-type", b"application/json"),)


class Mount(Protocol):
    """Another surface below this one: it answers what its paths match, for whoever was admitted."""

    paths: re.Pattern[bytes]

    async def __call__(self, scout: Scout, scope: Scope, receive: Receive, send: Send) -> None: ...
    def stop(self) -> None: ...


class Gone(Exception):  # noqa: N818 (a fact about the client, not a fault)
    """The client went away before it was answered: there is nobody to tell."""


class Answer(NamedTuple):
    """A whole response."""

    body: bytes
    status: int = 200
    headers: Headers = JSON


async def sent(answer: Answer, send: Send) -> None:
    """Send the answer."""
    length = (b"content-length", b"%d" % len(answer.body))
    headers = [*answer.headers, length]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
