"""Starting turns for deliveries. The dispatcher follows the log, so nothing starts before its commit.

The turns of a session follow each other: see `lanes`. Everything here may happen twice: the delivery id makes
a turn the same turn.
"""

import asyncio
import contextlib
import heapq
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from scout.broker.delivery import preparation, recovery, turn_record
from scout.broker.delivery.human_answers import is_decided
from scout.broker.delivery.lanes import Lanes, find_lane
from scout.broker.delivery.live_delivery import LiveSessions, compute_next_attempt
from scout.broker.delivery.pause import NOW
from scout.broker.delivery.runner import TurnRunner, build_failure
from scout.broker.delivery.session_records import PreparedTurn
from scout.broker.delivery.turn_slots import TurnSlots, build_queued_turn, list_open_asks
from scout.broker.effects import held_flights
from scout.broker.routing.attention_items import has_held_item
from scout.broker.transaction import admission
from scout.broker.transaction.call import Transactions
from scout.broker.transaction.services import Services
from scout.broker.transaction.streams import Subscriptions
from scout.broker.transaction.transaction import ReadLedger, Transaction, WriteAsBroker
from scout.model.delivery import Delivery, DeliveryState, InspectResult, is_ahead_of_clock
from scout.model.endpoint import Endpoint, EndpointState
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
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.dispatch")
_ENDING = 8.0  # seconds for programs to end that nobody needs, while a daemon stops
_IDLE_STEP = 0.05  # seconds between two looks at the running turns, while a daemon stops
_Prepare = Callable[[Transaction, str], PreparedTurn | None]


class PreparationFailed(Exception):  # noqa: N818 (a signal to the broker)
    """A turn could not be prepared in the transaction of its ask: the ask is stored without it."""


class _Due(NamedTuple):
    """A delivery that waits for its time, the soonest first."""

    at: int
    ident: str
    delivery: Delivery

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        return self[:2] < other[:2]


