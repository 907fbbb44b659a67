"""Carrying deliveries to the programs that run agents: it follows the log, so nothing is woken too early.

One lane per agent, so that the turns of a session follow each other. Everything here may happen
twice: the delivery id makes a turn the same turn.
"""

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from scout.base.refusal import Refused
from scout.broker.delivery import preparation, recovery, turn_record
from scout.broker.delivery.human_answers import is_decided
from scout.broker.delivery.live_delivery import LiveSessions, next_attempt_at
from scout.broker.delivery.opening import PreparedTurn
from scout.broker.delivery.pause import NOW
from scout.broker.delivery.runner import TurnRunner, failure_of
from scout.broker.delivery.turn_slots import TurnSlots, open_asks, queued_turn
from scout.broker.effects import held_flights
from scout.broker.routing.held_items import has_item
from scout.broker.transaction.services import Services
from scout.broker.transaction.streams import Subscriptions
from scout.broker.transaction.transaction import Transaction
from scout.broker.transaction.transactions import Transactions
from scout.model.delivery import Delivery, DeliveryState, InspectResult, is_from_the_future
from scout.model.events.asks import (
    DeliveryFailed,
    DeliveryNacked,
    DeliveryRequested,
    FlightCancelled,
    FlightEvent,
    FlightFailed,
)
from scout.model.events.directory import NodePaused, NodeResumed
from scout.model.events.envelope import Event
from scout.model.events.presence import (
    AgentOnline,
    AgentUpdated,
    SessionEnded,
    SessionEvent,
    SessionResumed,
    SessionStarted,
)
from scout.model.events.talk import AttentionEvent, QuestionEvent
from scout.model.problems.session import Layer
from scout.policy.queue import place_behind_target
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.dispatch")
_Carry = tuple[str, Callable[[str], Awaitable[None]]]


class _Due(NamedTuple):
    """What waits for its moment, the soonest first."""

    at: int
    target: str
    ident: str
    delivery: Delivery

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        return self[:3] < other[:3]


