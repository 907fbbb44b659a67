"""A directory of 100,000 agents of other nodes, beside one of a few: start, memory, resolving."""

import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

from bench.daemon import Daemon, daemon
from bench.figure import Figure
from bench.mesh.fleet import fleet, wait_for_mirror
from bench.names import name_of

FEW, MANY, NODES = 100, 100_000, 10
LOOKUPS = 200
FLAT, MEMORY = 1.5, 1.3  # times, as for agents of the own node


class Cost(NamedTuple):
    """One daemon with its mirror: seconds, MB, and milliseconds of the median lookup."""

    fill: float
    start: float
    memory: float
    hit: float
    miss: float


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """Each is measured after a restart, with everything mirrored before."""
    many = max(round(MANY * scale), FEW * 10)
    few, full = (_measure(count) for count in (FEW, many))
    what = f"{many:,} agents of other nodes"
    yield Figure(name=f"{what}: mirrored", result=many / full.fill, unit="/s")
    yield Figure(name=f"{what}: start", result=full.start, unit="s")
    yield Figure(name=f"{what}: start against {FEW}", result=full.start / few.start, unit="x", goal=FLAT)
    yield Figure(name=f"{what}: memory", result=full.memory, unit="MB")
    yield Figure(name=f"{what}: memory against {FEW}", result=full.memory / few.memory, unit="x", goal=MEMORY)
    for name in ("hit", "miss"):
        ratio = getattr(full, name) / getattr(few, name)
        yield Figure(name=f"{what}: resolve {name}, p50", result=getattr(full, name), unit="ms")
        yield Figure(name=f"{what}: resolve {name} against {FEW}", result=ratio, unit="x", goal=FLAT)


def _measure(count: int) -> Cost:
    with fleet(NODES) as (others, home):
        others.publish_agents(count)
        with daemon(home) as first:
            fill = wait_for_mirror(first, count)
        with daemon(home) as again:
            again.wait_until_quiet()
            memory = again.memory()
            hit, miss = (look_up(again, name) for name in (name_of(count // 2), "zzzzzz"))
            return Cost(fill, again.started, memory, hit, miss)


def look_up(to: Daemon, name: str) -> float:
    """Return the median of many lookups in milliseconds; that nobody has the name is an answer, too."""
    times: list[float] = []
    for _ in range(LOOKUPS):
        began = time.perf_counter()
        try:
            to.call("GET", f"/v1/resolve?address=@{name}")
        except AssertionError:
            assert name == "zzzzzz", name
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)
