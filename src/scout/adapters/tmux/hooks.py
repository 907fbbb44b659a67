"""What the program in a pane reports itself, through the hooks that `scout setup` installed in it.

A hook appends one line to the file that the environment of the pane names, also while no broker runs.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from scout.adapters.process.process_table import ProcessId, list_processes
from scout.adapters.transcript import get_object
from scout.base.record import Record

VARIABLE = "SCOUT_HOOK_FILE"
_NAME = "hooks.log"
_TAIL = 256 * 1024
_LONGEST = 1024 * 1024  # bytes of reports that are kept between turns
_MOST_PARENTS = 8


class HookReport(Record):
    """One event of the program. `native`: its id of the session. `number`: the place in the file."""

    event: str
    process: tuple[int, str]
    native: str = ""
    text: str = ""
    tool: str = ""
    number: int = 0


class HookFile:
    """The reports of one pane, oldest first."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _NAME

    def forget(self) -> None:
        """Remove the reports of a program that has ended."""
        self.path.unlink(missing_ok=True)

    def trim(self) -> None:
        """Empty a long file. Call it only between turns, when no report is expected."""
        with suppress(OSError):
            if self.path.stat().st_size > _LONGEST:
                os.truncate(self.path, 0)

    @property
    def size(self) -> int:
        """The place after the last report."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def read(self) -> list[HookReport]:
        """Return the last reports."""
        try:
            with self.path.open("rb") as file:
                begin = max(0, os.fstat(file.fileno()).st_size - _TAIL)
                file.seek(begin)
                data = file.read()
        except OSError:
            return []
        lines = data.split(b"\n")[1 if begin else 0 : -1]
        reports, place = list[HookReport](), begin
        for line in lines:
            place += len(line) + 1
            if (report := _read_report(line, place)) is not None:
                reports.append(report)
        return reports


def _read_report(line: bytes, number: int) -> HookReport | None:
    try:
        given: dict[str, Any] = get_object({"it": json.loads(line)}, "it")
        process = (int(given["pid"]), str(given["started"]))
    except (ValueError, KeyError, TypeError):
        return None
    words = {name: str(given.get(name) or "") for name in ("event", "native", "text", "tool")}
    return HookReport(process=process, number=number, **words)


def runs_below(process: tuple[int, str], pane: ProcessId) -> bool:
    """Whether a process was started by the program in a pane, or is that program."""
    table = list_processes()
    entry = table.get(process[0])
    if entry is None or entry.identity.started != process[1]:
        return False
    for _ in range(_MOST_PARENTS):
        if entry is None:
            return False
        if entry.identity.pid == pane.pid:
            return True
        entry = table.get(entry.parent)
    return False
