"""The harness `acp`: any program that speaks the Agent Client Protocol, held by a keeper between turns."""

import shutil
from pathlib import Path

from scout.adapters.acp.events import choose_option
from scout.adapters.acp.opening import AcpOpening, AcpSession, has_no_context
from scout.adapters.acp.turn import AcpTurn, find_request
from scout.adapters.harness import TurnImpossible, build_first_prompt, find_command, refuse_attach
from scout.adapters.persistent.harness import PersistentHarness
from scout.adapters.persistent.pipe import Pipe, PipeLimits, clear_last
from scout.adapters.persistent.rpc import Rpc, RpcError
from scout.adapters.process.run import Launch
from scout.adapters.transcript import Entry, get_object, to_list
from scout.base.refusal import Diagnostic, Refused, Remedy
from scout.model.agent import PermissionProfile
from scout.model.problems.session import HarnessUnavailable, Missing
from scout.ports import (
    Capabilities,
    Failed,
    HumanAnswer,
    Identified,
    Probe,
    Prompt,
    SessionSpec,
    Started,
    UsageKind,
)
from scout.settings.environment import build_environment

_CHECKED = "it was started only to find the session"
# Environment variables of each agent, by a word in its command line.
_OWN = {
    "claude": ("ANTHROPIC_*", "CLAUDE_*"),
    "codex": ("CODEX_*", "OPENAI_*"),
    "gemini": ("GEMINI_*", "GOOGLE_*"),
    "opencode": ("OPENCODE_*",),
    "qwen": ("QWEN_*", "OPENAI_*", "DASHSCOPE_*"),
}
# Codex writes its environment to a file, so it does not get the token there. The token reaches it with the
# address of Scout's tools.
_WITHHELD = {"codex": ("SCOUT_TOKEN",)}
_NOTES = (
    "observe and review are modes of the agent: an agent that offers no such mode is not started",
    "workspace_write and trusted are modes of the agent if it offers them, else the agent's default",
    "resume and fork depend on the agent; Scout refuses what the agent cannot do",
)
_HINT = 'set the agent\'s program: scout agent config {} --set command=\'["program", "argument"]\''


