"""Folding SQLite's write-ahead log into the file, beside the writer and never in its way."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

_EVERY = 1.0
_LARGE = 256 * 1024 * 1024


def checkpoint(connection: sqlite3.Connection, path: Path, *, idle: bool) -> str:
    """Fold what can be folded now; when nothing is written, or too much has gathered, empty the log too."""
    log = path.with_name(f"{path.name}-wal")
    large = log.exists() and log.stat().st_size > _LARGE
    mode = "TRUNCATE" if idle or large else "PASSIVE"
    connection.execute(f"PRAGMA wal_checkpoint({mode})")
    return mode


class Checkpointer:
    """A thread that checkpoints each second; it tells idleness by the number of `commits`."""

    def __init__(
        self, open_connection: Callable[[], sqlite3.Connection], path: Path, commits: Callable[[], int]
    ) -> None:
        self._open = open_connection
        self._path = path
        self._commits = commits
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scout-checkpoint", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        connection = self._open()
        connection.execute("PRAGMA busy_timeout = 0")  # whoever is busy goes first
        seen = folded = self._commits()
        while not self._stop.wait(_EVERY):
            now = self._commits()
            if now != folded:
                mode = checkpoint(connection, self._path, idle=now == seen)
                folded = now if mode == "TRUNCATE" else folded
            seen = now
        connection.close()
