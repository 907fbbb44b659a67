"""Members of the mesh as node records: admitted, renamed, lost, back, left, removed."""

from msgspec.structs import replace

from scout.broker.transaction.transaction import Transaction
from scout.model.events.directory import (
    NODE_EVENTS,
    NodeCreated,
    NodeEvent,
    NodeKeyRotated,
    NodeRefused,
    NodeRenamed,
    NodeUpdated,
)
from scout.model.mesh.member import MemberEntry
from scout.model.node import Node, NodeMove, NodeState, move_node, rename_node, set_member, update_node
from scout.store import mirror
from scout.store.ledger import LAST

_MANY = 10_000


def list_nodes(tx: Transaction) -> list[Node]:
    """Return this machine and every other one that it knows."""
    return tx.ledger.many(Node, "nodes_all", before=LAST, limit=_MANY)


def get_local(tx: Transaction) -> Node:
    node = tx.ledger.one(Node, "local_node")
    assert node is not None  # made at the first start
    return node


def find_named(tx: Transaction, name: str) -> Node | None:
    return tx.ledger.one(Node, "node_named", name=name)


def name_node(tx: Transaction, node_id: str) -> str:
    """Return the name of a node; its id if it is not known."""
    node = tx.get(Node, node_id)
    return node.name if node is not None else node_id


def is_name_taken(tx: Transaction, name: str, node_id: str) -> bool:
    """Whether another node has the name; one that left or was removed gives it up."""
    holder = find_named(tx, name)
    gone = (NodeState.LEFT, NodeState.REMOVED)
    return holder is not None and holder.id != node_id and (holder.local or holder.state not in gone)


# -- what the founder says ---------------------------------------------------------------------------


def apply_member(tx: Transaction, member: MemberEntry) -> Node | None:
    """Record what the founder says about a node; None if it is known already, or older than what is known."""
    node = tx.get(Node, member.node_id)
    if node is not None and node.member is not None and member.revision <= node.member.revision:
        return None
    _free_name(tx, member)
    if node is None:
        return _create_node(tx, member)
    if node.local:
        return _update_local(tx, node, member)
    if member.removed:
        return remove_node(tx, _set_member(tx, node, member, NodeUpdated))
    if node.state is NodeState.REMOVED:
        node = _move(tx, node, NodeMove.ADMIT, "it was invited again")
    return _set_member(tx, node, member, _choose_event(node, member))


def _choose_event(node: Node, member: MemberEntry) -> type[NodeEvent]:
    if node.name != member.name:
        return NodeRenamed
    known = node.member
    return NodeKeyRotated if known is not None and known.login_key != member.login_key else NodeUpdated


def _set_member(tx: Transaction, node: Node, member: MemberEntry, kind: type[NodeEvent]) -> Node:
    changed = set_member(node, member, tx.now, operator_key=find_operator_key(tx))
    return tx.record(kind, changed, move="update")


def find_operator_key(tx: Transaction) -> str | None:
    """Return the key of the operator here; None before this node belongs to a mesh."""
    member = get_local(tx).member
    return member.operator_key if member is not None else None


def _create_node(tx: Transaction, member: MemberEntry) -> Node:
    node = Node(id=member.node_id, created_at=tx.now, updated_at=tx.now, name=member.name)
    known = set_member(node, member, tx.now, operator_key=find_operator_key(tx))
    known = replace(known, revision=1)
    if member.removed:
        known = replace(known, state=NodeState.REMOVED)
    tx.services.meshed = True
    return tx.record(NodeCreated, known, move="create")


def _update_local(tx: Transaction, node: Node, member: MemberEntry) -> Node:
    """Record what the founder says about this node, such as another name."""
    if member.name != node.name:
        node = rename_local(tx, member.name)
    return _set_member(tx, node, member, NodeUpdated)


def _free_name(tx: Transaction, member: MemberEntry) -> None:
    """Take the name from a node that left or was removed."""
    holder = find_named(tx, member.name)
    if holder is None or holder.id == member.node_id or holder.local:
        return
    tx.record(
        NodeRenamed,
        rename_node(holder, f"{holder.name}-{holder.id[-6:]}", tx.now),
        move="rename",
        reason=f"another node is called {member.name}",
    )


