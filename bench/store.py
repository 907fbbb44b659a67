"""The store: durable appends, and names resolved on disk in fleets of growing size."""

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.figure import Figure, microseconds
from bench.names import FLAT, NOW, agent_number, endpoint_of, name_of, try_resolve
from scout.base.ids import derive_id
from scout.model.conversation import MessageKind
from scout.model.events.envelope import Changed
from scout.model.events.presence import AgentRegistered, EndpointRegistered
from scout.model.events.talk import MessagePosted, Posted
from scout.model.ref import Ref
from scout.store.database import Database, connect
from scout.store.directory import StoredDirectory, View
from scout.store.ledger import Ledger
from scout.store.log import read_last_seq
from scout.store.migrate import migrate
from scout.store.unit_of_work import UnitOfWork, append

SIZES = (100, 10_000, 100_000)
BODY = "word " * 35
SENDER = Ref.to(derive_id("agt", "sender"))


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder:
        for tasks in (1, 32):
            rate = asyncio.run(_rate(Path(folder) / f"{tasks}.db", tasks))
            yield Figure(name=f"messages appended, {tasks} waiting, synced", result=rate, unit="/s")
        yield from _resolving(Path(folder))


async def _rate(path: Path, tasks: int) -> float:
    """Messages per second through the writer, each answered when it is on disk."""
    database = Database(path)
    each = 3_200 // tasks

    async def sender(number: int) -> None:
        for index in range(each):
            await database.write(_message(f"{number}.{index}"))

    start = time.perf_counter()
    await asyncio.gather(*(sender(number) for number in range(tasks)))
    elapsed = time.perf_counter() - start
    await database.close()
    return each * tasks / elapsed


def _message(name: str) -> Callable[[UnitOfWork], None]:
    def work(unit: UnitOfWork) -> None:
        event = MessagePosted(
            id=derive_id("evt", name),
            seq=(unit.last_seq or read_last_seq(unit.connection)) + 1,
            time=NOW,
            source=SENDER,
            target=Ref.to(derive_id("cnv", name[-1:])),
            payload=Posted(message_id=derive_id("msg", name), text=BODY, kind=MessageKind.CHAT),
        )
        unit.events.append(event)

    return work


def _resolving(folder: Path) -> Iterator[Figure]:
    times: dict[str, list[float]] = {}
    for size in SIZES:
        connection = connect(folder / f"fleet{size}.db")
        migrate(connection)
        _fill(connection, size)
        directory = StoredDirectory(Ledger(connection, node="mini"), View("me", everybody=True), NOW)
        for name, text in (("hit", f"@{name_of(size // 2)}"), ("miss", "@zzzzzz")):
            result = microseconds(partial(try_resolve, text, directory), 100)
            times.setdefault(name, []).append(result)
            yield Figure(name=f"resolve {name} on disk, {size:,} agents", result=result, unit="us")
        connection.close()
    for name, found in times.items():
        ratio = found[-1] / found[0]
        yield Figure(name=f"resolve {name} on disk: 100,000 against 100", result=ratio, unit="x", goal=FLAT)


def _fill(connection: sqlite3.Connection, size: int) -> None:
    connection.execute("BEGIN")
    for number in range(size):
        one = agent_number(number)
        way = endpoint_of(one)
        append(connection, AgentRegistered(payload=Changed(record=one), **_envelope(2 * number + 1, one.id)))
        append(
            connection, EndpointRegistered(payload=Changed(record=way), **_envelope(2 * number + 2, way.id))
        )
    connection.execute("COMMIT")


def _envelope(seq: int, ident: str) -> dict[str, Any]:
    return {
        "id": derive_id("evt", str(seq)),
        "seq": seq,
        "time": NOW,
        "source": SENDER,
        "target": Ref.to(ident),
    }
