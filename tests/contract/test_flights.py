"""Flights and deliveries (2.2): who may end a flight, what a delivery does to it, and what each leaves alone."""

from typing import Any

import pytest

from scout.base.codec import to_plain
from scout.base.refusal import BadRequest, Refused, WrongState
from scout.base.time import Time
from scout.model.ask import Ask
from scout.model.attention import AttentionKind, AttentionMove, ReturnPath, Risk, decide_attention
from scout.model.card import expire_card, revoke_card
from scout.model.delivery import (
    Delivery,
    DeliveryState,
    InspectResult,
    ack,
    build_bounce,
    cancel_delivery,
    dead_letter,
    expire,
    is_due,
    lease,
    nack,
    settle_uncertain,
)
from scout.model.endpoint import Endpoint, EndpointMove, EndpointState, move_endpoint
from scout.model.flight import (
    CompletedBy,
    Flight,
    FlightError,
    FlightPhase,
    FlightState,
    cancel_flight,
    close_delivery,
    complete_flight,
    fail_flight,
    follow_delivery,
    hold_flight,
    note_flight,
    wait_flight,
)
from scout.model.mesh.outbox import OutboxEntry
from scout.model.noun import NOUNS
from scout.model.people.chat_post import ChatPost
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import wait_work
from scout.policy.sweep import find_due_action
from scout.policy.sweep_actions import Liveness, Round, SweepResume, SweepSubject
from tests.model.generate import wire_names
from tests.model.samples import (
    ALICE,
    BACK_OFF,
    BOB,
    CAROL,
    MESSAGE,
    OPERATOR,
    T0,
    T1,
    a_card,
    a_delivery,
    a_flight,
    a_work_item,
    an_attention,
    an_endpoint,
    ident,
)

S, P = FlightState, FlightPhase
ERROR = FlightError(code="session_failed", message="it broke")
RUNNING = a_flight(state=S.RUNNING)
LEASED = lease(a_delivery(endpoint_id="ept_1", session_id="ses_1"), "d", T0)


def expect_refusal(change: Any, *arguments: Any, **named: Any) -> Any:
    with pytest.raises(Refused) as caught:
        change(*arguments, **named)
    return caught.value.diagnostic


@pytest.mark.rows("R2.2-3")
@pytest.mark.parametrize(
    "first",
    [
        complete_flight(RUNNING, "the answer", T0),
        fail_flight(RUNNING, ERROR, T0),
        cancel_flight(RUNNING, "not needed", T0),
    ],
    ids=lambda one: one.state,
)
def test_a_flights_first_result_wins(first: Flight) -> None:
    before = to_plain(first)
    later = (
        (complete_flight, "another answer"),
        (fail_flight, FlightError(code="late", message="late")),
        (cancel_flight, "late"),
    )
    for change, what in later:
        told = expect_refusal(change, first, what, T1)
        assert isinstance(told, WrongState)
        assert (told.terminal, told.accepts) == (True, ())
    assert follow_delivery(first, dead_letter(LEASED, "no login", T1), T1) is first
    assert to_plain(first) == before


@pytest.mark.rows("R2.2-3")
def test_so_does_every_other_nouns() -> None:
    denied = decide_attention(an_attention(), AttentionMove.DENY, OPERATOR, T0)
    assert expect_refusal(decide_attention, denied, AttentionMove.APPROVE, ALICE, T1).terminal
    assert (denied.state.value, denied.decided_by) == ("denied", OPERATOR)
    assert expect_refusal(revoke_card, expire_card(a_card(), T0), T1).terminal
    for over in (ack(LEASED, "d", T0), dead_letter(LEASED, "", T0), cancel_delivery(LEASED, "", T0)):
        assert expect_refusal(dead_letter, over, "late", T1).terminal
        assert expect_refusal(cancel_delivery, over, "late", T1).terminal


@pytest.mark.rows("R2.2-16")
def test_a_phase_stands_beside_the_state() -> None:
    words = "accepted held forwarded waking retrying working steering checking cancelling waiting done"
    assert [phase.value for phase in P] == words.split()
    for state in (S.QUEUED, S.RUNNING, S.WAITING):
        for phase in (P.WAKING, P.STEERING, P.CHECKING):
            noted = note_flight(a_flight(state=state), phase, T1)
            assert (noted.state, noted.phase) == (state, phase)
    sent = to_plain(note_flight(RUNNING, P.STEERING, T1))
    assert (sent["state"], sent["phase"]) == ("running", "steering")


@pytest.mark.rows("R2.2-24")
@pytest.mark.parametrize("seconds", [0, 1.5, 3600])
def test_a_nack_is_tried_again_when_the_target_wants_it(seconds: float) -> None:
    again = nack(LEASED, "d", T1, problem="busy", retry_after=seconds, rule=BACK_OFF)
    assert (again.state, again.problem, again.attempts) == (DeliveryState.PENDING, "busy", 1)
    assert is_due(again, T1.plus(seconds))
    assert not is_due(again, T1.plus(seconds - 0.001))


