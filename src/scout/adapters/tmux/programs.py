"""Programs whose screen Scout can read: where they take input, what they show while they work, their keys."""

import re
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from scout.adapters.claude import flags as claude
from scout.adapters.codex import flags as codex
from scout.adapters.tmux.pane import Shown
from scout.adapters.tmux.screen import steady

_SHORT = 2  # columns of the mark before the input, and of the indent of its further lines


class KnownProgram(NamedTuple):
    """How one program draws its screen. `mark` begins its input line; an empty one has the cursor behind it.

    `working` matches a line that is there only while it works, above the input line; `footer` one below it.
    `said` begins a text of its model, `rest` matches what may follow the last one, `failed` a text that is no
    answer. `interrupt` ends its turn, `clear` empties its input line. `resume` are the words before a
    session's id. `environment`: the variables that its own settings use. `flags` keep it in its pane: Codex
    would start a server that outlives it and runs the hooks of all its windows.
    """

    mark: str
    working: re.Pattern[str]
    footer: re.Pattern[str]
    said: str
    rest: re.Pattern[str]
    failed: re.Pattern[str]
    resume: tuple[str, ...]
    environment: tuple[str, ...]
    flags: tuple[str, ...] = ()
    interrupt: str = "Escape"
    clear: str = "C-c"


PROGRAMS = {
    "claude": KnownProgram(
        mark="❯",
        working=re.compile(r"[·✢✳✶✻✽*] [^…]{1,120}…(?: .*)?"),
        footer=re.compile(r".*\besc to interrupt\b.*"),
        said="●",
        rest=re.compile(r"✻ .*|─{8}.*|\s{40,}\S.*"),
        failed=re.compile(r"API Error\b|Interrupted\b|⎿  Interrupted\b"),
        resume=("--resume",),
        environment=claude.ENVIRONMENT,
    ),
    "codex": KnownProgram(
        mark="›",
        working=re.compile(r"[•◦] .*\besc to interrupt\).*"),
        footer=re.compile(r".*\besc to interrupt\b.*"),
        said="•",
        rest=re.compile(r"\s*Worked for .*|─{8}.*"),
        failed=re.compile(r"■ "),
        resume=("resume",),
        environment=codex.ENVIRONMENT,
        flags=("--no-daemon",),
    ),
}


def find_known_name(command: tuple[str, ...]) -> str:
    """Return the known program that a command line names, else the name of its first word."""
    names = [Path(word).name for word in command]
    return next((name for name in names if name in PROGRAMS), names[0] if names else "")


def is_input_empty(program: KnownProgram, shown: Shown) -> bool | None:
    """Whether the input line is empty; None if the screen has none at the cursor, as under a dialog."""
    row = _find_input_row(program, shown)
    if row is None:
        return None
    return row == shown.cursor[1] and shown.cursor[0] == _SHORT


def is_working(program: KnownProgram, shown: Shown) -> bool:
    """Whether the screen shows that a turn is running."""
    row = _find_input_row(program, shown)
    split = len(shown.visible) if row is None else row
    above, below = shown.visible[:split], shown.visible[split + 1 :]
    return any(map(program.working.fullmatch, above)) or any(map(program.footer.fullmatch, below))


def read_draft(program: KnownProgram, shown: Shown) -> str:
    """Return the first line of what stands in the input line, empty if there is no such line."""
    row = _find_input_row(program, shown)
    return "" if row is None else shown.visible[row].removeprefix(program.mark).strip()


def read_answer(program: KnownProgram, shown: Shown) -> str:
    """Return the last text of the model that the screen shows after the last prompt."""
    lines = shown.lines
    inputs = [at for at, line in enumerate(lines) if line.startswith(program.mark)]
    begin, end = (inputs[-2] if len(inputs) > 1 else 0), (inputs[-1] if inputs else len(lines))
    starts = [at for at in range(begin, end) if lines[at].startswith(program.said)]
    if not starts:
        return "\n".join(lines[begin + 1 : end]).strip()
    first = lines[starts[-1]].removeprefix(program.said).lstrip()
    rest = takewhile(lambda line: not program.rest.fullmatch(line), lines[starts[-1] + 1 : end])
    return "\n".join([first, *(line.removeprefix(" " * _SHORT) for line in rest)]).strip()


def read_progress(program: KnownProgram | None, shown: Shown) -> str:
    """Return what the program shows that it does: the line that is there while it works, or the last one."""
    if program is None:
        return next((line.strip() for line in reversed(shown.lines) if line.strip()), "")
    signs = [line for line in shown.visible if program.working.fullmatch(line)]
    return signs[-1][1:].partition("(")[0].strip() if signs else ""


def read_body(program: KnownProgram | None, shown: Shown) -> Shown:
    """Return the screen without what changes by itself: a status line below the input may have a clock."""
    if program is None:
        return shown
    row = _find_input_row(program, shown)
    above = shown.visible if row is None else shown.visible[: row + 1]
    return Shown((), steady(above), shown.cursor)


def _find_input_row(program: KnownProgram, shown: Shown) -> int | None:
    """Return the row of the input line: the cursor's, or the first of the lines that hold a long input."""
    for row in range(min(shown.cursor[1], len(shown.visible) - 1), -1, -1):
        line = shown.visible[row]
        if line.startswith(program.mark):
            return row if not line[len(program.mark) :].lstrip()[:2].rstrip(".").isdecimal() else None
        if line.strip() and not line.startswith(" " * _SHORT):
            return None
    return None
