"""Reading what a program of another maker writes down, a JSON object a line: looked at, never trusted."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast

from scout.base.codec import decode
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.ports import Tailed, TailLine

Entry: TypeAlias = dict[str, Any]

_LINE = 1 << 20  # a longer one is left out
_MOST = 1 << 23  # of one reading
_HEAD = 1 << 18  # where a transcript says what it is
_TEXT = 4000
_TITLE = 80


# ------------------------------------------------------------------------------------------ a file


def head(path: Path) -> Iterator[Entry]:
    """The objects at its beginning; nothing when it cannot be read."""
    try:
        with path.open("rb") as file:
            for line in file.read(_HEAD).split(b"\n"):
                if (entry := _entry(line)) is not None:
                    yield entry
    except OSError:
        return


def single(path: Path) -> Entry | None:
    """The one object that a file holds; none when it is half written, too large or not for this user."""
    try:
        with path.open("rb") as file:
            return _entry(file.read(_HEAD))
    except OSError:
        return None


def read_tail(path: Path, after: int, limit: int, lines_of: Callable[[Entry], Iterable[TailLine]]) -> Tailed:
    """Some of a transcript: `after` is a place in the file; a negative one stands for its last lines.

    The lines of one object stay together, so there may be some more than `limit`. A line that is still being
    written is read the next time.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if after < 0:
            found, place = _last(file, size, limit, lines_of)
        else:
            found, place = _next(file, min(after, size), limit, lines_of)
    return Tailed(lines=tuple(found), next=place, source=str(path))


def _next(
    file: BinaryIO, place: int, limit: int, lines_of: Callable[[Entry], Iterable[TailLine]]
) -> tuple[list[TailLine], int]:
    found, end = list[TailLine](), place + _MOST
    file.seek(place)
    while len(found) < limit and place < end:
        line = _whole_line(file)
        if line is None:
            break
        place = file.tell()
        if (entry := _entry(line)) is not None:
            found += lines_of(entry)
    return found, place


def _last(
    file: BinaryIO, size: int, limit: int, lines_of: Callable[[Entry], Iterable[TailLine]]
) -> tuple[list[TailLine], int]:
    """The end of a file, however long the file is: read from further back until there is enough."""
    back = 1 << 16
    while True:
        start = max(0, size - back)
        found, place = list[TailLine](), start
        file.seek(start)
        if start:
            place += len(file.readline(_LINE))  # most likely half of one
        more, place = _next(file, place, size, lines_of)
        found += more
        if len(found) >= limit or not start or back >= _MOST:
            return (found[-limit:] if limit else []), place
        back *= 4


def _whole_line(file: BinaryIO) -> bytes | None:
    """The next one, empty when it is too long; none when its end is not written yet."""
    line = file.readline(_LINE)
    if line.endswith(b"\n"):
        return line
    while piece := file.readline(_LINE):
        if piece.endswith(b"\n"):
            return b""
    return None


def _entry(line: bytes) -> Entry | None:
    try:
        return decode(line, dict[str, Any]) if line.strip() else None
    except Refused:
        return None


# ---------------------------------------------------------------------------------------- a folder


class File(NamedTuple):
    """A file and when it was last written."""

    path: Path
    changed: Time


def listed(folder: Path) -> list[Path]:
    """What is in a folder, by name; nothing when it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries)
    except OSError:
        return []


def newest(paths: Iterable[Path], limit: int) -> list[File]:
    """The files that were written last, the newest first. What is no file is left out."""
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


def text(entry: Any, name: str) -> str:
    """A field that should be text; empty when it is not."""
    value = cast("Entry", entry).get(name) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else ""


def inner(entry: Any, name: str) -> Entry:
    """A field that should be an object; an empty one when it is not."""
    value = cast("Entry", entry).get(name) if isinstance(entry, dict) else None
    return cast("Entry", value) if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """A value that should be a list; an empty one when it is not."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def time(entry: Entry, name: str) -> Time | None:
    """A field that should be a time."""
    try:
        return Time.parse(entry.get(name))
    except Refused:
        return None


def clipped(words: str, most: int = _TEXT) -> str:
    """Text of a bearable length."""
    return words if len(words) <= most else words[: most - 1] + "…"


def titled(words: str) -> str:
    """What a session is about, on one line."""
    return clipped(" ".join(words.split()), _TITLE)
