"""Beyond this machine: one real daemon, fed the directory and the heartbeats of a large mesh by a real server.

The other nodes do not run: one thread signs and publishes for all of them. So everything that the daemon does is
measured. Only the work of the server is extrapolated: it sends each heartbeat to every node, not to one.
"""

import time
from collections.abc import Iterator

from bench.daemon import Daemon, daemon
from bench.figure import Figure
from bench.mesh.directory import look_up
from bench.mesh.fleet import Fleet, find_server, fleet, wait_for_mirror
from bench.mesh.nodes import count, reading, wait_for
from bench.names import name_of

AGENTS, NODES = 1_000_000, 1_000
SECONDS = 10.0  # of heartbeats
_ONLINE = "SELECT count(*) FROM nodes WHERE state = 'online'"


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """`scale` makes the fleet smaller: 0.1 is 100,000 agents on 100 nodes."""
    agents, nodes = max(round(AGENTS * scale), 1000), max(round(NODES * scale), 10)
    what = f"{agents:,} agents on {nodes:,} nodes"
    with fleet(nodes) as (others, home):
        others.publish_agents(agents)
        with daemon(home) as first:
            yield from _measure_fill(first, others, agents, what)
        with daemon(home) as again:
            yield Figure(name=f"{what}: start again", result=again.started, unit="s")
            yield from _measure_reading(again, what)
            others.begin_beating()
            wait_for(lambda: _count_online(again) > nodes)
            yield from _measure_beats(again, others, what)
            for kind, name in (("hit", name_of(agents // 2)), ("miss", "zzzzzz")):
                p50 = look_up(again, name)
                yield Figure(name=f"{what}: resolve {kind}, p50", result=p50, unit="ms")


def _measure_fill(first: Daemon, others: Fleet, agents: int, what: str) -> Iterator[Figure]:
    """The first reading of the whole directory: every entry is verified and stored."""
    taken = wait_for_mirror(first, agents)
    used = first.read_processor_time()
    yield Figure(name=f"{what}: first read", result=taken, unit="s")
    yield Figure(name=f"{what}: first read, processor time", result=1000 * used / agents, unit="us/agent")
    yield Figure(name=f"{what}: first read, bytes", result=others.wire.carried / agents, unit="B/agent")
    yield Figure(name=f"{what}: memory after it", result=first.memory(), unit="MB")


def _measure_reading(again: Daemon, what: str) -> Iterator[Figure]:
    """After a start the directory is read again; what is known is neither verified nor stored."""
    began = time.perf_counter()
    again.wait_until_quiet()
    yield Figure(name=f"{what}: read again", result=time.perf_counter() - began, unit="s")
    yield Figure(name=f"{what}: memory after a start", result=again.memory(), unit="MB")


def _measure_beats(again: Daemon, others: Fleet, what: str) -> Iterator[Figure]:
    """The steady state: a heartbeat of each node every second."""
    server, began = find_server(), time.perf_counter()
    before = (again.read_processor_time(), server.read_processor_time(), others.wire.carried, others.beats)
    time.sleep(SECONDS)
    taken = time.perf_counter() - began
    after = (again.read_processor_time(), server.read_processor_time(), others.wire.carried, others.beats)
    used, served, carried, beats = (new - old for new, old in zip(after, before, strict=True))
    yield Figure(name=f"{what}: heartbeats", result=beats / taken, unit="/s")
    yield Figure(name=f"{what}: daemon, of one processor", result=used / taken / 10, unit="%")
    yield Figure(name=f"{what}: server, of one processor", result=served / taken / 10, unit="%")
    yield Figure(name=f"{what}: to and from the daemon", result=carried / taken / 1000, unit="kB/s")
    # The server receives each heartbeat once and sends it to every node: bytes x nodes.
    whole = carried / taken * len(others.nodes) / 1e6
    yield Figure(name=f"{what}: from the server, extrapolated", result=whole, unit="MB/s")


def _count_online(node: Daemon) -> int:
    with reading(node) as store:
        return count(store, _ONLINE)
