"""A round of schedules: ten are due, among a hundred and among ten thousand."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure
from bench.sweeps import STATUS, MovedByHand
from scout.adapters.echo import Echo
from scout.broker.broker import Broker
from scout.broker.local import LocalScout
from scout.daemon.clock import SystemIds
from scout.daemon.time_zones import SystemZones
from scout.policy.limits import Limits, Rules
from scout.protocol.agents import RegisterAgent
from scout.protocol.people.schedules import AddSchedule
from scout.protocol.scout import Credential
from scout.store.blobs import FolderBlobs
from scout.store.database import Database
from scout.tree.place import Disk

SIZES = (100, 10_000)
DUE, ROUNDS, DAY = 10, 8, 86_400.0


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """The cost of a round follows what is due, not how many schedules there are."""
    sizes = [max(DUE, round(size * min(scale, 1))) for size in SIZES]
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder:
        results = [
            asyncio.run(_measure(Path(folder) / str(number), size)) for number, size in enumerate(sizes)
        ]
    for size, result in zip(sizes, results, strict=True):
        yield Figure(name=f"schedules, {DUE} due of {size:,}", result=result, unit="ms")
    name = f"schedules, {DUE} due: {sizes[1]:,} against {sizes[0]:,}"
    yield Figure(name=name, result=results[1] / results[0], unit="x", goal=1.5)


async def _measure(home: Path, size: int) -> float:
    """Milliseconds of processor time of the best round."""
    clock, database = MovedByHand(), Database(home / "scout.db")
    broker = Broker(
        database,
        rules=Rules(limits=Limits(asks_per_minute=10**6, wakes_per_hour=10**6, open_flights=10**6)),
        roots=(),
        default_harness=None,
        clock=clock,
        ids=SystemIds(),
        places=Disk(home=str(home), temporary=()),
        blobs=FolderBlobs(home / "blobs", 1),
        zones=SystemZones(),
        harnesses={"echo": Echo()},
        version="0",
    )
    try:
        await broker.start("sct_bench", "bench", "bench", STATUS)
        scout = await broker.admit(Credential(secret="sct_bench"))
        # A manual agent: what is measured is the round, and not the turns that follow from it.
        await scout.call(RegisterAgent(definition_id="arc", harness="echo", config={"wakePolicy": "manual"}))
        await broker.schedules.close()  # rounds are run by hand
        await _add(scout, "0 9 * * *", DUE)
        await _add(scout, "0 9 1 1 *", size - DUE)
        clock.pass_by(DAY)
        return min([await _run_round(broker, clock) for _ in range(ROUNDS)]) * 1000
    finally:
        await broker.close()
        await database.close()


async def _add(scout: LocalScout, cron: str, count: int) -> None:
    for first in range(0, count, 200):
        wishes = [
            AddSchedule(cron=cron, body="Check.", to="@arc", time_zone="UTC", overlap="queue")  # pyright: ignore[reportArgumentType] (a word of the wire)
            for _ in range(min(200, count - first))
        ]
        await asyncio.gather(*map(scout.call, wishes))


async def _run_round(broker: Broker, clock: MovedByHand) -> float:
    before, start = broker.glance().last_seq(), time.process_time()
    await broker.schedules.run_due()
    elapsed = time.process_time() - start
    assert broker.glance().last_seq() >= before + DUE, "ten were due"
    clock.pass_by(DAY)
    return elapsed
