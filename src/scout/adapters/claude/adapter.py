"""The harness `claude`: each session has its own Claude Code, held by a keeper between turns."""

import asyncio
import itertools
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from scout.adapters.claude import files, flags
from scout.adapters.claude.events import answer_request
from scout.adapters.claude.turn import (
    PROMPT_MARK,
    STEER,
    ClaudeTurn,
    encode_control,
    encode_prompt,
    find_request,
    make_uuid,
    read_end,
    send_response,
)
from scout.adapters.harness import TurnImpossible, build_first_prompt, find_command
from scout.adapters.persistent.harness import NO_ACCESS, TranscriptHarness
from scout.adapters.persistent.pipe import Pipe, PipeLimits, clear_last
from scout.adapters.persistent.rpc import parse_message
from scout.adapters.process.run import Launch
from scout.adapters.transcript import Entry
from scout.model.delivery import InspectResult
from scout.model.problems.session import Layer
from scout.ports import (
    Capabilities,
    ContextUse,
    HumanAnswer,
    Identified,
    McpAccess,
    Observed,
    Prompt,
    SessionSpec,
    TailLine,
    Transcript,
    UsageKind,
)
from scout.settings.environment import build_environment

_HELLO = "hello"
_HELLO_WAIT = 60.0


class Claude(TranscriptHarness):
    """Each session is one of Claude Code's. The files of its programs are below `sessions`."""

    name = "claude"
    product = "Claude Code"
    native_key = "session"
    home_variable = "CLAUDE_CONFIG_DIR"
    install_hint = flags.INSTALL
    login_hint = flags.LOGIN
    resume_words = ("--resume",)
    prompt_mark = PROMPT_MARK

    def __init__(
        self, sessions: Path, environment: tuple[str, ...] = (), limits: PipeLimits = PipeLimits()
    ) -> None:
        super().__init__(sessions, (*flags.ENVIRONMENT, *environment), limits)
        self._steers = itertools.count(1)
        self._followed = WeakValueDictionary[str, ClaudeTurn]()  # the turns whose events are read now
        self.capabilities = Capabilities(
            provider="anthropic",
            resume=True,
            fork=True,
            steer=True,
            permissions=True,
            usage=UsageKind.EXACT,
            live_wake=True,
            calls_back=True,
            keeps_process=True,
            announces_edits=True,
            native_profiles=flags.list_native_profiles(flags.is_restricted_root(self._build_environment())),
        )

    # -- its files -------------------------------------------------------------------------------

    @property
    def _home(self) -> Path:
        return files.find_home(self._build_environment())

    def _build_environment(self, spec: SessionSpec | None = None) -> dict[str, str]:
        given = dict(spec.environment) if spec else {}
        if spec and spec.door:
            given["SCOUT_TOKEN"] = spec.door.token
        return build_environment(given, also=self._also)

    def _find_program(self, environment: Mapping[str, str]) -> str | None:
        found = find_command((self.name,), Path(), environment["PATH"])
        return found[0] if found else None

    def _is_logged_in(self, environment: Mapping[str, str]) -> bool:
        return flags.is_logged_in(self._home, environment)

    def _list_notes(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        return flags.list_notes(flags.is_restricted_root(environment))

    def _find_transcript(self, native_id: str) -> Path | None:
        return files.find_transcript(self._home, native_id)

    def locate_transcript(self, native_id: str, cwd: str | None) -> Transcript | None:
        return files.locate_transcript(self._home, native_id, cwd)

    def _read_entry(self, entry: Entry) -> Iterator[TailLine]:
        return files.read_entry(entry)

    def _read_context(self, entry: Entry) -> ContextUse | None:
        return files.read_context(entry)

    def _find_writer(self, spec: SessionSpec, native_id: str) -> str:
        own = self._find_running(spec.session_id)
        pids = {one.pid for one in own.run.members()} if own else set[int]()
        live = files.find_live_session(self._home, native_id, besides=pids)
        if live is None:
            return ""
        return (
            f"it is open in another program (process {live.process.pid}, {live.status or 'running'}): "
            "close it there, or ask while it is open"
        )

    async def deliver_live(self, native_id: str, text: str) -> bool:
        return await files.send_to_inbox(self._home, native_id, text)

    async def observe(self) -> list[Observed]:
        return await asyncio.to_thread(files.list_observed, self._home)

    # -- its program -----------------------------------------------------------------------------

    async def _open_program(self, spec: SessionSpec) -> Pipe:
        await clear_last(self._get_folder(spec.session_id))
        if reason := await asyncio.to_thread(self._find_writer, spec, self._native_id(spec)):
            raise TurnImpossible(reason, Layer.SESSION, again=True)
        running = self._find_running(spec.session_id)
        if running is not None:
            return running
        if spec.door is None:
            raise TurnImpossible(NO_ACCESS, again=True)
        environment = self._build_environment(spec)
        program = self._require_program(environment)
        return await self._run(spec, spec.door, program, environment)

    async def _run(
        self, spec: SessionSpec, access: McpAccess, program: str, environment: Mapping[str, str]
    ) -> Pipe:
        session, where = (
            await asyncio.to_thread(self._choose_session, spec),
            str(self._choose_directory(spec)),
        )
        pipe = self._make_pipe(spec.session_id)
        pipe.run.prepare()
        servers = pipe.run.folder / "mcp.json"
        _write_private(servers, flags.build_mcp_servers(access))
        hooks = pipe.run.folder / "hooks.json"
        _write_private(hooks, flags.edit_hook())
        relays = await asyncio.to_thread(files.list_relays, environment, where)
        command = flags.build_command(
            program,
            spec,
            session,
            str(servers),
            root=flags.is_restricted_root(environment),
            relays=relays,
            contract=_write_contract(spec, pipe.run.folder),
            hooks=str(hooks),
        )
        await self._start_program(pipe, Launch(command, where, "", environment))
        return pipe

    async def _greet(self, pipe: Pipe) -> None:
        """Wait until the program answers: one that cannot resume its session ends instead."""
        if pipe.find_position(_HELLO) is None:
            await pipe.send(encode_control(_HELLO, {"subtype": "initialize"}), _HELLO)
        with suppress(TimeoutError):
            async with asyncio.timeout(_HELLO_WAIT):
                async for line in pipe.follow_lines(pipe.find_position(_HELLO) or 0):
                    if b'"control_response"' in line.text:
                        return
        await pipe.stop(f"it did not answer within {_HELLO_WAIT:g} s", self._limits)
        end = read_end(pipe)
        raise TurnImpossible(end.reason, end.layer, log=end.log)

    def _choose_session(self, spec: SessionSpec) -> tuple[str, ...]:
        """Return the flags that resume the existing session; a new session only before the first turn."""
        native = self._native_id(spec)
        if self._find_transcript(native) is not None:
            return (f"--resume={native}",)
        if native != make_uuid(spec.session_id) or self._has_answered(spec.session_id):
            raise TurnImpossible(f"Claude Code no longer has the session {native}", Layer.SESSION)
        if spec.fork_of is None:
            return (f"--session-id={native}",)
        if self._find_transcript(spec.fork_of) is None:
            raise TurnImpossible(f"Claude Code has no session {spec.fork_of} to fork", Layer.SESSION)
        return (f"--resume={spec.fork_of}", "--fork-session", f"--session-id={native}")

    def _has_answered(self, session_id: str) -> bool:
        """Whether a program has answered in the session, so that it has a transcript."""
        lines = (line.text for pipe in self._list_pipes(session_id) for line in pipe.read_lines())
        return any(b'"type":"assistant"' in line for line in lines)

    def _native_id(self, spec: SessionSpec) -> str:
        """Return Claude Code's id of the session, also before it has begun."""
        return _choose_native_id(spec)

    def _identify(self, pipe: Pipe, spec: SessionSpec) -> Identified:
        return Identified(native_ids={"session": _choose_native_id(spec)}, model=spec.model)

    # -- its turns -------------------------------------------------------------------------------

    async def _send_prompt(self, pipe: Pipe, spec: SessionSpec, prompt: Prompt) -> None:
        knows = _is_scouts_own(spec) or self._has_had_turns(spec.session_id)
        text = build_first_prompt(spec, prompt, had_turns=knows)
        if not await pipe.send(encode_prompt(text, prompt.delivery_id), prompt.delivery_id):
            raise TurnImpossible(f"its program ended: {await pipe.wait_for_end()}", again=True)

    def _open_turn(self, pipe: Pipe, prompt: Prompt) -> ClaudeTurn:
        turn = self._followed[prompt.delivery_id] = self._build_turn(pipe, prompt.delivery_id)
        return turn

    def _build_turn(self, pipe: Pipe, delivery_id: str) -> ClaudeTurn:
        return ClaudeTurn(pipe, delivery_id, partial(self._find_answer, pipe, delivery_id))

    def _is_over(self, pipe: Pipe, delivery_id: str) -> bool:
        return self._build_turn(pipe, delivery_id).is_over()

    async def _steer(self, pipe: Pipe, delivery_id: str, text: str) -> bool:
        """Send a text into a turn. Claude Code reads it between two tools, or after the last as a prompt.

        The turn expects its answer before it is sent: it may end meanwhile.
        """
        tag = f"{STEER}{time.time_ns()}.{next(self._steers)}"
        turn = self._followed.get(delivery_id)
        if turn is None or not turn.expect(tag):
            return False
        took = await pipe.send(encode_prompt(text, tag), tag)
        if not took:
            turn.stop_expecting(tag)
        return took

    def _find_request(self, pipe: Pipe, request: str) -> Entry | None:
        return find_request(pipe, request)

    async def _reply(self, pipe: Pipe, message: Entry, answer: HumanAnswer) -> bool:
        response = answer_request(message, answer.allow, answer.text)
        return await send_response(
            pipe, str(message["request_id"]), {"subtype": "success", "response": response}
        )

    async def _cancel_turn(self, pipe: Pipe, delivery_id: str) -> None:
        for ident in (*self._build_turn(pipe, delivery_id).list_steered(), make_uuid(delivery_id)):
            withdrawn = {"subtype": "cancel_async_message", "message_uuid": ident}
            await pipe.send(encode_control(f"back:{ident}", withdrawn))
        await pipe.send(encode_control(f"stop:{delivery_id}", {"subtype": "interrupt"}))
        while pipe.is_running and not self._is_over(pipe, delivery_id):  # noqa: ASYNC110 (a file gives no event)
            await asyncio.sleep(0.02)

    def _inspect(self, pipe: Pipe, delivery_id: str) -> InspectResult:
        known = pipe.is_running or pipe.run.stopped or self._is_over(pipe, delivery_id)
        taken = known or self._find_answer(pipe, delivery_id) is not None
        return InspectResult.TAKEN if taken else InspectResult.UNKNOWN

    def _find_answer(self, pipe: Pipe, delivery_id: str) -> str | None:
        """Return the answer that a program wrote to its transcript before it died."""
        named = (parse_message(line.text).get("session_id") for line in pipe.read_lines())
        native = next((one for one in named if isinstance(one, str)), None)
        path = self._find_transcript(native) if native else None
        return files.read_final_text(path, make_uuid(delivery_id)) if path else None


def _choose_native_id(spec: SessionSpec) -> str:
    return spec.native_ids.get("session") or make_uuid(spec.session_id)


def _is_scouts_own(spec: SessionSpec) -> bool:
    """Whether Scout started the session: Claude Code keeps the system prompt that a session started with."""
    return _choose_native_id(spec) == make_uuid(spec.session_id) and spec.fork_of is None


def _write_contract(spec: SessionSpec, folder: Path) -> str:
    """Write the addition to the system prompt; return its file, empty if the session has its own prompt."""
    if not (spec.instructions and _is_scouts_own(spec)):
        return ""
    file = folder / "contract.md"
    _write_private(file, spec.instructions.encode())
    return str(file)


def _write_private(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
