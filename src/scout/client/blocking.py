"""`BlockingScout`: the same client for scripts, with its own event loop in its own thread."""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

from scout.client.client import Scout
from scout.model.ask import AskReceipt
from scout.model.conversation import Receipt
from scout.model.events.envelope import Event
from scout.protocol.agents import AgentDetail, AgentView, Identity, Registered, Resolved
from scout.protocol.asks import FlightView
from scout.protocol.inbox import Claimed, InboxItem, Settled
from scout.protocol.log import Watch
from scout.protocol.request import Page, Request
from scout.protocol.talk import Hit

T = TypeVar("T")


class BlockingScout:
    """Takes the arguments of `Scout`; each method blocks until it has a result. Close it, or use `with`."""

    def __init__(self, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scout-client", daemon=True)
        self._thread.start()
        self._scout = Scout(**options)

    def __enter__(self) -> "BlockingScout":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; closing twice is harmless."""
        if self._loop.is_closed():
            return
        self._run(self._scout.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def call(self, request: Request[T]) -> T:
        """Make any request of `scout.protocol` and return its typed result."""
        return self._run(self._scout.call(request))

    def watch(self, request: Watch | None = None) -> Iterator[Event]:
        """Yield the events of the log as they are committed."""
        stream = self._scout.watch(request)
        try:
            while True:
                yield self._run(_read_next(stream))
        finally:
            self._run(_close(stream))

    def whoami(self) -> Identity:
        """Return the identity behind the token."""
        return self._run(self._scout.whoami())

    def who(self, query: str | None = None, *, online: bool = False) -> Page[AgentView]:
        """Return the visible agents, newest first."""
        return self._run(self._scout.who(query, online=online))

    def show(self, address: str) -> AgentDetail:
        """Return one agent and the ways to reach it."""
        return self._run(self._scout.show(address))

    def resolve(self, address: str) -> Resolved:
        """Resolve an address and explain the result."""
        return self._run(self._scout.resolve(address))

    def register(self, name: str, **details: Any) -> Registered:
        """Register an agent in the directory."""
        return self._run(self._scout.register(name, **details))

    def send(self, to: str | None, body: str, *, attachments: Sequence[str] = (), **how: Any) -> Receipt:
        """Post a durable message."""
        return self._run(self._scout.send(to, body, attachments=attachments, **how))

    def ask(self, to: str | None, body: str, **how: Any) -> AskReceipt:
        """Create an ask, tracked as a flight."""
        return self._run(self._scout.ask(to, body, **how))

    def reply(self, body: str, in_reply_to: str | None = None) -> Receipt:
        """Answer a message, ask or flight."""
        return self._run(self._scout.reply(body, in_reply_to))

    def flight(self, flight_id: str) -> FlightView:
        """Return a flight as it is now."""
        return self._run(self._scout.flight(flight_id))

    def wait(self, flight_id: str, timeout: float | None = None) -> FlightView:
        """Return the flight when it is finished, or as it is after `timeout` seconds."""
        return self._run(self._scout.wait(flight_id, timeout))

    def cancel(self, flight_id: str, reason: str = "") -> FlightView:
        """Cancel a flight that is no longer needed."""
        return self._run(self._scout.cancel(flight_id, reason))

    def retry(self, flight_id: str) -> AskReceipt:
        """Retry a failed or cancelled ask in a new flight."""
        return self._run(self._scout.retry(flight_id))

    def inbox(self, *, everything: bool = False) -> Page[InboxItem]:
        """Return the unread items of your inbox; nothing is claimed."""
        return self._run(self._scout.inbox(everything=everything))

    def claim(self, limit: int | None = None, wait: float = 0) -> Claimed:
        """Claim the items of your inbox for the duration of a lease."""
        return self._run(self._scout.claim(limit, wait))

    def ack(self, *delivery_ids: str) -> Settled:
        """Acknowledge deliveries."""
        return self._run(self._scout.ack(*delivery_ids))

    def nack(self, *delivery_ids: str, problem: str = "", retry_after: float | None = None) -> Settled:
        """Reject deliveries for now."""
        return self._run(self._scout.nack(*delivery_ids, problem=problem, retry_after=retry_after))

    def search(self, query: str) -> Page[Hit]:
        """Search messages and work for these words, newest first."""
        return self._run(self._scout.search(query))


async def _read_next(stream: AsyncIterator[Event]) -> Event:
    return await anext(stream)


async def _close(stream: AsyncIterator[Event]) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()
