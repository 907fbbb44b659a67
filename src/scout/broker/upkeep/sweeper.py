"""The sweeper: insurance, not planner. It finds overdue records and takes the one action due for each.

Each round reads only due records, through indices. Each record gets a separate transaction,
decided by `policy.sweep` from what is stored then, so records that changed meanwhile are left alone.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from scout.base.machine import Mutable
from scout.base.time import Time
from scout.broker.delivery import recovery
from scout.broker.delivery.dispatcher import Dispatching
from scout.broker.delivery.turn_record import HOLDER
from scout.broker.effects import (
    flight_state,
    held_flights,
    reminders,
    remote_flights,
    reservations,
    session_end,
)
from scout.broker.operations import decisions, work
from scout.broker.routing.attention_items import find_person_for
from scout.broker.routing.remote import is_remote
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.broker.upkeep import sleeping_agents
from scout.model.access.grant import Grant, GrantMove, end_grant
from scout.model.access.token import Token, expire_token
from scout.model.agent import Agent
from scout.model.alias import Alias, remove_alias
from scout.model.attention import Attention
from scout.model.card import Card, expire_card
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
from scout.model.events.asks import FLIGHT_EVENTS, SweepSettled, Unwatched
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
from scout.model.noun import NOUNS
from scout.model.question import QUESTION_PERIODS, Question
from scout.model.ref import Ref
from scout.model.reservation import Reservation
from scout.model.session import Session, SessionState
from scout.model.waiting import WAIT_ENDS, WaitingKind
from scout.model.work_item import WORK_PERIODS, WorkItem
from scout.policy.limits import Gap
from scout.policy.sweep import find_due_action
from scout.policy.sweep_actions import (
    CheckFlight,
    EndTask,
    EndWait,
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
_SOME = 100  # maximum records of a kind per round
_FEW = 20  # maximum agents per round: sleeping is not urgent
_NEAR = 2000  # maximum events that are not indexed, when a transaction looks for what an agent did

# Records that store when they are due.
_TIMED: tuple[tuple[type[Mutable], str], ...] = (
    (Delivery, "deliveries_expiring"),
    (Flight, "flights_due"),
    (Card, "cards_expiring"),
    (Grant, "grants_expiring"),
    (Token, "tokens_expiring"),
    (Attention, "attention_expiring"),
    (Reservation, "reservations_expiring"),
)


_SEEN = {
    InspectResult.TAKEN: Liveness.ALIVE,
    InspectResult.NOT_TAKEN: Liveness.DEAD,
    InspectResult.UNKNOWN: Liveness.UNKNOWN,
}


class Due(NamedTuple):
    """Ids of records that may be due; `looked`: the time up to which delegations are complete."""

    ids: tuple[str, ...]
    looked: Time | None = None


async def sweep(broker: Dispatching, gap: Gap | None = None) -> None:
    """Run one round; it writes only if there is something to write."""
    this = _build_round(broker.services, broker.services.clock.now(), gap)
    due: Due = await broker.read(lambda ledger: find_due(ledger, this))
    await asyncio.gather(*(_handle_record(broker, ident, gap) for ident in due.ids))
    mark = due.looked
    if mark is not None:
        await broker.as_sweeper(lambda tx: reminders.move_mark(tx.ledger, mark))


async def reschedule_after_clock_step(broker: Dispatching) -> None:
    """Reschedule checks that were set while the clock was ahead."""
    now = broker.services.clock.now()
    ahead: list[str] = await broker.read(lambda ledger: _find_ahead_of_clock(ledger, now))
    await broker.as_sweeper(lambda tx: _reschedule(tx, ahead))


def _find_ahead_of_clock(ledger: Ledger, now: Time) -> list[str]:
    opened = ledger.many(Flight, "flights_due", now=_EVER, limit=_EVER)
    return [one.id for one in opened if one.updated_at > now]


def _reschedule(tx: Transaction, idents: Sequence[str]) -> None:
    reminders.move_back_mark(tx.ledger, tx.now)
    for ident in idents:
        flight = tx.get(Flight, ident)
        if flight is not None and flight.state not in FLIGHT.terminal:
            soon = tx.now.plus(tx.rules.periods.sweeps.flight_check)
            flight_state.record_note(
                tx, replace(note_flight(flight, flight.phase, tx.now), next_check_at=soon)
            )


def _build_round(services: Services, now: Time, gap: Gap | None) -> Round:
    return Round(now=now, operator_id=services.operator_agent, periods=services.rules.periods, gap=gap)


async def _handle_record(broker: Dispatching, ident: str, gap: Gap | None) -> None:
    """Handle one record; a fault with it does not delay the others."""
    try:
        alive = await inspect_flight(broker, ident) if ident.startswith("flt_") else None
        await broker.as_sweeper(lambda tx: _take_action(tx, ident, alive, gap))
    except Exception:  # noqa: BLE001 (it is logged; the next round follows)
        _LOG.exception("sweeping %s", ident)


# -- finding ----------------------------------------------------------------------------------------


def find_due(ledger: Ledger, this: Round) -> Due:
    """Return what is due, read from indices: the cost follows the due records, not the history.

    Under load the index of the log falls behind, and what an agent did last is found by reading the rest.
    That would stop all requests for as long, so agents and delegations wait until the index is near the end.
    """
    ids = (*_find_timed(ledger, this), *_find_owed(ledger, this))
    if ledger.log.count_unindexed() > _NEAR:
        return Due(tuple(dict.fromkeys(ids)))
    overdue = reminders.find_overdue_delegations(ledger, this, _SOME)
    named = (*(one.message_id or "" for one in overdue), *_find_idle_agents(ledger, this))
    return Due(tuple(dict.fromkeys((*ids, *named))), reminders.get_mark(overdue, _SOME))


def _find_idle_agents(ledger: Ledger, this: Round) -> Iterator[str]:
    before = int(this.now.plus(-this.periods.agent_idle))
    yield from (one.id for one in ledger.many(Agent, "agents_idle", before=before, limit=_FEW))


def _find_timed(ledger: Ledger, this: Round) -> Iterator[str]:
    now = int(this.now)
    far = int(this.now.plus(this.periods.lease + CLOCK_SLACK))  # leased before the clock was set back
    leases = ledger.many(Delivery, "deliveries_overdue", now=now, limit=_SOME)
    leases += ledger.many(Delivery, "deliveries_leased", after=far, limit=_SOME)
    yield from (one.id for one in leases if one.leased_by != HOLDER)  # the dispatcher renews its leases
    for kind, query in _TIMED:
        yield from (one.id for one in ledger.many(kind, query, now=now, limit=_SOME))
    since = int(this.now.plus(-this.periods.sweeps.endpoint_silent))
    yield from (one.id for one in ledger.many(Endpoint, "endpoints_silent", since=since, limit=_SOME))
    yield from (one.id for one in ledger.many(Alias, "aliases_over", limit=_SOME))


def _find_owed(ledger: Ledger, this: Round) -> Iterator[str]:
    periods = {
        one: getattr(this.periods.sweeps, one) for one in (*QUESTION_PERIODS.values(), *WORK_PERIODS.values())
    }
    for period, seconds in {**periods, WAIT_ENDS: 0.0}.items():
        before = int(this.now.plus(-seconds))
        for (ident,) in ledger.rows("sweeps_first", period=period, before=before, limit=_SOME):
            yield ident
    for (ident,) in ledger.rows("sweeps_next", now=int(this.now), limit=_SOME):
        yield ident


# -- acting ------------------------------------------------------------------------------------------


def _take_action(tx: Transaction, ident: str, alive: Liveness | None, gap: Gap | None) -> None:
    """Take the one action that is due for a record, if any still is."""
    record: Any = tx.get(NOUNS[Ref.to(ident).kind].record, ident)
    if _check_elsewhere(tx, record):
        return
    watch = _build_subject(tx, record, alive)
    this = replace(_build_round(tx.services, tx.now, gap), operator_id=_find_person(tx, record))
    action = find_due_action(watch, this) if watch is not None else None
    match action:
        case None:
            pass
        case SweepNudge():
            reminders.record_reminder(tx, record, action)
        case Expire():
            _expire_record(tx, record, action.rule)
        case Release():
            after = expire(record, tx.now, tx.rules.back_off)
            flight_state.record_delivery(tx, record, after, DeliveryMove.EXPIRE)
        case MarkStale():
            session_end.lose_endpoint(tx, record, action.rule)
        case EndWait():
            work.resume_item(tx, record, action.rule)
        case Sleep() | StayAwake() | EndTask():
            sleeping_agents.follow(tx, record, action)
        case _:
            follow_up(tx, record, action, alive)


def _check_elsewhere(tx: Transaction, record: Any) -> bool:
    """Whether another node sees to a record: it runs the flight, or the next move is its agent's."""
    if isinstance(record, Question | WorkItem) and is_remote(tx, record.next_move_owner_id):
        reason = "the node of the agent that has the next move reminds it"
        tx.append(SweepSettled, record.id, Unwatched(about=Ref.to(record.id), reason=reason))
        return True
    if not isinstance(record, Flight) or not is_remote(tx, record.target):
        return False
    if record.state not in FLIGHT.terminal:
        remote_flights.check_remote_flight(tx, record)
    return True


