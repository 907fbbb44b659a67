"""The interface of Scout, implemented by the broker in the daemon and by the client over HTTP."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol, TypeVar

from scout.base.record import Record
from scout.model.events.envelope import Event
from scout.protocol.log import Watch
from scout.protocol.request import Request

T = TypeVar("T")


class Credential(Record):
    """The secret of a request, the agent it acts as, and the directory it comes from.

    `page`: the web page presents it for a browser that has proved to be signed in.
    """

    secret: str | None = None
    act_as: str | None = None
    directory: str | None = None
    page: bool = False


class Scout(Protocol):
    """Scout for one caller: each request is made as that caller. Refusals are raised."""

    async def call(self, request: Request[T]) -> T:
        """Return the result of a request."""
        ...

    def watch(self, request: Watch) -> AsyncIterator[Event]:
        """Yield the events of the log as they are committed."""
        ...


class EventFeed(Protocol):
    """An open stream: the past first, then what was committed since, in batches."""

    is_closed: bool

    def read_past(self) -> AsyncIterator[Sequence[Event]]:
        """Yield the events from the requested start to now; nothing if none was requested."""
        ...

    def take(self) -> Sequence[Event]:
        """Return the events committed since. A reader that fell too far behind is refused."""
        ...

    def close(self) -> None:
        """Stop following."""
        ...


class Admission(Scout, Protocol):
    """Scout for an admitted caller, while its credential is valid."""

    async def follow(self, request: Watch, notify: Callable[[], None]) -> EventFeed:
        """Open a stream; `notify` is called when there is something to take, and when it has ended."""
        ...

    async def credential_ended(self) -> None:
        """Return when the credential has ended."""
        ...


class Gate(Protocol):
    """Admits callers: turns a credential into the caller's Scout, or refuses it."""

    async def admit(self, credential: Credential) -> Admission: ...
