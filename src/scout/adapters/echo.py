"""The harness `echo`: it answers with the message itself. For tests and the demo.

The first line of the message may direct it: `!say TEXT`, `!fail REASON`, `!refuse REASON`, `!hang`.
"""

import asyncio
from collections.abc import AsyncIterator

from scout.adapters.harness import BasicHarness, refuse_attach
from scout.base.refusal import Refused
from scout.model.delivery import InspectResult
from scout.model.problems.session import Layer
from scout.ports import (
    Accepted,
    Capabilities,
    Completed,
    Failed,
    HarnessEvent,
    Probe,
    Prompt,
    SessionSpec,
    Started,
)

_REMEMBERED = 4096
_Turn = tuple[str, str]
_NOTES = ("it runs no program, so there are no permissions and no sessions to wake",)


class Echo(BasicHarness):
    """It runs inside the broker, so it forgets its turns when the broker ends."""

    name = "echo"
    capabilities = Capabilities(starts_programs=False, calls_model=False, plain_body=True, hidden=True)

    def __init__(self) -> None:
        self._turns: dict[_Turn, asyncio.Event | None] = {}  # the event interrupts a turn that hangs

    async def probe(self) -> Probe:
        return Probe(ready=True, notes=_NOTES)

    async def start(self, spec: SessionSpec) -> Started:
        return Started(native_ids={"session": spec.session_id}, model=spec.model)

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        if native_id != spec.session_id:
            reason = "echo has no sessions to attach"
            raise Refused(refuse_attach(self.name, spec, native_id, reason))
        return await self.start(spec)

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        word, _, rest = prompt.body.partition("\n")[0].partition(" ")
        if word == "!refuse":
            yield Failed(layer=Layer.HARNESS, reason=rest or "refused", again=True)
            return
        interrupted = self._take((spec.session_id, prompt.delivery_id), hangs=word == "!hang")
        yield Accepted()
        if interrupted is not None:
            await interrupted.wait()
            yield Failed(layer=Layer.SESSION, reason="interrupted")
        elif word == "!fail":
            yield Failed(layer=Layer.HARNESS, reason=rest or "failed")
        else:
            yield Completed(text=rest if word == "!say" else prompt.body)

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        interrupted = self._turns.get((session_id, delivery_id))
        if interrupted is None or interrupted.is_set():
            return False
        interrupted.set()
        return True

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        return InspectResult.TAKEN if (session_id, delivery_id) in self._turns else InspectResult.UNKNOWN

    async def stop(self, session_id: str) -> None:
        for (session, _), interrupted in self._turns.items():
            if session == session_id and interrupted is not None:
                interrupted.set()

    def _take(self, turn: _Turn, *, hangs: bool) -> asyncio.Event | None:
        """Remember a turn. The oldest finished one is forgotten."""
        if turn not in self._turns:
            self._turns[turn] = asyncio.Event() if hangs else None
            if len(self._turns) > _REMEMBERED:
                self._forget()
        return self._turns[turn]

    def _forget(self) -> None:
        over = (turn for turn, event in self._turns.items() if event is None or event.is_set())
        del self._turns[next(over)]
