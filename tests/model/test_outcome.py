import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.model.flight import FlightState
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import WORK_ITEM, Acceptance, WorkState, follow_flight
from tests.model.samples import ALICE, BOB, T1, a_flight, a_work_item

ON = WaitingOn(kind=WaitingKind.CONDITION, ref="x")

# item state, acceptance, flight state → the item's states, one for each step
STORY = """
open       pending   queued     -
open       pending   running    working
open       pending   waiting    -
open       pending   completed  review
open       none      completed  review done
open       pending   failed     waiting
open       pending   cancelled  cancelled
working    pending   running    -
working    pending   waiting    -
working    pending   completed  review
working    reopened  completed  review
working    none      completed  review done
working    pending   failed     waiting
working    pending   cancelled  cancelled
waiting    pending   running    working
waiting    pending   completed  working review
waiting    none      completed  working review done
waiting    pending   failed     working waiting
waiting    pending   cancelled  cancelled
review     pending   running    -
review     pending   completed  -
review     pending   failed     -
review     pending   cancelled  -
done       accepted  running    -
done       accepted  failed     -
cancelled  pending   completed  -
cancelled  pending   running    -
"""


@pytest.mark.parametrize("line", STORY.strip().splitlines())
def test_an_item_follows_its_flight(line: str) -> None:
    state, acceptance, flown, *steps = line.split()
    item = a_work_item(state=WorkState(state), acceptance=Acceptance(acceptance), waiting_on=ON)
    flight = a_flight(state=FlightState(flown), reason="because")
    after = follow_flight(item, flight, T1)
    assert [step.state for step in after] == [step for step in steps if step != "-"]


def test_a_failure_waits_on_the_requester() -> None:
    (item,) = follow_flight(a_work_item(), a_flight(state=FlightState.FAILED, reason="no login"), T1)
    assert (item.owner_id, item.next_move_owner_id, item.reason) == (BOB, ALICE, "no login")
    assert item.waiting_on == WaitingOn(kind=WaitingKind.ACTOR, ref=ALICE)


def test_a_cancelled_flight_says_why_in_its_item() -> None:
    (item,) = follow_flight(a_work_item(), a_flight(state=FlightState.CANCELLED, reason="not needed"), T1)
    assert item.reason == "not needed"


def test_a_completed_flight_asks_the_requester_for_review() -> None:
    (item,) = follow_flight(a_work_item(), a_flight(state=FlightState.COMPLETED), T1)
    assert (item.next_move_owner_id, item.acceptance) == (ALICE, Acceptance.PENDING)


@given(
    st.sampled_from(list(WorkState)),
    st.sampled_from(list(Acceptance)),
    st.lists(st.sampled_from(list(FlightState))),
)
def test_whatever_flights_do_each_step_is_one_revision_and_no_item_is_nobodys(
    state: WorkState, acceptance: Acceptance, flights: list[FlightState]
) -> None:
    item = a_work_item(state=state, acceptance=acceptance)
    for flown in flights:
        for step in follow_flight(item, a_flight(state=flown), T1):
            assert (step.revision, step.updated_at) == (item.revision + 1, T1)
            assert (step.next_move_owner_id is None) is (step.state in WORK_ITEM.settled)
            item = step
