"""The programs that the sessions have had: found again by their folders, and begun when there is need."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any

from scout.adapters.codex import files, flags, rollout
from scout.adapters.codex.events import End
from scout.adapters.codex.program import CodexProgram
from scout.adapters.harness import not_attachable
from scout.adapters.persistent.pipe import Wire, WireLimits, clear_last, next_number, wires
from scout.adapters.persistent.rpc import RpcError
from scout.adapters.process.spawn import Launch
from scout.base.refusal import Diagnostic, Remedy
from scout.model.problems.session import HarnessUnavailable, Layer, Missing, SessionFailed
from scout.ports import Failed, SessionSpec

_NAME = "codex"
_SAFE = re.compile(r"\w[\w.-]*", re.ASCII)
_WORK = "work"
_NO_DOOR = "its program has ended meanwhile, and another needs a credential of its own"
_OF_SESSION = ("no rollout found", "active writer", "invalid session id")


class CodexUnavailable(Exception):  # noqa: N818 (a signal between two methods)
    """There is no program that could take a turn."""

    def __init__(
        self,
        reason: str,
        layer: Layer = Layer.PROCESS,
        *,
        again: bool = False,
        log: Path | None = None,
        missing: Missing | None = None,
    ) -> None:
        self.failed = Failed(
            layer=layer, reason=reason, again=again, log=str(log) if log else None, missing=missing
        )

    def diagnostic(self, spec: SessionSpec) -> Diagnostic:
        """The same as a refusal."""
        failed = self.failed
        if failed.missing is not None:
            look = Remedy(operation="runtimes.check", parameters={"harness": _NAME}, why="see what it lacks")
            program = _NAME if failed.missing is Missing.BINARY else ""
            return HarnessUnavailable(
                harness=_NAME, missing=failed.missing, hint=flags.INSTALL, program=program, remedies=(look,)
            )
        if failed.layer is Layer.SESSION and (thread := spec.native_ids.get("thread") or spec.fork_of):
            return not_attachable(_NAME, spec, thread, failed.reason)
        return SessionFailed(
            session_id=spec.session_id, layer=failed.layer, reason=failed.reason, log=failed.log
        )


class CodexPrograms:
    """One and the same object for a program while the broker runs: its keeper knows it by its connection."""

    def __init__(self, sessions: Path, environment: tuple[str, ...], limits: WireLimits) -> None:
        self._sessions = sessions
        self._environment = environment
        self._limits = limits
        self._known: dict[Path, CodexProgram] = {}
        self._beginning = asyncio.Lock()  # they share files, and trip over each other while they begin

    def environment(self, spec: SessionSpec | None = None) -> dict[str, str]:
        """What a program is given of the broker's environment, and of its session."""
        return flags.environment_of(spec, self._environment)

    @property
    def home(self) -> Path:
        """Where Codex keeps its files."""
        return files.home_of(os.environ)

    # -- those there are -------------------------------------------------------------------------

    def all(self, session_id: str) -> list[CodexProgram]:
        """Those of a session, the newest last."""
        return [self._program(wire) for wire in wires(self._folder(session_id))]

    def newest(self, session_id: str) -> CodexProgram | None:
        return next(reversed(self.all(session_id)), None)

    def holder(self, session_id: str, delivery_id: str) -> CodexProgram | None:
        """The one that was told this delivery; of several, the last."""
        programs = reversed(self.all(session_id))
        return next((one for one in programs if one.wire.begun_at(delivery_id) is not None), None)

    def took(self, program: CodexProgram, delivery_id: str) -> bool:
        """Whether a program began the turn of a delivery that it was told."""
        if program.has_answered(delivery_id):
            return True
        path = files.transcript_of(self.home, program.thread)
        return path is not None and rollout.has_begun(path, delivery_id)

    def end_in_thread(self, program: CodexProgram, delivery_id: str) -> End | None:
        """How a turn ended by the file of its thread."""
        path = files.transcript_of(self.home, program.thread)
        return rollout.end_of(path, delivery_id) if path is not None else None

    def _program(self, wire: Wire) -> CodexProgram:
        return self._known.setdefault(wire.run.folder, CodexProgram(wire))

    def _folder(self, session_id: str) -> Path:
        if not _SAFE.fullmatch(session_id):
            raise ValueError(f"not an id: {session_id!r}")
        return self._sessions / session_id

    # -- one that runs ---------------------------------------------------------------------------

    async def running(self, spec: SessionSpec) -> CodexProgram:
        """The program of a session with its thread open; begun if there is none."""
        program = self.newest(spec.session_id)
        if program is None or not program.wire.is_running:
            program = await self._begun(spec)
        elif not program.is_opened and spec.door is None:
            await program.wire.stop(_NO_DOOR, self._limits)
            raise CodexUnavailable(_NO_DOOR, again=True)
        method, params = await asyncio.to_thread(self._opening, spec, program)
        try:
            await program.greet()
            await program.open(method, params)
        except RpcError as error:
            await program.wire.stop(str(error), self._limits)
            raise _cannot(error, program) from error
        wanted = params["threadId"] if method == "thread/resume" else program.thread
        if program.thread != wanted:
            raise CodexUnavailable(f"it holds the thread {program.thread}, not {wanted}", Layer.SESSION)
        return program

    async def _begun(self, spec: SessionSpec) -> CodexProgram:
        if spec.door is None:
            raise CodexUnavailable(_NO_DOOR, again=True)
        environment = await asyncio.to_thread(self.environment, spec)
        codex = flags.program(environment)
        if codex is None:
            reason = f"the program codex was not found; {flags.INSTALL}"
            raise CodexUnavailable(reason, missing=Missing.BINARY)
        folder = self._folder(spec.session_id)
        await clear_last(folder)
        program = self._program(Wire(folder / str(next_number(folder))))
        launch = Launch((str(codex), "app-server"), str(self._directory(spec)), "", environment)
        async with self._beginning:
            await self._launched(program, launch)
        return program

    async def _launched(self, program: CodexProgram, launch: Launch) -> None:
        try:
            began = await program.wire.begin(launch, self._limits)
        except (OSError, ValueError) as error:
            raise CodexUnavailable(f"{launch.command[0]}: {error}") from error
        if not began:
            raise CodexUnavailable("its shell did not begin", again=True)
        try:
            await program.greet()
        except RpcError as error:
            await program.wire.stop(str(error), self._limits)
            raise _cannot(error, program) from error

    def _directory(self, spec: SessionSpec) -> Path:
        """Where it works; without a directory of its agent, in an empty one of its own."""
        if spec.cwd is None:
            scratch = self._folder(spec.session_id) / _WORK
            self._sessions.mkdir(mode=0o700, parents=True, exist_ok=True)
            scratch.parent.mkdir(mode=0o700, exist_ok=True)
            scratch.mkdir(mode=0o700, exist_ok=True)
            return scratch
        directory = Path(spec.cwd)
        if not directory.is_dir():
            raise CodexUnavailable(f"its directory {directory} is not there")
        return directory

    def _opening(self, spec: SessionSpec, program: CodexProgram) -> tuple[str, dict[str, Any]]:
        """How its thread is come by: taken up where there is one, begun only where nothing was said yet."""
        params = flags.thread_of(spec, self._directory(spec))
        earlier = [one for one in self.all(spec.session_id) if one is not program and one.thread]
        thread = spec.native_ids.get("thread") or (earlier[-1].thread if earlier else "")
        begun_here = any(one.thread == thread for one in earlier)
        if begun_here and files.transcript_of(self.home, thread) is None:
            thread = ""
        if thread:
            return "thread/resume", {**params, "threadId": thread, "excludeTurns": True}
        if spec.fork_of:
            return "thread/fork", {**params, "threadId": spec.fork_of, "excludeTurns": True}
        return "thread/start", params


def _cannot(error: RpcError, program: CodexProgram) -> CodexUnavailable:
    """Nothing was said yet: after a program that is gone, another may do better."""
    reason, log = str(error), program.wire.run.stderr
    if error.code is None:
        return CodexUnavailable(reason, again=True, log=log)
    of_session = any(words in reason for words in _OF_SESSION)
    return CodexUnavailable(reason, Layer.SESSION if of_session else Layer.HARNESS, log=log)
