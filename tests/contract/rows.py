"""The requirement rows and the tests that show them, read from the sources; run as a program, a report.

A row is shown at a surface if one of its tests goes through what a person or an agent touches: the command
line, HTTP, MCP, the Python client, a real daemon or the real programs. Tests of single rooms come on top.
"""

import ast
import functools
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["SURFACES", "is_surface", "marked_tests", "report", "rows", "tests_by_row"]

TESTS = Path(__file__).parents[1]
ROWS_FILE = Path(__file__).with_name("requirements.toml")
SURFACES = ("stories/", "live/", "cli/", "api/", "mcp/", "client/", "daemon/", "browser/")


@functools.cache
def rows() -> list[dict[str, Any]]:
    return tomllib.loads(ROWS_FILE.read_text())["row"]


def marked_tests() -> Iterator[tuple[str, list[str]]]:
    """Every test function with the rows it claims, read from the source."""
    for file in sorted(TESTS.rglob("test_*.py")):
        place = file.relative_to(TESTS).as_posix()
        yield from _marked_in(ast.parse(file.read_text()).body, f"{place}::")


def _marked_in(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, list[str]]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _marked_in(node.body, f"{prefix}{node.name}::")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield f"{prefix}{node.name}", [row for one in node.decorator_list for row in _claimed(one)]


def _claimed(decorator: ast.expr) -> list[str]:
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.rows":
        return [str(ast.literal_eval(argument)) for argument in decorator.args]
    return []


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
    """How many rows of each section are shown at a surface, only in single rooms, or wait for their part."""
    claims, sections = tests_by_row(), dict[str, list[dict[str, Any]]]()
    for row in rows():
        sections.setdefault(str(row["id"]).partition("-")[0].partition(".")[0], []).append(row)
    lines = [f"{'section':<8} {'rows':>5} {'surface':>8} {'rooms':>6} {'due':>4}"]
    total = [0, 0, 0, 0]
    for section, found in sections.items():
        at_surface = [row for row in found if any(map(is_surface, claims.get(row["id"], ())))]
        due = [row for row in found if row.get("due")]
        counts = [len(found), len(at_surface), len(found) - len(at_surface) - len(due), len(due)]
        total = [one + other for one, other in zip(total, counts, strict=True)]
        lines.append(_line(section, counts))
        if details:
            shown = {row["id"] for row in (*at_surface, *due)}
            lines += [f"  {row['id']}: {row['says']}" for row in found if row["id"] not in shown]
    return [*lines, _line("all", total)]


def _line(name: str, counts: list[int]) -> str:
    return f"{name:<8} {counts[0]:>5} {counts[1]:>8} {counts[2]:>6} {counts[3]:>4}"


if __name__ == "__main__":
    print(*report("--details" in sys.argv), sep="\n")
