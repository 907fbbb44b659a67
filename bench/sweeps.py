"""A round of the sweeper: ten items are due, among a hundred open ones and among ten thousand."""

import asyncio
import gc
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure
from scout.base.time import Time
from scout.broker.broker import Broker
from scout.broker.transaction.transaction import Transaction
from scout.broker.upkeep import sweeper
from scout.daemon.clock import SystemIds
from scout.daemon.time_zones import SystemZones
from scout.model.events.talk import WorkItemCreated
from scout.model.work_item import create_work
from scout.policy.limits import Rules, Sweeps
from scout.protocol.overview import Status
from scout.store.blobs import FolderBlobs
from scout.store.database import Database
from scout.tree.place import Disk

SIZES = (100, 10_000)
DUE, ROUNDS, STEP = 10, 30, 10.0
AT_ONCE = 1000
STATUS = Status(url="", socket="", pid=0, version="0", node="", home="")


class MovedByHand:
    """It stands still until it is moved."""

    def __init__(self) -> None:
        self._moment = Time(time.time_ns() // 1000)

    def pass_by(self, seconds: float) -> None:
        self._moment = self._moment.plus(seconds)

    def now(self) -> Time:
        return self._moment

    def monotonic(self) -> float:
        return time.monotonic()


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder:
        results = asyncio.run(_measured(Path(folder)))
    for size, result in zip(SIZES, results, strict=True):
        yield Figure(name=f"sweep, {DUE} due of {size:,} open", result=result, unit="ms")
    name = f"sweep, {DUE} due: {SIZES[1]:,} open against {SIZES[0]:,}"
    yield Figure(name=name, result=results[1] / results[0], unit="x", goal=1.5)


async def _measured(folder: Path) -> list[float]:
    """Milliseconds of the best round of each, in turns: what else the machine does meets them all."""
    stores = [_Store(folder / str(size)) for size in SIZES]
    for size, store in zip(SIZES, stores, strict=True):
        await store.fill(size)
    gc.collect()
    gc.disable()
    try:
        rounds = [[await store.round() for store in stores] for _ in range(ROUNDS)]
    finally:
        gc.enable()
    for store in stores:
        await store.close()
    return [min(times) * 1000 for times in zip(*rounds, strict=True)]


class _Store:
    """A broker of its own, whose clock is moved by hand."""

    def __init__(self, home: Path) -> None:
        self._clock, self._database = MovedByHand(), Database(home / "scout.db")
        self._broker = Broker(
            self._database,
            rules=Rules(),
            roots=(),
            default_harness=None,
            clock=self._clock,
            ids=SystemIds(),
            places=Disk(home=str(home), temporary=()),
            blobs=FolderBlobs(home / "blobs", 1),
            zones=SystemZones(),
            harnesses={},
            version="0",
        )

    async def fill(self, size: int) -> None:
        """For every round another ten that become due just then, and so many that do not."""
        await self._broker.start("sct_bench", "bench", "bench", STATUS)
        for _ in range(ROUNDS):
            await self._broker.as_system(lambda turn: _open(turn, DUE))
            self._clock.pass_by(STEP)
        for _ in range(0, size, AT_ONCE):
            await self._broker.as_system(lambda turn: _open(turn, min(size, AT_ONCE)))
        self._clock.pass_by(Sweeps().work_open - ROUNDS * STEP)

    async def round(self) -> float:
        """Its cost: waiting for the disk or for other programs is none."""
        before, start = self._broker.glance().last_seq(), time.process_time()
        await sweeper.sweep(self._broker)
        elapsed = time.process_time() - start
        assert self._broker.glance().last_seq() >= before + DUE, "ten were due"
        self._clock.pass_by(STEP)
        return elapsed

    async def close(self) -> None:
        await self._broker.close()
        await self._database.close()


def _open(turn: Transaction, count: int) -> None:
    owner = turn.services.system_agent
    for number in range(count):
        item = create_work(turn.mint("wrk"), f"item {number}", turn.now, requester_id=owner, owner_id=owner)
        turn.record(WorkItemCreated, item, move="create")
