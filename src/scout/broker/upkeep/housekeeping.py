"""Periodic work: sweeps, warm sessions, the search index, old receipts, disk caps."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from scout.broker.delivery.dispatcher import Dispatching
from scout.broker.delivery.terminals import HostProcesses
from scout.broker.effects import budget
from scout.broker.past.archiver import Archiver
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
from scout.policy.limits import Gap, measure_gap
from scout.ports import SessionFolders
from scout.store import search
from scout.store.ledger import LAST, Ledger

_LOG = logging.getLogger("scout.housekeeping")
_EVERY = 1.0
_SOME = 200
_FLUSH = 15  # seconds between writing signs of life to their rows
_CAPS = 3  # seconds between checks of run output on disk
_LOOK = 60  # seconds between checks of harnesses that were not ready
_ARCHIVE = 3600  # seconds between checks of the age of the log; the first is a minute after the start


_MANY = 1000
_REST = 20  # pause after a check, as a multiple of its duration
_PANE = "pane"  # needed until its session has ended


class KeptBroker(Dispatching, Protocol):
    """The broker with the parts that housekeeping calls."""

    warm_keeper: WarmKeeper
    disk_caps: "DiskCaps"
    archiver: Archiver
    host_processes: HostProcesses
    signs_of_life: dict[str, Endpoint]
    counts: dict[str, Counters]
    refusal_tokens: dict[str, int]

    async def probe(self, *, again: bool = False) -> None: ...


class _Sleep:
    """Detects that the machine slept: the wall clock moved and the monotonic clock did not."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._clock = clock = services.clock
        self._before, self._ticks = clock.now(), clock.monotonic()
        self._gap: Gap | None = None
        self.went_back = True  # it may have slept before the broker started

    def last(self) -> Gap | None:
        """Return the last time the machine slept, if it did."""
        now, ticks = self._clock.now(), self._clock.monotonic()
        jump = measure_gap(self._before, now, ticks - self._ticks)
        self._before, self._ticks = now, ticks
        least = self._services.rules.periods.wall_clock_gap
        if jump.seconds > least:
            self._gap = jump
        elif jump.seconds < -least:
            self._gap, self.went_back = None, True
        return self._gap


async def keep(broker: KeptBroker, check: Callable[[], None], every: float = _EVERY) -> None:
    """Run a round every second until cancelled. A fault in one round does not stop the next."""
    sleep = _Sleep(broker.services)
    beat = 0
    while True:
        await asyncio.sleep(every)
        beat += 1
        gap = sleep.last()
        if sleep.went_back:
            sleep.went_back = False
            await _log_faults(sweeper.reschedule_after_clock_step(broker))
        await _log_faults(_run_round(broker, check, gap))
        if beat % _FLUSH == 0:
            await _log_faults(flush(broker))
        if beat % _CAPS == 0:
            await _log_faults(broker.disk_caps.check())
        if beat % _LOOK == 0:
            await _log_faults(broker.probe(again=True))
        if beat % _ARCHIVE == _LOOK:
            archive_old(broker)


def archive_old(broker: KeptBroker) -> None:
    """Archive what is older than the setting says, and finish a run that was interrupted."""
    after = broker.services.rules.retention.archive_after
    broker.archiver.archive_by_age(broker.services.clock.now().plus(-after) if after is not None else None)


async def _run_round(broker: KeptBroker, check: Callable[[], None], gap: Gap | None) -> None:
    check()
    await tidy(broker, gap)


async def _log_faults(work: Awaitable[None]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 (it is logged; the next round follows)
        _LOG.exception("housekeeping")


async def tidy(broker: KeptBroker, gap: Gap | None = None) -> None:
    """Run one round; it writes only if there is something to write."""
    now = broker.services.clock.now()
    await sweeper.sweep(broker, gap)
    await broker.warm_keeper.check()
    await broker.host_processes.check()
    while await broker.read(lambda ledger: search.is_behind(ledger.connection)):
        await broker.as_system(lambda tx: search.index_events(tx.ledger.connection, _SOME))
    old = now.plus(-broker.services.rules.periods.idempotency_keys)
    if await broker.read(lambda ledger: ledger.has_older_answers(old)):
        await broker.as_system(lambda tx: tx.ledger.forget_answers(old, _SOME))


async def flush(broker: KeptBroker) -> None:
    """Write what is kept in memory: signs of life as rows, counts as one report per agent."""
    seen, counts = list(broker.signs_of_life.values()), dict(broker.counts)
    broker.counts.clear()
    tokens = dict(broker.refusal_tokens)
    broker.refusal_tokens.clear()
    if seen:
        await broker.as_system(lambda tx: _refresh(tx, seen))
    for endpoint in seen:  # readers use the sign until its row is written
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
    """Removes old run output when turns have run, and spends little time on it."""

    def __init__(self, broker: Dispatching) -> None:
        self._broker = broker
        self._checked_at: tuple[int, int] | None = None
        self._not_before = 0.0

    async def check(self) -> None:
        """Remove what exceeds the caps, if there may be anything new."""
        clock = self._broker.services.clock
        began = clock.monotonic()
        dispatcher = self._broker.dispatcher
        now = dispatcher.runner.turns, dispatcher.lanes
        if began < self._not_before or (now == self._checked_at and not dispatcher.lanes):
            return
        for folders, cap in self._list_caps():
            await self._enforce_cap(folders, cap)
        self._checked_at = now
        self._not_before = began + _REST * (clock.monotonic() - began)

    def _list_caps(self) -> list[tuple[SessionFolders, int]]:
        services, limits = self._broker.services, self._broker.services.rules.limits
        pairs = [(services.runs, limits.run_output_total), (services.snapshots, limits.pictures_total)]
        return [(folders, cap) for folders, cap in pairs if folders is not None]

    async def _enforce_cap(self, folders: SessionFolders, cap: int) -> None:
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
    """Whether a session still works on something that a later broker would look up there."""
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
