"""What one operation costs: calls, statements, encoded values, bytes and commits.

None of them depends on the machine or on what else it does, so a test can assert them. What runs beside the
operations (housekeeping, checkpoints) is stopped while they are counted.
"""

import asyncio
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import msgspec

from tests.broker.rig import Rig

_ENCODERS = (msgspec.json.Encoder.encode.__qualname__, msgspec.json.Encoder.encode_lines.__qualname__)
_TESTS = f"{Path(__file__).parents[1]}/"
_LITERAL = re.compile(r"'(?:[^']|'')*'|\b\d+\b|[xX]'[0-9A-Fa-f]*'|NULL")
_SHOWN = 110  # characters of a statement


class Cost(NamedTuple):
    """What one operation costs on average.

    `encodes`: calls of an encoder; one call encodes all events, or all records, of a commit group.
    `calls`: of Python and C functions on the thread of the loop, without those of the tests. `statements`: of
    the writer, each row counts. `log_bytes`: the data of the events. `wal_bytes`: what was written to the disk.
    """

    calls: float
    encodes: float
    statements: float
    selects: float
    log_bytes: float
    wal_bytes: float
    commits: float


class Counting:
    """Counts while it is open: calls and encoded values, or statements; counting one adds to the other."""

    def __init__(self, rig: Rig, *, calls: bool) -> None:
        self._database = rig.broker._database
        self._path = rig.home / "scout.db"
        self._counts_calls = calls
        self.functions: Counter[str] = Counter()
        self.statements: Counter[str] = Counter()
        self._before = (0, 0, 0)

    def __enter__(self) -> "Counting":
        self._before = self._measure()
        if self._counts_calls:
            sys.setprofile(self._on_call)
        else:
            self._database.trace(self._on_statement)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        self._database.trace(None)

    def compute_cost(self, operations: int) -> Cost:
        """Return the cost of one of these operations, by what was counted."""
        selects = sum(count for text, count in self.statements.items() if text.startswith("SELECT"))
        counts = (
            self.functions.total(),
            sum(self.functions[name] for name in _ENCODERS),
            self.statements.total(),
            selects,
            *(now - before for now, before in zip(self._measure(), self._before, strict=True)),
        )
        return Cost(*(count / operations for count in counts))

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and not frame.f_code.co_filename.startswith(_TESTS):
            self.functions[frame.f_code.co_qualname] += 1
        elif event == "c_call" and not frame.f_code.co_filename.startswith(_TESTS):
            self.functions[argument.__qualname__] += 1

    def _on_statement(self, text: str) -> None:
        if not text.startswith("--"):  # the statement of a trigger
            self.statements[_LITERAL.sub("?", " ".join(text.split()))[:_SHOWN]] += 1

    def _measure(self) -> tuple[int, int, int]:
        """The bytes of the log, of the write-ahead log, and the commits."""
        connection = sqlite3.connect(self._path)
        (log,) = connection.execute("SELECT coalesce(sum(length(data)), 0) FROM events").fetchone()
        connection.close()
        return int(log), Path(f"{self._path}-wal").stat().st_size, self._database.commits


async def stop_background(rig: Rig) -> None:
    """End what would be counted by chance: housekeeping, the history behind the log, and checkpoints."""
    keeper = rig.broker._keeper
    assert keeper is not None
    keeper.cancel()
    await asyncio.gather(keeper, return_exceptions=True)
    await rig.broker.history.close()
    rig.broker._database._checkpointer.close()


async def count(
    rig: Rig, work: Callable[[int], Awaitable[object]], *, together: int, rounds: int, warm: int
) -> tuple[Cost, Counting, Counting]:
    """Return what one call of `work` costs while some callers wait together, and how it was counted.

    `work` gets the number of the call. The first `warm` rounds are not counted.
    """
    number = 0

    async def run(times: int) -> int:
        nonlocal number
        for _ in range(times):
            await asyncio.gather(*(work(number + place) for place in range(together)))
            number += together
        return times * together

    await stop_background(rig)
    await run(warm)
    with Counting(rig, calls=True) as calls:
        done = await run(rounds)
    first = calls.compute_cost(done)
    with Counting(rig, calls=False) as statements:
        await run(rounds)
    second = statements.compute_cost(done)
    return second._replace(calls=first.calls, encodes=first.encodes), calls, statements
