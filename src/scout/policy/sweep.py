"""What is overdue: at most one action per record, one nudge per period, to exactly one holder."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from scout.base.record import Record
from scout.base.refusal import Diagnostic, Remedy
from scout.base.time import Time
from scout.model.alias import Alias, AliasState
from scout.model.ask_event import Nudge as StoredNudge
from scout.model.attention import ATTENTION, Attention, AttentionKind
from scout.model.card import Card, CardState
from scout.model.delivery import Delivery, DeliveryState
from scout.model.endpoint import ENDPOINT, Endpoint, EndpointMove
from scout.model.flight import FLIGHT, Flight, FlightError, FlightPhase, FlightState, error_of, retry_remedy
from scout.model.question import Question, QuestionState
from scout.model.ref import Ref
from scout.model.session_problem import Layer, SessionFailed
from scout.model.target_problem import TargetOffline
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import WorkItem, WorkState
from scout.policy.limits import Alarm, Gap, Periods, graced

__all__ = [
    "CheckFlight",
    "Delegation",
    "Expire",
    "FailFlight",
    "Level",
    "Liveness",
    "MarkStale",
    "Nudge",
    "Release",
    "ResumeFlight",
    "Round",
    "Swept",
    "WaitFlight",
    "Watch",
    "due_for",
    "sweep",
]


class Delegation(Record):
    """A hard mention or an assignment in a message, not yet followed by a reply, an ask or a work item."""

    id: str
    target_id: str
    sender_id: str
    created_at: Time
    kind: str = "mention"


class Liveness(StrEnum):
    """What a check of a silent flight has found."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


class Watch(Record):
    """A record that may be due, with what its table does not hold.

    `nudges` and `nudged_at`: the reminders so far. `seen_at`, `found`: a flight's last sign of life and
    the result of its check. `expires_at`: when a queued ask is over. `session_over`: of an alias.
    """

    record: Question | WorkItem | Delegation | Flight | Delivery | Card | Alias | Attention | Endpoint
    nudges: int = 0
    nudged_at: Time | None = None
    seen_at: Time | None = None
    found: Liveness | None = None
    expires_at: Time | None = None
    session_over: bool = False


class Round(Record):
    """One round of the sweeper: when, by which periods, after which sleep, and who the operator is."""

    now: Time
    operator_id: str
    periods: Periods = Periods()
    gap: Gap | None = None

    def is_past(self, deadline: Time | None) -> bool:
        return deadline is not None and graced(deadline, self.gap, self.periods).passed(self.now)


class Level(StrEnum):
    HOLDER = "holder"
    OWNER = "owner"
    OPERATOR = "operator"


class Swept(Record, tag_field="action"):
    """What is to be done about one record, by which rule, and when it is looked at next."""

    noun: str
    id: str
    rule: str
    next_check: Time | None = None


class Nudge(Swept, tag="nudge"):
    """Remind one holder. At the last level it is the operator's attention that is asked for."""

    holder_id: str
    level: Level
    count: int
    escalated_from: str | None = None
    alarm: Alarm | None = None

    @property
    def stored(self) -> StoredNudge:
        """The nudge as the log holds it."""
        return StoredNudge(
            holder_id=self.holder_id,
            about=Ref.to(self.id),
            rule=self.rule,
            count=self.count,
            escalated_from=self.escalated_from,
            next_at=self.next_check,
        )


class Expire(Swept, tag="expire"):
    """Its time is over: a card, a session's alias, an attention item, an undelivered delivery."""


class Release(Swept, tag="release"):
    """The lease ran out: the delivery is pending again."""


class MarkStale(Swept, tag="mark_stale"):
    """The endpoint gave no sign of life."""


class CheckFlight(Swept, tag="check_flight"):
    """Look whether anything still works on it."""


class ResumeFlight(Swept, tag="resume_flight"):
    """What held it is over, or it was found alive."""


class WaitFlight(Swept, tag="wait_flight"):
    """Nobody knows: it waits for a sign of life."""

    waiting_on: WaitingOn
    reason: str


class FailFlight(Swept, tag="fail_flight"):
    """It cannot end well any more."""

    error: FlightError


_QUESTION = {QuestionState.OPEN: "question_open", QuestionState.ANSWERED: "question_answered"}
_WORK = {
    WorkState.OPEN: "work_open",
    WorkState.WORKING: "work_working",
    WorkState.WAITING: "work_waiting",
    WorkState.REVIEW: "work_review",
}


