from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import BadRequest, Refused, WrongRevision
from scout.base.time import Time
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import (
    WORK_ITEM,
    Acceptance,
    Priority,
    Progress,
    Relation,
    RelationKind,
    WorkItem,
    WorkMove,
    WorkState,
    accept_work,
    cancel_work,
    create_work,
    give_next_move,
    hand_over_work,
    list_parties,
    relate_work,
    reopen_work,
    resume_work,
    start_work,
    submit_work,
    update_progress,
    update_work,
    wait_work,
)
from tests.model.samples import ALICE, BOB, CAROL, OPERATOR, T0, T1, a_work_item, ident
from tests.model.table import cells, check_cell

TABLE = """
           start    progress  wait     resume   submit  accept  reopen   hand_over  cancel
open       working  -         waiting  -        review  -       -        open       cancelled
working    -        working   waiting  -        review  -       -        working    cancelled
waiting    -        waiting   -        working  -       -       -        waiting    cancelled
review     -        -         -        -        -       done    working  review     cancelled
done       -        -         -        -        -       -       working  -          -
cancelled  -        -         -        -        -       -       -        -          -
"""

S, M = WorkState, WorkMove
ON = WaitingOn(kind=WaitingKind.ACTOR, ref=CAROL)


def _change(name: str) -> dict[str, Any]:
    return {name: "x"}


