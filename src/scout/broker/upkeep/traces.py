"""Traces of finished flights, built behind the log from what was stored and handed to the exporter.

Nothing is recorded for a trace while a flight runs: the log has every step with its time. So a request pays
nothing, and a flight that a restart interrupted has one whole trace. A flight that ends is put in a short
line, which is worked off on a reader once the index of the log has its last event.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import ReadLedger
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.conversation import Message
from scout.model.delivery import Delivery
from scout.model.events.asks import DeliveryAcked, DeliveryEvent, FlightEvent
from scout.model.events.envelope import Event
from scout.model.flight import Flight
from scout.model.session import Session
from scout.model.trace import TraceSide
from scout.policy.tracing import FlightFacts, build_trace
from scout.ports import Telemetry
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.telemetry")
_WINDOW = 1.0  # seconds: flights that end within it are read together
_WAITING = 10_000  # finished flights that wait for their trace
_STEP = 20  # flights that are read at once
_EVENTS = 5000  # of one flight
_FEW = 20
_LAST_MOMENT = 2.0  # seconds for the traces that are left when the daemon stops

Listener = tuple[Callable[[FlightEvent], None], tuple[type[Event], ...]]


class _Ended(NamedTuple):
    flight_id: str
    seq: int


class TraceFeed:
    """Follows the ends of flights. Without `telemetry` it does nothing.

    `catch_up` brings the index of the log to its end.
    """

    def __init__(
        self,
        services: Services,
        telemetry: Telemetry | None,
        read: ReadLedger,
        catch_up: Callable[[], Awaitable[None]],
    ) -> None:
        self._services = services
        self._telemetry = telemetry
        self._read = read
        self._catch_up = catch_up
        self._line: deque[_Ended] = deque(maxlen=_WAITING)
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        services.traced = telemetry is not None
        services.read_telemetry = telemetry.describe if telemetry is not None else lambda: None

    def subscriptions(self) -> Iterable[Listener]:
        """Return what listens to the ends of flights."""
        return ((self._on_flight, (FlightEvent,)),) if self._telemetry is not None else ()

    def start(self) -> None:
        """Follow until closed."""
        if self._telemetry is not None:
            self._task = asyncio.get_running_loop().create_task(self._follow(self._telemetry))

    async def close(self) -> None:
        """Send the traces that are left, if that is quick, and stop."""
        if self._task is None or self._telemetry is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        try:
            await asyncio.wait_for(self._work_off(self._telemetry), _LAST_MOMENT)
        except Exception:  # noqa: BLE001 (it is logged; the daemon stops anyway)
            _LOG.warning("the traces of %d flights were not sent", len(self._line))
        await self._telemetry.close()

    def _on_flight(self, event: FlightEvent) -> None:
        if event.payload.record.finished_at is not None:
            self._line.append(_Ended(event.payload.record.id, event.seq))
            self._news.set()

    async def _follow(self, telemetry: Telemetry) -> None:
        await telemetry.open()
        while True:
            await self._news.wait()
            await asyncio.sleep(_WINDOW)
            self._news.clear()
            try:
                await self._work_off(telemetry)
            except Exception:  # noqa: BLE001 (it is logged; the next flights are tried)
                _LOG.exception("building traces")

    async def _work_off(self, telemetry: Telemetry) -> None:
        if self._line:
            await self._catch_up()
        while self._line:
            some = [self._line.popleft() for _ in range(min(_STEP, len(self._line)))]
            await self._read(lambda ledger, ended=some: self._send(ledger, telemetry, ended))

    def _send(self, ledger: Ledger, telemetry: Telemetry, some: list[_Ended]) -> None:
        for ended in some:
            facts = self._find_facts(ledger, ended, telemetry.bodies)
            if facts is not None:
                telemetry.send(build_trace(facts))

    # -- facts -------------------------------------------------------------------------------------

    def _find_facts(self, ledger: Ledger, ended: _Ended, bodies: bool) -> FlightFacts | None:
        flight = ledger.get(Flight, ended.flight_id)
        ask = ledger.get(Ask, flight.ask_id) if flight is not None else None
        target = ledger.get(Agent, flight.target) if flight is not None else None
        if flight is None or ask is None or target is None:
            return None
        asker = ledger.get(Agent, flight.requester_id)
        message = ledger.get(Message, ask.message_id) if bodies else None
        events = _list_events(ledger, ended)
        return FlightFacts(
            node_id=self._services.node_id,
            ask=ask,
            flight=flight,
            agent_name=target.definition_id or str(target.path),
            agent_path=str(target.path),
            asker_path=str(asker.path) if asker is not None else flight.requester_id,
            side=_find_side(target, asker),
            events=tuple(events),
            sessions=_list_sessions(ledger, events),
            providers={name: one.capabilities.provider for name, one in self._services.harnesses.items()},
            asked=message.body if message is not None else None,
            answered=flight.output if bodies else None,
        )


def _find_side(target: Agent, asker: Agent | None) -> TraceSide:
    if target.is_remote:
        return TraceSide.CLIENT
    return TraceSide.SERVER if asker is not None and asker.is_remote else TraceSide.INTERNAL


def _list_events(ledger: Ledger, ended: _Ended) -> list[Event]:
    """Return the events of a flight, its deliveries, and the endpoints that ran it, in order."""
    deliveries = ledger.many(Delivery, "deliveries_of_flight", flight=ended.flight_id)
    found = {
        event.seq: event
        for ident in (ended.flight_id, *(one.id for one in deliveries))
        for event in ledger.log.list_together(ident, ended.seq, _EVENTS)
    }
    for ack in [one for one in found.values() if isinstance(one, DeliveryAcked)]:
        if (ident := ack.payload.record.endpoint_id) is not None:
            found |= {one.seq: one for one in ledger.log.list_at(ident, ack.seq, _FEW, ended.seq)}
    return [found[seq] for seq in sorted(found) if seq <= ended.seq]


def _list_sessions(ledger: Ledger, events: Iterable[Event]) -> dict[str, Session]:
    idents = {one.payload.record.session_id for one in events if isinstance(one, DeliveryEvent)}
    sessions = (ledger.get(Session, ident) for ident in idents)
    return {one.id: one for one in sessions if one is not None}
