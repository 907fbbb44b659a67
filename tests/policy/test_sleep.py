"""An agent sleeps when nothing of it is open and it was idle for its time; each decision says why."""

import pytest
from msgspec.structs import replace

from scout.identity.path import AgentPath
from scout.model.agent import Agent, Lifecycle
from scout.policy.limits import Gap, Periods
from scout.policy.sweep import find_due_action
from scout.policy.sweep_actions import EndTask, Rest, Round, Sleep, StayAwake, SweepSubject
from tests.model.samples import T0, an_agent

IDLE = 300.0
ARC = an_agent()
AWAKE = [name for name in Rest.__struct_fields__ if name not in ("active_at", "done")]


def look_at(one: Agent, rest: Rest, after: float = IDLE, gap: Gap | None = None) -> object:
    this = Round(now=T0.plus(after), operator_id="agt_op", periods=Periods(agent_idle=IDLE), gap=gap)
    return find_due_action(SweepSubject(record=one, rest=rest), this)


@pytest.mark.rows("R2.2-9")
def test_it_sleeps_after_its_idle_time_and_says_since_when_it_is_idle() -> None:
    action = look_at(ARC, Rest(active_at=T0))
    assert action == Sleep(noun="agent", id=ARC.id, rule=f"idle since {T0}")


@pytest.mark.rows("R2.2-9")
def test_before_that_it_stays_awake_and_the_time_counts_from_its_last_activity() -> None:
    action = look_at(ARC, Rest(active_at=T0.plus(1)))
    assert isinstance(action, StayAwake)
    assert (action.rule, action.active_at) == ("it was active recently", T0.plus(1))


@pytest.mark.rows("R2.2-9")
@pytest.mark.parametrize("name", AWAKE)
def test_whatever_is_open_keeps_it_awake_with_a_reason(name: str) -> None:
    action = look_at(ARC, replace(Rest(active_at=T0), **{name: True}), after=9999)
    assert isinstance(action, StayAwake)
    assert action.active_at == T0.plus(9999)
    assert action.rule


def test_after_a_sleep_of_the_machine_nobody_falls_asleep_at_once() -> None:
    gap = Gap(seconds=9000, ended=T0.plus(9000))
    assert isinstance(look_at(ARC, Rest(active_at=T0), 9001, gap), StayAwake)
    assert isinstance(look_at(ARC, Rest(active_at=T0), 9091, gap), Sleep)


@pytest.mark.parametrize("path", ["/u/direct", "/system/sweeper"])
def test_a_person_and_a_part_of_scout_never_sleep(path: str) -> None:
    one = AgentPath(path)
    assert look_at(replace(ARC, path=one, kind=one.kind), Rest(active_at=T0), 9999) is None


@pytest.mark.parametrize("state", [Lifecycle.SLEEPING, Lifecycle.RETIRED])
def test_who_sleeps_or_is_retired_is_left_alone(state: Lifecycle) -> None:
    assert look_at(replace(ARC, lifecycle=state), Rest(active_at=T0), 9999) is None
    assert find_due_action(SweepSubject(record=ARC), Round(now=T0, operator_id="agt_op")) is None


def test_a_task_ends_when_it_is_done_and_its_turn_is_over() -> None:
    path = AgentPath("/u/task/7")
    task = replace(ARC, path=path, kind=path.kind)
    done = Rest(active_at=T0, done=True)
    assert look_at(task, done, 0) == EndTask(noun="agent", id=task.id, rule="its task is done")
    assert look_at(task, replace(done, working=True), 0) is None
    assert isinstance(look_at(task, replace(done, flights=True), 0), StayAwake)
    assert isinstance(look_at(task, Rest(active_at=T0)), Sleep)  # nothing was asked of it, or it failed
    assert isinstance(look_at(ARC, done), Sleep)
