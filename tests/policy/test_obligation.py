"""Who owes what in a question, a work item and a flight."""

import msgspec

from scout.model.flight import FlightState
from scout.model.question import QuestionState
from scout.model.work_item import WorkState
from scout.policy.obligation import Obligation, read_obligation
from tests.model.samples import ALICE, BOB, CAROL, a_flight, a_question, a_work_item


def test_what_is_owed_in_a_question() -> None:
    question = a_question()
    owed = Obligation(noun="question", id=question.id, state="open", owner_id=ALICE, next_move_owner_id=BOB)
    assert read_obligation(question) == owed
    answered = a_question(state=QuestionState.ANSWERED, next_move_owner_id=ALICE)
    assert read_obligation(answered) == msgspec.structs.replace(
        owed, state="answered", next_move_owner_id=ALICE
    )
    for state in (QuestionState.CLOSED, QuestionState.DECLINED):
        assert read_obligation(a_question(state=state, next_move_owner_id=None)) == msgspec.structs.replace(
            owed, state=state, settled=True, next_move_owner_id=None
        )


def test_what_is_owed_in_a_work_item() -> None:
    item = a_work_item(state=WorkState.WORKING)
    owed = Obligation(noun="work item", id=item.id, state="working", owner_id=BOB, next_move_owner_id=BOB)
    assert read_obligation(item) == owed
    waiting = a_work_item(state=WorkState.WAITING, next_move_owner_id=CAROL)
    assert read_obligation(waiting) == msgspec.structs.replace(
        owed, state="waiting", waiting=True, next_move_owner_id=CAROL
    )
    done = read_obligation(a_work_item(state=WorkState.DONE, next_move_owner_id=None))
    assert (done.settled, done.waiting) == (True, False)


def test_what_is_owed_in_a_flight() -> None:
    flight = a_flight(state=FlightState.WAITING, next_move_owner_id=CAROL)
    assert read_obligation(flight) == Obligation(
        noun="flight",
        id=flight.id,
        state="waiting",
        waiting=True,
        owner_id=ALICE,
        next_move_owner_id=CAROL,
    )
    failed = read_obligation(a_flight(state=FlightState.FAILED, next_move_owner_id=None))
    assert (failed.settled, failed.waiting) == (True, False)
    assert not read_obligation(a_flight()).settled
