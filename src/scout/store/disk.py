"""The disk below the store: the meaning of its errors, and synced copies."""

import errno
import os
import sqlite3
from enum import Enum, auto
from pathlib import Path

_PAGES = 4096  # pages per step, so that the writer is never blocked for long


class Fault(Enum):
    """A condition that stops writing until a person changes it."""

    FULL = auto()
    READ_ONLY = auto()
    DAMAGED = auto()


_SQLITE = {
    sqlite3.SQLITE_FULL: Fault.FULL,
    sqlite3.SQLITE_READONLY: Fault.READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: Fault.READ_ONLY,
    sqlite3.SQLITE_CORRUPT: Fault.DAMAGED,
    sqlite3.SQLITE_NOTADB: Fault.DAMAGED,
}
_SYSTEM = {
    errno.ENOSPC: Fault.FULL,
    errno.EDQUOT: Fault.FULL,
    errno.EROFS: Fault.READ_ONLY,
    errno.EACCES: Fault.READ_ONLY,
    errno.EPERM: Fault.READ_ONLY,
}


def classify_error(error: Exception) -> Fault | None:
    """Return the fault behind an error of SQLite or of the system, if it is one of these."""
    if isinstance(error, OSError):
        return _SYSTEM.get(error.errno or 0)
    return _SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)


def copy_to(source: sqlite3.Connection, target: Path) -> int:
    """Copy an open store to a new file that only its owner can read, sync it, and return its size.

    Raises FileExistsError if the file exists.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    copy = sqlite3.connect(target)
    try:
        source.backup(copy, pages=_PAGES)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
    finally:
        copy.close()
    with target.open("rb") as file:
        os.fsync(file.fileno())
    sync_folder(target.parent)
    return target.stat().st_size


def sync_folder(folder: Path) -> None:
    """Sync a folder: a new file name is on disk only after its folder is synced."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
