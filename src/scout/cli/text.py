"""Text for a person: colours only on a terminal, aligned fields and tables, ages."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TextIO

__all__ = ["age", "fields", "first_line", "indent", "note", "out", "paint", "seconds", "table", "visible"]

_CODES = {"bold": "1", "dim": "2", "red": "1;31", "green": "32", "yellow": "33", "cyan": "36"}


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """The text in a colour, on a terminal whose owner wants colours."""
    onto = stream or sys.stdout
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not onto.isatty():
        return text
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def out(text: str) -> None:
    """One line (or several) on standard output."""
    sys.stdout.write(f"{text}\n")


def note(text: str) -> None:
    """One line on standard error: beside the answer, never part of it."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def fields(title: str, values: Mapping[str, object]) -> str:
    """A title and its fields, one a line, values aligned."""
    width = max(map(len, values), default=0)
    lines = [f"  {name:<{width}}  {'-' if value is None else value}" for name, value in values.items()]
    return "\n".join([paint(title, "bold"), *lines] if title else lines)


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Aligned columns under their names; the last column is as long as it is."""
    names = [head.upper() for head in heads]
    cells = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]

    def line(row: list[str]) -> str:
        return "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()

    return "\n".join([paint(line(names), "dim"), *map(line, cells)])


def indent(text: str, by: str = "  ") -> str:
    """Every line a little to the right."""
    return "\n".join(f"{by}{line}".rstrip() for line in text.splitlines())


def first_line(text: str, length: int = 72) -> str:
    """The beginning of a text, for a list."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= length else f"{line[: length - 1]}…"


def visible(text: str) -> str:
    """Text from outside, without what would steer the terminal."""
    return "".join(sign if (sign >= " " and sign != "\x7f") or sign in "\n\t" else "�" for sign in text)


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
