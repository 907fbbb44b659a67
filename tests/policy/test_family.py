"""What a parent is told about a flight of its child."""

from typing import Any

import pytest

from scout.model.flight import FlightState
from scout.model.waiting import WaitingKind, WaitingOn
from scout.policy.tree.family import (
    ChildFact,
    ParentNotice,
    decide_flight_notice,
    decide_notice,
    fact_of_flight,
)
from tests.model.samples import a_flight

SILENT, NOTE, WAKE = ParentNotice


def decided(
    *, actor: str = "agt_system", replies_to: str | None = None, asker: bool = True, **facts: Any
) -> ParentNotice:
    made = a_flight(
        **{"requester_id": "agt_person", "target": "agt_child", **facts, "state": FlightState(facts["state"])}
    )
    return decide_flight_notice(
        made, "agt_parent", actor_id=actor, replies_to=replies_to, asker_in_service=asker
    )


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_flight_under_way_is_no_news(state: str) -> None:
    assert fact_of_flight(a_flight(state=FlightState(state))) is None
    assert decided(state=state) is SILENT


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_the_end_of_a_flight_is_a_note(state: str) -> None:
    assert decided(state=state) is NOTE
    assert decided(state=state, actor="agt_parent") is SILENT
    assert decided(state=state, requester_id="agt_parent") is SILENT
    assert decided(state=state, replies_to="agt_parent") is SILENT


@pytest.mark.parametrize(("state", "notice"), [("completed", NOTE), ("failed", WAKE), ("cancelled", NOTE)])
def test_a_failure_wakes_the_parent_if_no_asker_is_left(state: str, notice: ParentNotice) -> None:
    assert decided(state=state, asker=False) is notice


@pytest.mark.parametrize(
    ("kind", "owner", "notice"),
    [
        (WaitingKind.OPERATOR, "agt_person", NOTE),
        (WaitingKind.QUESTION, "agt_peer", NOTE),
        (WaitingKind.QUESTION, "agt_parent", SILENT),
        (WaitingKind.ACTOR, "agt_parent", SILENT),
        (WaitingKind.CONDITION, "agt_parent", WAKE),
    ],
)
def test_a_wait_is_told_once(kind: WaitingKind, owner: str, notice: ParentNotice) -> None:
    waits: dict[str, Any] = {
        "state": "waiting",
        "waiting_on": WaitingOn(kind=kind),
        "next_move_owner_id": owner,
    }
    assert decided(**waits) is notice
    assert decided(**waits, requester_id="agt_parent") is notice


def test_a_wait_without_a_dependency_wakes_its_owner() -> None:
    assert decided(state="waiting", waiting_on=None, next_move_owner_id="agt_parent") is WAKE


@pytest.mark.parametrize("fact", ChildFact)
def test_only_a_stuck_child_wakes_its_parent(fact: ChildFact) -> None:
    assert decide_notice(fact, parent_moves=False) is NOTE
    stuck = fact in (ChildFact.FAILED, ChildFact.WAITING, ChildFact.DIED)
    assert decide_notice(fact, parent_moves=True) is (WAKE if stuck else NOTE)
