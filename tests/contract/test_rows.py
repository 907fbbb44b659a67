"""Requirement rows and tests name each other: no row without a test, no test without its row.

A test says which rows it proves with `@pytest.mark.rows("R1.2-3", …)`; a row lists its tests in
requirements.toml. `python tests/contract/test_rows.py` rewrites those lists from the tests.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROWS_FILE = Path(__file__).with_name("requirements.toml")
PARTS = {"broker", "collaboration", "mcp", "harnesses", "web", "mesh", "people", "tree"}


def rows() -> list[dict[str, object]]:
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


def tests_by_row() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for test, claimed in marked_tests():
        for row in claimed:
            found.setdefault(row, []).append(test)
    return found


def test_each_row_has_tests_or_a_reason_to_wait() -> None:
    bare = [row["id"] for row in rows() if not row["tests"] and not row.get("due")]
    assert not bare, f"rows with neither tests nor `due`: {bare}"


def test_a_row_that_waits_says_for_which_part() -> None:
    for row in rows():
        part, _, reason = str(row.get("due", "broker: x")).partition(": ")
        assert part in PARTS, row
        assert reason, row


def test_rows_and_tests_name_each_other() -> None:
    listed = {str(row["id"]): row["tests"] for row in rows()}
    assert {row: tests for row, tests in listed.items() if tests} == tests_by_row()


def test_a_row_with_tests_does_not_wait() -> None:
    both = [row["id"] for row in rows() if row["tests"] and row.get("due")]
    assert not both


def test_every_contract_test_names_its_rows() -> None:
    here = Path(__file__).name
    silent = [
        test
        for test, claimed in marked_tests()
        if test.startswith("contract/") and here not in test and not claimed
    ]
    assert not silent


def test_ids_are_unique_and_run_without_gaps() -> None:
    numbers: dict[str, list[int]] = {}
    for row in rows():
        section, _, number = str(row["id"]).rpartition("-")
        numbers.setdefault(section, []).append(int(number))
    for section, found in numbers.items():
        assert found == list(range(1, len(found) + 1)), section


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row["id"]))
def test_a_row_is_one_short_line(row: dict[str, object]) -> None:
    assert 10 < len(str(row["says"])) <= 140


def rewrite() -> None:
    """Fill the `tests` lists; the order and the wording stay as they are."""
    found = tests_by_row()
    text = ROWS_FILE.read_text()
    for row in rows():
        tests = ", ".join(f'"{test}"' for test in found.get(str(row["id"]), []))
        pattern = rf'(id = "{re.escape(str(row["id"]))}"\nsays = .*\ntests = )\[.*\]'
        text = re.sub(pattern, lambda match, tests=tests: f"{match[1]}[{tests}]", text, count=1)
    ROWS_FILE.write_text(text)


if __name__ == "__main__":
    rewrite()
