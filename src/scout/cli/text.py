"""Text for a person: the one place through which everything is printed.

What came from agents, files or programs must never drive the terminal, nor look like a line of Scout's own.
So every control character, escape, bidirectional override and zero-width character is made visible here, on
terminals and pipes alike. Scout's own colours and line ends carry a mark that nobody outside can know.
"""

from __future__ import annotations

import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TextIO

__all__ = [
    "age",
    "clean",
    "erase_status",
    "fields",
    "first_line",
    "indent",
    "join_lines",
    "note",
    "note_text",
    "out",
    "out_text",
    "paint",
    "seconds",
    "show_status",
    "table",
    "width",
]

# -- what is made visible -----------------------------------------------------------------------------

_EMOJI = "[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]"

# Controls, separators of lines, what steers the direction, what has no width, and lone surrogates. A joiner
# inside one emoji is the one exception: it changes nothing but the picture.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    f"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]|(?<!{_EMOJI})\u200d|\u200d(?!{_EMOJI})"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def clean(text: str) -> str:
    """The text on one line, with everything visible that would steer a terminal or hide in it."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    """One character as source code would spell it; DEL as JSON spells it, so that JSON stays exact."""
    sign, number = found[0], ord(found[0])
    if number < 0x7F:
        return _NAMED.get(sign) or f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


# -- Scout's own colours and line ends ----------------------------------------------------------------

_CODES = {"bold": "1", "dim": "2", "red": "1;31", "green": "32", "yellow": "33", "cyan": "36"}
_MARK = f"\x1b{os.urandom(8).hex()}"
_OURS = re.compile(f"{_MARK}([0-9;]+m|n)")


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """The text in a colour, on a terminal whose owner wants colours. Only `out` and its kin can print it."""
    onto = stream or sys.stdout
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not onto.isatty():
        return text
    return f"{_MARK}{_CODES[style]}m{text}{_MARK}0m"


def join_lines(lines: Iterable[str]) -> str:
    """Several lines for one `out` or `note`; a line end inside one of them does not end it."""
    return f"{_MARK}n".join(lines)


def _render(text: str) -> str:
    """Foreign text made visible, Scout's own marks made real."""
    pieces = _OURS.split(text)
    pieces[::2] = map(clean, pieces[::2])
    pieces[1::2] = ("\n" if code == "n" else f"\x1b[{code}" for code in pieces[1::2])
    return "".join(pieces)


# -- printing -----------------------------------------------------------------------------------------


def out(text: str) -> None:
    """One line on standard output, or several that `join_lines`, `table`, `fields` or `indent` made."""
    erase_status()
    sys.stdout.write(f"{_render(text)}\n")


def note(text: str) -> None:
    """The same on standard error: beside the answer, never part of it."""
    erase_status()
    sys.stdout.flush()
    sys.stderr.write(f"{_render(text)}\n")
    sys.stderr.flush()


def out_text(text: str) -> None:
    """A text whose own line ends and tabs are kept: an answer, a file, a help page."""
    out(_keep_lines(text))


def note_text(text: str) -> None:
    """The same on standard error."""
    note(_keep_lines(text))


def _keep_lines(text: str) -> str:
    return join_lines(_lines_of(text))


def _lines_of(text: str) -> list[str]:
    return [line.expandtabs() for line in text.replace("\r\n", "\n").split("\n")]


_status: list[str] = []  # the line that is shown while a person waits, if one is


def show_status(text: str) -> None:
    """Rewrite the one line that says how it is while a person waits."""
    _status[:] = [_render(text)]
    sys.stderr.write(f"\r\x1b[K{_status[0]}")
    sys.stderr.flush()


def erase_status() -> None:
    """Leave no half line behind."""
    if _status:
        _status.clear()
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


# -- shapes -------------------------------------------------------------------------------------------


def width(text: str) -> int:
    """How many columns a terminal gives to the text, once it is clean and without its colours."""
    shown = clean(_OURS.sub("", text))
    if shown.isascii():
        return len(shown)
    from unicodedata import combining, east_asian_width

    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in shown if not combining(sign))


def _fill(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def fields(title: str, values: Mapping[str, object]) -> str:
    """A title and its fields, one a line, values aligned; a value of several lines stays in its column."""
    wide = max(map(len, values), default=0)
    lines = [paint(title, "bold")] if title else []
    for name, value in values.items():
        first, *rest = _lines_of("-" if value is None else str(value).rstrip("\n"))
        lines += [f"  {name:<{wide}}  {first}", *(f"  {'':<{wide}}  {line}" for line in rest)]
    return join_lines(lines)


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Aligned columns under their names; the last column is as long as it is."""
    names = [head.upper() for head in heads]
    cells = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(names, *cells, strict=True)]

    def line(row: list[str]) -> str:
        return "  ".join(map(_fill, row, widths)).rstrip()

    return join_lines([paint(line(names), "dim"), *map(line, cells)])


def indent(text: str, by: str = "  ") -> str:
    """Every line of a text a little to the right."""
    return join_lines(f"{by}{line}".rstrip() for line in _lines_of(text.rstrip("\n")))


def first_line(text: str, length: int = 72) -> str:
    """The beginning of a text, for a list."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= length else f"{line[: length - 1]}…"


def seconds(value: float) -> str:
    """A duration in one short word."""
    if value < 60:
        return f"{int(value)}s"
    if value < 3600:
        return f"{int(value // 60)}m{int(value % 60):02d}s"
    if value < 86400:
        return f"{int(value // 3600)}h{int(value % 3600 // 60):02d}m"
    return f"{int(value // 86400)}d"


def age(moment: object, now: float | None = None) -> str:
    """How long ago an RFC 3339 time was."""
    import time
    from datetime import datetime

    if not isinstance(moment, str):
        return "-"
    passed = (time.time() if now is None else now) - datetime.fromisoformat(moment).timestamp()
    return f"{seconds(passed)} ago" if passed >= 1 else "now"
