"""Copies of the store: made while it is in use, checked before they replace anything."""

import contextlib
import itertools
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.model.problems.request import StoreDamaged, StoreFull
from scout.store.archive.files import build_refusal, get_folder
from scout.store.database import connect
from scout.store.disk import Fault, classify_error, copy_to, sync_folder
from scout.store.integrity.redactions import apply_redactions, read_redactions
from scout.store.migrate import CURRENT, read_version
from scout.store.retention.copies import put_archives, take_archives

_HALF, _WHOLE = ".restoring", ".restored"  # a copy in progress; a complete copy not yet in place


def backup(path: Path, target: Path) -> int:
    """Copy the store and its archives to a new file that only its owner can read; return its size.

    Never overwrites.
    """
    return _copy_checked(path, target, _add_archives)


def _copy_checked(path: Path, target: Path, add: Callable[[Path, Path], None]) -> int:
    """Copy a store, add what `add` adds, check the copy, and return its size."""
    try:
        _copy(path, target)
        add(path, target)
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
    return target.stat().st_size


def _copy(path: Path, target: Path) -> None:
    with contextlib.closing(connect(path, readonly=True)) as source:
        copy_to(source, target)


def _add_archives(path: Path, target: Path) -> None:
    """Add the archives to a copy. If a redaction replaced a file meanwhile, the copy is made again."""
    for last in (False, False, True):
        try:
            put_archives(get_folder(path), target)
            return
        except FileNotFoundError as gone:
            target.unlink()
            if last:
                raise build_refusal(Path(gone.filename), "it is missing") from None
        except BaseException:
            target.unlink()
            raise
        _copy(path, target)


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
    for ending in (_HALF, _WHOLE):
        shutil.rmtree(get_folder(path.with_name(f"{path.name}{ending}")), ignore_errors=True)


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


class Restored(NamedTuple):
    """What a restore did. `aside`: where the old store is. `redacted`: messages removed from the copy.

    `redacted` is None if the old store could not be read. `missing`: archive files that the copy lacks.
    """

    aside: Path | None
    redacted: int | None
    missing: tuple[str, ...] = ()


def restore(source: Path, path: Path, aside: Path) -> Restored:
    """Replace the store, which must not be open, by a checked copy without what was redacted since.

    Nothing is deleted: the old file and SQLite's files beside it move to `aside`.
    """
    check_file(source)
    finish_restore(path)
    fresh = path.with_name(f"{path.name}{_HALF}")
    _copy_checked(source, fresh, lambda _, __: None)
    missing = take_archives(fresh, get_folder(path))
    redacted = _redact_copy(path, fresh)
    _fold_log(path)
    whole = path.with_name(f"{path.name}{_WHOLE}")
    get_folder(fresh).rename(get_folder(whole))
    fresh.rename(whole)
    return Restored(_put_in_place(whole, path, aside), redacted, missing)


def _redact_copy(path: Path, copy: Path) -> int | None:
    """Remove from a copy what was redacted in the store; None if the store cannot be read."""
    if not path.exists():
        return 0
    try:
        redactions = read_redactions(path)
    except sqlite3.DatabaseError:
        return None
    return apply_redactions(redactions, copy)


def _put_in_place(whole: Path, path: Path, aside: Path) -> Path | None:
    """Move the old store aside, then the copy to its place; after an interruption it can be repeated."""
    sync_folder(path.parent)
    moved = None
    for ending in ("", "-wal", "-shm"):
        old = path.with_name(path.name + ending)
        if old.exists():
            moved = aside
            old.rename(aside.with_name(aside.name + ending))
    if get_folder(whole).is_dir():  # until it is in place, the other folder is that of the old store
        if get_folder(path).is_dir():
            get_folder(path).rename(get_folder(aside))
        get_folder(whole).rename(get_folder(path))
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
