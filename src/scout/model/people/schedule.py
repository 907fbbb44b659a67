"""A cron entry: an ask that is made again and again. When it is next due is computed outside."""

from enum import StrEnum

from scout.base.machine import Machine
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.change import Mutable, moved


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
    """What happens to runs that were due while nothing could run."""

    SKIP = "skip"
    ONCE = "once"


class Overlap(StrEnum):
    """What happens when the last run still goes on."""

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"


class Schedule(Mutable):
    """`agent_id` is the cron agent that asks, `target` the canonical text of whom, `body` what."""

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
    """The same schedule, or the refusal of one that is not five fields of cron with a body."""
    if len(schedule.cron.split()) != 5 or not schedule.body.strip():
        raise Refused(BadRequest(problem="a schedule needs five cron fields and a body", field="cron"))
    return schedule


def is_due_schedule(schedule: Schedule, now: Time) -> bool:
    """Whether it should fire now."""
    due = schedule.next_at is not None and schedule.next_at <= now
    return schedule.state is ScheduleState.ACTIVE and due


def firing_key(schedule: Schedule) -> str:
    """The idempotency key of its next run, so that a run that is repeated fires once."""
    return f"{schedule.id}@{schedule.next_at}"


def fire_schedule(schedule: Schedule, next_at: Time | None, now: Time) -> Schedule:
    """One run was made; the next is at `next_at`."""
    fired = schedule.fired + 1
    return moved(SCHEDULE, schedule, ScheduleMove.FIRE, now, next_at=next_at, last_at=now, fired=fired)


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
    """Another time or text; None leaves what was."""
    after = moved(
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
    """No runs until it is resumed."""
    return moved(SCHEDULE, schedule, ScheduleMove.PAUSE, now, seen=seen, next_at=None)


def resume_schedule(schedule: Schedule, next_at: Time, now: Time, *, seen: int | None = None) -> Schedule:
    """On again from `next_at`."""
    return moved(SCHEDULE, schedule, ScheduleMove.RESUME, now, seen=seen, next_at=next_at)


def end_schedule(schedule: Schedule, reason: str, now: Time, *, seen: int | None = None) -> Schedule:
    """No more runs."""
    return moved(SCHEDULE, schedule, ScheduleMove.END, now, seen=seen, next_at=None, reason=reason)
