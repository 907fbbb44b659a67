from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import BadRequest, Refused, WrongState
from scout.base.time import Time
from scout.model.delivery import (
    CLOCK_SLACK,
    DELIVERY,
    Backoff,
    Delivery,
    DeliveryMove,
    DeliveryState,
    InspectResult,
    ack,
    back_off,
    build_bounce,
    cancel_delivery,
    check_origin,
    dead_letter,
    expire,
    hand_over,
    has_lease_ended,
    is_ahead_of_clock,
    is_due,
    lease,
    nack,
    postpone,
    renew,
    settle_remotely,
    settle_uncertain,
)
from scout.model.problems.request import NotOwner
from tests.model.samples import ALICE, BACK_OFF, BOB, MESSAGE, T0, T1, a_delivery
from tests.model.table import cells, check_cell

TABLE = """
                lease   renew   ack    nack     expire   dead_letter    cancel
pending         leased  -       -      -        -        dead_lettered  cancelled
leased          -       leased  acked  pending  pending  dead_lettered  cancelled
acked           -       -       -      -        -        -              -
dead_lettered   -       -       -      -        -        -              -
cancelled       -       -       -      -        -        -              -
"""

S = DeliveryState


@pytest.mark.parametrize(("state", "move", "after"), cells(DELIVERY, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(DELIVERY, state, move, after)


@pytest.mark.parametrize("origin", ["message_id", "ask_id", "work_item_id"])
def test_a_delivery_derives_from_a_message_an_ask_or_a_work_item(origin: str) -> None:
    nothing = a_delivery(message_id=None)
    with pytest.raises(Refused, match="derives from"):
        check_origin(nothing)
    delivery = a_delivery(**{"message_id": None, origin: "x"})
    assert check_origin(delivery) is delivery


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [(0, 2), (1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 64), (7, 128), (8, 256), (9, 300), (10**9, 300)],
)
def test_back_off_doubles_from_two_seconds_to_five_minutes(attempts: int, seconds: float) -> None:
    assert back_off(attempts, BACK_OFF) == seconds


def test_back_off_takes_its_bounds_from_the_settings() -> None:
    assert [back_off(attempt, Backoff(first=1, most=3, attempts=8)) for attempt in (1, 2, 3)] == [1, 2, 3]


def test_an_attempt_is_counted_when_it_is_leased() -> None:
    leased = lease(a_delivery(), "dispatcher", T1)
    assert (leased.state, leased.attempts) == (S.LEASED, 1)
    assert (leased.leased_by, leased.leased_until) == ("dispatcher", T1.plus(60))
    assert lease(a_delivery(), "d", T1, seconds=5).leased_until == T1.plus(5)


def test_a_lease_is_renewed_by_its_holder() -> None:
    renewed = renew(lease(a_delivery(), "d", T0), "d", T1, seconds=30)
    assert (renewed.leased_until, renewed.attempts) == (T1.plus(30), 1)


@pytest.mark.parametrize("move", [renew, ack, partial(nack, rule=BACK_OFF)], ids=["renew", "ack", "nack"])
def test_only_the_holder_of_the_lease_may_say_so(move: Callable[[Delivery, str, Time], Delivery]) -> None:
    with pytest.raises(Refused) as refused:
        move(lease(a_delivery(), "one", T0), "other", T1)
    problem = refused.value.diagnostic
    assert isinstance(problem, NotOwner)
    assert (problem.owner_id, problem.needs) == ("one", ("the lease",))
    with pytest.raises(Refused) as nobodys:
        move(a_delivery(state=S.LEASED), "other", T1)
    assert isinstance(nobodys.value.diagnostic, NotOwner)


@pytest.mark.parametrize("move", [renew, ack, partial(nack, rule=BACK_OFF)], ids=["renew", "ack", "nack"])
def test_without_a_lease_there_is_nothing_to_say(move: Callable[[Delivery, str, Time], Delivery]) -> None:
    with pytest.raises(Refused) as refused:
        move(a_delivery(), "one", T1)
    assert isinstance(refused.value.diagnostic, WrongState)


def test_an_ack_ends_it() -> None:
    acked = ack(lease(a_delivery(problem="busy"), "d", T0), "d", T1)
    assert (acked.state, acked.leased_by, acked.leased_until, acked.problem) == (S.ACKED, "d", None, "")


def test_a_nack_waits_for_the_back_off() -> None:
    again = nack(lease(a_delivery(attempts=2), "d", T0), "d", T1, problem="busy", rule=BACK_OFF)
    assert (again.state, again.next_attempt_at, again.problem) == (S.PENDING, T1.plus(8), "busy")
    assert (again.leased_until, again.may_repeat) == (None, False)


@pytest.mark.parametrize("seconds", [0, 1.5, 86_400])
def test_a_nack_honours_when_the_target_wants_it(seconds: float) -> None:
    again = nack(lease(a_delivery(), "d", T0), "d", T1, retry_after=seconds, rule=BACK_OFF)
    assert again.next_attempt_at == T1.plus(seconds)


@pytest.mark.parametrize("seconds", [-1, 86_401, float("inf"), float("nan")])
def test_a_nack_refuses_a_time_that_is_none(seconds: float) -> None:
    with pytest.raises(Refused) as refused:
        nack(lease(a_delivery(), "d", T0), "d", T1, retry_after=seconds, rule=BACK_OFF)
    problem = refused.value.diagnostic
    assert isinstance(problem, BadRequest)
    assert problem.field == "retryAfter"


def test_what_is_postponed_was_not_tried() -> None:
    later = postpone(a_delivery(), T1.plus(3600), "over the cap", T1)
    assert (later.state, later.attempts, later.problem) == (S.PENDING, 0, "over the cap")
    assert (is_due(later, T1), is_due(later, T1.plus(3600))) == (False, True)
    with pytest.raises(Refused, match="wrong_state"):
        postpone(lease(a_delivery(), "dispatcher", T1), T1, "", T1)


def test_an_expired_lease_may_have_been_taken() -> None:
    again = expire(lease(a_delivery(), "d", T0), T1, BACK_OFF)
    assert (again.state, again.may_repeat, again.next_attempt_at) == (S.PENDING, True, T1.plus(2))
    assert again.problem == "the lease expired"


def test_after_the_last_attempt_it_is_dead_lettered() -> None:
    last = lease(a_delivery(attempts=7), "d", T0)
    dead = nack(last, "d", T1, problem="refused", retry_after=5, rule=BACK_OFF)
    assert (dead.state, dead.problem, dead.attempts) == (S.DEAD_LETTERED, "refused", 8)
    assert expire(last, T1, BACK_OFF).state is S.DEAD_LETTERED
    assert nack(last, "d", T1, rule=Backoff(first=2, most=300, attempts=9)).state is S.PENDING
    assert expire(last, T1, Backoff(first=2, most=300, attempts=9)).state is S.PENDING


def test_expiring_what_is_not_leased_is_refused_also_at_the_limit() -> None:
    with pytest.raises(Refused) as refused:
        expire(a_delivery(attempts=9), T1, BACK_OFF)
    assert refused.value.diagnostic == WrongState(
        noun="delivery",
        state="pending",
        move="expire",
        accepts=("lease", "dead_letter", "cancel"),
        terminal=False,
    )


def test_a_dead_letter_bounces_to_the_sender() -> None:
    dead = dead_letter(a_delivery(attempts=8, ask_id="ask_1"), "no login", T1)
    bounce = build_bounce(dead)
    assert (bounce.to, bounce.target, bounce.message_id) == (ALICE, BOB, MESSAGE)
    assert (bounce.delivery_id, bounce.ask_id, bounce.attempts) == (dead.id, "ask_1", 8)
    assert bounce.text == f"not delivered to {BOB} after 8 attempts: no login"
    named = build_bounce(dead_letter(a_delivery(attempts=8), "no login", T1), "@bob")
    assert named.text == "not delivered to @bob after 8 attempts: no login"


def test_cancelling_says_why() -> None:
    cancelled = cancel_delivery(lease(a_delivery(), "d", T0), "its flight is failed", T1)
    assert (cancelled.state, cancelled.problem, cancelled.leased_until) == (
        S.CANCELLED,
        "its flight is failed",
        None,
    )


def test_after_a_restart_what_inspect_found_decides() -> None:
    leased = lease(a_delivery(problem="busy"), "old broker", T0)
    taken = settle_uncertain(leased, InspectResult.TAKEN, T1, BACK_OFF)
    assert (taken.state, taken.may_repeat) == (S.ACKED, False)
    assert (taken.leased_until, taken.problem) == (None, "")
    fresh = settle_uncertain(leased, InspectResult.NOT_TAKEN, T1, BACK_OFF)
    assert (fresh.state, fresh.may_repeat, fresh.next_attempt_at) == (S.PENDING, False, T1)
    assert fresh.problem == "not accepted before the restart"
    unknown = settle_uncertain(leased, InspectResult.UNKNOWN, T1, BACK_OFF)
    assert (unknown.state, unknown.may_repeat) == (S.PENDING, True)


def test_unknown_is_redelivered_once() -> None:
    repeat = lease(
        settle_uncertain(lease(a_delivery(), "b", T0), InspectResult.UNKNOWN, T0, BACK_OFF), "b", T1
    )
    given_up = settle_uncertain(repeat, InspectResult.UNKNOWN, T1, BACK_OFF)
    assert (given_up.state, given_up.problem) == (S.DEAD_LETTERED, "uncertain twice whether it was accepted")
    assert given_up.updated_at == T1
    assert settle_uncertain(repeat, InspectResult.NOT_TAKEN, T1, BACK_OFF).may_repeat is True


def test_restarts_count_as_attempts() -> None:
    last = lease(a_delivery(attempts=7), "b", T0)
    assert settle_uncertain(last, InspectResult.NOT_TAKEN, T1, BACK_OFF).state is S.DEAD_LETTERED
    assert (
        settle_uncertain(last, InspectResult.UNKNOWN, T1, Backoff(first=2, most=300, attempts=9)).state
        is S.PENDING
    )


def test_what_is_due_and_whose_lease_is_over() -> None:
    assert is_due(a_delivery(), T0)
    assert not is_due(a_delivery(next_attempt_at=T1), T0)
    leased = lease(a_delivery(), "d", T0)
    assert not is_due(leased, T1)
    assert has_lease_ended(leased, T0.plus(60))
    assert not has_lease_ended(leased, T0.plus(59.999))
    assert not has_lease_ended(a_delivery(), T1)
    assert not has_lease_ended(a_delivery(state=S.LEASED), T1)


def test_what_a_clock_that_was_ahead_has_set_is_over_when_the_clock_is_put_right() -> None:
    day = T0.plus(86_400)
    leased = lease(a_delivery(), "d", day)
    assert (has_lease_ended(leased, T0), is_ahead_of_clock(leased, T0)) == (True, True)
    assert not has_lease_ended(leased, day.plus(-CLOCK_SLACK))
    waiting = nack(leased, "d", day, rule=BACK_OFF)
    assert (is_due(waiting, T0), is_due(waiting, day)) == (True, False)


def _step(delivery: Delivery, move: DeliveryMove, now: Time, limit: int) -> Delivery:
    match move:
        case DeliveryMove.LEASE:
            return lease(delivery, "d", now)
        case DeliveryMove.RENEW:
            return renew(delivery, "d", now)
        case DeliveryMove.ACK:
            return ack(delivery, "d", now)
        case DeliveryMove.NACK:
            return nack(delivery, "d", now, rule=Backoff(first=2, most=300, attempts=limit))
        case DeliveryMove.EXPIRE:
            return expire(delivery, now, Backoff(first=2, most=300, attempts=limit))
        case DeliveryMove.DEAD_LETTER:
            return dead_letter(delivery, "no", now)
        case DeliveryMove.CANCEL:
            return cancel_delivery(delivery, "no", now)


@given(st.lists(st.sampled_from(list(DeliveryMove)), max_size=40), st.integers(1, 5))
def test_over_any_moves_attempts_are_leases_and_never_more_than_allowed(
    moves: list[DeliveryMove], limit: int
) -> None:
    delivery, leases = a_delivery(), 0
    for number, move in enumerate(moves):
        now = T0.plus(number)
        before = delivery
        try:
            delivery = _step(delivery, move, now, limit)
        except Refused as refused:
            assert isinstance(refused.diagnostic, WrongState)
            assert move not in DELIVERY.accepts(before.state)
            continue
        leases += move is DeliveryMove.LEASE
        assert before.state not in DELIVERY.terminal
        assert (delivery.revision, delivery.updated_at) == (before.revision + 1, now)
        assert delivery.attempts == leases <= limit
        assert (delivery.leased_until is not None) == (delivery.state is S.LEASED)
        if delivery.state is S.PENDING:
            assert 0 < delivery.next_attempt_at.since(now) <= 300


def test_another_node_delivers_and_its_receipt_settles() -> None:
    delivery = a_delivery()
    sent = hand_over(delivery, "node mini", T0)
    assert (sent.state, sent.attempts, sent.leased_by, sent.leased_until) == ("leased", 1, "node mini", None)
    assert hand_over(sent, "node mini", T0) is sent
    taken = settle_remotely(sent, T0)
    assert taken.state is DeliveryState.ACKED
    assert settle_remotely(taken, T0) is taken
    assert settle_remotely(delivery, T0).state is DeliveryState.ACKED  # the receipt came first
