"""Runs that are due: on time, late, missed, overlapping, waiting, and spread by a jitter."""

from datetime import UTC
from typing import Any

import pytest
from msgspec.structs import replace

from scout.base.time import Time
from scout.model.people.schedule import Missed, NextRun, Overlap, Schedule, ScheduleState
from scout.policy.people.firing import Firing, FiringAction, add_jitter, decide_firing, plan_next
from tests.model.samples import a_schedule

NINE = Time.parse("2026-11-16T09:00:00Z")
DAY, HOUR = 86_400, 3600
GRACE = 90.0


def due(**changes: Any) -> Schedule:
    return a_schedule(**{"cron": "0 9 * * *", "slot": NINE, "next_at": NINE, **changes})


def decide(schedule: Schedule, now: Time, *, is_open: bool = False) -> Firing | None:
    return decide_firing(schedule, UTC, now, grace=GRACE, is_open=is_open)


def at(slot: Time) -> NextRun:
    return NextRun(slot=slot, at=slot)


@pytest.mark.parametrize(
    "schedule",
    [
        due(next_at=NINE.plus(1)),
        due(state=ScheduleState.PAUSED),
        due(next_at=None),
        due(slot=None),
    ],
)
def test_what_is_not_due_does_not_run(schedule: Schedule) -> None:
    assert decide(schedule, NINE) is None


@pytest.mark.parametrize("late", [0, 5, 90])
def test_a_run_that_is_hardly_late_runs(late: int) -> None:
    found = decide(due(), NINE.plus(late))
    assert found == Firing(action=FiringAction.RUN, slot=NINE, following=at(NINE.plus(DAY)))


def test_a_missed_run_is_skipped_or_made_up_for_once() -> None:
    now = NINE.plus(3 * DAY + 2 * HOUR)
    last, following = NINE.plus(3 * DAY), at(NINE.plus(4 * DAY))
    reason = "missed at 2026-11-19T09:00+00:00; no run since 2026-11-16T09:00+00:00"
    skipped = decide(due(), now)
    assert skipped == Firing(
        action=FiringAction.SKIP, slot=last, following=following, reason=reason, missed=True
    )
    once = decide(due(missed=Missed.ONCE), now)
    assert once == Firing(action=FiringAction.RUN, slot=last, following=following, reason=reason, missed=True)


def test_of_several_late_runs_the_last_one_counts() -> None:
    minutely = due(cron="* * * * *")
    found = decide(minutely, NINE.plus(150))
    assert found is not None
    assert (found.action, found.slot, found.missed) == (FiringAction.RUN, NINE.plus(120), False)
    assert found.reason == "no run since 2026-11-16T09:00+00:00"
    assert found.following == at(NINE.plus(180))


@pytest.mark.parametrize(
    ("overlap", "waiting", "action", "reason"),
    [
        (Overlap.SKIP, None, FiringAction.SKIP, "the previous run has not ended"),
        (Overlap.QUEUE, None, FiringAction.HOLD, "the previous run has not ended"),
        (
            Overlap.QUEUE,
            NINE.plus(-DAY),
            FiringAction.SKIP,
            "the previous run has not ended, and another one waits",
        ),
        (Overlap.CANCEL, None, FiringAction.REPLACE, "the previous run was cancelled"),
    ],
)
def test_a_run_while_the_previous_one_has_not_ended(
    overlap: Overlap, waiting: Time | None, action: FiringAction, reason: str
) -> None:
    found = decide(due(overlap=overlap, waiting_slot=waiting), NINE, is_open=True)
    assert found == Firing(action=action, slot=NINE, following=at(NINE.plus(DAY)), reason=reason)


def test_a_missed_run_that_is_skipped_does_not_cancel_the_previous_one() -> None:
    found = decide(due(overlap=Overlap.CANCEL), NINE.plus(HOUR), is_open=True)
    assert found is not None
    assert (found.action, found.reason) == (FiringAction.SKIP, "missed at 2026-11-16T09:00+00:00")


def test_a_run_that_waited_starts_when_the_previous_one_has_ended() -> None:
    waited = due(slot=NINE.plus(DAY), next_at=NINE.plus(5), waiting_slot=NINE, overlap=Overlap.QUEUE)
    own = at(NINE.plus(DAY))
    found = decide(waited, NINE.plus(5))
    assert found == Firing(
        action=FiringAction.RUN, slot=NINE, following=own, reason="the previous run has ended"
    )
    again = decide(waited, NINE.plus(5), is_open=True)
    assert again == Firing(action=FiringAction.LATER, slot=own.slot, following=own)


def test_a_jitter_spreads_runs_and_stays_the_same() -> None:
    one, other = due(id="sch_1", jitter=600), due(id="sch_2", jitter=600)
    starts = [add_jitter(one, NINE.plus(day * DAY)) for day in range(200)]
    delays = [one.at.since(one.slot) for one in starts]
    assert min(delays) < 60
    assert 540 < max(delays) <= 600
    assert add_jitter(one, NINE) == starts[0]
    assert add_jitter(other, NINE) != starts[0]
    assert add_jitter(due(), NINE).at == NINE


def test_a_run_with_a_jitter_starts_at_its_own_time() -> None:
    schedule = due(id="sch_1", cron="*/10 * * * *", jitter=900)
    first = plan_next(schedule, UTC, NINE.plus(-1))
    assert first.slot == NINE
    schedule = replace(schedule, next_at=first.at)
    seen = list[Time]()
    while len(seen) < 50:
        assert schedule.next_at is not None
        found = decide(schedule, schedule.next_at)
        assert found is not None
        assert found.action is FiringAction.RUN
        seen.append(found.slot)
        assert found.following.at > schedule.next_at
        schedule = replace(schedule, slot=found.following.slot, next_at=found.following.at)
    assert seen == sorted(set(seen))


def test_a_text_that_names_no_time_is_never_due() -> None:
    never = due(cron="0 0 30 2 *")
    assert plan_next(never, UTC, NINE).slot == Time.parse("9999-12-31T00:00:00Z")
    last = decide(never, NINE)
    assert last is not None
    assert last.following.slot == Time.parse("9999-12-31T00:00:00Z")


def test_a_time_that_ran_while_the_clock_was_ahead_does_not_run_again() -> None:
    ahead = due(ran_ahead=(NINE.plus(DAY), NINE.plus(2 * DAY)))
    found = decide(ahead, NINE)
    assert found is not None
    assert (found.action, found.following) == (FiringAction.RUN, at(NINE.plus(3 * DAY)))
    late = decide(due(missed=Missed.ONCE, ran_ahead=(NINE.plus(DAY),)), NINE.plus(DAY + HOUR))
    assert late is not None
    assert late.action is FiringAction.SKIP
    assert late.reason.endswith("it ran while the clock was ahead")
