"""Agents of other nodes: whether their node can be reached, and how far something is on its way to it."""

from msgspec.structs import replace

from scout.base.refusal import PLACEHOLDER, Refused, Remedy
from scout.base.time import Time
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.delivery import Delivery
from scout.model.flight import Flight
from scout.model.mesh.envelope import EnvelopeKind
from scout.model.mesh.outbox import OPEN, OutboxEntry, build_mesh_receipt
from scout.model.mesh_receipt import MeshReceipt, OutboxState
from scout.model.node import Node, NodeState
from scout.model.problems.target import PeerUnreachable

_SOME = 20


def is_remote(tx: Transaction, agent_id: str | None) -> bool:
    """Whether an agent belongs to another node."""
    agent = tx.agent(agent_id) if tx.services.meshed else None
    return agent is not None and agent.is_remote


def find_node(tx: Transaction, agent: Agent) -> Node | None:
    """Return the node of a remote agent."""
    return tx.get(Node, agent.created_by)


def check_node(tx: Transaction, agent: Agent) -> None:
    """Refuse an agent whose node cannot be reached; the remedy waits for the node."""
    node = find_node(tx, agent)
    if node is None or node.state is not NodeState.ONLINE:
        raise Refused(build_unreachable(tx, agent, node))


def build_unreachable(
    tx: Transaction, agent: Agent, node: Node | None, *, attempts: int = 0
) -> PeerUnreachable:
    """Return the refusal for an agent whose node does not answer, or left the mesh."""
    wish = {"to": tx.address(agent.id), "body": PLACEHOLDER, "ifUnreachable": "queue"}
    queue = Remedy(operation="ask", parameters=wish, why="wait until the node is back, for up to 24 hours")
    look = Remedy(operation="mesh.nodes", parameters={}, why="list the nodes and since when they are away")
    return PeerUnreachable(
        node=agent.node or "",
        last_seen=node.last_seen if node else None,
        since=node.lost_at if node else None,
        attempts=attempts,
        remedies=(queue, look),
    )


def describe_way(tx: Transaction, agent_id: str) -> tuple[str, ...]:
    """Return a note for the receipt of a message to an agent whose node does not answer now."""
    agent = tx.agent(agent_id)
    node = find_node(tx, agent) if agent is not None and agent.is_remote else None
    if node is None or node.state is NodeState.ONLINE:
        return ()
    since = f" since {node.lost_at}" if node.lost_at else ""
    return (f"node {node.name} is {node.state}{since}: the message is stored and sent when the node is back",)


def wait_for_node(flight: Flight, node: str, until: Time, waits: str) -> Flight:
    """Return a new flight that another node will run."""
    reason = f"{waits}; it is sent when the node is back" if waits else f"waits to be sent to node {node}"
    return replace(flight, reason=reason, next_check_at=until)


def find_mesh_receipt(tx: Transaction, delivery: Delivery | None) -> MeshReceipt | None:
    """Return how far a delivery to another node has come; None for a delivery of this node."""
    agent = tx.agent(delivery.target) if delivery is not None and tx.services.meshed else None
    if delivery is None or agent is None or not agent.is_remote:
        return None
    entry = tx.ledger.one(OutboxEntry, "outbox_of_delivery", delivery=delivery.id)
    name = agent.node or agent.created_by
    return build_mesh_receipt(entry, name) if entry is not None else MeshReceipt(node=name)


def list_entries(tx: Transaction, subject: str) -> list[OutboxEntry]:
    """Return the envelopes about a record, oldest first."""
    return tx.ledger.many(OutboxEntry, "outbox_about", subject=subject, limit=_SOME)


def has_left(tx: Transaction, flight: Flight) -> bool:
    """Whether another node may have the flight, so that only that node can end it."""
    if not is_remote(tx, flight.target):
        return False
    waiting = (OutboxState.QUEUED, OutboxState.EXPIRED)
    asked = [one for one in list_entries(tx, flight.id) if one.kind is EnvelopeKind.ASK]
    return any(one.state not in waiting for one in asked)


def has_open_entry(tx: Transaction, subject: str, kind: EnvelopeKind) -> bool:
    """Whether an envelope of a kind about a record has no receipt yet."""
    return any(one.kind is kind and one.state in OPEN for one in list_entries(tx, subject))
