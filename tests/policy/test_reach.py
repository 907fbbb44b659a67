"""How an agent is reached, and what that takes."""

from typing import Any

import msgspec
import pytest

from scout.base.refusal import Refused, Remedy
from scout.model.agent import AgentConfig, Lifecycle, WakePolicy
from scout.model.endpoint import EndpointState
from scout.model.problems.target import RetiredTarget, TargetOffline
from scout.policy.limits import Periods
from scout.policy.wake import Reach, WakeAction, build_reach, check_reach, is_kept_warm
from tests.model.samples import T0, an_agent, an_endpoint

ARC = Reach(agent_id="arc", address="@arc")


def arc(**fields: Any) -> Reach:
    return msgspec.structs.replace(ARC, **fields)


def test_what_brings_an_agent_up() -> None:
    start = Remedy(operation="session.start", parameters={"agent": "@arc"})
    assert ARC.remedy == start
    assert arc(harness="codex").remedy == Remedy(
        operation="session.start", parameters={"agent": "@arc", "harness": "codex"}
    )
    assert arc(lifecycle=Lifecycle.SLEEPING).remedy == start
    assert arc(lifecycle=Lifecycle.RETIRED).remedy == Remedy(
        operation="agent.revive", parameters={"address": "@arc"}
    )


@pytest.mark.parametrize(
    ("facts", "waking", "obstacle"),
    [
        ({}, True, ""),
        ({"wakeable": False}, True, "it cannot be woken"),
        ({"wakeable": False, "why_not": "no harness"}, True, "no harness"),
        ({"wakeable": False, "why_not": "no harness"}, False, ""),
        ({"wakeable": False, "live": True}, True, ""),
        ({"wakeable": False, "person": True}, True, ""),
        ({"lifecycle": Lifecycle.SLEEPING}, True, ""),
        ({"lifecycle": Lifecycle.RETIRED, "live": True}, True, "it is retired"),
        ({"lifecycle": Lifecycle.RETIRED}, False, "it is retired"),
    ],
)
def test_obstacles(facts: dict[str, Any], waking: bool, obstacle: str) -> None:
    assert arc(**facts).find_obstacle(waking) == obstacle


@pytest.mark.rows("R3.3-12", "R3.3-13")
@pytest.mark.parametrize(
    ("facts", "waking", "action"),
    [
        ({}, True, WakeAction.WAKE),
        ({}, False, WakeAction.DELIVER),
        ({"live": True}, True, WakeAction.WAKE),
        ({"person": True}, True, WakeAction.DELIVER),
        ({"policy": WakePolicy.KEEP_WARM}, True, WakeAction.WAKE),
        ({"policy": WakePolicy.MANUAL}, True, WakeAction.HOLD),
        ({"policy": WakePolicy.MANUAL}, False, WakeAction.DELIVER),
        ({"policy": WakePolicy.MANUAL, "live": True}, True, WakeAction.WAKE),
        ({"policy": WakePolicy.MANUAL, "person": True}, True, WakeAction.DELIVER),
    ],
)
def test_what_it_takes_to_reach_an_agent(facts: dict[str, Any], waking: bool, action: WakeAction) -> None:
    assert arc(**facts).choose_action(waking) is action
    if waking:
        assert check_reach(arc(**facts)) is action


@pytest.mark.rows("R3.1-17", "R3.5-20")
def test_an_ask_that_nothing_can_run_is_refused() -> None:
    reach = arc(wakeable=False, why_not="no harness is installed", last_seen=T0, harness="codex")
    with pytest.raises(Refused) as caught:
        check_reach(reach)
    wish = {"to": "@arc", "body": "…", "ifUnreachable": "queue"}
    queue = Remedy(operation="ask", parameters=wish, why="queue it for up to 24 hours")
    assert caught.value.diagnostic == TargetOffline(
        address="@arc", last_seen=T0, reason="no harness is installed", remedies=(reach.remedy, queue)
    )


