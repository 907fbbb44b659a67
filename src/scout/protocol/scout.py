"""The interface of Scout, implemented by the broker in the daemon and by the client over HTTP."""

from collections.abc import AsyncIterator
from typing import Protocol, TypeVar

from scout.base.record import Record
from scout.model.events.envelope import Event
from scout.protocol.overview import Watch
from scout.protocol.request import Request

T = TypeVar("T")


class Credential(Record):
    """The secret of a request, the agent it acts as, and the directory it comes from."""

    secret: str | None = None
    act_as: str | None = None
    directory: str | None = None


class Scout(Protocol):
    """Scout for one caller: each request is made as that caller. Refusals are raised."""

    async def call(self, request: Request[T]) -> T:
        """Return the result of a request."""
        ...

    def watch(self, request: Watch) -> AsyncIterator[Event]:
        """Yield the events of the log as they are committed."""
        ...


class Admission(Scout, Protocol):
    """Scout for an admitted caller, while its credential is valid."""

    async def credential_ended(self) -> None:
        """Return when the credential has ended."""
        ...


class Gate(Protocol):
    """Admits callers: turns a credential into the caller's Scout, or refuses it."""

    async def admit(self, credential: Credential) -> Admission: ...
