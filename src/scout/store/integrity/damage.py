"""A report on a store that does not open: what is wrong, what is lost, and how to recover.

Nothing is written or deleted here: the damaged file may be the only copy.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from scout.base.record import Record
from scout.base.refusal import Refused, Remedy
from scout.model.problems.request import StoreDamaged
from scout.store.database import connect
from scout.store.integrity.backup import check_file
from scout.store.integrity.wal import LogState, is_readable, read_log
from scout.store.log import read_last_seq
from scout.store.migrate import CURRENT, read_version

_MAGIC = b"SQLite format 3\0"
_SHOWN = 20
_PACKED = 11  # the first schema with many events in a row of the log
_QUICK = 64 << 20  # maximum bytes checked at each start


class Copy(Record):
    """A healthy store beside the damaged one, and the number of its last event."""

    file: str
    last_seq: int
    modified: float


class DamageReport(Record):
    """The readable `events`, the last of them, and the newest number mentioned anywhere."""

    path: str
    size: int = 0
    version: int = 0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    events: int = 0
    last_seq: int = 0
    expected_seq: int = 0
    copies: tuple[Copy, ...] = ()
    remedies: tuple[Remedy, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether the store can be opened as it is."""
        return not self.problems

    @property
    def lost(self) -> int:
        """Return the number of events known to be unreadable; there may have been more."""
        return max(0, self.expected_seq - self.events)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the report as lines, the worst first."""
        if self.sound:
            return (f"{self.path} is sound: {self.events} events, schema {self.version}", *self.notes)
        kept = f"{self.events} events can be read, the newest is {self.last_seq}"
        gone = f"{self.lost} events are known to be lost" if self.lost else "no event is known to be lost"
        broken = (f"not readable: {', '.join(self.unreadable)}",) if self.unreadable else ()
        untouched = "nothing was changed or deleted"
        return (f"{self.path} is damaged", *self.problems, gone, kept, *broken, *self.notes, untouched)


def build_damage_refusal(path: Path, problem: str = "") -> Refused:
    """Return the refusal of a damaged store: what is wrong, what is lost, and the command to restore it."""
    report = examine(path)
    problems = report.problems or ((problem,) if problem else ())
    remedies = report.remedies or _add_copies(path, report).remedies
    return Refused(
        StoreDamaged(
            path=str(path), problems=problems, readable=report.events, lost=report.lost, remedies=remedies
        )
    )


def check_start(path: Path) -> None:
    """Refuse to open a damaged store, as far as a short check shows.

    The first bytes are always checked, the whole file only while that is quick: the time that a
    start takes must not grow with the history.
    """
    if not is_header_sound(path):
        raise build_damage_refusal(path)
    if not path.is_file() or not 0 < path.stat().st_size <= _QUICK:
        return
    try:
        with contextlib.closing(connect(path, readonly=True)) as store:
            found = [str(row[0]) for row in store.execute("PRAGMA quick_check(1)")]
    except sqlite3.OperationalError:
        return  # opening it reports the other reason
    except sqlite3.DatabaseError as error:
        raise build_damage_refusal(path, str(error)) from None
    if found != ["ok"]:
        raise build_damage_refusal(path, found[0])


def examine(path: Path) -> DamageReport:
    """Examine a store that may be damaged. This reads all of it, so only after opening has failed."""
    if not path.is_file():
        return _add_copies(path, DamageReport(path=str(path), problems=(f"there is no file {path}",)))
    log = read_log(path.with_name(f"{path.name}-wal"))
    report = DamageReport(
        path=str(path), size=path.stat().st_size, problems=_find_problems(log), notes=_build_notes(log)
    )
    if not report.size and log is None:
        return replace(report, notes=("it is empty: a new store",))
    if _read_head(path) != _MAGIC:
        problem = "it is not a database: its first bytes are not those of SQLite"
        return _add_copies(path, replace(report, problems=(problem, *report.problems)))
    try:
        with contextlib.closing(connect(path, readonly=True)) as store:
            report = _read_contents(store, report)
    except sqlite3.DatabaseError as error:
        report = replace(report, problems=(f"it cannot be opened: {error}", *report.problems))
    return report if report.sound else _add_copies(path, report)


def is_header_sound(path: Path) -> bool:
    """Whether the first bytes are sound; it keeps SQLite from silently dropping a damaged log.

    A new or empty file is sound. Deeper damage is found by `examine`, or when it is read.
    """
    whole = not path.is_file() or _read_head(path) in {_MAGIC, b""}
    return whole and is_readable(path.with_name(f"{path.name}-wal"))


def _read_head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_MAGIC))


def _find_problems(log: LogState | None) -> tuple[str, ...]:
    if log is not None and not log.readable:
        return (f"its write-ahead log of {log.size} bytes cannot be read: its changes are lost",)
    if log is not None and log.lost_commits > 1:
        return (f"its write-ahead log is damaged: the last {log.lost_commits} commits in it are lost",)
    return ()


def _build_notes(log: LogState | None) -> tuple[str, ...]:
    left = log.open + log.lost if log is not None and log.lost_commits <= 1 else 0
    what = "from a write that was never confirmed, unless the file was truncated"
    return (f"its write-ahead log ends in {left} pages without a commit: {what}",) if left else ()


# ------------------------------------------------------------------------------------- contents


def _read_contents(store: sqlite3.Connection, report: DamageReport) -> DamageReport:
    version = read_version(store)
    found = tuple(str(row[0]) for row in store.execute(f"PRAGMA integrity_check({_SHOWN})"))
    problems = () if found == ("ok",) else found
    if version > CURRENT:
        problems = (f"it has schema {version} and this Scout knows {CURRENT}: use the newer Scout", *problems)
    roots = store.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name"
    )
    names = [str(row[0]) for row in roots]
    readable = tuple(name for name in names if _is_readable(store, name))
    seqs = _find_readable_seqs(store) if "events" in names else set[int]()
    last = max(seqs, default=0)
    return replace(
        report,
        version=version,
        problems=(*report.problems, *problems),
        tables=readable,
        unreadable=tuple(name for name in names if name not in readable),
        events=len(seqs),
        last_seq=last,
        expected_seq=max([last, *_find_mentioned_seqs(store)]),
    )


def _is_readable(store: sqlite3.Connection, table: str) -> bool:
    try:
        store.execute(f'SELECT count(*) FROM "{table}" NOT INDEXED').fetchone()
    except sqlite3.DatabaseError:
        return False
    return True


def _find_readable_seqs(store: sqlite3.Connection) -> set[int]:
    """Return the readable event numbers, read from both ends."""
    seqs: set[int] = set()
    first = "first" if read_version(store) >= _PACKED else "seq"
    for order in ("ASC", "DESC"):
        with contextlib.suppress(sqlite3.DatabaseError):
            query = f"SELECT {first}, seq, length(data) FROM events NOT INDEXED ORDER BY seq {order}"
            for begin, last, _ in store.execute(query):
                seqs.update(range(begin, last + 1))
    with contextlib.suppress(sqlite3.DatabaseError):  # earlier schemas have no archives
        for begin, last in store.execute("SELECT first, last FROM archives WHERE kind = 'events'"):
            seqs.update(range(begin, last + 1))
    return seqs


_WITNESSES = (
    "SELECT max(seq) FROM events INDEXED BY events_by_source WHERE source > ''",  # before rows of many events
    "SELECT max(seq) FROM history_mark",
    "SELECT max(seq) FROM messages",
    "SELECT max(read_seq) FROM members",
    "SELECT seq FROM indexed",
)


def _find_mentioned_seqs(store: sqlite3.Connection) -> Iterator[int]:
    """Yield the newest event numbers that other parts of the file mention."""
    for query in _WITNESSES:
        with contextlib.suppress(sqlite3.DatabaseError):
            yield int(store.execute(query).fetchone()[0] or 0)


# --------------------------------------------------------------------------------------- copies


def _add_copies(path: Path, report: DamageReport) -> DamageReport:
    copies = tuple(sorted(_find_copies(path), key=lambda copy: (-copy.last_seq, -copy.modified)))
    expected = max([report.expected_seq, *(copy.last_seq for copy in copies)])
    remedies = tuple(_build_remedy(copy, expected) for copy in copies) or (_ELSEWHERE,)
    return replace(report, expected_seq=expected, copies=copies, remedies=remedies)


def _find_copies(path: Path) -> Iterator[Copy]:
    """Return the healthy stores in the same folder, among its newest files."""
    beside = [file for file in path.parent.glob("*") if file.is_file() and file != path]
    stores = [file for file in beside if _read_head(file) == _MAGIC]
    for file in sorted(stores, key=lambda file: -file.stat().st_mtime)[:_SHOWN]:
        with contextlib.suppress(Refused, sqlite3.DatabaseError):
            check_file(file)
            with contextlib.closing(connect(file, readonly=True)) as store:
                yield Copy(file=str(file), last_seq=read_last_seq(store), modified=file.stat().st_mtime)


def _build_remedy(copy: Copy, expected: int) -> Remedy:
    missing = expected - copy.last_seq
    why = f"a copy with {copy.last_seq} events; {missing or 'no'} later ones are known; the old file stays"
    return Remedy(operation="restore", parameters={"file": copy.file}, why=why)


_ELSEWHERE = Remedy(
    operation="restore",
    parameters={"file": "FILE"},
    why="there is no healthy copy beside it; name one if you have it elsewhere; the damaged file stays",
)
