"""Overdue records: at most one action per record and one nudge per period, to exactly one holder."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from scout.base.refusal import Diagnostic, Remedy
from scout.base.time import Time
from scout.identity.path import Kind
from scout.model.access.grant import Grant, GrantState
from scout.model.access.token import Token, TokenState
from scout.model.agent import Agent, Lifecycle
from scout.model.alias import Alias, AliasState
from scout.model.attention import ATTENTION, Attention, AttentionKind
from scout.model.card import Card, CardState
from scout.model.delivery import Delivery, DeliveryState, is_ahead_of_clock
from scout.model.endpoint import ENDPOINT, Endpoint, EndpointMove
from scout.model.flight import FLIGHT, Flight, FlightPhase, FlightState, build_error, retry_remedy
from scout.model.problems.session import Layer, SessionFailed
from scout.model.problems.target import TargetOffline
from scout.model.question import Question
from scout.model.reservation import Reservation, ReservationState
from scout.model.waiting import WAIT_ENDS, OwedMove, WaitingKind, WaitingOn
from scout.model.work_item import WorkItem
from scout.policy.limits import Alarm
from scout.policy.sweep_actions import (
    CheckFlight,
    Delegation,
    EndTask,
    EndWait,
    Expire,
    Level,
    Liveness,
    LookLater,
    MarkStale,
    Release,
    Rest,
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

_LONGEST = 3600.0  # maximum seconds between checks of an unchanged flight

_IN_FORCE = frozenset(
    {
        CardState.ACTIVE,
        GrantState.ACTIVE,
        TokenState.ACTIVE,
        ReservationState.ACTIVE,
        *(state for state in ATTENTION.states if state not in ATTENTION.terminal),
    }
)


def find_due_action(watch: SweepSubject, this: Round) -> Swept | None:
    """Return the one action that is due for a record, if any."""
    match watch.record:
        case Question() | WorkItem() as record:
            return _check_owed(record, watch, this)
        case Delegation() as delegation:
            return _check_delegation(delegation, watch, this)
        case Flight() as flight:
            return _check_flight(flight, watch, this)
        case Delivery() as delivery:
            return _check_delivery(delivery, this)
        case Endpoint() as endpoint:
            return _check_endpoint(endpoint, this)
        case Alias() as alias:
            return _check_alias(alias, watch)
        case Agent() as agent:
            return find_due_rest(agent, watch.rest, this) if watch.rest is not None else None
        case item:
            return _check_expiry(item, this)


def _check_owed(record: Question | WorkItem, watch: SweepSubject, this: Round) -> SweepNudge | EndWait | None:
    late = record.owed_move
    if late is None:
        return None
    if late.period == WAIT_ENDS:
        over = this.is_past(late.since)
        return (
            EndWait(noun="work item", id=record.id, rule="the time it waited for has come") if over else None
        )
    if isinstance(record, Question):
        words = _Late("question", record.id, f"{record.state} question", late)
        return _nudge(words, (record.next_move_owner_id, record.asker_id), watch, this)
    words = _Late("work item", record.id, f"work item in {record.state}", late)
    return _nudge(words, (record.next_move_owner_id, record.owner_id), watch, this)


def _check_delegation(one: Delegation, watch: SweepSubject, this: Round) -> SweepNudge | None:
    late = _Late("message", one.id, f"{one.kind} without an answer", OwedMove("delegation", one.created_at))
    return _nudge(late, (one.target_id, one.sender_id), watch, this)


class _Late(NamedTuple):
    """An overdue record and the rule that applies. `same`: dedupe key of the attention item about it."""

    noun: str
    id: str
    rule: str
    owed: OwedMove
    same: str = ""


def _nudge(late: _Late, holders: Sequence[str | None], watch: SweepSubject, this: Round) -> SweepNudge | None:
    """Remind the holder, one period later the owner, one period later the operator; then stop."""
    since = late.owed.since
    period: float = getattr(this.periods.sweeps, late.owed.period)
    told, at = 0, since.plus(period)
    if watch.nudged_at is not None and watch.nudged_at >= since:  # else it changed: restart with the holder
        told, at = watch.nudges, watch.next_at or watch.nudged_at.plus(period)
    ladder = _list_rungs(holders, this.operator_id)
    if told >= len(ladder) or not this.is_past(at):
        return None
    level, holder = ladder[told]
    return SweepNudge(
        noun=late.noun,
        id=late.id,
        rule=late.rule,
        next_check=this.now.plus(period) if told + 1 < len(ladder) else None,
        holder_id=holder,
        level=level,
        count=told + 1,
        escalated_from=ladder[told - 1][1] if told else None,
        alarm=_build_alarm(late, watch.title),
    )


def _list_rungs(holders: Sequence[str | None], operator_id: str) -> list[tuple[Level, str]]:
    """Return each recipient once. The last is the operator, even if the operator is the holder."""
    rungs: dict[str, Level] = {}
    for level, holder in zip((Level.HOLDER, Level.OWNER), holders, strict=True):
        if holder == operator_id:
            break
        if holder is not None:
            rungs.setdefault(holder, level)
    return [*((level, holder) for holder, level in rungs.items()), (Level.OPERATOR, operator_id)]


def _build_alarm(late: _Late, title: str) -> Alarm:
    kind = AttentionKind.REVIEW if late.rule.endswith("review") else AttentionKind.WAITING
    why = Remedy(operation="why", parameters={"id": late.id}, why="show its history")
    body = f"no progress since {late.owed.since}"
    about = f"{late.rule}: {title or late.id}"
    return Alarm(kind=kind, title=about, body=body, dedupe=late.same or late.id, remedies=(why,))


def _check_flight(flight: Flight, watch: SweepSubject, this: Round) -> Swept | None:
    """Check a silent flight; then resume it, let it wait for a sign of life, or fail it."""
    if flight.state in FLIGHT.terminal:
        return None
    if watch.found is Liveness.DEAD:
        return _fail(flight, "found dead", _build_failure(flight, "nothing is working on it"))
    if flight.waiting_on is not None:
        return _check_held(flight, flight.waiting_on, watch, this)
    if not this.is_past(flight.next_check_at):
        return None
    if flight.state is FlightState.QUEUED:
        return _plan_check(flight, "queued without progress", this)
    return _check_running(flight, watch, this)


def _check_running(flight: Flight, watch: SweepSubject, this: Round) -> Swept:
    silent = this.periods.sweeps.flight_silent
    alive = watch.found is Liveness.ALIVE
    if flight.phase is FlightPhase.CHECKING:
        return _resume(flight, "found alive", this) if alive else _start_waiting(flight, watch, this)
    seen = this.now if alive else max(flight.updated_at, watch.seen_at or flight.updated_at)
    if not this.is_past(seen.plus(silent)):
        return LookLater(noun="flight", id=flight.id, rule="under way", next_check=seen.plus(silent))
    check = this.now.plus(this.periods.sweeps.flight_check)
    return CheckFlight(noun="flight", id=flight.id, rule="no sign of life", next_check=check)


def _start_waiting(flight: Flight, watch: SweepSubject, this: Round) -> WaitFlight:
    until = this.now.plus(this.periods.sweeps.flight_silent)
    on = WaitingOn(kind=WaitingKind.PEER, ref=flight.endpoint_id or flight.target, until=until)
    reason = f"no sign of life since {_get_last_sign(flight, watch)}"
    rule = "check without result"
    return WaitFlight(
        noun="flight",
        id=flight.id,
        rule=rule,
        next_check=until,
        waiting_on=on,
        holder_id=flight.target,
        reason=reason,
    )


def _check_held(flight: Flight, on: WaitingOn, watch: SweepSubject, this: Round) -> Swept | None:
    """Nudge for a wait on an actor; a wait for a time or a sign of life ends without a nudge."""
    queued = flight.state is FlightState.QUEUED
    late = flight.owed_move
    if late is not None:
        by_hand = queued and on.kind is WaitingKind.OPERATOR  # the operator has one item per agent
        same = f"held:{flight.target}" if by_hand else ""
        words = _Late("flight", flight.id, f"flight waiting on {on.kind}", late, same)
        nudge = _nudge(words, (flight.next_move_owner_id, flight.requester_id), watch, this)
        if nudge is not None:
            return nudge
    if queued and on.kind is WaitingKind.PEER and this.is_past(on.until):
        why = f"it expired while waiting: {flight.reason}"
        return _fail(flight, "queue expired", TargetOffline(address=watch.address, reason=why))
    if not this.is_past(flight.next_check_at or on.until):
        return None
    if late is None and on.kind is not WaitingKind.PEER:
        return _resume(flight, f"{on.kind} has ended", this)
    if queued:
        return _plan_check(flight, f"held for {on.kind}", this)
    return (
        _check_awaited(flight, watch, this)
        if late is None
        else _postpone_check(flight, f"waiting on {on.kind}", this)
    )


def _check_awaited(flight: Flight, watch: SweepSubject, this: Round) -> Swept:
    """Resume, fail or recheck a flight that was waiting for a sign of life."""
    if watch.found is Liveness.ALIVE:
        return _resume(flight, "found alive", this)
    seen = _get_last_sign(flight, watch)
    if this.is_past(seen.plus(this.periods.queue_expiry)):
        return _fail(flight, "lost", _build_failure(flight, f"no sign of life since {seen}"))
    return _postpone_check(flight, "no sign of life", this)


def _get_last_sign(flight: Flight, watch: SweepSubject) -> Time:
    return watch.seen_at or flight.started_at or flight.created_at


def _plan_check(flight: Flight, rule: str, this: Round) -> CheckFlight:
    """Check whether the flight can be delivered now, at growing intervals."""
    return CheckFlight(noun="flight", id=flight.id, rule=rule, next_check=_choose_next_check(flight, this))


def _postpone_check(flight: Flight, rule: str, this: Round) -> LookLater:
    return LookLater(noun="flight", id=flight.id, rule=rule, next_check=_choose_next_check(flight, this))


def _choose_next_check(flight: Flight, this: Round) -> Time:
    """Return the next check: the longer a flight is unchanged, the later, but not after its wait ends."""
    first = this.periods.sweeps.flight_check
    pause = min(max(2 * this.now.since(flight.updated_at), first), _LONGEST)
    until = flight.waiting_on.until if flight.waiting_on else None
    next_check = this.now.plus(pause)
    return min(next_check, until) if until is not None and until > this.now else next_check


def _resume(flight: Flight, rule: str, this: Round) -> SweepResume:
    next_check = this.now.plus(this.periods.sweeps.flight_silent)
    return SweepResume(noun="flight", id=flight.id, rule=rule, next_check=next_check)


def _build_failure(flight: Flight, reason: str) -> SessionFailed:
    return SessionFailed(session_id=flight.session_id or "unknown", layer=Layer.SESSION, reason=reason)


def _fail(flight: Flight, rule: str, problem: Diagnostic) -> SweepFail:
    error = build_error(msgspec.structs.replace(problem, remedies=(retry_remedy(flight),)))
    return SweepFail(noun="flight", id=flight.id, rule=rule, error=error)


def _check_expiry(item: Card | Grant | Token | Reservation | Attention, this: Round) -> Expire | None:
    nouns = {
        Card: "card",
        Grant: "grant",
        Token: "token",
        Reservation: "reservation",
        Attention: "attention",
    }
    if item.state not in _IN_FORCE or not this.is_past(item.expires_at):
        return None
    return Expire(noun=nouns[type(item)], id=item.id, rule="it expired")


def _check_delivery(delivery: Delivery, this: Round) -> Swept | None:
    leased = delivery.state is DeliveryState.LEASED
    if leased and (this.is_past(delivery.leased_until) or is_ahead_of_clock(delivery, this.now)):
        return Release(noun="delivery", id=delivery.id, rule="its lease expired")
    if delivery.state is DeliveryState.PENDING and this.is_past(delivery.expires_at):
        return Expire(noun="delivery", id=delivery.id, rule="it expired")
    return None


def _check_endpoint(endpoint: Endpoint, this: Round) -> MarkStale | None:
    """Mark a silent endpoint stale if it can expire; a process held by the broker needs no heartbeat."""
    if endpoint.held or EndpointMove.EXPIRE not in ENDPOINT.accepts(endpoint.state):
        return None
    seen = endpoint.last_seen if endpoint.last_seen is not None else endpoint.updated_at
    if not this.is_past(seen.plus(this.periods.sweeps.endpoint_silent)):
        return None
    return MarkStale(noun="endpoint", id=endpoint.id, rule=f"no heartbeat since {seen}")


def _check_alias(alias: Alias, watch: SweepSubject) -> Expire | None:
    over = alias.until_session_ends and watch.session_over and alias.state is not AliasState.REMOVED
    return Expire(noun="alias", id=alias.id, rule="its session ended") if over else None


# Reasons that keep an agent awake, by field of `Rest`; the first that applies is reported.
_AWAKE = {
    "flights": "a flight to it is open",
    "leased": "it claimed inbox items",
    "attention": "one of its items needs a person",
    "working": "it is working or starting",
    "live": "it has a live session",
    "terminal": "a session is open in a terminal",
    "unresumable": "its running program could not be resumed",
    "kept_warm": "it is kept warm",
    "by_hand": "a person started it",
    "elsewhere": "another node manages it",
}


def find_due_rest(agent: Agent, rest: Rest, this: Round) -> Sleep | StayAwake | EndTask | None:
    """Put an agent to sleep, end a finished task, or note why it stays awake and when it was last active."""
    if agent.lifecycle is not Lifecycle.ACTIVE or agent.kind is Kind.SYSTEM or agent.is_person:
        return None
    task_is_done = agent.kind is Kind.TASK and rest.done and not rest.flights
    if task_is_done and rest.working:
        return None  # its turn ends soon: the next round checks again
    for field, why in _AWAKE.items():
        if getattr(rest, field):
            return StayAwake(noun="agent", id=agent.id, rule=why, active_at=this.now)
    if task_is_done:
        return EndTask(noun="agent", id=agent.id, rule="its task is done")
    if not this.is_past(rest.active_at.plus(this.periods.agent_idle)):
        return StayAwake(noun="agent", id=agent.id, rule="it was active recently", active_at=rest.active_at)
    return Sleep(noun="agent", id=agent.id, rule=f"idle since {rest.active_at}")
