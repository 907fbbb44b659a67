"""Carrying deliveries to the programs that run agents: it follows the log, so nothing is woken too early.

One lane per agent, so that the turns of a session follow each other. Everything here may happen
twice: the delivery id makes a turn the same turn.
"""

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from scout.base.refusal import Refused
from scout.broker import holding, preparing, recovery, turns
from scout.broker.turn import Turn
from scout.broker.turns import Opening, Prepared
from scout.broker.world import World
from scout.model.ask_event import (
    DeliveryFailed,
    DeliveryNacked,
    DeliveryRequested,
    FlightCancelled,
    FlightFailed,
)
from scout.model.delivery import Delivery, DeliveryState, Found
from scout.model.envelope import Event
from scout.model.flight import Flight
from scout.model.presence_event import AgentOnline, AgentUpdated
from scout.model.session_problem import Layer
from scout.ports import (
    Accepted,
    Completed,
    Failed,
    Harness,
    HarnessEvent,
    Progress,
    Said,
    Spent,
    Started,
    ToolUse,
)
from scout.store.ledger import Ledger

__all__ = ["Dispatcher", "failure_of"]

_LOG = logging.getLogger("scout.dispatch")
_Carry = tuple[str, Callable[[str], Awaitable[None]]]
_Pair = tuple[HarnessEvent, HarnessEvent | None]
S = TypeVar("S", bound=Opening)
_NOTED = 1.0  # a sign of life is stored at most this often


