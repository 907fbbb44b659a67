"""Agents of other nodes: whether their node can be reached, and how far something is on its way to it."""

from collections.abc import Sequence

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
from scout.model.node import NODE, Node, NodeState
from scout.model.problems.target import PeerUnreachable
from scout.store.ledger import LAST

_SOME = 20
_MANY = 1000


def is_remote(tx: Transaction, agent_id: str | None) -> bool:
    """Whether an agent belongs to another node."""
    agent = tx.agent(agent_id) if tx.services.meshed else None
    return agent is not None and agent.is_remote


def find_node_name(tx: Transaction, agent_id: str | None) -> str | None:
    """Return the name of the node of an agent; None for an agent of this node."""
    agent = tx.agent(agent_id) if tx.services.meshed else None
    return agent.node if agent is not None and agent.is_remote else None


def find_node(tx: Transaction, agent: Agent) -> Node | None:
    """Return the node of a remote agent."""
    return tx.get(Node, agent.home_id)


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
    return PeerUnreachable(
        node=agent.node or "",
        last_seen=node.last_seen if node else None,
        since=node.lost_at if node else None,
        attempts=attempts,
        remedies=(queue, _LOOK),
    )


_LOOK = Remedy(operation="mesh.nodes", parameters={}, why="list the nodes and since when they are away")


def build_node_unreachable(node: Node) -> PeerUnreachable:
    """Return the refusal for a request that needs the node itself."""
    return PeerUnreachable(node=node.name, last_seen=node.last_seen, since=node.lost_at, remedies=(_LOOK,))


def describe_node(tx: Transaction, agent: Agent) -> tuple[str, ...]:
    """Return a note about the node of a remote agent, if it cannot be reached."""
    node = find_node(tx, agent) if agent.is_remote else None
    if node is None or node.state is NodeState.ONLINE:
        return ()
    since = f" since {node.lost_at}" if node.lost_at else ""
    return (f"node {node.name} is {node.state}{since}: what you send waits until the node is back",)


def describe_way(tx: Transaction, agent_id: str) -> tuple[str, ...]:
    """Return notes for the receipt of a message to an agent that moved, or whose node does not answer now."""
    agent = tx.agent(agent_id)
    if agent is None or not agent.is_remote:
        return ()
    moved, node = describe_move(tx, agent), find_node(tx, agent)
    if node is None or node.state is NodeState.ONLINE:
        return moved
    since = f" since {node.lost_at}" if node.lost_at else ""
    away = f"node {node.name} is {node.state}{since}: the message is stored and sent when the node is back"
    return (*moved, away)


def describe_move(tx: Transaction, agent: Agent) -> tuple[str, ...]:
    """Return a note about an agent that moved from this node to another one."""
    known = tx.agent(agent.id) if agent.is_remote else None
    moved = known is not None and known.moved_to is not None
    return (f"{tx.address(agent.id)} moved to node {agent.node}",) if moved else ()


def wait_for_node(flight: Flight, node: str, until: Time, waits: str) -> Flight:
    """Return a new flight that another node will run."""
    reason = f"{waits}; it is sent when the node is back" if waits else f"waits to be sent to node {node}"
    return replace(flight, reason=reason, next_check_at=until)


def find_mesh_receipt(tx: Transaction, delivery: Delivery | None) -> MeshReceipt | None:
    """Return how far a delivery to another node has come; None for a delivery of this node."""
    agent = tx.agent(delivery.target) if delivery is not None and tx.services.meshed else None
    if delivery is None or agent is None or not agent.is_remote:
        return None
    entry = find_delivery_entry(tx, delivery.id)
    name = agent.node or agent.home_id
    return build_mesh_receipt(entry, name) if entry is not None else MeshReceipt(node=name)


def find_delivery_entry(tx: Transaction, delivery_id: str) -> OutboxEntry | None:
    """Return the newest envelope that carries a delivery."""
    found = tx.ledger.many(OutboxEntry, "outbox_of_delivery", delivery=delivery_id, limit=1)
    return found[0] if found else None


def list_entries(tx: Transaction, subject: str) -> list[OutboxEntry]:
    """Return the envelopes about a record, oldest first."""
    return tx.ledger.many(OutboxEntry, "outbox_about", subject=subject, limit=_SOME)


def has_left(tx: Transaction, flight: Flight) -> bool:
    """Whether another node may have the flight, so that only that node can end it."""
    if not is_remote(tx, flight.target):
        return False
    waiting, published = (OutboxState.QUEUED, OutboxState.EXPIRED), tx.services.published
    asked = [one for one in list_entries(tx, flight.id) if one.kind is EnvelopeKind.ASK]
    return any(one.state not in waiting or one.id in published for one in asked)


def has_open_entry(tx: Transaction, subject: str, kind: EnvelopeKind) -> bool:
    """Whether an envelope of a kind about a record has no receipt yet."""
    return any(one.kind is kind and one.state in OPEN for one in list_entries(tx, subject))


def list_own_nodes(tx: Transaction) -> list[Node]:
    """Return the other nodes of the operator."""
    nodes = tx.ledger.many(Node, "nodes_all", before=LAST, limit=_MANY)
    return [one for one in nodes if not one.local and not one.guest_key and one.state not in NODE.settled]


def count_agents(tx: Transaction, node: Node) -> int:
    """Count the agents that a node lists, up to a thousand."""
    return tx.ledger.count_remote_agents(node.id, _MANY)


def describe_reach(tx: Transaction, nodes: Sequence[Node], own: int) -> tuple[str, ...]:
    """Return how many agents of each node a broadcast reaches, and which nodes get it later.

    `own`: how many agents of this node it reaches.
    """
    here = f"{tx.services.node}: {own}"
    there = [f"{one.name}: {count_agents(tx, one)}" for one in nodes]
    late = [one for one in nodes if one.state is not NodeState.ONLINE]
    away = [f"node {one.name} is {one.state}: it gets the message when it is back" for one in late]
    return (f"agents by node: {', '.join((here, *there))}", *away)


def is_leaving(tx: Transaction, agent_id: str | None) -> bool:
    """Whether an agent is on its way to another node, which has not answered yet.

    The set only tells what to look at: it may name agents whose move has ended or was undone.
    """
    if agent_id is None or agent_id not in tx.services.leaving:
        return False
    return has_open_entry(tx, agent_id, EnvelopeKind.MOVE)
