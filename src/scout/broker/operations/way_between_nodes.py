"""The way of a record between nodes, from the records of this node: its envelopes, sent and received."""

from collections.abc import Iterable

from scout.broker.routing.remote import find_delivery_entry, list_entries
from scout.broker.transaction.transaction import Transaction
from scout.model.delivery import Delivery
from scout.model.events.envelope import Event
from scout.model.events.mesh import EnvelopeEvent, EnvelopeReceived
from scout.model.mesh.envelope import ReceiptState
from scout.model.node import Node
from scout.policy.sentences import describe_envelope_state

_MOST = 100


def read_mesh_events(tx: Transaction, subjects: Iterable[str | None]) -> list[Event]:
    """Return the events of the envelopes about these records; none outside of a mesh."""
    if not tx.services.meshed:
        return []
    found: list[Event] = []
    for subject in (one for one in subjects if one is not None):
        for entry in list_entries(tx, subject):
            found += _read_entry_events(tx, entry.id)
        found += tx.ledger.facts("envelopes_received_about", subject=subject, limit=_MOST)
    return found


def read_delivery_events(tx: Transaction, delivery: Delivery) -> list[Event]:
    """Return the events of the envelope that carries a delivery."""
    entry = find_delivery_entry(tx, delivery.id)
    return _read_entry_events(tx, entry.id) if entry is not None else []


def _read_entry_events(tx: Transaction, ident: str) -> list[Event]:
    return tx.ledger.log.list_at(ident, 0, _MOST)


def describe_envelope(tx: Transaction, event: EnvelopeEvent | EnvelopeReceived) -> str:
    """Return an event of an envelope as the reason of a step: what it carries, and from or to which node."""
    if isinstance(event, EnvelopeReceived):
        came = event.payload
        problem = came.problem
        said = f"{came.kind} {came.envelope_id} from node {_name_node(tx, came.node_id)}"
    else:
        entry = event.payload.record
        problem = entry.problem
        said = f"{entry.kind} {entry.id} to node {_name_node(tx, entry.node_id)}"
    return f"{said}: {problem.message}" if problem is not None else said


def describe_way(tx: Transaction, facts: Iterable[Event]) -> list[str]:
    """Return in words how far the last envelope has come, and what came from another node."""
    told: list[str] = []
    sent = [one.payload.record for one in facts if isinstance(one, EnvelopeEvent)]
    if sent:
        last = max(sent, key=lambda one: (one.id, one.revision))
        said = describe_envelope_state(last.state, _name_node(tx, last.node_id))
        told.append(f"envelope {last.id} ({last.kind}) {said}")
    came = [one.payload for one in facts if isinstance(one, EnvelopeReceived)]
    if came:
        first = came[0]
        how = "accepted" if first.outcome is ReceiptState.ACCEPTED else "refused"
        told.append(f"envelope {first.envelope_id} from node {_name_node(tx, first.node_id)} was {how}")
    return told


def _name_node(tx: Transaction, node_id: str) -> str:
    node = tx.get(Node, node_id)
    return node.name if node is not None else node_id