@pytest.mark.rows("R2.2-24")
def test_an_expired_lease_is_tried_again_later() -> None:
    again = expire(LEASED, T1, BACK_OFF)
    assert (again.state, again.leased_until, again.may_repeat) == (DeliveryState.PENDING, None, True)
    assert (is_due(again, T1.plus(1.999)), is_due(again, T1.plus(2))) == (False, True)


@pytest.mark.rows("R2.2-25", "R2.2-26")
@pytest.mark.parametrize("problem", ["no login", None])
def test_after_the_last_attempt_the_sender_gets_it_back(problem: str | None) -> None:
    delivery, states = a_delivery(), list[str]()
    while delivery.state is DeliveryState.PENDING:
        tried = lease(delivery, "d", T0)
        delivery = (
            nack(tried, "d", T1, problem=problem, rule=BACK_OFF) if problem else expire(tried, T1, BACK_OFF)
        )
        states.append(delivery.state.value)
    assert states == ["pending"] * 7 + ["dead_lettered"]
    bounce = build_bounce(delivery, "@bob")
    assert (bounce.to, bounce.target, bounce.message_id) == (ALICE, BOB, MESSAGE)
    assert (bounce.delivery_id, bounce.attempts) == (delivery.id, 8)
    assert bounce.text == f"not delivered to @bob after 8 attempts: {delivery.problem}"


@pytest.mark.rows("R2.2-40")
def test_nothing_waits_for_nobody() -> None:
    on = WaitingOn(kind=WaitingKind.ACTOR, ref=CAROL)
    for nobody in (None, ""):
        for change, flight in ((wait_flight, RUNNING), (hold_flight, a_flight())):
            told = expect_refusal(change, flight, on, T1, next_move_owner_id=nobody)
            assert isinstance(told, BadRequest)
            assert told.field == "nextMoveOwnerId"
    assert expect_refusal(wait_work, a_work_item(), on, "", T1).field == "nextMoveOwnerId"
    waiting = wait_flight(RUNNING, on, T1, next_move_owner_id=CAROL)
    assert (waiting.next_move_owner_id, waiting.waiting_on) == (CAROL, on)
    by_itself = wait_flight(RUNNING, WaitingOn(kind=WaitingKind.CONDITION, until=T1.plus(9)), T1)
    assert by_itself.next_check_at == T1.plus(9)


@pytest.mark.rows("R2.2-43")
@pytest.mark.parametrize("text", ["", " ", "\n\t "])
@pytest.mark.parametrize("state", [S.RUNNING, S.WAITING])
@pytest.mark.parametrize("by", CompletedBy)
def test_no_words_are_no_reply(state: FlightState, text: str, by: CompletedBy) -> None:
    ended = complete_flight(a_flight(state=state), text, T1, by=by)
    assert ended.error is not None
    assert (ended.state, ended.error.code, ended.output) == (S.FAILED, "empty_reply", None)


@pytest.mark.rows("R2.2-45")
def test_leases_are_the_deliverys_and_the_outcome_is_the_flights() -> None:
    attempts = {"attempts", "leasedBy", "leasedUntil", "nextAttemptAt", "mayRepeat"}
    outcome = {"output", "outputMessageId", "completedBy", "error", "finishedAt"}
    # A post in a chat and an envelope to another node are tried again by themselves; they are no work of an agent.
    records = [noun.record for noun in NOUNS.values() if noun.record not in (ChatPost, OutboxEntry)]
    assert [kind for kind in records if attempts & wire_names(kind)] == [Delivery]
    assert [kind for kind in records if outcome & wire_names(kind)] == [Flight]
    assert attempts <= wire_names(Delivery)
    assert outcome <= wire_names(Flight)
    assert not {"attempt", "state", "phase"} & wire_names(Ask)


@pytest.mark.rows("R2.2-46", "R2.2-47", "R2.2-48")
def test_a_flight_follows_its_delivery() -> None:
    waking = follow_delivery(a_flight(), LEASED, T0)
    assert (waking.state, waking.phase) == (S.QUEUED, P.WAKING)
    running = follow_delivery(waking, ack(LEASED, "d", T1), T1)
    assert (running.state, running.endpoint_id, running.session_id) == (S.RUNNING, "ept_1", "ses_1")
    failed = follow_delivery(waking, dead_letter(LEASED, "no login", T1), T1)
    assert failed.error is not None
    assert (failed.state, failed.error.code) == (S.FAILED, "wake_failed")
    assert "no login" in failed.error.message


@pytest.mark.rows("R2.2-49")
@pytest.mark.parametrize("delivery", [a_delivery(), LEASED], ids=["pending", "leased"])
def test_nothing_is_delivered_for_a_finished_flight(delivery: Delivery) -> None:
    ends = (
        complete_flight(RUNNING, "ok", T1),
        fail_flight(RUNNING, ERROR, T1),
        cancel_flight(a_flight(), "", T1),
    )
    assert [close_delivery(delivery, end, T1).state.value for end in ends] == ["cancelled"] * 3
    for still_open in (a_flight(), RUNNING, a_flight(state=S.WAITING)):
        assert close_delivery(delivery, still_open, T1) is delivery
    acked = ack(LEASED, "d", T1)
    assert close_delivery(acked, ends[0], T1) is acked


