"""Stores of every earlier schema open as they are, after a copy of them was put beside them."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from scout.base.refusal import Refused
from scout.store.database import Database, connect
from scout.store.integrity.backup import restore
from scout.store.integrity.verify import verify
from scout.store.log import read_last_seq
from scout.store.migrate import CURRENT, load_scripts, migrate, read_version
from scout.store.search import index_events, search
from tests.store.facts import post_message
from tests.store.old_store import load, stores

OLD = stores()


def schema(path: Path) -> set[tuple[str, ...]]:
    store = connect(path)
    try:
        rows = store.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {(kind, name, " ".join(sql.split())) for kind, name, sql in rows}
    finally:
        store.close()


def read_state(path: Path) -> tuple[int, int]:
    store = connect(path, readonly=True)
    try:
        return read_version(store), read_last_seq(store)
    finally:
        store.close()


def open_store(path: Path) -> tuple[int, ...]:
    """Open it as the daemon does, and write to it."""

    async def main() -> tuple[int, ...]:
        database = Database(path)
        await database.write(post_message("after"))
        await database.write(lambda unit: index_events(unit.connection, 100))
        assert len(await database.read(lambda store: search(store, "parser", None, None, 9))) == 2
        await database.close()
        return database.migrated

    return asyncio.run(main())


def test_there_is_a_store_of_every_earlier_schema() -> None:
    assert set(OLD) == set(load_scripts()) - {CURRENT}


@pytest.mark.parametrize("number", OLD)
def test_an_old_store_opens_and_is_true(tmp_path: Path, number: int) -> None:
    path = tmp_path / "scout.db"
    load(OLD[number], path)
    events = read_state(path)[1]
    assert open_store(path) == tuple(one for one in sorted(load_scripts()) if one > number)
    assert verify(path).clean
    assert read_state(path) == (CURRENT, events + 1)
    copy = tmp_path / f"scout.db.before-{min(one for one in load_scripts() if one > number)}"
    assert read_state(copy) == (number, events)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir() if "." in file.name.removeprefix("scout.db")] == [
        copy.name
    ]


@pytest.mark.parametrize("number", OLD)
def test_an_old_store_becomes_what_a_new_one_is(tmp_path: Path, number: int) -> None:
    load(OLD[number], tmp_path / "old.db")
    for name in ("old.db", "new.db"):
        store = connect(tmp_path / name)
        migrate(store)
        store.close()
    assert schema(tmp_path / "old.db") == schema(tmp_path / "new.db")


def test_the_copy_can_be_put_back_and_migrated_again(tmp_path: Path) -> None:
    path = tmp_path / "scout.db"
    load(OLD[1], path)
    open_store(path)
    restore(tmp_path / "scout.db.before-2", path, tmp_path / "aside.db")
    assert read_state(path)[0] == 1
    open_store(path)
    assert read_state(tmp_path / "scout.db.before-2") == read_state(tmp_path / "scout.db.before-2.2")


def test_a_new_store_and_an_unchanged_one_need_no_copy(tmp_path: Path) -> None:
    for _ in range(2):
        store = connect(tmp_path / "scout.db")
        migrate(store)
        store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["scout.db"]
    memory = sqlite3.connect(":memory:")
    assert migrate(memory) == tuple(sorted(load_scripts()))
    memory.close()


def test_a_migration_without_room_for_its_copy_does_not_begin(tmp_path: Path) -> None:
    path = tmp_path / "scout.db"
    load(OLD[1], path)
    (tmp_path / "scout.db.copying").mkdir()  # nothing can be written there
    with pytest.raises(OSError, match="copying"):
        open_store(path)
    assert read_state(path)[0] == 1


def test_a_store_from_the_future_is_refused_with_the_way_back(tmp_path: Path) -> None:
    path = tmp_path / "scout.db"
    store = connect(path)
    migrate(store)
    store.execute(f"PRAGMA user_version = {CURRENT + 3}")
    with pytest.raises(Refused, match=rf"scout\.db has schema {CURRENT + 3} .*use the newer Scout") as caught:
        migrate(store)
    assert caught.value.diagnostic.remedies == ()
    copy = tmp_path / f"scout.db.before-{CURRENT + 1}"
    copy.touch()
    with pytest.raises(Refused) as caught:
        migrate(store)
    store.close()
    (remedy,) = caught.value.diagnostic.remedies
    assert (remedy.operation, remedy.parameters) == ("restore", {"file": str(copy)})
