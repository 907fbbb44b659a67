import pytest
from msgspec.structs import replace

from scout.base.codec import to_plain
from scout.base.refusal import Refused, WrongState
from scout.model.problems.session import Layer, SessionNotAttachable
from scout.model.session import (
    SESSION,
    LiveTurn,
    SessionClass,
    SessionOrigin,
    SessionState,
    Terminal,
    check_class,
    end_session,
    get_native_id,
    give_back,
    hand_over,
    is_refused_attach,
    lose_session,
    mark_ready,
    note_turn,
    observe_session,
    resume_session,
    update_enrolment,
)
from tests.model.samples import ALICE, T0, T1, a_session
from tests.model.table import cells, check_cell

TABLE = """
           ready  end    lose  resume
starting   live   ended  lost  -
live       -      ended  lost  -
ended      -      -      -     starting
lost       -      ended  -     starting
"""


@pytest.mark.parametrize(("state", "move", "after"), cells(SESSION, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(SESSION, state, move, after)


def test_a_session_begins_starting_and_owes_nothing_when_ended() -> None:
    assert SESSION.initial is SessionState.STARTING
    assert SESSION.settled == {SessionState.ENDED}


def test_the_class_stands_beside_the_state() -> None:
    wire = to_plain(a_session())
    assert (wire["state"], wire["class"]) == ("starting", "resumable")


def test_ready_learns_what_the_harness_calls_itself() -> None:
    live = mark_ready(a_session(native_ids={"a": "1"}), T1, native_ids={"b": "2"})
    assert (live.state, live.native_ids, live.last_event_at) == (SessionState.LIVE, {"a": "1", "b": "2"}, T1)
    assert mark_ready(a_session(), T1).native_ids == {}


def test_ending_keeps_the_reason_and_forgets_the_process() -> None:
    ended = end_session(
        a_session(pid=7, pid_started="99"), "stopped", T1, ending=SessionClass.TERMINAL, seen=1
    )
    assert (ended.state, ended.reason, ended.ended_at) == (SessionState.ENDED, "stopped", T1)
    assert (ended.pid, ended.pid_started, ended.session_class) == (None, None, SessionClass.TERMINAL)


def test_ending_leaves_the_class_unless_told() -> None:
    assert end_session(a_session(), "stopped", T1).session_class is SessionClass.RESUMABLE


def test_losing_keeps_the_process_for_the_search() -> None:
    lost = lose_session(a_session(pid=7), "no answer", T1)
    assert (lost.state, lost.pid, lost.reason) == (SessionState.LOST, 7, "no answer")


@pytest.mark.parametrize("state", [SessionState.ENDED, SessionState.LOST])
@pytest.mark.parametrize("known", [SessionClass.RESUMABLE, SessionClass.REACHABILITY_UNKNOWN])
def test_a_resumable_session_is_taken_up_again(state: SessionState, known: SessionClass) -> None:
    session = a_session(state=state, session_class=known, reason="over", ended_at=T0)
    again = resume_session(session, T1, seen=1)
    assert (again.state, again.reason, again.ended_at) == (SessionState.STARTING, "", None)


@pytest.mark.parametrize("known", [SessionClass.NOT_ATTACHABLE, SessionClass.TERMINAL])
def test_a_session_that_is_over_is_refused_with_what_to_do(known: SessionClass) -> None:
    with pytest.raises(Refused) as refused:
        resume_session(a_session(state=SessionState.ENDED, session_class=known, reason="deleted"), T1)
    problem = refused.value.diagnostic
    assert isinstance(problem, SessionNotAttachable)
    assert (problem.layer, problem.reason) == (Layer.HARNESS, f"it is {known}; deleted")
    assert [(remedy.operation, remedy.parameters) for remedy in problem.remedies] == [
        ("session.start", {"agent": ALICE, "harness": "claude"})
    ]


def test_without_a_reason_the_harness_is_named() -> None:
    session = a_session(state=SessionState.ENDED, session_class=SessionClass.TERMINAL)
    with pytest.raises(Refused, match="its harness cannot resume it"):
        resume_session(session, T1)


def test_a_live_session_is_not_resumed() -> None:
    with pytest.raises(Refused) as refused:
        resume_session(a_session(state=SessionState.LIVE), T1)
    assert isinstance(refused.value.diagnostic, WrongState)


def test_a_check_says_what_can_be_done() -> None:
    unknown = check_class(a_session(), SessionClass.REACHABILITY_UNKNOWN, T1)
    assert (unknown.session_class, unknown.state, unknown.revision) == (
        SessionClass.REACHABILITY_UNKNOWN,
        SessionState.STARTING,
        2,
    )


def test_what_was_observed_is_kept_until_seen_otherwise() -> None:
    seen = observe_session(a_session(), T1, model="claude-sonnet-4-6", pid=7, pid_started="99")
    later = observe_session(seen, T1.plus(1))
    assert (later.model_observed, later.pid, later.pid_started) == ("claude-sonnet-4-6", 7, "99")
    assert later.last_event_at == T1.plus(1)


def test_a_host_that_comes_again_learns_more_and_keeps_the_rest() -> None:
    first = update_enrolment(
        a_session(), T1, by="tok_1", native_ids={"session": "n-1"}, pid=7, pid_started="9"
    )
    again = update_enrolment(first, T1.plus(1), by="tok_2", native_ids={}, model="opus")
    assert (again.pid, again.pid_started, again.native_ids) == (7, "9", {"session": "n-1"})
    assert (again.enrolled_by, again.model_observed) == ("tok_2", "opus")
    assert again.revision == first.revision + 1


def test_a_session_in_a_terminal_has_no_program_of_scout_and_is_given_back() -> None:
    terminal = Terminal(pid=7, started="11", by=ALICE, since=T1)
    session = replace(a_session(), state=SessionState.LIVE, pid=3, pid_started="2")
    opened = hand_over(session, terminal, T1)
    assert (opened.terminal, opened.pid, opened.pid_started) == (terminal, None, None)
    closed = give_back(opened, T1)
    assert (closed.terminal, closed.last_event_at) == (None, T1)
    assert end_session(opened, "over", T1).terminal is None


def test_what_a_harness_calls_a_session() -> None:
    named = {"thread": "t-1", "session": "s-1"}
    assert get_native_id(replace(a_session(), native_ids=named)) == "s-1"
    assert get_native_id(replace(a_session(), native_ids={"thread": "t-1"})) == "t-1"
    assert get_native_id(replace(a_session(), native_ids={})) is None


def test_a_refused_attach_was_never_a_session() -> None:
    tried = replace(a_session(), origin=SessionOrigin.ATTACHED, native_ids={}, state=SessionState.ENDED)
    assert is_refused_attach(tried)
    assert not is_refused_attach(replace(tried, native_ids={"session": "s-1"}))
    assert not is_refused_attach(replace(tried, state=SessionState.STARTING))
    assert not is_refused_attach(replace(tried, origin=SessionOrigin.STARTED))


def test_only_an_unusual_turn_is_kept() -> None:
    turn = LiveTurn(alone_for="flt_1")
    assert note_turn(a_session(), turn, T1).live_turn == turn
    assert note_turn(a_session(live_turn=turn), LiveTurn(), T1).live_turn is None
