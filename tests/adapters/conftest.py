"""No test of an adapter leaves a process behind, and each is run on both event loops."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scout.adapters.process.run import reap
from tests.adapters.turns import LOOPS, begin, list_left_over


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] (pytest calls it)
    begin(tmp_path)
    yield
    until = time.monotonic() + 30
    while (left := list_left_over(tmp_path)) and time.monotonic() < until:
        reap()  # what has just ended is reaped with the next look
        time.sleep(0.01)
    assert left == []


@pytest.fixture(params=list(LOOPS))
def loop(request: pytest.FixtureRequest) -> str:
    return str(request.param)
