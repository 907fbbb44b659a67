"""Reservations: advisory leases on the files that an agent is about to edit."""

from enum import StrEnum

from scout.base.machine import Machine, Mutable, move_record
from scout.base.time import Time


class ReservationState(StrEnum):
    ACTIVE = "active"
    RELEASED = "released"
    EXPIRED = "expired"


class ReservationMove(StrEnum):
    RELEASE = "release"
    EXPIRE = "expire"


RESERVATION = Machine(
    "reservation",
    ReservationState.ACTIVE,
    {
        ReservationState.ACTIVE: {
            ReservationMove.RELEASE: ReservationState.RELEASED,
            ReservationMove.EXPIRE: ReservationState.EXPIRED,
        },
        ReservationState.RELEASED: {},
        ReservationState.EXPIRED: {},
    },
)


class ReservationScope(StrEnum):
    """The files that the globs are about: one work tree, all work trees of a repository, or a folder."""

    WORK_TREE = "work_tree"
    REPOSITORY = "repository"
    FOLDER = "folder"


class Reservation(Mutable):
    """One reservation. `globs` are as in `.gitignore`, relative to the top of the work tree.

    `root`: the top of the work tree, the git folder that all work trees of the repository share, or the
    project folder where there is no git. With `session_id` or `flight_id` it ends with that one.
    """

    agent_id: str
    session_id: str | None = None
    flight_id: str | None = None
    globs: tuple[str, ...]
    exclusive: bool = True
    scope: ReservationScope
    root: str
    why: str = ""
    expires_at: Time
    state: ReservationState = ReservationState.ACTIVE
    reason: str = ""


def is_active_reservation(reservation: Reservation, now: Time) -> bool:
    """Whether the reservation is neither released nor expired."""
    return reservation.state is ReservationState.ACTIVE and reservation.expires_at > now


def release_reservation(reservation: Reservation, now: Time, *, reason: str = "") -> Reservation:
    """End the reservation before its time."""
    return move_record(RESERVATION, reservation, ReservationMove.RELEASE, now, reason=reason)


def expire_reservation(reservation: Reservation, now: Time, *, reason: str = "") -> Reservation:
    """End the reservation at its time."""
    return move_record(RESERVATION, reservation, ReservationMove.EXPIRE, now, reason=reason)
