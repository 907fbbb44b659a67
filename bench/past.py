"""The state at a moment, with ten thousand and with a million events: rows visited, and time."""

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from bench.figure import Figure
from scout.base.ids import derive_id
from scout.base.time import Time
from scout.model.events.asks import FlightUpdated
from scout.model.events.envelope import Changed
from scout.model.flight import Flight, FlightState
from scout.model.ref import Ref
from scout.store.database import connect
from scout.store.history.feed import prepare_batch, store_batch
from scout.store.history.moments import find_seq
from scout.store.history.past import Past
from scout.store.migrate import migrate
from scout.store.unit_of_work import append

SIZES = (10_000, 1_000_000)
OPEN, PARTS, ROUNDS = 50, 20, 5
_BEGIN = Time(1_700_000_000_000_000)
_STATES = (FlightState.QUEUED, FlightState.RUNNING, FlightState.WAITING)
_AGENT = derive_id("agt", "bench")


class Cost(NamedTuple):
    """What one question costs: instructions of SQLite's machine, and milliseconds of processor time."""

    steps: float
    milliseconds: float


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """The past costs what was open then, not what came before or after."""
    sizes = [max(2000, round(size * min(scale, 1))) for size in SIZES]
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder:
        results = [_measure(Path(folder) / f"{number}.db", size) for number, size in enumerate(sizes)]
    for name in results[0]:
        small, large = (result[name] for result in results)
        for size, cost in zip(sizes, (small, large), strict=True):
            yield Figure(name=f"past, {name}, {size:,} events", result=cost.milliseconds, unit="ms")
        ratio = f"past, {name}: {sizes[1]:,} against {sizes[0]:,}"
        yield Figure(name=f"{ratio}, instructions", result=large.steps / small.steps, unit="x", goal=1.5)
        yield Figure(name=f"{ratio}, time", result=large.milliseconds / small.milliseconds, unit="x", goal=2)


def _measure(path: Path, events: int) -> dict[str, Cost]:
    store = connect(path)
    store.execute("PRAGMA synchronous = OFF")
    migrate(store)
    _fill(store, events)
    moments = [events * part // (PARTS + 1) for part in range(1, PARTS + 1)]
    pasts = [Past(store, seq) for seq in moments]
    assert all(len(past.list_in(Flight, _STATES, limit=1000)) >= OPEN for past in pasts)
    found: dict[str, list[Callable[[], object]]] = {
        "open flights": [lambda past=past: _load_open(past) for past in pasts],
        "newest flights": [lambda past=past: past.list_newest(Flight, limit=50) for past in pasts],
        "event of a time": [lambda seq=seq: find_seq(store, _BEGIN.plus(seq / 10)) for seq in moments],
    }
    costs = {name: _cost(store, calls) for name, calls in found.items()}
    store.close()
    return costs


def _load_open(past: Past) -> list[Flight]:
    return past.load_all(Flight, past.list_in(Flight, _STATES, limit=20))


def _fill(store: sqlite3.Connection, events: int) -> None:
    """Flights that are queued, run and end; one in a hundred stays open ten times as long."""
    open_: list[Flight] = []
    seq, step = 0, 5000
    while seq < events:
        store.execute("BEGIN")
        for _ in range(step):
            seq += 1
            open_.append(_next_flight(open_, seq))
            flight = open_[-1]
            event = FlightUpdated(
                id=derive_id("evt", str(seq)),
                seq=seq,
                time=_BEGIN.plus(seq / 10),
                source=Ref.to(_AGENT),
                target=Ref.to(flight.id),
                payload=Changed(record=flight),
            )
            append(store, event)
            if flight.state is FlightState.COMPLETED:
                open_.pop()
        store.execute("COMMIT")
        while (batch := prepare_batch(store, 1000)) is not None:
            store.execute("BEGIN")
            store_batch(store, batch)
            store.execute("COMMIT")


def _next_flight(open_: list[Flight], seq: int) -> Flight:
    """Return a new flight, or the next state of one that is open; it is taken out of the list."""
    if len(open_) < OPEN or seq % 4 == 0:
        return Flight(
            id=derive_id("flt", str(seq)),
            created_at=_BEGIN,
            updated_at=_BEGIN,
            ask_id=derive_id("ask", str(seq)),
            conversation_id=derive_id("cnv", "bench"),
            requester_id=_AGENT,
            target=_AGENT,
            reason="",
            next_check_at=None,
        )
    chosen = open_.pop(0 if seq % 100 == 0 else OPEN // 2 + seq % (len(open_) - OPEN // 2))
    states = [*_STATES, FlightState.COMPLETED]
    return replace(chosen, state=states[states.index(chosen.state) + 1])


def _cost(store: sqlite3.Connection, calls: list[Callable[[], object]]) -> Cost:
    times: list[float] = []
    for _ in range(ROUNDS):
        for call in calls:
            begun = time.process_time()
            call()
            times.append(time.process_time() - begun)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    store.set_progress_handler(count, 1)
    for call in calls:
        call()
    store.set_progress_handler(None, 1)
    return Cost(steps / len(calls), statistics.median(times) * 1000)
