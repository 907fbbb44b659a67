"""Questions and work (2.1, 2.2): who owns an item, who has the next move, and what a flight does to it."""

from typing import Any

import pytest

from scout.base.codec import decode, encode, to_plain
from scout.base.refusal import BadRequest, Refused
from scout.model.flight import Flight, FlightError, cancel_flight, complete_flight, fail_flight, start_flight
from scout.model.question import (
    SpawnWork,
    answer_question,
    answer_with_work,
    close_question,
    create_question,
    decline_question,
    reopen_question,
)
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import (
    Acceptance,
    Progress,
    WorkItem,
    WorkState,
    accept_work,
    create_work,
    follow_flight,
    hand_over_work,
    reopen_work,
    resume_work,
    start_work,
    submit_work,
    update_progress,
    wait_work,
)
from tests.contract.stories import WORK
from tests.model.samples import ALICE, BOB, CAROL, OPERATOR, T0, T1, a_flight, a_question, a_work_item, ident

S = WorkState
ON = WaitingOn(kind=WaitingKind.ACTOR, ref=CAROL)


def expect_refusal(change: Any, *arguments: Any, **named: Any) -> BadRequest:
    with pytest.raises(Refused) as caught:
        change(*arguments, **named)
    told = caught.value.diagnostic
    assert isinstance(told, BadRequest)
    return told


@pytest.mark.rows("R2.1-16", "R2.1-19")
def test_a_question_is_answered_without_work_and_has_no_progress() -> None:
    question = create_question(ident("qst"), "Which port?", T0, asker_id=ALICE, responder_id=BOB)
    answered = answer_question(question, "7432", T1)
    assert (answered.answer, answered.work_item_id) == ("7432", None)
    assert not {"progress", "percent", "steps", "done", "total"} & set(to_plain(answered))


@pytest.mark.rows("R2.1-17")
def test_an_answer_may_bring_its_work_item_with_it() -> None:
    spawn = decode({"title": "Open the port", "ownerId": CAROL}, SpawnWork)
    answered, item = answer_with_work(a_question(), "I will see to it", spawn, ident("wrk"), T1)
    assert (answered.answer, answered.work_item_id) == ("I will see to it", item.id)
    assert (item.title, item.owner_id, item.requester_id) == ("Open the port", CAROL, ALICE)
    assert (item.question_id, item.state) == (answered.id, "open")


@pytest.mark.rows("R2.1-20")
def test_a_work_item_has_an_owner() -> None:
    item = create_work(ident("wrk"), "Fix it", T0, requester_id=ALICE, owner_id=BOB)
    assert decode(encode(item), WorkItem) == item
    assert item.owner_id == BOB
    expect_refusal(create_work, ident("wrk"), "Fix it", T0, requester_id=ALICE, owner_id="")
    with pytest.raises(Refused):
        decode({**to_plain(item), "ownerId": None}, WorkItem)


@pytest.mark.rows("R2.2-29")
def test_who_has_the_next_move_of_a_question() -> None:
    question = create_question(ident("qst"), "Which port?", T0, asker_id=ALICE, responder_id=BOB)
    assert question.next_move_owner_id == BOB
    answered = answer_question(question, "7432", T1)
    assert answered.next_move_owner_id == ALICE
    assert reopen_question(answered, T1).next_move_owner_id == BOB
    assert reopen_question(answered, T1, responder_id=CAROL).next_move_owner_id == CAROL
    for over in (close_question(answered, T1), decline_question(question, "no", T1)):
        assert over.next_move_owner_id is None


@pytest.mark.rows("R2.2-32", "R2.2-72")
@pytest.mark.parametrize("kind", ["actor", "work_item", "approval", "artifact", "condition"])
def test_waiting_work_belongs_to_the_owner_of_what_it_waits_for(kind: str) -> None:
    on = decode({"kind": kind, "ref": "it"}, WaitingOn)
    for item in (a_work_item(), a_work_item(state=S.WORKING)):
        waiting = wait_work(item, on, CAROL, T1)
        assert (waiting.waiting_on, waiting.owner_id, waiting.next_move_owner_id) == (on, BOB, CAROL)
        resumed = resume_work(waiting, T1)
        assert (resumed.waiting_on, resumed.next_move_owner_id) == (None, BOB)


@pytest.mark.rows("R2.2-36")
def test_handing_over_gives_another_owner() -> None:
    for state in ("open", "working"):
        handed = hand_over_work(a_work_item(state=S(state)), CAROL, T1)
        assert (handed.state.value, handed.owner_id, handed.next_move_owner_id) == (state, CAROL, CAROL)
    review = hand_over_work(submit_work(a_work_item(), T1), CAROL, T1)
    assert (review.owner_id, review.next_move_owner_id) == (CAROL, ALICE), "the reviewer's move stays there"
    assert expect_refusal(hand_over_work, a_work_item(), "", T1).field == "ownerId"


