"""The harness `tmux`: any interactive program in its own pane. Output is read off the screen.

tmux keeps the contents of a pane, also without a broker; the start and end of each turn are files below
`sessions/<id>/pane`. So a restarted broker reads the same as the broker before it.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from scout.adapters.harness import (
    STOPPED,
    BasicHarness,
    build_first_prompt,
    estimate_tokens,
    refuse_attach,
)
from scout.adapters.process.run import stop
from scout.adapters.tmux.hooks import VARIABLE as HOOK_FILE
from scout.adapters.tmux.kept import Held, Kept, PaneTurn
from scout.adapters.tmux.observer import Observer
from scout.adapters.tmux.pane import Pane, TmuxServer, get_server, write_environment, write_process
from scout.adapters.tmux.programs import PROGRAMS, find_known_name
from scout.adapters.tmux.screen import find_question, sanitize
from scout.adapters.tmux.turn import PaneTurnRun, build_failure
from scout.adapters.tmux.watch import Pace, build_request_id
from scout.base.refusal import Refused, Remedy
from scout.model.delivery import InspectResult
from scout.model.problems.session import HarnessUnavailable, Layer, Missing
from scout.ports import (
    Accepted,
    Capabilities,
    Completed,
    Failed,
    HarnessEvent,
    HumanAnswer,
    OpenedSession,
    Probe,
    ProgramSight,
    Prompt,
    SessionSpec,
    Started,
    Tailed,
    TailLine,
    TurnUsage,
    UsageKind,
)
from scout.settings.environment import build_environment

_NOTES = (
    "tmux enforces no permission profile: the program in the pane has its own rules",
    "Scout reads questions from the screen and types the answers",
    "without hooks in the program (`scout setup`), Scout sees what it does and answers only on its screen",
    "a program without bracketed paste reads each line of a prompt as separate input",
)


class Tmux(BasicHarness):
    """One pane for each session, in Scout's own tmux server or in a person's."""

    name = "tmux"
    capabilities = Capabilities(
        needs_command=True,
        permissions=True,
        usage=UsageKind.ESTIMATED,
        calls_back=True,
        keeps_process=True,
        reads_screen=True,
    )

    def __init__(self, sessions: Path, environment: tuple[str, ...] = (), pace: Pace = Pace()) -> None:
        self._sessions = sessions.absolute()
        self._environment = environment
        self._pace = pace
        self._observer = Observer(pace.quiet)
        self._own = get_server(self._sessions)
        self._changing = asyncio.Lock()

    async def probe(self) -> Probe:
        if shutil.which("tmux") is None:
            return Probe(
                ready=False, missing=Missing.BINARY, hint="install tmux", program=self.name, notes=_NOTES
            )
        return Probe(ready=True, version=(await TmuxServer(()).run("-V") or "").strip() or None, notes=_NOTES)

    # -- sessions --------------------------------------------------------------------------------

    async def start(self, spec: SessionSpec) -> Started:
        """Run the program in a pane, unless it is running. One that has ended is only started to resume."""
        held = self._get_record(spec.session_id).held
        if held is not None and held.is_alive:
            return held.told
        if held is None and not spec.native_ids:
            return (await self._start_pane(spec, ())).told
        resume = _find_resume_words(spec)
        if not resume:
            native = next(iter(spec.native_ids.values()), spec.session_id)
            reason = "its program has ended and cannot be resumed"
            raise Refused(refuse_attach(self.name, spec, native, reason))
        await self._release_pane(spec)
        return (await self._start_pane(spec, resume)).told

    async def _release_pane(self, spec: SessionSpec) -> Started:
        """Remove the pane of a program that has ended; the next turn resumes its session in another."""
        kept = self._get_record(spec.session_id)
        held = kept.held
        if held is not None and held.is_alive:
            return held.told
        if held is not None and held.own:
            async with self._changing:
                await held.server.close(held.session)
        kept.release()
        return Started(native_ids=spec.native_ids)

    async def _start_pane(self, spec: SessionSpec, resume: tuple[str, ...]) -> Held:
        program = _find_program(spec)
        kept = self._get_record(spec.session_id)
        folder = kept.folder
        kept.run.prepare()
        directory = spec.cwd or str(folder)
        known = PROGRAMS.get(find_known_name(spec.command))
        also = (*self._environment, *(known.environment if known is not None else ()))
        given = build_environment({**spec.environment, HOOK_FILE: str(kept.hooks.path)}, also=also)
        given.pop("TERM", None)  # the terminal is tmux's, not the daemon's
        write_environment(folder, given)
        flags = [one for one in (known.flags if known is not None else ()) if one not in spec.command]
        command = _add_flags((program, *spec.command[1:]), flags) + resume
        async with self._changing:
            pane = await self._own.begin(spec.session_id, folder, command, directory)
        if pane is None:
            raise Refused(_build_refusal(spec, Missing.BINARY, "tmux could not start it"))
        write_process(folder, pane.process)
        return self._keep(spec, self._own, pane, own=True)

    def _keep(self, spec: SessionSpec, server: TmuxServer, pane: Pane, *, own: bool) -> Held:
        held = Held(
            address=server.address,
            session=pane.session,
            ident=pane.ident,
            pid=pane.process.pid,
            started=pane.process.started,
            own=own,
            program=find_known_name(spec.command or (pane.command,)),
        )
        return self._get_record(spec.session_id).hold(held)

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        """Attach to `/socket:session:pane`, to a pane of Scout's own, or to a session that can be resumed."""
        if native_id == spec.native_ids.get("session") and _find_resume_words(spec):
            return await self._release_pane(spec)
        server, name = self._own, native_id
        if native_id.startswith("/"):
            socket, _, name = native_id.partition(":")
            server = TmuxServer(("-S", socket))
        pane = await server.find(name) if shutil.which("tmux") else None
        held = self._get_record(spec.session_id).held
        if pane is not None and held is not None and held.pane[:3] == pane[:3]:
            return held.told
        if pane is None or held is not None or server == self._own:
            reason = "no such pane runs a program, or it belongs to another session"
            raise Refused(refuse_attach(self.name, spec, native_id, reason))
        self._get_record(spec.session_id).run.prepare()
        return self._keep(spec, server, pane, own=False).told

    async def is_warm(self, session_id: str) -> bool:
        held = self._get_record(session_id).held
        return held is not None and held.is_alive

    async def look(self, session_id: str) -> ProgramSight:
        """Return what the program does, from its reports and its screen."""
        kept = self._get_record(session_id)
        held = kept.held
        if held is None:
            return ProgramSight()
        seen = await self._observer.look(kept, held)
        if seen is not None:
            return ProgramSight(state=seen.state)
        if held.is_alive and held.own:
            return ProgramSight()  # its server did not answer
        return ProgramSight(ended=build_failure(kept, await held.server.look(held.pane)).reason)

    async def stop(self, session_id: str) -> None:
        """Stop a program that Scout started, with its children; a person's own pane is only detached."""
        held = self._get_record(session_id).held
        if held is None:
            return
        run = self._get_record(session_id).run
        if not held.own:
            run.mark_stopped(STOPPED)
            return
        await stop(run, STOPPED, self._pace.grace)
        async with self._changing:
            await held.server.close(held.session)

    async def open(self, spec: SessionSpec) -> OpenedSession:
        held = self._get_record(spec.session_id).held
        if held is None or await held.server.look(held.pane) is None:
            raise Refused(refuse_attach(self.name, spec, spec.session_id, "its pane does not exist"))
        words = ("tmux", *held.address, "attach-session", "-t", f"={held.session}")
        return OpenedSession(command=words, cwd=spec.cwd, joins=True)

    async def tail(self, spec: SessionSpec, after: int, limit: int) -> Tailed:
        """Read the lines of the pane, as far back as tmux keeps them."""
        held = self._get_record(spec.session_id).held
        shown = await held.server.look(held.pane) if held is not None else None
        if held is None or shown is None:
            raise Refused(refuse_attach(self.name, spec, spec.session_id, "its pane does not exist"))
        begin = max(0, len(shown.lines) - limit) if after < 0 else after
        some = shown.lines[begin : begin + limit]
        lines = tuple(TailLine(who="system", text=line) for line in some)
        return Tailed(lines=lines, next=begin + len(some), source=f"{held.address[-1]}:{held.ident}")

    # -- turns -----------------------------------------------------------------------------------

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        kept = self._get_record(spec.session_id)
        turn = kept.turn(prompt.delivery_id)
        if turn is None or not turn.sent:
            async for event in self._send_prompt(spec, prompt, kept):
                yield event
                if isinstance(event, Failed):
                    return
        held = kept.held
        assert held is not None  # the prompt was sent to it
        yield Accepted(pid=held.pid, pid_started=held.started)
        async for event in self._follow_turn(spec, kept, held, prompt):
            yield event

    async def _send_prompt(
        self, spec: SessionSpec, prompt: Prompt, kept: Kept
    ) -> AsyncIterator[HarnessEvent]:
        """Start the program if need be, and type the prompt; yields its questions, or the failure."""
        try:
            await self.start(spec)
        except Refused as refusal:
            told = refusal.diagnostic
            missing = told.missing if isinstance(told, HarnessUnavailable) else None
            yield Failed(layer=Layer.SESSION, reason=told.message, missing=missing)
            return
        held = kept.held
        assert held is not None  # `start` made it
        words = build_first_prompt(spec, prompt, had_turns=kept.had_turns)
        run = PaneTurnRun(self._observer, self._pace, kept, held, prompt.delivery_id)
        async for event in run.type_prompt(sanitize(words)):
            yield event

    async def _follow_turn(
        self, spec: SessionSpec, kept: Kept, held: Held, prompt: Prompt
    ) -> AsyncIterator[HarnessEvent]:
        """Yield the events of the turn. Its end is stored, and repeated for a later caller."""
        turn = kept.turn(prompt.delivery_id)
        end = turn.end if turn is not None else None
        if end is None:
            run = PaneTurnRun(self._observer, self._pace, kept, held, prompt.delivery_id)
            async for event in run.follow(spec, sanitize(prompt.text)):
                if isinstance(event, Completed | Failed):
                    end = event
                else:
                    yield event
            kept.note(prompt.delivery_id, PaneTurn(sent=True, end=end))
        if isinstance(end, Completed):
            yield TurnUsage(
                prompt_tokens=estimate_tokens(len(prompt.text)),
                completion_tokens=estimate_tokens(len(end.text)),
            )
        assert end is not None  # a turn always ends with one
        yield end

    async def respond(self, session_id: str, request: str, answer: HumanAnswer) -> bool:
        """Type the answer, if exactly that question is still on the screen."""
        held = self._get_record(session_id).held
        shown = await held.server.look(held.pane) if held is not None else None
        if held is None or shown is None:
            return False
        wish = find_question(shown.lines)
        if wish is None or build_request_id(request.rpartition("-")[0], shown) != request:
            return False
        return await held.server.press(held.pane, *wish.answer(answer.allow, answer.text))

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        kept = self._get_record(session_id)
        held, turn = kept.held, kept.turn(delivery_id)
        if held is None or turn is None or not turn.sent or turn.end is not None or turn.interrupted:
            return False
        kept.note(delivery_id, PaneTurn(before=turn.before, mark=turn.mark, sent=True, interrupted=True))
        known = PROGRAMS.get(held.program)
        await held.server.press(held.pane, known.interrupt if known is not None else "C-c")
        return True

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        return self._get_record(session_id).found(delivery_id)

    def _get_record(self, session_id: str) -> Kept:
        return Kept(self._sessions, session_id)


