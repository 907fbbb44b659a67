"""Folders on disk: measured and removed the same way by every room that stores something."""

import os
import secrets
import shutil
from pathlib import Path
from typing import NamedTuple

_GOING = ".going-"
_BLOCK = 512  # bytes; the unit of st_blocks on every system


class Measured(NamedTuple):
    """The bytes that a folder takes on disk, and when a file in it was last written."""

    size: int
    written: float


def get_size_on_disk(found: os.stat_result) -> int:
    """Return the bytes that a file takes on disk, in whole blocks."""
    return max(found.st_size, found.st_blocks * _BLOCK)


def measure(folder: Path) -> Measured:
    """Measure all files below a folder; a file that disappears meanwhile does not count."""
    size, written = 0, 0.0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(parent, name))  # noqa: PTH118 (of many files, the quick way)
            except FileNotFoundError:
                continue
            size += get_size_on_disk(found)
            written = max(written, found.st_mtime)
    return Measured(size, written)


def remove_folder(folder: Path) -> None:
    """Remove a folder. Its name is free at once; files that could not be removed are removed next time."""
    for left in folder.parent.glob(f"{_GOING}*"):
        shutil.rmtree(left, ignore_errors=True)
    going = folder.with_name(_GOING + secrets.token_hex(4))
    try:
        folder.rename(going)
    except FileNotFoundError:
        return
    shutil.rmtree(going, ignore_errors=True)
