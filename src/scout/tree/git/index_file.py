"""The index file of a work tree, read without git: submodules, and files whose changes git does not report.

A person, or a program, can tell git to assume that a file is unchanged (`update-index --assume-unchanged`,
`--skip-worktree`). `git status` then hides changes that a removal of the work tree would destroy.
"""

import functools
import os
import struct
from pathlib import Path
from typing import NamedTuple

_LARGEST = 256 << 20
_MODE, _SUBMODULE = 24, 0o160000
_ASSUMED, _EXTENDED, _SKIPPED, _LENGTH = 0x8000, 0x4000, 0x4000, 0x0FFF


class IndexFacts(NamedTuple):
    """Paths of submodules; paths assumed to be unchanged; paths outside of a sparse checkout."""

    submodules: tuple[bytes, ...] = ()
    assumed: tuple[bytes, ...] = ()
    skipped: tuple[bytes, ...] = ()


def read_index(folder: str, object_bytes: int) -> IndexFacts:
    """Read the index of a git folder, with the files that a split index refers to.

    A damaged index has no facts; git itself reports it.
    """
    found = IndexFacts()
    for path in (Path(folder, "index"), *Path(folder).glob("sharedindex.*")):
        try:
            seen = path.stat()
        except OSError:
            continue
        one = _read(str(path), object_bytes, (seen.st_ino, seen.st_size, seen.st_mtime_ns))
        found = IndexFacts(*(mine + more for mine, more in zip(found, one, strict=True)))
    return found


@functools.lru_cache(maxsize=4096)
def _read(path: str, object_bytes: int, seen: tuple[int, int, int]) -> IndexFacts:
    if seen[1] > _LARGEST:
        return IndexFacts()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(_LARGEST)
        return _parse(data, object_bytes)
    except (OSError, ValueError, struct.error, IndexError):
        return IndexFacts()


def _parse(data: bytes, object_bytes: int) -> IndexFacts:
    sign, version, count = struct.unpack_from(">4sII", data)
    if sign != b"DIRC":
        return IndexFacts()
    submodules, assumed, skipped = list[bytes](), list[bytes](), list[bytes]()
    at, name, flags_at = 12, b"", 40 + object_bytes
    modes, both = struct.Struct(">I").unpack_from, struct.Struct(">H").unpack_from
    for _ in range(count):
        (mode,), (flags,) = modes(data, at + _MODE), both(data, at + flags_at)
        more = both(data, at + flags_at + 2)[0] if flags & _EXTENDED else 0
        start = at + flags_at + (4 if flags & _EXTENDED else 2)
        marked = flags & _ASSUMED or more & _SKIPPED or mode == _SUBMODULE
        if version == 4:
            dropped, start = _read_varint(data, start)
            end = data.index(b"\0", start)
            name = name[: len(name) - dropped] + data[start:end]
            at = end + 1
        else:
            size = flags & _LENGTH
            end = start + size if size < _LENGTH else data.index(b"\0", start)
            name = data[start:end] if marked else b""
            at += (end - at + 8) & ~7
        if mode == _SUBMODULE:
            submodules.append(name)
        if flags & _ASSUMED:
            assumed.append(name)
        if more & _SKIPPED:
            skipped.append(name)
    return IndexFacts(tuple(submodules), tuple(assumed), tuple(skipped))


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number as git writes offsets: seven bits a byte, and one is added for each further byte."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