@pytest.mark.rows("R3.5-23")
def test_an_ask_to_a_retired_agent_is_refused() -> None:
    reach = arc(lifecycle=Lifecycle.RETIRED)
    with pytest.raises(Refused) as caught:
        check_reach(reach)
    assert caught.value.diagnostic == RetiredTarget(address="@arc", agent_id="arc", remedies=(reach.remedy,))


@pytest.mark.rows("R3.3-14")
@pytest.mark.parametrize(
    ("facts", "kept"),
    [
        ({}, True),
        ({"live": True}, False),
        ({"person": True}, False),
        ({"wakeable": False}, False),
        ({"lifecycle": Lifecycle.RETIRED}, False),
        ({"policy": WakePolicy.ON_DEMAND}, False),
        ({"policy": WakePolicy.MANUAL}, False),
    ],
)
def test_an_agent_kept_warm_wants_a_session_although_nothing_waits(facts: dict[str, Any], kept: bool) -> None:
    assert is_kept_warm(arc(**{"policy": WakePolicy.KEEP_WARM, **facts})) is kept


@pytest.mark.rows("R0-64", "R0-66")
def test_reach_is_read_off_the_records() -> None:
    now = T0.plus(90)
    agent = an_agent(config=AgentConfig(harness="codex", wake_policy=WakePolicy.MANUAL))
    assert build_reach(agent, "@arc", (), now, Periods()) == Reach(
        agent_id=agent.id, address="@arc", policy=WakePolicy.MANUAL, harness="codex"
    )
    seen = an_endpoint(state=EndpointState.IDLE, last_seen=T0, wake_policy=WakePolicy.KEEP_WARM)
    assert build_reach(agent, "@arc", (seen,), now, Periods()) == Reach(
        agent_id=agent.id,
        address="@arc",
        policy=WakePolicy.KEEP_WARM,
        live=True,
        harness="claude",
        last_seen=T0,
    )
    later = build_reach(
        agent, "@arc", (seen,), now.plus(0.001), Periods(), wakeable=False, person=True, why_not="no"
    )
    assert later == Reach(
        agent_id=agent.id,
        address="@arc",
        policy=WakePolicy.KEEP_WARM,
        wakeable=False,
        person=True,
        harness="claude",
        last_seen=T0,
        why_not="no",
        unreachable=True,
    )


def test_the_latest_live_endpoint_speaks_for_the_agent() -> None:
    live = an_endpoint(id="a", state=EndpointState.WORKING, last_seen=T0)
    ended = an_endpoint(id="b", state=EndpointState.STOPPED, last_seen=T0.plus(5), harness="codex")
    never = an_endpoint(id="c", harness="tmux")
    agent = an_agent(lifecycle=Lifecycle.SLEEPING)
    reach = build_reach(agent, "@arc", (ended, live, never), T0.plus(6), Periods())
    assert (reach.harness, reach.live, reach.last_seen) == ("claude", True, T0)
    assert reach.lifecycle is Lifecycle.SLEEPING
    reach = build_reach(agent, "@arc", (never, ended), T0.plus(6), Periods())
    assert (reach.harness, reach.live, reach.last_seen) == ("codex", False, T0.plus(5))
    assert not build_reach(agent, "@arc", (live,), T0.plus(6), Periods(online_within=5)).live


def test_a_way_that_does_not_answer_is_unreachable_and_not_offline() -> None:
    silent = an_endpoint(state=EndpointState.UNREACHABLE, last_seen=T0)
    reach = build_reach(an_agent(), "@arc", (silent,), T0.plus(100), Periods(), wakeable=False, why_not="no")
    with pytest.raises(Refused) as caught:
        check_reach(reach)
    told = caught.value.diagnostic
    assert isinstance(told, TargetOffline)
    assert (told.unreachable, told.reason) == (
        True,
        "its session does not respond; it may reconnect by itself",
    )
    assert [one.operation for one in told.remedies] == ["ask", "show"]