@pytest.mark.rows("R2.2-53")
def test_what_an_inspection_found_decides() -> None:
    taken = settle_uncertain(LEASED, InspectResult.TAKEN, T1, BACK_OFF)
    assert (taken.state, taken.may_repeat) == (DeliveryState.ACKED, False)
    not_taken = settle_uncertain(LEASED, InspectResult.NOT_TAKEN, T1, BACK_OFF)
    assert (not_taken.state, not_taken.may_repeat) == (DeliveryState.PENDING, False)
    assert is_due(not_taken, T1)
    unknown = settle_uncertain(LEASED, InspectResult.UNKNOWN, T1, BACK_OFF)
    assert (unknown.state, unknown.may_repeat) == (DeliveryState.PENDING, True)
    again = settle_uncertain(lease(unknown, "d", T1), InspectResult.UNKNOWN, T1.plus(9), BACK_OFF)
    assert again.state is DeliveryState.DEAD_LETTERED, "redelivered once, not twice"


@pytest.mark.rows("R2.2-56")
@pytest.mark.parametrize("first", CompletedBy)
def test_a_flight_is_completed_by_the_first_of_three(first: CompletedBy) -> None:
    assert {by.value for by in CompletedBy} == {"reply", "final_text", "complete"}
    done = complete_flight(RUNNING, "first", T0, by=first)
    assert (done.state, done.output, done.completed_by) == (S.COMPLETED, "first", first)
    for second in CompletedBy:
        assert isinstance(expect_refusal(complete_flight, done, "second", T1, by=second), WrongState)


@pytest.mark.rows("R2.2-63")
def test_a_quota_is_waited_out_and_never_fails() -> None:
    resets: Time = T1.plus(18_000)
    waiting = wait_flight(RUNNING, WaitingOn(kind=WaitingKind.QUOTA, ref="five hours", until=resets), T1)
    sent = to_plain(waiting)
    assert (sent["state"], sent["waitingOn"]["kind"]) == ("waiting", "quota")
    assert sent["waitingOn"]["until"] == sent["nextCheckAt"] == "2026-11-15T17:01:00.000Z"
    assert waiting.error is None

    def swept(now: Time, **more: Any) -> Any:
        return find_due_action(SweepSubject(record=waiting, **more), Round(now=now, operator_id=OPERATOR))

    assert swept(resets.plus(-1)) is None
    for late in (0, 90, 10**6):
        assert isinstance(swept(resets.plus(late)), SweepResume)
        assert isinstance(swept(resets.plus(late), found=Liveness.UNKNOWN), SweepResume)


@pytest.mark.rows("R2.2-68")
def test_an_endpoint_says_nothing_of_a_task() -> None:
    task = {
        "flightId",
        "askId",
        "workItemId",
        "messageId",
        "conversationId",
        "deliveryId",
        "progress",
        "reason",
    }
    assert not task & wire_names(Endpoint)
    idle = an_endpoint(state=EndpointState.IDLE)
    working = move_endpoint(idle, EndpointMove.CLAIM, T1)
    changed = {name for name, value in to_plain(working).items() if to_plain(idle)[name] != value}
    assert changed == {"state", "revision", "updatedAt"}
    # Whatever becomes of a flight, the endpoint that ran it is released by its own move.
    assert move_endpoint(working, EndpointMove.RELEASE, T1).state is EndpointState.IDLE


@pytest.mark.rows("R2.2-18", "R2.2-69")
@pytest.mark.parametrize("was", ["registered", "attaching", "waking", "idle", "working"])
def test_a_failed_endpoint_keeps_what_it_did(was: str) -> None:
    failed = move_endpoint(an_endpoint(state=EndpointState(was)), EndpointMove.FAIL, T1, reason="exit 1")
    assert to_plain(failed)["failure"] == {"reason": "exit 1", "was": was}
    lost = move_endpoint(an_endpoint(state=EndpointState(was)), EndpointMove.LOSE, T1, reason="silent")
    then = move_endpoint(lost, EndpointMove.FAIL, T1, reason="dead")
    assert to_plain(then)["failure"] == {"reason": "dead", "was": was}


@pytest.mark.rows("R2.2-78")
def test_attention_says_who_asks_how_risky_it_is_and_where_the_answer_goes() -> None:
    item = an_attention(
        AttentionKind.PERMISSION,
        risk=Risk.HIGH,
        return_path=ReturnPath(session_id=ident("ses"), request="req-7"),
    )
    sent = to_plain(item)
    assert (sent["source"], sent["risk"]) == (f"agent:{ALICE}", "high")
    assert [(one["move"], one["label"]) for one in sent["actions"]] == [
        ("approve", "Approve"),
        ("deny", "Deny"),
        ("dismiss", "Dismiss"),
    ]
    assert sent["returnPath"] == {"sessionId": ident("ses"), "request": "req-7"}
    decided = decide_attention(item, AttentionMove.APPROVE, OPERATOR, T1)
    assert decided.return_path == item.return_path
