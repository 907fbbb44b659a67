"""Directory entries of other nodes: checked, then stored in the mirror. False ones are refused."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from scout.base.codec import decode
from scout.base.refusal import Refused
from scout.broker.mesh import members
from scout.broker.mesh.signatures import read_signed
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.mesh.entry import SIGNED_AS, AgentEntry, EntryRevision, SignedEntry
from scout.model.node import Node
from scout.model.remote_agent import find_node_owner
from scout.policy.mesh.membership import EntryClaim, EntryDecision, EntryFate, decide_entry, is_member
from scout.ports.mesh import NodeKeys
from scout.store import mirror
from scout.store.ledger import Ledger

PublishedEntry = tuple[str, str, bytes | None]  # node id, agent id, data; None: it is listed no longer


class CheckedEntry(NamedTuple):
    """A published entry; without `entry` it is listed no longer, or `problem` says why it is refused."""

    node_id: str
    agent_id: str
    entry: AgentEntry | None = None
    problem: str = ""


def drop_known(ledger: Ledger, published: Sequence[PublishedEntry]) -> list[PublishedEntry]:
    """Return the entries that may be news. One that the mirror has changes nothing, whoever signed it.

    A node that starts again reads the whole directory, and mostly knows it.
    """
    known = mirror.find_revisions(ledger.connection, [agent_id for _, agent_id, _ in published])
    return [one for one in published if not _is_known(one, known.get(one[1]))]


def _is_known(published: PublishedEntry, known: tuple[str, int] | None) -> bool:
    node_id, _, data = published
    if known is None or data is None or known[0] != node_id:
        return False
    try:
        return decode(decode(data, SignedEntry).body, EntryRevision).revision <= known[1]
    except Refused:
        return False


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


class StoredEntries(NamedTuple):
    """What became of some entries. `kept`: they count once the agent is handed over. `moved`: these were."""

    refused: list[CheckedEntry]
    kept: list[CheckedEntry]
    moved: list[str]


def store_entries(tx: Transaction, checked: Sequence[CheckedEntry]) -> StoredEntries:
    """Store the entries that count."""
    connection = tx.ledger.connection
    idents = [one.agent_id for one in checked]
    known, own = mirror.find_revisions(connection, idents), mirror.find_own(connection, idents)
    result = StoredEntries([], [], [])
    taken: dict[str, list[AgentEntry]] = {}
    gone: dict[str, list[str]] = {}
    for one in checked:
        decision = _decide(tx, one, known, own)
        if decision.fate in (EntryFate.REFUSE, EntryFate.KEEP):
            kept = decision.fate is EntryFate.KEEP
            (result.kept if kept else result.refused).append(one._replace(problem=decision.problem))
        elif one.entry is None:
            gone.setdefault(one.node_id, []).append(one.agent_id)
        elif decision.fate is EntryFate.HAND_OVER:
            mirror.hand_over(connection, one.agent_id, one.entry.moved_to or "")
            result.moved.append(one.agent_id)
        elif decision.fate is EntryFate.STORE and one.entry.revision > known.get(one.agent_id, ("", 0))[1]:
            taken.setdefault(one.node_id, []).append(one.entry)  # an older one is a repetition
    for node_id, entries in taken.items():
        _write(tx, node_id, entries)
    for node_id, idents in gone.items():
        mirror.unlist_agents(connection, node_id, idents)
    _forget(tx, taken, bool(gone or result.moved))
    return result


def _decide(
    tx: Transaction, one: CheckedEntry, known: dict[str, tuple[str, int]], own: Collection[str]
) -> EntryDecision:
    if one.problem or one.entry is None:
        fate = EntryFate.REFUSE if one.problem else EntryFate.STORE
        return EntryDecision(fate=fate, problem=one.problem)
    holder = tx.ledger.own_agent(one.agent_id) if one.agent_id in own else None
    held_by = known[one.agent_id][0] if one.agent_id in known else holder.moved_to if holder else None
    claim = EntryClaim(
        node_id=one.node_id,
        agent_id=one.agent_id,
        held_here=holder is not None and holder.moved_to is None,
        held_by=held_by,
        came_from=holder.moved_from if holder else None,
    )
    return decide_entry(one.entry, claim)


def _write(tx: Transaction, node_id: str, entries: list[AgentEntry]) -> None:
    node = tx.need(Node, "node", node_id)
    mirror.write_entries(tx.ledger.connection, entries, find_node_owner(node, tx.services.operator))
    tx.services.meshed = True


def _forget(tx: Transaction, taken: dict[str, list[AgentEntry]], gone: bool) -> None:
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
