"""No test of an adapter leaves a process behind, and each is run on both event loops."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.turns import LOOPS, begin, left_over


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] (pytest calls it)
    begin(tmp_path)
    yield
    assert left_over(tmp_path) == []


@pytest.fixture(params=list(LOOPS))
def loop(request: pytest.FixtureRequest) -> str:
    return str(request.param)