def rename_local(tx: Transaction, name: str) -> Node:
    """Give this machine another name. Its agents, endpoints and sessions are read with it."""
    node = rename_node(get_local(tx), name, tx.now)
    old, tx.services.node, tx.ledger.node = tx.services.node, name, name
    tx.services.status = replace(tx.services.status, node=name)
    tx.record(NodeRenamed, node, move="rename", reason=f"it was called {old}")
    return node


# -- what this node notices --------------------------------------------------------------------------


def _move(tx: Transaction, node: Node, move: NodeMove, reason: str) -> Node:
    moved = move_node(node, move, tx.now)
    return tx.record(NODE_EVENTS[move], moved, move=move, reason=reason)


def lose_node(tx: Transaction, node_id: str, reason: str) -> None:
    """Record that a node is silent; its agents are shown as unreachable."""
    node = tx.get(Node, node_id)
    if node is not None and not node.local and node.state is NodeState.ONLINE:
        seen = tx.services.nodes_heard.get(node_id)
        moved = move_node(node, NodeMove.LOSE, tx.now, last_seen=seen)
        tx.record(NODE_EVENTS[NodeMove.LOSE], moved, move=NodeMove.LOSE, reason=reason)


def hear_node(tx: Transaction, node_id: str, version: str) -> None:
    """Record that a node answers again, or has another version."""
    node = tx.get(Node, node_id)
    if node is None or node.local or node.state is NodeState.REMOVED:
        return
    if node.state is not NodeState.ONLINE:
        moved = move_node(node, NodeMove.RECOVER, tx.now, last_seen=tx.now)
        node = tx.record(NODE_EVENTS[NodeMove.RECOVER], moved, move=NodeMove.RECOVER)
    if node.version != version:
        tx.record(NodeUpdated, update_node(node, tx.now, version=version), move="update")


def leave_node(tx: Transaction, node_id: str, reason: str) -> None:
    """Record that a node left; its agents are listed no longer."""
    node = tx.get(Node, node_id)
    if node is not None and not node.local and node.state in (NodeState.ONLINE, NodeState.UNREACHABLE):
        _move(tx, node, NodeMove.LEAVE, reason)
        unlist_node(tx, node_id)


def remove_node(tx: Transaction, node: Node) -> Node:
    """Record that the founder removed a node; nothing of it is taken any more."""
    if node.state is NodeState.REMOVED:
        return node
    unlist_node(tx, node.id)
    return _move(tx, node, NodeMove.REMOVE, "the founder of the mesh removed it")


def unlist_node(tx: Transaction, node_id: str) -> None:
    mirror.unlist_node(tx.ledger.connection, node_id)
    tx.cache.forget_mirror()


def leave_mesh(tx: Transaction) -> None:
    """Record that this node left: it knows no other node's agents any more, and has no entry itself."""
    for node in list_nodes(tx):
        if not node.local and node.state in (NodeState.ONLINE, NodeState.UNREACHABLE):
            _move(tx, node, NodeMove.LEAVE, "this node left the mesh")
    own = get_local(tx)
    if own.member is not None:
        left = replace(own, member=None, revision=own.revision + 1, updated_at=tx.now)
        tx.record(NodeUpdated, left, move="leave")
    mirror.drop_all(tx.ledger.connection)
    tx.cache.forget_mirror()
    tx.services.meshed = tx.services.in_mesh = False


def lose_membership(tx: Transaction) -> None:
    """Record that the founder removed this node: nothing goes to another node any more."""
    for node in list_nodes(tx):
        if not node.local and node.state in (NodeState.ONLINE, NodeState.UNREACHABLE):
            _move(tx, node, NodeMove.LEAVE, "this node was removed from the mesh")


def record_refusal(tx: Transaction, node_id: str, reason: str) -> None:
    """Record that something in the name of a node was refused; of an unknown node, at this one."""
    node = tx.get(Node, node_id)
    unknown = "" if node is not None else f"{node_id}: "
    record = node or get_local(tx)
    tx.record(NodeRefused, record, move="refuse", reason=f"{unknown}{reason}")
