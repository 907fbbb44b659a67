"""Pages of 4 and of 8 KiB in turn: what a message costs in a store with a history, and the ratio of the medians."""

import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.figure import Figure
from bench.floor import Floor
from bench.seed import seed
from scout.store.database import Database, connect
from scout.store.migrate import migrate

SIZES = (4096, 8192)
BODY = "word " * 35
_TOGETHER = (1, 32)
_ROUNDS = 7
_HISTORY = 30_000


class Cost(NamedTuple):
    """What a message costs: processor time, time, and what is written to the disk."""

    processor: float
    elapsed: float
    written: float


def figures(scale: float = 1.0) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="scout-pages-") as folder:
        paths = {size: _make_store(Path(folder) / str(size), size, int(_HISTORY * scale)) for size in SIZES}
        for together in _TOGETHER:
            yield from _compare(paths, together)


def _make_store(home: Path, size: int, messages: int) -> Path:
    """An empty file keeps the size of its pages; the store in it is made as always."""
    home.mkdir()
    path = home / "scout.db"
    empty = sqlite3.connect(path)
    empty.execute(f"PRAGMA page_size = {size}")
    empty.execute("PRAGMA journal_mode = WAL")
    empty.close()
    store = connect(path)
    migrate(store)
    store.close()
    seed(home, messages=messages)
    return path


def _compare(paths: dict[int, Path], together: int) -> Iterator[Figure]:
    costs: dict[int, list[Cost]] = {size: [] for size in SIZES}
    for turn in range(_ROUNDS):
        for size in SIZES if turn % 2 else SIZES[::-1]:
            costs[size].append(asyncio.run(_measure(paths[size], together)))
    for place, (what, unit) in enumerate((("processor", "us"), ("time", "us"), ("written", "KiB"))):
        medians = [statistics.median(cost[place] for cost in costs[size]) for size in SIZES]
        for size, median in zip(SIZES, medians, strict=True):
            yield Figure(
                name=f"{what} per message, {together} waiting, pages of {size}", result=median, unit=unit
            )
        ratio = medians[1] / medians[0]
        yield Figure(name=f"{what}, {together} waiting: pages of 8192 against 4096", result=ratio, unit="x")


async def _measure(path: Path, together: int) -> Cost:
    database = Database(path)
    floor = Floor(database, "message")
    each = max(640 // together, 20)

    async def send() -> None:
        for _ in range(each):
            await database.write(lambda unit: floor.store(unit, BODY))

    database._checkpointer.close()  # pyright: ignore[reportPrivateUsage] (it would empty what is measured)
    before = _read_log_size(path)
    begin, processor = time.perf_counter(), time.process_time()
    await asyncio.gather(*(send() for _ in range(together)))
    count = each * together
    cost = Cost(
        (time.process_time() - processor) / count * 1e6,
        (time.perf_counter() - begin) / count * 1e6,
        (_read_log_size(path) - before) / count / 1024,
    )
    await database.close()
    return cost


def _read_log_size(path: Path) -> int:
    """The bytes of the write-ahead log, which nothing empties meanwhile."""
    log = Path(f"{path}-wal")
    return log.stat().st_size if log.exists() else 0
