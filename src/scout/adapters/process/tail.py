"""Reading a file that another process still writes."""

import codecs
import os
from collections import deque
from pathlib import Path

_CHUNK = 1 << 16
_LINES = 50  # of one chunk: a line is a sign of life, and the file keeps them all
_WIDTH = 2000


class FileTail:
    """Its lines as they come. A character or line that is split between two reads is kept whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._open = ""

    @property
    def has_grown(self) -> bool:
        """Whether there is something that was not read yet; asking costs no reading."""
        return self._path.stat().st_size > self._at

    def lines(self) -> list[str]:
        """Whole lines that are new, of at most one chunk; blank ones say nothing."""
        return self._split(self._decode(self._read()))

    def rest(self) -> list[str]:
        """What is left when nobody writes any more, an unfinished line included."""
        last: deque[str] = deque(maxlen=_LINES)
        while data := self._read():
            last += self._split(self._decode(data))
        last += self._split(self._decode(b"", final=True) + "\n")
        return list(last)

    def _read(self) -> bytes:
        with self._path.open("rb") as file:
            data = os.pread(file.fileno(), _CHUNK, self._at)
        self._at += len(data)
        return data

    def _split(self, text: str) -> list[str]:
        *whole, self._open = (self._open + text).split("\n")
        self._open = self._open[: _WIDTH + 1]
        return [line for line in (one.strip()[:_WIDTH] for one in whole) if line][-_LINES:]


def last_line(path: Path) -> str:
    """The last line that says something; empty when none does."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 4096))
        lines = file.read().decode("utf-8", "replace").split("\n")
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")
