"""Reservations: made, listed, released, and checked before an edit."""

import asyncio
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker.effects import reservations as effects
from scout.broker.operations import agents
from scout.broker.routing.reserved_files import build_reservation_view, may_see_reservation
from scout.broker.routing.views import extend_record
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.paging import build_filtered_page, decode_bound
from scout.broker.transaction.transaction import Transaction, require_owner
from scout.model.access.token import TokenKind
from scout.model.events.reservations import ReservationCreated
from scout.model.flight import Flight, FlightState
from scout.model.problems.request import NotOwner
from scout.model.reservation import (
    RESERVATION,
    Reservation,
    ReservationScope,
    is_active_reservation,
)
from scout.model.session import Session
from scout.policy.limits import check_reservations
from scout.policy.reservation import (
    EditDecision,
    Editor,
    ReservationOverlap,
    check_why,
    decide_edit,
    find_overlaps,
    lease_until,
    place_globs,
    tell_holder,
)
from scout.ports import WorkTreePath
from scout.protocol.request import Page
from scout.protocol.reservations import (
    AddReservation,
    CheckEdits,
    EditCheck,
    EditedPath,
    GetReservation,
    ListReservations,
    ReleaseReservation,
    ReservationMade,
    ReservationView,
    SharedFiles,
)
from scout.store.ledger import LAST

_PATHS = 1000  # maximum paths of one check
_SESSIONS = 200  # maximum sessions whose announced files are kept
_DEEPEST = 64  # maximum folders above a path outside of git
_MANY = 1000


# -- making ----------------------------------------------------------------------------------------------


async def add(call: CallContext[CallBroker], request: AddReservation) -> ReservationMade:
    """Reserve files in the work tree of the request's folder."""
    folder = await _find_folder(call, request.folder)
    scope, root, top = await asyncio.to_thread(_find_root, call, folder, request)
    placed = replace(request, globs=place_globs(request.globs, top, folder.real), folder=root)
    return await call.write_once(placed, lambda tx, one: _add(tx, one, scope, request.globs))


async def _find_folder(call: CallContext[CallBroker], given: str | None) -> WorkTreePath:
    """Return the folder of a request: the given one, the session's, or the caller's."""
    session_id = call.who.actor.session_id
    session = await call.read(lambda tx: tx.get(Session, session_id)) if session_id else None
    own = (session.cwd if session else None) or call.who.base
    if given is None and own is None:
        problem = "which folder? there is no directory that these names are relative to"
        raise Refused(BadRequest(problem=problem, field="folder"))
    await call.check_folder(given or own or "")
    found = await asyncio.to_thread(call.services.places.find_work_tree, given or own or "", own)
    await call.check_folder(found.real)
    return found


def _find_root(
    call: CallContext[CallBroker], folder: WorkTreePath, request: AddReservation
) -> tuple[ReservationScope, str, str]:
    """Return the scope with its root, and the folder that globs are relative to in the end."""
    if folder.top is not None and folder.common is not None:
        if request.repo:
            return ReservationScope.REPOSITORY, folder.common, folder.top
        return ReservationScope.WORK_TREE, folder.top, folder.top
    project = call.services.places.locate(folder.real).project_root
    if request.repo:
        parameters = {"globs": [*request.globs], "repo": False}
        again = Remedy(operation="reserve.add", parameters=parameters, why="in this folder only")
        problem = f"{project} is not in a git repository, so there is only this folder"
        raise Refused(BadRequest(problem=problem, field="repo", remedies=(again,)))
    return ReservationScope.FOLDER, project, project


def _add(
    tx: Transaction, request: AddReservation, scope: ReservationScope, typed: Sequence[str]
) -> ReservationMade:
    """Store a reservation. `typed`: the globs as they were given."""
    if request.exclusive and request.shared:
        raise Refused(BadRequest(problem="a reservation is exclusive or shared, not both", field="shared"))
    held = tx.ledger.many(Reservation, "reservations_of_agent", agent=tx.sender, limit=_MANY)
    check_reservations(tx.address(tx.sender), len(held), tx.rules.limits)
    root, session_id = request.folder or "", tx.actor.session_id
    overlaps = find_overlaps(request.globs, _list_held_in(tx, root), _get_editor(tx), tx.now)
    reservation = Reservation(
        id=tx.mint("rsv"),
        created_at=tx.now,
        updated_at=tx.now,
        agent_id=tx.sender,
        session_id=session_id,
        flight_id=_find_flight(tx, tx.sender, session_id),
        globs=request.globs,
        exclusive=not request.shared and request.exclusive is not False,
        scope=scope,
        root=root,
        why=check_why(request.why),
        expires_at=lease_until(typed, request.seconds, tx.now, tx.rules.periods),
    )
    tx.record(ReservationCreated, reservation, move="create", reason=reservation.why)
    return extend_record(
        ReservationMade,
        build_reservation_view(tx, reservation),
        overlaps=tuple(
            SharedFiles(reservation=build_reservation_view(tx, one.reservation), shared=one.shared)
            for one in overlaps
        ),
        notes=tuple(_tell_overlap(tx, one) for one in overlaps),
    )


