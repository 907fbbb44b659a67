"""Schedules: cron entries that repeat an ask. The next due time is computed elsewhere."""

from enum import StrEnum

from scout.base.machine import Machine, Mutable, move_record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time


class ScheduleState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class ScheduleMove(StrEnum):
    CHANGE = "change"
    FIRE = "fire"
    PAUSE = "pause"
    RESUME = "resume"
    END = "end"


SCHEDULE = Machine(
    "schedule",
    ScheduleState.ACTIVE,
    {
        ScheduleState.ACTIVE: {
            ScheduleMove.CHANGE: ScheduleState.ACTIVE,
            ScheduleMove.FIRE: ScheduleState.ACTIVE,
            ScheduleMove.PAUSE: ScheduleState.PAUSED,
            ScheduleMove.END: ScheduleState.ENDED,
        },
        ScheduleState.PAUSED: {
            ScheduleMove.CHANGE: ScheduleState.PAUSED,
            ScheduleMove.RESUME: ScheduleState.ACTIVE,
            ScheduleMove.END: ScheduleState.ENDED,
        },
        ScheduleState.ENDED: {},
    },
)


class Missed(StrEnum):
    """The handling of runs that were due while the daemon could not run them."""

    SKIP = "skip"
    ONCE = "once"


class Overlap(StrEnum):
    """The handling of a run that is due while the previous one is still running."""

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"


class Schedule(Mutable):
    """One schedule. `agent_id`: the cron agent that asks; `target`: a canonical address; `body`: the text."""

    owner: str
    agent_id: str
    cron: str
    time_zone: str = "UTC"
    target: str
    body: str
    missed: Missed = Missed.SKIP
    overlap: Overlap = Overlap.SKIP
    state: ScheduleState = ScheduleState.ACTIVE
    next_at: Time | None = None
    last_at: Time | None = None
    fired: int = 0
    reason: str = ""
    created_by: str


def check_schedule(schedule: Schedule) -> Schedule:
    """Return the schedule; refuse one without five cron fields and a body."""
    if len(schedule.cron.split()) != 5 or not schedule.body.strip():
        raise Refused(BadRequest(problem="a schedule needs five cron fields and a body", field="cron"))
    return schedule


def is_due_schedule(schedule: Schedule, now: Time) -> bool:
    """Whether the schedule should fire now."""
    due = schedule.next_at is not None and schedule.next_at <= now
    return schedule.state is ScheduleState.ACTIVE and due


def build_firing_key(schedule: Schedule) -> str:
    """Return the idempotency key of the next run, so that a repeated run fires once."""
    return f"{schedule.id}@{schedule.next_at}"


def fire_schedule(schedule: Schedule, next_at: Time | None, now: Time) -> Schedule:
    """Record one run; the next is at `next_at`."""
    fired = schedule.fired + 1
    return move_record(SCHEDULE, schedule, ScheduleMove.FIRE, now, next_at=next_at, last_at=now, fired=fired)


def reschedule(
    schedule: Schedule,
    now: Time,
    *,
    seen: int | None = None,
    cron: str | None = None,
    time_zone: str | None = None,
    body: str | None = None,
    next_at: Time | None = None,
) -> Schedule:
    """Change the time or the text; None keeps the old value."""
    after = move_record(
        SCHEDULE,
        schedule,
        ScheduleMove.CHANGE,
        now,
        seen=seen,
        cron=cron or schedule.cron,
        time_zone=time_zone or schedule.time_zone,
        body=body or schedule.body,
        next_at=next_at or schedule.next_at,
    )
    return check_schedule(after)


def pause_schedule(schedule: Schedule, now: Time, *, seen: int | None = None) -> Schedule:
    """Pause the schedule until it is resumed."""
    return move_record(SCHEDULE, schedule, ScheduleMove.PAUSE, now, seen=seen, next_at=None)


def resume_schedule(schedule: Schedule, next_at: Time, now: Time, *, seen: int | None = None) -> Schedule:
    """Resume the schedule from `next_at`."""
    return move_record(SCHEDULE, schedule, ScheduleMove.RESUME, now, seen=seen, next_at=next_at)


def end_schedule(schedule: Schedule, reason: str, now: Time, *, seen: int | None = None) -> Schedule:
    """End the schedule; there are no more runs."""
    return move_record(SCHEDULE, schedule, ScheduleMove.END, now, seen=seen, next_at=None, reason=reason)
