"""Reading an SQLite file of another system, which is never changed."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote


def read_foreign_rows(path: Path, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, none if it is missing; raise a ValueError if the file cannot be read."""
    # A file without a write-ahead log is opened as immutable, so that SQLite puts no files beside it.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is None:
                return
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                yield dict(row)
    except sqlite3.Error as error:
        raise ValueError(f"it is no readable SQLite file: {error}") from None
