"""The harness `codex`: an app server of its own for each session, held by a keeper."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from scout.adapters.codex import files, flags
from scout.adapters.codex.door import knock
from scout.adapters.codex.events import INTERRUPTED, CodexReader, End
from scout.adapters.codex.program import CodexProgram, text_input
from scout.adapters.codex.programs import CodexPrograms, CodexUnavailable
from scout.adapters.codex.requests import replied
from scout.adapters.harness import Plain, not_attachable
from scout.adapters.persistent.pipe import WireLimits
from scout.adapters.persistent.rpc import RpcError, is_call, message_of
from scout.base.refusal import Refused
from scout.model.agent import PermissionProfile
from scout.model.delivery import InspectResult
from scout.model.problems.session import Layer, Missing
from scout.ports import (
    Accepted,
    Capabilities,
    Completed,
    Failed,
    HarnessEvent,
    HumanAnswer,
    Identified,
    Limited,
    Observed,
    OpenedSession,
    Probe,
    Prompt,
    SessionSpec,
    Started,
    Tailed,
    UsageKind,
)

_INTERRUPTED = Failed(layer=Layer.SESSION, reason=INTERRUPTED)
_SESSION_STOPPED = "the session was stopped"
_LOOK = 1.0
_STEER = 10.0
_VERSION = 10.0


class Codex(Plain):
    """Each session is a thread of Codex. What its programs were told and said is below `sessions`."""

    name = "codex"
    capabilities = Capabilities(
        resume=True,
        fork=True,
        steer=True,
        permissions=True,
        usage=UsageKind.EXACT,
        live_wake=True,
        calls_back=True,
        keeps_process=True,
        native_profiles=tuple(PermissionProfile),
    )

    def __init__(
        self, sessions: Path, environment: tuple[str, ...] = (), limits: WireLimits = WireLimits()
    ) -> None:
        self._programs = CodexPrograms(sessions.absolute(), environment, limits)
        self._limits = limits
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def probe(self) -> Probe:
        environment = await asyncio.to_thread(self._programs.environment)
        program = flags.program(environment)
        if program is None:
            return Probe(
                ready=False, missing=Missing.BINARY, hint=flags.INSTALL, program=self.name, notes=flags.NOTES
            )
        version = await _version(program, environment)
        if not await asyncio.to_thread(flags.is_logged_in, environment):
            return Probe(
                ready=False, version=version, missing=Missing.LOGIN, hint=flags.LOGIN, notes=flags.NOTES
            )
        return Probe(ready=True, version=version, notes=flags.NOTES)

    # -- sessions --------------------------------------------------------------------------------

    async def start(self, spec: SessionSpec) -> Started:
        """The same program again while it runs; otherwise one that holds the session's thread."""
        try:
            async with self._locks[spec.session_id]:
                program = await self._programs.running(spec)
                await program.rest(spec.idle)
        except CodexUnavailable as problem:
            raise Refused(problem.diagnostic(spec)) from problem
        return _started(program)

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        own = self._programs.newest(spec.session_id)
        if own is not None and own.wire.is_running and own.thread == native_id:
            return _started(own)
        if files.transcript_of(self._programs.home, native_id) is None:
            raise Refused(not_attachable(self.name, spec, native_id, "Codex has no such thread here"))
        if writer := await asyncio.to_thread(files.live_session, self._programs.home, native_id):
            reason = f"another program writes to it now: process {writer.process.pid}"
            raise Refused(not_attachable(self.name, spec, native_id, reason))
        return Started(native_ids={"thread": native_id}, model=spec.model)

    async def is_warm(self, session_id: str) -> bool:
        async with self._locks[session_id]:
            program = self._programs.newest(session_id)
            return program is not None and program.is_opened and await program.wire.connect()

    async def stop(self, session_id: str) -> None:
        for program in self._programs.all(session_id):
            await program.wire.stop(_SESSION_STOPPED, self._limits)

    async def open(self, spec: SessionSpec) -> OpenedSession:
        thread = spec.native_ids.get("thread")
        if thread is None or files.transcript_of(self._programs.home, thread) is None:
            reason = "nothing has been said in it yet"
            raise Refused(not_attachable(self.name, spec, thread or spec.session_id, reason))
        environment = await asyncio.to_thread(self._programs.environment)
        home = {name: value for name, value in environment.items() if name == "CODEX_HOME"}
        return OpenedSession(command=("codex", "resume", thread), cwd=spec.cwd, environment=home)

    async def knock(self, native_id: str, text: str) -> bool:
        environment = await asyncio.to_thread(self._programs.environment)
        program = flags.program(environment)
        return program is not None and await knock(str(program), native_id, text, environment)

    async def observe(self) -> list[Observed]:
        return await asyncio.to_thread(files.observed, self._programs.home)

    async def tail(self, spec: SessionSpec, after: int, limit: int) -> Tailed:
        return await asyncio.to_thread(files.tail_of, self._programs.home, spec, after, limit)

    # -- turns -----------------------------------------------------------------------------------

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        try:
            program = await self._told(spec, prompt)
        except CodexUnavailable as problem:
            yield problem.failed
            return
        reader = CodexReader(prompt.delivery_id, program.number, program.model)
        watching = asyncio.create_task(self._watch(program, reader, prompt.delivery_id))
        try:
            async for event in self._turn(program, reader, prompt.delivery_id):
                if isinstance(event, Completed | Limited | Failed):
                    await program.rest(spec.idle, after=prompt.delivery_id)
                yield _explained(program) if event == _INTERRUPTED else event
        finally:
            watching.cancel()

    async def _told(self, spec: SessionSpec, prompt: Prompt) -> CodexProgram:
        """The program that has the prompt: it was told before, or is told now."""
        ident = prompt.delivery_id
        async with self._locks[spec.session_id]:
            program = self._programs.holder(spec.session_id, ident)
            if program is not None and await self._is_taken(program, ident):
                await program.wire.connect()
                return program
            program = await self._programs.running(spec)
            params = {
                "threadId": program.thread,
                "input": text_input(prompt.text),
                "clientUserMessageId": ident,
            }
            try:
                await program.rpc.send(ident, "turn/start", params)
            except RpcError as error:
                if program.wire.begun_at(ident) is None:
                    await program.wire.stop(str(error), self._limits)
                    raise CodexUnavailable(str(error), again=True) from error
            return program

    async def _turn(
        self, program: CodexProgram, reader: CodexReader, delivery_id: str
    ) -> AsyncIterator[HarnessEvent]:
        """What the program tells of one turn, from its beginning to its end or to the program's."""
        begun = program.wire.begun_at(delivery_id) or 0
        accepted = False
        async for line in program.wire.heard(begun):
            message = message_of(line.text)
            for event in await self._heeded(program, reader, message):
                if isinstance(event, Completed | Limited | Failed):
                    yield event
                    return
                if accepted:
                    yield event
            if reader.turn_id and not accepted:
                accepted = True
                yield _accepted(program)
                yield Identified(native_ids={"thread": program.thread}, model=program.model)
        end, taken = await self._lost(program, delivery_id)
        if taken and not accepted:
            yield _accepted(program)
        yield end

    async def _heeded(
        self, program: CodexProgram, reader: CodexReader, message: Any
    ) -> Iterable[HarnessEvent]:
        """A request is for a person, or is refused at once so that nothing waits for it."""
        if not is_call(message):
            return list(reader.read(message))
        needed = reader.asked(message)
        if needed is None:
            await program.rpc.refuse(message["id"], "Scout has nobody for this request")
            return ()
        return (needed,) if program.is_open(message["id"]) else ()

    async def _is_taken(self, program: CodexProgram, delivery_id: str) -> bool:
        """Whether its program works on a delivery, or did."""
        return program.wire.is_running or await asyncio.to_thread(self._programs.took, program, delivery_id)

    async def _lost(self, program: CodexProgram, delivery_id: str) -> tuple[End, bool]:
        """The end of a turn whose program is gone, and whether the program had taken it."""
        if end := await asyncio.to_thread(self._programs.end_in_thread, program, delivery_id):
            return end, True
        taken = await asyncio.to_thread(self._programs.took, program, delivery_id)
        if program.wire.run.stopped:
            return _explained(program), taken
        when = "in the middle of the turn" if taken else "before it took the turn"
        reason, log = f"it ended {when}: {program.wire.end}", str(program.wire.run.stderr)
        return Failed(layer=Layer.PROCESS, reason=reason, log=log, again=not taken), taken

    async def _watch(self, program: CodexProgram, reader: CodexReader, delivery_id: str) -> None:
        """End a program whose turn takes too long, not counting the time in which it waits for a person."""
        begun, seconds, excess = program.wire.begun_at(delivery_id) or 0, 0.0, ""
        while not excess:
            await asyncio.sleep(_LOOK)
            seconds += 0.0 if reader.waits else _LOOK
            if seconds > self._limits.turn:
                excess = f"it took longer than {self._limits.turn:g} s"
            elif program.wire.run.stdout.stat().st_size - begun > self._limits.output:
                excess = f"it said more than {self._limits.output} bytes in a turn"
        await program.wire.stop(excess, self._limits)

    async def steer(self, session_id: str, text: str) -> bool:
        program = self._programs.newest(session_id)
        turns = program.turns if program is not None else []
        if program is None or not turns or not program.wire.is_running or program.is_over(turns[-1]):
            return False
        tag = f"steer:{len(program.wire.told())}"
        params = {
            "threadId": program.thread,
            "expectedTurnId": program.turn_id(turns[-1]),
            "input": text_input(text),
        }
        try:
            await program.rpc.call(tag, "turn/steer", params, _STEER)
        except RpcError:
            return False
        return True

    async def respond(self, session_id: str, request: str, answer: HumanAnswer) -> bool:
        number, _, ident = request.partition("/")
        program = next((one for one in self._programs.all(session_id) if one.number == number), None)
        if program is None or not program.wire.is_running:
            return False
        message = await asyncio.to_thread(program.request, ident)
        return message is not None and await program.rpc.reply(message["id"], replied(message, answer))

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        """The turn is over in the thread, too; what its commands left running ends with the program."""
        async with self._locks[session_id]:
            program = self._programs.holder(session_id, delivery_id)
            if program is None or not program.wire.is_running or program.is_over(delivery_id):
                return False
            with suppress(RpcError, TimeoutError):
                async with asyncio.timeout(self._limits.grace):
                    await program.interrupt(delivery_id)
            return await program.wire.stop(INTERRUPTED, self._limits)

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        program = self._programs.holder(session_id, delivery_id)
        if program is None:
            return InspectResult.NOT_TAKEN
        taken = await self._is_taken(program, delivery_id)
        return InspectResult.TAKEN if taken else InspectResult.NOT_TAKEN


