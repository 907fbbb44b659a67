"""A node left the mesh or was removed: what waits for it ends at once, with an honest reason."""

from collections.abc import Iterator

from msgspec.structs import replace

from scout.broker.effects import remote_flights
from scout.broker.mesh import outbox
from scout.broker.routing.remote import build_node_unreachable
from scout.broker.transaction.transaction import Transaction
from scout.model.flight import FLIGHT, Flight, build_error
from scout.model.mesh.outbox import OutboxEntry
from scout.model.node import NODE, Node, NodeState
from scout.store.ledger import LAST

_MANY = 1000


def release_node(tx: Transaction, node: Node) -> None:
    """Give up the envelopes to a node that is gone, and fail the flights that it runs.

    Agents on their way to it are here again.
    """
    if node.local or node.state not in NODE.settled:
        return
    unreachable = build_error(build_node_unreachable(node))
    error = replace(unreachable, message=_describe_end(tx, node), remedies=())
    while entries := tx.ledger.many(OutboxEntry, "outbox_open_to", node=node.id, limit=_MANY):
        for entry in entries:
            outbox.give_up(tx, entry, error)
    for flight in list(_list_flights(tx, node)):
        remote_flights.fail_remotely(tx, flight, error)


def _describe_end(tx: Transaction, node: Node) -> str:
    """Return why nothing goes to a node any more."""
    own = tx.get(Node, tx.services.node_id)
    if own is not None and own.member is not None and own.member.removed:
        return "this node was removed from the mesh"
    how = "left" if node.state is NodeState.LEFT else "was removed from"
    return f"node {node.name} {how} the mesh"


def _list_flights(tx: Transaction, node: Node) -> Iterator[Flight]:
    before = LAST
    while some := tx.ledger.many(Flight, "flights_open_all", before=before, limit=_MANY):
        for flight in some:
            target = tx.agent(flight.target)
            gone = target is not None and target.is_remote and target.home_id == node.id
            if gone and flight.state not in FLIGHT.terminal:
                yield flight
        before = some[-1].id
