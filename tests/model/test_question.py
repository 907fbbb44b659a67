import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import Refused, WrongState
from scout.base.time import Time
from scout.model.question import (
    QUESTION,
    Question,
    QuestionMove,
    QuestionState,
    SpawnWork,
    answer_question,
    answer_with_work,
    close_question,
    create_question,
    decline_question,
    reopen_question,
)
from scout.model.work_item import WorkState
from tests.model.generate import wire_names
from tests.model.samples import ALICE, BOB, CAROL, T0, T1, a_question, ident
from tests.model.table import cells, check_cell

TABLE = """
          answer    decline   close   reopen
open      answered  declined  closed  -
answered  -         -         closed  open
closed    -         -         -       open
declined  -         -         closed  open
"""

S, M = QuestionState, QuestionMove


@pytest.mark.parametrize(("state", "move", "after"), cells(QUESTION, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(QUESTION, state, move, after)


def test_what_is_closed_or_declined_owes_nothing() -> None:
    assert QUESTION.settled == {S.CLOSED, S.DECLINED}
    assert QUESTION.terminal == frozenset()


def test_a_question_never_carries_progress() -> None:
    assert not {name for name in wire_names(Question) if "progress" in name.lower()}


def test_an_open_question_is_the_responders_and_an_answered_one_the_askers() -> None:
    question = create_question(
        ident("qst"),
        "Which?",
        T0,
        asker_id=ALICE,
        responder_id=BOB,
        options=("a", "b"),
        conversation_id="cnv_1",
        flight_id="flt_1",
    )
    assert (question.state, question.next_move_owner_id, question.options) == (S.OPEN, BOB, ("a", "b"))
    assert (question.conversation_id, question.flight_id) == ("cnv_1", "flt_1")
    assert (question.id, question.body) == (ident("qst"), "Which?")
    answered = answer_question(question, "a", T1, seen=1, message_id="msg_1")
    assert (answered.state, answered.next_move_owner_id, answered.answer) == (S.ANSWERED, ALICE, "a")
    assert (answered.answer_message_id, answered.work_item_id) == ("msg_1", None)


@pytest.mark.parametrize(
    ("body", "asker", "responder"), [(" ", ALICE, BOB), ("x", "", BOB), ("x", ALICE, "")]
)
def test_a_question_without_text_or_people_is_refused(body: str, asker: str, responder: str) -> None:
    with pytest.raises(Refused, match="a text, an asker and a responder"):
        create_question(ident("qst"), body, T0, asker_id=asker, responder_id=responder)


def test_an_answer_has_words() -> None:
    with pytest.raises(Refused, match="an answer needs a text"):
        answer_question(a_question(), " \n", T1)


def test_the_first_answer_wins() -> None:
    answered = answer_question(a_question(), "7432", T1)
    with pytest.raises(Refused) as refused:
        answer_question(answered, "", T1)
    assert isinstance(refused.value.diagnostic, WrongState)


def test_an_answer_may_bring_work_that_is_linked() -> None:
    question = a_question(conversation_id="cnv_1")
    spawn = SpawnWork(title="Open the port", owner_id=CAROL)
    answered, item = answer_with_work(question, "7432, but closed", spawn, ident("wrk"), T1, seen=1)
    assert (answered.state, answered.work_item_id, answered.revision) == (S.ANSWERED, ident("wrk"), 2)
    assert item.id == ident("wrk")
    assert (item.state, item.title, item.question_id) == (WorkState.OPEN, "Open the port", question.id)
    assert (item.requester_id, item.owner_id, item.next_move_owner_id) == (ALICE, CAROL, CAROL)
    assert item.conversation_id == "cnv_1"


def test_bad_work_refuses_the_answer_as_a_whole() -> None:
    with pytest.raises(Refused):
        answer_with_work(a_question(), "yes", SpawnWork(title="", owner_id=CAROL), ident("wrk"), T1)


def test_declining_and_closing_owe_nothing() -> None:
    declined = decline_question(a_question(), "not mine", T1, seen=1)
    assert (declined.state, declined.reason, declined.next_move_owner_id) == (S.DECLINED, "not mine", None)
    closed = close_question(declined, T1, seen=2, reason="found it")
    assert (closed.state, closed.reason, closed.next_move_owner_id) == (S.CLOSED, "found it", None)


def test_reopening_asks_again_the_same_or_another() -> None:
    answered = answer_question(a_question(), "7432", T1, message_id="msg_1")
    again = reopen_question(answered, T1, seen=2, reason="that is taken")
    assert (again.state, again.next_move_owner_id, again.answer) == (S.OPEN, BOB, None)
    assert (again.answer_message_id, again.reason) == (None, "that is taken")
    other = reopen_question(answered, T1, responder_id=CAROL)
    assert (other.responder_id, other.next_move_owner_id) == (CAROL, CAROL)


def _step(question: Question, move: QuestionMove, now: Time) -> Question:
    match move:
        case M.ANSWER:
            return answer_question(question, "yes", now)
        case M.DECLINE:
            return decline_question(question, "no", now)
        case M.CLOSE:
            return close_question(question, now)
        case M.REOPEN:
            return reopen_question(question, now)


@given(st.lists(st.sampled_from(list(M)), max_size=20))
def test_over_any_moves_the_next_mover_follows_the_state(moves: list[QuestionMove]) -> None:
    question = a_question()
    holder = {S.OPEN: BOB, S.ANSWERED: ALICE, S.CLOSED: None, S.DECLINED: None}
    for number, move in enumerate(moves):
        before = question
        try:
            question = _step(question, move, T0.plus(number))
        except Refused:
            assert move not in QUESTION.accepts(before.state)
            continue
        assert question.revision == before.revision + 1
        assert question.next_move_owner_id == holder[question.state]
