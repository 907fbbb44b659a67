"""Copying an open store to a file of its own, without holding up its writer."""

import os
import sqlite3
from pathlib import Path

_PAGES = 4096  # copied at a time, so that the writer is never held up for long


def copy_to(source: sqlite3.Connection, target: Path) -> int:
    """Copy to a new file, its owner's alone; its size, once it is on disk. FileExistsError if taken."""
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
    """A new name is on disk only when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
