"""The harness `claude`: a Claude Code of its own for each session, held by a keeper between turns."""

import asyncio
import itertools
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from scout.adapters.claude import files, flags
from scout.adapters.claude.door import knock
from scout.adapters.claude.events import INTERRUPTED, Reading, answers, asked, cancelled_request
from scout.adapters.claude.login import LOGIN, is_logged_in
from scout.adapters.claude.programs import (
    INSTALL,
    ClaudePrograms,
    ClaudeUnavailable,
    ident_of,
    is_scouts_own,
    open_elsewhere,
    session_of,
)
from scout.adapters.harness import Plain, not_attachable
from scout.adapters.instructions import first_prompt
from scout.adapters.persistent.pipe import PipeLine, Wire, WireLimits
from scout.adapters.persistent.rpc import message_of
from scout.base.codec import encode
from scout.base.refusal import Refused
from scout.model.delivery import InspectResult
from scout.model.problems.session import Layer, Missing
from scout.ports import (
    Accepted,
    Capabilities,
    Completed,
    Failed,
    HarnessEvent,
    HumanAnswer,
    Observed,
    OpenedSession,
    Probe,
    Prompt,
    SessionSpec,
    Started,
    Tailed,
    UsageKind,
)

_STOPPED = "the session was stopped"
_HELLO = "hello"
_STEER = "steer:"
_HELLO_WAIT = 60.0
_LOOK = 1.0
_VERSION_WAIT = 10.0


