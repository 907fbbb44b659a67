"""A disk that remembers: every write, cut and sync in order, and what a power cut would have left of them.

SQLite runs over a VFS of apsw that records what it asks of the operating system. `survivors` then builds
the files as they could be after a cut at any point: what a completed sync covers is there; of what came
after, each piece may be there, be missing, or be there in part.
"""

import random
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import apsw

from scout.store.database import connect

_SECTOR = 512


class Step(NamedTuple):
    """One thing that happened: a write, a cut of the file to `offset`, a completed sync, an answer.

    `given` is what lay on the disk before.
    """

    kind: str
    file: str = ""
    offset: int = 0
    data: bytes = b""
    number: int = 0


class Recorder(apsw.VFS):
    """The operating system's files, with a record of what was done to them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[Step] = []
        self._lock = threading.Lock()
        super().__init__(name, "")

    def note(self, step: Step) -> None:
        with self._lock:
            self.steps.append(step)

    def answered(self, number: int) -> None:
        """The caller was told that everything up to `number` is on disk."""
        self.note(Step("answer", number=number))

    def xOpen(self, name: Any, flags: list[int]) -> "_File":  # noqa: N802 (apsw's name)
        return _File(self, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, recorder: Recorder, name: Any, flags: list[int]) -> None:
        self._recorder = recorder
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._name = Path(path).name if path else ""
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 (apsw's name)
        cast("Any", super()).xWrite(data, offset)  # whose stub knows no type of the data
        self._recorder.note(Step("write", self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 (apsw's name)
        super().xTruncate(newsize)
        self._recorder.note(Step("cut", self._name, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802 (apsw's name)
        super().xSync(flags)
        self._recorder.note(Step("sync", self._name))


class _Cursor:
    """The rows of an apsw cursor, with the count that sqlite3's has."""

    def __init__(self, cursor: Any, rowcount: int) -> None:
        self._cursor = cursor
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)


class RecordedConnection:
    """What the store uses of a sqlite3.Connection, over a recorded file.

    A VFS written in Python has no shared memory, so the file is locked for this connection alone.
    """

    def __init__(self, path: Path, recorder: Recorder, synchronous: str = "FULL") -> None:
        connect(path).close()  # an empty store, as Scout makes it: from its first page on it is in WAL mode
        recorder.note(Step("given", path.name, 0, path.read_bytes()))
        self._connection: Any = apsw.Connection(str(path), vfs=recorder.name)
        for setting in (
            "locking_mode = EXCLUSIVE",
            "journal_mode = WAL",
            f"synchronous = {synchronous}",
            "wal_autocheckpoint = 0",
        ):
            self.execute(f"PRAGMA {setting}").fetchall()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> _Cursor:
        cursor = self._connection.execute(statement, tuple(values))
        return _Cursor(cursor, self._connection.changes())

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)

    def executescript(self, script: str) -> None:
        self._connection.execute(script)

    def commit(self) -> None:
        if self.in_transaction:
            self.execute("COMMIT")

    def rollback(self) -> None:
        if self.in_transaction:
            self.execute("ROLLBACK")

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    @property
    def total_changes(self) -> int:
        return self._connection.total_changes()

    def close(self) -> None:
        self._connection.close()


def find_answered(steps: Sequence[Step]) -> int:
    """The highest number that had been answered."""
    return max((step.number for step in steps if step.kind == "answer"), default=0)


def survivors(steps: Sequence[Step], chance: random.Random) -> dict[str, bytes]:
    """The files after a power cut that followed these steps."""
    synced = {step.file: index for index, step in enumerate(steps) if step.kind == "sync"}
    files: dict[str, bytearray] = {}
    for index, step in enumerate(steps):
        if step.kind in {"given", "write", "cut"}:
            content = files.setdefault(step.file, bytearray())
            if step.kind == "given" or index < synced.get(step.file, 0):
                _apply(content, step)
            else:
                _perhaps(content, step, chance)
    return {name: bytes(content) for name, content in files.items()}


def _apply(content: bytearray, step: Step) -> None:
    if step.kind == "cut":
        del content[step.offset :]
        return
    content.extend(bytes(max(0, step.offset - len(content))))
    content[step.offset : step.offset + len(step.data)] = step.data


def _perhaps(content: bytearray, step: Step, chance: random.Random) -> None:
    """Not covered by a sync: there, missing, or some of its sectors there."""
    fate = chance.choice(("there", "missing", "torn"))
    if fate == "there" or (fate == "torn" and step.kind == "cut"):
        _apply(content, step)
    elif fate == "torn":
        for start in range(0, len(step.data), _SECTOR):
            if chance.random() < 0.5:
                piece = step.data[start : start + _SECTOR]
                _apply(content, step._replace(offset=step.offset + start, data=piece))
