"""Nodes: the machines that run a broker, as this broker knows them."""

from enum import StrEnum

from scout.base.machine import Machine, Mutable, change_record, move_record
from scout.base.record import Record
from scout.base.time import Time
from scout.model.mesh.member import MemberEntry


class NodeState(StrEnum):
    ONLINE = "online"
    UNREACHABLE = "unreachable"
    LEFT = "left"
    REMOVED = "removed"


class NodeMove(StrEnum):
    LOSE = "lose"
    RECOVER = "recover"
    LEAVE = "leave"
    REMOVE = "remove"
    ADMIT = "admit"


NODE = Machine(
    "node",
    NodeState.ONLINE,
    {
        NodeState.ONLINE: {
            NodeMove.LOSE: NodeState.UNREACHABLE,
            NodeMove.LEAVE: NodeState.LEFT,
            NodeMove.REMOVE: NodeState.REMOVED,
        },
        NodeState.UNREACHABLE: {
            NodeMove.RECOVER: NodeState.ONLINE,
            NodeMove.LEAVE: NodeState.LEFT,
            NodeMove.REMOVE: NodeState.REMOVED,
        },
        NodeState.LEFT: {NodeMove.RECOVER: NodeState.ONLINE, NodeMove.REMOVE: NodeState.REMOVED},
        # A removed node is refused until it is invited again.
        NodeState.REMOVED: {NodeMove.ADMIT: NodeState.ONLINE},
    },
    settled=frozenset({NodeState.LEFT, NodeState.REMOVED}),
)


class Pause(Record, omit_defaults=True):
    """Since when a paused machine starts no turns and wakes no agents, and who paused it.

    `until_restart`: the next start of the daemon ends the pause.
    """

    since: Time
    by: str
    reason: str = ""
    until_restart: bool = False

    @property
    def words(self) -> str:
        """The text shown for everything that waits for the pause to end."""
        why = f" ({self.reason})" if self.reason else ""
        end = "`scout resume` or `scout restart`" if self.until_restart else "`scout resume`"
        return f"paused since {str(self.since)[11:16]} UTC{why}: it starts after {end}"


class Node(Mutable):
    """One machine: its folded name, its signing key, when it was last heard from, whether it is paused.

    `member`: the entry that the founder of the mesh signed for it. `guest_key`: the key of its operator, if
    that is another one than here. `lost_at`: since when it is unreachable.
    """

    name: str
    local: bool = False
    state: NodeState = NodeState.ONLINE
    public_key: str | None = None
    url: str | None = None
    version: str | None = None
    last_seen: Time | None = None
    paused: Pause | None = None
    member: MemberEntry | None = None
    guest_key: str | None = None
    lost_at: Time | None = None


def pause_node(node: Node, by: str, now: Time, *, reason: str = "", until_restart: bool = False) -> Node:
    """Pause the machine: it starts no turns. A paused machine keeps its first pause.

    `until_restart`: the next start of the daemon ends the pause.
    """
    if node.paused is not None:
        return node
    pause = Pause(since=now, by=by, reason=reason, until_restart=until_restart)
    return change_record("node", node, now, paused=pause)


def resume_node(node: Node, now: Time) -> Node:
    """Resume the machine; return it unchanged if it is not paused."""
    return node if node.paused is None else change_record("node", node, now, paused=None)


def move_node(
    node: Node,
    move: NodeMove,
    now: Time,
    *,
    seen: int | None = None,
    public_key: str | None = None,
    last_seen: Time | None = None,
) -> Node:
    """Return the node after a move; an admitted node takes its new key."""
    return move_record(
        NODE,
        node,
        move,
        now,
        seen=seen,
        public_key=public_key or node.public_key,
        last_seen=last_seen or node.last_seen,
        lost_at=now if move is NodeMove.LOSE else None,
    )


def set_member(node: Node, member: MemberEntry, now: Time, *, operator_key: str | None) -> Node:
    """Return the node with the entry that the founder signed: its name and its key are those of the entry.

    `operator_key`: the key of the operator here; a node of another one is a guest here.
    """
    foreign = operator_key is not None and member.operator_key != operator_key
    return change_record(
        "node",
        node,
        now,
        name=member.name,
        public_key=member.public_key,
        member=member,
        guest_key=member.operator_key if foreign else None,
    )


def rename_node(node: Node, name: str, now: Time) -> Node:
    """Return the node under another name."""
    return change_record("node", node, now, name=name)


def update_node(
    node: Node,
    now: Time,
    *,
    seen: int | None = None,
    version: str | None = None,
    url: str | None = None,
    public_key: str | None = None,
) -> Node:
    """Update the details a node reports about itself; a new key is a rotation. None keeps the old value."""
    return change_record(
        "node",
        node,
        now,
        seen=seen,
        version=version or node.version,
        url=url or node.url,
        public_key=public_key or node.public_key,
    )