def _find_person(tx: Transaction, record: Any) -> str:
    """Return the person who is reminded last: the user of the agent that a record belongs to."""
    names = ("owner_id", "responder_id", "target", "agent_id", "sender")
    found = (getattr(record, name, None) for name in names)
    return find_person_for(tx, next((one for one in found if isinstance(one, str)), None))


def _build_subject(tx: Transaction, record: Any, alive: Liveness | None) -> SweepSubject | None:
    """Return the record with the facts its table does not hold; None if no reminder is needed."""
    match record:
        case Message():
            return reminders.find_delegation(tx, record)
        case Flight():
            return watch_flight(tx, record, alive)
        case Agent():
            return sleeping_agents.watch(tx, record)
        case Alias():
            session = tx.get(Session, record.target.session_id)
            over = session is not None and session.state in (SessionState.ENDED, SessionState.LOST)
            return SweepSubject(record=record, session_over=over)
        case _:
            return reminders.build_sweep_subject(tx, record)


def _expire_record(tx: Transaction, record: Any, rule: str) -> None:
    """Expire a record whose time has passed."""
    match record:
        case Attention():
            decisions.expire_item(tx, record)
        case Delivery():
            flight_state.record_delivery(tx, record, dead_letter(record, rule, tx.now))
        case Card():
            tx.record(CardExpired, expire_card(record, tx.now), move="expire", reason=rule)
        case Grant():
            over = end_grant(record, GrantMove.EXPIRE, tx.now, reason=rule)
            tx.record(GrantExpired, over, move="expire", reason=rule)
        case Reservation():
            reservations.record_expiry(tx, record, rule)
        case Token():
            tx.record(TokenExpired, expire_token(record, tx.now), move="expire", reason=rule)
        case _:
            gone = remove_alias(record, tx.now, reason=rule)
            tx.record(AliasRemoved, gone, move="remove", reason=rule)


