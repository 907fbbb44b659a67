"""Requests about reservations: who edits what."""

from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.model.reservation import Reservation
from scout.protocol.parameters import Address, Cursor, Limit, Seconds, Words, describe
from scout.protocol.request import Page, Request, Write

ReservationId = Annotated[Words, describe("the reservation's id")]


class ReservationView(Reservation):
    """A reservation and its holder's address."""

    address: str = ""


class SharedFiles(Record):
    """An active reservation of another agent that overlaps yours, and the glob or path in both."""

    reservation: ReservationView
    shared: str


class ReservationMade(ReservationView):
    """Your reservation. `overlaps`: those of others that surely overlap. `notes`: what follows from them."""

    overlaps: tuple[SharedFiles, ...] = ()
    notes: tuple[str, ...] = ()


class AddReservation(Write[ReservationMade]):
    """Reserve files that you are about to edit, so that others leave them alone for a while."""

    operation: ClassVar[str] = "reserve.add"
    route: ClassVar[str] = "POST /v1/reservations"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("globs",)
    flags: ClassVar[dict[str, str]] = {"seconds": "for"}
    permission: ClassVar[str] = "an agent or a person"

    globs: Annotated[tuple[Words, ...], describe("files as in .gitignore, relative to the folder")]
    exclusive: Annotated[bool | None, describe("others may not edit them (default)")] = None
    shared: Annotated[bool, describe("others may edit them, and see that you do")] = False
    seconds: Annotated[Seconds | None, describe("how long; default 30 minutes")] = None
    repo: Annotated[bool, describe("in all work trees of the repository")] = False
    why: Annotated[Words, describe("what for; shown to others")] = ""
    folder: Annotated[Words | None, describe("the folder of the globs; default: your working directory")] = (
        None
    )


class ListReservations(Request[Page[ReservationView]]):
    """List active reservations, newest first."""

    operation: ClassVar[str] = "reserve.list"
    route: ClassVar[str] = "GET /v1/reservations"
    permission: ClassVar[str] = "only what you may see"

    agent: Annotated[Address | None, describe("only those of this agent")] = None
    all: Annotated[bool, describe("include released and expired ones")] = False
    cursor: Cursor = None
    limit: Limit = None


class GetReservation(Request[ReservationView]):
    """Show one reservation."""

    operation: ClassVar[str] = "reserve.show"
    route: ClassVar[str] = "GET /v1/reservations/{reservationId}"
    words: ClassVar[tuple[str, ...]] = ("reservationId",)
    permission: ClassVar[str] = "only what you may see"

    reservation_id: ReservationId


class ReleaseReservation(Write[ReservationView]):
    """Release reserved files before they expire."""

    operation: ClassVar[str] = "reserve.release"
    route: ClassVar[str] = "POST /v1/reservations/{reservationId}/release"
    words: ClassVar[tuple[str, ...]] = ("reservationId",)
    permission: ClassVar[str] = "the holder, or callers who control it"

    reservation_id: ReservationId
    reason: Annotated[Words, describe("why")] = ""


class EditedPath(Record):
    """One path, and the reservations of others that hold it. `allowed`: none of them is exclusive."""

    path: str
    allowed: bool
    held: tuple[ReservationView, ...] = ()


class EditCheck(Record):
    """Whether you may edit all of the paths. `message`: who holds the others, until when, and how to ask."""

    allowed: bool
    paths: tuple[EditedPath, ...]
    message: str = ""


class CheckEdits(Request[EditCheck]):
    """Check which of these paths others have reserved."""

    operation: ClassVar[str] = "reserve.check"
    route: ClassVar[str] = "POST /v1/reservations/check"
    words: ClassVar[tuple[str, ...]] = ("paths",)

    paths: Annotated[tuple[Words, ...], describe("files, relative to the folder")]
    folder: Annotated[Words | None, describe("the folder of the paths; default: your working directory")] = (
        None
    )
    editing: Annotated[bool, describe("your program edits them if it may")] = False
