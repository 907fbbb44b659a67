"""One SQLite file: one writer, many readers, and checkpoints beside them."""

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from scout.store.migrate import migrate
from scout.store.writer import Writer, build_refusal, describe_damage, fold

T = TypeVar("T")

_READERS = 4
_LOOK = 1.0  # seconds between two looks at the write-ahead log
_LONG = 64 * 1024  # pages of it, 256 MB
_CACHE = 64 * 1024  # KiB of the writer's page cache: the upper levels of every index fit


def connect(path: Path, *, readonly: bool = False) -> sqlite3.Connection:
    """Open a connection with Scout's settings: WAL, every commit synced, no automatic checkpoints."""
    mode = "ro" if readonly else "rwc"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA busy_timeout = 5000")
    if readonly:
        connection.execute("PRAGMA query_only = ON")
    else:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(f"PRAGMA cache_size = -{_CACHE}")
    return connection


class Database:
    """The open store. `write` runs a function of a unit of work, `read` one of a connection.

    `undone` is called after a rollback, so that nothing learned from those transactions is kept.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        _make_private(path)
        self._connection = connect(path)
        self.migrated = migrate(self._connection)
        self.undone: Callable[[], None] = lambda: None
        self._writer = Writer(self._connection, str(path), self._was_undone)
        self.write = self._writer.run
        writer = self._writer
        self._checkpointer = Checkpointer(lambda: connect(path), lambda: writer.commits, writer.fold_soon)
        self._readers = ThreadPoolExecutor(max_workers=_READERS, thread_name_prefix="scout-read")
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._glance: sqlite3.Connection | None = None
        self._damage = ""

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on a reader in a thread: it sees committed data and never waits for the writer."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._readers, lambda: work(self._get_reader()))
        except sqlite3.DatabaseError as error:
            refusal = build_refusal(error, str(self.path))
            self._damage = describe_damage(refusal) or self._damage
            raise refusal or error from None

    def glance(self) -> sqlite3.Connection:
        """Return a connection for short reads on the event loop; it sees committed data."""
        if self._glance is None:
            self._glance = connect(self.path, readonly=True)
            self._opened.append(self._glance)
        return self._glance

    @property
    def damage(self) -> str:
        """Return what SQLite said about a damaged file; empty while it is sound."""
        return self._damage or self._writer.damage

    @property
    def commits(self) -> int:
        """Return the number of commits so far, for measurements."""
        return self._writer.commits

    def trace(self, listener: Callable[[str], None] | None) -> None:
        """Call `listener` with every statement of the writer, for measurements; None ends it."""
        self._connection.set_trace_callback(listener)

    async def close(self) -> None:
        """Finish waiting writes, checkpoint, and close every connection."""
        await self._writer.close()
        self._checkpointer.close()
        self._readers.shutdown(wait=True)
        for connection in self._opened:
            connection.close()
        empty_log(self._connection)
        self._connection.close()

    def _was_undone(self) -> None:
        self.undone()

    def _get_reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self.path, readonly=True)
            self._local.connection = connection
            self._opened.append(connection)
        return connection


def _make_private(path: Path) -> None:
    """Make the folder and the file readable by their owner only, from the first byte."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    path.chmod(0o600)


def empty_log(connection: sqlite3.Connection) -> None:
    """Fold the whole write-ahead log and truncate its file, unless somebody reads or writes at this moment.

    Whoever writes waits while the log is truncated, so the fold comes first.
    """
    fold(connection)
    with contextlib.suppress(sqlite3.OperationalError):  # the disk is full: the next look tries again
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


class Checkpointer:
    """A thread that folds the write-ahead log every second, and truncates it when nothing is written.

    `commits` counts the commits of the writer. `fold_soon` asks the writer to fold a log that became long.
    """

    def __init__(
        self,
        open_connection: Callable[[], sqlite3.Connection],
        commits: Callable[[], int],
        fold_soon: Callable[[], None],
    ) -> None:
        self._open = open_connection
        self._commits = commits
        self._fold_soon = fold_soon
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scout-checkpoint", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        connection = self._open()
        connection.execute("PRAGMA busy_timeout = 0")  # a busy connection goes first
        seen = emptied = self._commits()
        while not self._stop.wait(_LOOK):
            now = self._commits()
            if now == seen and now != emptied:
                empty_log(connection)
                emptied = now
            elif now != seen and fold(connection) > _LONG:
                fold(connection)  # what was committed meanwhile, so that little is left to the writer
                self._fold_soon()
            seen = now
        connection.close()
