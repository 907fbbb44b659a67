"""The harness `tmux`: any interactive program in its own pane. Output is read off the screen.

tmux keeps the contents of a pane, also without a broker; the start and end of each turn are files below
`sessions/<id>/pane`. So a restarted broker reads the same as the broker before it.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from scout.adapters.harness import (
    INTERRUPTED,
    STOPPED,
    BasicHarness,
    build_first_prompt,
    estimate_tokens,
    refuse_attach,
)
from scout.adapters.process.run import stop
from scout.adapters.tmux.kept import Held, Kept, PaneTurn
from scout.adapters.tmux.pane import Pane, Shown, TmuxServer, get_server, write_environment, write_process
from scout.adapters.tmux.screen import find_new_lines, find_question, sanitize
from scout.adapters.tmux.watch import Pace, PaneWatch, build_request_id
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
    Prompt,
    SessionSpec,
    Started,
    Tailed,
    TailLine,
    TurnUsage,
    UsageKind,
)
from scout.settings.environment import build_environment

_BY_ESCAPE = {"claude", "codex"}  # programs in which Escape ends a turn and Ctrl-C may end the program
_BLINK = 0.3  # seconds until a screen shows a pasted text
_BLANK = 4  # factor on the usual wait while a program shows nothing
_NOTES = (
    "tmux enforces no permission profile: the program in the pane has its own rules",
    "Scout reads questions from the screen and types the answers",
    "a program without bracketed paste reads each line of a prompt as separate input",
)


class Tmux(BasicHarness):
    """One pane for each session, in Scout's own tmux server or in a person's."""

    name = "tmux"
    capabilities = Capabilities(
        needs_command=True, permissions=True, usage=UsageKind.ESTIMATED, calls_back=True, keeps_process=True
    )

    def __init__(self, sessions: Path, environment: tuple[str, ...] = (), pace: Pace = Pace()) -> None:
        self._sessions = sessions.absolute()
        self._environment = environment
        self._pace = pace
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
        """Run the program in a pane, unless it is running. A program that has ended is not started again."""
        held = self._get_record(spec.session_id).held
        if held is not None and held.is_alive:
            return held.told
        if held is not None or spec.native_ids:
            native = next(iter(spec.native_ids.values()), spec.session_id)
            raise Refused(
                refuse_attach(self.name, spec, native, "its program has ended and cannot be resumed")
            )
        return (await self._start_pane(spec)).told

    async def _start_pane(self, spec: SessionSpec) -> Held:
        program = _find_program(spec)
        kept = self._get_record(spec.session_id)
        folder = kept.folder
        kept.run.prepare()
        directory = spec.cwd or str(folder)
        given = build_environment(spec.environment, also=self._environment)
        write_environment(folder, given)
        command = (program, *spec.command[1:])
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
            program=Path(spec.command[0]).name if spec.command else "",
        )
        return self._get_record(spec.session_id).hold(held)

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        """Attach to `session:pane` of Scout's own tmux server, or to `/socket:session:pane` of another."""
        server, name = self._own, native_id
        if native_id.startswith("/"):
            socket, _, name = native_id.partition(":")
            server = TmuxServer(("-S", socket))
        pane = await server.find(name) if shutil.which("tmux") else None
        held = self._get_record(spec.session_id).held
        if pane is not None and held is not None and held.pane == pane:
            return held.told
        if pane is None or held is not None or server == self._own:
            reason = "no such pane runs a program, or it belongs to another session"
            raise Refused(refuse_attach(self.name, spec, native_id, reason))
        self._get_record(spec.session_id).run.prepare()
        return self._keep(spec, server, pane, own=False).told

    async def is_warm(self, session_id: str) -> bool:
        held = self._get_record(session_id).held
        return held is not None and held.is_alive

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
            problem = await self._send_prompt(spec, prompt, kept)
            if problem is not None:
                yield problem
                return
        held = kept.held
        assert held is not None  # the prompt was sent to it
        yield Accepted(pid=held.pid, pid_started=held.started)
        async for event in self._follow_turn(kept, held, prompt):
            yield event

    async def _send_prompt(self, spec: SessionSpec, prompt: Prompt, kept: Kept) -> Failed | None:
        """Type the prompt once the program waits for input; return a failure if that is impossible."""
        try:
            await self.start(spec)
        except Refused as refusal:
            told = refusal.diagnostic
            missing = told.missing if isinstance(told, HarnessUnavailable) else None
            return Failed(layer=Layer.SESSION, reason=told.message, missing=missing)
        held = kept.held
        assert held is not None  # `start` made it
        ready = await self._wait_until_still(held, self._pace.ready)
        if ready is None:
            return _build_failure(kept, await held.server.look(held.pane))
        words = build_first_prompt(spec, prompt, had_turns=kept.had_turns)
        kept.note(prompt.delivery_id, PaneTurn(before=ready.lines))
        await held.server.paste(held.pane, sanitize(words))
        blink = min(self._pace.quiet, _BLINK)
        pasted = await self._wait_until_still(held, self._pace.grace, changed_from=ready, quiet=blink)
        await held.server.press(held.pane, "Enter")
        taken = await self._wait_until_still(held, self._pace.grace, changed_from=pasted, quiet=0.0)
        if taken == ready:
            return Failed(layer=Layer.HARNESS, reason="its screen did not change when the prompt was typed")
        kept.note(prompt.delivery_id, PaneTurn(before=ready.lines, sent=True))
        return None

    async def _wait_until_still(
        self, held: Held, most: float, *, changed_from: Shown | None = None, quiet: float | None = None
    ) -> Shown | None:
        """Return the screen once it stops changing, or at the deadline; None if the program has ended."""
        now = asyncio.get_running_loop().time
        deadline, last, since = now() + most, changed_from, now()
        while True:
            shown = await held.server.look(held.pane)
            if shown is None or shown.dead:
                return None
            if shown != last:
                last, since = shown, now()
            wanted = self._pace.quiet if quiet is None else quiet
            wanted *= 1 if shown.lines else _BLANK
            if now() > deadline or (shown != changed_from and now() - since >= wanted):
                return shown
            await asyncio.sleep(self._pace.look)

    async def _follow_turn(self, kept: Kept, held: Held, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        """Yield the events of the turn. Its end is stored, and repeated for a later caller."""
        turn = kept.turn(prompt.delivery_id) or PaneTurn()
        end = turn.end
        if end is None:
            async for event in self._watch_pane(kept, held, prompt, turn.before):
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
        assert end is not None  # `_watch_pane` always ends with one
        yield end

    async def _watch_pane(
        self, kept: Kept, held: Held, prompt: Prompt, before: tuple[str, ...]
    ) -> AsyncIterator[HarnessEvent]:
        now = asyncio.get_running_loop().time
        watch, deadline = PaneWatch(self._pace, before, prompt.delivery_id), now() + self._pace.turn
        while True:
            shown = await held.server.look(held.pane)
            turn = kept.turn(prompt.delivery_id)
            if turn is not None and turn.interrupted:
                yield Failed(layer=Layer.SESSION, reason=INTERRUPTED)
                return
            if shown is None or shown.dead or kept.run.stopped:
                yield _build_failure(kept, shown)
                return
            for event in watch.read_screen(shown, now()):
                yield event
            if watch.is_over:
                yield Completed(text=find_new_lines(before, shown.lines, sanitize(prompt.text)))
                return
            if now() > deadline:
                yield Failed(layer=Layer.SESSION, reason=f"it took longer than {self._pace.turn:g} s")
                return
            await asyncio.sleep(self._pace.look)

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
        kept.note(delivery_id, PaneTurn(before=turn.before, sent=True, interrupted=True))
        await held.server.press(held.pane, "Escape" if held.program in _BY_ESCAPE else "C-c")
        return True

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        return self._get_record(session_id).found(delivery_id)

    def _get_record(self, session_id: str) -> Kept:
        return Kept(self._sessions, session_id)


def _build_failure(kept: Kept, shown: Shown | None) -> Failed:
    """Return why the program has ended, with the last line of its screen."""
    run = kept.run
    if run.stopped:
        return Failed(layer=Layer.SESSION, reason=run.stopped)
    words = next((line.strip() for line in reversed(shown.lines) if line.strip()), "") if shown else ""
    how = "its pane is gone" if run.exit_code is None else f"exit {run.exit_code}"
    return Failed(layer=Layer.PROCESS, reason=": ".join(filter(None, (how, words))))


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


def _build_refusal(spec: SessionSpec, missing: Missing, hint: str, program: str = "") -> HarnessUnavailable:
    parameters = {"address": spec.address, "config": {"command": ["program", "argument"]}}
    remedy = Remedy(operation="agent.config", parameters=parameters, why="the program and its arguments")
    return HarnessUnavailable(
        harness=Tmux.name, missing=missing, hint=hint, program=program, remedies=(remedy,)
    )
