"""A connector at work on a thread of its own, with an inlet that keeps what it takes."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

import uvloop

from scout.ports.connector import (
    ChatPlace,
    Connector,
    ConnectorError,
    InboundEvent,
    InboundFailure,
    InboundPress,
    InboundText,
    OutboundText,
)
from tests.guard.loop_guard import watching

__all__ = ["KeepingInlet", "Running", "failing", "text_to"]

T = TypeVar("T")
_WAIT = 60.0  # seconds: a busy machine is no failure
_LOOK = 0.02


class KeepingInlet:
    """Takes each event once, as the broker does. `cursor` survives a connector that is started again."""

    def __init__(self) -> None:
        self.taken: list[InboundEvent] = []
        self.offered: list[str] = []
        self.cursor: str | None = None
        self.refuses = 0
        """The next events that are not taken, as if the disk were full."""
        self._changed = threading.Condition()

    async def receive(self, inbound: InboundEvent) -> None:
        with self._changed:
            self.offered.append(inbound.id)
            self._changed.notify_all()
            if self.refuses:
                self.refuses -= 1
                raise OSError("no space left on device")
            if inbound.id not in {one.id for one in self.taken}:
                self.taken.append(inbound)

    def get_cursor(self) -> str | None:
        return self.cursor

    async def move_cursor(self, cursor: str) -> None:
        with self._changed:
            self.cursor = cursor
            self._changed.notify_all()

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for something that an event, a cursor or the other side changes; the other side wakes nobody."""
        until = time.monotonic() + _WAIT
        with self._changed:
            while not condition():
                assert time.monotonic() < until, f"not within {_WAIT} s; taken: {self.taken}"
                self._changed.wait(_LOOK)

    def texts(self, count: int) -> list[InboundText]:
        """The texts, once there are this many."""
        self.wait_until(lambda: len(self._list(InboundText)) >= count)
        return self._list(InboundText)

    def presses(self, count: int) -> list[InboundPress]:
        """The presses, once there are this many."""
        self.wait_until(lambda: len(self._list(InboundPress)) >= count)
        return self._list(InboundPress)

    def failures(self, count: int) -> list[InboundFailure]:
        """The reports of messages that were not delivered, once there are this many."""
        self.wait_until(lambda: len(self._list(InboundFailure)) >= count)
        return self._list(InboundFailure)

    def _list(self, kind: type[T]) -> list[T]:
        return [one for one in self.taken if isinstance(one, kind)]


class Running:
    """A connector on the loop that the daemon uses; the loop is watched, so nothing may hold it up."""

    def __init__(
        self, connector: Connector, inlet: KeepingInlet | None = None, *, receiving: bool = True
    ) -> None:
        self.connector = connector
        self.inlet = inlet or KeepingInlet()
        self._receiving = receiving
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._serve)
        self._run: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        if self._receiving:
            self.do(self._begin())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_WAIT)
        self._loop.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a call of the connector, on its own thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_WAIT)

    def wait_for_failure(self) -> BaseException:
        """Why it stopped receiving."""
        return self.do(self._wait_for_failure())

    def send(self, message: OutboundText) -> str:
        """Send a message; its id on the platform."""
        return self.do(self.connector.send(message)).message_id

    def _serve(self) -> None:
        with watching():
            asyncio.set_event_loop(self._loop)
            self._loop.run_forever()

    async def _begin(self) -> None:
        self._run = asyncio.create_task(self.connector.run(self.inlet))

    async def _end(self) -> None:
        if self._run is not None:
            self._run.cancel()
            await asyncio.wait([self._run])
            if not self._run.cancelled():
                self._run.exception()
        await self.connector.close()
        await self._loop.shutdown_default_executor()

    async def _wait_for_failure(self) -> BaseException:
        assert self._run is not None
        await asyncio.wait([self._run], timeout=_WAIT)
        error = self._run.exception()
        assert error is not None
        return error


def failing(call: Callable[[], object]) -> ConnectorError:
    """The failure of a call; nothing else may leave a connector."""
    try:
        call()
    except ConnectorError as error:
        return error
    raise AssertionError("the call did not fail")


def text_to(chat: str, text: str = "hello", *, thread: str | None = None, **more: Any) -> OutboundText:
    """A message to a chat."""
    place = ChatPlace(chat_id=chat, thread_id=thread, group=more.pop("group", False))
    made: dict[str, Any] = {"id": f"pst_{time.monotonic_ns()}", "plain": text, **more}
    return OutboundText(place=place, text=text, **made)