def _explained(program: CodexProgram) -> Failed:
    """The end of a turn that ended because its program was stopped: by whom, and why."""
    stopped = program.wire.run.stopped
    if stopped in ("", INTERRUPTED):
        return _INTERRUPTED
    layer = Layer.SESSION if stopped == _SESSION_STOPPED else Layer.PROCESS
    return Failed(layer=layer, reason=stopped, log=str(program.wire.run.stderr))


def _accepted(program: CodexProgram) -> Accepted:
    process = program.wire.run.process
    return Accepted(pid=process and process.pid, pid_started=process and process.started)


def _started(program: CodexProgram) -> Started:
    process = program.wire.run.process
    return Started(
        native_ids={"thread": program.thread},
        pid=process and process.pid,
        pid_started=process and process.started,
        model=program.model,
    )


async def _version(program: Path, environment: dict[str, str]) -> str | None:
    """What it says of itself: `codex-cli 0.166.0`."""
    null = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            program, "--version", stdin=null, stdout=asyncio.subprocess.PIPE, stderr=null, env=environment
        )
    except OSError:
        return None
    try:
        said, _ = await asyncio.wait_for(process.communicate(), _VERSION)
    except TimeoutError:
        process.kill()
        await process.wait()
        return None
    return next(iter(reversed(said.decode("utf-8", "replace").split())), None)