class Acp(PersistentHarness):
    """The files of a session's programs are below `sessions/<session id>`, one folder each."""

    prompt_mark = b'"session/prompt"'

    def __init__(
        self,
        sessions: Path,
        environment: tuple[str, ...] = (),
        limits: PipeLimits = PipeLimits(),
        name: str = "acp",
        program: tuple[str, ...] = (),
    ) -> None:
        super().__init__(sessions, environment, limits)
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
        self._command = program
        self._opened: dict[Path, AcpSession] = {}

    async def probe(self) -> Probe:
        """Return whether the program is installed. Without a default program, each agent configures one."""
        if self._command and shutil.which(self._command[0]) is None:
            program = self._command[0]
            hint = f"install {program} so that it is on the daemon's PATH"
            return Probe(ready=False, missing=Missing.BINARY, hint=hint, program=program, notes=_NOTES)
        return Probe(ready=True, notes=_NOTES)

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        """Ask the agent for exactly this session. A program that was started only for that is stopped."""
        running = self._find_running(spec.session_id)
        if running is not None:
            session = await self._open_session(running, spec)
            if session.native_id == native_id:
                return self._describe(running, spec)
            raise Refused(refuse_attach(self.name, spec, native_id, "this session runs under another name"))
        pipe = self._make_pipe(spec.session_id)
        try:
            session = await self._run(pipe, spec, native_id)
        except TurnImpossible as problem:
            raise Refused(refuse_attach(self.name, spec, native_id, problem.failed.reason)) from problem
        finally:
            await pipe.stop(_CHECKED, self._limits)
        return Started(native_ids={"session": session.native_id}, model=session.model)

    # -- its program -----------------------------------------------------------------------------

    async def _open_program(self, spec: SessionSpec) -> Pipe:
        pipe = self._find_running(spec.session_id)
        if pipe is not None:
            await self._open_session(pipe, spec)
            return pipe
        await clear_last(self._get_folder(spec.session_id))
        # Agents do not store a session without a turn.
        fresh = has_no_context(self._list_pipes(spec.session_id))
        pipe = self._make_pipe(spec.session_id)
        await self._run(pipe, spec, None if fresh else self._native_id(spec) or None)
        return pipe

    async def _run(self, pipe: Pipe, spec: SessionSpec, native_id: str | None) -> AcpSession:
        await self._start_program(pipe, self._launch(spec))
        try:
            return await self._open_session(pipe, spec, native_id)
        except TurnImpossible as problem:
            failed = problem.failed
            await pipe.stop(failed.reason, self._limits)
            log = str(pipe.run.stderr)
            raise TurnImpossible(failed.reason, failed.layer, log=log, missing=failed.missing) from problem

    async def _open_session(self, pipe: Pipe, spec: SessionSpec, native_id: str | None = None) -> AcpSession:
        """Open the session in a program. If it is already open there, the answers are read from its files."""
        known = self._opened.get(pipe.run.folder)
        if known is None:
            opening = AcpOpening(
                Rpc(pipe), spec, str(self._choose_directory(spec)), self._build_environment(spec)
            )
            known = self._opened[pipe.run.folder] = await opening.open(native_id)
        return known

    def _identify(self, pipe: Pipe, spec: SessionSpec) -> Identified:
        session = self._opened[pipe.run.folder]
        return Identified(native_ids={"session": session.native_id}, model=session.model)

    def _launch(self, spec: SessionSpec) -> Launch:
        command = spec.command or self._command
        hint = _HINT.format(spec.address)
        if not command:
            raise TurnImpossible(hint, missing=Missing.BINARY)
        directory, environment = self._choose_directory(spec), self._build_environment(spec)
        found = find_command(command, directory, environment["PATH"])
        if found is None:
            raise TurnImpossible(f"{command[0]} was not found; {hint}", missing=Missing.BINARY)
        return Launch(found, str(directory), "", environment)

    def _build_environment(self, spec: SessionSpec) -> dict[str, str]:
        words = " ".join(spec.command or self._command)
        own = [name for word, names in _OWN.items() if word in words for name in names]
        withheld = {name for word, names in _WITHHELD.items() if word in words for name in names}
        given = {name: value for name, value in spec.environment.items() if name not in withheld}
        return build_environment(given, also=(*own, *self._also))

    def _refuse(self, spec: SessionSpec, failed: Failed) -> Diagnostic:
        if failed.missing is not None:
            parameters = {"address": spec.address, "config": {"command": ["program", "argument"]}}
            remedy = Remedy(operation="agent.config", parameters=parameters, why="set the agent's program")
            remedies = (remedy,) if failed.missing is Missing.BINARY else ()
            return HarnessUnavailable(
                harness=self.name, missing=failed.missing, hint=failed.reason, remedies=remedies
            )
        if named := self._native_id(spec) or spec.fork_of:
            return refuse_attach(self.name, spec, named, failed.reason)
        return super()._refuse(spec, failed)

    # -- its turns -------------------------------------------------------------------------------

    async def _send_prompt(self, pipe: Pipe, spec: SessionSpec, prompt: Prompt) -> None:
        words = build_first_prompt(spec, prompt, had_turns=self._has_had_turns(spec.session_id))
        session = self._opened[pipe.run.folder]
        params = {"sessionId": session.native_id, "prompt": [{"type": "text", "text": words}]}
        try:
            await Rpc(pipe).send(prompt.delivery_id, "session/prompt", params)
        except RpcError as error:
            raise TurnImpossible(str(error), again=True) from error

    def _open_turn(self, pipe: Pipe, prompt: Prompt) -> AcpTurn:
        session = self._opened.get(pipe.run.folder)
        return AcpTurn(pipe, prompt.delivery_id, prompt.text, session.model if session else None)

    def _is_over(self, pipe: Pipe, delivery_id: str) -> bool:
        return AcpTurn(pipe, delivery_id).is_over()

    def _find_request(self, pipe: Pipe, request: str) -> Entry | None:
        return find_request(pipe, request)

    async def _reply(self, pipe: Pipe, message: Entry, answer: HumanAnswer) -> bool:
        outcome = choose_option(to_list(get_object(message, "params").get("options")), answer)
        return outcome is not None and await Rpc(pipe).reply(message["id"], {"outcome": outcome})

    async def _cancel_turn(self, pipe: Pipe, delivery_id: str) -> None:
        await AcpTurn(pipe, delivery_id).cancel()
