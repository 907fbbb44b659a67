"""Requirement rows and tests name each other: no row without a test, no claim without its row."""

from pathlib import Path

import pytest

from tests.contract.rows import is_surface, marked_tests, report, rows, tests_by_row

PARTS = {"broker", "collaboration", "mcp", "harnesses", "web", "mesh", "people", "tree", "store", "home"}


def test_each_row_has_tests_or_a_reason_to_wait() -> None:
    claims = tests_by_row()
    bare = [row["id"] for row in rows() if row["id"] not in claims and not row.get("due")]
    assert not bare, f"rows with neither tests nor `due`: {bare}"


def test_a_row_that_waits_says_for_which_part() -> None:
    for row in rows():
        part, _, reason = str(row.get("due", "broker: x")).partition(": ")
        assert part in PARTS, row
        assert reason, row


def test_each_claim_names_a_row() -> None:
    assert {*tests_by_row()} - {row["id"] for row in rows()} == set()


def test_a_row_with_tests_does_not_wait() -> None:
    claims = tests_by_row()
    assert [row["id"] for row in rows() if row["id"] in claims and row.get("due")] == []


def test_rows_about_surfaces_are_shown_at_one() -> None:
    claims = tests_by_row()
    about = [
        row["id"]
        for row in rows()
        if row["id"].startswith(("R4", "R5", "R6", "R7", "R10")) and not row.get("due")
    ]
    assert [row for row in about if not any(map(is_surface, claims.get(row, ())))] == []


def test_the_report_counts_every_row() -> None:
    assert report()[-1].split()[1] == str(len(rows()))


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
