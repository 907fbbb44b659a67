"""What has to be done from time to time: sweeping, sessions to keep warm, the search index, old receipts."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from scout.broker.delivery.terminals import Terminals
from scout.broker.effects import budget
from scout.broker.sessions.host_processes import HostProcesses
from scout.broker.sessions.keep_warm import WarmKeeper
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.broker.upkeep import sweeper
from scout.broker.upkeep.disk_caps import DiskCaps
from scout.model.endpoint import Endpoint
from scout.model.usage import Counters
from scout.policy.limits import Gap, gap_between
from scout.store import receipts, search

_LOG = logging.getLogger("scout.housekeeping")
_EVERY = 1.0
_SOME = 200
_FLUSH = 15  # seconds between writing signs of life to their rows
_CAPS = 3  # seconds between looks at what runs left on the disk, if there were any
_LOOK = 60  # seconds between looks at harnesses that lacked something


class House(sweeper.House, Protocol):
    """The broker, as far as this looks at it."""

    warming: WarmKeeper
    disk_caps: DiskCaps
    terminals: Terminals
    host_processes: HostProcesses
    signs_of_life: dict[str, Endpoint]
    counts: dict[str, Counters]
    refusal_tokens: dict[str, int]

    async def as_system(self, work: Callable[[Transaction], Any]) -> Any: ...
    async def probe(self, *, again: bool = False) -> None: ...


class _Sleep:
    """Notices that the machine slept: the wall clock went on, and the running clock did not."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._clock = clock = services.clock
        self._before, self._ticks = clock.now(), clock.monotonic()
        self._gap: Gap | None = None
        self.went_back = True  # or it may have, before the broker started

    def last(self) -> Gap | None:
        """The last time it slept, if it ever did."""
        now, ticks = self._clock.now(), self._clock.monotonic()
        jump = gap_between(self._before, now, ticks - self._ticks)
        self._before, self._ticks = now, ticks
        least = self._services.rules.periods.wall_clock_gap
        if jump.seconds > least:
            self._gap = jump
        elif jump.seconds < -least:
            self._gap, self.went_back = None, True
        return self._gap


async def keep(house: House, check: Callable[[], None], every: float = _EVERY) -> None:
    """A round every second, until cancelled. A fault of one round does not stop the next."""
    sleep = _Sleep(house.services)
    beat = 0
    while True:
        await asyncio.sleep(every)
        beat += 1
        gap = sleep.last()
        if sleep.went_back:
            sleep.went_back = False
            await _safely(sweeper.reschedule_after_clock_step(house))
        await _safely(_round(house, check, gap))
        if beat % _FLUSH == 0:
            await _safely(flush(house))
        if beat % _CAPS == 0:
            await _safely(house.disk_caps.check())
        if beat % _LOOK == 0:
            await _safely(house.probe(again=True))


async def _round(house: House, check: Callable[[], None], gap: Gap | None) -> None:
    check()
    await tidy(house, gap)


async def _safely(work: Awaitable[None]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 (the next round comes; it is logged)
        _LOG.exception("housekeeping")


async def tidy(house: House, gap: Gap | None = None) -> None:
    """One round: it writes only when there is something to write."""
    now = house.services.clock.now()
    await sweeper.sweep(house, gap)
    await house.warming.check()
    await house.terminals.check()
    await house.host_processes.check()
    while await house.read(lambda ledger: search.is_behind(ledger.connection)):
        await house.as_system(lambda tx: search.feed(tx.ledger.connection, _SOME))
    old = now.plus(-house.services.rules.periods.idempotency_keys)
    if await house.read(lambda ledger: receipts.has_older(ledger.connection, old)):
        await house.as_system(lambda tx: receipts.forget(tx.ledger.connection, old, _SOME))


async def flush(house: House) -> None:
    """Write what was kept in memory: signs of life as rows only, counts as one report for each agent."""
    seen, counts = list(house.signs_of_life.values()), dict(house.counts)
    house.counts.clear()
    tokens = dict(house.refusal_tokens)
    house.refusal_tokens.clear()
    if seen:
        await house.as_system(lambda tx: _refresh(tx, seen))
    for endpoint in seen:  # until its row is written, the sign itself is what is read
        if house.signs_of_life.get(endpoint.id) is endpoint:
            del house.signs_of_life[endpoint.id]
    if counts:
        await house.as_system(lambda tx: budget.record_counts(tx, counts, tokens))


def _refresh(tx: Transaction, seen: list[Endpoint]) -> None:
    for endpoint in seen:
        current = tx.ledger.get(Endpoint, endpoint.id)
        if current is not None and current.revision == endpoint.revision:
            tx.ledger.refresh(endpoint)
            tx.memory.forget()
