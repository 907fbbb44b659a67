"""Looking at panes again and again: since when a screen is unchanged, what its program reports and does."""

import asyncio
from typing import NamedTuple

from scout.adapters.tmux.hooks import HookReport, runs_below
from scout.adapters.tmux.judge import Evidence, judge
from scout.adapters.tmux.kept import Held, Kept
from scout.adapters.tmux.pane import Shown
from scout.adapters.tmux.programs import PROGRAMS, KnownProgram, read_body
from scout.model.endpoint import ProgramState


class PaneLook(NamedTuple):
    """One look at a running program. `reports`: what it reported itself, oldest first."""

    shown: Shown
    still: float
    state: ProgramState
    program: KnownProgram | None
    reports: list[HookReport]


class _Memory:
    """What is remembered of one pane. `process`: the one whose reports count."""

    def __init__(self) -> None:
        self.body: Shown | None = None
        self.since = 0.0
        self.state = ProgramState.UNKNOWN
        self.process: tuple[int, str] | None = None


class Observer:
    """Looks at the panes of one adapter. The turn of a session and the check between turns share a memory."""

    def __init__(self, quiet: float) -> None:
        self._quiet = quiet
        self._memories: dict[tuple[str, int, str], _Memory] = {}

    async def look(self, kept: Kept, held: Held) -> PaneLook | None:
        """Look at the pane of a session; None if its program has ended."""
        key = _build_key(kept, held)
        shown = await held.server.look(held.pane)
        if shown is None or shown.dead:
            self._memories.pop(key, None)
            return None
        memory = self._memories.setdefault(key, _Memory())
        program = PROGRAMS.get(held.program)
        reports = self._read_reports(memory, kept, held)
        now = asyncio.get_running_loop().time()
        body = read_body(program, shown)
        if body != memory.body:
            memory.body, memory.since = body, now
        still = now - memory.since
        last = reports[-1] if reports else None
        memory.state = judge(Evidence(program, shown, still, last, memory.state), self._quiet)
        return PaneLook(shown, still, memory.state, program, reports)

    def expect_work(self, kept: Kept, held: Held) -> None:
        """Take the program as working from now on, because it took a prompt: idle must be seen again."""
        memory = self._memories.setdefault(_build_key(kept, held), _Memory())
        memory.state, memory.since = ProgramState.WORKING, asyncio.get_running_loop().time()

    def _read_reports(self, memory: _Memory, kept: Kept, held: Held) -> list[HookReport]:
        """Return the reports of the program itself; those of programs that it started do not count."""
        reports = kept.hooks.read()
        if memory.process is None and reports and runs_below(reports[0].process, held.pane.process):
            memory.process = reports[0].process
        return [one for one in reports if one.process == memory.process]


def _build_key(kept: Kept, held: Held) -> tuple[str, int, str]:
    return str(kept.folder), held.pid, held.started
