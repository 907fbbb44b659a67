"""Who owes what in a question, a work item and a flight."""

import msgspec

from scout.model.flight import FlightState
from scout.model.question import QuestionState
from scout.model.work_item import WorkState
from scout.policy.obligation import Obligation, obligation_of
from tests.model.samples import ALICE, BOB, CAROL, a_flight, a_question, a_work_item


def test_what_is_owed_in_a_question() -> None:
    question = a_question()
    owed = Obligation(noun="question", id=question.id, state="open", owner_id=ALICE, next_move_owner_id=BOB)
    assert obligation_of(question) == owed
    answered = a_question(state=QuestionState.ANSWERED, next_move_owner_id=ALICE)
    assert obligation_of(answered) == msgspec.structs.replace(
        owed, state="answered", next_move_owner_id=ALICE
    )
    for state in (QuestionState.CLOSED, QuestionState.DECLINED):
        assert obligation_of(a_question(state=state, next_move_owner_id=None)) == msgspec.structs.replace(
            owed, state=state, settled=True, next_move_owner_id=None
        )


def test_what_is_owed_in_a_work_item() -> None:
    item = a_work_item(state=WorkState.WORKING)
    owed = Obligation(noun="work item", id=item.id, state="working", owner_id=BOB, next_move_owner_id=BOB)
    assert obligation_of(item) == owed
    waiting = a_work_item(state=WorkState.WAITING, next_move_owner_id=CAROL)
    assert obligation_of(waiting) == msgspec.structs.replace(
        owed, state="waiting", waiting=True, next_move_owner_id=CAROL
    )
    done = obligation_of(a_work_item(state=WorkState.DONE, next_move_owner_id=None))
    assert (done.settled, done.waiting) == (True, False)


def test_what_is_owed_in_a_flight() -> None:
    flight = a_flight(state=FlightState.WAITING, next_move_owner_id=CAROL)
    assert obligation_of(flight) == Obligation(
        noun="flight",
        id=flight.id,
        state="waiting",
        waiting=True,
        owner_id=ALICE,
        next_move_owner_id=CAROL,
    )
    failed = obligation_of(a_flight(state=FlightState.FAILED, next_move_owner_id=None))
    assert (failed.settled, failed.waiting) == (True, False)
    assert not obligation_of(a_flight()).settled
