import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.model.delivery import (
    Delivery,
    DeliveryState,
    ack,
    cancel_delivery,
    dead_letter,
    lease,
    nack,
)
from scout.model.flight import (
    FLIGHT,
    FlightPhase,
    FlightState,
    Trouble,
    close_delivery,
    follow_ack,
    follow_dead_letter,
    follow_delivery,
    follow_lease,
    follow_return,
    hold_flight,
)
from scout.model.problems.session import Layer
from scout.model.waiting import WaitingKind, WaitingOn
from tests.model.samples import BACK_OFF, BOB, OPERATOR, T0, T1, a_delivery, a_flight

LEASED = lease(a_delivery(endpoint_id="ept_1", session_id="ses_1"), "d", T0)
ACKED = ack(LEASED, "d", T1)
RETURNED = nack(LEASED, "d", T1, problem="busy", rule=BACK_OFF)
DEAD = dead_letter(LEASED, "no login", T1)


def test_leased_is_waking() -> None:
    flight = follow_lease(a_flight(), LEASED, T0)
    assert (flight.state, flight.phase) == (FlightState.QUEUED, FlightPhase.WAKING)
    assert (flight.reason, flight.next_check_at) == ("waking the target, attempt 1", LEASED.leased_until)


def test_waking_ends_a_hold() -> None:
    held = hold_flight(a_flight(), WaitingOn(kind=WaitingKind.OPERATOR), T0, next_move_owner_id=OPERATOR)
    flight = follow_lease(held, a_delivery(state=DeliveryState.LEASED), T1)
    assert (flight.waiting_on, flight.next_move_owner_id, flight.next_check_at) == (None, BOB, T1)


def test_acked_is_running_where_the_delivery_went() -> None:
    flight = follow_ack(follow_lease(a_flight(), LEASED, T0), ACKED, T1)
    assert (flight.state, flight.phase) == (FlightState.RUNNING, FlightPhase.WORKING)
    assert (flight.endpoint_id, flight.session_id) == ("ept_1", "ses_1")


def test_a_failed_attempt_is_retried_with_its_reason() -> None:
    flight = follow_return(follow_lease(a_flight(), LEASED, T0), RETURNED, T1)
    assert (flight.state, flight.phase) == (FlightState.QUEUED, FlightPhase.RETRYING)
    assert (flight.reason, flight.next_check_at) == ("attempt 1 failed: busy", RETURNED.next_attempt_at)
    silent = nack(LEASED, "d", T1, rule=BACK_OFF)
    assert follow_return(a_flight(), silent, T1).reason == "attempt 1 failed: no reason given"


def test_dead_lettered_is_failed_with_layer_and_remedy() -> None:
    flight = follow_dead_letter(
        a_flight(), DEAD, T1, address="@bob", trouble=Trouble(Layer.HARNESS, "sessions/1/err")
    )
    assert (flight.state, flight.finished_at, flight.updated_at) == (FlightState.FAILED, T1, T1)
    assert flight.error is not None
    assert (flight.error.code, flight.error.log) == ("wake_failed", "sessions/1/err")
    assert flight.error.message == "waking @bob failed once in the harness: no login"
    assert [remedy.operation for remedy in flight.error.remedies] == ["flight.retry"]
    silent = follow_dead_letter(a_flight(), dead_letter(LEASED, "", T1), T1)
    assert silent.error is not None
    assert silent.error.message == f"waking {BOB} failed once in the adapter: no reason given"


@pytest.mark.parametrize("state", sorted(set(FlightState) - {FlightState.QUEUED}))
@pytest.mark.parametrize("delivery", [LEASED, ACKED, RETURNED])
def test_a_flight_that_has_gone_on_is_left_alone(state: FlightState, delivery: Delivery) -> None:
    flight = a_flight(state=state)
    assert follow_delivery(flight, delivery, T1) is flight


@pytest.mark.parametrize("state", sorted(FLIGHT.terminal))
def test_a_finished_flight_does_not_fail_again(state: FlightState) -> None:
    flight = a_flight(state=state)
    assert follow_dead_letter(flight, DEAD, T1) is flight


@pytest.mark.parametrize(
    ("delivery", "state", "phase"),
    [
        (LEASED, FlightState.QUEUED, FlightPhase.WAKING),
        (ACKED, FlightState.RUNNING, FlightPhase.WORKING),
        (RETURNED, FlightState.QUEUED, FlightPhase.RETRYING),
        (DEAD, FlightState.FAILED, FlightPhase.DONE),
        (cancel_delivery(LEASED, "", T1), FlightState.QUEUED, FlightPhase.ACCEPTED),
    ],
)
def test_a_flight_follows_its_delivery(delivery: Delivery, state: FlightState, phase: FlightPhase) -> None:
    flight = follow_delivery(a_flight(), delivery, T1)
    assert (flight.state, flight.phase) == (state, phase)


@given(st.sampled_from(list(FlightState)), st.sampled_from(list(DeliveryState)))
def test_nothing_is_delivered_for_a_finished_flight(state: FlightState, delivered: DeliveryState) -> None:
    delivery = a_delivery(state=delivered)
    after = close_delivery(delivery, a_flight(state=state), T1)
    finished = state in {FlightState.COMPLETED, FlightState.FAILED, FlightState.CANCELLED}
    if finished and delivered in {DeliveryState.PENDING, DeliveryState.LEASED}:
        assert (after.state, after.problem) == (DeliveryState.CANCELLED, f"its flight is {state}")
        assert after.updated_at == T1
    else:
        assert after is delivery