@pytest.mark.rows("R2.2-70")
def test_acceptance_is_apart_from_the_state() -> None:
    assert [one.value for one in Acceptance] == ["none", "pending", "accepted", "reopened"]
    for wanted, seen in (("pending", ["pending", "pending", "accepted"]), ("none", ["none", "none", "none"])):
        working = start_work(a_work_item(acceptance=Acceptance(wanted)), T1)
        review = submit_work(working, T1)
        steps = (working, review, accept_work(review, T1))
        assert [one.state.value for one in steps] == ["working", "review", "done"]
        assert [one.acceptance.value for one in steps] == seen
    for over in (submit_work(a_work_item(), T1), a_work_item(state=S.DONE, acceptance=Acceptance.ACCEPTED)):
        again = reopen_work(over, "not good enough", T1)
        assert (again.state.value, again.acceptance.value) == ("working", "reopened")


@pytest.mark.rows("R2.2-71")
def test_while_an_item_is_unsettled_one_owns_it_and_one_has_the_next_move() -> None:
    """Every item that up to six moves can make of a new one."""
    front, seen = (
        [create_work(ident("wrk"), "Fix it", T0, requester_id=ALICE, owner_id=BOB)],
        set[WorkState](),
    )
    for _ in range(6):
        after: dict[str, WorkItem] = {}
        for item in front:
            seen.add(item.state)
            settled = item.state in {S.DONE, S.CANCELLED}
            assert item.owner_id in {BOB, CAROL}
            assert (item.next_move_owner_id is None) is settled
            for move in WORK.moves.values():
                try:
                    reached = move(item)
                except Refused:
                    continue
                after[repr((reached.state, reached.owner_id, reached.next_move_owner_id))] = reached
        front = list(after.values())
    assert seen == set(S)


@pytest.mark.rows("R2.2-71")
@pytest.mark.parametrize("missing", ["owner_id", "requester_id"])
def test_no_item_begins_without_its_people(missing: str) -> None:
    people = {"requester_id": ALICE, "owner_id": BOB, missing: ""}
    expect_refusal(create_work, ident("wrk"), "Fix it", T0, **people)


@pytest.mark.rows("R2.2-73")
def test_in_review_the_reviewer_has_the_next_move() -> None:
    asked = submit_work(a_work_item(), T1)
    assert (asked.state, asked.next_move_owner_id) == (S.REVIEW, ALICE)
    named = submit_work(a_work_item(), T1, reviewer_id=CAROL)
    assert (named.reviewer_id, named.next_move_owner_id) == (CAROL, CAROL)
    beforehand = submit_work(a_work_item(reviewer_id=OPERATOR, state=S.WORKING), T1)
    assert beforehand.next_move_owner_id == OPERATOR
    assert reopen_work(named, "", T1).next_move_owner_id == BOB


@pytest.mark.rows("R2.2-74")
def test_progress_is_steps_percent_and_words() -> None:
    told = decode({"done": 3, "total": 4, "summary": "almost"}, Progress)
    item = update_progress(a_work_item(state=S.WORKING), told, T1)
    assert to_plain(item)["progress"] == {"done": 3, "total": 4, "percent": 75.0, "summary": "almost"}
    for wrong in (Progress(done=5, total=4), Progress(percent=101), Progress(done=-1)):
        assert expect_refusal(update_progress, a_work_item(state=S.WORKING), wrong, T1).field == "progress"


RUNNING = start_flight(a_flight(), T0)
COMPLETED = complete_flight(RUNNING, "done", T1)
FAILED = fail_flight(RUNNING, FlightError(code="session_failed", message="it broke"), T1)
CANCELLED = cancel_flight(RUNNING, "not needed", T1)


def after(flight: Flight, state: str, acceptance: str = "pending") -> list[str]:
    item = a_work_item(state=S(state), acceptance=Acceptance(acceptance), waiting_on=ON)
    return [step.state.value for step in follow_flight(item, flight, T1)]


@pytest.mark.rows("R2.2-37", "R2.2-75", "R2.2-76", "R2.2-77")
@pytest.mark.parametrize("state", ["open", "working", "waiting"])
def test_an_item_follows_its_flight(state: str) -> None:
    back = ["working"] if state == "waiting" else []
    assert after(RUNNING, state) == (["working"] if state != "working" else [])
    assert after(COMPLETED, state) == [*back, "review"]
    assert after(COMPLETED, state, "none") == [*back, "review", "done"]
    assert after(FAILED, state) == [*back, "waiting"]
    assert after(CANCELLED, state) == ["cancelled"]


@pytest.mark.rows("R2.2-76")
def test_after_a_failure_the_requester_has_the_next_move() -> None:
    (item,) = follow_flight(a_work_item(), FAILED, T1)
    assert (item.owner_id, item.next_move_owner_id, item.reason) == (BOB, ALICE, "it broke")
    assert to_plain(item)["waitingOn"] == {"kind": "actor", "ref": ALICE, "until": None}
