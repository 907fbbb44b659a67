"""The requirement rows and the tests that show them, read from the sources; run as a program, a report.

A row is shown at a surface if one of its tests goes through what a person or an agent touches: the command
line, HTTP, MCP, the Python client, a real daemon or the real programs. Tests of single rooms come on top.
A row with `room_only` says why no surface can show it.

A test names its rows with `@pytest.mark.rows("R1.2-3")`, or beside each case of its table: the first parameter
is then called `row`, and the table is written in the same file.
"""

import ast
import functools
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["SURFACES", "is_surface", "marked_tests", "report", "rows", "tests_by_row"]

TESTS = Path(__file__).parents[1]
ROWS_FILE = Path(__file__).with_name("requirements.toml")
SURFACES = (
    "surface/", "stories/", "live/", "cli/", "api/", "mcp/", "a2a/", "client/", "daemon/", "browser/", "web/", "tui/",
)  # fmt: skip

_ROW = re.compile(r"R\d+(\.\w+)?-\d+")


@functools.cache
def rows() -> list[dict[str, Any]]:
    return tomllib.loads(ROWS_FILE.read_text())["row"]


def marked_tests() -> Iterator[tuple[str, list[str]]]:
    """Every test function with the rows it claims, read from the source."""
    for file in sorted(TESTS.rglob("test_*.py")):
        place = file.relative_to(TESTS).as_posix()
        body = ast.parse(file.read_text()).body
        yield from _marked_in(body, f"{place}::", _tables(body))


def _tables(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """The values that a file gives to names of its own."""
    found: dict[str, ast.expr] = {}
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {ast.unparse(target): node.value for target in targets}
    return found


def _marked_in(
    body: list[ast.stmt], prefix: str, tables: dict[str, ast.expr]
) -> Iterator[tuple[str, list[str]]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _marked_in(node.body, f"{prefix}{node.name}::", tables)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            claimed = [row for one in node.decorator_list for row in _claimed(one, tables)]
            yield f"{prefix}{node.name}", list(dict.fromkeys(claimed))


def _claimed(decorator: ast.expr, tables: dict[str, ast.expr]) -> list[str]:
    if not isinstance(decorator, ast.Call):
        return []
    mark = ast.unparse(decorator.func)
    if mark == "pytest.mark.rows":
        return [str(ast.literal_eval(argument)) for argument in decorator.args]
    if mark == "pytest.mark.parametrize" and _first_name(decorator.args[0]) == "row":
        table = decorator.args[1]
        return _rows_of(tables.get(ast.unparse(table), table))
    return []


def _first_name(names: ast.expr) -> str:
    first = names.elts[0] if isinstance(names, ast.Tuple) else names
    return str(first.value).partition(",")[0] if isinstance(first, ast.Constant) else ""


def _rows_of(table: ast.expr) -> list[str]:
    """The row ids that begin the cases of a table."""
    cases = table.elts if isinstance(table, ast.List | ast.Tuple) else []
    firsts = [case.elts[0] if isinstance(case, ast.Tuple) else case for case in cases]
    words = [str(one.value) for one in firsts if isinstance(one, ast.Constant)]
    return [word for word in words if _ROW.fullmatch(word)]


@functools.cache
def tests_by_row() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for test, claimed in marked_tests():
        for row in claimed:
            found.setdefault(row, []).append(test)
    return found


def is_surface(test: str) -> bool:
    return test.startswith(SURFACES)


def report(details: bool = False) -> list[str]:
    """How many rows of each section are shown at a surface, only in rooms, cannot be, or wait for their part."""
    sections = dict[str, list[dict[str, Any]]]()
    for row in rows():
        sections.setdefault(str(row["id"]).partition("-")[0].partition(".")[0], []).append(row)
    lines = [f"{'section':<8} {'rows':>5}" + "".join(f" {name:>9}" for name in _PLACES)]
    for section, found in sections.items():
        lines.append(_line(section, found))
        if details:
            lines += [f"  {row['id']}: {row['says']}" for row in found if _place(row) == "rooms"]
    return [*lines, _line("all", rows())]


_PLACES = ("surface", "rooms", "room only", "due")


def _place(row: dict[str, Any]) -> str:
    """Where a row is shown."""
    if any(map(is_surface, tests_by_row().get(row["id"], ()))):
        return "surface"
    return "due" if row.get("due") else "room only" if row.get("room_only") else "rooms"


def _line(name: str, found: list[dict[str, Any]]) -> str:
    places = [_place(row) for row in found]
    return f"{name:<8} {len(found):>5}" + "".join(f" {places.count(place):>9}" for place in _PLACES)


if __name__ == "__main__":
    print(*report("--details" in sys.argv), sep="\n")
