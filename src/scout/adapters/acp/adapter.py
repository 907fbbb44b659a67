"""The harness `acp`: any program that speaks the Agent Client Protocol, held for as long as it is wanted."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from scout.adapters.acp.events import INTERRUPTED, chosen
from scout.adapters.acp.opening import AcpOpening, AcpSession, AcpUnavailable, has_said_nothing
from scout.adapters.acp.turn import STOPPED, TurnOn, cancel_tag, open_request
from scout.adapters.harness import Plain, not_attachable
from scout.adapters.instructions import first_prompt
from scout.adapters.persistent.pipe import Wire, WireLimits, clear_last, next_number, wires
from scout.adapters.persistent.rpc import Rpc, RpcError
from scout.adapters.process.environment import environment_for
from scout.adapters.process.spawn import Launch
from scout.adapters.transcript import inner, items
from scout.base.refusal import Diagnostic, Refused, Remedy
from scout.model.agent import PermissionProfile
from scout.model.delivery import InspectResult
from scout.model.problems.session import HarnessUnavailable, Layer, Missing, SessionFailed
from scout.ports import (
    Accepted,
    Capabilities,
    Failed,
    HarnessEvent,
    HumanAnswer,
    Identified,
    Probe,
    Prompt,
    SessionSpec,
    Started,
    UsageKind,
)
from scout.settings.folder import make_private

_SAFE = re.compile(r"\w[\w.-]*", re.ASCII)
_CANCEL_WAIT = 5.0
_CHECKED = "the session was only looked at"
# The variables of an agent's own, by a word of its command line.
_OWN = {
    "claude": ("ANTHROPIC_*", "CLAUDE_*"),
    "codex": ("CODEX_*", "OPENAI_*"),
    "gemini": ("GEMINI_*", "GOOGLE_*"),
    "opencode": ("OPENCODE_*",),
    "qwen": ("QWEN_*", "OPENAI_*", "DASHSCOPE_*"),
}
# What an agent does not get although others do: Codex writes its environment into a file of its own. The
# token reaches it with the address of Scout's tools.
_WITHHELD = {"codex": ("SCOUT_TOKEN",)}
_NOTES = (
    "observe and review are modes of the agent: one that offers none for them is not started",
    "workspace_write and trusted are modes of the agent where it offers them, else its own default",
    "whether a session can be resumed or forked is up to the agent; what it cannot do is refused",
)
_HINT = 'set the agent\'s program: scout agent config {} --set command=\'["program", "argument"]\''


class Acp(Plain):
    """The programs of a session are below `sessions/<session id>`, one folder each."""

    def __init__(
        self,
        sessions: Path,
        environment: tuple[str, ...] = (),
        limits: WireLimits = WireLimits(),
        name: str = "acp",
        program: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.capabilities = Capabilities(
            resume=True,
            fork=True,
            permissions=True,
            usage=UsageKind.EXACT,
            calls_back=True,
            keeps_process=True,
            needs_command=not program,
            native_profiles=(PermissionProfile.OBSERVE, PermissionProfile.REVIEW),
        )
        self._sessions = sessions.absolute()
        self._also = environment
        self._limits = limits
        self._program = program
        self._held: dict[Path, Wire] = {}  # one object a program, for it is the connection to its keeper
        self._opened: dict[Path, AcpSession] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._ending = set[asyncio.Task[bool]]()

    async def probe(self) -> Probe:
        """Without a program of its own, each agent names one."""
        if self._program and shutil.which(self._program[0]) is None:
            program = self._program[0]
            hint = f"install {program}, so that it is on the PATH of the daemon"
            return Probe(ready=False, missing=Missing.BINARY, hint=hint, program=program, notes=_NOTES)
        return Probe(ready=True, notes=_NOTES)

    async def start(self, spec: SessionSpec) -> Started:
        try:
            wire, session = await self._ready(spec)
        except AcpUnavailable as problem:
            raise Refused(self._refusal(spec, problem.failed)) from problem
        return _started(wire, session)

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        """Its program is asked for exactly this session; one that was started only for that is ended."""
        running = self._running(spec.session_id)
        if running is not None:
            session = await self._session(running, spec)
            if session.native_id == native_id:
                return _started(running, session)
            raise Refused(not_attachable(self.name, spec, native_id, "this session runs under another name"))
        wire = self._next(spec.session_id)
        try:
            session = await self._begin(wire, spec, native_id)
        except AcpUnavailable as problem:
            raise Refused(not_attachable(self.name, spec, native_id, problem.failed.reason)) from problem
        finally:
            await wire.stop(_CHECKED, self._limits)
        return Started(native_ids={"session": session.native_id}, model=session.model)

    async def is_warm(self, session_id: str) -> bool:
        return self._running(session_id) is not None

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        try:
            wire = await self._told(spec, prompt)
        except AcpUnavailable as problem:
            yield problem.failed
            return
        await wire.connect()
        session = self._opened.get(wire.run.folder)
        model = session.model if session else None
        turn = TurnOn(wire, prompt, model, self._limits)
        yield _accepted(wire)
        yield Identified(native_ids={"session": turn.native_id}, model=model)
        overdue = asyncio.get_running_loop().call_later(self._limits.turn, self._overdue, wire)
        try:
            async for event in turn.events():
                yield event
        finally:
            overdue.cancel()
        if spec.idle is not None and _is_last(wire, prompt.delivery_id):
            await wire.rest(spec.idle)

    async def respond(self, session_id: str, request: str, answer: HumanAnswer) -> bool:
        for wire in self._wires(session_id):
            message = open_request(wire, request)
            if message is not None and wire.is_running:
                outcome = chosen(items(inner(message, "params").get("options")), answer)
                return outcome is not None and await Rpc(wire).reply(message["id"], {"outcome": outcome})
        return False

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        wire = self._teller(session_id, delivery_id)
        if wire is None or not wire.is_running:
            return False
        turn = TurnOn(wire, Prompt(delivery_id=delivery_id, text="", body=""), None, self._limits)
        if turn.is_over():
            return False
        rpc = Rpc(wire)
        await rpc.notify("session/cancel", {"sessionId": turn.native_id}, cancel_tag(delivery_id))
        for ident in turn.open_requests():
            await rpc.reply(ident, {"outcome": {"outcome": "cancelled"}})
        try:
            await asyncio.wait_for(turn.answered(), _CANCEL_WAIT)
        except TimeoutError:
            await wire.stop(INTERRUPTED, self._limits)
        return True

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        return (
            InspectResult.NOT_TAKEN if self._teller(session_id, delivery_id) is None else InspectResult.TAKEN
        )

    async def stop(self, session_id: str) -> None:
        for wire in self._wires(session_id):
            await wire.stop(STOPPED, self._limits)

    # -- programs --------------------------------------------------------------------------------

    def _folder(self, session_id: str) -> Path:
        if not _SAFE.fullmatch(session_id):
            raise ValueError(f"not an id: {session_id!r}")
        return self._sessions / session_id

    def _wires(self, session_id: str) -> list[Wire]:
        found = wires(self._folder(session_id))
        return [self._held.setdefault(one.run.folder, one) for one in found]

    def _next(self, session_id: str) -> Wire:
        folder = self._folder(session_id)
        wire = Wire(folder / str(next_number(folder)))
        return self._held.setdefault(wire.run.folder, wire)

    def _running(self, session_id: str) -> Wire | None:
        return next((one for one in reversed(self._wires(session_id)) if one.is_running), None)

    def _teller(self, session_id: str, delivery_id: str) -> Wire | None:
        """The program that was told this turn."""
        found = (one for one in self._wires(session_id) if one.begun_at(delivery_id) is not None)
        return next(found, None)

    async def _told(self, spec: SessionSpec, prompt: Prompt) -> Wire:
        """The program with this turn, told once."""
        wire = self._teller(spec.session_id, prompt.delivery_id)
        if wire is not None:
            return wire
        if spec.door is None and self._running(spec.session_id) is None:
            reason = "the program of the session had ended"
            raise AcpUnavailable(Failed(layer=Layer.PROCESS, reason=reason, again=True))
        wire, session = await self._ready(spec)
        words = first_prompt(spec, prompt, had_turns=_had_turns(self._wires(spec.session_id)))
        text = [{"type": "text", "text": words}]
        params = {"sessionId": session.native_id, "prompt": text}
        try:
            await Rpc(wire).send(prompt.delivery_id, "session/prompt", params)
        except RpcError as error:
            raise AcpUnavailable(Failed(layer=Layer.PROCESS, reason=str(error), again=True)) from error
        return wire

    async def _ready(self, spec: SessionSpec) -> tuple[Wire, AcpSession]:
        """A program with the session open: the one that runs, or another that goes on with it."""
        async with self._opening.setdefault(spec.session_id, asyncio.Lock()):
            wire = self._running(spec.session_id)
            if wire is not None:
                return wire, await self._session(wire, spec)
            await clear_last(self._folder(spec.session_id))
            native_id = next(iter(spec.native_ids.values()), None)
            if has_said_nothing(self._wires(spec.session_id)):
                native_id = None  # an agent keeps no session in which nothing was said
            wire = self._next(spec.session_id)
            return wire, await self._begin(wire, spec, native_id)

    async def _begin(self, wire: Wire, spec: SessionSpec, native_id: str | None) -> AcpSession:
        launch = self._launch(spec)
        try:
            begun = await wire.begin(launch, self._limits)
        except (OSError, ValueError) as error:
            raise AcpUnavailable(
                Failed(layer=Layer.PROCESS, reason=f"{launch.command[0]}: {error}")
            ) from error
        if not begun:
            raise AcpUnavailable(
                Failed(layer=Layer.PROCESS, reason="the agent's program did not begin", again=True)
            )
        try:
            return await self._session(wire, spec, native_id)
        except AcpUnavailable as problem:
            problem.failed = _with_end(problem.failed, wire)
            await wire.stop(problem.failed.reason, self._limits)
            raise

    async def _session(self, wire: Wire, spec: SessionSpec, native_id: str | None = None) -> AcpSession:
        """What its first words were, said now or read again."""
        known = self._opened.get(wire.run.folder)
        if known is None:
            opening = AcpOpening(Rpc(wire), spec, str(self._directory(spec)), self._environment(spec))
            known = self._opened[wire.run.folder] = await opening.session(native_id)
        return known

    def _launch(self, spec: SessionSpec) -> Launch:
        """The program as a path, so that the one that was looked for is the one that runs."""
        command = spec.command or self._program
        if not command:
            raise AcpUnavailable(_no_program(_HINT.format(spec.address)))
        directory, environment = self._directory(spec), self._environment(spec)
        program, *arguments = command
        wanted = str(directory / program) if "/" in program else program
        found = shutil.which(wanted, path=environment["PATH"])
        if found is None:
            raise AcpUnavailable(_no_program(f"{program} was not found; {_HINT.format(spec.address)}"))
        return Launch((str(Path(found).absolute()), *arguments), str(directory), "", environment)

    def _directory(self, spec: SessionSpec) -> Path:
        """Where it runs; without a directory of its agent, in an empty one of its own."""
        if spec.cwd is None:
            scratch = self._folder(spec.session_id) / "work"
            make_private(scratch)
            return scratch
        directory = Path(spec.cwd)
        if not directory.is_dir():
            raise AcpUnavailable(
                Failed(layer=Layer.PROCESS, reason=f"its directory {directory} is not there")
            )
        return directory

    def _environment(self, spec: SessionSpec) -> dict[str, str]:
        words = " ".join(spec.command or self._program)
        own = [name for word, names in _OWN.items() if word in words for name in names]
        withheld = {name for word, names in _WITHHELD.items() if word in words for name in names}
        given = {name: value for name, value in spec.environment.items() if name not in withheld}
        return environment_for(given, also=(*own, *self._also))

    def _overdue(self, wire: Wire) -> None:
        why = f"the turn took longer than {self._limits.turn:g} s"
        ending = asyncio.get_running_loop().create_task(wire.stop(why, self._limits))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    def _refusal(self, spec: SessionSpec, failed: Failed) -> Diagnostic:
        if failed.missing is not None:
            parameters = {"address": spec.address, "config": {"command": ["program", "argument"]}}
            remedy = Remedy(operation="agent.config", parameters=parameters, why="the program of the agent")
            remedies = (remedy,) if failed.missing is Missing.BINARY else ()
            return HarnessUnavailable(
                harness=self.name, missing=failed.missing, hint=failed.reason, remedies=remedies
            )
        if spec.native_ids or spec.fork_of:
            named = next(iter(spec.native_ids.values()), spec.fork_of or "")
            return not_attachable(self.name, spec, named, failed.reason)
        return SessionFailed(
            session_id=spec.session_id, layer=failed.layer, reason=failed.reason, log=failed.log
        )


def _no_program(reason: str) -> Failed:
    return Failed(layer=Layer.PROCESS, reason=reason, missing=Missing.BINARY)


def _with_end(failed: Failed, wire: Wire) -> Failed:
    return Failed(layer=failed.layer, reason=failed.reason, log=str(wire.run.stderr), missing=failed.missing)


def _started(wire: Wire, session: AcpSession) -> Started:
    process = wire.run.process
    return Started(
        native_ids={"session": session.native_id},
        pid=process.pid if process else None,
        pid_started=process.started if process else None,
        model=session.model,
    )


def _accepted(wire: Wire) -> Accepted:
    process = wire.run.process
    return Accepted(pid=process.pid if process else None, pid_started=process.started if process else None)


def _had_turns(wires: list[Wire]) -> bool:
    return any(b'"session/prompt"' in one.text for wire in wires for one in wire.told())


def _is_last(wire: Wire, delivery_id: str) -> bool:
    """Whether no other turn came after it; what is answered and set in between is none."""
    prompts = [one.tag for one in wire.told() if b'"session/prompt"' in one.text]
    return wire.is_running and prompts[-1:] == [delivery_id]
