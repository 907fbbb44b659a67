"""Work items of agents on several nodes: each node has the record, and the mover's node tells the others.

Both copies have the same revision. If two nodes moved an item at once, the move on its owner's node counts.
"""

from collections.abc import Sequence

from scout.broker.effects import notices
from scout.broker.mesh.outbox_rows import queue_entry
from scout.broker.transaction.transaction import Transaction
from scout.model.events.envelope import Event
from scout.model.events.mesh import EnvelopeReceived
from scout.model.events.talk import WorkItemCreated, WorkItemEvent, WorkItemUpdated
from scout.model.mesh.envelope import EnvelopeKind, WorkPayload
from scout.model.node import NODE, Node
from scout.model.work_item import WorkItem, list_parties


def queue_work(tx: Transaction, event: WorkItemEvent, events: Sequence[Event]) -> None:
    """Queue the new state of an item for the other nodes of the operator whose agents have a part in it."""
    item: WorkItem = event.payload.record
    if any(isinstance(one, EnvelopeReceived) and one.payload.subject == item.id for one in events):
        return  # another node told it
    for node_id in _list_nodes(tx, item):
        queue_entry(tx, node_id, EnvelopeKind.WORK, item.id, seq=event.seq)


def _list_nodes(tx: Transaction, item: WorkItem) -> list[str]:
    found = [tx.agent(one) for one in list_parties(item)]
    homes = dict.fromkeys(one.home_id for one in found if one is not None and one.is_remote)
    return [one for one in homes if _is_told(tx.get(Node, one))]


def _is_told(node: Node | None) -> bool:
    return node is not None and node.guest_key is None and node.state not in NODE.settled


def apply_work(tx: Transaction, node_id: str, payload: WorkPayload) -> str:
    """Store what another node did with an item; items that waited for it are resumed."""
    told, known = payload.item, tx.get(WorkItem, payload.item.id)
    if known is not None and not _is_newer(tx, told, known, node_id):
        return told.id
    kind = WorkItemCreated if known is None else WorkItemUpdated
    notices.record_from_elsewhere(tx, kind, told, move=payload.move, reason=payload.reason)
    return told.id


def _is_newer(tx: Transaction, told: WorkItem, known: WorkItem, node_id: str) -> bool:
    owner = tx.agent(told.owner_id)
    theirs = owner is not None and owner.is_remote and owner.home_id == node_id
    return told.revision > known.revision or (told.revision == known.revision and theirs and told != known)
