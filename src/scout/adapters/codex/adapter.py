"""The harness `codex`: each session has its own app server, held by a keeper between turns."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from scout.adapters.codex import files, flags
from scout.adapters.codex.program import CodexProgram, build_input
from scout.adapters.codex.requests import answer_request
from scout.adapters.codex.turn import CodexTurn
from scout.adapters.harness import INTERRUPTED, TurnImpossible
from scout.adapters.persistent.harness import NO_ACCESS, TranscriptHarness
from scout.adapters.persistent.pipe import Pipe, PipeLimits, clear_last
from scout.adapters.persistent.rpc import RpcError
from scout.adapters.process.run import Launch
from scout.adapters.transcript import Entry
from scout.model.agent import PermissionProfile
from scout.model.problems.session import Layer
from scout.ports import (
    Capabilities,
    ContextUse,
    HumanAnswer,
    Identified,
    Observed,
    Prompt,
    SessionSpec,
    TailLine,
    Transcript,
    UsageKind,
)

_STEER_WAIT = 10.0
_SESSION_ERRORS = ("no rollout found", "active writer", "invalid session id")


class Codex(TranscriptHarness):
    """Each session is a thread of Codex. The files of its programs are below `sessions`."""

    name = "codex"
    product = "Codex"
    native_key = "thread"
    home_variable = "CODEX_HOME"
    install_hint = flags.INSTALL
    login_hint = flags.LOGIN
    resume_words = ("resume",)
    prompt_mark = b'"turn/start"'
    capabilities = Capabilities(
        provider="openai",
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
        self, sessions: Path, environment: tuple[str, ...] = (), limits: PipeLimits = PipeLimits()
    ) -> None:
        super().__init__(sessions, environment, limits)
        self._programs: dict[Path, CodexProgram] = {}
        self._starting = asyncio.Lock()  # programs share files and fail if two of them start at once

    # -- its files -------------------------------------------------------------------------------

    @property
    def _home(self) -> Path:
        return files.find_home(os.environ)

    def _build_environment(self, spec: SessionSpec | None = None) -> dict[str, str]:
        return flags.build_program_environment(spec, self._also)

    def _find_program(self, environment: Mapping[str, str]) -> str | None:
        found = flags.find_program(environment)
        return str(found) if found else None

    def _is_logged_in(self, environment: Mapping[str, str]) -> bool:
        return flags.is_logged_in(environment)

    def _list_notes(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        return flags.NOTES

    def _find_transcript(self, native_id: str) -> Path | None:
        return files.find_transcript(self._home, native_id)

    def locate_transcript(self, native_id: str, cwd: str | None) -> Transcript | None:
        return files.locate_transcript(files.find_home(os.environ), native_id)

    def _read_entry(self, entry: Entry) -> Iterator[TailLine]:
        return files.read_entry(entry)

    def _read_context(self, entry: Entry) -> ContextUse | None:
        return files.read_context(entry)

    def _find_writer(self, spec: SessionSpec, native_id: str) -> str:
        live = files.find_live_session(self._home, native_id)
        return f"it is open in another program (process {live.process.pid})" if live else ""

    async def deliver_live(self, native_id: str, text: str) -> bool:
        environment = await asyncio.to_thread(self._build_environment)
        program = self._find_program(environment)
        return program is not None and await files.queue_message(program, native_id, text, environment)

    async def observe(self) -> list[Observed]:
        return await asyncio.to_thread(files.list_observed, self._home)

    # -- its program -----------------------------------------------------------------------------

    def _get_program(self, pipe: Pipe) -> CodexProgram:
        return self._programs.setdefault(pipe.run.folder, CodexProgram(pipe))

    async def is_warm(self, session_id: str) -> bool:
        async with self._locks[session_id]:
            pipe = self._find_running(session_id)
            return pipe is not None and self._get_program(pipe).is_opened and await pipe.connect()

    async def _open_program(self, spec: SessionSpec) -> Pipe:
        """Return the program of a session with its thread open."""
        running = self._find_running(spec.session_id)
        program = self._get_program(running) if running else await self._run(spec)
        if not program.is_opened and spec.door is None:
            await program.pipe.stop(NO_ACCESS, self._limits)
            raise TurnImpossible(NO_ACCESS, again=True)
        method, params = await asyncio.to_thread(self._choose_thread, spec, program)
        try:
            await program.greet()
            await program.open(method, params)
        except RpcError as error:
            await program.pipe.stop(str(error), self._limits)
            raise _explain_error(error, program) from error
        wanted = params["threadId"] if method == "thread/resume" else program.thread
        if program.thread != wanted:
            raise TurnImpossible(f"it holds the thread {program.thread}, not {wanted}", Layer.SESSION)
        return program.pipe

    async def _run(self, spec: SessionSpec) -> CodexProgram:
        if spec.door is None:
            raise TurnImpossible(NO_ACCESS, again=True)
        environment = await asyncio.to_thread(self._build_environment, spec)
        command = (self._require_program(environment), "app-server")
        await clear_last(self._get_folder(spec.session_id))
        program = self._get_program(self._make_pipe(spec.session_id))
        async with self._starting:
            await self._start_program(
                program.pipe, Launch(command, str(self._choose_directory(spec)), "", environment)
            )
            try:
                await program.greet()
            except RpcError as error:
                await program.pipe.stop(str(error), self._limits)
                raise _explain_error(error, program) from error
        return program

    def _choose_thread(self, spec: SessionSpec, program: CodexProgram) -> tuple[str, dict[str, Any]]:
        """Return how to open the thread: resume it if it exists, start it only if it has no turns."""
        params = flags.build_thread(spec, self._choose_directory(spec))
        programs = map(self._get_program, self._list_pipes(spec.session_id))
        earlier = [one for one in programs if one is not program and one.thread]
        thread = self._native_id(spec) or (earlier[-1].thread if earlier else "")
        begun_here = any(one.thread == thread for one in earlier)
        if begun_here and self._find_transcript(thread) is None:
            thread = ""
        if thread:
            return "thread/resume", {**params, "threadId": thread, "excludeTurns": True}
        if spec.fork_of:
            return "thread/fork", {**params, "threadId": spec.fork_of, "excludeTurns": True}
        return "thread/start", params

    def _native_id(self, spec: SessionSpec) -> str:
        return spec.native_ids.get("thread", "")

    def _identify(self, pipe: Pipe, spec: SessionSpec) -> Identified:
        program = self._get_program(pipe)
        return Identified(native_ids={"thread": program.thread}, model=program.model)

    # -- its turns -------------------------------------------------------------------------------

    async def _send_prompt(self, pipe: Pipe, spec: SessionSpec, prompt: Prompt) -> None:
        program, ident = self._get_program(pipe), prompt.delivery_id
        words = build_input(prompt.text)
        params = {"threadId": program.thread, "input": words, "clientUserMessageId": ident}
        try:
            await program.rpc.send(ident, "turn/start", params)
        except RpcError as error:
            if pipe.find_position(ident) is None:
                await pipe.stop(str(error), self._limits)
                raise TurnImpossible(str(error), again=True) from error

    def _open_turn(self, pipe: Pipe, prompt: Prompt) -> CodexTurn:
        return self._build_turn(pipe, prompt.delivery_id)

    def _build_turn(self, pipe: Pipe, delivery_id: str) -> CodexTurn:
        program = self._get_program(pipe)
        return CodexTurn(program, delivery_id, partial(self._find_transcript, program.thread))

    def _is_over(self, pipe: Pipe, delivery_id: str) -> bool:
        return self._get_program(pipe).is_over(delivery_id)

    def _has_taken(self, pipe: Pipe, delivery_id: str) -> bool:
        return pipe.is_running or self._build_turn(pipe, delivery_id).was_taken()

    async def _steer(self, pipe: Pipe, delivery_id: str, text: str) -> bool:
        program = self._get_program(pipe)
        turn, words = program.turn_id(delivery_id), build_input(text)
        params = {"threadId": program.thread, "expectedTurnId": turn, "input": words}
        try:
            await program.rpc.call(f"steer:{len(pipe.read_sent_lines())}", "turn/steer", params, _STEER_WAIT)
        except RpcError:
            return False
        return True

    def _find_request(self, pipe: Pipe, request: str) -> Entry | None:
        number, _, ident = request.partition("/")
        return self._get_program(pipe).find_request(ident) if pipe.run.folder.name == number else None

    async def _reply(self, pipe: Pipe, message: Entry, answer: HumanAnswer) -> bool:
        return await self._get_program(pipe).rpc.reply(message["id"], answer_request(message, answer))

    async def _cancel_turn(self, pipe: Pipe, delivery_id: str) -> None:
        """Interrupt the turn, then stop the program, so that commands of the turn end too."""
        await self._get_program(pipe).interrupt(delivery_id)
        await pipe.stop(INTERRUPTED, self._limits)


def _explain_error(error: RpcError, program: CodexProgram) -> TurnImpossible:
    """Return why the thread could not be opened. If the program has ended, another one may succeed."""
    reason, log = str(error), str(program.pipe.run.stderr)
    if error.code is None:
        return TurnImpossible(reason, again=True, log=log)
    is_sessions = any(words in reason for words in _SESSION_ERRORS)
    return TurnImpossible(reason, Layer.SESSION if is_sessions else Layer.HARNESS, log=log)
