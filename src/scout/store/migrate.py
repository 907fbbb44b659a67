"""Migrations: numbered SQL files, each run once, forward only, in one transaction with its number."""

import sqlite3
from importlib import resources

from scout.base.refusal import BadRequest, Refused

__all__ = ["CURRENT", "migrate", "scripts", "version_of"]


def scripts() -> dict[int, str]:
    """The migrations by number."""
    folder = resources.files("scout.store") / "sql" / "schema"
    return {int(file.name[:4]): file.read_text() for file in folder.iterdir() if file.name.endswith(".sql")}


CURRENT = max(scripts())


def version_of(connection: sqlite3.Connection) -> int:
    """The number of the last migration this file has seen; 0 for a new one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> tuple[int, ...]:
    """Bring the file up to date; the numbers that were run. A file from the future is refused."""
    version = version_of(connection)
    if version > CURRENT:
        problem = f"the store has schema {version} and this Scout knows {CURRENT}: use the newer Scout"
        raise Refused(BadRequest(problem=problem))
    due = sorted(number for number in scripts() if number > version)
    for number in due:
        script = scripts()[number]
        connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
    return tuple(due)
