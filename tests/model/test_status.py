from typing import Any

import pytest

from scout.model.agent import Lifecycle
from scout.model.attention import AttentionKind, AttentionState
from scout.model.endpoint import EndpointState as E
from scout.model.flight import FlightPhase, FlightState
from scout.model.status import AgentStatus, get_status
from tests.model.samples import T0, T1, a_flight, an_agent, an_attention, an_endpoint

IDLE = {"state": E.IDLE, "held": True}
WORKING = {"state": E.WORKING, "held": True}
WAITING = {"state": FlightState.WAITING}
NEED = {"kind": AttentionKind.PERMISSION}


@pytest.mark.parametrize(
    ("endpoints", "flights", "attention", "status"),
    [
        ([], [], [], "offline"),
        ([IDLE], [], [], "online"),
        ([WORKING], [], [], "online"),
        ([{"state": E.IDLE, "last_seen": T0}], [], [], "online"),
        ([{"state": E.IDLE, "last_seen": T1.plus(-90)}], [], [], "online"),
        ([{"state": E.IDLE, "last_seen": T1.plus(-90.001)}], [], [], "unreachable"),
        ([{"state": E.WORKING}], [], [], "unreachable"),
        ([{"state": E.UNREACHABLE}], [], [], "unreachable"),
        ([{"state": E.REGISTERED}], [], [], "offline"),
        ([{"state": E.STALE}], [], [], "offline"),
        ([{"state": E.FAILED}], [], [], "offline"),
        ([{"state": E.STOPPED}], [], [], "offline"),
        ([{"state": E.WAKING}], [], [], "waking"),
        ([{"state": E.ATTACHING}], [], [], "waking"),
        ([], [{"phase": FlightPhase.WAKING}], [], "waking"),
        ([{"state": E.UNREACHABLE}, {"state": E.WAKING}], [], [], "waking"),
        ([{"state": E.UNREACHABLE}, IDLE], [], [], "online"),
        ([], [WAITING], [], "waiting"),
        ([IDLE], [WAITING], [], "waiting"),
        ([WORKING], [WAITING], [], "online"),
        ([IDLE], [{"state": FlightState.RUNNING}], [], "online"),
        ([WORKING], [WAITING], [NEED], "needs_attention"),
        ([], [], [NEED], "needs_attention"),
        ([IDLE], [], [{"kind": AttentionKind.NOTIFY}], "online"),
        ([IDLE], [], [{**NEED, "state": AttentionState.RESOLVED}], "online"),
    ],
)
def test_what_blocks_comes_first_then_what_it_does_then_how_it_is_reached(
    endpoints: list[dict[str, Any]],
    flights: list[dict[str, Any]],
    attention: list[dict[str, Any]],
    status: str,
) -> None:
    found = get_status(
        an_agent(),
        [an_endpoint(**changes) for changes in endpoints],
        T1,
        flights=[a_flight(**changes) for changes in flights],
        attention=[an_attention(**changes) for changes in attention],
    )
    assert found == status


def test_a_retired_agent_is_offline_whatever_runs() -> None:
    retired = an_agent(lifecycle=Lifecycle.RETIRED)
    assert get_status(retired, [an_endpoint(**IDLE)], T1, attention=[an_attention()]) is AgentStatus.OFFLINE


def test_a_sleeping_agent_may_be_reached() -> None:
    sleeping = an_agent(lifecycle=Lifecycle.SLEEPING)
    assert get_status(sleeping, [an_endpoint(**IDLE)], T1) is AgentStatus.ONLINE


def test_how_long_a_sign_of_life_lasts_is_an_argument() -> None:
    seen = an_endpoint(state=E.IDLE, last_seen=T0)
    assert get_status(an_agent(), [seen], T1, within=59) is AgentStatus.UNREACHABLE
    assert get_status(an_agent(), [seen], T1, within=60) is AgentStatus.ONLINE
