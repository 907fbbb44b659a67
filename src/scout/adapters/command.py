"""The harness `command`: any program that reads a prompt and writes an answer, once for each turn."""

import asyncio
import errno
import re
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from scout.adapters.harness import Plain, not_attachable
from scout.adapters.process.environment import environment_for
from scout.adapters.process.outputs import tail_of_runs
from scout.adapters.process.process import Run, RunLimits, RunState, follow, stop
from scout.adapters.process.spawn import Launch
from scout.adapters.process.tail import last_line
from scout.base.refusal import Refused, Remedy
from scout.model.delivery import InspectResult
from scout.model.problems.session import HarnessUnavailable, Layer, Missing
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
    Tailed,
    TurnProgress,
    TurnUsage,
    UsageKind,
)

_SAFE = re.compile(r"\w[\w.-]*", re.ASCII)
_BUSY = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_BEGIN_WAIT = 10.0
_CHARACTERS_PER_TOKEN = 4

_INTERRUPTED = "interrupted"
_SESSION_STOPPED = "the session was stopped"
_FOUND = {
    RunState.ABSENT: InspectResult.NOT_TAKEN,
    RunState.RUNNING: InspectResult.TAKEN,
    RunState.ENDED: InspectResult.TAKEN,
    RunState.LOST: InspectResult.UNKNOWN,
}
_NOTES = (
    "its program has your rights: Scout enforces no permission profile on it, and wakes it for each turn",
)


class _Cannot(Exception):  # noqa: N818 (a signal between two methods)
    """The program cannot be started."""

    def __init__(
        self,
        reason: str,
        layer: Layer = Layer.PROCESS,
        *,
        again: bool = False,
        remedies: tuple[Remedy, ...] = (),
    ) -> None:
        self.failed = Failed(layer=layer, reason=reason, again=again, remedies=remedies)


class Command(Plain):
    """Each turn is a run of the agent's own program; what its runs wrote is below `sessions`."""

    name = "command"
    capabilities = Capabilities(
        usage=UsageKind.ESTIMATED, calls_back=True, needs_command=True, calls_model=False, plain_body=True
    )

    def __init__(
        self, sessions: Path, limits: RunLimits | None = None, environment: tuple[str, ...] = ()
    ) -> None:
        self._sessions = sessions.absolute()
        self._environment = environment
        self._limits = limits or RunLimits()

    async def probe(self) -> Probe:
        return Probe(ready=True, notes=_NOTES)

    async def start(self, spec: SessionSpec) -> Started:
        """A session is only a name for runs that follow each other."""
        _require_command(spec)
        return Started(native_ids={"session": spec.session_id}, model=spec.model)

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        if native_id != spec.session_id:
            reason = "a program that runs once for each turn has no session that could be taken up"
            raise Refused(not_attachable(self.name, spec, native_id, reason))
        return await self.start(spec)

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        run = self._run(spec.session_id, prompt.delivery_id)
        try:
            yield await self._accepted(spec, prompt, run)
        except _Cannot as problem:
            yield problem.failed
            return
        async for line in follow(run, self._limits):
            yield TurnProgress(text=line)
        for event in await asyncio.to_thread(self._outcome, spec, prompt, run):
            yield event

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        run = self._run(session_id, delivery_id)
        if run.folder.is_dir():
            await run.taken(self._limits.grace)  # it may be just about to begin
        return await stop(run, _INTERRUPTED, self._limits.grace)

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        return _FOUND[self._run(session_id, delivery_id).state()]

    async def stop(self, session_id: str) -> None:
        folder = self._sessions / _safe(session_id)
        for one in sorted(folder.iterdir()) if folder.is_dir() else ():
            await stop(Run(one), _SESSION_STOPPED, self._limits.grace)

    async def tail(self, spec: SessionSpec, after: int, limit: int) -> Tailed:
        """Its runs are all the transcript there is."""
        folder = self._sessions / _safe(spec.session_id)
        return await asyncio.to_thread(tail_of_runs, folder, after, limit)

    def _run(self, session_id: str, delivery_id: str) -> Run:
        return Run(self._sessions / _safe(session_id) / _safe(delivery_id))

    async def _accepted(self, spec: SessionSpec, prompt: Prompt, run: Run) -> Accepted:
        """Begin the run, or find that it has begun."""
        if run.state() is RunState.ABSENT:
            _begin(run, _launch(spec, prompt, run, self._environment))
        process = await run.taken(_BEGIN_WAIT)
        if process is None:  # with a file `pid` that says nothing, it may have begun
            again = run.state() is RunState.ABSENT
            raise _Cannot(f"its shell did not begin within {_BEGIN_WAIT:g} s", again=again)
        return Accepted(pid=process.pid, pid_started=process.started)

    def _outcome(self, spec: SessionSpec, prompt: Prompt, run: Run) -> tuple[HarnessEvent, ...]:
        """What the files of a run that is over say."""
        if reason := self._problem(run):
            of_session = reason in {_INTERRUPTED, _SESSION_STOPPED}
            layer = Layer.SESSION if of_session else Layer.PROCESS
            return (Failed(layer=layer, reason=reason, log=str(run.stderr)),)
        text = self._answer(run)
        spent = TurnUsage(
            prompt_tokens=_tokens(prompt.text), completion_tokens=_tokens(text), model=spec.model
        )
        return spent, Completed(text=text)

    def _problem(self, run: Run) -> str:
        code = run.exit_code
        if run.stopped:
            return run.stopped
        if code is None:
            return "its process was gone without a word; it may have done its work"
        if code != 0:
            return ": ".join(filter(None, (_exit(code), last_line(run.stderr))))
        return ""

    def _answer(self, run: Run) -> str:
        """What it wrote; the beginning of what is too much, and where all of it is."""
        with run.stdout.open("rb") as file:
            data = file.read(self._limits.output)
        text, size = data.decode("utf-8", "replace").rstrip(), run.stdout.stat().st_size
        rest = f"\n\n[It wrote {size} bytes. This is the beginning; all of it is in {run.stdout}]"
        return text + rest if size > len(data) else text


