"""Copies are made while the store is in use, and nothing is replaced by a bad one."""

import asyncio
from pathlib import Path

import pytest

from scout.base.refusal import Refused
from scout.store.database import Database, connect
from scout.store.integrity.backup import backup, check_file, restore
from scout.store.log import read_last_seq
from scout.store.migrate import CURRENT, load_scripts, migrate, read_version
from tests.store.facts import post_message


def make_store(path: Path, *texts: str) -> Path:
    async def main() -> None:
        database = Database(path)
        for text in texts:
            await database.write(post_message(text))
        await database.close()

    asyncio.run(main())
    return path


def count(path: Path) -> int:
    connection = connect(path, readonly=True)
    try:
        return read_last_seq(connection)
    finally:
        connection.close()


def test_a_backup_is_made_while_the_store_is_written(tmp_path: Path) -> None:
    async def main() -> None:
        database = Database(tmp_path / "scout.db")
        await database.write(post_message("one"))
        size = backup(database.path, tmp_path / "copy.db")
        await database.write(post_message("two"))
        await database.close()
        assert size == (tmp_path / "copy.db").stat().st_size

    asyncio.run(main())
    assert (count(tmp_path / "copy.db"), count(tmp_path / "scout.db")) == (1, 2)
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    check_file(tmp_path / "copy.db")


def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    make_store(tmp_path / "scout.db")
    (tmp_path / "copy.db").write_text("mine")
    with pytest.raises(Refused, match="already exists"):
        backup(tmp_path / "scout.db", tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "mine"


def test_restore_keeps_the_old_store_aside(tmp_path: Path) -> None:
    path = make_store(tmp_path / "scout.db", "one")
    backup(path, tmp_path / "copy.db")
    make_store(path, "two", "three")
    done = restore(tmp_path / "copy.db", path, tmp_path / "old.db")
    assert done == (tmp_path / "old.db", 0, ())
    assert (count(path), count(tmp_path / "old.db"), count(tmp_path / "copy.db")) == (1, 3, 1)
    assert path.stat().st_mode & 0o777 == 0o600


def test_restore_leaves_no_log_of_the_old_store_beside_the_new_one(tmp_path: Path) -> None:
    path = make_store(tmp_path / "scout.db", "one")
    backup(path, tmp_path / "copy.db")
    killed = connect(path)  # as a killed daemon leaves it: commits that are only in the log
    post_message("two")(killed)
    kept = {ending: path.with_name(path.name + ending).read_bytes() for ending in ("", "-wal", "-shm")}
    killed.close()
    for ending, content in kept.items():
        path.with_name(path.name + ending).write_bytes(content)
    restore(tmp_path / "copy.db", path, tmp_path / "old.db")
    assert not path.with_name("scout.db-wal").exists()
    assert (count(path), count(tmp_path / "old.db")) == (1, 2)


def test_a_damaged_store_can_be_replaced(tmp_path: Path) -> None:
    path = make_store(tmp_path / "scout.db", "one")
    backup(path, tmp_path / "copy.db")
    path.write_bytes(b"noise" * 1000)
    assert restore(tmp_path / "copy.db", path, tmp_path / "old.db") == (tmp_path / "old.db", None, ())
    assert (count(path), (tmp_path / "old.db").read_bytes()) == (1, b"noise" * 1000)


def test_restore_into_an_empty_place(tmp_path: Path) -> None:
    make_store(tmp_path / "source.db", "one")
    assert restore(tmp_path / "source.db", tmp_path / "scout.db", tmp_path / "old.db") == (None, 0, ())
    assert count(tmp_path / "scout.db") == 1


def test_a_bad_copy_replaces_nothing(tmp_path: Path) -> None:
    path = make_store(tmp_path / "scout.db", "one")
    whole = make_store(tmp_path / "whole.db", *(f"m{number}" for number in range(200))).read_bytes()
    cut, noise, other, newer = (tmp_path / name for name in ("cut.db", "noise.db", "other.db", "newer.db"))
    cut.write_bytes(whole[: len(whole) // 2])
    noise.write_bytes(b"not a database at all, but long enough to look like one" * 100)
    connect(other).close()
    future = connect(newer)
    migrate(future)
    future.execute(f"PRAGMA user_version = {CURRENT + 1}")
    future.close()
    for bad, says in (
        (cut, "damaged|cannot be read"),
        (noise, "cannot be read"),
        (other, "has schema 0"),
        (newer, f"has schema {CURRENT + 1}"),
        (tmp_path / "missing.db", "there is no file"),
    ):
        with pytest.raises(Refused, match=says):
            restore(bad, path, tmp_path / "old.db")
    assert count(path) == 1
    assert not (tmp_path / "old.db").exists()


def test_migrations_run_once_and_a_file_from_the_future_is_refused(tmp_path: Path) -> None:
    connection = connect(tmp_path / "scout.db")
    assert migrate(connection) == tuple(sorted(load_scripts()))
    assert migrate(connection) == ()
    assert read_version(connection) == CURRENT
    connection.execute(f"PRAGMA user_version = {CURRENT + 1}")
    with pytest.raises(Refused, match="use the newer Scout"):
        migrate(connection)
    connection.close()
