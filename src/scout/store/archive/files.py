"""Files of the archive folder: written whole or not at all, and checked whenever they are read.

A file with rows of the log is gzip text with one row in a line, so that common tools can read it. Its folder
is named after the file of the store: `scout.db` has `scout.db.archive`.
"""

import gzip
import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import msgspec

from scout.base.record import Record
from scout.base.refusal import Refused, Remedy
from scout.model.problems.request import StoreDamaged
from scout.store.disk import sync_folder

_ENDING = ".archive"
_HALF = ".part"
_PIECE = 1 << 20
_LEVEL = 6


class StoredRow(NamedTuple):
    """A row of the log as it is stored."""

    seq: int
    first: int
    data: bytes


class WrittenFile(Record):
    """A complete file: its name, checksum and size."""

    file: str
    sha256: str
    size: int


class _Line(Record):
    seq: int
    first: int
    events: msgspec.Raw


def get_folder(path: Path) -> Path:
    """Return the archive folder of a store."""
    return path.with_name(f"{path.name}{_ENDING}")


def find_folder(connection: sqlite3.Connection) -> Path:
    """Return the archive folder of the store behind a connection."""
    return get_folder(Path(connection.execute("PRAGMA database_list").fetchone()[2]))


# -- writing -----------------------------------------------------------------------------------------


def write_file(folder: Path, name: str, write: Callable[[BinaryIO], None]) -> WrittenFile:
    """Write a new compressed file, sync it, and return what it is; only its owner can read it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    draft = folder / f"{name}{_HALF}"
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as raw:
        with gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed:
            write(cast("BinaryIO", packed))
        raw.flush()
        os.fsync(raw.fileno())
    found = WrittenFile(file=name, sha256=compute_checksum(draft), size=draft.stat().st_size)
    draft.rename(folder / name)
    sync_folder(folder)
    sync_folder(folder.parent)
    return found


def write_rows(folder: Path, name: str, rows: Iterable[StoredRow]) -> WrittenFile:
    """Write rows of the log, one in a line."""

    def write(file: BinaryIO) -> None:
        file.writelines(b'{"seq":%d,"first":%d,"events":%b}\n' % row for row in rows)

    return write_file(folder, name, write)


def pack_file(folder: Path, name: str, source: Path) -> WrittenFile:
    """Write a compressed copy of a file."""

    def write(file: BinaryIO) -> None:
        with source.open("rb") as raw:
            shutil.copyfileobj(raw, file, _PIECE)

    return write_file(folder, name, write)


def compute_checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -- reading -----------------------------------------------------------------------------------------


def check_archive(path: Path, sha256: str) -> str | None:
    """Return what is wrong with a file; None if it is as it was written."""
    try:
        found = compute_checksum(path)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return None if found == sha256 else f"{path} is damaged: its checksum is not the recorded one"


def read_rows(path: Path, sha256: str) -> list[StoredRow]:
    """Return the rows of a file; refuse one that is not as it was written."""
    raw = path.read_bytes()
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise build_refusal(path, "its checksum is not the recorded one")
    lines = gzip.decompress(raw).splitlines()
    return [StoredRow(one.seq, one.first, bytes(one.events)) for one in map(_DECODE, lines)]


_DECODE = msgspec.json.Decoder(_Line).decode


def unpack_file(path: Path, sha256: str, target: Path) -> None:
    """Write the content of a compressed file to a new one; refuse one that is not as it was written."""
    if (problem := check_archive(path, sha256)) is not None:
        raise build_refusal(path, problem)
    with gzip.open(path, "rb") as packed, target.open("xb") as file:
        shutil.copyfileobj(packed, file, _PIECE)


def build_refusal(path: Path, problem: str) -> Refused:
    """Return the refusal of a damaged or missing file of the archive."""
    verify = Remedy(operation="verify", parameters={}, why="see what can be read and what is lost")
    return Refused(StoreDamaged(path=str(path), problems=(problem,), remedies=(verify,)))


def remove_others(folder: Path, kept: Iterable[str]) -> Iterator[str]:
    """Delete the files that no record names: drafts, and files that were replaced or purged."""
    names = set(kept)
    for file in sorted(folder.glob("*")) if folder.is_dir() else ():
        if file.name not in names:
            file.unlink(missing_ok=True)
            yield file.name
