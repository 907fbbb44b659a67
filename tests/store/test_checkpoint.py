"""The write-ahead log is folded into the file beside the writer."""

import asyncio
import threading
from pathlib import Path

from scout.store.database import Checkpointer, Database, connect, run_checkpoint
from scout.store.migrate import migrate
from tests.store.facts import post_message


def test_a_busy_store_is_folded_and_an_idle_one_emptied(tmp_path: Path) -> None:
    path = tmp_path / "scout.db"
    writer, folder = connect(path), connect(path)
    migrate(writer)
    post_message("x" * 100_000)(writer)
    log = tmp_path / "scout.db-wal"
    before, held = path.stat().st_size, log.stat().st_size
    assert run_checkpoint(folder, path, idle=False) == "PASSIVE"
    assert (path.stat().st_size > before, log.stat().st_size) == (True, held)
    assert run_checkpoint(folder, path, idle=True) == "TRUNCATE"
    assert log.stat().st_size == 0
    folder.close()
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

    checkpointer = Checkpointer(lambda: connect(path), path, commits)
    assert emptied.wait(30)
    checkpointer.close()
    assert (tmp_path / "scout.db-wal").stat().st_size == 0
    writer.close()