class Claude(Plain):
    """Each session is one of Claude Code's. What its programs were told and said is below `sessions`."""

    name = "claude"

    def __init__(
        self, sessions: Path, environment: tuple[str, ...] = (), limits: WireLimits = WireLimits()
    ) -> None:
        self._programs = ClaudePrograms(sessions.absolute(), environment, limits)
        self._limits = limits
        self._steers = itertools.count(1)
        self.capabilities = Capabilities(
            resume=True,
            fork=True,
            steer=True,
            permissions=True,
            usage=UsageKind.EXACT,
            live_wake=True,
            calls_back=True,
            keeps_process=True,
            native_profiles=flags.native_profiles(flags.as_root(self._programs.environment())),
        )

    async def probe(self) -> Probe:
        environment = self._programs.environment()
        notes = flags.notes(flags.as_root(environment))
        program = shutil.which(self.name, path=environment["PATH"])
        if program is None:
            return Probe(ready=False, missing=Missing.BINARY, hint=INSTALL, program=self.name, notes=notes)
        version = await _version(program, environment)
        if not await asyncio.to_thread(is_logged_in, self._programs.home, environment):
            return Probe(ready=False, version=version, missing=Missing.LOGIN, hint=LOGIN, notes=notes)
        return Probe(ready=True, version=version, notes=notes)

    # -- sessions --------------------------------------------------------------------------------

    async def start(self, spec: SessionSpec) -> Started:
        """The same program again while it runs; otherwise one that goes on with the session."""
        try:
            wire = await self._programs.ready(spec)
            await self._hello(wire)
        except ClaudeUnavailable as problem:
            raise Refused(problem.diagnostic(spec)) from problem
        await _rest(wire, spec)
        return _started(wire, spec)

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        own = self._programs.running(spec.session_id)
        if own is not None and native_id == session_of(spec):
            return _started(own, spec)
        if files.transcript_of(self._programs.home, native_id) is None:
            raise Refused(not_attachable(self.name, spec, native_id, "Claude Code has no such session here"))
        if other := await asyncio.to_thread(self._programs.elsewhere, spec, native_id):
            raise Refused(not_attachable(self.name, spec, native_id, open_elsewhere(other)))
        return Started(native_ids={"session": native_id}, model=spec.model)

    async def is_warm(self, session_id: str) -> bool:
        wire = self._programs.running(session_id)
        return wire is not None and await wire.connect()

    async def stop(self, session_id: str) -> None:
        for wire in self._programs.all(session_id):
            await wire.stop(_STOPPED, self._limits)

    async def open(self, spec: SessionSpec) -> OpenedSession:
        native = session_of(spec)
        if files.transcript_of(self._programs.home, native) is None:
            raise Refused(not_attachable(self.name, spec, native, "nothing was said in it yet"))
        own = {k: v for k, v in self._programs.environment().items() if k == "CLAUDE_CONFIG_DIR"}
        return OpenedSession(command=(self.name, "--resume", native), cwd=spec.cwd, environment=own)

    async def knock(self, native_id: str, text: str) -> bool:
        return await knock(self._programs.home, native_id, text)

    async def observe(self) -> list[Observed]:
        return await asyncio.to_thread(files.observed, self._programs.home)

    async def tail(self, spec: SessionSpec, after: int, limit: int) -> Tailed:
        return await asyncio.to_thread(files.tail_of, self._programs.home, spec, after, limit)

    async def _hello(self, wire: Wire) -> None:
        """Wait until the program answers: one that cannot go on with its session ends instead."""
        if wire.begun_at(_HELLO) is None:
            await wire.tell(_control(_HELLO, {"subtype": "initialize"}), _HELLO)
        with suppress(TimeoutError):
            async with asyncio.timeout(_HELLO_WAIT):
                async for line in wire.heard(wire.begun_at(_HELLO) or 0):
                    if b'"control_response"' in line.text:
                        return
                raise ClaudeUnavailable(**_death(wire))
        await wire.stop(f"it said nothing for {_HELLO_WAIT:g} s", self._limits)
        raise ClaudeUnavailable(**_death(wire))

    # -- a turn ----------------------------------------------------------------------------------

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        try:
            wire = await self._told(spec, prompt)
        except ClaudeUnavailable as problem:
            yield problem.failed
            return
        process = wire.run.process
        yield Accepted(pid=process and process.pid, pid_started=process and process.started)
        async for event in self._turn(wire, prompt.delivery_id):
            yield event
        await _rest(wire, spec)

    async def _told(self, spec: SessionSpec, prompt: Prompt) -> Wire:
        """The program that has the prompt; it is told once."""
        wire = self._programs.holder(spec.session_id, prompt.delivery_id)
        if wire is not None:
            return wire
        wire = await self._programs.ready(spec)
        knows = is_scouts_own(spec) or self._programs.had_turns(spec.session_id)
        text = first_prompt(spec, prompt, had_turns=knows)
        if not await wire.tell(_said(text, prompt.delivery_id), prompt.delivery_id):
            raise ClaudeUnavailable(f"its program is gone: {await wire.how_it_ended()}", again=True)
        return wire

    async def _turn(self, wire: Wire, delivery_id: str) -> AsyncIterator[HarnessEvent]:
        """What the program says about a turn, from its beginning, to its end."""
        await wire.connect()
        reading, begun = Reading(ident_of(delivery_id)), wire.begun_at(delivery_id) or 0
        watch = asyncio.create_task(self._watch(wire, reading))
        try:
            async for line in wire.heard(begun):
                async for event in self._meaning(wire, reading, line, begun):
                    yield event
                if reading.over:
                    return
        finally:
            watch.cancel()
        yield await asyncio.to_thread(self._lost, wire, delivery_id)

    async def _meaning(
        self, wire: Wire, reading: Reading, line: PipeLine, begun: int
    ) -> AsyncIterator[HarnessEvent]:
        message = message_of(line.text)
        for request in reading.waiting:
            if wire.begun_at(_reply(request)) is not None:
                for event in reading.settled(request):
                    yield event
        if message.get("type") == "control_request" and not await self._needs_answer(wire, message, line):
            return
        steered = _steered(wire, begun, line.after) if message.get("type") == "result" else ()
        for event in reading.hear(message, steered):
            yield event

    async def _needs_answer(self, wire: Wire, message: dict[str, Any], line: PipeLine) -> bool:
        """Whether a person is asked: not what was answered or taken back, nor what nobody here can answer."""
        request = str(message.get("request_id"))
        if wire.begun_at(_reply(request)) is not None or not wire.is_running:
            return False
        if asked(message) is None:
            refusal = {"subtype": "error", "request_id": request, "error": "Scout does not do this"}
            await wire.tell(encode({"type": "control_response", "response": refusal}), _reply(request))
            return True
        return not _taken_back(wire, request, line.after)

    async def _watch(self, wire: Wire, reading: Reading) -> None:
        """End a turn that takes too long or says too much; the time of people does not count."""
        last, left = time.monotonic(), self._limits.turn
        while left > 0 and wire.run.stdout.stat().st_size <= self._limits.output:
            await asyncio.sleep(min(_LOOK, left))
            passed, last = time.monotonic() - last, time.monotonic()
            left -= 0 if reading.waiting else passed
        why = f"the turn took longer than {self._limits.turn:g} s" if left <= 0 else "it said too much"
        await wire.stop(why, self._limits)

    def _lost(self, wire: Wire, delivery_id: str) -> HarnessEvent:
        """The program ended without a result: its transcript may hold the answer."""
        text = None if wire.run.stopped else self._written(wire, delivery_id)
        return Failed(**_death(wire)) if text is None else Completed(text=text)

    def _written(self, wire: Wire, delivery_id: str) -> str | None:
        named = (message_of(line.text).get("session_id") for line in wire.said())
        native = next((one for one in named if isinstance(one, str)), None)
        return self._programs.final_text(native, ident_of(delivery_id)) if native else None

    # -- into a turn -----------------------------------------------------------------------------

    async def steer(self, session_id: str, text: str) -> bool:
        """Claude Code reads it between two tools; after the last one, as a prompt of its own in the turn."""
        wire = self._programs.running(session_id)
        if wire is None or not _busy(wire):
            return False
        tag = f"{_STEER}{time.time_ns()}.{next(self._steers)}"
        return await wire.tell(_said(text, tag), tag)

    async def respond(self, session_id: str, request: str, answer: HumanAnswer) -> bool:
        wire = self._programs.running(session_id)
        found = _request(wire, request) if wire else None
        if wire is None or found is None or wire.begun_at(_reply(request)) is not None:
            return False
        if _taken_back(wire, request, found.after):
            return False
        response = answers(message_of(found.text), answer.allow, answer.text)
        body = {"subtype": "success", "request_id": request, "response": response}
        return await wire.tell(encode({"type": "control_response", "response": body}), _reply(request))

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        wire = self._programs.holder(session_id, delivery_id)
        if wire is None or not wire.is_running or _is_over(wire, delivery_id):
            return False
        begun = wire.begun_at(delivery_id) or 0
        for ident in (*_steered(wire, begun, None), ident_of(delivery_id)):
            taken_back = {"subtype": "cancel_async_message", "message_uuid": ident}
            await wire.tell(_control(f"back:{ident}", taken_back))
        await wire.tell(_control(f"stop:{delivery_id}", {"subtype": "interrupt"}))
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.grace):
                while wire.is_running and not _is_over(wire, delivery_id):  # noqa: ASYNC110 (a file gives no event)
                    await asyncio.sleep(0.02)
        if not _is_over(wire, delivery_id):
            await wire.stop(INTERRUPTED, self._limits)
        return True

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        wire = self._programs.holder(session_id, delivery_id)
        if wire is None:
            return InspectResult.NOT_TAKEN
        if wire.is_running or wire.run.stopped or _is_over(wire, delivery_id):
            return InspectResult.TAKEN
        return InspectResult.UNKNOWN if self._written(wire, delivery_id) is None else InspectResult.TAKEN


