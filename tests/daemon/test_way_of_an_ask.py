"""The page that shows the way of an ask, compared with the calls of a real one."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from bench.trace import CALLS, Walk, record_walk

_DESIGN = Path(__file__).parents[2] / "docs" / "design.md"
_COMMAND = ("cli/", "client/")
_NUMBERS = re.compile(r"at most (\d+) files and changes rooms at most (\d+) times")


@pytest.fixture(scope="module")
def walk() -> Walk:
    return record_walk()


def _page() -> str:
    text = _DESIGN.read_text()
    return text[text.index("## The way of an ask") : text.index("## Proof")]


def _named_files() -> list[str]:
    drawing = _page().split("```")[1]
    return re.findall(r"[a-z_]+(?:/[a-z_]+)+\.py", drawing)


def _missing_in_order(files: Iterable[str], calls: list[str]) -> list[str]:
    """The files that are not called after the one named before them."""
    place, missing = 0, list[str]()
    for file in files:
        if file in calls[place:]:
            place = calls.index(file, place) + 1
        else:
            missing.append(file)
    return missing


@pytest.mark.parametrize("process", ["command", "daemon"])
def test_every_file_on_the_page_is_called_in_that_order(walk: Walk, process: str) -> None:
    named = [one for one in _named_files() if one.startswith(_COMMAND) == (process == "command")]
    calls = [call.file for call in walk.calls if call.thread.startswith(process)]
    assert len(named) > 5
    assert _missing_in_order(named, calls) == []


def test_the_numbers_on_the_page_are_true(walk: Walk) -> None:
    found = _NUMBERS.search(" ".join(_page().split()))
    assert found is not None
    files, changes = int(found[1]), int(found[2])
    passed = walk.files
    assert len(passed) <= files, passed
    crossed = walk.changes
    assert crossed <= changes


def test_an_ask_costs_few_calls(walk: Walk) -> None:
    """In both processes together. A slow program is looked at more often: then others are recorded."""
    fewest = len(walk.calls)
    for _ in range(3):
        if fewest > CALLS:
            fewest = min(fewest, len(record_walk().calls))
    assert fewest <= CALLS
