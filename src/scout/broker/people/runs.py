"""One run of a schedule, in one transaction: the schedule is moved and the ask is made together.

So a time runs once, however often it is looked at: a second look finds the schedule moved.
"""

from datetime import tzinfo
from typing import Any

from msgspec.structs import replace

from scout.base.refusal import Diagnostic
from scout.base.time import Time
from scout.broker.effects import flight_state, scheduled_runs
from scout.broker.operations import asks
from scout.broker.routing import attention_items
from scout.broker.transaction.admission import Admitted, build_viewpoint
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.model.access.token import TokenKind
from scout.model.agent import Agent
from scout.model.ask import AskReceipt
from scout.model.events.directory import (
    SCHEDULE_EVENTS,
    ScheduleFailed,
    ScheduleFired,
    ScheduleHeld,
    ScheduleSkipped,
    ScheduleUpdated,
)
from scout.model.flight import Flight, cancel_flight
from scout.model.people.schedule import (
    Schedule,
    ScheduleMove,
    ScheduleState,
    change_schedule,
    fail_run,
    fire_schedule,
    hold_run,
    pause_schedule,
    skip_run,
)
from scout.policy.people.firing import MANY_IN_A_ROW, Firing, FiringAction, decide_firing, plan_next
from scout.policy.permit import Actor
from scout.protocol.asks import MakeAsk
from scout.store.ledger import Ledger

_MANY = 1000  # rows of the log


def admit_cron_agent(services: Services, ledger: Ledger, agent: Agent, token_id: str = "") -> Admitted:
    """Return the cron agent as an actor. `token_id`: the credential of a person who starts the run."""
    actor = Actor(
        kind=TokenKind.AGENT, token_id=token_id, user=agent.owner, agent_id=agent.id, path=agent.path
    )
    return Admitted(actor, build_viewpoint(services, ledger, actor, agent))


def _decide(tx: Transaction, schedule_id: str, zone: tzinfo) -> tuple[Schedule, Firing, Flight | None] | None:
    """Return the schedule as it is now, what happens to it, and its open run; None if nothing is due."""
    schedule = tx.get(Schedule, schedule_id)
    if schedule is None:
        return None
    working = scheduled_runs.find_open_run(tx, schedule)
    grace = tx.rules.periods.grace
    firing = decide_firing(schedule, zone, tx.now, grace=grace, is_open=working is not None)
    return (schedule, firing, working) if firing is not None else None


def handle_due(tx: Transaction, schedule_id: str, zone: tzinfo) -> None:
    """Do what is due for a schedule. If its run cannot start, the refusal undoes everything here."""
    found = _decide(tx, schedule_id, zone)
    if found is None:
        return
    schedule, firing, working = found
    said: dict[str, Any] = {"slot": firing.slot, "following": firing.following, "reason": firing.reason}
    match firing.action:
        case FiringAction.RUN | FiringAction.REPLACE:
            if working is not None:
                _cancel(tx, working)
            ask = make_ask(tx, schedule)
            _record_run(tx, fire_schedule(schedule, tx.now, ask_id=ask.ask_id, **said))
        case FiringAction.HOLD:
            held = hold_run(schedule, tx.now, **said)
            tx.record(ScheduleHeld, held, move=ScheduleMove.HOLD, reason=firing.reason)
        case FiringAction.SKIP:
            _skip(tx, skip_run(schedule, tx.now, **said), None if firing.missed else working)
        case FiringAction.LATER:
            later = change_schedule(schedule, tx.now, following=firing.following)
            tx.record(ScheduleUpdated, later, move=ScheduleMove.CHANGE)


def record_failure(tx: Transaction, schedule_id: str, zone: tzinfo, problem: Diagnostic) -> None:
    """Record that the run that is due cannot start, and tell the owner."""
    found = _decide(tx, schedule_id, zone)
    if found is None:
        return
    schedule, firing, _ = found
    reason = problem.message
    failed = fail_run(schedule, tx.now, slot=firing.slot, following=firing.following, reason=reason)
    tx.record(ScheduleFailed, failed, move=ScheduleMove.FAIL, reason=reason)
    scheduled_runs.report_failure(tx, failed, problem)


def pause_without_zone(tx: Transaction, schedule_id: str, problem: Diagnostic) -> None:
    """Pause a schedule whose next time cannot be computed, and tell the owner."""
    schedule = tx.get(Schedule, schedule_id)
    if schedule is None or schedule.state is not ScheduleState.ACTIVE:
        return
    paused, move = pause_schedule(schedule, tx.now, reason=problem.message), ScheduleMove.PAUSE
    tx.record(SCHEDULE_EVENTS[move], paused, move=move, reason=problem.message)
    scheduled_runs.report_failure(tx, paused, problem)


def start_by_hand(tx: Transaction, schedule: Schedule) -> Schedule:
    """Start a run now; the next one stays as it is."""
    working = scheduled_runs.find_open_run(tx, schedule)
    if working is not None:
        _cancel(tx, working)
    ask = make_ask(tx, schedule)
    return _record_run(tx, fire_schedule(schedule, tx.now, ask_id=ask.ask_id, reason="started by hand"))


def make_ask(tx: Transaction, schedule: Schedule) -> AskReceipt:
    """Make the ask of a schedule in the name of its cron agent; the answer goes to the owner or a channel."""
    person = attention_items.find_person(tx, schedule.owner) if schedule.channel_id is None else None
    wish = MakeAsk(
        to=schedule.target, body=schedule.body, reply_to=person, conversation_id=schedule.channel_id
    )
    return asks.make_ask(tx, wish)


def _record_run(tx: Transaction, fired: Schedule) -> Schedule:
    tx.record(ScheduleFired, fired, move=ScheduleMove.FIRE, reason=fired.reason)
    scheduled_runs.close_schedule_item(tx, fired, "it runs again")
    return fired


def _skip(tx: Transaction, skipped: Schedule, working: Flight | None) -> None:
    tx.record(ScheduleSkipped, skipped, move=ScheduleMove.SKIP, reason=skipped.reason)
    if working is not None and skipped.not_started >= MANY_IN_A_ROW:
        scheduled_runs.report_overlap(tx, skipped, working)


def _cancel(tx: Transaction, flight: Flight) -> None:
    reason = "the next run of its schedule replaces it"
    flight_state.finish_flight(tx, flight, cancel_flight(flight, reason, tx.now))


# -- a clock that was set back -------------------------------------------------------------------------


def plan_run_again(tx: Transaction, schedule_id: str, zone: tzinfo) -> None:
    """Plan the next run of a schedule that was changed while the clock was ahead.

    A time that has run does not run again, also when the clock shows it for the second time.
    """
    schedule = tx.get(Schedule, schedule_id)
    if schedule is None or schedule.updated_at <= tx.now or schedule.state is ScheduleState.ENDED:
        return
    known = replace(schedule, ran_ahead=_list_slots_ahead(tx, schedule))
    following = plan_next(known, zone, tx.now) if schedule.state is ScheduleState.ACTIVE else None
    changed = change_schedule(schedule, tx.now, following=following, ran_ahead=known.ran_ahead)
    tx.record(ScheduleUpdated, changed, move=ScheduleMove.CHANGE, reason="the clock was set back")


def _list_slots_ahead(tx: Transaction, schedule: Schedule) -> tuple[Time, ...]:
    """Return the times after now that have run: those known before, and those that the latest events tell."""
    known = (*tx.ledger.log.list_fired_slots(schedule.id, _MANY), *schedule.ran_ahead)
    return tuple(sorted({slot for slot in known if slot > tx.now}))