# -- what is told ----------------------------------------------------------------------------------


def _said(text: str, tag: str) -> bytes:
    """A prompt. At the very beginning of one, a slash would be a command of the program."""
    content = f" {text}" if text.startswith("/") else text
    return encode({"type": "user", "message": {"role": "user", "content": content}, "uuid": ident_of(tag)})


def _control(ident: str, request: dict[str, Any]) -> bytes:
    return encode({"type": "control_request", "request_id": ident, "request": request})


def _reply(request: str) -> str:
    return f"re:{request}"


async def _rest(wire: Wire, spec: SessionSpec) -> None:
    if spec.idle is not None and wire.is_running and not await asyncio.to_thread(_busy, wire):
        await wire.rest(spec.idle)


# -- what was said ---------------------------------------------------------------------------------


def _steered(wire: Wire, begun: int, by: int | None) -> list[str]:
    """The prompts that were said into a turn, until the program had said so much."""
    told = (one for one in wire.told() if one.tag.startswith(_STEER) and one.at >= begun)
    return [ident_of(one.tag) for one in told if by is None or one.at < by]


def _busy(wire: Wire) -> bool:
    """Whether a turn of a prompt runs."""
    prompts = [one.tag for one in wire.told() if b'"type":"user"' in one.text and ":" not in one.tag]
    return bool(prompts) and not _is_over(wire, prompts[-1])


def _is_over(wire: Wire, delivery_id: str) -> bool:
    """Whether the program said how a turn ended."""
    begun = wire.begun_at(delivery_id) or 0
    reading = Reading(ident_of(delivery_id))
    for line in wire.said(begun):
        message = message_of(line.text)
        steered = _steered(wire, begun, line.after) if message.get("type") == "result" else ()
        for _ in reading.hear(message, steered):
            pass
    return reading.over


def _request(wire: Wire, request: str) -> PipeLine | None:
    lines = (line for line in wire.said() if request.encode() in line.text)
    return next((line for line in lines if asked(message_of(line.text)) is not None), None)


def _taken_back(wire: Wire, request: str, after: int) -> bool:
    later = (line.text for line in wire.said(after) if request.encode() in line.text)
    return any(cancelled_request(message_of(line)) == request for line in later)


def _death(wire: Wire) -> dict[str, Any]:
    """Why there is no answer: its program is gone."""
    stopped = wire.run.stopped
    if stopped in {INTERRUPTED, _STOPPED}:
        return {"layer": Layer.SESSION, "reason": stopped}
    end = wire.end
    lost = "No conversation found" in end or "already in use" in end
    reason = f"its program ended: {end}"
    return {"layer": Layer.SESSION if lost else Layer.PROCESS, "reason": reason, "log": str(wire.run.stderr)}


def _started(wire: Wire, spec: SessionSpec) -> Started:
    process = wire.run.process
    return Started(
        native_ids={"session": session_of(spec)},
        pid=process and process.pid,
        pid_started=process and process.started,
        model=spec.model,
    )


async def _version(program: str, environment: dict[str, str]) -> str | None:
    """What it says about itself; it has nothing else to do with that."""
    with suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            program,
            "--version",
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(_VERSION_WAIT):
                said, _ = await process.communicate()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        return next(iter(said.decode("utf-8", "replace").split()), None)
    return None
