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
from scout.broker.delivery.dispatcher import Dispatching
from scout.broker.delivery.turn_record import HOLDER
from scout.broker.effects import delegations, flight_state, reminders, session_end
from scout.broker.operations import decisions
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.broker.upkeep import flight_checks, sleeping_agents
from scout.model.agent import Agent
from scout.model.alias import Alias, remove_alias
from scout.model.attention import Attention
from scout.model.card import Card, expire_card
from scout.model.change import Mutable
from scout.model.conversation import Message
from scout.model.delivery import CLOCK_SLACK, Delivery, DeliveryMove, dead_letter, expire
from scout.model.endpoint import Endpoint
from scout.model.events.directory import AliasRemoved, CardExpired, GrantExpired, TokenExpired
from scout.model.flight import FLIGHT, Flight, note_flight
from scout.model.grant import Grant, GrantMove, end_grant
from scout.model.noun import NOUNS
from scout.model.owed_move import PERIODS
from scout.model.ref import Ref
from scout.model.session import Session, SessionState
from scout.model.token import Token, expire_token
from scout.policy.limits import Gap
from scout.policy.sweep import due_for
from scout.policy.sweep_actions import (
    EndTask,
    Expire,
    Liveness,
    MarkStale,
    Release,
    Round,
    Sleep,
    StayAwake,
    SweepNudge,
    SweepSubject,
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
        await broker.as_sweeper(lambda tx: delegations.move_mark(tx.ledger, mark))


async def reschedule_after_clock_step(broker: Dispatching) -> None:
    """The clock was ahead and was put right: what was to be looked at in that future is looked at soon."""
    now = broker.services.clock.now()
    ahead: list[str] = await broker.read(lambda ledger: _from_the_future(ledger, now))
    await broker.as_sweeper(lambda tx: _look_soon(tx, ahead))


def _from_the_future(ledger: Ledger, now: Time) -> list[str]:
    opened = ledger.many(Flight, "flights_due", now=_EVER, limit=_EVER)
    return [one.id for one in opened if one.updated_at > now]


def _look_soon(tx: Transaction, idents: Sequence[str]) -> None:
    delegations.rewind_mark(tx.ledger, tx.now)
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
        alive = await flight_checks.inspect_flight(broker, ident) if ident.startswith("flt_") else None
        await broker.as_sweeper(lambda tx: _attend(tx, ident, alive, gap))
    except Exception:  # noqa: BLE001 (the next round comes; it is logged)
        _LOG.exception("sweeping %s", ident)


# -- what is due -------------------------------------------------------------------------------------


def find_due(ledger: Ledger, this: Round) -> Due:
    """What the indices say: as much work as there is due, whatever there is."""
    overdue = delegations.overdue_delegations(ledger, this, _SOME)
    ids = (*_timed(ledger, this), *_owed(ledger, this), *(one.message_id or "" for one in overdue))
    mark = delegations.mark_of(overdue, _SOME)
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
            flight_checks.follow_up(tx, record, action, alive)


def _watched(tx: Transaction, record: Any, alive: Liveness | None) -> SweepSubject | None:
    """The record with what its table does not hold; nothing when nobody is to be reminded of it any more."""
    match record:
        case Message():
            return delegations.watch_delegation(tx, record)
        case Flight():
            return flight_checks.watch_flight(tx, record, alive)
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
