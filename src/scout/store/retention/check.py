"""Checks of the archive: every file is there, has its checksum, and follows the one before it."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from scout.model.retention.archive import Archive, ArchiveKind, ArchiveState
from scout.store.archive.files import check_archive, find_folder
from scout.store.database import connect
from scout.store.retention.draft import list_kept, measure_reach
from scout.store.table import get_table


def check_archives(store: sqlite3.Connection) -> Iterator[str]:
    """Yield what is wrong with the archives of a store."""
    purged = measure_reach(store).purged
    expected = purged.last + 1 if purged is not None else 1
    for archive in list_kept(store):
        if archive.first != expected:
            yield f"the archive lacks the events {expected} to {archive.first - 1}"
        expected = archive.last + 1
        yield from _check_file(store, archive)
    for archive in list_kept(store, ArchiveKind.SNAPSHOT):
        yield from _check_file(store, archive)


def _check_file(store: sqlite3.Connection, archive: Archive) -> Iterator[str]:
    folder = find_folder(store)
    problem = check_archive(folder / archive.file, archive.sha256)
    if problem is None:
        return
    current = _read_again(store, archive)  # it may have been rewritten or purged meanwhile
    if current == archive or current.state is ArchiveState.KEPT:
        problem = check_archive(folder / current.file, current.sha256)
        if problem is not None:
            yield f"{problem}: events {archive.first} to {archive.last}"


def _read_again(store: sqlite3.Connection, archive: Archive) -> Archive:
    path = Path(store.execute("PRAGMA database_list").fetchone()[2])
    with contextlib.closing(connect(path, readonly=True)) as other:
        return get_table(Archive).get(other, archive.id)
