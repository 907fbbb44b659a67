"""One writer: what is answered is on disk, and one bad request spoils no other."""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from scout.base.refusal import BadRequest, Refused
from scout.model.problems.request import StoreFull
from scout.store.database import Database, connect
from scout.store.log import read_last_seq
from scout.store.unit_of_work import UnitOfWork
from tests.store.facts import post_message


def texts(path: Path) -> list[str]:
    """What another process would find in the file."""
    other = connect(path, readonly=True)
    try:
        found = other.execute("SELECT data ->> '$.body' FROM messages ORDER BY id")
        return sorted(row[0] for row in found)
    finally:
        other.close()


def play(path: Path, story: Callable[[Database], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        database = Database(path)
        try:
            await story(database)
        finally:
            await database.close()

    asyncio.run(main())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "scout.db"


def test_an_answer_means_on_disk(path: Path) -> None:
    async def story(database: Database) -> None:
        assert await database.write(post_message("one")) == 1
        assert texts(path) == ["one"]
        assert await database.write(post_message("two")) == 2
        assert texts(path) == ["one", "two"]

    play(path, story)


def test_requests_that_wait_together_share_a_commit(path: Path) -> None:
    async def story(database: Database) -> None:
        commits: list[str] = []
        database.trace(lambda statement: commits.append(statement) if statement == "COMMIT" else None)
        numbers = await asyncio.gather(*(database.write(post_message(f"m{number}")) for number in range(50)))
        assert sorted(numbers) == list(range(1, 51))
        assert len(commits) < 10

    play(path, story)
    assert len(texts(path)) == 50


def refuse(unit: UnitOfWork) -> None:
    raise Refused(BadRequest(problem="no"))


def append_and_refuse(unit: UnitOfWork) -> None:
    post_message("half")(unit)
    raise Refused(BadRequest(problem="no"))


def write_and_refuse(unit: UnitOfWork) -> None:
    post_message("half")(unit)
    unit.flush()
    raise Refused(BadRequest(problem="no"))


@pytest.mark.parametrize("bad", [refuse, append_and_refuse, write_and_refuse])
def test_a_request_that_fails_spoils_no_other(path: Path, bad: Callable[[UnitOfWork], None]) -> None:
    async def story(database: Database) -> None:
        works: list[Callable[[UnitOfWork], Any]] = [
            post_message("a"),
            bad,
            post_message("b"),
            bad,
            post_message("c"),
        ]
        answers = await asyncio.gather(*(database.write(work) for work in works), return_exceptions=True)
        assert [type(answer) for answer in answers] == [int, Refused, int, Refused, int]
        assert await database.read(read_last_seq) == 3

    play(path, story)
    assert texts(path) == ["a", "b", "c"]


def test_a_fault_of_ours_is_raised_to_its_caller_alone(path: Path) -> None:
    def fault(unit: UnitOfWork) -> None:
        unit.connection.execute("SELECT nothing FROM nowhere")

    async def story(database: Database) -> None:
        answers = await asyncio.gather(
            database.write(fault), database.write(post_message("x")), return_exceptions=True
        )
        assert isinstance(answers[0], sqlite3.OperationalError)
        assert answers[1] == 1

    play(path, story)


def test_a_caller_that_went_away_does_not_stop_the_others(path: Path) -> None:
    async def story(database: Database) -> None:
        leaving = asyncio.create_task(database.write(post_message("left")))
        staying = asyncio.create_task(database.write(post_message("stayed")))
        await asyncio.sleep(0)
        leaving.cancel()
        assert await staying == 2
        with pytest.raises(asyncio.CancelledError):
            await leaving

    play(path, story)
    assert texts(path) == ["left", "stayed"]


def test_a_full_disk_is_refused_and_reading_goes_on(path: Path) -> None:
    async def story(database: Database) -> None:
        await database.write(post_message("kept"))
        await database.write(lambda unit: unit.connection.execute("PRAGMA max_page_count = 1").fetchone())
        with pytest.raises(Refused) as caught:
            await database.write(post_message("x" * 2_000_000))
        assert isinstance(caught.value.diagnostic, StoreFull)
        assert caught.value.diagnostic.path == str(path)
        assert await database.read(read_last_seq) == 1
        await database.write(lambda unit: unit.connection.execute("PRAGMA max_page_count = 99999").fetchone())
        assert await database.write(post_message("again")) == 2

    play(path, story)
    assert texts(path) == ["again", "kept"]


def test_readers_see_what_is_committed_while_a_write_is_under_way(path: Path) -> None:
    async def story(database: Database) -> None:
        await database.write(post_message("one"))
        seen: list[int] = []

        def slow(unit: UnitOfWork) -> None:
            post_message("two")(unit)
            unit.flush()
            other = connect(path, readonly=True)
            seen.append(read_last_seq(other))
            other.close()

        await database.write(slow)
        assert seen == [1]
        assert await database.read(read_last_seq) == 2

    play(path, story)


def test_a_reader_cannot_write(path: Path) -> None:
    async def story(database: Database) -> None:
        with pytest.raises(sqlite3.OperationalError):
            await database.read(post_message("no"))

    play(path, story)


def test_the_file_is_its_owners_alone(path: Path) -> None:
    def check() -> None:
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert all(file.stat().st_mode & 0o077 == 0 for file in path.parent.iterdir())

    async def story(database: Database) -> None:
        await database.write(post_message("x"))
        check()

    play(path, story)
    assert [file.name for file in path.parent.iterdir()] == ["scout.db"]
