from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.agent import AgentConfig, PermissionProfile, WakePolicy
from scout.model.endpoint import (
    ACTIVE,
    BROKEN,
    ENDPOINT,
    EndpointFailure,
    EndpointMove,
    EndpointState,
    get_permission_profile,
    get_wake_policy,
    is_news,
    is_online,
    move_endpoint,
    record_heartbeat,
    update_endpoint,
)
from tests.model.samples import T0, T1, an_agent, an_endpoint
from tests.model.table import cells, check_cell

TABLE = """
             attach     wake    ready  claim    release  lose         fail    expire  stop     recover
registered   attaching  waking  idle   -        -        unreachable  failed  -       stopped  -
attaching    -          waking  idle   -        -        unreachable  failed  stale   stopped  -
waking       -          -       idle   -        -        unreachable  failed  stale   stopped  -
idle         -          -       -      working  -        unreachable  failed  stale   stopped  -
working      -          -       -      -        idle     unreachable  failed  stale   stopped  -
unreachable  -          -       -      -        -        -            failed  stale   stopped  attaching
failed       -          -       -      -        -        -            -       -       stopped  waking
stale        -          -       -      -        -        -            failed  -       stopped  attaching
stopped      -          -       -      -        -        -            -       -       -        -
"""

S, M = EndpointState, EndpointMove


def _change(name: str) -> dict[str, Any]:
    return {name: "x"}


