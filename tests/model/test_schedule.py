from typing import Any

import pytest

from scout.base.codec import decode, encode
from scout.base.refusal import Refused
from scout.model.people.schedule import (
    SCHEDULE,
    NextRun,
    Overlap,
    Schedule,
    ScheduleState,
    change_schedule,
    check_schedule,
    end_schedule,
    fail_run,
    fire_schedule,
    hold_run,
    is_due_schedule,
    pause_schedule,
    release_run,
    resume_schedule,
    skip_run,
)
from tests.model.samples import ASK, T0, T1, a_schedule
from tests.model.table import cells, check_cell

TABLE = """
         change  fire    skip    hold    fail    pause   resume  end
active   active  active  active  active  active  paused  -       ended
paused   paused  paused  -       -       -       -       active  ended
ended    -       -       -       -       -       -       -       -
"""
NEXT = NextRun(slot=T1.plus(3600), at=T1.plus(3601))


@pytest.mark.parametrize(("state", "move", "after"), cells(SCHEDULE, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(SCHEDULE, state, move, after)


def test_a_schedule_is_due_at_its_time_while_active() -> None:
    assert is_due_schedule(a_schedule(), T1)
    assert not is_due_schedule(a_schedule(), T1.plus(-0.001))
    assert not is_due_schedule(a_schedule(next_at=None), T1)
    assert not is_due_schedule(a_schedule(state=ScheduleState.PAUSED), T1)


def test_a_run_moves_the_schedule_to_the_next() -> None:
    before = a_schedule(slot=T1, not_started=2, waiting_slot=T0)
    fired = fire_schedule(before, T1, ask_id=ASK, slot=T1, following=NEXT)
    assert (fired.slot, fired.next_at, fired.last_at, fired.last_slot) == (NEXT.slot, NEXT.at, T1, T1)
    assert (fired.fired, fired.not_started, fired.last_ask_id, fired.waiting_slot) == (1, 0, ASK, None)


def test_a_run_by_hand_leaves_the_next_time_as_it_is() -> None:
    before = a_schedule(slot=T1, last_slot=T0, waiting_slot=T0)
    fired = fire_schedule(before, T0, ask_id=ASK, slot=None, following=None)
    assert (fired.slot, fired.next_at, fired.last_slot, fired.waiting_slot) == (T1, T1, None, T0)
    assert (fired.fired, fired.last_at) == (1, T0)


def test_a_run_that_does_not_take_place_is_counted() -> None:
    skipped = skip_run(a_schedule(slot=T1), T1, slot=T1, following=NEXT, reason="busy")
    assert (skipped.skipped, skipped.not_started, skipped.last_slot, skipped.reason) == (1, 1, T1, "busy")
    failed = fail_run(skipped, T1, slot=T1, following=NEXT, reason="gone")
    assert (failed.skipped, failed.failed, failed.not_started, failed.reason) == (1, 1, 2, "gone")
    assert (failed.slot, failed.next_at, failed.fired) == (NEXT.slot, NEXT.at, 0)


def test_a_run_waits_for_the_previous_one() -> None:
    held = hold_run(a_schedule(slot=T1), T1, slot=T1, following=NEXT, reason="the previous run works")
    assert (held.waiting_slot, held.next_at) == (T1, NEXT.at)
    released = release_run(held, T1.plus(5))
    assert (released.next_at, released.slot, released.waiting_slot) == (T1.plus(5), NEXT.slot, T1)


def test_pausing_and_resuming() -> None:
    paused = pause_schedule(a_schedule(slot=T1, waiting_slot=T0), T1, seen=1, reason="holidays")
    assert (paused.state, paused.next_at, paused.slot, paused.waiting_slot) == ("paused", None, None, None)
    assert paused.reason == "holidays"
    again = resume_schedule(paused, NEXT, T1, seen=2)
    assert (again.state, again.slot, again.next_at, again.reason) == ("active", NEXT.slot, NEXT.at, "")
    ended = end_schedule(again, "done", T1, seen=3)
    assert (ended.state, ended.next_at, ended.slot, ended.reason) == ("ended", None, None, "done")


def test_another_time_or_text_leaves_the_rest() -> None:
    changed = change_schedule(a_schedule(), T1, seen=1, cron="5 9 * * 1", following=NEXT)
    assert (changed.cron, changed.body, changed.next_at) == ("5 9 * * 1", "Report.", NEXT.at)
    again = change_schedule(changed, T1, body="Tell.", overlap=Overlap.CANCEL)
    assert (again.cron, again.body, again.overlap) == ("5 9 * * 1", "Tell.", Overlap.CANCEL)
    assert again.next_at == NEXT.at


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"body": " "}, "a schedule needs a text"),
        ({"jitter": -1}, "a jitter from 0 to 3600 seconds"),
        ({"jitter": 3601}, "a jitter from 0 to 3600 seconds"),
    ],
)
def test_a_schedule_that_cannot_run_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(Refused, match=problem):
        check_schedule(a_schedule(**changes))
    with pytest.raises(Refused, match=problem):
        change_schedule(a_schedule(), T1, **changes)
    assert check_schedule(a_schedule()) == a_schedule(created_at=T0)


def test_runs_that_could_overlap_in_an_older_log_are_queued() -> None:
    older = encode(a_schedule()).replace(b'"overlap":"skip"', b'"overlap":"allow"')
    assert decode(older, Schedule).overlap is Overlap.QUEUE
    with pytest.raises(Refused):
        decode(older.replace(b'"allow"', b'"sometimes"'), Schedule)