def _find_program(spec: SessionSpec) -> str:
    """Return the path of the program; refuse if anything it needs is missing."""
    if not spec.command:
        raise Refused(_build_refusal(spec, Missing.BINARY, "no command is set for it"))
    if shutil.which("tmux") is None:
        raise Refused(_build_refusal(spec, Missing.BINARY, "install tmux", "tmux"))
    program = spec.command[0]
    wanted = str(Path(spec.cwd or ".") / program) if "/" in program else program
    found = shutil.which(wanted, path=build_environment(spec.environment)["PATH"])
    if found is None:
        hint = f"the program {program} was not found"
        raise Refused(_build_refusal(spec, Missing.BINARY, hint, program))
    if spec.cwd is not None and not Path(spec.cwd).is_dir():
        raise Refused(_build_refusal(spec, Missing.BINARY, f"its directory {spec.cwd} does not exist"))
    return str(Path(found).absolute())


def _add_flags(command: tuple[str, ...], flags: list[str]) -> tuple[str, ...]:
    """Return a command line with these flags behind the known program that it names."""
    at = next((place for place, word in enumerate(command) if Path(word).name in PROGRAMS), 0) + 1
    return (*command[:at], *flags, *command[at:])


def _find_resume_words(spec: SessionSpec) -> tuple[str, ...]:
    """Return the words that resume the program's own session; none if that is not known or not possible."""
    known = PROGRAMS.get(find_known_name(spec.command))
    native = spec.native_ids.get("session")
    return (*known.resume, native) if known is not None and native else ()


def _build_refusal(spec: SessionSpec, missing: Missing, hint: str, program: str = "") -> HarnessUnavailable:
    parameters = {"address": spec.address, "config": {"command": ["program", "argument"]}}
    remedy = Remedy(operation="agent.config", parameters=parameters, why="the program and its arguments")
    return HarnessUnavailable(
        harness=Tmux.name, missing=missing, hint=hint, program=program, remedies=(remedy,)
    )
