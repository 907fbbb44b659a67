"""What has to be done from time to time: leases that ran out, checks that are due, the search index."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from scout.base.time import Time
from scout.broker import asks, reaching, settle
from scout.broker.turn import Turn
from scout.broker.turns import HOLDER
from scout.broker.world import World
from scout.model.card import Card, expire_card
from scout.model.delivery import Delivery, DeliveryMove, expire
from scout.model.directory_event import CardExpired
from scout.model.endpoint import Endpoint, EndpointMove
from scout.model.flight import Flight, FlightState, error_of, fail_flight, note_flight, retry_remedy
from scout.model.target_problem import TargetOffline
from scout.policy.limits import Gap, gap_between, graced
from scout.store import receipts, search
from scout.store.ledger import Ledger

__all__ = ["House", "flush", "keep", "tidy"]

_LOG = logging.getLogger("scout.housekeeping")
_EVERY = 1.0
_SOME = 200
_FLUSH = 15  # seconds between writing signs of life to their rows
_LONGEST = 3600.0


class House(Protocol):
    """The broker, as far as this looks at it."""

    world: World
    signs_of_life: dict[str, Endpoint]

    async def read(self, work: Callable[[Ledger], Any]) -> Any: ...
    async def as_system(self, work: Callable[[Turn], Any]) -> Any: ...


async def keep(house: House, check: Callable[[], None]) -> None:
    """Once a second, until cancelled. A fault of one round does not stop the next."""
    clock = house.world.clock
    beat, gap = 0, None
    while True:
        before, ticks = clock.now(), clock.monotonic()
        await asyncio.sleep(_EVERY)
        beat += 1
        jump = gap_between(before, clock.now(), clock.monotonic() - ticks)
        gap = jump if jump.seconds > house.world.rules.periods.wall_clock_gap else gap
        await _safely(_round(house, check, gap))
        if beat % _FLUSH == 0:
            await _safely(flush(house))


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
    now = house.world.clock.now()
    if await house.read(lambda ledger: _is_due(ledger, house.world, now)):
        await house.as_system(lambda turn: _settle(turn, gap))
    while await house.read(lambda ledger: search.is_behind(ledger.connection)):
        await house.as_system(lambda turn: search.feed(turn.ledger.connection, _SOME))
    old = now.plus(-house.world.rules.periods.idempotency_keys)
    if await house.read(lambda ledger: receipts.has_older(ledger.connection, old)):
        await house.as_system(lambda turn: receipts.forget(turn.ledger.connection, old, _SOME))


async def flush(house: House) -> None:
    """Write the signs of life that were kept in memory: rows only, no facts."""
    seen = list(house.signs_of_life.values())
    house.signs_of_life.clear()
    if seen:
        await house.as_system(lambda turn: _refresh(turn, seen))


def _refresh(turn: Turn, seen: list[Endpoint]) -> None:
    for endpoint in seen:
        current = turn.ledger.get(Endpoint, endpoint.id)
        if current is not None and current.revision == endpoint.revision:
            turn.ledger.refresh(endpoint)
            turn.memory.forget()


# -- what is due -------------------------------------------------------------------------------------


def _is_due(ledger: Ledger, world: World, now: Time) -> bool:
    silent = int(now.plus(-world.rules.periods.sweeps.endpoint_silent))
    return bool(
        ledger.many(Delivery, "deliveries_overdue", now=now, limit=1)
        or ledger.many(Flight, "flights_due", now=now, limit=1)
        or ledger.many(Card, "cards_expiring", now=now, limit=1)
        or ledger.many(Endpoint, "endpoints_silent", since=silent, limit=1)
    )


def _settle(turn: Turn, gap: Gap | None) -> None:
    """Deadlines that passed, each after one grace period if the machine has slept."""
    ledger, periods = turn.ledger, turn.rules.periods
    for delivery in ledger.many(Delivery, "deliveries_overdue", now=turn.now, limit=_SOME):
        over = graced(delivery.leased_until or turn.now, gap, periods).passed(turn.now)
        if over and delivery.leased_by != HOLDER:
            after = expire(delivery, turn.now, limit=turn.rules.limits.attempts)
            settle.delivered(turn, delivery, after, DeliveryMove.EXPIRE)
    for flight in ledger.many(Flight, "flights_due", now=turn.now, limit=_SOME):
        if graced(flight.next_check_at or turn.now, gap, periods).passed(turn.now):
            _check(turn, flight)
    for card in ledger.many(Card, "cards_expiring", now=turn.now, limit=_SOME):
        turn.record(CardExpired, expire_card(card, turn.now), move="expire", reason="expired")
    since = int(turn.now.plus(-periods.sweeps.endpoint_silent))
    for endpoint in ledger.many(Endpoint, "endpoints_silent", since=since, limit=_SOME):
        if graced(endpoint.last_seen or turn.now, gap, periods).passed(turn.now):
            reaching.move(turn, endpoint, EndpointMove.EXPIRE, "no sign of life")


def _check(turn: Turn, flight: Flight) -> None:
    """An open flight is looked at ever more rarely; one that waited too long for its target has failed."""
    on = flight.waiting_on
    if flight.state is FlightState.QUEUED and on is not None:
        if asks.look_again(turn, flight):
            return
        if on.until is not None and on.until <= turn.now:
            why = f"it waited too long: {flight.reason}"
            address, remedies = turn.canonical(flight.target), (retry_remedy(flight),)
            gone = TargetOffline(address=address, reason=why, remedies=remedies)
            settle.finish(turn, flight, fail_flight(flight, error_of(gone), turn.now))
            return
    settle.note(turn, note_flight(flight, flight.phase, turn.now, next_check_at=_next_check(turn, flight)))


def _next_check(turn: Turn, flight: Flight) -> Time:
    pause = min(max(2 * turn.now.since(flight.updated_at), 60.0), _LONGEST)
    until = flight.waiting_on.until if flight.waiting_on else None
    following = turn.now.plus(pause)
    return min(following, until) if until is not None and until > turn.now else following
