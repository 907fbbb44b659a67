from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import Refused, WrongRevision, WrongState
from scout.base.time import Time
from scout.model.ask import SessionPolicy
from scout.model.flight import (
    FLIGHT,
    CompletedBy,
    Flight,
    FlightError,
    FlightMove,
    FlightPhase,
    FlightState,
    build_error,
    cancel_flight,
    complete_flight,
    create_flight,
    fail_flight,
    hold_flight,
    note_flight,
    postpone_flight,
    resume_flight,
    retry_flight,
    start_flight,
    wait_flight,
)
from scout.model.problems.session import Layer, SessionFailed
from scout.model.waiting import WaitingKind, WaitingOn
from tests.model.samples import ALICE, ASK, BOB, CONVERSATION, OPERATOR, T0, T1, a_flight, an_ask, ident
from tests.model.table import cells, check_cell

TABLE = """
            start    wait     resume   complete   fail    cancel
queued      running  -        -        -          failed  cancelled
running     -        waiting  -        completed  failed  cancelled
waiting     -        -        running  completed  failed  cancelled
completed   -        -        -        -          -       -
failed      -        -        -        -          -       -
cancelled   -        -        -        -          -       -
"""

S, M = FlightState, FlightMove
ERROR = FlightError(code="session_failed", message="it broke")
APPROVAL = WaitingOn(kind=WaitingKind.APPROVAL, ref="att_1")


