"""Events of reservations."""

from collections.abc import Mapping

from scout.model.events.envelope import Changed, Event
from scout.model.reservation import Reservation, ReservationMove


class ReservationEvent(Event):
    payload: Changed[Reservation]


class ReservationCreated(ReservationEvent, tag="collab.reservation.created"):
    """An agent reserved files."""


class ReservationReleased(ReservationEvent, tag="collab.reservation.released"):
    """The files are free: the holder released them, or its session, flight or agent ended."""


class ReservationExpired(ReservationEvent, tag="collab.reservation.expired"):
    """The reservation reached its end."""


RESERVATION_EVENTS: Mapping[ReservationMove, type[ReservationEvent]] = {
    ReservationMove.RELEASE: ReservationReleased,
    ReservationMove.EXPIRE: ReservationExpired,
}