class Dispatcher:
    """Starts turns. `write` runs a function of a Transaction as the broker; `read` one of a Ledger.

    `glance` returns a ledger for short reads.
    """

    def __init__(
        self,
        services: Services,
        write: WriteAsBroker,
        read: ReadLedger,
        glance: Callable[[], Ledger],
    ) -> None:
        self._services = services
        self._write = write
        self._read = read
        self._glance = glance
        self._lanes = Lanes(services)
        self.runner = TurnRunner(services, write, self._schedule, read)
        self.slots = TurnSlots(services)
        services.forecast = lambda person: self.slots.forecast(person=person)
        self._live = LiveSessions(services, write, read)
        # Turns prepared in the transactions of their asks: their lanes before the commit, and after it.
        self._reserved: dict[str, str] = {}
        self._adopted: dict[str, PreparedTurn] = {}
        self._preparing = 0
        self._ended_flights: set[str] = set()  # while a turn is prepared
        self._due: list[_Due] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    # -- following the log -----------------------------------------------------------------------

    def subscriptions(self) -> Subscriptions:
        """Return what to call for which committed events."""
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

    def _on_delivery(self, event: DeliveryRequested | DeliveryNacked | DeliveryFailed) -> None:
        delivery = event.payload.record
        if delivery.id in self._adopted:
            self.enqueue(self._find_lane(delivery), delivery.id, self._run_adopted)
        elif not self.runner.steer(delivery):
            self._schedule(delivery)

    def _on_flight_end(self, event: FlightCancelled | FlightFailed) -> None:
        flight = event.payload.record
        gave_up = isinstance(event, FlightFailed) and event.payload.by == flight.target
        if not gave_up:  # then its program ends the turn itself
            if self._preparing:
                self._ended_flights.add(flight.id)
            self.runner.stop(flight)

    def _on_decision(self, event: AttentionEvent) -> None:
        if is_decided(event.payload.record):
            self.runner.respond(event.payload.record)

    def _on_agent(self, event: Event) -> None:
        self.enqueue(event.target.id, event.target.id, self._release_held)

    def _on_session_start(self, event: SessionEvent) -> None:
        self._live.on_session(event.payload.record)

    def _on_session_end(self, event: SessionEvent) -> None:
        self.runner.end_session(event.payload.record)

    def _on_pause(self, event: NodePaused | NodeResumed) -> None:
        """Pause or resume this machine; after a pause, live sessions get what arrived meanwhile."""
        self._services.paused = event.payload.record.paused
        if event.payload.move == NOW:
            self.runner.stop_all()
        self.slots.admit()
        if self._services.paused is None:
            for agent_id in self._live.agents:
                self._enqueue_live(agent_id)

    # -- when a delivery is due ------------------------------------------------------------------

    def _schedule(self, delivery: Delivery) -> None:
        """Queue a pending delivery, now or when it is due: for a turn or for a live session."""
        wakes = delivery.wake or self._live.may_concern(delivery)
        if delivery.state is not DeliveryState.PENDING or not wakes:
            return
        if delivery.wake:
            at = delivery.next_attempt_at
        else:
            at = compute_next_attempt(delivery, self._services.rules.back_off)
        now = self._services.clock.now()
        if at <= now or is_ahead_of_clock(delivery, now):
            self._enqueue_delivery(delivery)
        else:
            heapq.heappush(self._due, _Due(int(at), delivery.id, delivery))
            self._set_timer()

    def _enqueue_delivery(self, delivery: Delivery) -> None:
        if not delivery.wake:
            self._enqueue_live(delivery.target)
            return
        lane = self._find_lane(delivery)
        self._lanes.enqueue(lane, delivery.id, lambda _: self._run_turn(delivery), delivery.flight_id)

    def _enqueue_live(self, agent_id: str) -> None:
        """Hand what waits for an agent to its live session."""
        self.enqueue(f"live session of {agent_id}", agent_id, self._live.deliver_live)

    def _set_timer(self) -> None:
        """Set a timer for the next delayed delivery."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due and not self._closed:
            wait = (self._due[0].at - self._services.clock.now()) / 1_000_000
            self._timer = asyncio.get_running_loop().call_later(max(wait, 0.0), self.check)

    def check(self) -> None:
        """Queue what is due; also after the clock jumped, forward or back."""
        now = self._services.clock.now()
        waiting, self._due = self._due, []
        for one in sorted(waiting):
            if one.at <= now or is_ahead_of_clock(one.delivery, now):
                self._enqueue_delivery(one.delivery)
            else:
                self._due.append(one)  # a sorted list is a heap
        self._set_timer()

    # -- lanes -----------------------------------------------------------------------------------

    def enqueue(self, lane: str, ident: str, run: Callable[[str], Awaitable[object]]) -> None:
        """Run something after everything already queued in the same lane."""
        self._lanes.enqueue(lane, ident, run)

    @property
    def lanes(self) -> int:
        """Return the number of lanes in which something runs or waits."""
        return len(self._lanes)

    def _find_lane(self, delivery: Delivery) -> str:
        return find_lane(self._glance(), delivery)

    async def _release_held(self, agent_id: str) -> None:
        """Release what was held for an agent that can be reached now, or in another way."""
        if await self._read(
            lambda ledger: held_flights.find_held_flights(ledger, agent_id) or has_held_item(ledger, agent_id)
        ):
            await self._write(lambda tx: held_flights.release_held_flights(tx, agent_id))
        self._enqueue_live(agent_id)

    # -- one turn --------------------------------------------------------------------------------

    async def _run_turn(self, delivery: Delivery) -> None:
        """Run the turn of a delivery: get a slot, prepare the turn in a transaction, run it."""
        if self.slots.is_free:
            self.slots.take(delivery.id)
        else:
            since = self._services.clock.monotonic()
            if not await self.slots.wait(build_queued_turn(self._glance(), delivery, since)):
                return
        await self._run_in_slot(delivery.id, preparation.prepare_turn)

    async def _resume_turn(self, ident: str) -> None:
        """Follow a turn whose program runs already; it gets a slot even if none is free."""
        self.slots.take(ident)
        awaits = await self._read(lambda ledger: list_open_asks(ledger, ident))
        await self._run_in_slot(ident, preparation.resume_turn, awaits)

    async def _run_in_slot(self, ident: str, prepare: _Prepare, awaits: Sequence[str] = ()) -> None:
        try:
            prepared = await self._prepare_turn(ident, prepare)
            if prepared is not None:
                await self._run_prepared(prepared, awaits)
        finally:
            self.slots.release(ident)

    async def _run_prepared(self, prepared: PreparedTurn, awaits: Sequence[str] = ()) -> None:
        """Run a turn. What comes next for an isolated session waits in the session's lane for the end."""
        ended = asyncio.Event()
        if prepared.isolated:
            self.enqueue(prepared.spec.session_id, prepared.delivery_id, lambda _: ended.wait())
        try:
            self.slots.begin(prepared.delivery_id, prepared.spec.agent_id, prepared.flight_id, awaits)
            await self.runner.run(prepared)
        finally:
            ended.set()

    async def _prepare_turn(self, ident: str, prepare: _Prepare) -> PreparedTurn | None:
        """Prepare a turn so that a cancel finds it, even if both share a commit.

        Cancelling looks for a turn in `running` and stops it. While a turn is prepared it is not there yet,
        and the transaction that prepares it and the one that cancels its flight may share a commit, in
        either order. If the cancelling one came first, `prepare` sees an ended flight and returns nothing.
        If it came second, its event is published before this task resumes after its commit: the turn is in
        no table, and nothing would stop it.

        So flights that end while anything is being prepared are kept in `_ended_flights`, and each turn
        looks there once, in the same step in which it enters `running`. A turn found there is marked as
        unwanted: its prompt may be on the way to the program already, so it is stopped as soon as the
        program has taken it. When nothing is being prepared any more, `_ended_flights` is empty again.
        """
        self._preparing += 1
        try:
            prepared: PreparedTurn | None = await self._write(lambda tx: prepare(tx, ident))
        except Exception as error:  # noqa: BLE001 (a delivery is never left without a next step)
            problem = build_failure(error, Layer.BROKER)
            await self._write(lambda tx: turn_record.record_failed_preparation(tx, ident, problem))
            return None
        else:
            if prepared is not None:
                prepared.unwanted = prepared.unwanted or prepared.flight_id in self._ended_flights
                self.runner.running[ident] = prepared
            return prepared
        finally:
            self._preparing -= 1
            if not self._preparing:
                self._ended_flights.clear()

    # -- a turn that is prepared with its ask ------------------------------------------------------
    #
    # A commit costs a sync, so the turn of an ask that can start at once is prepared in the ask's own
    # transaction. Nothing is started there: the transaction may be repeated or fail. It only reserves a slot,
    # which is given back if nothing is stored (`drop_prepared`), and taken when the ask is committed
    # (`adopt_prepared`), before any later event is published: a cancel finds the turn in `running`.

    def prepare_with_ask(self, tx: Transaction) -> None:
        """Prepare the turn of a new ask in its transaction, if its target is idle and a slot is free."""
        asked = [one.payload.record for one in tx.events if one.__class__ is DeliveryRequested]
        if len(asked) != 1 or not self._can_start(tx, asked[0]):
            return
        own = admission.admit_system(self._services)
        try:
            prepared = preparation.prepare_turn(
                tx.continue_as(own.actor, own.caller), asked[0].id, tx.routes.get(asked[0].target)
            )
        except Exception as error:
            raise PreparationFailed from error
        if prepared is not None:
            tx.prepared = prepared
            self._reserved[asked[0].id] = find_lane(tx, asked[0])

    def _can_start(self, tx: Transaction, delivery: Delivery) -> bool:
        """Whether nothing is before the turn of an ask, and a live session that Scout holds is idle."""
        if not delivery.wake or delivery.flight_id is None or self._closed or tx.cache.paused:
            return False
        lane = find_lane(tx, delivery)
        busy = lane in self._lanes or lane in self._reserved.values()
        if busy or not self.slots.has_room(len(self._reserved) + 1):
            return False
        endpoint = tx.get(Endpoint, delivery.endpoint_id)
        return endpoint is not None and endpoint.held and endpoint.state is EndpointState.IDLE

    def drop_prepared(self, tx: Transaction) -> None:
        """Give back the slot of a turn whose transaction is not stored."""
        if tx.prepared is not None:
            self._reserved.pop(tx.prepared.delivery_id, None)
            tx.prepared = None

    def adopt_prepared(self, tx: Transaction) -> None:
        """Take the slot of a turn whose preparation is stored; its lane starts it."""
        prepared: PreparedTurn | None = tx.prepared
        if prepared is not None:
            self.drop_prepared(tx)
            ident = prepared.delivery_id
            self.slots.take(ident)
            self._adopted[ident] = self.runner.running[ident] = prepared

    async def _run_adopted(self, ident: str) -> None:
        prepared = self._adopted.pop(ident)
        try:
            await self._run_prepared(prepared)
        finally:
            self.slots.release(ident)

    # -- restart and shutdown ---------------------------------------------------------------------

    async def recover(self) -> None:
        """Resume after a restart: inspect leased deliveries, follow running turns, schedule pending ones.

        Each goes into its lane, so that a running turn comes before waiting ones.
        """
        uncertain: list[Delivery] = await self._read(recovery.list_uncertain_deliveries)
        under_way: list[Delivery] = await self._read(recovery.list_running_deliveries)
        await self._write(lambda tx: recovery.free_idle_endpoints(tx, [*uncertain, *under_way]))
        for delivery in uncertain:
            self.enqueue(self._find_lane(delivery), delivery.id, self._settle_leased)
        for delivery in under_way:
            self.enqueue(self._find_lane(delivery), delivery.id, self._reattach)
        for delivery in await self._read(recovery.list_pending_deliveries):
            self._schedule(delivery)
        for agent_id in await self._live.load_agents():
            self._enqueue_live(agent_id)

    async def _inspect(self, ident: str) -> InspectResult:
        """Ask the harness whether its program has a delivery; UNKNOWN if it cannot tell."""
        harness_name, session_id, run = await self._read(
            lambda ledger: recovery.find_session_of_delivery(ledger, ident)
        )
        harness = self._services.harnesses.get(harness_name or "")
        if harness is None or session_id is None:
            return InspectResult.UNKNOWN
        try:
            return await harness.inspect(session_id, run)
        except Exception:  # noqa: BLE001 (it is logged, and the delivery is settled)
            _LOG.exception("inspecting %s", ident)
            return InspectResult.UNKNOWN

    def is_under_way(self, delivery: Delivery) -> bool:
        """Whether a delivery waits in a lane or its turn is running."""
        waits = self._lanes.is_waiting(self._find_lane(delivery), delivery.id)
        return waits or delivery.id in self.runner.running

    async def inspect_delivery(self, delivery: Delivery) -> InspectResult:
        """Ask whether a program has a delivery; follow its turn again if nothing follows it."""
        found = await self._inspect(delivery.id)
        if found is InspectResult.TAKEN:
            self.enqueue(self._find_lane(delivery), delivery.id, self._resume_turn)
        return found

    async def _settle_leased(self, ident: str) -> None:
        """Find out whether a program took a delivery that was leased when the broker died."""
        found = await self._inspect(ident)
        leads = await self._write(lambda tx: recovery.settle_uncertain_delivery(tx, ident, found))
        if leads and found is InspectResult.TAKEN:
            await self._resume_turn(ident)

    async def _reattach(self, ident: str) -> None:
        """Follow a turn that a program took before the restart, or record that it is lost."""
        if await self._inspect(ident) is InspectResult.TAKEN:
            await self._resume_turn(ident)
        else:
            await self._write(lambda tx: recovery.fail_lost_run(tx, ident))

    async def wait_until_idle(self) -> None:
        """Wait until no turn is starting or running; asks that wait for a slot do not count."""
        await self._wait_until(lambda: not self.runner.running)

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds or no lane has anything to run."""
        while not condition() and (tasks := [*self._lanes.tasks]):
            await asyncio.wait(tasks, timeout=_IDLE_STEP, return_when=asyncio.FIRST_COMPLETED)

    def _has_unwanted_turn(self) -> bool:
        """Whether a turn runs or starts although nobody needs it any more."""
        return any(one.unwanted and not one.done for one in self.runner.running.values())

    async def close(self) -> None:
        """Start nothing more. Programs keep running and are found again at the next start.

        A program whose flight or session has ended is ended first, even if it is just being started.
        """
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._lanes.seal()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ENDING):
                await self._wait_until(lambda: not self._has_unwanted_turn())
        await self._lanes.close()
        await self.runner.close()


class Dispatching(Transactions, Protocol):
    """The broker with its dispatcher, as the layers above see it."""

    dispatcher: Dispatcher
