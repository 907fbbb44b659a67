"""What is overdue: one action per record, one nudge per period, to one holder, up the ladder."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.codec import decode, encode
from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.model.alias import AliasState
from scout.model.attention import AttentionKind, AttentionState
from scout.model.card import CardState
from scout.model.delivery import DeliveryState
from scout.model.endpoint import ENDPOINT, EndpointMove, EndpointState
from scout.model.events.asks import Nudge as StoredNudge
from scout.model.flight import Flight, FlightError, FlightPhase, FlightState, retry_remedy
from scout.model.question import QuestionState
from scout.model.ref import Ref
from scout.model.waiting import OwedMove, WaitingKind, WaitingOn
from scout.model.work_item import WorkState
from scout.policy.limits import Alarm, Gap, Periods, Sweeps
from scout.policy.sweep import find_due_action
from scout.policy.sweep_actions import (
    CheckFlight,
    Delegation,
    EndWait,
    Expire,
    Level,
    Liveness,
    LookLater,
    MarkStale,
    Release,
    Round,
    SweepFail,
    SweepNudge,
    SweepResume,
    SweepSubject,
    Swept,
    WaitFlight,
)
from tests.model.samples import (
    ALICE,
    BOB,
    CAROL,
    MESSAGE,
    OPERATOR,
    T0,
    a_card,
    a_delivery,
    a_flight,
    a_grant,
    a_question,
    a_token,
    a_work_item,
    an_alias,
    an_attention,
    an_endpoint,
)

HOUR = 3600.0
ASKED, MENTIONED = 1800.0, 1800.0


def at(seconds: float, **changes: Any) -> Round:
    return msgspec.structs.replace(Round(now=T0.plus(seconds), operator_id=OPERATOR), **changes)


def due(record: Any, seconds: float, **facts: Any) -> Swept | None:
    return find_due_action(SweepSubject(record=record, **facts), at(seconds))


def expect_nudge(record: Any, seconds: float, **facts: Any) -> SweepNudge:
    action = due(record, seconds, **facts)
    assert isinstance(action, SweepNudge)
    return action


def alarm(ident: str, rule: str, kind: AttentionKind = AttentionKind.WAITING) -> Alarm:
    return Alarm(
        kind=kind,
        title=f"{rule}: {ident}",
        body=f"no progress since {T0}",
        dedupe=ident,
        remedies=(Remedy(operation="why", parameters={"id": ident}, why="show its history"),),
    )


# ----------------------------------------------------------------------------------------- nudges


@pytest.mark.rows("R3.4-2", "R3.4-10")
def test_a_stale_open_question_nudges_its_responder() -> None:
    question = a_question()
    assert due(question, ASKED - 0.001) is None
    assert due(question, ASKED) == SweepNudge(
        noun="question",
        id=question.id,
        rule="open question",
        next_check=T0.plus(2 * ASKED),
        holder_id=BOB,
        level=Level.HOLDER,
        count=1,
        alarm=alarm(question.id, "open question"),
    )


@pytest.mark.rows("R3.4-2")
def test_a_stale_answered_question_nudges_its_asker() -> None:
    question = a_question(state=QuestionState.ANSWERED, next_move_owner_id=ALICE)
    assert due(question, 4 * HOUR - 1) is None
    nudge = expect_nudge(question, 4 * HOUR)
    assert (nudge.holder_id, nudge.level, nudge.rule) == (ALICE, Level.HOLDER, "answered question")


@pytest.mark.parametrize("state", [QuestionState.CLOSED, QuestionState.DECLINED])
def test_a_settled_question_is_left_alone(state: QuestionState) -> None:
    assert due(a_question(state=state, next_move_owner_id=None), 99 * HOUR) is None


@pytest.mark.rows("R3.4-3", "R3.4-10")
@pytest.mark.parametrize(
    ("state", "hours", "holder"),
    [
        (WorkState.OPEN, 4, BOB),
        (WorkState.WORKING, 2, BOB),
        (WorkState.WAITING, 4, CAROL),
        (WorkState.REVIEW, 4, ALICE),
    ],
)
def test_a_stale_item_nudges_its_next_move_holder(state: WorkState, hours: int, holder: str) -> None:
    item = a_work_item(state=state, next_move_owner_id=holder)
    assert due(item, hours * HOUR - 1) is None
    assert due(item, hours * HOUR) == SweepNudge(
        noun="work item",
        id=item.id,
        rule=f"work item in {state}",
        next_check=T0.plus(2 * hours * HOUR),
        holder_id=holder,
        level=Level.HOLDER,
        count=1,
        alarm=alarm(
            item.id,
            f"work item in {state}",
            AttentionKind.REVIEW if state is WorkState.REVIEW else AttentionKind.WAITING,
        ),
    )


@pytest.mark.parametrize("state", [WorkState.DONE, WorkState.CANCELLED])
def test_a_settled_item_is_left_alone(state: WorkState) -> None:
    assert due(a_work_item(state=state, next_move_owner_id=None), 99 * HOUR) is None


@pytest.mark.rows("R3.4-4", "R3.4-5")
@pytest.mark.parametrize("kind", ["mention", "delegation"])
def test_an_unanswered_mention_nudges_its_target_then_the_sender_then_the_operator(kind: str) -> None:
    one = Delegation(id=MESSAGE, target_id=BOB, sender_id=ALICE, created_at=T0, kind=kind)
    assert due(one, MENTIONED - 1) is None
    first = expect_nudge(one, MENTIONED)
    assert (first.holder_id, first.level, first.rule) == (BOB, Level.HOLDER, f"{kind} without an answer")
    assert (first.noun, first.id) == ("message", MESSAGE)
    second = expect_nudge(one, 2 * MENTIONED, nudges=1, nudged_at=T0.plus(MENTIONED))
    assert (second.holder_id, second.level, second.escalated_from) == (ALICE, Level.OWNER, BOB)
    third = expect_nudge(one, 3 * MENTIONED, nudges=2, nudged_at=T0.plus(2 * MENTIONED))
    assert (third.holder_id, third.level, third.escalated_from) == (OPERATOR, Level.OPERATOR, ALICE)


def test_a_delegation_is_a_mention_unless_said_otherwise() -> None:
    one = Delegation(id=MESSAGE, target_id=BOB, sender_id=ALICE, created_at=T0)
    assert expect_nudge(one, MENTIONED).rule == "mention without an answer"


@pytest.mark.rows("R3.4-12", "R3.7-13")
def test_unanswered_nudges_go_to_the_owner_then_to_the_operators_attention() -> None:
    item = a_work_item(state=WorkState.REVIEW, next_move_owner_id=CAROL)
    period = 4 * HOUR
    second = expect_nudge(item, 2 * period, nudges=1, nudged_at=T0.plus(period))
    assert second == SweepNudge(
        noun="work item",
        id=item.id,
        rule="work item in review",
        next_check=T0.plus(3 * period),
        holder_id=BOB,
        level=Level.OWNER,
        count=2,
        escalated_from=CAROL,
        alarm=alarm(item.id, "work item in review", AttentionKind.REVIEW),
    )
    third = expect_nudge(item, 3 * period, nudges=2, nudged_at=T0.plus(2 * period))
    assert third == SweepNudge(
        noun="work item",
        id=item.id,
        rule="work item in review",
        next_check=None,
        holder_id=OPERATOR,
        level=Level.OPERATOR,
        count=3,
        escalated_from=BOB,
        alarm=alarm(item.id, "work item in review", AttentionKind.REVIEW),
    )
    assert due(item, 99 * period, nudges=3, nudged_at=T0.plus(3 * period)) is None


def test_a_nudge_that_was_said_to_come_then_comes_then_whatever_the_settings_say_now() -> None:
    facts: dict[str, Any] = {"nudges": 1, "nudged_at": T0.plus(ASKED), "next_at": T0.plus(9 * ASKED)}
    assert due(a_question(), 9 * ASKED - 1, **facts) is None
    assert expect_nudge(a_question(), 9 * ASKED, **facts).count == 2


def test_a_wait_until_a_time_ends_then_without_a_reminder() -> None:
    on = WaitingOn(kind=WaitingKind.CONDITION, until=T0.plus(HOUR))
    item = a_work_item(state=WorkState.WAITING, waiting_on=on)
    assert due(item, HOUR - 1) is None
    assert due(item, HOUR) == EndWait(noun="work item", id=item.id, rule="the time it waited for has come")


def test_since_when_a_move_is_owed() -> None:
    assert a_question().owed_move == OwedMove("question_open", T0)
    assert a_question(state=QuestionState.CLOSED).owed_move is None
    on = WaitingOn(kind=WaitingKind.CONDITION, until=T0.plus(HOUR))
    held = a_work_item(state=WorkState.WAITING, waiting_on=on)
    assert held.owed_move == OwedMove("wait_ends", T0.plus(HOUR))
    assert a_work_item().owed_move == OwedMove("work_open", T0)
    assert a_work_item(state=WorkState.DONE).owed_move is None
    assert waiting(WaitingOn(kind=WaitingKind.ACTOR)).owed_move == OwedMove("work_waiting", T0)
    assert waiting(on).owed_move is None
    assert running().owed_move is None


@pytest.mark.parametrize(
    ("mover", "owner", "ladder"),
    [
        (CAROL, BOB, [CAROL, BOB, OPERATOR]),
        (BOB, BOB, [BOB, OPERATOR]),
        (OPERATOR, BOB, [OPERATOR]),
        (BOB, OPERATOR, [BOB, OPERATOR]),
        (OPERATOR, OPERATOR, [OPERATOR]),
        (None, BOB, [BOB, OPERATOR]),
    ],
)
@pytest.mark.rows("R3.4-12")
def test_nobody_is_told_twice_on_the_way_up(mover: str | None, owner: str, ladder: list[str]) -> None:
    item = a_work_item(state=WorkState.WORKING, owner_id=owner, next_move_owner_id=mover)
    told: list[str] = []
    seconds, facts = 0.0, dict[str, Any]()
    for count in range(1, 6):
        seconds += 2 * HOUR
        action = due(item, seconds, **facts)
        if action is None:
            break
        assert isinstance(action, SweepNudge)
        assert action.count == count
        told.append(action.holder_id)
        facts = {"nudges": count, "nudged_at": T0.plus(seconds)}
    assert told == ladder


@pytest.mark.rows("R3.4-10")
def test_within_a_period_nobody_is_nudged_again() -> None:
    question = a_question()
    facts: dict[str, Any] = {"nudges": 1, "nudged_at": T0.plus(ASKED)}
    assert due(question, ASKED, **facts) is None
    assert due(question, 2 * ASKED - 0.001, **facts) is None
    assert expect_nudge(question, 2 * ASKED, **facts).count == 2


def test_a_record_that_moved_starts_the_ladder_anew() -> None:
    moved = a_question(updated_at=T0.plus(HOUR))
    facts: dict[str, Any] = {"nudges": 2, "nudged_at": Time(T0.plus(HOUR) - 1)}
    assert due(moved, HOUR + ASKED - 1, **facts) is None
    again = expect_nudge(moved, HOUR + ASKED, **facts)
    assert (again.count, again.level, again.escalated_from) == (1, Level.HOLDER, None)
    same = expect_nudge(moved, HOUR + ASKED, nudges=1, nudged_at=T0.plus(HOUR))
    assert (same.count, same.level) == (2, Level.OWNER)


@pytest.mark.rows("R3.4-13")
def test_the_periods_are_settings() -> None:
    periods = Periods(sweeps=Sweeps(question_open=10))
    assert find_due_action(SweepSubject(record=a_question()), at(10, periods=periods)) is not None
    assert find_due_action(SweepSubject(record=a_question()), at(9, periods=periods)) is None


@pytest.mark.rows("R0-13")
def test_after_a_sleep_nothing_is_overdue_for_one_grace_period() -> None:
    woke = T0.plus(10 * HOUR)
    watch = SweepSubject(record=a_question())
    gap = Gap(seconds=9 * HOUR, ended=woke)
    assert find_due_action(watch, at(10 * HOUR, gap=gap)) is None
    assert find_due_action(watch, at(10 * HOUR + 89, gap=gap)) is None
    assert find_due_action(watch, at(10 * HOUR + 90, gap=gap)) is not None
    assert find_due_action(watch, at(10 * HOUR, gap=Gap(seconds=60, ended=woke))) is not None


def test_a_nudge_as_the_log_holds_it() -> None:
    item = a_work_item(state=WorkState.WORKING, next_move_owner_id=CAROL)
    nudge = expect_nudge(item, 5 * HOUR, nudges=1, nudged_at=T0)
    assert nudge.stored == StoredNudge(
        holder_id=BOB,
        about=Ref.parse(f"work:{item.id}"),
        rule="work item in working",
        count=2,
        escalated_from=CAROL,
        next_at=T0.plus(7 * HOUR),
    )


# ---------------------------------------------------------------------------------------- flights


def running(**changes: Any) -> Flight:
    facts = {"state": FlightState.RUNNING, "phase": FlightPhase.WORKING, "started_at": T0}
    return a_flight(**{**facts, "next_check_at": T0.plus(60), **changes})


def waiting(on: WaitingOn, **changes: Any) -> Flight:
    facts = {"state": FlightState.WAITING, "phase": FlightPhase.WAITING, "next_check_at": on.until}
    return running(**{**facts, "waiting_on": on, **changes})


def build_failure(flight: Flight, rule: str, code: str, message: str) -> SweepFail:
    error = FlightError(code=code, message=message, remedies=(retry_remedy(flight),))
    return SweepFail(noun="flight", id=flight.id, rule=rule, error=error)


def build_later(flight: Flight, rule: str, seconds: float) -> LookLater:
    return LookLater(noun="flight", id=flight.id, rule=rule, next_check=T0.plus(seconds))


@pytest.mark.rows("R3.4-6")
def test_a_silent_flight_is_checked() -> None:
    flight = running()
    assert due(flight, 59) is None
    assert due(flight, 60) == due(flight, 299) == build_later(flight, "under way", 300)
    assert due(flight, 300) == CheckFlight(
        noun="flight", id=flight.id, rule="no sign of life", next_check=T0.plus(360)
    )
    assert due(flight, 400, seen_at=T0.plus(101)) == build_later(flight, "under way", 401)
    assert isinstance(due(flight, 401, seen_at=T0.plus(101)), CheckFlight)
    assert isinstance(due(flight, 300, seen_at=T0.plus(-50)), CheckFlight)
    assert due(flight, 900, found=Liveness.ALIVE) == build_later(flight, "under way", 1200)


@pytest.mark.rows("R3.4-6")
def test_a_check_without_result_makes_it_wait_for_a_sign_of_life() -> None:
    flight = running(phase=FlightPhase.CHECKING, next_check_at=T0.plus(360))
    assert due(flight, 359) is None
    until = T0.plus(660)
    expected = WaitFlight(
        noun="flight",
        id=flight.id,
        rule="check without result",
        next_check=until,
        waiting_on=WaitingOn(kind=WaitingKind.PEER, ref=flight.target, until=until),
        holder_id=flight.target,
        reason=f"no sign of life since {T0}",
    )
    assert due(flight, 360) == expected
    assert due(flight, 360, found=Liveness.UNKNOWN) == expected
    by_endpoint = due(msgspec.structs.replace(flight, endpoint_id="ept_1"), 360, seen_at=T0.plus(7))
    assert isinstance(by_endpoint, WaitFlight)
    assert (by_endpoint.waiting_on.ref, by_endpoint.reason) == (
        "ept_1",
        f"no sign of life since {T0.plus(7)}",
    )
    never = due(msgspec.structs.replace(flight, started_at=None, created_at=T0.plus(-9)), 360)
    assert isinstance(never, WaitFlight)
    assert never.reason == f"no sign of life since {T0.plus(-9)}"


@pytest.mark.rows("R3.4-6")
@pytest.mark.parametrize("state", [FlightState.QUEUED, FlightState.RUNNING])
def test_a_flight_found_dead_has_failed_with_a_reason(state: FlightState) -> None:
    flight = running(state=state, phase=FlightPhase.CHECKING)
    message = "session unknown failed in the session: nothing is working on it"
    assert due(flight, 1, found=Liveness.DEAD) == build_failure(
        flight, "found dead", "session_failed", message
    )
    named = due(msgspec.structs.replace(flight, session_id="ses_1"), 1, found=Liveness.DEAD)
    assert isinstance(named, SweepFail)
    assert named.error.message.startswith("session ses_1 failed")


def test_a_flight_found_alive_goes_on() -> None:
    flight = running(phase=FlightPhase.CHECKING)
    assert due(flight, 100, found=Liveness.ALIVE) == SweepResume(
        noun="flight", id=flight.id, rule="found alive", next_check=T0.plus(400)
    )
    assert due(running(next_check_at=T0.plus(200)), 100, found=Liveness.ALIVE) is None


@pytest.mark.parametrize("state", [FlightState.COMPLETED, FlightState.FAILED, FlightState.CANCELLED])
def test_a_finished_flight_is_left_alone(state: FlightState) -> None:
    flight = running(state=state, next_check_at=None)
    assert due(flight, 99 * HOUR, found=Liveness.DEAD) is None


@pytest.mark.rows("R2.2-41")
def test_a_queued_flight_is_looked_at_when_it_said() -> None:
    flight = a_flight()
    assert due(flight, 59) is None
    rule = "queued without progress"
    for seconds, following in ((60, 180), (180, 540), (9 * HOUR, 10 * HOUR)):
        assert due(flight, seconds) == CheckFlight(
            noun="flight", id=flight.id, rule=rule, next_check=T0.plus(following)
        )
    assert due(a_flight(updated_at=T0.plus(59)), 60) == CheckFlight(
        noun="flight", id=flight.id, rule=rule, next_check=T0.plus(120)
    )


@pytest.mark.rows("R3.1-20")
def test_a_queued_ask_expires() -> None:
    until = T0.plus(Periods().queue_expiry)
    on = WaitingOn(kind=WaitingKind.PEER, until=until)
    flight = a_flight(waiting_on=on, phase=FlightPhase.HELD, reason="no harness")
    assert due(flight, 59) is None
    assert due(flight, 60) == CheckFlight(
        noun="flight", id=flight.id, rule="held for peer", next_check=T0.plus(180)
    )
    last = due(flight, 24 * HOUR - 1)
    assert isinstance(last, CheckFlight)
    assert last.next_check == until
    message = "@bob is offline (never seen): it expired while waiting: no harness"
    assert due(flight, 24 * HOUR, address="@bob") == build_failure(
        flight, "queue expired", "target_offline", message
    )


def test_a_flight_held_for_the_operator_is_looked_at_and_the_operator_is_told() -> None:
    on = WaitingOn(kind=WaitingKind.OPERATOR)
    flight = a_flight(waiting_on=on, phase=FlightPhase.HELD, next_move_owner_id=OPERATOR)
    assert isinstance(due(flight, 60), CheckFlight)
    assert expect_nudge(flight, 4 * HOUR).level is Level.OPERATOR
    told: dict[str, Any] = {"nudges": 1, "nudged_at": T0.plus(4 * HOUR)}
    assert isinstance(due(flight, 4 * HOUR, **told), CheckFlight)


@pytest.mark.parametrize("kind", [WaitingKind.QUOTA, WaitingKind.BUDGET, WaitingKind.CONDITION])
@pytest.mark.parametrize("state", [FlightState.WAITING, FlightState.QUEUED])
def test_a_wait_that_ends_by_itself_is_over_at_its_time(kind: WaitingKind, state: FlightState) -> None:
    flight = waiting(WaitingOn(kind=kind, until=T0.plus(HOUR)), state=state)
    assert due(flight, HOUR - 1) is None
    over = SweepResume(noun="flight", id=flight.id, rule=f"{kind} has ended", next_check=T0.plus(HOUR + 300))
    assert due(flight, HOUR) == over
    assert due(msgspec.structs.replace(flight, next_check_at=None), HOUR) == over
    after = msgspec.structs.replace(flight, next_check_at=T0.plus(2 * HOUR))
    assert due(after, HOUR) is None


@pytest.mark.rows("R3.4-12")
def test_a_flight_that_waits_for_somebody_nudges_that_one_then_the_requester() -> None:
    flight = waiting(WaitingOn(kind=WaitingKind.ACTOR), next_move_owner_id=CAROL)
    assert due(flight, 4 * HOUR - 1) is None
    first = expect_nudge(flight, 4 * HOUR)
    assert (first.noun, first.id, first.holder_id) == ("flight", flight.id, CAROL)
    assert first.rule == "flight waiting on actor"
    asked = msgspec.structs.replace(flight, next_check_at=T0.plus(60))
    assert due(asked, 59) is None
    assert due(asked, 60) == build_later(flight, "waiting on actor", 180)
    second = expect_nudge(flight, 9 * HOUR, nudges=1, nudged_at=T0.plus(4 * HOUR))
    assert (second.holder_id, second.level) == (ALICE, Level.OWNER)


@pytest.mark.rows("R3.4-6")
def test_a_flight_that_waits_for_a_sign_of_life_is_checked_again_and_lost_in_the_end() -> None:
    flight = waiting(WaitingOn(kind=WaitingKind.PEER, until=T0.plus(600)))
    assert due(flight, 599) is None
    assert due(flight, 600) == build_later(flight, "no sign of life", 1800)
    assert isinstance(due(flight, 24 * HOUR - 1), LookLater)
    assert due(flight, 600, found=Liveness.ALIVE) == SweepResume(
        noun="flight", id=flight.id, rule="found alive", next_check=T0.plus(900)
    )
    message = f"session unknown failed in the session: no sign of life since {T0}"
    assert due(flight, 24 * HOUR) == build_failure(flight, "lost", "session_failed", message)
    assert isinstance(due(flight, 24 * HOUR, seen_at=T0.plus(1)), LookLater)
    never = msgspec.structs.replace(flight, started_at=None, created_at=T0.plus(-1))
    assert isinstance(due(never, 24 * HOUR - 1), SweepFail)


# -------------------------------------------------------------------------------------- the others


@pytest.mark.rows("R3.4-7")
def test_an_expired_lease_is_released() -> None:
    delivery = a_delivery(state=DeliveryState.LEASED, leased_until=T0.plus(60), expires_at=T0)
    assert due(delivery, 59) is None
    assert due(delivery, 60) == Release(noun="delivery", id=delivery.id, rule="its lease expired")
    assert due(a_delivery(state=DeliveryState.LEASED), 60) is None


def test_a_delivery_that_nobody_took_in_time_expires() -> None:
    delivery = a_delivery(expires_at=T0.plus(60))
    assert due(delivery, 59) is None
    assert due(delivery, 60) == Expire(noun="delivery", id=delivery.id, rule="it expired")
    assert due(a_delivery(leased_until=T0), 60) is None
    for state in (DeliveryState.ACKED, DeliveryState.DEAD_LETTERED, DeliveryState.CANCELLED):
        assert due(a_delivery(state=state, leased_until=T0, expires_at=T0), 60) is None


@pytest.mark.rows("R3.4-8")
def test_an_expired_card_expires() -> None:
    card = a_card(expires_at=T0.plus(60))
    assert due(card, 59) is None
    assert due(card, 60) == Expire(noun="card", id=card.id, rule="it expired")
    assert due(a_card(), 99 * HOUR) is None
    for state in (CardState.USED, CardState.EXPIRED, CardState.REVOKED):
        assert due(a_card(expires_at=T0, state=state), 60) is None


@pytest.mark.rows("R3.4-8")
def test_an_expired_attention_item_expires() -> None:
    for state in AttentionState:
        item = an_attention(expires_at=T0.plus(60), state=state)
        assert due(item, 59) is None
        expected = Expire(noun="attention", id=item.id, rule="it expired")
        unsettled = state in (AttentionState.OPEN, AttentionState.NOTIFIED)
        assert due(item, 60) == (expected if unsettled else None)
    assert due(an_attention(), 99 * HOUR) is None


def test_grants_and_tokens_end_at_their_time() -> None:
    for record, noun in ((a_grant, "grant"), (a_token, "token")):
        item = record(expires_at=T0.plus(60))
        assert due(item, 59) is None
        assert due(item, 60) == Expire(noun=noun, id=item.id, rule="it expired")
        assert due(record(), 99 * HOUR) is None
        assert due(msgspec.structs.replace(item, state="revoked"), 60) is None


@pytest.mark.rows("R3.4-8", "R1.1-52")
def test_the_alias_of_a_session_ends_with_it() -> None:
    for state in (AliasState.ACTIVE, AliasState.BROKEN):
        alias = an_alias(until_session_ends=True, state=state)
        assert due(alias, 0, session_over=True) == Expire(noun="alias", id=alias.id, rule="its session ended")
        assert due(alias, 99 * HOUR) is None
    assert due(an_alias(), 0, session_over=True) is None
    removed = an_alias(until_session_ends=True, state=AliasState.REMOVED)
    assert due(removed, 0, session_over=True) is None


@pytest.mark.rows("R3.4-9")
@pytest.mark.parametrize("state", list(EndpointState))
def test_an_endpoint_without_heartbeat_is_stale(state: EndpointState) -> None:
    endpoint = an_endpoint(state=state, last_seen=T0.plus(10), updated_at=T0)
    assert due(endpoint, 309) is None
    expected = MarkStale(noun="endpoint", id=endpoint.id, rule=f"no heartbeat since {T0.plus(10)}")
    can_expire = EndpointMove.EXPIRE in ENDPOINT.accepts(state)
    assert due(endpoint, 310) == (expected if can_expire else None)
    assert due(msgspec.structs.replace(endpoint, held=True), 99 * HOUR) is None


def test_an_endpoint_never_heard_from_counts_from_its_last_change() -> None:
    endpoint = an_endpoint(state=EndpointState.ATTACHING, updated_at=T0.plus(10))
    assert due(endpoint, 309) is None
    assert isinstance(due(endpoint, 310), MarkStale)


def test_an_action_says_on_the_wire_which_it_is() -> None:
    action = due(a_card(expires_at=T0), 1)
    assert b'"action":"expire"' in encode(action)
    nudge = due(a_question(), HOUR)
    assert decode(encode(nudge), SweepNudge | Expire) == nudge  # pyright: ignore[reportArgumentType] (a union)


_histories = st.lists(st.floats(0, 40_000), max_size=30).map(sorted)


@pytest.mark.rows("R3.4-10", "R3.4-12")
@given(_histories, st.sampled_from(list(WorkState)), st.sampled_from([ALICE, BOB, OPERATOR]))
def test_however_often_it_runs_there_is_one_nudge_per_period(
    moments: list[float], state: WorkState, holder: str
) -> None:
    item = a_work_item(state=state, next_move_owner_id=holder)
    nudges, told = 0, list[tuple[float, str]]()
    for seconds in moments:
        nudged_at = T0.plus(told[-1][0]) if told else None
        action = due(item, seconds, nudges=nudges, nudged_at=nudged_at)
        if action is not None:
            assert isinstance(action, SweepNudge)
            nudges = action.count
            told.append((seconds, action.holder_id))
    period = 2 * HOUR if state is WorkState.WORKING else 4 * HOUR
    times = [0.0, *(seconds for seconds, _ in told)]
    assert all(later - earlier >= period - 1e-6 for earlier, later in pairwise(times))
    holders = [holder for _, holder in told]
    assert len(set(holders)) == len(holders)
