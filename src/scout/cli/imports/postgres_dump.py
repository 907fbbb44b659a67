"""The rows in a text that `pg_dump --data-only` wrote: its COPY blocks, table by table."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scout.cli.imports.source import read_lines

_COPY = re.compile(r'COPY (?:"?\w+"?\.)?"?(\w+)"? \((.*)\) FROM stdin;\s*')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_END = b"\\."
_NULL = "\\N"


class DumpRow(NamedTuple):
    """One row. `problem`: why it cannot be read."""

    table: str
    number: int
    fields: dict[str, str | None]
    problem: str = ""


def read_dump(path: Path) -> Iterator[DumpRow]:
    """Yield the rows of every COPY block."""
    table, columns = "", list[str]()
    for number, line in read_lines(path):
        data = line.rstrip(b"\r\n") if line is not None else None
        if data == _END:
            table = ""
        elif table:
            yield _read_row(table, columns, number, data)
        elif data is not None and data.startswith(b"INSERT INTO"):
            yield DumpRow("dump", number, {}, "it is an INSERT: write the dump without --inserts")
        elif data is not None and (found := _COPY.fullmatch(data.decode("utf-8", "replace"))):
            table, columns = found[1], [one.strip().strip('"') for one in found[2].split(",")]


def _read_row(table: str, columns: list[str], number: int, data: bytes | None) -> DumpRow:
    if data is None:
        return DumpRow(table, number, {}, "the line is too long")
    try:
        cells = data.decode().split("\t")
    except UnicodeDecodeError:
        return DumpRow(table, number, {}, "the line is not UTF-8 text")
    if len(cells) != len(columns):
        return DumpRow(table, number, {}, f"it has {len(cells)} columns instead of {len(columns)}")
    values = [None if cell == _NULL else _ESCAPE.sub(_unescape, cell) for cell in cells]
    return DumpRow(table, number, dict(zip(columns, values, strict=True)))


def _unescape(found: re.Match[str]) -> str:
    return _LETTERS.get(found[1], found[1])
