"""Reservations end with the session, the flight or the agent that holds them."""

from scout.broker.transaction.transaction import Transaction
from scout.model.events.reservations import ReservationExpired, ReservationReleased
from scout.model.reservation import (
    Reservation,
    ReservationMove,
    expire_reservation,
    release_reservation,
)

_MANY = 1000


def release_for_session(tx: Transaction, session_id: str, reason: str) -> None:
    """Release the reservations that end with a session."""
    _release_all(tx, "reservations_of_session", f"its session ended: {reason}", session=session_id)


def release_for_flight(tx: Transaction, flight_id: str, reason: str) -> None:
    """Release the reservations that end with a flight."""
    _release_all(tx, "reservations_of_flight", reason, flight=flight_id)


def release_for_agent(tx: Transaction, agent_id: str, reason: str) -> None:
    """Release the reservations of a retired agent."""
    _release_all(tx, "reservations_of_agent", reason, agent=agent_id)


def record_release(tx: Transaction, reservation: Reservation, reason: str) -> Reservation:
    """Release one reservation."""
    released = release_reservation(reservation, tx.now, reason=reason)
    return tx.record(ReservationReleased, released, move=ReservationMove.RELEASE, reason=reason)


def record_expiry(tx: Transaction, reservation: Reservation, reason: str) -> None:
    """Expire one reservation."""
    expired = expire_reservation(reservation, tx.now, reason=reason)
    tx.record(ReservationExpired, expired, move=ReservationMove.EXPIRE, reason=reason)


def _release_all(tx: Transaction, query: str, reason: str, **of: str) -> None:
    while found := tx.ledger.many(Reservation, query, **of, limit=_MANY):
        for one in found:
            record_release(tx, one, reason)
