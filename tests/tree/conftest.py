"""A repository, and the work trees that are made in it."""

from pathlib import Path

import pytest

from scout.tree.worktrees import GitWorkTrees
from tests.tree.repositories import repository, trees


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "arc")


@pytest.fixture
def work(tmp_path: Path) -> GitWorkTrees:
    return trees(tmp_path)
