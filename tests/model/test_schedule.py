import pytest

from scout.base.refusal import Refused
from scout.model.people.schedule import (
    SCHEDULE,
    ScheduleState,
    build_firing_key,
    check_schedule,
    end_schedule,
    fire_schedule,
    is_due_schedule,
    pause_schedule,
    reschedule,
    resume_schedule,
)
from tests.model.samples import T0, T1, a_schedule
from tests.model.table import cells, check_cell

TABLE = """
         change  fire    pause   resume  end
active   active  active  paused  -       ended
paused   paused  -       -       active  ended
ended    -       -       -       -       -
"""


@pytest.mark.parametrize(("state", "move", "after"), cells(SCHEDULE, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(SCHEDULE, state, move, after)


def test_a_schedule_is_due_at_its_time_while_active() -> None:
    assert is_due_schedule(a_schedule(), T1)
    assert not is_due_schedule(a_schedule(), T1.plus(-0.001))
    assert not is_due_schedule(a_schedule(next_at=None), T1)
    assert not is_due_schedule(a_schedule(state=ScheduleState.PAUSED), T1)


def test_a_run_fires_once() -> None:
    schedule = a_schedule()
    later = T1.plus(3600)
    fired = fire_schedule(schedule, later, T1)
    assert (fired.next_at, fired.last_at, fired.fired) == (later, T1, 1)
    assert build_firing_key(schedule) == f"{schedule.id}@{T1}"
    assert build_firing_key(fired) != build_firing_key(schedule)


def test_pausing_and_resuming() -> None:
    paused = pause_schedule(a_schedule(), T1, seen=1)
    assert (paused.state, paused.next_at) == (ScheduleState.PAUSED, None)
    again = resume_schedule(paused, T1.plus(9), T1, seen=2)
    assert (again.state, again.next_at) == (ScheduleState.ACTIVE, T1.plus(9))
    ended = end_schedule(again, "done", T1, seen=3)
    assert (ended.state, ended.next_at, ended.reason) == (ScheduleState.ENDED, None, "done")


def test_another_time_or_text_leaves_the_rest() -> None:
    changed = reschedule(a_schedule(), T1, seen=1, cron="5 9 * * 1", next_at=T1.plus(300))
    assert (changed.cron, changed.body, changed.time_zone) == ("5 9 * * 1", "Report.", "UTC")
    again = reschedule(changed, T1, body="Tell.", time_zone="Europe/Berlin")
    assert (again.cron, again.body, again.time_zone) == ("5 9 * * 1", "Tell.", "Europe/Berlin")
    assert again.next_at == T1.plus(300)


@pytest.mark.parametrize(
    ("cron", "body"), [("0 9 * *", "x"), ("", "x"), ("0 9 * * 1 2026", "x"), ("0 9 * * 1", " ")]
)
def test_a_schedule_that_cannot_run_is_refused(cron: str, body: str) -> None:
    with pytest.raises(Refused, match="five cron fields and a body"):
        check_schedule(a_schedule(cron=cron, body=body))
    assert check_schedule(a_schedule()) == a_schedule(created_at=T0)
    with pytest.raises(Refused):
        reschedule(a_schedule(), T1, cron="nonsense")
