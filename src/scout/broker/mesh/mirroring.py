"""Directory entries of other nodes: checked, then stored in the mirror. False ones are refused."""

from collections.abc import Sequence
from typing import NamedTuple

from scout.broker.mesh import members
from scout.broker.mesh.signatures import read_signed
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.mesh.entry import SIGNED_AS, AgentEntry
from scout.model.node import Node
from scout.model.remote_agent import find_node_owner
from scout.policy.mesh.membership import EntryClaim, explain_false_entry, is_member
from scout.ports.mesh import NodeKeys
from scout.store import mirror

PublishedEntry = tuple[str, str, bytes | None]  # node id, agent id, data; None: it is listed no longer


class CheckedEntry(NamedTuple):
    """A published entry; without `entry` it is listed no longer, or `problem` says why it is refused."""

    node_id: str
    agent_id: str
    entry: AgentEntry | None = None
    problem: str = ""


def check_signatures(
    keys: NodeKeys, published: Sequence[PublishedEntry], nodes: dict[str, Node]
) -> list[CheckedEntry]:
    """Return the entries of members with right signatures, and why the others are refused."""
    return [_check_signature(keys, one, nodes.get(one[0])) for one in published]


def _check_signature(keys: NodeKeys, published: PublishedEntry, node: Node | None) -> CheckedEntry:
    node_id, agent_id, data = published
    if node is None or not is_member(node):
        return CheckedEntry(node_id, agent_id, problem="it is no member of the mesh")
    if data is None:
        return CheckedEntry(node_id, agent_id)
    entry = read_signed(keys, node.public_key or "", SIGNED_AS, data, AgentEntry)
    if entry is None:
        return CheckedEntry(node_id, agent_id, problem=f"the entry of {agent_id} is not signed by the node")
    return CheckedEntry(node_id, agent_id, entry)


def store_entries(tx: Transaction, checked: Sequence[CheckedEntry]) -> list[CheckedEntry]:
    """Store the entries that count; return those that are refused."""
    connection = tx.ledger.connection
    known = mirror.find_revisions(connection, [one.agent_id for one in checked])
    refused: list[CheckedEntry] = []
    taken: dict[str, list[AgentEntry]] = {}
    gone: dict[str, list[str]] = {}
    for one in checked:
        problem = one.problem or _explain_false(tx, one, known)
        if problem:
            refused.append(one._replace(problem=problem))
        elif one.entry is None:
            gone.setdefault(one.node_id, []).append(one.agent_id)
        elif one.entry.revision > known.get(one.agent_id, ("", 0))[1]:  # an older one is a repetition
            taken.setdefault(one.node_id, []).append(one.entry)
    for node_id, entries in taken.items():
        _write(tx, node_id, entries)
    for node_id, idents in gone.items():
        mirror.unlist_agents(connection, node_id, idents)
    _forget(tx, taken, gone)
    return refused


def _explain_false(tx: Transaction, one: CheckedEntry, known: dict[str, tuple[str, int]]) -> str:
    if one.entry is None:
        return ""
    holder = tx.agent(one.agent_id)
    claim = EntryClaim(
        node_id=one.node_id,
        agent_id=one.agent_id,
        held_here=holder is not None and not holder.is_remote,
        held_by=known[one.agent_id][0] if one.agent_id in known else None,
    )
    return explain_false_entry(one.entry, claim)


def _write(tx: Transaction, node_id: str, entries: list[AgentEntry]) -> None:
    node = tx.need(Node, "node", node_id)
    mirror.write_entries(tx.ledger.connection, entries, find_node_owner(node, tx.services.operator))
    tx.services.meshed = True


def _forget(tx: Transaction, taken: dict[str, list[AgentEntry]], gone: dict[str, list[str]]) -> None:
    """Forget what the cache knows. An agent under the same name only has another state."""
    entries = [one for some in taken.values() for one in some]
    if gone or any(_is_renamed(tx.cache.agents.get(one.id), one) for one in entries):
        tx.cache.forget_mirror()
    else:
        tx.cache.forget_remote(one.id for one in entries)


def _is_renamed(known: Agent | None, entry: AgentEntry) -> bool:
    """Whether an agent is new to the cache, or has another name or lifecycle than there."""
    if known is None:
        return True
    return (known.definition_id, known.workspace, known.profile, known.lifecycle) != (
        entry.definition_id,
        entry.workspace,
        entry.profile,
        entry.lifecycle,
    )


def record_refusals(tx: Transaction, refused: Sequence[CheckedEntry]) -> None:
    """Record each reason once for each node."""
    for node_id, problem in dict.fromkeys((one.node_id, one.problem) for one in refused):
        members.record_refusal(tx, node_id, problem)