def _tell_overlap(tx: Transaction, overlap: ReservationOverlap) -> str:
    other = overlap.reservation
    address = "a person" if _is_person(tx, other.agent_id) else tx.address(other.agent_id)
    if other.exclusive:
        return f"{address} has reserved {overlap.shared} too: until its reservation ends, you may not edit it"
    return f"{address} works on {overlap.shared} too"


def _find_flight(tx: Transaction, agent_id: str, session_id: str | None) -> str | None:
    """Return the running flight that a reservation ends with; None if it ends with a lasting session."""
    session = tx.get(Session, session_id)
    harness = tx.services.harnesses.get(session.harness) if session else None
    if session is not None and (harness is None or harness.capabilities.keeps_process):
        return None
    flights = tx.ledger.many(Flight, "flights_open_to", agent=agent_id, before=LAST, limit=_MANY)
    running = (one for one in flights if one.state is not FlightState.QUEUED)
    return next((one.id for one in running if session_id in (None, one.session_id)), None)


def _get_editor(tx: Transaction) -> Editor:
    return Editor(agent_id=tx.sender, session_id=tx.actor.session_id)


# -- reading ---------------------------------------------------------------------------------------------


def list_reservations(tx: Transaction, request: ListReservations) -> Page[ReservationView]:
    """List the reservations of the agents that the caller may see, newest first."""
    holder = agents.find(tx, request.agent) if request.agent is not None else None

    def is_wanted(one: Reservation) -> bool:
        alive = request.all or is_active_reservation(one, tx.now)
        return alive and (holder is None or one.agent_id == holder.id) and may_see_reservation(tx, one)

    query = "reservations_all" if request.all else "reservations_active"
    listed = build_filtered_page(
        lambda bound, limit: tx.ledger.many(Reservation, query, before=bound, limit=limit),
        is_wanted,
        decode_bound(request.cursor),
        request.limit,
        tx.rules.limits,
    )
    return Page(items=tuple(build_reservation_view(tx, one) for one in listed.items), next=listed.next)


def get(tx: Transaction, request: GetReservation) -> ReservationView:
    """Return one reservation that the caller may see."""
    return build_reservation_view(tx, _find(tx, request.reservation_id))


def _find(tx: Transaction, ident: str) -> Reservation:
    found = tx.need(Reservation, "reservation", ident)
    if not may_see_reservation(tx, found):
        raise tx.missing("reservation", ident)
    return found


def list_held_by(tx: Transaction, agent_id: str) -> tuple[ReservationView, ...]:
    """Return the active reservations of an agent, newest first."""
    found = tx.ledger.many(Reservation, "reservations_of_agent", agent=agent_id, limit=_MANY)
    return tuple(build_reservation_view(tx, one) for one in found if is_active_reservation(one, tx.now))


def release(tx: Transaction, request: ReleaseReservation) -> ReservationView:
    """Release a reservation; safe to repeat."""
    found = _find(tx, request.reservation_id)
    try:
        require_owner(tx, "reservation", found.id, found.agent_id)
    except Refused as refusal:
        raise _add_question(tx, refusal, found) from None
    if found.state in RESERVATION.terminal:
        return build_reservation_view(tx, found)
    return build_reservation_view(tx, effects.record_release(tx, found, request.reason or "released"))


def _add_question(tx: Transaction, refusal: Refused, reservation: Reservation) -> Refused:
    """Add to the refusal how to ask the holder."""
    problem = refusal.diagnostic
    if not isinstance(problem, NotOwner):
        return refusal
    words = f"Please release {reservation.id} when you are done."
    ask = Remedy(
        operation="ask",
        parameters={"to": tx.address(reservation.agent_id), "body": words},
        why="the holder can release it",
    )
    if _is_person(tx, reservation.agent_id):
        ask = Remedy(operation="need", parameters={"question": words}, why="the person can release it")
    return Refused(replace(problem, remedies=(ask, *problem.remedies)))


