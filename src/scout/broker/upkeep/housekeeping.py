"""What has to be done from time to time: sweeping, sessions to keep warm, the search index, old receipts."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from scout.broker.delivery.dispatcher import Dispatching
from scout.broker.delivery.terminals import Terminals
from scout.broker.effects import budget
from scout.broker.sessions.host_processes import HostProcesses
from scout.broker.sessions.keep_warm import WarmKeeper
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.broker.upkeep import sweeper
from scout.model.delivery import Delivery, DeliveryState
from scout.model.endpoint import Endpoint
from scout.model.flight import Flight
from scout.model.session import SESSION, Session, SessionState
from scout.model.usage import Counters
from scout.policy.disk import StoredFolder, choose_removals
from scout.policy.limits import Gap, gap_between
from scout.ports import SessionFolders
from scout.store import receipts, search
from scout.store.ledger import LAST, Ledger

_LOG = logging.getLogger("scout.housekeeping")
_EVERY = 1.0
_SOME = 200
_FLUSH = 15  # seconds between writing signs of life to their rows
_CAPS = 3  # seconds between looks at what runs left on the disk, if there were any
_LOOK = 60  # seconds between looks at harnesses that lacked something


_MANY = 1000
_REST = 20  # times as long as a look takes, nobody looks again
_PANE = "pane"  # the one folder that a session needs until it has ended


class KeptBroker(Dispatching, Protocol):
    """The broker with what is looked after from time to time."""

    warming: WarmKeeper
    disk_caps: "DiskCaps"
    terminals: Terminals
    host_processes: HostProcesses
    signs_of_life: dict[str, Endpoint]
    counts: dict[str, Counters]
    refusal_tokens: dict[str, int]

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


async def keep(broker: KeptBroker, check: Callable[[], None], every: float = _EVERY) -> None:
    """A round every second, until cancelled. A fault of one round does not stop the next."""
    sleep = _Sleep(broker.services)
    beat = 0
    while True:
        await asyncio.sleep(every)
        beat += 1
        gap = sleep.last()
        if sleep.went_back:
            sleep.went_back = False
            await _safely(sweeper.reschedule_after_clock_step(broker))
        await _safely(_round(broker, check, gap))
        if beat % _FLUSH == 0:
            await _safely(flush(broker))
        if beat % _CAPS == 0:
            await _safely(broker.disk_caps.check())
        if beat % _LOOK == 0:
            await _safely(broker.probe(again=True))


async def _round(broker: KeptBroker, check: Callable[[], None], gap: Gap | None) -> None:
    check()
    await tidy(broker, gap)


async def _safely(work: Awaitable[None]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 (the next round comes; it is logged)
        _LOG.exception("housekeeping")


async def tidy(broker: KeptBroker, gap: Gap | None = None) -> None:
    """One round: it writes only when there is something to write."""
    now = broker.services.clock.now()
    await sweeper.sweep(broker, gap)
    await broker.warming.check()
    await broker.terminals.check()
    await broker.host_processes.check()
    while await broker.read(lambda ledger: search.is_behind(ledger.connection)):
        await broker.as_system(lambda tx: search.feed(tx.ledger.connection, _SOME))
    old = now.plus(-broker.services.rules.periods.idempotency_keys)
    if await broker.read(lambda ledger: receipts.has_older(ledger.connection, old)):
        await broker.as_system(lambda tx: receipts.forget(tx.ledger.connection, old, _SOME))


async def flush(broker: KeptBroker) -> None:
    """Write what was kept in memory: signs of life as rows only, counts as one report for each agent."""
    seen, counts = list(broker.signs_of_life.values()), dict(broker.counts)
    broker.counts.clear()
    tokens = dict(broker.refusal_tokens)
    broker.refusal_tokens.clear()
    if seen:
        await broker.as_system(lambda tx: _refresh(tx, seen))
    for endpoint in seen:  # until its row is written, the sign itself is what is read
        if broker.signs_of_life.get(endpoint.id) is endpoint:
            del broker.signs_of_life[endpoint.id]
    if counts:
        await broker.as_system(lambda tx: budget.record_counts(tx, counts, tokens))


def _refresh(tx: Transaction, seen: list[Endpoint]) -> None:
    for endpoint in seen:
        current = tx.get(Endpoint, endpoint.id)
        if current is not None and current.revision == endpoint.revision:
            tx.ledger.refresh(endpoint)
            tx.cache.forget()


class DiskCaps:
    """Looks when turns have run since the last look, and for a small part of the time only."""

    def __init__(self, broker: Dispatching) -> None:
        self._broker = broker
        self._looked_at: tuple[int, int] | None = None
        self._not_before = 0.0

    async def check(self) -> None:
        """Remove what is too much, if there may be something new."""
        clock = self._broker.services.clock
        began = clock.monotonic()
        dispatcher = self._broker.dispatcher
        now = dispatcher.runner.turns, dispatcher.lanes
        if began < self._not_before or (now == self._looked_at and not dispatcher.lanes):
            return
        for folders, cap in self._capped():
            await self._hold(folders, cap)
        self._looked_at = now
        self._not_before = began + _REST * (clock.monotonic() - began)

    def _capped(self) -> list[tuple[SessionFolders, int]]:
        services, limits = self._broker.services, self._broker.services.rules.limits
        pairs = [(services.runs, limits.run_output_total), (services.snapshots, limits.pictures_total)]
        return [(folders, cap) for folders, cap in pairs if folders is not None]

    async def _hold(self, folders: SessionFolders, cap: int) -> None:
        stored = await asyncio.to_thread(folders.list_stored)
        if sum(one.size for one in stored) <= cap:
            return
        chosen: tuple[StoredFolder, ...] = await self._broker.read(
            lambda ledger: choose_removals(stored, cap, lambda one: _is_needed(ledger, one))
        )
        await asyncio.to_thread(_remove, folders, chosen)


def _remove(folders: SessionFolders, chosen: tuple[StoredFolder, ...]) -> None:
    for one in chosen:
        try:
            folders.remove(one)
        except OSError:
            _LOG.exception("removing %s of %s", one.name, one.session_id)


def _is_needed(ledger: Ledger, folder: StoredFolder) -> bool:
    """Whether its session still works on something that a later broker would look up there."""
    session = ledger.get(Session, folder.session_id)
    if session is None:
        return False
    if session.state is SessionState.STARTING or (folder.name == _PANE and not _has_ended(session)):
        return True
    flights = ledger.many(Flight, "flights_open_to", agent=session.agent_id, before=LAST, limit=_MANY)
    if any(flight.session_id == session.id for flight in flights):
        return True
    waiting = ledger.many(Delivery, "inbox", agent=session.agent_id, after="", limit=_MANY)
    return any(_is_under_way(one, session) for one in waiting)


def _has_ended(session: Session) -> bool:
    return session.state in SESSION.settled or session.state is SessionState.LOST


def _is_under_way(delivery: Delivery, session: Session) -> bool:
    holders = (delivery.leased_by, delivery.session_id)
    return delivery.state is DeliveryState.LEASED and session.id in holders