@pytest.mark.parametrize(("state", "move", "after"), cells(WORK_ITEM, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(WORK_ITEM, state, move, after)


def test_done_is_settled_and_can_be_reopened() -> None:
    assert WORK_ITEM.settled == {S.DONE, S.CANCELLED}
    assert WORK_ITEM.terminal == {S.CANCELLED}


def test_an_item_knows_which_other_it_waits_for() -> None:
    other = WaitingOn(kind=WaitingKind.WORK_ITEM, ref=ident("wrk", 2))
    assert wait_work(a_work_item(), other, ALICE, T1).awaits == other.ref
    assert wait_work(a_work_item(), ON, CAROL, T1).awaits is None
    assert a_work_item().awaits is None


def test_what_is_said_when_submitting_is_the_summary() -> None:
    item = a_work_item(progress=Progress(done=1, total=2, summary="half"))
    assert submit_work(item, T1, summary="all").progress == Progress(done=1, total=2, summary="all")
    assert submit_work(item, T1).progress == item.progress


def test_a_new_item_is_its_owners() -> None:
    item = create_work(ident("wrk"), "Fix it", T0, requester_id=ALICE, owner_id=BOB, labels=("bug",))
    assert (item.state, item.owner_id, item.next_move_owner_id) == (S.OPEN, BOB, BOB)
    assert (item.acceptance, item.priority, item.labels) == (Acceptance.PENDING, Priority.NORMAL, ("bug",))


@pytest.mark.parametrize(
    ("title", "requester", "owner"), [(" ", ALICE, BOB), ("x", "", BOB), ("x", ALICE, "")]
)
def test_an_item_without_title_or_owner_is_refused(title: str, requester: str, owner: str) -> None:
    with pytest.raises(Refused, match="a title, a requester and an owner"):
        create_work(ident("wrk"), title, T0, requester_id=requester, owner_id=owner)


def test_starting_gives_the_owner_the_next_move() -> None:
    item = start_work(a_work_item(next_move_owner_id=CAROL, reason="x"), T1, seen=1)
    assert (item.state, item.next_move_owner_id, item.reason) == (S.WORKING, BOB, "")


@pytest.mark.parametrize("kind", list(WaitingKind))
def test_waiting_gives_the_next_move_to_the_dependencys_owner(kind: WaitingKind) -> None:
    on = WaitingOn(kind=kind, ref="x")
    item = wait_work(a_work_item(), on, CAROL, T1, seen=1, reason="blocked")
    assert (item.state, item.waiting_on, item.next_move_owner_id) == (S.WAITING, on, CAROL)
    assert (item.owner_id, item.reason) == (BOB, "blocked")
    back = resume_work(item, T1, seen=2)
    assert (back.state, back.waiting_on, back.next_move_owner_id, back.reason) == (S.WORKING, None, BOB, "")


def test_waiting_for_nobody_is_refused() -> None:
    with pytest.raises(Refused, match="a waiting work item needs a next-move owner"):
        wait_work(a_work_item(), ON, "", T1)


@pytest.mark.parametrize(
    ("named", "stored", "reviewer"), [(None, None, ALICE), (None, CAROL, CAROL), (OPERATOR, CAROL, OPERATOR)]
)
def test_the_reviewer_is_the_requester_unless_named(
    named: str | None, stored: str | None, reviewer: str
) -> None:
    item = submit_work(a_work_item(reviewer_id=stored), T1, seen=1, reviewer_id=named)
    assert (item.state, item.next_move_owner_id, item.reviewer_id) == (S.REVIEW, reviewer, reviewer)


def test_acceptance_is_apart_from_the_state() -> None:
    review = submit_work(a_work_item(), T1)
    assert review.acceptance is Acceptance.PENDING
    done = accept_work(review, T1, seen=2)
    assert (done.state, done.acceptance, done.settled_at) == (S.DONE, Acceptance.ACCEPTED, T1)
    assert (done.next_move_owner_id, done.reason) == (None, "")
    again = reopen_work(done, "a bug is left", T1, seen=3)
    assert (again.state, again.acceptance, again.reason) == (S.WORKING, Acceptance.REOPENED, "a bug is left")
    assert (again.next_move_owner_id, again.settled_at) == (BOB, None)
    assert submit_work(again, T1).acceptance is Acceptance.PENDING


def test_where_no_acceptance_is_wanted_none_is_noted() -> None:
    review = submit_work(a_work_item(acceptance=Acceptance.NONE), T1)
    assert review.acceptance is Acceptance.NONE
    assert accept_work(review, T1).acceptance is Acceptance.NONE
    assert reopen_work(review, "", T1).acceptance is Acceptance.REOPENED


def test_handing_over_takes_the_owners_next_move_along() -> None:
    item = hand_over_work(a_work_item(), CAROL, T1, seen=1, reason="holiday")
    assert (item.state, item.owner_id, item.next_move_owner_id) == (S.OPEN, CAROL, CAROL)
    assert item.reason == "holiday"


def test_handing_over_leaves_another_holders_next_move() -> None:
    waiting = wait_work(a_work_item(), ON, CAROL, T1)
    assert hand_over_work(waiting, OPERATOR, T1).next_move_owner_id == CAROL
    review = submit_work(a_work_item(), T1)
    handed = hand_over_work(review, OPERATOR, T1)
    assert (handed.owner_id, handed.next_move_owner_id) == (OPERATOR, ALICE)
    with pytest.raises(Refused, match="needs the new owner"):
        hand_over_work(a_work_item(), "", T1)


def test_cancelling_settles_for_good() -> None:
    item = cancel_work(wait_work(a_work_item(), ON, CAROL, T1), "not needed", T1, seen=2)
    assert (item.state, item.reason, item.settled_at) == (S.CANCELLED, "not needed", T1)
    assert (item.next_move_owner_id, item.waiting_on) == (None, None)


def test_the_next_move_may_be_given_to_another_holder() -> None:
    item = give_next_move(a_work_item(), CAROL, "the owner is retired", T1)
    assert (item.state, item.owner_id, item.next_move_owner_id) == (S.OPEN, BOB, CAROL)
    assert item.reason == "the owner is retired"
    for settled, holder in ((S.DONE, CAROL), (S.CANCELLED, CAROL), (S.OPEN, "")):
        with pytest.raises(Refused, match="an open work item needs a next-move owner"):
            give_next_move(a_work_item(state=settled), holder, "", T1)


@pytest.mark.parametrize(
    ("progress", "percent"),
    [
        (Progress(done=1, total=4), 25.0),
        (Progress(done=1, total=3), 33.3),
        (Progress(done=4, total=4, summary="all"), 100.0),
        (Progress(done=1, total=4, percent=50), 50),
        (Progress(done=3), None),
        (Progress(percent=10), 10),
        (Progress(percent=0), 0),
        (Progress(percent=100), 100),
        (Progress(done=0, total=0), None),
    ],
)
def test_progress_holds_steps_percent_and_summary(progress: Progress, percent: float | None) -> None:
    item = update_progress(a_work_item(state=S.WORKING), progress, T1, seen=1)
    assert (item.state, item.progress.percent) == (S.WORKING, percent)
    assert (item.progress.done, item.progress.total, item.progress.summary) == (
        progress.done,
        progress.total,
        progress.summary,
    )


@pytest.mark.parametrize(
    "progress",
    [Progress(done=-1), Progress(done=5, total=4), Progress(percent=-1), Progress(percent=100.1)],
)
def test_progress_that_cannot_be_is_refused(progress: Progress) -> None:
    with pytest.raises(Refused) as refused:
        update_progress(a_work_item(state=S.WORKING), progress, T1)
    problem = refused.value.diagnostic
    assert isinstance(problem, BadRequest)
    assert problem.field == "progress"


def test_items_are_related() -> None:
    item = relate_work(a_work_item(), RelationKind.BLOCKS, "wrk_2", T1)
    assert item.relations == (Relation(kind=RelationKind.BLOCKS, work_item_id="wrk_2"),)
    assert relate_work(item, RelationKind.BLOCKS, "wrk_2", T1) is item
    both = relate_work(item, RelationKind.RELATES, "wrk_2", T1)
    assert [relation.kind for relation in both.relations] == [RelationKind.BLOCKS, RelationKind.RELATES]
    with pytest.raises(Refused, match="cannot be related to itself"):
        relate_work(item, RelationKind.SPAWNS, item.id, T1)


def test_an_edit_changes_words_and_never_the_state_or_the_owners() -> None:
    item = update_work(a_work_item(), T1, seen=1, title="Mend it", priority=Priority.HIGH, labels=("a",))
    assert (item.title, item.priority, item.labels, item.revision) == ("Mend it", Priority.HIGH, ("a",), 2)
    for name in ("state", "owner_id", "next_move_owner_id", "acceptance", "id"):
        with pytest.raises(Refused, match=f"a work item's {name} changes by a move"):
            update_work(a_work_item(), T1, **_change(name))
    with pytest.raises(Refused) as refused:
        update_work(a_work_item(), T1, seen=9, title="x")
    assert isinstance(refused.value.diagnostic, WrongRevision)


def test_a_title_cannot_be_taken_away() -> None:
    with pytest.raises(Refused) as refused:
        update_work(a_work_item(), T1, title=" ")
    assert refused.value.diagnostic == BadRequest(problem="a work item needs a title", field="title")


def test_in_review_another_reviewer_takes_the_next_move() -> None:
    review = submit_work(a_work_item(), T1)
    assert update_work(review, T1, reviewer_id=CAROL).next_move_owner_id == CAROL
    assert update_work(review, T1, reviewer_id=None).next_move_owner_id == ALICE
    assert update_work(review, T1, title="x").next_move_owner_id == ALICE
    given = give_next_move(review, OPERATOR, "the reviewer is retired", T1)
    assert update_work(given, T1, reviewer_id=CAROL).next_move_owner_id == OPERATOR
    assert update_work(a_work_item(), T1, reviewer_id=CAROL).next_move_owner_id == BOB


def _step(item: WorkItem, move: WorkMove, who: str, now: Time) -> WorkItem:
    steps: dict[WorkMove, Any] = {
        M.START: lambda: start_work(item, now),
        M.PROGRESS: lambda: update_progress(item, Progress(done=1), now),
        M.WAIT: lambda: wait_work(item, ON, who, now),
        M.RESUME: lambda: resume_work(item, now),
        M.SUBMIT: lambda: submit_work(item, now, reviewer_id=who),
        M.ACCEPT: lambda: accept_work(item, now),
        M.REOPEN: lambda: reopen_work(item, "", now),
        M.HAND_OVER: lambda: hand_over_work(item, who, now),
        M.CANCEL: lambda: cancel_work(item, "", now),
    }
    return steps[move]()


@given(
    st.lists(st.tuples(st.sampled_from(list(M)), st.sampled_from([ALICE, BOB, CAROL, OPERATOR])), max_size=40)
)
def test_over_any_moves_an_unsettled_item_has_one_owner_and_one_next_mover(
    moves: list[tuple[WorkMove, str]],
) -> None:
    item = a_work_item()
    for number, (move, who) in enumerate(moves):
        before = item
        try:
            item = _step(item, move, who, T0.plus(number))
        except Refused:
            assert move not in WORK_ITEM.accepts(before.state)
            continue
        assert before.state is not S.CANCELLED
        assert item.revision == before.revision + 1
        assert item.owner_id
        settled = item.state in {S.DONE, S.CANCELLED}
        assert (item.next_move_owner_id is None) is settled
        assert (item.settled_at is not None) is settled
        assert (item.waiting_on is not None) is (item.state is S.WAITING)
        if item.state in {S.OPEN, S.WORKING}:
            assert item.next_move_owner_id == item.owner_id


def test_the_parties_of_an_item() -> None:
    item = a_work_item(owner_id=ALICE, requester_id=BOB, reviewer_id=CAROL, next_move_owner_id=ALICE)
    assert list_parties(item) == (ALICE, BOB, CAROL, ALICE)
