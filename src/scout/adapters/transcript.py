"""Reading the files of other programs, one JSON object per line. Nothing in them is trusted."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast

from scout.base.codec import decode
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.ports import ContextUse, Tailed, TailLine

Entry: TypeAlias = dict[str, Any]

_LINE = 1 << 20  # a longer line is skipped
_MOST = 1 << 23  # bytes in one read
_HEAD = 1 << 18  # the beginning of a transcript, which describes it
_TEXT = 4000
_TITLE = 80


# ------------------------------------------------------------------------------------------ a file


def read_head(path: Path) -> Iterator[Entry]:
    """Yield the objects at the beginning of a file; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            for line in file.read(_HEAD).split(b"\n"):
                if (entry := _parse_entry(line)) is not None:
                    yield entry
    except OSError:
        return


def read_object(path: Path) -> Entry | None:
    """Return the one object in a file; none if it is half written, too large or not readable."""
    try:
        with path.open("rb") as file:
            return _parse_entry(file.read(_HEAD))
    except OSError:
        return None


def read_tail(path: Path, after: int, limit: int, lines_of: Callable[[Entry], Iterable[TailLine]]) -> Tailed:
    """Read a part of a transcript. `after` is a position in the file; negative means the last lines.

    The lines of one object stay together, so there may be a few more than `limit`. A line that is still being
    written is read next time.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if after < 0:
            found, place = _read_last(file, size, limit, lines_of)
        else:
            found, place = _read_next(file, min(after, size), limit, lines_of)
    return Tailed(lines=tuple(found), next=place, source=str(path))


def read_context(path: Path, context_of: Callable[[Entry], ContextUse | None]) -> ContextUse | None:
    """Return what the end of a transcript tells about the context of its session; none if it does not."""
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _HEAD))
        lines = file.read(_HEAD).split(b"\n")
    entries = (_parse_entry(line) for line in reversed(lines))
    return next((use for entry in entries if entry and (use := context_of(entry))), None)


def _read_next(
    file: BinaryIO, place: int, limit: int, lines_of: Callable[[Entry], Iterable[TailLine]]
) -> tuple[list[TailLine], int]:
    found, end = list[TailLine](), place + _MOST
    file.seek(place)
    while len(found) < limit and place < end:
        line = _read_line(file)
        if line is None:
            break
        place = file.tell()
        if (entry := _parse_entry(line)) is not None:
            found += lines_of(entry)
    return found, place


def _read_last(
    file: BinaryIO, size: int, limit: int, lines_of: Callable[[Entry], Iterable[TailLine]]
) -> tuple[list[TailLine], int]:
    """Read the last lines: from further and further back until there are enough."""
    back = 1 << 16
    while True:
        start = max(0, size - back)
        found, place = list[TailLine](), start
        file.seek(start)
        if start:
            place += len(file.readline(_LINE))  # most likely part of a line
        more, place = _read_next(file, place, size, lines_of)
        found += more
        if len(found) >= limit or not start or back >= _MOST:
            return (found[-limit:] if limit else []), place
        back *= 4


def _read_line(file: BinaryIO) -> bytes | None:
    """Return the next line, empty if it is too long; none if its end is not written yet."""
    line = file.readline(_LINE)
    if line.endswith(b"\n"):
        return line
    while piece := file.readline(_LINE):
        if piece.endswith(b"\n"):
            return b""
    return None


def _parse_entry(line: bytes) -> Entry | None:
    try:
        return decode(line, dict[str, Any]) if line.strip() else None
    except Refused:
        return None


# ---------------------------------------------------------------------------------------- a folder


class File(NamedTuple):
    """A file and when it was last written."""

    path: Path
    changed: Time


def list_folder(folder: Path) -> list[Path]:
    """List a folder by name; empty if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries)
    except OSError:
        return []


def find_newest(paths: Iterable[Path], limit: int) -> list[File]:
    """Return the files that were written last, the newest first. Only regular files count."""
    found = list[File]()
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found.append(File(path, Time(max(0, status.st_mtime_ns // 1000))))
    found.sort(key=lambda file: file.changed, reverse=True)
    return found[:limit]


# --------------------------------------------------------------------------------------- an object


def get_text(entry: Any, name: str) -> str:
    """Return a field as text; empty if it is not text."""
    value = cast("Entry", entry).get(name) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else ""


def get_object(entry: Any, name: str) -> Entry:
    """Return a field as an object; an empty one if it is not."""
    value = cast("Entry", entry).get(name) if isinstance(entry, dict) else None
    return cast("Entry", value) if isinstance(value, dict) else {}


def to_list(value: Any) -> list[Any]:
    """Return a value as a list; an empty one if it is not."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def get_count(entry: Any, name: str) -> int:
    """Return a field as a number; 0 if it is none, or negative."""
    value = cast("Entry", entry).get(name) if isinstance(entry, dict) else None
    return value if isinstance(value, int) and value > 0 else 0


def get_time(entry: Entry, name: str) -> Time | None:
    """Return a field as a time; none if it is not."""
    try:
        return Time.parse(entry.get(name))
    except Refused:
        return None


def shorten(words: str, most: int = _TEXT) -> str:
    """Shorten a text."""
    return words if len(words) <= most else words[: most - 1] + "…"


def make_title(words: str) -> str:
    """Return the title of a session on one line."""
    return shorten(" ".join(words.split()), _TITLE)
