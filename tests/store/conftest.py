"""An empty store, as every test of this room begins with one."""

import sqlite3
from collections.abc import Generator
from pathlib import Path

import pytest

from scout.store.database import connect
from scout.store.migrate import migrate


@pytest.fixture
def store(tmp_path: Path) -> Generator[sqlite3.Connection]:
    connection = connect(tmp_path / "scout.db")
    migrate(connection)
    yield connection
    connection.close()
