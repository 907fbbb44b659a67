"""What happens to a schedule that is due: it runs, waits, is skipped, or has missed its time."""

import hashlib
from datetime import tzinfo
from enum import StrEnum

from scout.base.record import Record
from scout.base.time import Time
from scout.model.people.schedule import Missed, NextRun, Overlap, Schedule, is_due_schedule
from scout.policy.people.cron import find_last, find_next, format_in_zone

MANY_IN_A_ROW = 3  # runs that did not start before the owner is asked to look
_NEVER = Time.parse("9999-12-31T00:00:00Z")


class FiringAction(StrEnum):
    """RUN starts a run; REPLACE cancels the previous one first. HOLD lets it wait; SKIP leaves it out.

    LATER: nothing is due before the next run.
    """

    RUN = "run"
    REPLACE = "replace"
    HOLD = "hold"
    SKIP = "skip"
    LATER = "later"


class Firing(Record):
    """The decision about one run. `slot`: the time it is for; `following`: the next run.

    `reason` says why it is late, waits or is skipped. `missed`: it was due while nothing could run.
    """

    action: FiringAction
    slot: Time
    following: NextRun
    reason: str = ""
    missed: bool = False


_OVERLAPS = {
    Overlap.SKIP: (FiringAction.SKIP, "the previous run has not ended"),
    Overlap.QUEUE: (FiringAction.HOLD, "the previous run has not ended"),
    Overlap.CANCEL: (FiringAction.REPLACE, "the previous run was cancelled"),
}


def plan_next(schedule: Schedule, zone: tzinfo, after: Time) -> NextRun:
    """Return the first run after a moment. A time that ran while the clock was ahead does not run again."""
    slot = find_next(schedule.cron, zone, after) or _NEVER
    while slot in schedule.ran_ahead:
        slot = find_next(schedule.cron, zone, slot) or _NEVER
    return add_jitter(schedule, slot)


def add_jitter(schedule: Schedule, slot: Time) -> NextRun:
    """Return a run with its start: up to `jitter` seconds later, always the same for the same run."""
    spread = int(hashlib.sha256(f"{schedule.id}@{int(slot)}".encode()).hexdigest()[:8], 16)
    return NextRun(slot=slot, at=slot.plus(spread % (schedule.jitter + 1)))


def decide_firing(
    schedule: Schedule, zone: tzinfo, now: Time, *, grace: float, is_open: bool
) -> Firing | None:
    """Decide what happens to a schedule now; None if it is not due.

    `is_open`: the previous run has not ended. A run that is at most `grace` seconds late simply runs. Of
    several runs that are late, only the last one counts.
    """
    if not is_due_schedule(schedule, now) or schedule.slot is None:
        return None
    own, waiting = add_jitter(schedule, schedule.slot), schedule.waiting_slot
    if waiting is not None and not is_open:
        reason = "the previous run has ended"
        return Firing(action=FiringAction.RUN, slot=waiting, following=own, reason=reason)
    if own.at > now:
        return Firing(action=FiringAction.LATER, slot=own.slot, following=own)
    return _decide_due(schedule, schedule.slot, zone, now, grace=grace, is_open=is_open)


def _decide_due(
    schedule: Schedule, first: Time, zone: tzinfo, now: Time, *, grace: float, is_open: bool
) -> Firing:
    slot = _find_last_started(schedule, first, zone, now)
    due = max(add_jitter(schedule, slot).at, schedule.next_at or now)
    missed = now.since(due) > grace
    earlier = f"no run since {format_in_zone(first, zone)}" if slot != first else ""
    late = f"missed at {format_in_zone(slot, zone)}" if missed else ""
    action, why = _decide_overlap(schedule) if is_open else (FiringAction.RUN, "")
    if missed and schedule.missed is Missed.SKIP:
        action, why = FiringAction.SKIP, ""
    elif slot in schedule.ran_ahead:
        action, why = FiringAction.SKIP, "it ran while the clock was ahead"
    return Firing(
        action=action,
        slot=slot,
        following=plan_next(schedule, zone, slot),
        reason="; ".join(one for one in (late, earlier, why) if one),
        missed=missed,
    )


def _find_last_started(schedule: Schedule, first: Time, zone: tzinfo, now: Time) -> Time:
    """Return the last run whose start, with its jitter, has passed. `first` is one."""
    sure = now.plus(-schedule.jitter)
    last = following = find_last(schedule.cron, zone, first, sure) if first <= sure else first
    while (following := find_next(schedule.cron, zone, following) or _NEVER) <= now:
        last = following if add_jitter(schedule, following).at <= now else last
    return last


def _decide_overlap(schedule: Schedule) -> tuple[FiringAction, str]:
    """Decide about a run while the previous one has not ended. At most one run waits."""
    if schedule.overlap is Overlap.QUEUE and schedule.waiting_slot is not None:
        return FiringAction.SKIP, "the previous run has not ended, and another one waits"
    return _OVERLAPS[schedule.overlap]
