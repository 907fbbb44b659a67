"""Overwriting what is taken out of the file, for words that must not stay in it."""

import contextlib
import sqlite3
from collections.abc import Generator


@contextlib.contextmanager
def overwriting(connection: sqlite3.Connection) -> Generator[None]:
    """Freed bytes of the file are overwritten with zeros, not merely marked as free."""
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    try:
        yield
    finally:
        connection.execute("PRAGMA secure_delete = OFF").fetchall()
