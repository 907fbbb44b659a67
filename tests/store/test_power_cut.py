"""What was answered is there after a power cut at any point, and what is there is whole."""

import asyncio
import contextlib
import random
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import pytest

from scout.base.ids import derive_id
from scout.store.database import connect
from scout.store.integrity.verify import verify
from scout.store.log import read_events
from scout.store.migrate import CURRENT, migrate, read_version
from scout.store.search import index_events
from scout.store.writer import Writer
from tests import seeds
from tests.policy.fleets import agent
from tests.soak import Soaked
from tests.store.facts import append_records, post_message
from tests.store.recorder import RecordedConnection, Recorder, Step, find_answered, survivors


@contextlib.contextmanager
def open_recorded(path: Path, synchronous: str = "FULL") -> Generator[tuple[Recorder, Any]]:
    """A store on a remembering disk, migrated. The connection stands in for sqlite3's."""
    recorder = Recorder(f"recorder-{path.parent.name}")
    connection = RecordedConnection(path, recorder, synchronous)
    try:
        migrate(cast("Any", connection))
        yield recorder, connection
    finally:
        connection.close()
        recorder.unregister()


async def busy(recorder: Recorder, connection: Any, chance: random.Random, rounds: int) -> None:
    """Groups of writers through the real Writer; now and then the log is folded or the index fed."""
    writer = Writer(connection, "recorded")

    await writer.run(lambda unit: append_records(unit, agent("arc", id=derive_id("agt", "arc"))))
    recorder.answered(1)

    async def one(text: str) -> None:
        recorder.answered(await writer.run(post_message(text)))

    for number in range(rounds):
        texts = [
            f"{number}.{index} {'x' * chance.choice((5, 200, 6000))}"
            for index in range(chance.randrange(1, 6))
        ]
        await asyncio.gather(*(one(text) for text in texts))
        if chance.random() < 0.2:
            await writer.run(lambda unit: index_events(unit.connection, 50))
        if number % 3 == 2:
            mode = "TRUNCATE" if number % 2 else "PASSIVE"
            connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
    await writer.close()


def record(path: Path, seed: int, rounds: int, synchronous: str = "FULL") -> list[Step]:
    with open_recorded(path, synchronous) as (recorder, connection):
        asyncio.run(busy(recorder, connection, random.Random(seed), rounds))
        return list(recorder.steps)


def rebuild(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder / "scout.db"


def numbers(path: Path) -> list[int]:
    """The facts in a file; none when the cut came before its tables were made."""
    store = connect(path)
    try:
        if read_version(store) < CURRENT:
            return []
        return [event.seq for event in read_events(store, 0, 10_000)]
    finally:
        store.close()


def cuts(tmp_path: Path, seed: int, points: int, rounds: int) -> None:
    steps = record(tmp_path / "scout.db", seed, rounds)
    chance = random.Random(seed)
    assert find_answered(steps) > rounds
    assert {step.file for step in steps} == {"scout.db", "scout.db-wal", ""}
    assert Step("cut", "scout.db-wal") in steps  # the log was also folded and emptied
    for point in range(points):
        before = steps[: chance.randrange(len(steps) + 1)]
        path = rebuild(tmp_path / f"cut-{point}", survivors(before, chance))
        found = numbers(path)
        assert found == list(range(1, len(found) + 1))
        assert len(found) >= find_answered(before)
        if found:
            assert verify(path).clean


def test_fifteen_power_cuts(tmp_path: Path) -> None:
    cuts(tmp_path, seed=seeds.run_seed(), points=15, rounds=6)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_thousand_power_cuts(tmp_path: Path, soaked: Soaked) -> None:
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        cuts(folder, seed=seeds.run_seed() + number, points=200, rounds=40)
    soaked(cuts=1000)


def test_the_disk_would_notice_a_missing_sync(tmp_path: Path) -> None:
    """The same with a store that does not sync its commits: answers are lost, so the test can fail."""
    steps = record(tmp_path / "scout.db", 5, 10, synchronous="NORMAL")
    chance = random.Random(5)
    for point in range(200):  # what survives is a matter of chance: one loss is enough
        before = steps[: chance.randrange(len(steps) // 2, len(steps))]
        found = numbers(rebuild(tmp_path / f"cut-{point}", survivors(before, chance)))
        if len(found) < find_answered(before):
            return
    pytest.fail("nothing was lost")
