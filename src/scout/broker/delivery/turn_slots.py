"""How many turns run at once on this machine, and which turn gets the next slot.

A turn that waits for another agent or a person (an ask, a question, a need, or its own waiting flight)
lends its slot. The work it waits for can always run, so no chain of asks blocks on slots. It takes the
slot back without waiting, so for a while more turns may run than the limit says.
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from scout.broker.transaction.services import Services
from scout.model.agent import Agent
from scout.model.attention import Attention, is_blocking
from scout.model.delivery import Delivery
from scout.model.events.asks import FlightEvent
from scout.model.events.talk import AttentionEvent, QuestionEvent
from scout.model.flight import FLIGHT, Flight, FlightState
from scout.model.question import Question, QuestionState
from scout.policy.queue import Queued, describe_place, order_queue
from scout.store.ledger import LAST, Ledger

_SOME = 200


@dataclass
class _Running:
    """A turn that has a slot, and lends it while its flight waits or it `awaits` open requests."""

    agent_id: str = ""
    flight_id: str | None = None
    waits: bool = False
    awaits: set[str] = field(default_factory=set[str])


class TurnSlots:
    """The slots of this machine. Only the event loop uses it; other threads read `services.line`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._running: dict[str, _Running] = {}
        self._waiting: dict[str, tuple[Queued, asyncio.Future[bool]]] = {}
        self._default = max(2, os.cpu_count() or 1)

    @property
    def limit(self) -> int:
        """Return the maximum of concurrent turns: the setting, or one per core and at least two."""
        return self._services.rules.limits.running_turns or self._default

    @property
    def running(self) -> int:
        """Return how many turns run and wait for nothing."""
        return len([one for one in self._running.values() if not (one.waits or one.awaits)])

    @property
    def is_free(self) -> bool:
        """Whether a turn may start at once."""
        return self.has_room(1)

    def has_room(self, turns: int) -> bool:
        """Whether this many turns may start at once."""
        free = self._services.paused is None and not self._waiting
        return free and self.running + turns <= self.limit

    def forecast(self, *, person: bool) -> str:
        """Return the reason that a turn arriving now would wait; nothing if it can start at once."""
        if self._services.paused is not None:
            return self._services.paused.words
        if self.is_free:
            return ""
        ahead = sum(one.person or not person for one, _ in self._waiting.values())
        return describe_place(ahead + 1, self.limit)

    # -- taking and releasing --------------------------------------------------------------------

    def take(self, ident: str) -> None:
        """Take a slot, free or not."""
        self._running.setdefault(ident, _Running())

    def begin(self, ident: str, agent_id: str, flight_id: str | None, awaits: Sequence[str] = ()) -> None:
        """Record whose turn has a slot, and what it waits for already."""
        self._running[ident] = _Running(agent_id, flight_id, awaits=set(awaits))
        if awaits:
            self.admit()

    def release(self, ident: str) -> None:
        """Release the slot of an ended turn."""
        if self._running.pop(ident, None) is not None:
            self.admit()

    async def wait(self, queued: Queued) -> bool:
        """Wait for a slot and take it; false if the turn is no longer needed."""
        admitted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[queued.id] = queued, admitted
        self.admit()
        try:
            return await admitted
        except asyncio.CancelledError:
            self._leave_line(queued)
            raise

    def _leave_line(self, queued: Queued) -> None:
        self._waiting.pop(queued.id, None)
        self._services.line.pop(queued.flight_id or "", None)

    def admit(self) -> None:
        """Give each free slot to the first in line, and update the places of the others."""
        if not self._waiting:
            return
        now = self._services.clock.monotonic()
        line = order_queue([queued for queued, _ in self._waiting.values()], now)
        room = 0 if self._services.paused is not None else max(self.limit - self.running, 0)
        for queued in line[:room]:
            _, admitted = self._waiting[queued.id]
            self._leave_line(queued)
            self.take(queued.id)
            admitted.set_result(True)
        limit, places = self.limit, self._services.line
        for place, queued in enumerate(line[room:], 1):
            if queued.flight_id is not None:
                places[queued.flight_id] = place, limit

    # -- following the log -----------------------------------------------------------------------

    def on_event(self, event: FlightEvent | QuestionEvent | AttentionEvent) -> None:
        """Update the slots when a turn starts or stops waiting for another agent or a person."""
        if not self._running and not self._waiting:
            return
        record = event.payload.record
        new = record.created_at == event.time
        match record:
            case Flight():
                ended = record.state in FLIGHT.terminal
                self._update_awaits(record.requester_id, record.id, is_open=not ended, new=new)
                self._update_waiting(record)
                if ended:
                    self._give_up(record.id)
            case Question():
                self._update_awaits(
                    record.asker_id, record.id, is_open=record.state is QuestionState.OPEN, new=new
                )
            case Attention() if record.agent_id is not None and record.source.id == record.agent_id:
                self._update_awaits(record.agent_id, record.id, is_open=is_blocking(record), new=new)
            case _:
                pass

    def _update_awaits(self, agent_id: str, ident: str, *, is_open: bool, new: bool) -> None:
        """Add or remove a request made during a turn; earlier requests of its agent do not count."""
        if is_open and not new:
            return
        changed = False
        for one in self._running.values():
            if one.agent_id == agent_id and (ident in one.awaits) is not is_open:
                one.awaits ^= {ident}
                changed = True
        if changed:
            self.admit()

    def _update_waiting(self, flight: Flight) -> None:
        waits = flight.state is FlightState.WAITING
        changed = False
        for one in self._running.values():
            if one.flight_id == flight.id and one.waits is not waits:
                one.waits, changed = waits, True
        if changed:
            self.admit()

    def _give_up(self, flight_id: str) -> None:
        """Remove from the line a flight that ended while it waited."""
        for queued, admitted in [one for one in self._waiting.values() if one[0].flight_id == flight_id]:
            self._leave_line(queued)
            admitted.set_result(False)
            self.admit()


def build_queued_turn(ledger: Ledger, delivery: Delivery, since: float) -> Queued:
    """Return a delivery as an entry of the line."""
    sender = ledger.get(Agent, delivery.sender)
    by_person = sender is not None and sender.is_person
    return Queued(id=delivery.id, since=since, person=by_person, flight_id=delivery.flight_id)


def list_open_asks(ledger: Ledger, ident: str) -> list[str]:
    """Return the open flights that a turn asked for since it began; restores them after a restart."""
    delivery = ledger.get(Delivery, ident)
    if delivery is None:
        return []
    made = ledger.many(Flight, "flights_open_for", agent=delivery.target, before=LAST, limit=_SOME)
    return [one.id for one in made if one.created_at >= delivery.created_at]
