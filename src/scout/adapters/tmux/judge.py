"""What the program in a pane does, from all evidence: its own reports first, then its screen over time.

One look at a screen proves little: a program that works may show nothing new for a while, and a screen may
keep changing long after a turn has ended. Without enough evidence the answer is `unknown`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from scout.adapters.tmux.hooks import HookReport
from scout.adapters.tmux.pane import Shown
from scout.adapters.tmux.programs import KnownProgram, is_input_empty, is_working
from scout.adapters.tmux.screen import find_question, is_line_prompt
from scout.model.endpoint import ProgramState

PERMISSION = "permission_request"
BUSY = frozenset({"prompt_submit", "tool_use", PERMISSION})
_PATIENCE = 5  # factor on the usual wait if the program reported no end: it was interrupted, or it failed
_REPORTED = 0.25  # factor on the usual wait if the program reported the end itself


class Evidence(NamedTuple):
    """One look at a pane. `still`: seconds since its screen changed. `report`: the program's last one.

    `last`: what it did at the look before.
    """

    program: KnownProgram | None
    shown: Shown
    still: float
    report: HookReport | None = None
    last: ProgramState = ProgramState.UNKNOWN

    @property
    def carried(self) -> ProgramState:
        """What counts until there is more evidence: the last state, except a question that is gone."""
        return ProgramState.UNKNOWN if self.last is ProgramState.WAITING else self.last


def judge(evidence: Evidence, quiet: float) -> ProgramState:
    """Return what the program does. `quiet`: the seconds without a change after which a screen counts."""
    if evidence.program is None:
        return _judge_any_program(evidence, quiet)
    if is_working(evidence.program, evidence.shown):
        return ProgramState.WORKING
    if is_input_empty(evidence.program, evidence.shown) is None:
        return _judge_without_input(evidence, quiet)
    reported = evidence.report is not None
    busy = evidence.report is not None and evidence.report.event in BUSY
    wanted = quiet * (_PATIENCE if busy else _REPORTED if reported else 1)
    if evidence.still >= wanted:
        return ProgramState.IDLE
    return ProgramState.WORKING if busy else evidence.carried


def _asks(evidence: Evidence, lines: Sequence[str], quiet: float) -> bool:
    """Whether a question stays on the screen; half the usual wait is enough, as nothing is typed by it."""
    lasts = evidence.still >= quiet / 2 or evidence.last is ProgramState.WAITING
    return lasts and find_question(lines) is not None


def _judge_without_input(evidence: Evidence, quiet: float) -> ProgramState:
    """Judge a known program whose input line is covered: by a question, or by a screen nobody knows."""
    event = evidence.report.event if evidence.report is not None else ""
    if event == PERMISSION or _asks(evidence, evidence.shown.visible, quiet):
        return ProgramState.WAITING
    if event in BUSY:
        return ProgramState.WORKING
    worked = evidence.last is ProgramState.WORKING and evidence.still < quiet
    return ProgramState.WORKING if worked else ProgramState.UNKNOWN


def _judge_any_program(evidence: Evidence, quiet: float) -> ProgramState:
    """Judge a program that Scout does not know: only a question, or a prompt that stays, says something."""
    if _asks(evidence, evidence.shown.lines, quiet):
        return ProgramState.WAITING
    if evidence.still < quiet:
        return evidence.carried
    return ProgramState.IDLE if is_line_prompt(evidence.shown.lines) else ProgramState.UNKNOWN
