"""The sweeper: insurance, not planner. It finds what is overdue and does the one thing that is due for it.

Every round asks the indices what is due and reads nothing else. Each record is a transaction of its own,
decided by `policy.sweep` from what is stored then: what has moved meanwhile is left alone.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from scout.base.time import Time
from scout.broker.delivery import recovery
from scout.broker.delivery.dispatcher import Dispatching
from scout.broker.delivery.turn_record import HOLDER
from scout.broker.effects import flight_state, held_flights, reminders, session_end
from scout.broker.operations import decisions
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.broker.upkeep import sleeping_agents
from scout.model.agent import Agent
from scout.model.alias import Alias, remove_alias
from scout.model.attention import Attention
from scout.model.card import Card, expire_card
from scout.model.change import Mutable
from scout.model.conversation import Message
from scout.model.delivery import (
    CLOCK_SLACK,
    Delivery,
    DeliveryMove,
    DeliveryState,
    InspectResult,
    dead_letter,
    expire,
)
from scout.model.endpoint import Endpoint, is_online
from scout.model.events.asks import FLIGHT_EVENTS
from scout.model.events.directory import AliasRemoved, CardExpired, GrantExpired, TokenExpired
from scout.model.flight import (
    FLIGHT,
    Flight,
    FlightMove,
    FlightPhase,
    FlightState,
    fail_flight,
    note_flight,
    postpone_flight,
    resume_flight,
    wait_flight,
)
from scout.model.grant import Grant, GrantMove, end_grant
from scout.model.noun import NOUNS
from scout.model.owed_move import PERIODS
from scout.model.ref import Ref
from scout.model.session import Session, SessionState
from scout.model.token import Token, expire_token
from scout.model.waiting import WaitingKind
from scout.policy.limits import Gap
from scout.policy.sweep import due_for
from scout.policy.sweep_actions import (
    CheckFlight,
    EndTask,
    Expire,
    Liveness,
    MarkStale,
    Release,
    Round,
    Sleep,
    StayAwake,
    SweepFail,
    SweepNudge,
    SweepResume,
    SweepSubject,
    Swept,
    WaitFlight,
)
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.sweeper")
_EVER = (1 << 62) - 1
_SOME = 100  # records of a kind in one round; the next round takes the next ones
_FEW = 20  # agents in one round: nobody waits for another to fall asleep

# What says by itself when it is due.
_TIMED: tuple[tuple[type[Mutable], str], ...] = (
    (Delivery, "deliveries_expiring"),
    (Flight, "flights_due"),
    (Card, "cards_expiring"),
    (Grant, "grants_expiring"),
    (Token, "tokens_expiring"),
    (Attention, "attention_expiring"),
)


_SEEN = {
    InspectResult.TAKEN: Liveness.ALIVE,
    InspectResult.NOT_TAKEN: Liveness.DEAD,
    InspectResult.UNKNOWN: Liveness.UNKNOWN,
}


class Due(NamedTuple):
    """Ids of records that may be due; with `looked`, all delegations up to then are among them."""

    ids: tuple[str, ...]
    looked: Time | None = None


async def sweep(broker: Dispatching, gap: Gap | None = None) -> None:
    """One round: it writes only when there is something to write."""
    this = _round(broker.services, broker.services.clock.now(), gap)
    due: Due = await broker.read(lambda ledger: find_due(ledger, this))
    await asyncio.gather(*(_attended(broker, ident, gap) for ident in due.ids))
    mark = due.looked
    if mark is not None:
        await broker.as_sweeper(lambda tx: reminders.move_mark(tx.ledger, mark))


async def reschedule_after_clock_step(broker: Dispatching) -> None:
    """The clock was ahead and was put right: what was to be looked at in that future is looked at soon."""
    now = broker.services.clock.now()
    ahead: list[str] = await broker.read(lambda ledger: _from_the_future(ledger, now))
    await broker.as_sweeper(lambda tx: _look_soon(tx, ahead))


def _from_the_future(ledger: Ledger, now: Time) -> list[str]:
    opened = ledger.many(Flight, "flights_due", now=_EVER, limit=_EVER)
    return [one.id for one in opened if one.updated_at > now]


def _look_soon(tx: Transaction, idents: Sequence[str]) -> None:
    reminders.rewind_mark(tx.ledger, tx.now)
    for ident in idents:
        flight = tx.get(Flight, ident)
        if flight is not None and flight.state not in FLIGHT.terminal:
            soon = tx.now.plus(tx.rules.periods.sweeps.flight_check)
            flight_state.record_note(
                tx, replace(note_flight(flight, flight.phase, tx.now), next_check_at=soon)
            )


def _round(services: Services, now: Time, gap: Gap | None) -> Round:
    return Round(now=now, operator_id=services.operator_agent, periods=services.rules.periods, gap=gap)


async def _attended(broker: Dispatching, ident: str, gap: Gap | None) -> None:
    """What is due for one record; a fault with it does not hold up the others."""
    try:
        alive = await inspect_flight(broker, ident) if ident.startswith("flt_") else None
        await broker.as_sweeper(lambda tx: _attend(tx, ident, alive, gap))
    except Exception:  # noqa: BLE001 (the next round comes; it is logged)
        _LOG.exception("sweeping %s", ident)


# -- what is due -------------------------------------------------------------------------------------


def find_due(ledger: Ledger, this: Round) -> Due:
    """What the indices say: as much work as there is due, whatever there is."""
    overdue = reminders.overdue_delegations(ledger, this, _SOME)
    ids = (*_timed(ledger, this), *_owed(ledger, this), *(one.message_id or "" for one in overdue))
    mark = reminders.mark_of(overdue, _SOME)
    return Due(tuple(dict.fromkeys(ids)), mark)


def _timed(ledger: Ledger, this: Round) -> Iterator[str]:
    now = int(this.now)
    far = int(this.now.plus(this.periods.lease + CLOCK_SLACK))  # the clock was set back since
    leases = ledger.many(Delivery, "deliveries_overdue", now=now, limit=_SOME)
    leases += ledger.many(Delivery, "deliveries_leased", after=far, limit=_SOME)
    yield from (one.id for one in leases if one.leased_by != HOLDER)  # who renews its own
    for kind, query in _TIMED:
        yield from (one.id for one in ledger.many(kind, query, now=now, limit=_SOME))
    since = int(this.now.plus(-this.periods.sweeps.endpoint_silent))
    yield from (one.id for one in ledger.many(Endpoint, "endpoints_silent", since=since, limit=_SOME))
    yield from (one.id for one in ledger.many(Alias, "aliases_over", limit=_SOME))
    before = int(this.now.plus(-this.periods.agent_idle))
    yield from (one.id for one in ledger.many(Agent, "agents_idle", before=before, limit=_FEW))


def _owed(ledger: Ledger, this: Round) -> Iterator[str]:
    for period in PERIODS:
        before = int(this.now.plus(-getattr(this.periods.sweeps, period)))
        for (ident,) in ledger.rows("sweeps_first", period=period, before=before, limit=_SOME):
            yield ident
    for (ident,) in ledger.rows("sweeps_next", now=int(this.now), limit=_SOME):
        yield ident


# -- what is done ------------------------------------------------------------------------------------


def _attend(tx: Transaction, ident: str, alive: Liveness | None, gap: Gap | None) -> None:
    """The one action that is due for a record, if any still is."""
    record: Any = tx.get(NOUNS[Ref.to(ident).kind].record, ident)
    watch = _watched(tx, record, alive)
    action = due_for(watch, _round(tx.services, tx.now, gap)) if watch is not None else None
    match action:
        case None:
            pass
        case SweepNudge():
            reminders.remind(tx, record, action)
        case Expire():
            _expired(tx, record, action.rule)
        case Release():
            after = expire(record, tx.now, tx.rules.back_off)
            flight_state.record_delivery(tx, record, after, DeliveryMove.EXPIRE)
        case MarkStale():
            session_end.lose_endpoint(tx, record, action.rule)
        case Sleep() | StayAwake() | EndTask():
            sleeping_agents.follow(tx, record, action)
        case _:
            follow_up(tx, record, action, alive)


def _watched(tx: Transaction, record: Any, alive: Liveness | None) -> SweepSubject | None:
    """The record with what its table does not hold; nothing when nobody is to be reminded of it any more."""
    match record:
        case Message():
            return reminders.watch_delegation(tx, record)
        case Flight():
            return watch_flight(tx, record, alive)
        case Agent():
            return sleeping_agents.watch(tx, record)
        case Alias():
            session = tx.get(Session, record.target.session_id)
            over = session is not None and session.state in (SessionState.ENDED, SessionState.LOST)
            return SweepSubject(record=record, session_over=over)
        case _:
            return reminders.watch(tx, record)


def _expired(tx: Transaction, record: Any, rule: str) -> None:
    """Its time is over: nobody can use it any more."""
    match record:
        case Attention():
            decisions.expired(tx, record)
        case Delivery():
            flight_state.record_delivery(tx, record, dead_letter(record, rule, tx.now))
        case Card():
            tx.record(CardExpired, expire_card(record, tx.now), move="expire", reason=rule)
        case Grant():
            over = end_grant(record, GrantMove.EXPIRE, tx.now, reason=rule)
            tx.record(GrantExpired, over, move="expire", reason=rule)
        case Token():
            tx.record(TokenExpired, expire_token(record, tx.now), move="expire", reason=rule)
        case _:
            gone = remove_alias(record, tx.now, reason=rule)
            tx.record(AliasRemoved, gone, move="remove", reason=rule)


# -- looking -----------------------------------------------------------------------------------------


async def inspect_flight(broker: Dispatching, flight_id: str) -> Liveness | None:
    """What can be seen of the program that works on a flight; nothing of an agent that reads its inbox."""
    flight, delivery = await broker.read(lambda ledger: _under_way(ledger, flight_id))
    if flight is None or delivery is None or flight.state is FlightState.QUEUED:
        return None
    if delivery.state is not DeliveryState.ACKED or broker.dispatcher.is_under_way(delivery):
        return Liveness.ALIVE
    on = flight.waiting_on
    if on is not None and on.kind is not WaitingKind.PEER:
        return None  # its program may well have ended: something else is to happen first
    return _SEEN[await broker.dispatcher.look(delivery)]


def _under_way(ledger: Ledger, flight_id: str) -> tuple[Flight | None, Delivery | None]:
    return ledger.get(Flight, flight_id), _program(ledger, flight_id)


def _program(ledger: Ledger, flight_id: str) -> Delivery | None:
    """The delivery by which a program was started for a flight, if the last one was."""
    last = ledger.many(Delivery, "deliveries_of_flight", flight=flight_id)[-1:]
    return next((one for one in last if one.wake), None)


def watch_flight(tx: Transaction, flight: Flight, alive: Liveness | None) -> SweepSubject:
    """A flight with what is known of it: what became of its program, or when its agent was heard from."""
    named = tx.get(Endpoint, flight.endpoint_id)
    known = [one for one in ([named] if named else tx.endpoints(flight.target)) if not one.held]
    within = tx.rules.periods.online_within
    if alive is None and any(is_online(one, tx.now, within) for one in known):
        alive = Liveness.ALIVE
    return SweepSubject(
        record=flight,
        seen_at=max((one.last_seen for one in known if one.last_seen is not None), default=None),
        found=alive,
        address=tx.address(flight.target),
        title=reminders.title_of_record(tx, flight),
        **reminders.reminders(tx, flight.id),
    )


# -- what follows ------------------------------------------------------------------------------------


def follow_up(tx: Transaction, flight: Flight, action: Swept, alive: Liveness | None) -> None:
    """What the sweeper found due for a flight."""
    match action:
        case CheckFlight() | SweepResume() if flight.state is FlightState.QUEUED:
            if not held_flights.try_to_release(tx, flight):
                _later(tx, flight, action)
        case CheckFlight():
            checked = {"reason": action.rule, "next_check_at": action.next_check}
            flight_state.record_note(tx, note_flight(flight, FlightPhase.CHECKING, tx.now, **checked))
        case SweepResume() if flight.state is FlightState.RUNNING:
            heard = {"reason": "the target works on it", "next_check_at": action.next_check}
            flight_state.record_note(tx, note_flight(flight, FlightPhase.WORKING, tx.now, **heard))
        case SweepResume():
            _resumed(tx, flight, action, alive)
        case WaitFlight():
            on, holder = action.waiting_on, action.holder_id
            waiting = wait_flight(flight, on, tx.now, next_move_owner_id=holder, reason=action.reason)
            _moved(tx, waiting, FlightMove.WAIT)
        case SweepFail():
            flight_state.finish_flight(tx, flight, fail_flight(flight, action.error, tx.now))
            delivery = _program(tx.ledger, flight.id)
            if delivery is not None:
                recovery.end_run(tx, delivery, action.rule)
        case _:
            _later(tx, flight, action)


def _later(tx: Transaction, flight: Flight, action: Swept) -> None:
    flight_state.record_note(tx, postpone_flight(flight, action.next_check or tx.now))


def _resumed(tx: Transaction, flight: Flight, action: Swept, alive: Liveness | None) -> None:
    """Its wait is over. A program that has ended meanwhile is started again for it."""
    resumed = resume_flight(flight, tx.now)
    _moved(tx, resumed, FlightMove.RESUME, action.rule)
    if alive is not Liveness.ALIVE and _program(tx.ledger, flight.id) is not None:
        held_flights.carry_again(tx, resumed, action.rule)


def _moved(tx: Transaction, flight: Flight, move: FlightMove, reason: str = "") -> None:
    tx.record(FLIGHT_EVENTS[move], flight, move=move, reason=reason or flight.reason)
