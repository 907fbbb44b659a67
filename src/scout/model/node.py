"""A broker's machine, as this broker knows it."""

from enum import StrEnum

from scout.base.machine import Machine
from scout.base.record import Record
from scout.base.time import Time
from scout.model.change import Mutable, changed, moved


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
        # A removed node is refused until somebody invites it again.
        NodeState.REMOVED: {NodeMove.ADMIT: NodeState.ONLINE},
    },
    settled=frozenset({NodeState.LEFT, NodeState.REMOVED}),
)


class Pause(Record, omit_defaults=True):
    """Since when a machine starts no turn and wakes nobody, and who paused it."""

    since: Time
    by: str
    reason: str = ""

    @property
    def words(self) -> str:
        """What everything that waits for the end of the pause says."""
        why = f" ({self.reason})" if self.reason else ""
        return f"paused since {str(self.since)[11:16]} UTC{why}: it starts after `scout resume`"


class Node(Mutable):
    """One machine: its folded name, the key it signs with, when it was last heard from, whether it pauses."""

    name: str
    local: bool = False
    state: NodeState = NodeState.ONLINE
    public_key: str | None = None
    url: str | None = None
    version: str | None = None
    last_seen: Time | None = None
    paused: Pause | None = None


def pause_node(node: Node, by: str, now: Time, *, reason: str = "") -> Node:
    """The machine starts no turn from here on; one that is paused already keeps its first pause."""
    if node.paused is not None:
        return node
    return changed("node", node, now, paused=Pause(since=now, by=by, reason=reason))


def resume_node(node: Node, now: Time) -> Node:
    """The machine starts turns again; one that is not paused stays as it is."""
    return node if node.paused is None else changed("node", node, now, paused=None)


def move_node(
    node: Node, move: NodeMove, now: Time, *, seen: int | None = None, public_key: str | None = None
) -> Node:
    """The node after a move; admitting it again takes the key it comes with."""
    return moved(NODE, node, move, now, seen=seen, public_key=public_key or node.public_key)


def update_node(
    node: Node,
    now: Time,
    *,
    seen: int | None = None,
    version: str | None = None,
    url: str | None = None,
    public_key: str | None = None,
) -> Node:
    """What a node says of itself when it comes; a new key is a rotation. None leaves what was."""
    return changed(
        "node",
        node,
        now,
        seen=seen,
        version=version or node.version,
        url=url or node.url,
        public_key=public_key or node.public_key,
    )
