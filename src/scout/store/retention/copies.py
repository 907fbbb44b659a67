"""Archives in copies of the store: a backup is one file, so it has the files of the archive as rows."""

import contextlib
import shutil
import sqlite3
from pathlib import Path

from scout.model.retention.archive import Archive, ArchiveKind
from scout.store.archive.files import build_refusal, check_archive, get_folder
from scout.store.database import connect
from scout.store.disk import sync_folder
from scout.store.migrate import read_version
from scout.store.retention.draft import list_kept

_FIRST = 17  # the first schema with archives
_PIECE = 16 << 20
_TABLE = (
    "CREATE TABLE archive_files (name TEXT NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL,"
    " PRIMARY KEY (name, part)) STRICT, WITHOUT ROWID"
)


def put_archives(folder: Path, copy: Path) -> None:
    """Add the files that a copy needs from an archive folder; raises FileNotFoundError if one is gone."""
    with contextlib.closing(sqlite3.connect(copy)) as store:
        archives = _list_archives(store)
        if not archives:
            return
        store.execute(_TABLE)
        for one in archives:
            _put_file(store, folder / one.file, one.sha256)
        store.commit()


def _list_archives(store: sqlite3.Connection) -> list[Archive]:
    if read_version(store) < _FIRST:
        return []
    return [*list_kept(store), *list_kept(store, ArchiveKind.SNAPSHOT)]


def _put_file(store: sqlite3.Connection, path: Path, sha256: str) -> None:
    if path.exists() and (problem := check_archive(path, sha256)) is not None:
        raise build_refusal(path, problem)
    with path.open("rb") as file:
        for part, data in enumerate(iter(lambda: file.read(_PIECE), b"")):
            store.execute("INSERT INTO archive_files VALUES (?, ?, ?)", (path.name, part, data))


def take_archives(copy: Path, others: Path | None = None) -> tuple[str, ...]:
    """Move the files out of a copy into its archive folder; return the names of those that are missing.

    `others`: a folder that may have them, for a copy without files.
    """
    folder = get_folder(copy)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    with contextlib.closing(connect(copy)) as store:
        archives = _list_archives(store)
        inside = bool(store.execute("SELECT 1 FROM sqlite_master WHERE name = 'archive_files'").fetchone())
        for one in archives:
            _take_file(store, one, folder, inside=inside, others=others)
        if inside:
            store.execute("DROP TABLE archive_files")
        store.execute("PRAGMA journal_mode = DELETE").fetchall()
    sync_folder(folder)
    return tuple(one.file for one in archives if check_archive(folder / one.file, one.sha256) is not None)


def _take_file(
    store: sqlite3.Connection, archive: Archive, folder: Path, *, inside: bool, others: Path | None
) -> None:
    target = folder / archive.file
    if not inside:
        if others is not None and (others / archive.file).is_file():
            shutil.copy2(others / archive.file, target)
        return
    query = "SELECT data FROM archive_files WHERE name = ? ORDER BY part"
    with target.open("xb") as file:
        target.chmod(0o600)
        for (data,) in store.execute(query, (archive.file,)):
            file.write(data)


def return_archives(copy: Path) -> None:
    """Put the files back into a copy and remove its folder."""
    put_archives(get_folder(copy), copy)
    shutil.rmtree(get_folder(copy), ignore_errors=True)