# -- checking --------------------------------------------------------------------------------------------


async def check(call: CallContext[CallBroker], request: CheckEdits) -> EditCheck:
    """Tell which of the paths others hold; each path is looked up in its own work tree."""
    if len(request.paths) > _PATHS:
        problem = f"{len(request.paths)} paths are too many at once; the maximum is {_PATHS}"
        raise Refused(BadRequest(problem=problem, field="paths"))
    whole = request.folder is None and all(path.startswith("/") for path in request.paths)
    folder = None if whole else (await _find_folder(call, request.folder)).real
    find = call.services.places.find_work_tree
    for path in request.paths:
        await call.check_folder(posixpath.join(folder or "", path))
    places = await asyncio.to_thread(lambda: [find(path, folder) for path in request.paths])
    for place in places:
        await call.check_folder(place.real)
    answer = await call.read(lambda tx: _check(tx, request.paths, places))
    if request.editing and answer.allowed:
        _announce(call, places)
    return answer


def _announce(call: CallContext[CallBroker], places: Iterable[WorkTreePath]) -> None:
    """Remember which files a session is about to edit; the oldest sessions are forgotten first."""
    session_id, announced = call.who.actor.session_id, call.services.announced
    if session_id is None:
        return
    files = announced.setdefault(session_id, set())
    if len(files) < _PATHS:
        files.update(one.real for one in places)
    while len(announced) > _SESSIONS:
        announced.pop(next(iter(announced)))


def _check(tx: Transaction, paths: Iterable[str], places: Iterable[WorkTreePath]) -> EditCheck:
    found = [_decide(tx, path, place) for path, place in zip(paths, places, strict=True)]
    blocked = [(one.path, one.blocked_by) for one in found if one.blocked_by is not None]
    lines = [_tell_holder(tx, path, by) for path, by in blocked]
    return EditCheck(
        allowed=not blocked,
        paths=tuple(
            EditedPath(
                path=one.path,
                allowed=one.blocked_by is None,
                held=tuple(build_reservation_view(tx, held) for held in one.held),
            )
            for one in found
        ),
        message="\n".join(lines),
    )


def _tell_holder(tx: Transaction, path: str, by: Reservation) -> str:
    person = _is_person(tx, by.agent_id)
    holder = "a person" if person else tx.address(by.agent_id)
    return tell_holder(path, by, holder, tx.now, person=person)


def _is_person(tx: Transaction, agent_id: str) -> bool:
    agent = tx.agent(agent_id)
    return agent is not None and agent.is_person


def _decide(tx: Transaction, path: str, place: WorkTreePath) -> EditDecision:
    held: list[Reservation] = []
    for root, names in _list_roots(place):
        held += decide_edit(_list_held_in(tx, root), path, names, _get_editor(tx), tx.now).held
    return EditDecision(path=path, held=tuple(sorted(held, key=lambda one: one.id)))


def _list_roots(place: WorkTreePath) -> Iterator[tuple[str, list[str]]]:
    """Yield the roots that a path belongs to, each with the names of the path below it."""
    if place.top is not None and place.common is not None:
        names = _list_relative_paths(place, place.top)
        yield place.top, names
        yield place.common, names
        return
    for folder in list(PurePosixPath(place.path).parents)[:_DEEPEST]:
        yield str(folder), _list_relative_paths(place, str(folder))


def _list_relative_paths(place: WorkTreePath, root: str) -> list[str]:
    """Return the path relative to the root: as it is named, and with its own link resolved."""
    start = f"{root.rstrip('/')}/"
    both = dict.fromkeys((place.path, place.real))
    return [one.removeprefix(start) for one in both if one.startswith(start)]


def _list_held_in(tx: Transaction, root: str) -> list[Reservation]:
    """Return the active reservations of a root; guests and other users know those of agents they may see."""
    found = tx.ledger.many(Reservation, "reservations_in", root=root, limit=_MANY)
    sees_all = tx.actor.kind is not TokenKind.GUEST and tx.actor.user == tx.services.operator
    return [one for one in found if sees_all or may_see_reservation(tx, one)]
