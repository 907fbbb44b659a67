"""Schedules: cron entries that repeat an ask. `policy/people` decides when each is due."""

from enum import StrEnum
from typing import Any

from scout.base.machine import Machine, Mutable, move_record
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time

MOST_JITTER = 3600  # seconds


class ScheduleState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class ScheduleMove(StrEnum):
    CHANGE = "change"
    FIRE = "fire"
    SKIP = "skip"
    HOLD = "hold"
    FAIL = "fail"
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
            ScheduleMove.SKIP: ScheduleState.ACTIVE,
            ScheduleMove.HOLD: ScheduleState.ACTIVE,
            ScheduleMove.FAIL: ScheduleState.ACTIVE,
            ScheduleMove.PAUSE: ScheduleState.PAUSED,
            ScheduleMove.END: ScheduleState.ENDED,
        },
        ScheduleState.PAUSED: {
            ScheduleMove.CHANGE: ScheduleState.PAUSED,
            ScheduleMove.FIRE: ScheduleState.PAUSED,  # by hand
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
    """The handling of a run that is due while the previous one has not ended.

    SKIP: it does not run. QUEUE: it runs when the previous one has ended. CANCEL: it replaces that one.
    """

    SKIP = "skip"
    QUEUE = "queue"
    CANCEL = "cancel"

    @classmethod
    def _missing_(cls, value: object) -> "Overlap | None":
        # Older logs let runs overlap; now they run one after the other.
        return cls.QUEUE if value == "allow" else None


class Schedule(Mutable):
    """One schedule. `agent_id`: the cron agent that asks; `target`: a canonical address; `body`: the text.

    `slot`: the next time that the cron text names. `next_at`: when the runner looks at the schedule: the slot
    with its jitter, or earlier if a waiting run can start. `waiting_slot`: a run that waits for the previous
    one to end. `last_slot`: the time that the last run was for; a run by hand is for none. `channel_id`: the
    channel that gets the answers; without one they go to the owner. `not_started`: how many runs in a row
    were skipped or failed. `ran_ahead`: times that ran while the clock was ahead, and do not run again.
    """

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
    jitter: int = 0
    channel_id: str | None = None
    slot: Time | None = None
    waiting_slot: Time | None = None
    last_slot: Time | None = None
    last_ask_id: str | None = None
    skipped: int = 0
    failed: int = 0
    not_started: int = 0
    ran_ahead: tuple[Time, ...] = ()


class NextRun(Record):
    """The next time that a cron text names, and when the run starts, with its jitter."""

    slot: Time
    at: Time


def check_schedule(schedule: Schedule) -> Schedule:
    """Return the schedule; refuse one without a text or with a jitter that is too long."""
    if not schedule.body.strip():
        raise Refused(BadRequest(problem="a schedule needs a text: what to ask for", field="body"))
    if not 0 <= schedule.jitter <= MOST_JITTER:
        problem = f"expected a jitter from 0 to {MOST_JITTER} seconds, got {schedule.jitter}"
        raise Refused(BadRequest(problem=problem, field="jitter"))
    return schedule


def is_due_schedule(schedule: Schedule, now: Time) -> bool:
    """Whether the runner has to look at the schedule now."""
    due = schedule.next_at is not None and schedule.next_at <= now
    return schedule.state is ScheduleState.ACTIVE and due


def fire_schedule(
    schedule: Schedule,
    now: Time,
    *,
    ask_id: str,
    slot: Time | None = None,
    following: NextRun | None = None,
    reason: str = "",
) -> Schedule:
    """Record one run. `slot`: the time it is for; a run by hand has none and leaves the next one as it is."""
    return move_record(
        SCHEDULE,
        schedule,
        ScheduleMove.FIRE,
        now,
        last_at=now,
        last_slot=slot,
        last_ask_id=ask_id,
        waiting_slot=schedule.waiting_slot if slot is None else None,
        fired=schedule.fired + 1,
        not_started=0,
        reason=reason,
        **_set_next(following),
    )


def skip_run(schedule: Schedule, now: Time, *, slot: Time, following: NextRun, reason: str) -> Schedule:
    """Record that a run does not take place."""
    return move_record(
        SCHEDULE,
        schedule,
        ScheduleMove.SKIP,
        now,
        last_slot=slot,
        skipped=schedule.skipped + 1,
        not_started=schedule.not_started + 1,
        reason=reason,
        **_set_next(following),
    )


def hold_run(schedule: Schedule, now: Time, *, slot: Time, following: NextRun, reason: str) -> Schedule:
    """Record that a run waits for the previous one to end."""
    move = ScheduleMove.HOLD
    held: dict[str, Any] = {"waiting_slot": slot, "last_slot": slot, "reason": reason, **_set_next(following)}
    return move_record(SCHEDULE, schedule, move, now, **held)


def fail_run(schedule: Schedule, now: Time, *, slot: Time, following: NextRun, reason: str) -> Schedule:
    """Record that a run could not start."""
    return move_record(
        SCHEDULE,
        schedule,
        ScheduleMove.FAIL,
        now,
        last_slot=slot,
        waiting_slot=None,
        failed=schedule.failed + 1,
        not_started=schedule.not_started + 1,
        reason=reason,
        **_set_next(following),
    )


def change_schedule(
    schedule: Schedule,
    now: Time,
    *,
    seen: int | None = None,
    following: NextRun | None = None,
    **changes: Any,
) -> Schedule:
    """Change the time, the target, the text or the policies; `following`: the next run, if it changes."""
    kept = {**changes, **_set_next(following)}
    return check_schedule(move_record(SCHEDULE, schedule, ScheduleMove.CHANGE, now, seen=seen, **kept))


def release_run(schedule: Schedule, now: Time) -> Schedule:
    """Let the runner look at the schedule at once: the run that another one waited for has ended."""
    return move_record(SCHEDULE, schedule, ScheduleMove.CHANGE, now, next_at=now)


def pause_schedule(schedule: Schedule, now: Time, *, seen: int | None = None, reason: str = "") -> Schedule:
    """Pause the schedule until it is resumed; a run that waits is dropped."""
    none: dict[str, Any] = {"next_at": None, "slot": None, "waiting_slot": None}
    return move_record(SCHEDULE, schedule, ScheduleMove.PAUSE, now, seen=seen, reason=reason, **none)


def resume_schedule(
    schedule: Schedule, following: NextRun, now: Time, *, seen: int | None = None
) -> Schedule:
    """Resume the schedule with its next run."""
    fresh: dict[str, Any] = {"reason": "", "not_started": 0, **_set_next(following)}
    return move_record(SCHEDULE, schedule, ScheduleMove.RESUME, now, seen=seen, **fresh)


def end_schedule(schedule: Schedule, reason: str, now: Time, *, seen: int | None = None) -> Schedule:
    """End the schedule; there are no more runs."""
    none: dict[str, Any] = {"next_at": None, "slot": None, "waiting_slot": None}
    return move_record(SCHEDULE, schedule, ScheduleMove.END, now, seen=seen, reason=reason, **none)


def _set_next(following: NextRun | None) -> dict[str, Any]:
    return {"slot": following.slot, "next_at": following.at} if following else {}
