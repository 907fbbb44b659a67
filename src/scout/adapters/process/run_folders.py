"""The folders of runs: disk usage, removed runs, and their output as one transcript.

In the transcript of a session, each run has its prompt, then its stderr, then its stdout once the run has
ended. Lines therefore never move, and a position in the transcript is a number of bytes.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from scout.adapters.process.process_load import LoadMeter
from scout.adapters.process.process_table import ProcessId, is_alive
from scout.adapters.process.run import Run, RunState
from scout.adapters.transcript import shorten
from scout.base.codec import decode, encode
from scout.base.record import Record
from scout.base.refusal import Refused
from scout.model.session import ProcessLoad
from scout.policy.disk import StoredFolder
from scout.ports import Tailed, TailLine
from scout.ports.folders import Measured, measure, remove_folder

_TAIL = 16_384
_WIDTH = 500
_MOST = 1 << 20  # bytes of one file in one reading
_FILE = "removed-runs.json"


class RunFolders:
    """The runs of each session: folders below `sessions/<id>`."""

    def __init__(self, sessions: Path) -> None:
        self._sessions = sessions.absolute()
        self._meter = LoadMeter()
        self._measured: dict[Path, Measured] = {}  # of ended runs, which no longer grow

    def is_alive(self, pid: int, started: str) -> bool:
        return is_alive(ProcessId(pid, started))

    def measure_load(self, pids: Iterable[int]) -> dict[int, ProcessLoad]:
        return self._meter.measure(pids)

    def last_words(self, session_id: str, lines: int) -> tuple[str, ...]:
        folder = self._sessions / Path(session_id).name
        try:
            logs = [one / "stderr" for one in folder.iterdir()]
            newest = max((log for log in logs if log.is_file()), key=lambda log: log.stat().st_mtime)
            with newest.open("rb") as file:
                file.seek(max(0, newest.stat().st_size - _TAIL))
                text = file.read(_TAIL).decode("utf-8", "replace")
        except (OSError, ValueError):
            removed = read_removed(folder)  # the session has no folder, or no run in it
            return (removed.message,) if removed.count else ()
        said = [line.rstrip()[:_WIDTH] for line in text.split("\n")]
        return tuple([line for line in said if line.strip()][-lines:])

    def list_kept(self) -> tuple[str, ...]:
        runs = [one.parent for one in self._sessions.glob("*/*/pid")]
        numbered = (run for run in runs if run.name.isdecimal())  # panes and single turns have other names
        return tuple(sorted({run.parent.name for run in numbered if Run(run).state() is RunState.RUNNING}))

    def list_stored(self) -> tuple[StoredFolder, ...]:
        found = {
            run: self._describe_run(run) for run in self._sessions.glob("*/*") if (run / "pid").is_file()
        }
        self._measured = {run: known for run, known in self._measured.items() if run in found}
        return tuple(found.values())

    def _describe_run(self, run: Path) -> StoredFolder:
        session, name = run.parent.name, run.name
        if run not in self._measured and Run(run).state() is RunState.RUNNING:
            return StoredFolder(session_id=session, name=name, size=measure(run).size)
        if run not in self._measured:
            self._measured[run] = measure(run)
        size, written = self._measured[run]
        return StoredFolder(session_id=session, name=name, size=size, ended=written)

    def remove(self, folder: StoredFolder) -> None:
        session = self._sessions / Path(folder.session_id).name
        run = session / Path(folder.name).name
        note_removed(session, run.name, measure_transcript(run))
        remove_folder(run)


# -- what was removed -----------------------------------------------------------------------------------


class RemovedRuns(Record):
    """`count` runs that wrote `transcript` bytes; `last` is the highest number that one of them had."""

    count: int = 0
    transcript: int = 0
    last: int = 0

    @property
    def message(self) -> str:
        """The line shown in place of the removed output."""
        runs = "1 earlier run" if self.count == 1 else f"{self.count} earlier runs"
        return f"[The output of {runs} was removed to stay within limits.runOutputTotal.]"


def read_removed(session: Path) -> RemovedRuns:
    """Read the record of removed runs in the folder of a session."""
    try:
        return decode((session / _FILE).read_bytes(), RemovedRuns)
    except (OSError, Refused):
        return RemovedRuns()


def note_removed(session: Path, name: str, transcript: int) -> None:
    """Record that a run is removed. `transcript`: its bytes in the transcript of the session."""
    known = read_removed(session)
    number = int(name) if name.isdecimal() else 0
    after = RemovedRuns(
        count=known.count + 1, transcript=known.transcript + transcript, last=max(known.last, number)
    )
    draft = session / f".{_FILE}"
    draft.write_bytes(encode(after))
    draft.rename(session / _FILE)


# -- the transcript -------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """One file of the transcript; `whole`: nothing more is written to it."""

    path: Path
    who: str
    begin: int
    size: int
    whole: bool


def read_tail(folder: Path, after: int, limit: int) -> Tailed:
    """Read a part of the transcript; a negative `after` means the last lines."""
    removed = read_removed(folder)
    parts, missing = (
        list(_list_parts(folder, removed.transcript)),
        TailLine(who="system", text=removed.message),
    )
    if after < 0:
        return _read_last(folder, parts, limit, missing if removed.count else None, removed.transcript)
    found, place = list[TailLine](), after
    if place < removed.transcript:
        found, place = [missing], removed.transcript
    for part in parts:
        if len(found) >= limit:
            break
        if part.begin + part.size > place:
            lines, place = _read_lines(part, max(place, part.begin), limit - len(found))
            found += lines
    return Tailed(lines=tuple(found), next=place, source=str(folder))


def measure_transcript(run: Path) -> int:
    """Return the bytes of one run in the transcript of its session."""
    return sum(part.size for part in _list_run_parts(run, 0))


def _read_last(folder: Path, parts: list[_Part], limit: int, missing: TailLine | None, end: int) -> Tailed:
    """Read the last lines. `missing` replaces the removed ones, which ended at `end`."""
    found = list[TailLine]()
    for part in reversed(parts):
        begin = part.begin if part.who == "user" else max(part.begin, part.begin + part.size - _MOST)
        lines, place = _read_lines(part, begin, part.size)
        found, end = [*lines, *found], max(end, place)
        if len(found) >= limit:
            break
    if missing is not None and len(found) < limit:
        found = [missing, *found]
    return Tailed(lines=tuple(found[-limit:]), next=end, source=str(folder))


def _list_parts(folder: Path, begin: int) -> Iterator[_Part]:
    for run in sorted(folder.iterdir()) if folder.is_dir() else ():
        for part in _list_run_parts(run, begin):
            yield part
            begin = part.begin + part.size


def _list_run_parts(folder: Path, begin: int) -> Iterator[_Part]:
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


def _read_lines(part: _Part, place: int, limit: int) -> tuple[list[TailLine], int]:
    """Read complete lines from a position on; a prompt is one entry."""
    if not part.size:
        return [], place
    with part.path.open("rb") as file:
        file.seek(place - part.begin)
        data = file.read(min(_MOST, part.begin + part.size - place))
    if part.who == "user":
        return [_build_line(part, data)], part.begin + part.size
    found = list[TailLine]()
    for line in data.splitlines(keepends=True):
        ended = line.endswith(b"\n") or (part.whole and place + len(line) == part.begin + part.size)
        if len(found) >= limit or not (ended or len(data) == _MOST):
            break
        place += len(line)
        if line.strip():
            found.append(_build_line(part, line))
    return found, place


def _build_line(part: _Part, data: bytes) -> TailLine:
    return TailLine(who=part.who, text=shorten(data.decode("utf-8", "replace").rstrip()))
