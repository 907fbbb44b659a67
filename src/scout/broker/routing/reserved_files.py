"""The reservations that concern a caller: its own, and those of others in the folder it works in."""

from collections.abc import Iterator

from scout.broker.routing.views import extend_record
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.model.reservation import Reservation, is_active_reservation
from scout.policy.permit import Deed
from scout.protocol.reservations import ReservationView
from scout.store.directory import find_work_tree_agent

_EACH = 200
_SHOWN = 20


def list_relevant_reservations(tx: Transaction) -> tuple[ReservationView, ...]:
    """Return the active reservations that concern the caller; the first to expire comes first."""
    many, me = tx.ledger.many, tx.actor.agent_id or ""
    found = many(Reservation, "reservations_of_agent", agent=me, limit=_EACH)
    for root in dict.fromkeys(_list_roots(tx)):
        found += many(Reservation, "reservations_in", root=root, limit=_EACH)
    active = {
        one.id: one for one in found if is_active_reservation(one, tx.now) and may_see_reservation(tx, one)
    }
    ordered = sorted(active.values(), key=lambda one: (one.expires_at, one.id))
    return tuple(build_reservation_view(tx, one) for one in ordered[:_SHOWN])


def _list_roots(tx: Transaction) -> Iterator[str]:
    """Yield the roots of reservations where the caller works: its work tree, repository or project."""
    own = tx.agent(tx.actor.agent_id)
    if own is not None and (folder := own.working_dir or own.project_root):
        yield from (folder, f"{own.project_root or folder}/.git")
    if tx.here is None:
        return
    top = tx.here.repository or tx.here.project_root
    yield from (top, f"{top}/.git")
    spawned = find_work_tree_agent(tx.ledger, top)
    if spawned is not None:
        yield f"{spawned.project_root}/.git"


def may_see_reservation(tx: Transaction, reservation: Reservation) -> bool:
    """Whether the caller may see a reservation, which is the case if it may see the holder."""
    agent = tx.agent(reservation.agent_id)
    return agent is not None and tx.allows(Deed.SEE, build_subject(agent))


def build_reservation_view(tx: Transaction, reservation: Reservation) -> ReservationView:
    """Return a reservation with its holder's address."""
    return extend_record(ReservationView, reservation, address=tx.address(reservation.agent_id))
