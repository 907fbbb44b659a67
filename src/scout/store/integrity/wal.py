"""Reading SQLite's write-ahead log without changing it: how much of it SQLite would use.

SQLite silently drops frames with a wrong checksum. After a power cut that is right: unsynced data was never
answered. After a truncation or a foreign write it hides a loss, so the frames are counted here.
https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

_HEADER, _FRAME = 32, 24
_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
_Sum = tuple[int, int]


class LogState(NamedTuple):
    """`used` pages end in a commit; `open` ones follow it without a commit; `lost` ones have wrong checksums.

    `readable` is false if the first bytes make SQLite ignore the whole log. A commit is synced before the
    next one begins, so a power cut spoils one at most: more `lost_commits` were answered, and are gone.
    """

    size: int
    readable: bool
    used: int = 0
    open: int = 0
    lost: int = 0
    lost_commits: int = 0


def read_log(path: Path) -> LogState | None:
    """Return the state of a write-ahead log; None if it is missing or empty."""
    if not path.is_file() or not path.stat().st_size:
        return None
    with path.open("rb") as file:
        return _read(file, path.stat().st_size)


def is_readable(path: Path) -> bool:
    """Whether SQLite would read this log; a missing or empty one counts as well."""
    if not path.is_file() or not path.stat().st_size:
        return True
    with path.open("rb") as file:
        return _parse_header(file.read(_HEADER)) is not None


class _Head(NamedTuple):
    order: str
    page: int
    salt: bytes
    total: _Sum


def _parse_header(header: bytes) -> _Head | None:
    order = _MAGIC.get(int.from_bytes(header[:4], "big"))
    if len(header) < _HEADER or order is None:
        return None
    _, _, page, _, salt, one, two = struct.unpack(">IIII8sII", header)
    total = _compute_checksum(order, (0, 0), header[:24])
    return _Head(order, page, salt, total) if total == (one, two) else None


def _read(file: BinaryIO, size: int) -> LogState:
    head = _parse_header(file.read(_HEADER))
    if head is None:
        return LogState(size, readable=False)
    order, page, salt, total = head
    state, sound, index = LogState(size, readable=True), True, 0
    while frame := file.read(_FRAME + page):
        if frame[8:16] != salt:
            break  # an earlier round: the log is overwritten from its start
        index += 1
        commit = any(frame[4:8])  # the file size after a commit, else zero
        total = _compute_checksum(order, total, frame[:8] + frame[_FRAME:]) if sound else total
        sound = sound and len(frame) == _FRAME + page and total == struct.unpack(">II", frame[16:24])
        if not sound:
            state = state._replace(lost=state.lost + 1, lost_commits=state.lost_commits + commit)
        elif commit:
            state = state._replace(used=index, open=0)
        else:
            state = state._replace(open=state.open + 1)
    return state


def _compute_checksum(order: str, start: _Sum, data: bytes) -> _Sum:
    one, two = start
    for first, second in struct.iter_unpack(f"{order}II", data[: len(data) // 8 * 8]):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