@pytest.mark.parametrize(("state", "move", "after"), cells(ENDPOINT, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(ENDPOINT, state, move, after)


def test_recover_leads_to_attaching_or_waking() -> None:
    reached = {moves[M.RECOVER] for moves in ENDPOINT.table.values() if M.RECOVER in moves}
    assert reached == {S.ATTACHING, S.WAKING}


def test_active_and_broken_are_apart() -> None:
    assert {S.IDLE, S.WORKING} == ACTIVE
    assert {S.UNREACHABLE, S.FAILED, S.STALE, S.STOPPED} == BROKEN


@pytest.mark.parametrize("move", [M.FAIL, M.LOSE, M.EXPIRE])
def test_a_break_keeps_the_reason_and_what_it_was_doing(move: EndpointMove) -> None:
    broken = move_endpoint(an_endpoint(state=S.WORKING), move, T1, reason="exit 1")
    assert broken.failure == EndpointFailure(reason="exit 1", was=S.WORKING)


def test_a_second_break_does_not_hide_the_first() -> None:
    lost = move_endpoint(an_endpoint(state=S.WORKING), M.LOSE, T1, reason="silent")
    failed = move_endpoint(lost, M.FAIL, T1, reason="dead")
    assert failed.failure == EndpointFailure(reason="dead", was=S.WORKING)


def test_a_break_without_a_story_keeps_the_state() -> None:
    failed = move_endpoint(an_endpoint(state=S.STALE), M.FAIL, T1, reason="dead")
    assert failed.failure == EndpointFailure(reason="dead", was=S.STALE)


def test_being_ready_forgets_the_break_and_nothing_before_does() -> None:
    failed = move_endpoint(an_endpoint(state=S.WAKING), M.FAIL, T1, reason="no login")
    waking = move_endpoint(failed, M.RECOVER, T1)
    assert waking.failure == failed.failure
    assert move_endpoint(waking, M.READY, T1).failure is None


@pytest.mark.parametrize("name", ["harness", "node", "session_id", "agent_id", "state", "banana"])
def test_what_makes_an_endpoint_never_changes(name: str) -> None:
    endpoint = an_endpoint(session_id="ses_1")
    with pytest.raises(Refused, match=f"an endpoint's {name} cannot be changed") as refused:
        update_endpoint(endpoint, T1, **_change(name))
    diagnostic = refused.value.diagnostic
    assert isinstance(diagnostic, BadRequest)
    assert diagnostic.field == name


def test_the_same_value_again_is_no_change_of_it() -> None:
    endpoint = an_endpoint(session_id="ses_1")
    assert update_endpoint(endpoint, T1, session_id="ses_1", harness="claude").session_id == "ses_1"


def test_an_endpoint_may_learn_its_session_once() -> None:
    learned = update_endpoint(an_endpoint(), T1, seen=1, session_id="ses_1", preferred=True)
    assert (learned.session_id, learned.preferred, learned.revision) == ("ses_1", True, 2)


def test_a_field_that_is_not_there_is_refused_even_when_empty() -> None:
    with pytest.raises(Refused, match="banana"):
        update_endpoint(an_endpoint(), T1, banana=None)


def test_a_harness_is_not_learned() -> None:
    with pytest.raises(Refused):
        update_endpoint(an_endpoint(harness=None), T1, harness="codex")


@pytest.mark.parametrize(
    ("changes", "age", "online"),
    [
        ({"state": S.IDLE, "last_seen": T0}, 0, True),
        ({"state": S.IDLE, "last_seen": T0}, 90, True),
        ({"state": S.IDLE, "last_seen": T0}, 90.001, False),
        ({"state": S.WORKING, "last_seen": T0}, 90, True),
        ({"state": S.IDLE}, 0, False),
        ({"state": S.IDLE, "held": True}, 9999, True),
        *[({"state": state, "held": True, "last_seen": T0}, 0, False) for state in sorted(set(S) - ACTIVE)],
    ],
)
def test_online_is_active_with_a_sign_of_life(changes: dict[str, Any], age: float, online: bool) -> None:
    assert is_online(an_endpoint(**changes), T0.plus(age)) is online


def test_how_long_a_sign_of_life_lasts_is_an_argument() -> None:
    assert not is_online(an_endpoint(state=S.IDLE, last_seen=T0), T0.plus(20), within=10)


@pytest.mark.parametrize("state", sorted(set(S) - {S.UNREACHABLE, S.STALE}))
def test_a_sign_of_life_is_volatile(state: EndpointState) -> None:
    before = an_endpoint(state=state)
    after = record_heartbeat(before, T1)
    assert (after.last_seen, after.state, after.revision, after.updated_at) == (T1, state, 1, T0)


@pytest.mark.parametrize("move", [M.LOSE, M.EXPIRE])
@pytest.mark.parametrize(("was", "back"), [(S.IDLE, S.IDLE), (S.WORKING, S.WORKING), (S.WAKING, S.IDLE)])
def test_a_sign_of_life_brings_a_lost_endpoint_back(
    move: EndpointMove, was: EndpointState, back: EndpointState
) -> None:
    lost = move_endpoint(an_endpoint(state=was), move, T1, reason="silent")
    found = record_heartbeat(lost, T1.plus(5))
    assert (found.state, found.failure, found.last_seen) == (back, None, T1.plus(5))
    assert found.updated_at == T1.plus(5)


def test_a_lost_endpoint_without_a_story_comes_back_idle() -> None:
    assert record_heartbeat(an_endpoint(state=S.STALE), T1).state is S.IDLE


@pytest.mark.parametrize(
    ("before", "written", "now", "news"),
    [
        ({"state": S.STALE}, T0, T0.plus(1), True),
        ({"state": S.IDLE, "last_seen": T0}, None, T0.plus(1), True),
        ({"state": S.IDLE, "last_seen": T0}, T0, T0.plus(91), True),
        ({"state": S.IDLE, "last_seen": T0.plus(590)}, T0, T0.plus(599), False),
        ({"state": S.IDLE, "last_seen": T0.plus(590)}, T0, T0.plus(600), True),
    ],
)
def test_a_heartbeat_is_logged_when_reachability_changes_or_every_ten_minutes(
    before: dict[str, Any], written: Time | None, now: Time, news: bool
) -> None:
    endpoint = an_endpoint(**before)
    assert is_news(endpoint, record_heartbeat(endpoint, now), now, written=written) is news


def test_an_endpoints_own_policies_come_before_its_agents() -> None:
    agent = an_agent(
        config=AgentConfig(wake_policy=WakePolicy.MANUAL, permission_profile=PermissionProfile.REVIEW)
    )
    own = an_endpoint(wake_policy=WakePolicy.KEEP_WARM, permission_profile=PermissionProfile.OBSERVE)
    assert (get_wake_policy(agent), get_permission_profile(agent)) == (
        WakePolicy.MANUAL,
        PermissionProfile.REVIEW,
    )
    assert get_wake_policy(agent, an_endpoint()) is WakePolicy.MANUAL
    assert get_permission_profile(agent, an_endpoint()) is PermissionProfile.REVIEW
    assert get_wake_policy(agent, own) is WakePolicy.KEEP_WARM
    assert get_permission_profile(agent, own) is PermissionProfile.OBSERVE


@given(st.lists(st.sampled_from(list(M)), max_size=30))
def test_over_any_moves_a_break_is_told_while_broken_and_stopped_is_the_end(
    moves: list[EndpointMove],
) -> None:
    endpoint = an_endpoint()
    for number, move in enumerate(moves):
        revision, state = endpoint.revision, endpoint.state
        try:
            endpoint = move_endpoint(endpoint, move, T0.plus(number), reason=str(number))
        except Refused:
            assert move not in ENDPOINT.accepts(state)
            continue
        assert state is not S.STOPPED
        assert endpoint.revision == revision + 1
        if endpoint.state in BROKEN - {S.STOPPED}:
            assert endpoint.failure is not None
            assert endpoint.failure.was not in BROKEN
        if endpoint.state in ACTIVE:
            assert endpoint.failure is None
