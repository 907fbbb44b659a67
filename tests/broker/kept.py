"""A harness of the tests: it keeps a program between turns, resumes, forks, and can be opened in a terminal.

Its programs are names in a folder, so that they outlive the broker as real ones do. A body directs it:
`hang` works until it is interrupted, everything else is answered with what the session was told so far.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

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
    Observed,
    OpenedSession,
    Probe,
    Prompt,
    SessionSpec,
    Started,
    TurnUsage,
    UsageKind,
)

ABLE = Capabilities(
    resume=True, fork=True, keeps_process=True, calls_back=True, usage=UsageKind.EXACT, starts_programs=True
)


class Kept(BasicHarness):
    """Sessions are files `native/<id>` of lines; a running program is a file `warm/<session id>`."""

    name = "acp"

    def __init__(self, folder: Path, capabilities: Capabilities = ABLE) -> None:
        self.capabilities = capabilities
        self.native = folder / "native"
        self.warm = folder / "warm"
        for one in (self.native, self.warm):
            one.mkdir(parents=True, exist_ok=True)
        self.specs: list[SessionSpec] = []
        self.observed: list[Observed] = []
        self.broken = ""
        self.words: tuple[str, ...] = ("true",)
        self._hanging: dict[str, asyncio.Event] = {}
        self._told: set[str] = set()

    async def probe(self) -> Probe:
        return Probe(ready=True, version="1.2", notes=("what it runs is not confined",))

    async def start(self, spec: SessionSpec) -> Started:
        self.specs.append(spec)
        if self.broken:
            raise Refused(refuse_attach(self.name, spec, spec.session_id, self.broken))
        native = spec.native_ids.get("session") or f"native-{spec.session_id}"
        known = self.native / native
        if not known.exists():
            known.write_text((self.native / spec.fork_of).read_text() if spec.fork_of else "")
        (self.warm / spec.session_id).write_text(native)
        return Started(native_ids={"session": native}, model="kept-1")

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        self.specs.append(spec)
        if not (self.native / native_id).exists():
            raise Refused(refuse_attach(self.name, spec, native_id, "it is not on this machine"))
        return Started(native_ids={"session": native_id})

    async def is_warm(self, session_id: str) -> bool:
        return (self.warm / session_id).exists()

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        self.specs.append(spec)
        started = await self.start(spec) if not await self.is_warm(spec.session_id) else None
        native = self.native / (spec.native_ids or (started.native_ids if started else {}))["session"]
        yield Accepted()
        if prompt.body == "hang":
            over = self._hanging.setdefault(spec.session_id, asyncio.Event())
            self._told.add(prompt.delivery_id)
            await over.wait()
            del self._hanging[spec.session_id]
            yield Failed(layer=Layer.SESSION, reason="interrupted")
            return
        if prompt.delivery_id not in self._told:
            self._told.add(prompt.delivery_id)
            with native.open("a") as file:
                file.write(f"{prompt.body}\n")
        yield TurnUsage(prompt_tokens=7, completion_tokens=3, model="kept-1", estimated=False)
        yield Completed(text=" ".join(native.read_text().split("\n")).strip())

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        hanging = self._hanging.get(session_id)
        if hanging is not None:
            hanging.set()
        return hanging is not None

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        return InspectResult.TAKEN if delivery_id in self._told else InspectResult.UNKNOWN

    async def stop(self, session_id: str) -> None:
        (self.warm / session_id).unlink(missing_ok=True)
        if session_id in self._hanging:
            self._hanging[session_id].set()

    async def open(self, spec: SessionSpec) -> OpenedSession:
        return OpenedSession(
            command=self.words, cwd=spec.cwd, environment={"KEPT": spec.native_ids["session"]}
        )

    async def observe(self) -> list[Observed]:
        return self.observed