class Dispatcher:
    """`write` runs a function of a Turn as the broker itself; `read` runs one of a Ledger."""

    def __init__(
        self,
        world: World,
        write: Callable[[Callable[[Turn], Any]], Awaitable[Any]],
        read: Callable[[Callable[[Ledger], Any]], Awaitable[Any]],
    ) -> None:
        self._world = world
        self._write = write
        self._read = read
        self._lanes: dict[str, deque[_Carry]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, Prepared] = {}
        self._preparing = 0
        self._over: set[str] = set()  # flights that ended while a turn was being prepared
        self._due: list[tuple[int, str, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self.turns = 0

    # -- following the log -----------------------------------------------------------------------

    def heard(self, event: Event) -> None:
        """A fact was committed."""
        if isinstance(event, DeliveryRequested | DeliveryNacked | DeliveryFailed):
            self._schedule(event.payload.record)
        elif isinstance(event, FlightCancelled | FlightFailed):
            flight = event.payload.record
            gave_up = isinstance(event, FlightFailed) and event.payload.by == flight.target
            if not gave_up:  # else its program has said so, and ends its own turn
                self._interrupt(flight)
        elif isinstance(event, AgentOnline | AgentUpdated):
            self.enqueue(event.target.id, event.target.id, self._release)

    def _schedule(self, delivery: Delivery) -> None:
        if not delivery.wake or delivery.state is not DeliveryState.PENDING:
            return
        if delivery.next_attempt_at <= self._world.clock.now():
            self.enqueue(delivery.target, delivery.id, self._carry)
        else:
            heapq.heappush(self._due, (int(delivery.next_attempt_at), delivery.target, delivery.id))
            self._arm()

    def _arm(self) -> None:
        """Wake up when the next delayed delivery is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due and not self._closed:
            wait = (self._due[0][0] - self._world.clock.now()) / 1_000_000
            self._timer = asyncio.get_running_loop().call_later(max(wait, 0.0), self.check)

    def check(self) -> None:
        """Take up what has become due; also after the clock has jumped."""
        now = self._world.clock.now()
        while self._due and self._due[0][0] <= now:
            _, target, ident = heapq.heappop(self._due)
            self.enqueue(target, ident, self._carry)
        self._arm()

    def enqueue(self, lane: str, ident: str, carry: Callable[[str], Awaitable[None]]) -> None:
        """Do something for an agent after what is under way for it."""
        if self._closed:
            return
        self._lanes.setdefault(lane, deque()).append((ident, carry))
        if lane not in self._tasks:
            self._tasks[lane] = asyncio.get_running_loop().create_task(self._drain(lane))

    @property
    def lanes(self) -> int:
        """For how many agents something is under way."""
        return len(self._lanes)

    def _interrupt(self, flight: Flight) -> None:
        """A flight that ended while its program runs: nobody needs the rest of the turn."""
        if self._preparing:
            self._over.add(flight.id)
        for prepared in self._running.values():
            if prepared.flight_id == flight.id:
                prepared.unwanted = True
                if prepared.accepted and not prepared.done:  # else as soon as it is
                    self._background(prepared)

    def _background(self, prepared: Prepared) -> None:
        async def stop() -> None:
            harness = self._world.harnesses[prepared.harness]
            try:
                await harness.interrupt(prepared.spec.session_id, prepared.prompt.delivery_id)
            except Exception:  # noqa: BLE001 (the turn goes on; it is logged)
                _LOG.exception("interrupting %s", prepared.delivery_id)

        task = asyncio.get_running_loop().create_task(stop())
        self._tasks[f"background {id(task)}"] = task
        task.add_done_callback(lambda done: self._tasks.pop(f"background {id(done)}", None))

    # -- one lane --------------------------------------------------------------------------------

    async def _drain(self, lane: str) -> None:
        queue = self._lanes[lane]
        try:
            while queue and not self._closed:
                ident, carry = queue.popleft()
                try:
                    await carry(ident)
                except Refused as refusal:
                    _LOG.warning("delivery %s: %s", ident, refusal)
                except Exception:  # noqa: BLE001 (the lane goes on; it is logged)
                    _LOG.exception("delivery %s", ident)
        finally:
            del self._tasks[lane]
            if queue and not self._closed:
                self._tasks[lane] = asyncio.get_running_loop().create_task(self._drain(lane))
            else:
                self._lanes.pop(lane, None)

    async def _release(self, agent_id: str) -> None:
        """An agent is there, or is reached in another way now: what was held for it may go on."""
        if await self._read(lambda ledger: holding.held(ledger, agent_id)):
            await self._write(lambda turn: holding.release(turn, agent_id))

    async def _carry(self, ident: str) -> None:
        await self._turn(ident, preparing.prepare)

    async def _resume(self, ident: str) -> None:
        await self._turn(ident, preparing.resume)

    async def _turn(self, ident: str, prepare: Callable[[Turn, str], Prepared | None]) -> None:
        prepared = await self._prepared(ident, prepare)
        if prepared is None:
            return
        self.turns += 1
        try:
            await self._run(prepared)
        finally:
            prepared.done = True
            del self._running[ident]

    async def _prepared(self, ident: str, prepare: Callable[[Turn, str], Prepared | None]) -> Prepared | None:
        """The turn, known to whoever cancels it even if that was committed together with it."""
        self._preparing += 1
        try:
            prepared: Prepared | None = await self._write(lambda turn: prepare(turn, ident))
        except Exception as error:  # noqa: BLE001 (a delivery is never left without a next step)
            problem = failure_of(error, Layer.BROKER)
            await self._write(lambda turn: turns.unprepared(turn, ident, problem))
            return None
        else:
            if prepared is not None:
                prepared.unwanted = prepared.unwanted or prepared.flight_id in self._over
                self._running[ident] = prepared
            return prepared
        finally:
            self._preparing -= 1
            if not self._preparing:
                self._over.clear()

    async def _run(self, prepared: Prepared) -> None:
        harness = self._world.harnesses[prepared.harness]
        renewing = asyncio.get_running_loop().create_task(self._renew(prepared))
        try:
            problem = await self._start(prepared, harness)
            if problem is None and prepared.unwanted and not prepared.accepted:
                problem = Failed(layer=Layer.SESSION, reason="nobody needs it any more")
            if problem is not None:
                await self._write(lambda turn: turns.failed(turn, prepared, problem))
            else:
                await self._follow(prepared, harness)
        finally:
            renewing.cancel()

    async def _start(self, prepared: Prepared, harness: Harness) -> Failed | None:
        """A session for the turn, where it has none yet; or why there is none."""
        if not prepared.fresh:
            return None
        return await self.begin(prepared, harness, turns.session_started)

    async def begin(
        self, opening: S, harness: Harness, then: Callable[[Turn, S, Started], object]
    ) -> Failed | None:
        """Start a session, and store that it was; or say why it was not."""
        try:
            started = await harness.start(opening.spec)
        except Exception as error:  # noqa: BLE001 (whatever an adapter does, its delivery is settled)
            return failure_of(error)
        await self._write(lambda turn: then(turn, opening, started))
        return None

    async def _renew(self, prepared: Prepared) -> None:
        """Until the program has taken it, say that we are still at it."""
        pause = self._world.rules.periods.lease / 3
        while not prepared.accepted:
            await asyncio.sleep(pause)
            if not prepared.accepted:
                await self._write(lambda turn: turns.renewed(turn, prepared))

    # -- one turn --------------------------------------------------------------------------------

    async def _follow(self, prepared: Prepared, harness: Harness) -> None:
        events = _told(harness.deliver(prepared.spec, prepared.prompt))
        async with aclosing(_with_next(events)) as pairs:
            if not await self._heed(prepared, pairs):
                lost = Failed(layer=Layer.ADAPTER, reason="the harness fell silent in the middle of the turn")
                await self._write(lambda turn: turns.failed(turn, prepared, lost))

    async def _heed(self, prepared: Prepared, pairs: AsyncIterator[_Pair]) -> bool:
        """Store what the harness tells; whether it told an end."""
        noted = self._world.clock.monotonic()
        async for event, following in pairs:
            prepared.done = isinstance(event, Completed | Failed)
            match event:
                case Accepted():
                    prepared.accepted = True
                    if prepared.unwanted:
                        self._background(prepared)
                    if not isinstance(following, Completed):  # else both are stored at once
                        await self._write(lambda turn, took=event: turns.accepted(turn, prepared, took))
                case Progress(text=text) | Said(text=text):
                    now = self._world.clock.monotonic()
                    if now - noted >= _NOTED:
                        noted = now
                        await self._write(lambda turn, sign=text: turns.sign_of_life(turn, prepared, sign))
                case ToolUse(name=name):
                    await self._write(lambda turn, sign=name: turns.sign_of_life(turn, prepared, sign))
                case Spent():
                    await self._write(lambda turn, spent=event: turns.spent(turn, prepared, spent))
                case Completed():
                    await self._write(lambda turn, done=event: turns.completed(turn, prepared, done))
                    return True
                case Failed():
                    await self._write(lambda turn, broke=event: turns.failed(turn, prepared, broke))
                    return True
                case _:
                    pass
        return False

    # -- after a start, before an end --------------------------------------------------------------

    async def recover(self) -> None:
        """Take up what was under way: leased is looked at, running is followed again, pending goes on.

        Each in the lane of its agent, so that a turn that goes on is before those that wait.
        """
        uncertain: list[Delivery] = await self._read(recovery.uncertain)
        under_way: list[Delivery] = await self._read(recovery.under_way)
        await self._write(lambda turn: recovery.freed(turn, [*uncertain, *under_way]))
        for delivery in uncertain:
            self.enqueue(delivery.target, delivery.id, self._settle)
        for delivery in under_way:
            self.enqueue(delivery.target, delivery.id, self._reattach)
        for delivery in await self._read(recovery.pending):
            self._schedule(delivery)

    async def _inspect(self, ident: str) -> Found:
        """What can be seen of a delivery; an adapter that cannot look has seen nothing."""
        harness_name, session_id, run = await self._read(lambda ledger: recovery.carrier(ledger, ident))
        harness = self._world.harnesses.get(harness_name or "")
        if harness is None or session_id is None:
            return Found.UNKNOWN
        try:
            return await harness.inspect(session_id, run)
        except Exception:  # noqa: BLE001 (it is logged, and the delivery is settled)
            _LOG.exception("inspecting %s", ident)
            return Found.UNKNOWN

    def is_at(self, delivery: Delivery) -> bool:
        """Whether a delivery is being carried or followed."""
        lane = self._lanes.get(delivery.target, ())
        return delivery.id in self._running or any(ident == delivery.id for ident, _ in lane)

    async def look(self, delivery: Delivery) -> Found:
        """Whether its program has it; what nobody follows any more is followed again."""
        found = await self._inspect(delivery.id)
        if found is Found.TAKEN:
            self.enqueue(delivery.target, delivery.id, self._resume)
        return found

    async def _settle(self, ident: str) -> None:
        """It was leased when the broker died: did the program take it?"""
        found = await self._inspect(ident)
        await self._write(lambda turn: recovery.settled(turn, ident, found))
        if found is Found.TAKEN:
            await self._resume(ident)

    async def _reattach(self, ident: str) -> None:
        """Its program had taken it: follow it again, or say that it is lost."""
        if await self._inspect(ident) is Found.TAKEN:
            await self._resume(ident)
        else:
            await self._write(lambda turn: recovery.lost(turn, ident))

    async def close(self) -> None:
        """Start nothing more; programs that run go on, and are found again at the next start."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def failure_of(error: Exception, layer: Layer = Layer.ADAPTER) -> Failed:
    """What was raised, as the end of a turn."""
    if isinstance(error, Refused):
        told = error.diagnostic
        return Failed(layer=getattr(told, "layer", Layer.HARNESS), reason=told.message)
    _LOG.error("a fault in the %s", layer, exc_info=error)
    return Failed(layer=layer, reason=f"{type(error).__name__}: {error}")


async def _told(events: AsyncIterator[HarnessEvent]) -> AsyncIterator[HarnessEvent]:
    """The events of a turn; a fault of the adapter is its last one."""
    try:
        async for event in events:
            yield event
    except Exception as error:  # noqa: BLE001 (whatever an adapter does, its delivery is settled)
        yield failure_of(error)


async def _with_next(
    events: AsyncIterator[HarnessEvent],
) -> AsyncGenerator[_Pair]:
    """Each event with the one after it, where that is there at once; nobody waits for it."""
    upcoming: asyncio.Task[HarnessEvent] | None = None
    try:
        while True:
            try:
                event = await (upcoming or anext(events))
            except StopAsyncIteration:
                return
            upcoming = asyncio.ensure_future(_next(events))
            await asyncio.sleep(0)
            ready = upcoming.done() and upcoming.exception() is None
            yield event, upcoming.result() if ready else None
    finally:
        if upcoming is not None:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)


async def _next(events: AsyncIterator[HarnessEvent]) -> HarnessEvent:
    return await anext(events)
