"""Runs schedules when they are due. Its cost follows what is due, not how many schedules there are.

The next time is kept in memory: it is read from an index after each round, and lowered by the events of
schedules that change. Until then nothing is read. Housekeeping looks at the clock every second, because the
machine may have slept or its clock may have been set.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import tzinfo
from typing import NamedTuple, Protocol

from scout.base.refusal import BadRequest, Diagnostic, Refused
from scout.base.time import Time
from scout.broker.people import runs
from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.call import Transactions, retry_until_stored
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.events.directory import NodeEvent, ScheduleEvent
from scout.model.people.schedule import Schedule
from scout.policy.limits import measure_gap
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.schedules")
_LOOK = 5.0  # seconds between two looks at the clock
_RETRY = 60.0  # seconds until a schedule is looked at again after a fault
_SOME = 100
_MANY = 10_000


class RunnerBroker(Transactions, Protocol):
    """The broker with what a runner waits for."""

    async def wait_for_probe(self) -> None: ...


class _Due(NamedTuple):
    """A schedule that is due, and its cron agent as an actor."""

    schedule: Schedule
    who: Admitted


class ScheduleRunner:
    """One for each broker. `run_due` can also be called directly; rounds do not overlap."""

    def __init__(self, broker: RunnerBroker) -> None:
        self._broker = broker
        self._services = broker.services
        self._next: Time | None = None
        self._zones: dict[str, tzinfo] = {}
        self._changed = asyncio.Event()
        self._round = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        clock = broker.services.clock
        self._before, self._ticks = clock.now(), clock.monotonic()

    def start(self) -> None:
        """Begin with what became due while no daemon ran."""
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def on_schedule(self, event: ScheduleEvent) -> None:
        """Wake earlier if a schedule is due before the next known time."""
        at = event.payload.record.next_at
        if at is not None and (self._next is None or at < self._next):
            self._next = at
            self._changed.set()

    def on_node(self, _: NodeEvent) -> None:
        """Look at once when a pause ends."""
        self._changed.set()

    def check(self) -> None:
        """Wake if something is due earlier than the wait assumed."""
        services = self._services
        if services.paused is None and self._next is not None and self._next <= services.clock.now():
            self._changed.set()

    # -- waiting -------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Wait for the next time and run what is due, until cancelled."""
        await self._broker.wait_for_probe()
        await self._log_faults(self.plan_ahead_again())
        await self._log_faults(self.run_due())
        while True:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._measure_wait()):
                    await self._changed.wait()
            if self._has_stepped_back():
                await self._log_faults(self.plan_ahead_again())
            if self._next is not None and self._next <= self._services.clock.now():
                await self._log_faults(self.run_due())

    def _measure_wait(self) -> float:
        left = self._next.since(self._services.clock.now()) if self._next is not None else _LOOK
        return min(max(left, 0.0), _LOOK) if self._services.paused is None else _LOOK

    def _has_stepped_back(self) -> bool:
        """Whether the clock was set back since the last look."""
        now, ticks = self._services.clock.now(), self._services.clock.monotonic()
        jump = measure_gap(self._before, now, ticks - self._ticks)
        self._before, self._ticks = now, ticks
        return jump.seconds < -self._services.rules.periods.wall_clock_gap

    async def _log_faults(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception:  # noqa: BLE001 (it is logged; the next look follows)
            _LOG.exception("running schedules")
            self._next = self._services.clock.now().plus(_RETRY)

    # -- running -------------------------------------------------------------------------------------

    async def run_due(self) -> None:
        """Run every schedule that is due now; nothing during a pause."""
        async with self._round:
            stuck = set[str]()
            while self._services.paused is None:
                due = [one for one in await self._find_due() if one.schedule.id not in stuck]
                if not due:
                    break
                moved = await asyncio.gather(*(self._handle_due(one) for one in due))
                stuck |= {one.schedule.id for one, done in zip(due, moved, strict=True) if not done}
            await self._find_next(stuck=bool(stuck))

    async def _find_due(self) -> list[_Due]:
        now = int(self._services.clock.now())

        def read(ledger: Ledger) -> list[_Due]:
            found = ledger.many(Schedule, "schedules_due", now=now, limit=_SOME)
            agents = [(one, ledger.get(Agent, one.agent_id)) for one in found]
            return [
                _Due(one, runs.admit_cron_agent(self._services, ledger, agent))
                for one, agent in agents
                if agent is not None
            ]

        return await self._broker.read(read)

    async def _find_next(self, *, stuck: bool) -> None:
        """Read when the next schedule is due. An event that comes meanwhile may name an earlier time."""
        self._next = None
        at: int | None = await self._broker.read(lambda ledger: ledger.value("schedules_next"))
        times = [Time(at)] if at is not None else []
        times += [self._next] if self._next is not None else []
        self._next = min(times, default=None)
        if stuck:
            self._next = self._services.clock.now().plus(_RETRY)

    async def _handle_due(self, due: _Due) -> bool:
        """Do what is due for one schedule, and return whether it was moved. A fault is told to the owner."""
        ident, problem = due.schedule.id, None
        try:
            zone = await self._load_zone(due.schedule.time_zone)
        except Refused as refusal:
            unknown = refusal.diagnostic
            return await self._report(due, lambda tx: runs.pause_without_zone(tx, ident, unknown))
        try:
            await self._write(due, lambda tx: runs.handle_due(tx, ident, zone))
        except Refused as refusal:
            problem = refusal.diagnostic
        except Exception as error:  # noqa: BLE001 (it is logged, and the owner is told)
            _LOG.exception("running %s", ident)
            problem = BadRequest(problem=f"Scout failed: {error}")
        if problem is None:
            return True
        refused: Diagnostic = problem
        return await self._report(due, lambda tx: runs.record_failure(tx, ident, zone, refused))

    async def _report(self, due: _Due, work: Callable[[Transaction], None]) -> bool:
        try:
            await self._write(due, work)
        except Exception:  # noqa: BLE001 (it is logged, and the schedule is looked at again later)
            _LOG.exception("reporting the failure of %s", due.schedule.id)
            return False
        return True

    async def _write(self, due: _Due, work: Callable[[Transaction], None]) -> None:
        """Write in the name of the cron agent; on a full disk, retry until there is room."""
        back_off = self._services.rules.back_off
        await retry_until_stored(lambda: self._broker.write(due.who, work), back_off)

    async def _load_zone(self, name: str) -> tzinfo:
        if name not in self._zones:
            self._zones[name] = await asyncio.to_thread(self._services.zones.load, name)
        return self._zones[name]

    # -- a clock that was set back -------------------------------------------------------------------

    async def plan_ahead_again(self) -> None:
        """Plan the schedules again that were changed while the clock was ahead of now."""
        now = int(self._services.clock.now())
        ahead = await self._broker.read(
            lambda ledger: ledger.many(Schedule, "schedules_ahead", now=now, limit=_MANY)
        )
        for schedule in ahead:
            await self._plan_again(schedule)

    async def _plan_again(self, schedule: Schedule) -> None:
        with suppress(Refused):  # an unknown zone is reported when the schedule is due
            zone = await self._load_zone(schedule.time_zone)
            await self._broker.as_system(lambda tx: runs.plan_run_again(tx, schedule.id, zone))
