"""The lifecycle of a harness whose program runs for many turns: Claude Code, Codex and ACP agents share it.

Each session has a folder, and each program that ran for it has a numbered folder inside. The files of a
program say everything about it (see `pipe`), so a restarted broker finds the same programs, turns and open
requests as the broker before it. A harness adds what differs: its command line, how it opens a session, and
what its lines mean.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from scout.adapters.harness import (
    INTERRUPTED,
    STOPPED,
    BasicHarness,
    TurnImpossible,
    check_id,
    choose_directory,
    read_version,
    refuse_attach,
)
from scout.adapters.persistent.pipe import Pipe, PipeLimits, choose_next_number, list_pipes
from scout.adapters.persistent.rpc import RpcError
from scout.adapters.process.run import Launch
from scout.adapters.transcript import Entry, read_context, read_tail
from scout.base.refusal import Diagnostic, Refused, Remedy
from scout.model.delivery import InspectResult
from scout.model.problems.session import HarnessUnavailable, Layer, Missing, SessionFailed
from scout.ports import (
    Accepted,
    Completed,
    ContextUse,
    Failed,
    HarnessEvent,
    HumanAnswer,
    Identified,
    Limited,
    OpenedSession,
    Probe,
    Prompt,
    SessionSpec,
    Started,
    Tailed,
    TailLine,
)

_LOOK = 1.0
NO_ACCESS = "its program has ended, and a new one needs its own credential"


class ProgramTurn(Protocol):
    """One turn of a program, read from the file of its output."""

    @property
    def is_waiting(self) -> bool:
        """Whether the program waits for a person."""
        ...

    def events(self) -> AsyncIterator[HarnessEvent]:
        """Yield the events of the turn from its beginning; the last one is its end."""
        ...


class PersistentHarness(BasicHarness, ABC):
    """A harness with one program for each session, held by a keeper between turns.

    `prompt_mark`: the bytes that mark a prompt among the lines sent to a program.
    """

    prompt_mark: bytes
    install_hint = ""

    def __init__(self, sessions: Path, environment: tuple[str, ...], limits: PipeLimits) -> None:
        self._sessions = sessions.absolute()
        self._also = environment
        self._limits = limits
        self._pipes: dict[Path, Pipe] = {}  # one object for a program: it is the connection to its keeper
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    # -- what each harness adds ------------------------------------------------------------------

    @abstractmethod
    async def _open_program(self, spec: SessionSpec) -> Pipe:
        """Return the running program of a session; start it if there is none. Raises TurnImpossible."""

    @abstractmethod
    async def _send_prompt(self, pipe: Pipe, spec: SessionSpec, prompt: Prompt) -> None:
        """Send the prompt of a turn, under the id of its delivery."""

    @abstractmethod
    def _open_turn(self, pipe: Pipe, prompt: Prompt) -> ProgramTurn:
        """Return the turn that was sent to a program."""

    @abstractmethod
    async def _cancel_turn(self, pipe: Pipe, delivery_id: str) -> None:
        """Cancel a turn, and wait until it has ended."""

    @abstractmethod
    def _is_over(self, pipe: Pipe, delivery_id: str) -> bool:
        """Whether the program has reported the end of a turn."""

    @abstractmethod
    def _identify(self, pipe: Pipe, spec: SessionSpec) -> Identified:
        """Return the program's session id and its model."""

    @abstractmethod
    def _find_request(self, pipe: Pipe, request: str) -> Entry | None:
        """Return the program's request of this name while it has no answer."""

    @abstractmethod
    async def _reply(self, pipe: Pipe, message: Entry, answer: HumanAnswer) -> bool:
        """Answer a request; whether the program took it."""

    async def _greet(self, pipe: Pipe) -> None:
        """Wait until a program that has just started answers."""

    async def _steer(self, pipe: Pipe, delivery_id: str, text: str) -> bool:
        """Send a text into a running turn; whether the program took it."""
        return False

    def _has_taken(self, pipe: Pipe, delivery_id: str) -> bool:
        """Whether a program works, or has worked, on a delivery that it was sent."""
        return True

    # -- the programs of a session ---------------------------------------------------------------

    def _get_folder(self, session_id: str) -> Path:
        return self._sessions / check_id(session_id)

    def _list_pipes(self, session_id: str) -> list[Pipe]:
        """Return the programs a session has had, the newest last."""
        found = list_pipes(self._get_folder(session_id))
        return [self._pipes.setdefault(one.run.folder, one) for one in found]

    def _make_pipe(self, session_id: str) -> Pipe:
        """Return the pipe of a session's next program."""
        folder = self._get_folder(session_id)
        pipe = Pipe(folder / str(choose_next_number(folder)))
        return self._pipes.setdefault(pipe.run.folder, pipe)

    def _find_running(self, session_id: str) -> Pipe | None:
        return next((one for one in reversed(self._list_pipes(session_id)) if one.is_running), None)

    def _find_holder(self, session_id: str, delivery_id: str) -> Pipe | None:
        """Return the program that this delivery was sent to; of several, the last."""
        pipes = reversed(self._list_pipes(session_id))
        return next((one for one in pipes if one.find_position(delivery_id) is not None), None)

    def _choose_directory(self, spec: SessionSpec) -> Path:
        folder = self._get_folder(spec.session_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return choose_directory(spec, folder / "work")

    async def _start_program(self, pipe: Pipe, launch: Launch) -> None:
        try:
            began = await pipe.begin(launch, self._limits)
        except (OSError, ValueError) as error:
            raise TurnImpossible(f"{launch.command[0]}: {error}") from error
        if not began:
            raise TurnImpossible("its shell did not start", again=True)

    # -- sessions --------------------------------------------------------------------------------

    async def start(self, spec: SessionSpec) -> Started:
        """Return the running program, or start one that resumes the session."""
        try:
            async with self._locks[spec.session_id]:
                pipe = await self._open_program(spec)
                await self._greet(pipe)
                prompts = self._list_prompts(pipe)
                if not prompts or await asyncio.to_thread(self._is_over, pipe, prompts[-1]):
                    await _stop_when_idle(pipe, spec)
        except TurnImpossible as problem:
            raise Refused(self._refuse(spec, problem.failed)) from problem
        return self._describe(pipe, spec)

    def _describe(self, pipe: Pipe, spec: SessionSpec) -> Started:
        process, known = pipe.run.process, self._identify(pipe, spec)
        return Started(
            native_ids=known.native_ids,
            pid=process and process.pid,
            pid_started=process and process.started,
            model=known.model,
        )

    def _refuse(self, spec: SessionSpec, failed: Failed) -> Diagnostic:
        """Build the refusal of a session that cannot be started."""
        if failed.missing is not None:
            look = Remedy(
                operation="runtimes.check", parameters={"harness": self.name}, why="see what is missing"
            )
            absent = failed.missing is Missing.BINARY
            return HarnessUnavailable(
                harness=self.name,
                missing=failed.missing,
                hint=self.install_hint if absent else failed.reason,
                program=self.name if absent else "",
                remedies=(look,),
            )
        if failed.layer is Layer.SESSION and (native := self._native_id(spec) or spec.fork_of):
            return refuse_attach(self.name, spec, native, failed.reason)
        return SessionFailed(
            session_id=spec.session_id, layer=failed.layer, reason=failed.reason, log=failed.log
        )

    def _native_id(self, spec: SessionSpec) -> str:
        """Return the harness's id of a session; empty until it is known."""
        return next(iter(spec.native_ids.values()), "")

    async def is_warm(self, session_id: str) -> bool:
        pipe = self._find_running(session_id)
        return pipe is not None and await pipe.connect()

    async def stop(self, session_id: str) -> None:
        for pipe in self._list_pipes(session_id):
            await pipe.stop(STOPPED, self._limits)

    # -- turns -----------------------------------------------------------------------------------

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        try:
            pipe = await self._hand_over(spec, prompt)
        except TurnImpossible as problem:
            yield problem.failed
            return
        await pipe.connect()
        turn = self._open_turn(pipe, prompt)
        watching = asyncio.create_task(self._watch(pipe, turn))
        try:
            async for event in turn.events():
                if isinstance(event, Completed | Limited | Failed) and (
                    self._list_prompts(pipe)[-1:] == [prompt.delivery_id]
                ):
                    await _stop_when_idle(pipe, spec)
                yield event
        finally:
            watching.cancel()

    async def _hand_over(self, spec: SessionSpec, prompt: Prompt) -> Pipe:
        """Return the program that has the prompt. A prompt is sent once."""
        async with self._locks[spec.session_id]:
            pipe = self._find_holder(spec.session_id, prompt.delivery_id)
            if pipe is not None and await asyncio.to_thread(self._has_taken, pipe, prompt.delivery_id):
                return pipe
            if spec.door is None and self._find_running(spec.session_id) is None:
                raise TurnImpossible(NO_ACCESS, again=True)
            pipe = await self._open_program(spec)
            await self._send_prompt(pipe, spec, prompt)
            return pipe

    async def _watch(self, pipe: Pipe, turn: ProgramTurn) -> None:
        """Stop a program whose turn takes too long or writes too much. Waiting for a person is free."""
        last, left = time.monotonic(), self._limits.turn
        while left > 0 and pipe.run.stdout.stat().st_size <= self._limits.output:
            await asyncio.sleep(min(_LOOK, left))
            passed, last = time.monotonic() - last, time.monotonic()
            left -= 0 if turn.is_waiting else passed
        late = f"the turn took longer than {self._limits.turn:g} s"
        why = late if left <= 0 else f"it wrote more than {self._limits.output} bytes"
        await pipe.stop(why, self._limits)

    def _list_prompts(self, pipe: Pipe) -> list[str]:
        """Return the deliveries sent to a program, in order. Tags with a colon are not deliveries."""
        sent = (one for one in pipe.read_sent_lines() if ":" not in one.tag)
        return [one.tag for one in sent if self.prompt_mark in one.text]

    def _has_had_turns(self, session_id: str) -> bool:
        return any(self._list_prompts(pipe) for pipe in self._list_pipes(session_id))

    async def steer(self, session_id: str, text: str) -> bool:
        pipe = self._find_running(session_id)
        prompts = self._list_prompts(pipe) if pipe else []
        if pipe is None or not prompts or self._is_over(pipe, prompts[-1]):
            return False
        return await self._steer(pipe, prompts[-1], text)

    async def respond(self, session_id: str, request: str, answer: HumanAnswer) -> bool:
        for pipe in self._list_pipes(session_id):
            if pipe.is_running and (found := await asyncio.to_thread(self._find_request, pipe, request)):
                return await self._reply(pipe, found, answer)
        return False

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        async with self._locks[session_id]:
            pipe = self._find_holder(session_id, delivery_id)
            if pipe is None or not pipe.is_running or self._is_over(pipe, delivery_id):
                return False
            with suppress(RpcError, TimeoutError):
                async with asyncio.timeout(self._limits.grace):
                    await self._cancel_turn(pipe, delivery_id)
            if not self._is_over(pipe, delivery_id):
                await pipe.stop(INTERRUPTED, self._limits)
            return True

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        pipe = self._find_holder(session_id, delivery_id)
        if pipe is None:
            return InspectResult.NOT_TAKEN
        return await asyncio.to_thread(self._inspect, pipe, delivery_id)

    def _inspect(self, pipe: Pipe, delivery_id: str) -> InspectResult:
        taken = self._has_taken(pipe, delivery_id)
        return InspectResult.TAKEN if taken else InspectResult.NOT_TAKEN


class TranscriptHarness(PersistentHarness):
    """A persistent harness that keeps its own files on this machine: transcripts, a login, a configuration.

    `native_key`: the key of its session id among native ids. `home_variable` names the folder of its files.
    """

    product: str
    native_key: str
    home_variable: str
    login_hint: str
    resume_words: tuple[str, ...]

    @abstractmethod
    def _build_environment(self, spec: SessionSpec | None = None) -> dict[str, str]:
        """Return the environment of a program; it may read the harness's configuration."""

    @abstractmethod
    def _find_program(self, environment: Mapping[str, str]) -> str | None: ...
    @abstractmethod
    def _is_logged_in(self, environment: Mapping[str, str]) -> bool: ...
    @abstractmethod
    def _list_notes(self, environment: Mapping[str, str]) -> tuple[str, ...]: ...
    @abstractmethod
    def _find_transcript(self, native_id: str) -> Path | None: ...
    @abstractmethod
    def _read_entry(self, entry: Entry) -> Iterator[TailLine]: ...
    @abstractmethod
    def _read_context(self, entry: Entry) -> ContextUse | None: ...
    @abstractmethod
    def _find_writer(self, spec: SessionSpec, native_id: str) -> str:
        """Return why a session cannot be used: another program has it open. Empty if none has."""

    async def probe(self) -> Probe:
        environment = await asyncio.to_thread(self._build_environment)
        notes, program = self._list_notes(environment), self._find_program(environment)
        facts: dict[str, Any] = {"notes": notes}
        if program is None:
            return Probe(
                ready=False, missing=Missing.BINARY, hint=self.install_hint, program=self.name, **facts
            )
        words = await read_version(program, environment)
        facts["version"] = next((word for word in words if word[0].isdigit()), None)
        if not await asyncio.to_thread(self._is_logged_in, environment):
            return Probe(ready=False, missing=Missing.LOGIN, hint=self.login_hint, **facts)
        return Probe(ready=True, **facts)

    def _require_program(self, environment: Mapping[str, str]) -> str:
        program = self._find_program(environment)
        if program is None:
            reason = f"the program {self.name} was not found; {self.install_hint}"
            raise TurnImpossible(reason, missing=Missing.BINARY)
        return program

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        own = self._find_running(spec.session_id)
        if own is not None and native_id in self._identify(own, spec).native_ids.values():
            return self._describe(own, spec)
        reason = await asyncio.to_thread(self._explain_refusal, spec, native_id)
        if reason:
            raise Refused(refuse_attach(self.name, spec, native_id, reason))
        return Started(native_ids={self.native_key: native_id}, model=spec.model)

    def _explain_refusal(self, spec: SessionSpec, native_id: str) -> str:
        if self._find_transcript(native_id) is None:
            return f"{self.product} has no such session on this machine"
        return self._find_writer(spec, native_id)

    async def open(self, spec: SessionSpec) -> OpenedSession:
        native = self._native_id(spec)
        if not native or self._find_transcript(native) is None:
            reason = "it has no turns yet"
            raise Refused(refuse_attach(self.name, spec, native or spec.session_id, reason))
        environment = await asyncio.to_thread(self._build_environment)
        home = {name: value for name, value in environment.items() if name == self.home_variable}
        return OpenedSession(command=(self.name, *self.resume_words, native), cwd=spec.cwd, environment=home)

    async def tail(self, spec: SessionSpec, after: int, limit: int) -> Tailed:
        return await asyncio.to_thread(self._read_tail, spec, after, limit)

    def _read_tail(self, spec: SessionSpec, after: int, limit: int) -> Tailed:
        native = spec.native_ids.get(self.native_key) or spec.native_ids.get("session", "")
        path = self._find_transcript(native) if native else None
        try:
            if path is not None:
                told = read_tail(path, after, limit, self._read_entry)
                return replace(told, context=read_context(path, self._read_context)) if after < 0 else told
            reason = "it has no transcript yet" if native else "it has not started"
        except OSError as error:
            reason = f"its transcript cannot be read: {error.strerror}"
        raise Refused(refuse_attach(self.name, spec, native or spec.session_id, reason))


async def _stop_when_idle(pipe: Pipe, spec: SessionSpec) -> None:
    if spec.idle is not None and pipe.is_running:
        await pipe.stop_when_idle(spec.idle)


def accept(pipe: Pipe) -> Accepted:
    """Return the event of a program that took its prompt."""
    process = pipe.run.process
    return Accepted(pid=process and process.pid, pid_started=process and process.started)


def describe_end(pipe: Pipe) -> Failed:
    """Return the failure of a turn whose program has ended."""
    if pipe.run.stopped in {INTERRUPTED, STOPPED}:
        return Failed(layer=Layer.SESSION, reason=pipe.run.stopped)
    reason = f"its program ended: {pipe.run.stopped or pipe.end_reason}"
    return Failed(layer=Layer.PROCESS, reason=reason, log=str(pipe.run.stderr))
