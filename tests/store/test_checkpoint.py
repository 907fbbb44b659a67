"""The write-ahead log is folded into the file beside the writer."""

import asyncio
import itertools
import threading
from pathlib import Path

import pytest

from scout.store.database import Checkpointer, Database, connect, empty_log
from scout.store.migrate import migrate
from scout.store.writer import Writer, fold
from tests.store.facts import post_message


def test_a_log_is_folded_and_then_emptied(tmp_path: Path) -> None:
    path = tmp_path / "scout.db"
    writer, folder = connect(path), connect(path)
    migrate(writer)
    post_message("x" * 100_000)(writer)
    log = tmp_path / "scout.db-wal"
    before, held = path.stat().st_size, log.stat().st_size
    assert fold(folder) > 25
    assert (path.stat().st_size > before, log.stat().st_size) == (True, held)
    empty_log(folder)
    assert log.stat().st_size == 0
    folder.close()
    writer.close()


def test_a_writer_is_not_disturbed_by_folding_nor_by_emptying(tmp_path: Path) -> None:
    path = tmp_path / "scout.db"
    writer, folder = connect(path), connect(path)
    migrate(writer)
    post_message("x" * 100_000)(writer)
    folder.execute("PRAGMA busy_timeout = 0")
    before = path.stat().st_size
    writer.execute("BEGIN IMMEDIATE")
    assert writer.execute("UPDATE indexed SET seq = seq + 1").rowcount == 1
    empty_log(folder)  # what is committed is folded; the log cannot be truncated now, and is left as it is
    assert path.stat().st_size > before
    assert (tmp_path / "scout.db-wal").stat().st_size > 0
    writer.execute("COMMIT")
    empty_log(folder)
    assert (tmp_path / "scout.db-wal").stat().st_size == 0
    folder.close()
    writer.close()


def test_a_log_that_is_folded_between_two_groups_begins_anew(tmp_path: Path) -> None:
    async def measure_log(path: Path, *, folds: bool) -> int:
        connection = connect(path)
        migrate(connection)
        writer = Writer(connection, str(path))
        for _ in range(10):
            if folds:
                writer.fold_soon()
            await writer.run(post_message("x" * 200_000))
        await writer.close()
        size = path.with_name(f"{path.name}-wal").stat().st_size
        connection.close()
        return size

    folded = asyncio.run(measure_log(tmp_path / "one.db", folds=True))
    grown = asyncio.run(measure_log(tmp_path / "two.db", folds=False))
    assert folded * 3 < grown


def test_a_log_that_grows_long_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scout.store.database._LONG", 20)
    path = tmp_path / "scout.db"
    writer = connect(path)
    migrate(writer)
    post_message("x" * 200_000)(writer)
    count, asked = itertools.count(), threading.Event()
    checkpointer = Checkpointer(lambda: connect(path), lambda: next(count), asked.set)  # never idle
    assert asked.wait(30)
    checkpointer.close()
    writer.close()


def test_the_thread_ends_with_the_store(tmp_path: Path) -> None:
    async def main() -> None:
        database = Database(tmp_path / "scout.db")
        assert "scout-checkpoint" in {thread.name for thread in threading.enumerate()}
        await database.write(post_message("x"))
        await database.close()

    asyncio.run(main())
    assert "scout-checkpoint" not in {thread.name for thread in threading.enumerate()}
    assert not (tmp_path / "scout.db-wal").exists()


def test_the_thread_empties_the_log_once_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "scout.db"
    writer = connect(path)
    migrate(writer)
    post_message("x")(writer)
    counts = iter([0, 1, 1])
    emptied = threading.Event()

    def commits() -> int:
        number = next(counts, None)
        if number is None:
            emptied.set()
        return 1 if number is None else number

    checkpointer = Checkpointer(lambda: connect(path), commits, lambda: None)
    assert emptied.wait(30)
    checkpointer.close()
    assert (tmp_path / "scout.db-wal").stat().st_size == 0
    writer.close()
