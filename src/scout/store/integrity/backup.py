"""Copies of the store: made while it is in use, checked before they replace anything."""

import contextlib
import itertools
import sqlite3
import time
from pathlib import Path

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.model.problems.request import StoreDamaged, StoreFull
from scout.store.database import connect
from scout.store.disk import Fault, classify_error, copy_to, sync_folder
from scout.store.migrate import CURRENT, read_version

_HALF, _WHOLE = ".restoring", ".restored"  # a copy in progress; a complete copy not yet in place


def backup(path: Path, target: Path) -> int:
    """Copy the store to a new file that only its owner can read; return its size. Never overwrites."""
    try:
        with contextlib.closing(connect(path, readonly=True)) as source:
            size = copy_to(source, target)
    except FileExistsError:
        raise Refused(BadRequest(problem=f"{target} already exists", field="target")) from None
    except sqlite3.DatabaseError as error:
        if classify_error(error) is Fault.FULL:
            target.unlink(missing_ok=True)
            raise Refused(StoreFull(path=str(target))) from None
        raise _build_refusal(path, target, (str(error),)) from None
    problems = _find_damage(target)
    if problems:
        raise _build_refusal(path, target, problems)
    return size


def _find_damage(path: Path) -> tuple[str, ...]:
    """Check the whole file and return what is wrong with it."""
    with contextlib.closing(connect(path, readonly=True)) as copy:
        try:
            found = tuple(str(row[0]) for row in copy.execute("PRAGMA integrity_check(10)"))
        except sqlite3.DatabaseError as error:
            return (str(error),)
    return () if found == ("ok",) else found


def _build_refusal(path: Path, copy: Path, problems: tuple[str, ...]) -> Refused:
    """Keep a damaged copy under another name, and return the refusal."""
    if copy.exists():
        aside = copy.with_name(f"{copy.name}.damaged")
        copy.rename(aside)
        problems = (*problems, f"the copy is damaged too: {aside}")
    verify = Remedy(operation="verify", parameters={}, why="see what can be read and what is lost")
    return Refused(StoreDamaged(path=str(path), problems=problems, remedies=(verify,)))


def finish_restore(path: Path) -> None:
    """Finish an interrupted restore: put its complete copy in place, or remove an incomplete one."""
    whole = path.with_name(f"{path.name}{_WHOLE}")
    if whole.exists():
        _put_in_place(whole, path, choose_free_name(path))
    for ending in ("", "-journal", "-wal", "-shm"):
        path.with_name(f"{path.name}{_HALF}{ending}").unlink(missing_ok=True)


def choose_free_name(path: Path) -> Path:
    """Return an unused name for the store that is moved aside."""
    names = (path.with_name(f"{path.name}.before-{second}") for second in itertools.count(int(time.time())))
    return next(name for name in names if not name.exists())


def check_file(path: Path) -> None:
    """Refuse a file that is no healthy store that this Scout can read, with the reason."""
    if not path.is_file():
        raise Refused(BadRequest(problem=f"there is no file {path}", field="path"))
    try:
        connection = connect(path, readonly=True)
        try:
            verdict = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(10)")]
            version = read_version(connection)
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise Refused(
            BadRequest(problem=f"{path} cannot be read as a store: {error}", field="path")
        ) from None
    if verdict != ["ok"]:
        raise Refused(BadRequest(problem=f"{path} is damaged: {'; '.join(verdict)}", field="path"))
    if not 0 < version <= CURRENT:
        problem = f"{path} has schema {version}; this Scout reads 1 to {CURRENT}"
        raise Refused(BadRequest(problem=problem, field="path"))


def restore(source: Path, path: Path, aside: Path) -> Path | None:
    """Replace the store, which must not be open, by a checked copy; return where the old one went.

    Nothing is deleted: the old file and SQLite's files beside it move to `aside`.
    """
    check_file(source)
    finish_restore(path)
    fresh = path.with_name(f"{path.name}{_HALF}")
    backup(source, fresh)
    _fold_log(path)
    whole = fresh.rename(path.with_name(f"{path.name}{_WHOLE}"))
    return _put_in_place(whole, path, aside)


def _put_in_place(whole: Path, path: Path, aside: Path) -> Path | None:
    """Move the old store aside, then the copy to its place; after an interruption it can be repeated."""
    sync_folder(path.parent)
    moved = None
    for ending in ("", "-wal", "-shm"):
        old = path.with_name(path.name + ending)
        if old.exists():
            moved = aside
            old.rename(aside.with_name(aside.name + ending))
    whole.rename(path)
    sync_folder(path.parent)
    return moved


def _fold_log(path: Path) -> None:
    """Fold the write-ahead log into the old file, so that the new one never meets it."""
    if path.exists():
        with contextlib.suppress(sqlite3.DatabaseError):
            connection = connect(path)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