def sweep(watches: Iterable[Watch], this: Round) -> tuple[Swept, ...]:
    """What is to be done, in the order of the records; the work is proportional to their number."""
    actions = (due_for(watch, this) for watch in watches)
    return tuple(action for action in actions if action is not None)


def due_for(watch: Watch, this: Round) -> Swept | None:
    """The one action that a record is due for, if any."""
    match watch.record:
        case Question() as question:
            return _question(question, watch, this)
        case WorkItem() as item:
            return _work(item, watch, this)
        case Delegation() as delegation:
            return _delegation(delegation, watch, this)
        case Flight() as flight:
            return _flight(flight, watch, this)
        case Delivery() as delivery:
            return _delivery(delivery, this)
        case Endpoint() as endpoint:
            return _endpoint(endpoint, this)
        case Alias() as alias:
            return _alias(alias, watch)
        case Card(state=CardState.ACTIVE) as card if this.is_past(card.expires_at):
            return Expire(noun="card", id=card.id, rule="its time is over")
        case Attention() as item if item.state not in ATTENTION.terminal and this.is_past(item.expires_at):
            return Expire(noun="attention", id=item.id, rule="its time is over")
        case _:
            return None


def _question(question: Question, watch: Watch, this: Round) -> Nudge | None:
    period = _QUESTION.get(question.state)
    if period is None:
        return None
    late = _Late("question", question.id, f"{question.state} question", question.updated_at, period)
    return _nudge(late, (question.next_move_owner_id, question.asker_id), watch, this)


def _work(item: WorkItem, watch: Watch, this: Round) -> Nudge | None:
    period = _WORK.get(item.state)
    if period is None:
        return None
    until = item.waiting_on.until if item.waiting_on is not None else None
    since = max(item.updated_at, until or item.updated_at)
    late = _Late("work item", item.id, f"work item in {item.state}", since, period)
    return _nudge(late, (item.next_move_owner_id, item.owner_id), watch, this)


def _delegation(one: Delegation, watch: Watch, this: Round) -> Nudge | None:
    late = _Late("message", one.id, f"{one.kind} without an answer", one.created_at, "delegation")
    return _nudge(late, (one.target_id, one.sender_id), watch, this)


class _Late(NamedTuple):
    """A record whose next move is owed since then."""

    noun: str
    id: str
    rule: str
    since: Time
    period: str


def _nudge(late: _Late, holders: Sequence[str | None], watch: Watch, this: Round) -> Nudge | None:
    """Remind the holder, a period later the owner, a period later the operator; then they have been told."""
    period: float = getattr(this.periods.sweeps, late.period)
    told, since = watch.nudges, late.since
    if watch.nudged_at is None or watch.nudged_at < late.since:
        told = 0  # it has changed since: whoever holds it now is reminded first
    else:
        since = watch.nudged_at
    ladder = _ladder(holders, this.operator_id)
    if told >= len(ladder) or not this.is_past(since.plus(period)):
        return None
    level, holder = ladder[told]
    return Nudge(
        noun=late.noun,
        id=late.id,
        rule=late.rule,
        next_check=this.now.plus(period) if told + 1 < len(ladder) else None,
        holder_id=holder,
        level=level,
        count=told + 1,
        escalated_from=ladder[told - 1][1] if told else None,
        alarm=_alarm(late) if level is Level.OPERATOR else None,
    )


def _ladder(holders: Sequence[str | None], operator_id: str) -> list[tuple[Level, str]]:
    """Each one once; the last step is the operator's attention, also when the operator is the holder."""
    rungs: dict[str, Level] = {}
    for level, holder in zip((Level.HOLDER, Level.OWNER), holders, strict=True):
        if holder == operator_id:
            break
        if holder is not None:
            rungs.setdefault(holder, level)
    return [*((level, holder) for holder, level in rungs.items()), (Level.OPERATOR, operator_id)]


def _alarm(late: _Late) -> Alarm:
    kind = AttentionKind.REVIEW if late.rule.endswith("review") else AttentionKind.WAITING
    why = Remedy(operation="why", parameters={"id": late.id}, why="what happened so far")
    body = f"nobody has moved since {late.since}"
    return Alarm(
        kind=kind, title=f"{late.rule}: {late.id}", body=body, dedupe=f"sweep:{late.id}", remedies=(why,)
    )


