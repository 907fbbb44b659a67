"""Scout as anybody meets it: the broker in the daemon, or a client at the other end of the wire."""

from collections.abc import AsyncIterator
from typing import Protocol, TypeVar

from scout.base.record import Record
from scout.model.events.envelope import Event
from scout.protocol.overview import Watch
from scout.protocol.request import Request

__all__ = ["Admission", "Credential", "Gate", "Scout"]

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


class Admission(Scout, Protocol):
    """The view of somebody who was admitted: it is theirs for as long as their credential is valid."""

    async def credential_ended(self) -> None:
        """Comes back when the credential has ended."""
        ...


class Gate(Protocol):
    """Where surfaces knock: a credential becomes somebody's view, or is refused."""

    async def admit(self, credential: Credential) -> Admission: ...
