"""The harness `command`: any program that reads a prompt and writes an answer, once for each turn."""

import asyncio
import errno
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path

from scout.adapters.harness import (
    INTERRUPTED,
    STOPPED,
    BasicHarness,
    TurnImpossible,
    check_id,
    choose_directory,
    estimate_tokens,
    find_command,
    refuse_attach,
)
from scout.adapters.process.run import Launch, Run, RunLimits, RunState, follow, read_last_line, stop
from scout.adapters.process.run_folders import read_tail
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
from scout.settings.environment import build_environment

_BUSY = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_BEGIN_WAIT = 10.0
_NO_COMMAND = "no program is set for it"
_FOUND = {
    RunState.ABSENT: InspectResult.NOT_TAKEN,
    RunState.RUNNING: InspectResult.TAKEN,
    RunState.ENDED: InspectResult.TAKEN,
    RunState.LOST: InspectResult.UNKNOWN,
}
_NOTES = (
    "the program runs with your rights: Scout enforces no permission profile, and starts it for each turn",
)


class Command(BasicHarness):
    """Each turn is one run of the agent's program. The output of runs is below `sessions`."""

    name = "command"
    capabilities = Capabilities(
        usage=UsageKind.ESTIMATED, calls_back=True, needs_command=True, calls_model=False, plain_body=True
    )

    def __init__(
        self, sessions: Path, limits: RunLimits | None = None, environment: tuple[str, ...] = ()
    ) -> None:
        self._sessions = sessions.absolute()
        self._environment = build_environment({}, also=environment)  # the daemon's own does not change
        self._limits = limits or RunLimits()

    async def probe(self) -> Probe:
        return Probe(ready=True, notes=_NOTES)

    async def start(self, spec: SessionSpec) -> Started:
        """Return the session, which is only a name for a sequence of runs."""
        _require_command(spec)
        return Started(native_ids={"session": spec.session_id}, model=spec.model)

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        if native_id != spec.session_id:
            reason = "a program that runs once for each turn has no session to attach"
            raise Refused(refuse_attach(self.name, spec, native_id, reason))
        return await self.start(spec)

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        run = self._run(spec.session_id, prompt.delivery_id)
        try:
            yield await self._accept(spec, prompt, run)
        except TurnImpossible as problem:
            yield problem.failed
            return
        async for line in follow(run, self._limits):
            yield TurnProgress(text=line)
        for event in await asyncio.to_thread(self._read_outcome, spec, prompt, run):
            yield event

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        run = self._run(session_id, delivery_id)
        if run.folder.is_dir():
            await run.wait_for_process(self._limits.grace)  # it may be about to start
        return await stop(run, INTERRUPTED, self._limits.grace)

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        return _FOUND[self._run(session_id, delivery_id).state()]

    async def stop(self, session_id: str) -> None:
        folder = self._sessions / check_id(session_id)
        for one in sorted(folder.iterdir()) if folder.is_dir() else ():
            await stop(Run(one), STOPPED, self._limits.grace)

    async def tail(self, spec: SessionSpec, after: int, limit: int) -> Tailed:
        """Read the output of the runs, which is the transcript."""
        folder = self._sessions / check_id(spec.session_id)
        return await asyncio.to_thread(read_tail, folder, after, limit)

    def _run(self, session_id: str, delivery_id: str) -> Run:
        return Run(self._sessions / check_id(session_id) / check_id(delivery_id))

    async def _accept(self, spec: SessionSpec, prompt: Prompt, run: Run) -> Accepted:
        """Start the run, unless it has started."""
        if run.state() is RunState.ABSENT:
            run.prepare()
            _begin(run, _launch(spec, prompt, run, self._environment))
        process = await run.wait_for_process(_BEGIN_WAIT)
        if process is None:  # with an empty `pid` file, it may have started
            again = run.state() is RunState.ABSENT
            raise TurnImpossible(f"its shell did not start within {_BEGIN_WAIT:g} s", again=again)
        return Accepted(pid=process.pid, pid_started=process.started)

    def _read_outcome(self, spec: SessionSpec, prompt: Prompt, run: Run) -> tuple[HarnessEvent, ...]:
        """Read the result of a run that has ended."""
        if reason := self._find_problem(run):
            of_session = reason in {INTERRUPTED, STOPPED}
            layer = Layer.SESSION if of_session else Layer.PROCESS
            return (Failed(layer=layer, reason=reason, log=str(run.stderr)),)
        text = self._answer(run)
        spent = TurnUsage(
            prompt_tokens=estimate_tokens(len(prompt.text)),
            completion_tokens=estimate_tokens(len(text)),
            model=spec.model,
        )
        return spent, Completed(text=text)

    def _find_problem(self, run: Run) -> str:
        code = run.exit_code
        if run.stopped:
            return run.stopped
        if code is None:
            return "its process disappeared without an exit code; it may have done its work"
        if code != 0:
            return ": ".join(filter(None, (_describe_exit(code), read_last_line(run.stderr))))
        return ""

    def _answer(self, run: Run) -> str:
        """Return the program's output; if it is too long, the beginning and the name of the file."""
        with run.stdout.open("rb") as file:
            data = file.read(self._limits.output)
        text, size = data.decode("utf-8", "replace").rstrip(), run.stdout.stat().st_size
        rest = f"\n\n[The output has {size} bytes. This is the beginning; the rest is in {run.stdout}]"
        return text + rest if size > len(data) else text


def _begin(run: Run, launch: Launch) -> None:
    try:
        run.begin(launch)
    except OSError as error:
        raise TurnImpossible(f"{launch.command[0]}: {error.strerror}", again=error.errno in _BUSY) from error
    except ValueError as error:
        raise TurnImpossible(f"{launch.command[0]}: {error}") from error


def _launch(spec: SessionSpec, prompt: Prompt, run: Run, inherited: Mapping[str, str]) -> Launch:
    if not spec.command:
        raise TurnImpossible(_NO_COMMAND, remedies=(_set_command(spec),))
    environment = {**inherited, **prompt.environment}
    directory = choose_directory(spec, run.folder / "work")
    command = find_command(spec.command, directory, environment["PATH"])
    if command is None:
        raise TurnImpossible(f"the program {spec.command[0]} was not found", remedies=(_set_command(spec),))
    return Launch(command, str(directory), prompt.text, environment)


def _set_command(spec: SessionSpec) -> Remedy:
    wish = {"address": spec.address, "config": ['command=["PROGRAM", "ARGUMENT"]']}
    return Remedy(operation="agent.config", parameters=wish, why="set its program")


def _require_command(spec: SessionSpec) -> None:
    if spec.command:
        return
    hint, remedies = _NO_COMMAND, (_set_command(spec),)
    raise Refused(
        HarnessUnavailable(harness=Command.name, missing=Missing.BINARY, hint=hint, remedies=remedies)
    )


def _describe_exit(code: int) -> str:
    with suppress(ValueError):
        return f"exit {code} ({signal.Signals(code - 128).name})"
    return f"exit {code}"