def _begin(run: Run, launch: Launch) -> None:
    try:
        run.begin(launch)
    except OSError as error:
        raise _Cannot(f"{launch.command[0]}: {error.strerror}", again=error.errno in _BUSY) from error
    except ValueError as error:
        raise _Cannot(f"{launch.command[0]}: {error}") from error


def _launch(spec: SessionSpec, prompt: Prompt, run: Run, also: tuple[str, ...]) -> Launch:
    """The program as a path, so that the one that was looked for is the one that runs."""
    if not spec.command:
        raise _Cannot("no program is set for it", remedies=(_set_command(spec),))
    environment = environment_for(prompt.environment, also=also)
    directory = _directory(spec, run)
    program, *arguments = spec.command
    wanted = str(directory / program) if "/" in program else program
    found = shutil.which(wanted, path=environment["PATH"])
    if found is None:
        raise _Cannot(f"the program {program} was not found", remedies=(_set_command(spec),))
    path = str(Path(found).absolute())
    return Launch((path, *arguments), str(directory), prompt.text, environment)


def _directory(spec: SessionSpec, run: Run) -> Path:
    """Where it runs; without a directory of its agent, in an empty one of its own."""
    if spec.cwd is None:
        run.prepare()
        scratch = run.folder / "work"
        scratch.mkdir(mode=0o700, exist_ok=True)
        return scratch
    directory = Path(spec.cwd)
    if not directory.is_dir():
        raise _Cannot(f"its directory {directory} is not there")
    return directory


def _set_command(spec: SessionSpec) -> Remedy:
    wish = {"address": spec.address, "config": ['command=["PROGRAM", "ARGUMENT"]']}
    return Remedy(operation="agent.config", parameters=wish, why="the program that it runs")


def _require_command(spec: SessionSpec) -> None:
    if spec.command:
        return
    hint, remedies = "no program is set for it", (_set_command(spec),)
    raise Refused(
        HarnessUnavailable(harness=Command.name, missing=Missing.BINARY, hint=hint, remedies=remedies)
    )


def _safe(part: str) -> str:
    """An id that names a folder here and nothing elsewhere."""
    if not _SAFE.fullmatch(part):
        raise ValueError(f"not an id: {part!r}")
    return part


def _exit(code: int) -> str:
    with suppress(ValueError):
        return f"exit {code} ({signal.Signals(code - 128).name})"
    return f"exit {code}"


def _tokens(text: str) -> int:
    """An estimate, and marked as one."""
    return -(-len(text) // _CHARACTERS_PER_TOKEN)