# -- flights -----------------------------------------------------------------------------------------


async def inspect_flight(broker: Dispatching, flight_id: str) -> Liveness | None:
    """Return the state of the program that works on a flight; None for an agent that reads its inbox."""
    flight, delivery = await broker.read(lambda ledger: _load_flight(ledger, flight_id))
    if flight is None or delivery is None or flight.state is FlightState.QUEUED:
        return None
    if delivery.state is not DeliveryState.ACKED or broker.dispatcher.is_under_way(delivery):
        return Liveness.ALIVE
    on = flight.waiting_on
    if on is not None and on.kind is not WaitingKind.PEER:
        return None  # its program may have ended while the flight waits
    return _SEEN[await broker.dispatcher.inspect_delivery(delivery)]


def _load_flight(ledger: Ledger, flight_id: str) -> tuple[Flight | None, Delivery | None]:
    return ledger.get(Flight, flight_id), _find_program_delivery(ledger, flight_id)


def _find_program_delivery(ledger: Ledger, flight_id: str) -> Delivery | None:
    """Return the last delivery of a flight, if a program was started for it."""
    last = ledger.many(Delivery, "deliveries_of_flight", flight=flight_id)[-1:]
    return next((one for one in last if one.wake), None)


def watch_flight(tx: Transaction, flight: Flight, alive: Liveness | None) -> SweepSubject:
    """Return a flight with the state of its program, or when its agent was last seen."""
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
        title=reminders.get_record_title(tx, flight),
        **reminders.read_reminders(tx, flight.id),
    )


# -- what follows ------------------------------------------------------------------------------------


def follow_up(tx: Transaction, flight: Flight, action: Swept, alive: Liveness | None) -> None:
    """Carry out what the sweeper found due for a flight."""
    match action:
        case CheckFlight() | SweepResume() if flight.state is FlightState.QUEUED:
            if not held_flights.release_if_deliverable(tx, flight):
                _postpone(tx, flight, action)
        case CheckFlight():
            checked = {"reason": action.rule, "next_check_at": action.next_check}
            flight_state.record_note(tx, note_flight(flight, FlightPhase.CHECKING, tx.now, **checked))
        case SweepResume() if flight.state is FlightState.RUNNING:
            heard = {"reason": "the target works on it", "next_check_at": action.next_check}
            flight_state.record_note(tx, note_flight(flight, FlightPhase.WORKING, tx.now, **heard))
        case SweepResume():
            _resume_flight(tx, flight, action, alive)
        case WaitFlight():
            on, holder = action.waiting_on, action.holder_id
            waiting = wait_flight(flight, on, tx.now, next_move_owner_id=holder, reason=action.reason)
            _record_move(tx, waiting, FlightMove.WAIT)
        case SweepFail():
            flight_state.finish_flight(tx, flight, fail_flight(flight, action.error, tx.now))
            delivery = _find_program_delivery(tx.ledger, flight.id)
            if delivery is not None:
                recovery.end_run(tx, delivery, action.rule)
        case _:
            _postpone(tx, flight, action)


def _postpone(tx: Transaction, flight: Flight, action: Swept) -> None:
    flight_state.record_note(tx, postpone_flight(flight, action.next_check or tx.now))


def _resume_flight(tx: Transaction, flight: Flight, action: Swept, alive: Liveness | None) -> None:
    """Resume a flight after its wait; start its program again if that has ended."""
    resumed = resume_flight(flight, tx.now)
    _record_move(tx, resumed, FlightMove.RESUME, action.rule)
    if alive is not Liveness.ALIVE and _find_program_delivery(tx.ledger, flight.id) is not None:
        held_flights.restart_flight(tx, resumed, action.rule)


def _record_move(tx: Transaction, flight: Flight, move: FlightMove, reason: str = "") -> None:
    tx.record(FLIGHT_EVENTS[move], flight, move=move, reason=reason or flight.reason)
