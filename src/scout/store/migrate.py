"""Migrations: numbered SQL files, each run once, forward only. Those that are due run in one transaction."""

import itertools
import sqlite3
from importlib import resources
from pathlib import Path

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.store.disk import copy_to, sync_folder


def load_scripts() -> dict[int, str]:
    """Return the migrations by number."""
    folder = resources.files("scout.store") / "sql" / "schema"
    return {int(file.name[:4]): file.read_text() for file in folder.iterdir() if file.name.endswith(".sql")}


CURRENT = max(load_scripts())
_VERSION = slice(60, 64)  # where a file of SQLite has its user_version


def read_version(connection: sqlite3.Connection) -> int:
    """Return the number of the last migration of this file; 0 for a new one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def read_schema(path: Path) -> int:
    """Return the number of the last migration of a file, as its first bytes tell; 0 if there is no store."""
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        head = file.read(_VERSION.stop)
    return int.from_bytes(head[_VERSION], "big")


def needs_upgrade(path: Path) -> bool:
    """Whether a file has an earlier schema. A migration reads all of it."""
    return 0 < read_schema(path) < CURRENT


def migrate(connection: sqlite3.Connection, *, keeps_copy: bool = True) -> tuple[int, ...]:
    """Bring the file up to date and return the numbers that ran. A newer file is refused.

    A store with content is first copied to `scout.db.before-N` beside it, unless it is a copy itself.
    """
    version = read_version(connection)
    if version > CURRENT:
        raise Refused(_build_refusal(connection, version))
    scripts = load_scripts()
    due = sorted(number for number in scripts if number > version)
    if due and version and keeps_copy:
        _keep_copy(connection, due[0])
    if due:
        steps = "\n".join(scripts[number] for number in due)
        connection.executescript(f"BEGIN IMMEDIATE;\n{steps}\nPRAGMA user_version = {due[-1]};\nCOMMIT;")
    return tuple(due)


def _get_path(connection: sqlite3.Connection) -> Path | None:
    """Return the file behind a connection; None for one in memory."""
    name = connection.execute("PRAGMA database_list").fetchone()[2]
    return Path(name) if name else None


def _keep_copy(connection: sqlite3.Connection, number: int) -> None:
    """Make a complete copy, or none; copies of earlier attempts stay."""
    path = _get_path(connection)
    if path is None:
        return
    draft = path.with_name(f"{path.name}.copying")
    draft.unlink(missing_ok=True)
    copy_to(connection, draft)
    draft.rename(_find_free_name(path, number))
    sync_folder(path.parent)


def _find_free_name(path: Path, number: int) -> Path:
    names = itertools.chain([""], (f".{again}" for again in itertools.count(2)))
    wanted = (path.with_name(f"{path.name}.before-{number}{ending}") for ending in names)
    return next(place for place in wanted if not place.exists())


def _build_refusal(connection: sqlite3.Connection, version: int) -> BadRequest:
    """Return the refusal of a newer store, with the copy made before its migration as the remedy."""
    path = _get_path(connection)
    older = path and path.with_name(f"{path.name}.before-{CURRENT + 1}")
    remedies: tuple[Remedy, ...] = ()
    if older is not None and older.is_file():
        why = "the copy made before the newer Scout changed the store; later changes are not in it"
        remedies = (Remedy(operation="restore", parameters={"file": str(older)}, why=why),)
    where = f" {path}" if path else ""
    problem = f"the store{where} has schema {version} and this Scout knows {CURRENT}: use the newer Scout"
    return BadRequest(problem=problem, remedies=remedies)