@pytest.mark.parametrize(("state", "move", "after"), cells(FLIGHT, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(FLIGHT, state, move, after)


def test_a_new_flight_is_queued_with_a_reason_and_a_next_check() -> None:
    flight = create_flight(ident("flt"), an_ask(work_item_id="wrk_1"), T0)
    assert (flight.state, flight.phase, flight.attempt) == (S.QUEUED, FlightPhase.ACCEPTED, 1)
    assert (flight.ask_id, flight.conversation_id, flight.work_item_id) == (ASK, CONVERSATION, "wrk_1")
    assert (flight.requester_id, flight.target, flight.next_move_owner_id) == (ALICE, BOB, BOB)
    assert (flight.reason, flight.next_check_at) == ("accepted", T0.plus(60))


@pytest.mark.parametrize(
    ("policy", "known"),
    [(SessionPolicy.EXISTING, "ses_1"), (SessionPolicy.FORK, None), (SessionPolicy.NEW, None)],
)
def test_only_an_existing_session_is_known_beforehand(policy: SessionPolicy, known: str | None) -> None:
    ask = an_ask(session_policy=policy, target_session_id="ses_1")
    assert create_flight(ident("flt"), ask, T0).session_id == known


def test_starting_learns_where_it_runs() -> None:
    running = start_flight(a_flight(), T1, seen=1, endpoint_id="ept_1", session_id="ses_1")
    assert (running.state, running.phase, running.started_at) == (S.RUNNING, FlightPhase.WORKING, T1)
    assert (running.endpoint_id, running.session_id, running.next_move_owner_id) == ("ept_1", "ses_1", BOB)
    kept = start_flight(a_flight(endpoint_id="ept_2", session_id="ses_2"), T1)
    assert (kept.endpoint_id, kept.session_id) == ("ept_2", "ses_2")


def test_waiting_names_the_owner_of_the_next_move() -> None:
    running = a_flight(state=S.RUNNING)
    waiting = wait_flight(running, APPROVAL, T1, seen=1, next_move_owner_id=OPERATOR)
    assert (waiting.state, waiting.phase, waiting.waiting_on) == (S.WAITING, FlightPhase.WAITING, APPROVAL)
    assert (waiting.next_move_owner_id, waiting.next_check_at) == (OPERATOR, T1.plus(60))
    assert waiting.reason == "waiting on approval att_1"
    with pytest.raises(Refused, match="a next move owner"):
        wait_flight(running, APPROVAL, T1)


def test_a_flight_asks_while_it_waits_for_an_answer() -> None:
    running = a_flight(state=S.RUNNING)
    question = WaitingOn(kind=WaitingKind.QUESTION, ref="qst_1")
    asking = wait_flight(running, question, T1, next_move_owner_id=OPERATOR)
    assert asking.is_asking
    person = WaitingOn(kind=WaitingKind.OPERATOR, ref="att_1")
    assert wait_flight(running, person, T1, next_move_owner_id=OPERATOR).is_asking
    assert not running.is_asking
    assert not wait_flight(running, APPROVAL, T1, next_move_owner_id=OPERATOR).is_asking
    assert not resume_flight(asking, T1).is_asking


@pytest.mark.parametrize("kind", [WaitingKind.QUOTA, WaitingKind.BUDGET])
def test_a_limit_is_waited_out(kind: WaitingKind) -> None:
    resets = T1.plus(3600)
    on = WaitingOn(kind=kind, until=resets)
    waiting = wait_flight(a_flight(state=S.RUNNING), on, T1)
    assert (waiting.state, waiting.next_check_at, waiting.reason) == (S.WAITING, resets, f"waiting on {kind}")
    said = wait_flight(a_flight(state=S.RUNNING), on, T1, reason="five-hour limit")
    assert said.reason == "five-hour limit"


def test_resuming_goes_back_to_the_target() -> None:
    waiting = wait_flight(a_flight(state=S.RUNNING), APPROVAL, T1, next_move_owner_id=OPERATOR)
    running = resume_flight(waiting, T1, seen=2)
    assert (running.state, running.waiting_on, running.next_move_owner_id) == (S.RUNNING, None, BOB)
    assert running.reason


def test_completing_keeps_the_reply_and_how_it_came() -> None:
    done = complete_flight(
        a_flight(state=S.RUNNING), " ok ", T1, seen=1, by=CompletedBy.REPLY, message_id="msg_2"
    )
    assert (done.state, done.output, done.output_message_id) == (S.COMPLETED, " ok ", "msg_2")
    assert (done.completed_by, done.finished_at, done.phase) == (CompletedBy.REPLY, T1, FlightPhase.DONE)
    assert (done.next_check_at, done.next_move_owner_id, done.waiting_on) == (None, None, None)
    assert complete_flight(a_flight(state=S.WAITING), "ok", T1).completed_by is CompletedBy.COMPLETE


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_a_reply_without_text_is_a_failure_that_says_so(text: str) -> None:
    failed = complete_flight(a_flight(state=S.RUNNING), text, T1)
    assert failed.state is S.FAILED
    assert failed.error is not None
    assert failed.error.code == "empty_reply"
    assert [remedy.operation for remedy in failed.error.remedies] == ["flight.retry"]
    assert failed.error.remedies[0].parameters == {"flightId": failed.id}
    with pytest.raises(Refused) as refused:
        complete_flight(a_flight(state=S.RUNNING), text, T1, seen=7)
    assert isinstance(refused.value.diagnostic, WrongRevision)


def test_an_empty_reply_to_a_queued_flight_is_refused_not_failed() -> None:
    with pytest.raises(Refused) as refused:
        complete_flight(a_flight(), "", T1)
    assert refused.value.diagnostic == WrongState(
        noun="flight", state="queued", move="complete", accepts=("start", "fail", "cancel"), terminal=False
    )


def test_the_first_result_wins() -> None:
    done = complete_flight(a_flight(state=S.RUNNING), "ok", T1)
    for later in (
        lambda: complete_flight(done, "other", T1),
        lambda: fail_flight(done, ERROR, T1),
        lambda: cancel_flight(done, "late", T1),
    ):
        with pytest.raises(Refused, match="completed is final"):
            later()


def test_failing_and_cancelling_say_why() -> None:
    failed = fail_flight(a_flight(), ERROR, T1, seen=1)
    assert (failed.state, failed.error, failed.reason) == (S.FAILED, ERROR, "it broke")
    cancelled = cancel_flight(a_flight(), "not needed", T1, seen=1)
    assert (cancelled.state, cancelled.reason) == (S.CANCELLED, "not needed")
    assert cancel_flight(a_flight(), "", T1).reason == "cancelled"


def test_a_diagnostic_becomes_the_error() -> None:
    problem = SessionFailed(session_id="ses_1", layer=Layer.PROCESS, reason="exit 1")
    assert build_error(problem, "sessions/ses_1/err") == FlightError(
        code="session_failed", message="session ses_1 failed in the process: exit 1", log="sessions/ses_1/err"
    )


@pytest.mark.parametrize("state", [S.FAILED, S.CANCELLED])
def test_a_retry_is_a_new_flight_of_the_same_ask(state: FlightState) -> None:
    ask = an_ask()
    again = retry_flight(a_flight(state=state), ask, ident("flt", 2), T1)
    assert (again.state, again.ask_id, again.attempt) == (S.QUEUED, ASK, 2)
    assert again.id == ident("flt", 2) != a_flight().id


@pytest.mark.parametrize(("state", "terminal"), [(S.QUEUED, False), (S.RUNNING, False), (S.COMPLETED, True)])
def test_only_what_failed_or_was_cancelled_is_retried(state: FlightState, terminal: bool) -> None:
    with pytest.raises(Refused) as refused:
        retry_flight(a_flight(state=state), an_ask(), ident("flt", 2), T1)
    problem = refused.value.diagnostic
    assert isinstance(problem, WrongState)
    assert (problem.move, problem.terminal) == ("retry", terminal)


def test_a_queued_flight_may_be_held() -> None:
    on = WaitingOn(kind=WaitingKind.OPERATOR, ref="scout session start --agent @arc")
    held = hold_flight(a_flight(), on, T1, next_move_owner_id=OPERATOR, reason="manual")
    assert (held.state, held.phase, held.waiting_on) == (S.QUEUED, FlightPhase.HELD, on)
    assert (held.next_move_owner_id, held.reason, held.next_check_at) == (OPERATOR, "manual", T1.plus(60))
    with pytest.raises(Refused, match="does not allow 'hold'"):
        hold_flight(a_flight(state=S.RUNNING), on, T1, next_move_owner_id=OPERATOR)


def test_a_phase_is_noted_beside_the_state() -> None:
    steering = note_flight(a_flight(state=S.RUNNING), FlightPhase.STEERING, T1, reason="new words")
    assert (steering.state, steering.phase, steering.reason) == (S.RUNNING, FlightPhase.STEERING, "new words")
    assert steering.next_check_at == T1.plus(60)
    with pytest.raises(Refused, match="failed is final"):
        note_flight(a_flight(state=S.FAILED), FlightPhase.STEERING, T1)


def test_a_check_that_is_put_off_is_no_move() -> None:
    flight = a_flight(state=S.RUNNING)
    later = postpone_flight(flight, T1)
    assert (later.next_check_at, later.updated_at, later.revision) == (T1, flight.updated_at, 2)
    with pytest.raises(Refused, match="failed is final"):
        postpone_flight(a_flight(state=S.FAILED), T1)


def _step(flight: Flight, move: FlightMove, now: Time) -> Flight:
    steps: dict[FlightMove, Any] = {
        M.START: lambda: start_flight(flight, now),
        M.WAIT: lambda: wait_flight(flight, APPROVAL, now, next_move_owner_id=OPERATOR),
        M.RESUME: lambda: resume_flight(flight, now),
        M.COMPLETE: lambda: complete_flight(flight, "ok", now),
        M.FAIL: lambda: fail_flight(flight, ERROR, now),
        M.CANCEL: lambda: cancel_flight(flight, "", now),
    }
    return steps[move]()


@given(st.lists(st.sampled_from(list(M)), max_size=20))
def test_over_any_moves_no_flight_is_in_limbo_and_the_end_is_the_end(moves: list[FlightMove]) -> None:
    flight = a_flight()
    for number, move in enumerate(moves):
        before, now = flight, T0.plus(number)
        try:
            flight = _step(flight, move, now)
        except Refused:
            assert move not in FLIGHT.accepts(before.state)
            continue
        assert before.state not in FLIGHT.terminal
        assert flight.revision == before.revision + 1
        assert flight.state is FLIGHT.after(before.state, move)
        is_open = flight.state not in FLIGHT.terminal
        assert flight.reason
        assert (flight.next_check_at is not None) is is_open
        assert (flight.next_move_owner_id is not None) is is_open
        assert (flight.finished_at is None) is is_open
        assert (flight.waiting_on is not None) is (flight.state is S.WAITING)
        assert (flight.output is not None) is (flight.state is S.COMPLETED)
        assert (flight.error is not None) is (flight.state is S.FAILED)
