"""The log as it grows: server-sent events, taken up again where the connection broke."""

import asyncio
from collections.abc import AsyncIterator, Callable

import httpx2
import msgspec

from scout.base.refusal import Refused
from scout.client.wire import refusal
from scout.model.events.envelope import Event
from scout.model.events.event_types import read_event
from scout.model.problems.request import Busy
from scout.protocol.overview import Watch

__all__ = ["events"]

_PAUSES = (0.05, 0.2, 0.8, 2.0, 5.0)

Lines = Callable[[Watch, int | None], AsyncIterator[str]]


class _Frame:
    """One event of the stream while its lines come in."""

    def __init__(self) -> None:
        self.id: int | None = None
        self.kind = "message"
        self.data: list[str] = []

    def take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id" and value.isdecimal():
            self.id = int(value)
        elif name == "event":
            self.kind = value
        elif name == "data":
            self.data.append(value)


async def events(lines: Lines, request: Watch) -> AsyncIterator[Event]:
    """Each event once, in order. Ends only when the caller stops, or the daemon refuses or stays away."""
    last, failures = request.after, 0
    while True:
        try:
            async for frame in _frames(lines(msgspec.structs.replace(request, after=None), last)):
                failures = 0
                if frame.kind == "dropped":
                    raise _Dropped(refusal(0, "\n".join(frame.data).encode()))
                last = frame.id if frame.id is not None else last
                yield read_event("\n".join(frame.data))
        except httpx2.TransportError as error:
            why = Refused(Busy(reason=f"the stream broke: {error or type(error).__name__}"))
        except _Dropped as dropped:
            why = dropped.refusal
        else:
            why = Refused(Busy(reason="the stream ended"))
        if failures >= len(_PAUSES):
            raise why
        await asyncio.sleep(_PAUSES[failures])
        failures += 1


class _Dropped(Exception):  # noqa: N818 (the stream goes on)
    def __init__(self, refusal: Refused) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


async def _frames(lines: AsyncIterator[str]) -> AsyncIterator[_Frame]:
    frame = _Frame()
    async for line in lines:
        if line:
            frame.take(line)
            continue
        if frame.data:
            yield frame
        frame = _Frame()
