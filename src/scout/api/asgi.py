"""The few shapes of ASGI that Scout uses, and how a whole answer is sent."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

__all__ = ["Answer", "Gone", "Headers", "Receive", "Scope", "Send", "sent"]

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

JSON: Headers = ((b"content-type", b"application/json"),)


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
