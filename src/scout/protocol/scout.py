"""Scout as anybody meets it: the broker in the daemon, or a client at the other end of the wire."""

from collections.abc import AsyncIterator
from typing import Protocol, TypeVar

from scout.base.record import Record
from scout.model.envelope import Event
from scout.protocol.overview import Watch
from scout.protocol.request import Request

__all__ = ["Credential", "Door", "Scout"]

T = TypeVar("T")


class Credential(Record):
    """What comes with a request: the secret, on whose behalf, and the directory it is made from."""

    secret: str | None = None
    act_as: str | None = None
    directory: str | None = None


class Scout(Protocol):
    """Somebody's view of Scout: each request is made as that somebody. Refusals are raised."""

    async def call(self, request: Request[T]) -> T:
        """The answer to a request."""
        ...

    def watch(self, request: Watch) -> AsyncIterator[Event]:
        """The facts of the log as they are committed."""
        ...


class Door(Protocol):
    """Where surfaces knock: a credential becomes somebody's view, or is refused."""

    async def admit(self, credential: Credential) -> Scout: ...