class Dispatcher:
    """`write` runs a function of a Turn as the broker itself; `read` runs one of a Ledger."""

    def __init__(
        self,
        services: Services,
        write: Callable[[Callable[[Transaction], Any]], Awaitable[Any]],
        read: Callable[[Callable[[Ledger], Any]], Awaitable[Any]],
    ) -> None:
        self._services = services
        self._write = write
        self._read = read
        self._lanes: dict[str, deque[_Carry]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.runner = TurnRunner(services, write, self._go_on)
        self.slots = TurnSlots(services)
        services.forecast = lambda person: self.slots.forecast(person=person)
        self._flights: dict[str, str] = {}  # the flight of each delivery that is in a lane
        self._live = LiveSessions(services, write, read)
        self._preparing = 0
        self._over: set[str] = set()  # flights that ended while a turn was being prepared
        self._due: list[_Due] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    # -- following the log -----------------------------------------------------------------------

    def subscriptions(self) -> Subscriptions:
        """What to call for which committed events."""
        return (
            (self._on_delivery, (DeliveryRequested, DeliveryNacked, DeliveryFailed)),
            (self._on_flight_end, (FlightCancelled, FlightFailed)),
            (self._on_decision, (AttentionEvent,)),
            (self._on_agent, (AgentOnline, AgentUpdated)),
            (self._on_session_start, (SessionStarted, SessionResumed)),
            (self._on_session_end, (SessionEnded,)),
            (self._on_pause, (NodePaused, NodeResumed)),
            (self.slots.on_event, (FlightEvent, QuestionEvent, AttentionEvent)),
        )

    def _on_pause(self, event: NodePaused | NodeResumed) -> None:
        """This machine pauses, or no longer; then the live sessions are told what came meanwhile."""
        self._services.paused = event.payload.record.paused
        if event.payload.move == NOW:
            self.runner.stop_all()
        self.slots.admit()
        if self._services.paused is None:
            for agent_id in self._live.agents:
                self._take_up(agent_id, agent_id)

    def _on_delivery(self, event: DeliveryRequested | DeliveryNacked | DeliveryFailed) -> None:
        self._schedule(event.payload.record)

    def _on_session_start(self, event: SessionEvent) -> None:
        self._live.on_session(event.payload.record)

    def _on_session_end(self, event: SessionEvent) -> None:
        self.runner.end_session(event.payload.record)

    def _on_flight_end(self, event: FlightCancelled | FlightFailed) -> None:
        flight = event.payload.record
        gave_up = isinstance(event, FlightFailed) and event.payload.by == flight.target
        if not gave_up:  # else its program has said so, and ends its own turn
            if self._preparing:
                self._over.add(flight.id)
            self.runner.stop(flight)

    def _on_decision(self, event: AttentionEvent) -> None:
        if is_decided(event.payload.record):
            self.runner.answered(event.payload.record)

    def _on_agent(self, event: Event) -> None:
        self.enqueue(event.target.id, event.target.id, self._release)

    def _schedule(self, delivery: Delivery) -> None:
        if not self.runner.steered(delivery):
            self._go_on(delivery)

    def _go_on(self, delivery: Delivery) -> None:
        """What is not said into a turn gets one of its own, if it is to wake anybody."""
        if delivery.state is not DeliveryState.PENDING or not (delivery.wake or self._live.concern(delivery)):
            return
        ident = delivery.id if delivery.wake else delivery.target
        if delivery.wake and delivery.flight_id is not None:
            self._flights[delivery.id] = delivery.flight_id
        at = (
            delivery.next_attempt_at
            if delivery.wake
            else next_attempt_at(delivery, self._services.rules.back_off)
        )
        now = self._services.clock.now()
        if at <= now or is_from_the_future(delivery, now):
            self._take_up(delivery.target, ident)
        else:
            heapq.heappush(self._due, _Due(int(at), delivery.target, ident, delivery))
            self._arm()

    def _take_up(self, agent_id: str, ident: str) -> None:
        """Carry a delivery; or, with the id of the agent itself, knock at its live session."""
        if ident == agent_id:
            self.enqueue(f"door of {agent_id}", agent_id, self._live.knock)
        else:
            self.enqueue(agent_id, ident, self._carry)

    def _arm(self) -> None:
        """Wake up when the next delayed delivery is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due and not self._closed:
            wait = (self._due[0].at - self._services.clock.now()) / 1_000_000
            self._timer = asyncio.get_running_loop().call_later(max(wait, 0.0), self.check)

    def check(self) -> None:
        """Take up what has become due; also after the clock has jumped, forward or back."""
        now = self._services.clock.now()
        waiting, self._due = self._due, []
        for one in sorted(waiting):
            if one.at <= now or is_from_the_future(one.delivery, now):
                self._take_up(one.target, one.ident)
            else:
                self._due.append(one)  # a sorted list is a heap
        self._arm()

    def enqueue(self, lane: str, ident: str, carry: Callable[[str], Awaitable[None]]) -> None:
        """Do something for an agent after what is under way for it."""
        if self._closed:
            return
        self._lanes.setdefault(lane, deque()).append((ident, carry))
        if lane not in self._tasks:
            self._tasks[lane] = asyncio.get_running_loop().create_task(self._drain(lane))
        else:
            self._show_places(lane)

    def _show_places(self, lane: str) -> None:
        """The flights behind the one that a lane is at know how many turns are before theirs."""
        flights = [self._flights[ident] for ident, _ in self._lanes[lane] if ident in self._flights]
        for place, flight_id in enumerate(flights, 1):
            self._services.line[flight_id] = place_behind_target(place)

    @property
    def lanes(self) -> int:
        """For how many agents something is under way."""
        return len(self._lanes)

    # -- one lane --------------------------------------------------------------------------------

    async def _drain(self, lane: str) -> None:
        queue = self._lanes[lane]
        try:
            while queue and not self._closed:
                ident, carry = queue.popleft()
                self._services.line.pop(self._flights.pop(ident, ""), None)
                self._show_places(lane)
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
        if await self._read(
            lambda ledger: held_flights.held_flights(ledger, agent_id) or has_item(ledger, agent_id)
        ):
            await self._write(lambda tx: held_flights.release_all(tx, agent_id))
        self._take_up(agent_id, agent_id)

    async def _carry(self, ident: str) -> None:
        """A new turn, as soon as there is a slot for it."""
        if self.slots.is_free:
            self.slots.take(ident)
        else:
            since = self._services.clock.monotonic()
            queued = await self._read(lambda ledger: queued_turn(ledger, ident, since))
            if not await self.slots.wait(queued):
                return
        await self._turn(ident, preparation.prepare)

    async def _resume(self, ident: str) -> None:
        """A turn that is under way: it has its slot, however many others run."""
        self.slots.take(ident)
        awaits = await self._read(lambda ledger: open_asks(ledger, ident))
        await self._turn(ident, preparation.resume, awaits)

    async def _turn(
        self,
        ident: str,
        prepare: Callable[[Transaction, str], PreparedTurn | None],
        awaits: Sequence[str] = (),
    ) -> None:
        try:
            prepared = await self._prepared(ident, prepare)
            if prepared is not None:
                self.slots.begin(ident, prepared.spec.agent_id, prepared.flight_id, awaits)
                await self.runner.run(prepared)
        finally:
            self.slots.release(ident)

    async def _prepared(
        self, ident: str, prepare: Callable[[Transaction, str], PreparedTurn | None]
    ) -> PreparedTurn | None:
        """The turn, known to whoever cancels it even if that was committed together with it.

        Cancelling looks for a turn in `running` and stops it. While a turn is prepared it is not there yet,
        and the transaction that prepares it and the one that cancels its flight may share a commit, in
        either order. If the cancelling one came first, `prepare` sees an ended flight and returns nothing.
        If it came second, its event is published before this task goes on after its commit: the turn is in
        no table, and nobody would stop it.

        So events of flights that end while anything is being prepared are kept in `_over`, and each turn
        looks there once, in the same step in which it enters `running`. A turn found there is marked as
        unwanted: its prompt may be on the way to the program already, so it is stopped as soon as the
        program has taken it. When nothing is being prepared any more, `_over` is empty again.
        """
        self._preparing += 1
        try:
            prepared: PreparedTurn | None = await self._write(lambda tx: prepare(tx, ident))
        except Exception as error:  # noqa: BLE001 (a delivery is never left without a next step)
            problem = failure_of(error, Layer.BROKER)
            await self._write(lambda tx: turn_record.record_failed_preparation(tx, ident, problem))
            return None
        else:
            if prepared is not None:
                prepared.unwanted = prepared.unwanted or prepared.flight_id in self._over
                self.runner.running[ident] = prepared
            return prepared
        finally:
            self._preparing -= 1
            if not self._preparing:
                self._over.clear()

    # -- after a start, before an end --------------------------------------------------------------

    async def recover(self) -> None:
        """Take up what was under way: leased is looked at, running is followed again, pending goes on.

        Each in the lane of its agent, so that a turn that goes on is before those that wait.
        """
        uncertain: list[Delivery] = await self._read(recovery.uncertain_deliveries)
        under_way: list[Delivery] = await self._read(recovery.running_deliveries)
        await self._write(lambda tx: recovery.free_idle_endpoints(tx, [*uncertain, *under_way]))
        for delivery in uncertain:
            self.enqueue(delivery.target, delivery.id, self._settle)
        for delivery in under_way:
            self.enqueue(delivery.target, delivery.id, self._reattach)
        for delivery in await self._read(recovery.pending_deliveries):
            self._schedule(delivery)
        for agent_id in await self._live.after_a_start():
            self._take_up(agent_id, agent_id)

    async def _inspect(self, ident: str) -> InspectResult:
        """What can be seen of a delivery; an adapter that cannot look has seen nothing."""
        harness_name, session_id, run = await self._read(
            lambda ledger: recovery.session_of_delivery(ledger, ident)
        )
        harness = self._services.harnesses.get(harness_name or "")
        if harness is None or session_id is None:
            return InspectResult.UNKNOWN
        try:
            return await harness.inspect(session_id, run)
        except Exception:  # noqa: BLE001 (it is logged, and the delivery is settled)
            _LOG.exception("inspecting %s", ident)
            return InspectResult.UNKNOWN

    def is_at(self, delivery: Delivery) -> bool:
        """Whether a delivery is being carried or followed."""
        lane = self._lanes.get(delivery.target, ())
        return delivery.id in self.runner.running or any(ident == delivery.id for ident, _ in lane)

    async def look(self, delivery: Delivery) -> InspectResult:
        """Whether its program has it; what nobody follows any more is followed again."""
        found = await self._inspect(delivery.id)
        if found is InspectResult.TAKEN:
            self.enqueue(delivery.target, delivery.id, self._resume)
        return found

    async def _settle(self, ident: str) -> None:
        """It was leased when the broker died: did the program take it?"""
        found = await self._inspect(ident)
        leads = await self._write(lambda tx: recovery.settle_uncertain_delivery(tx, ident, found))
        if leads and found is InspectResult.TAKEN:
            await self._resume(ident)

    async def _reattach(self, ident: str) -> None:
        """Its program had taken it: follow it again, or say that it is lost."""
        if await self._inspect(ident) is InspectResult.TAKEN:
            await self._resume(ident)
        else:
            await self._write(lambda tx: recovery.fail_lost_run(tx, ident))

    async def close(self) -> None:
        """Start nothing more; programs that run go on, and are found again at the next start."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.runner.close()


class Dispatching(Transactions, Protocol):
    """The broker with its dispatcher, as the parts above see it."""

    dispatcher: Dispatcher
