"""What the runs of a session were told and wrote, one after another, as if it were one file.

Of each run the prompt, then its stderr; its stdout once it has ended, for that is the answer. So what was
read once stays where it was, and a place in it is a number of bytes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scout.adapters.process.process import Run, RunState
from scout.adapters.process.removed_runs import read_removed
from scout.adapters.transcript import clipped
from scout.ports import Tailed, TailLine

_MOST = 1 << 20  # bytes of one file in one reading


class _Part(NamedTuple):
    """One file; `whole`: nothing more is written to it."""

    path: Path
    who: str
    begin: int
    size: int
    whole: bool


def tail_of_runs(folder: Path, after: int, limit: int) -> Tailed:
    """Some of it; a negative place stands for the last lines."""
    removed = read_removed(folder)
    parts, missing = list(_parts(folder, removed.transcript)), TailLine(who="system", text=removed.message)
    if after < 0:
        return _last(folder, parts, limit, missing if removed.count else None, removed.transcript)
    found, place = list[TailLine](), after
    if place < removed.transcript:
        found, place = [missing], removed.transcript
    for part in parts:
        if len(found) >= limit:
            break
        if part.begin + part.size > place:
            lines, place = _lines(part, max(place, part.begin), limit - len(found))
            found += lines
    return Tailed(lines=tuple(found), next=place, source=str(folder))


def transcript_size(run: Path) -> int:
    """How many bytes of one run a reader of its session is shown."""
    return sum(part.size for part in _parts_of(run, 0))


def _last(folder: Path, parts: list[_Part], limit: int, missing: TailLine | None, end: int) -> Tailed:
    """The last lines; `missing` stands for those that were removed, which ended at `end`."""
    found = list[TailLine]()
    for part in reversed(parts):
        begin = part.begin if part.who == "user" else max(part.begin, part.begin + part.size - _MOST)
        lines, place = _lines(part, begin, part.size)
        found, end = [*lines, *found], max(end, place)
        if len(found) >= limit:
            break
    if missing is not None and len(found) < limit:
        found = [missing, *found]
    return Tailed(lines=tuple(found[-limit:]), next=end, source=str(folder))


def _parts(folder: Path, begin: int) -> Iterator[_Part]:
    for run in sorted(folder.iterdir()) if folder.is_dir() else ():
        for part in _parts_of(run, begin):
            yield part
            begin = part.begin + part.size


def _parts_of(folder: Path, begin: int) -> Iterator[_Part]:
    run = Run(folder)
    state = run.state()
    if state is RunState.ABSENT:
        return
    over = state is not RunState.RUNNING
    files = [
        (folder / "prompt", "user", True),
        (run.stderr, "system", over),
        (run.stdout, "assistant", over),
    ]
    for path, who, whole in files if over else files[:2]:
        size = path.stat().st_size if path.is_file() else 0
        yield _Part(path, who, begin, size, whole)
        begin += size


def _lines(part: _Part, place: int, limit: int) -> tuple[list[TailLine], int]:
    """Whole lines from this place on; a prompt is one thing."""
    if not part.size:
        return [], place
    with part.path.open("rb") as file:
        file.seek(place - part.begin)
        data = file.read(min(_MOST, part.begin + part.size - place))
    if part.who == "user":
        return [_line(part, data)], part.begin + part.size
    found = list[TailLine]()
    for line in data.splitlines(keepends=True):
        ended = line.endswith(b"\n") or (part.whole and place + len(line) == part.begin + part.size)
        if len(found) >= limit or not (ended or len(data) == _MOST):
            break
        place += len(line)
        if line.strip():
            found.append(_line(part, line))
    return found, place


def _line(part: _Part, data: bytes) -> TailLine:
    return TailLine(who=part.who, text=clipped(data.decode("utf-8", "replace").rstrip()))
