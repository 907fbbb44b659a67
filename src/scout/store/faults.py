"""What an error says about the disk or the file: full, not writable, or damaged."""

import errno
import sqlite3
from enum import Enum, auto


class Fault(Enum):
    """A condition that ends writing until somebody changes it."""

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


def fault_of(error: Exception) -> Fault | None:
    """The fault behind an error of SQLite or of the system, if it is one of these."""
    if isinstance(error, OSError):
        return _SYSTEM.get(error.errno or 0)
    return _SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