def _flight(flight: Flight, watch: Watch, this: Round) -> Swept | None:
    """A silent flight is checked; then it goes on, waits for a sign of life, or has failed."""
    if flight.state in FLIGHT.terminal:
        return None
    if watch.found is Liveness.DEAD:
        return _fail(flight, "found dead", _ended(flight, "nothing works on it any more"))
    if watch.found is Liveness.ALIVE and flight.phase is FlightPhase.CHECKING:
        return _goes_on(flight, "found alive", this)
    if flight.waiting_on is not None:
        return _held(flight, flight.waiting_on, watch, this)
    if flight.state is FlightState.QUEUED and this.is_past(watch.expires_at):
        away = TargetOffline(address=flight.target, reason=f"queued until {watch.expires_at}")
        return _fail(flight, "queue expired", away)
    if flight.state is FlightState.QUEUED:
        return _check(flight, "queued without progress", this) if this.is_past(flight.next_check_at) else None
    return _running(flight, watch, this)


def _running(flight: Flight, watch: Watch, this: Round) -> Swept | None:
    silent = this.periods.sweeps.flight_silent
    if flight.phase is not FlightPhase.CHECKING:
        seen = max(flight.updated_at, watch.seen_at or flight.updated_at)
        return _check(flight, "no sign of life", this) if this.is_past(seen.plus(silent)) else None
    if not this.is_past(flight.next_check_at):
        return None
    until = this.now.plus(silent)
    on = WaitingOn(kind=WaitingKind.PEER, ref=flight.endpoint_id or flight.target, until=until)
    reason = f"no sign of life since {_last_sign(flight, watch)}"
    rule = "check without result"
    return WaitFlight(noun="flight", id=flight.id, rule=rule, next_check=until, waiting_on=on, reason=reason)


def _held(flight: Flight, on: WaitingOn, watch: Watch, this: Round) -> Swept | None:
    """Waiting for somebody is a matter of nudges; waiting for a time or a sign of life ends by itself."""
    if on.until is None:
        late = _Late("flight", flight.id, f"flight waiting on {on.kind}", flight.updated_at, "work_waiting")
        return _nudge(late, (flight.next_move_owner_id, flight.requester_id), watch, this)
    if not this.is_past(flight.next_check_at or on.until):
        return None
    if on.kind is not WaitingKind.PEER:
        return _goes_on(flight, f"{on.kind} is over", this)
    seen = _last_sign(flight, watch)
    if this.is_past(seen.plus(this.periods.queue_expiry)):
        return _fail(flight, "lost", _ended(flight, f"no sign of life since {seen}"))
    return _check(flight, "no sign of life", this)


def _last_sign(flight: Flight, watch: Watch) -> Time:
    return watch.seen_at or flight.started_at or flight.created_at


def _check(flight: Flight, rule: str, this: Round) -> CheckFlight:
    next_check = this.now.plus(this.periods.sweeps.flight_check)
    return CheckFlight(noun="flight", id=flight.id, rule=rule, next_check=next_check)


def _goes_on(flight: Flight, rule: str, this: Round) -> ResumeFlight:
    next_check = this.now.plus(this.periods.sweeps.flight_silent)
    return ResumeFlight(noun="flight", id=flight.id, rule=rule, next_check=next_check)


def _ended(flight: Flight, reason: str) -> SessionFailed:
    return SessionFailed(session_id=flight.session_id or "unknown", layer=Layer.SESSION, reason=reason)


def _fail(flight: Flight, rule: str, problem: Diagnostic) -> FailFlight:
    error = error_of(msgspec.structs.replace(problem, remedies=(retry_remedy(flight),)))
    return FailFlight(noun="flight", id=flight.id, rule=rule, error=error)


def _delivery(delivery: Delivery, this: Round) -> Swept | None:
    if delivery.state is DeliveryState.LEASED and this.is_past(delivery.leased_until):
        return Release(noun="delivery", id=delivery.id, rule="its lease ran out")
    if delivery.state is DeliveryState.PENDING and this.is_past(delivery.expires_at):
        return Expire(noun="delivery", id=delivery.id, rule="its time is over")
    return None


def _endpoint(endpoint: Endpoint, this: Round) -> MarkStale | None:
    """Only an endpoint that could expire; a process that the broker holds needs no heartbeat."""
    if endpoint.held or EndpointMove.EXPIRE not in ENDPOINT.accepts(endpoint.state):
        return None
    seen = endpoint.last_seen if endpoint.last_seen is not None else endpoint.updated_at
    if not this.is_past(seen.plus(this.periods.sweeps.endpoint_silent)):
        return None
    return MarkStale(noun="endpoint", id=endpoint.id, rule=f"no heartbeat since {seen}")


def _alias(alias: Alias, watch: Watch) -> Expire | None:
    over = alias.until_session_ends and watch.session_over and alias.state is not AliasState.REMOVED
    return Expire(noun="alias", id=alias.id, rule="its session is over") if over else None
