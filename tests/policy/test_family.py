"""What a parent is told about a flight of its child."""

from typing import Any

import pytest

from scout.model.flight import FlightState
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import WorkMove
from scout.policy.tree.family import (
    ChildFact,
    ParentNotice,
    decide_flight_notice,
    decide_notice,
    decide_work_notice,
    read_fact,
)
from tests.model.samples import a_flight, a_work_item

SILENT, NOTE, WAKE = ParentNotice


def decided(
    *,
    actor: str = "agt_system",
    replies_to: str | None = None,
    asker: bool = True,
    unfetched: bool = False,
    **facts: Any,
) -> ParentNotice:
    made = a_flight(
        **{"requester_id": "agt_person", "target": "agt_child", **facts, "state": FlightState(facts["state"])}
    )
    return decide_flight_notice(
        made,
        "agt_parent",
        actor_id=actor,
        replies_to=replies_to,
        asker_in_service=asker,
        unfetched=unfetched,
    )


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_flight_under_way_is_no_news(state: str) -> None:
    assert read_fact(a_flight(state=FlightState(state))) is None
    assert decided(state=state) is SILENT


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_the_end_of_a_flight_is_a_note(state: str) -> None:
    assert decided(state=state) is NOTE
    assert decided(state=state, actor="agt_parent") is SILENT
    assert decided(state=state, requester_id="agt_parent") is SILENT
    assert decided(state=state, replies_to="agt_parent") is SILENT


@pytest.mark.parametrize(("state", "notice"), [("completed", NOTE), ("failed", SILENT)])
def test_an_answer_that_the_parent_must_fetch_is_a_note(state: str, notice: ParentNotice) -> None:
    assert decided(state=state, requester_id="agt_parent", unfetched=True) is notice


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


# -- work items ------------------------------------------------------------------------------------------


def work_decided(
    move: str | None, *, actor: str = "agt_child", **facts: Any
) -> tuple[ChildFact | None, ParentNotice]:
    item = a_work_item(
        **{"owner_id": "agt_child", "requester_id": "agt_person", "next_move_owner_id": None, **facts}
    )
    return decide_work_notice(item, move, "agt_parent", actor_id=actor)


@pytest.mark.parametrize(
    ("move", "fact"),
    [
        (WorkMove.SUBMIT, ChildFact.COMPLETED),
        (WorkMove.WAIT, ChildFact.WAITING),
        (WorkMove.CANCEL, ChildFact.CANCELLED),
    ],
)
def test_the_end_of_a_childs_part_and_a_wait_are_notes(move: str, fact: ChildFact) -> None:
    assert work_decided(move) == (fact, NOTE)
    assert work_decided(move, actor="agt_parent") == (fact, SILENT)
    assert work_decided(move, next_move_owner_id="agt_parent") == (fact, SILENT)  # it gets its own message


@pytest.mark.parametrize(
    "move", [None, "update", *(one for one in WorkMove if one not in ("submit", "wait", "cancel"))]
)
def test_other_moves_of_a_work_item_are_no_news(move: str | None) -> None:
    assert work_decided(move) == (None, SILENT)


def test_the_requester_hears_from_the_owner_that_it_was_cancelled() -> None:
    assert work_decided(WorkMove.CANCEL, requester_id="agt_parent")[1] is SILENT
    assert work_decided(WorkMove.CANCEL, requester_id="agt_parent", actor="agt_person")[1] is NOTE
