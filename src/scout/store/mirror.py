"""The mirror: agents of other nodes, as their nodes list them.

It is fed from the mesh and can be lost: the directory of the mesh fills it again. So it is written at once,
without events, and replay leaves it alone. A row refers to its node by id; the name and the state of the node
are read from the node's record, so that a renamed or lost node costs one row and not all of its agents'.
"""

import functools
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from scout.base.codec import decode, encode_for_store
from scout.identity.model_word import list_model_words
from scout.model.agent import Lifecycle
from scout.model.mesh.entry import AgentEntry
from scout.model.node import NodeState
from scout.model.remote_agent import RemoteAgent, build_remote_agent
from scout.policy.nearest import build_keys

MIRROR_TABLES = frozenset({"nodes", "remote_agents", "remote_name_keys", "remote_names", "remote_words"})
# CROSS JOIN keeps SQLite to this order: a node has many agents, an agent one node.
SOURCE = "remote_agents r CROSS JOIN nodes n ON n.id = r.node_id"
SELECT = f"SELECT r.data, r.owner, r.listed, n.name, n.state FROM {SOURCE}"
BY_ID = f"{SELECT} WHERE r.id = ?"
LISTED = "r.listed = 1"
ALL = f"{SELECT} WHERE {LISTED} AND r.id < ? ORDER BY r.id DESC LIMIT ?"
NAMED = f"{SELECT} WHERE {LISTED} AND r.definition_id = ? AND r.id < ? ORDER BY r.id DESC LIMIT ?"
COUNT = "SELECT count(*) FROM (SELECT 1 FROM remote_agents WHERE node_id = ? AND listed = 1 LIMIT ?)"
EXISTS = "SELECT EXISTS (SELECT 1 FROM remote_agents)"


@functools.lru_cache(maxsize=8192)
def read_row(data: bytes, owner: str, listed: int, node: str, state: str) -> RemoteAgent:
    """Return the agent of a row. Cached, because a fleet uses the same few agents repeatedly."""
    entry = decode(data, AgentEntry)
    return build_remote_agent(entry, node=node, owner=owner, listed=bool(listed), state=NodeState(state))


def find_revisions(connection: sqlite3.Connection, idents: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return the node and the revision of each known agent."""
    marks = ", ".join("?" for _ in idents)
    query = f"SELECT id, node_id, revision FROM remote_agents WHERE id IN ({marks})"
    return {ident: (node_id, revision) for ident, node_id, revision in connection.execute(query, idents)}


def find_own(connection: sqlite3.Connection, idents: Sequence[str]) -> set[str]:
    """Return which of these ids are agents of this node."""
    marks = ", ".join("?" for _ in idents)
    return {ident for (ident,) in connection.execute(f"SELECT id FROM agents WHERE id IN ({marks})", idents)}


def write_entries(connection: sqlite3.Connection, entries: Iterable[AgentEntry], owner: str) -> None:
    """Store the entries of one node's agents, in the place of earlier ones."""
    stored = list(entries)
    connection.executemany(_WRITE, [_build_row(one, owner) for one in stored])
    connection.executemany("DELETE FROM remote_words WHERE agent_id = ?", [(one.id,) for one in stored])
    words = {word for one in stored for word in _list_words(one)}
    connection.executemany("INSERT INTO remote_words VALUES (?, ?, ?)", sorted(words))
    for name in sorted({one.definition_id for one in stored if one.definition_id}):
        _write_name(connection, name)


def unlist_agents(connection: sqlite3.Connection, node_id: str, idents: Iterable[str]) -> None:
    """Mark agents that their node lists no longer. Their rows stay, so that past messages show a name."""
    gone = "UPDATE remote_agents SET listed = 0, online = 0 WHERE id = ? AND node_id = ?"
    connection.executemany(gone, [(ident, node_id) for ident in idents])


def unlist_node(connection: sqlite3.Connection, node_id: str) -> None:
    """Mark all agents of a node that has left or was removed."""
    gone = "UPDATE remote_agents SET listed = 0, online = 0 WHERE node_id = ? AND listed = 1"
    connection.execute(gone, (node_id,))


def hand_over(connection: sqlite3.Connection, ident: str, node_id: str) -> None:
    """Give an agent to another node, which has not listed it yet. Whatever that node lists is newer."""
    found = connection.execute("SELECT data, owner FROM remote_agents WHERE id = ?", (ident,)).fetchone()
    if found is not None:
        entry = decode(found[0], AgentEntry)
        write_entries(connection, [replace(entry, node_id=node_id, instances=(), revision=0)], found[1])


def drop_agent(connection: sqlite3.Connection, ident: str) -> None:
    """Remove one agent: it lives on this node now. Its name stays for lookups, which find no agent of it."""
    connection.execute("DELETE FROM remote_agents WHERE id = ?", (ident,))
    connection.execute("DELETE FROM remote_words WHERE agent_id = ?", (ident,))


def drop_all(connection: sqlite3.Connection) -> None:
    """Empty the mirror, when this node has left its mesh."""
    for table in ("remote_agents", "remote_words", "remote_names", "remote_name_keys"):
        connection.execute(f"DELETE FROM {table}")


_COLUMNS = (
    "node_id",
    "owner",
    "definition_id",
    "workspace",
    "profile",
    "listed",
    "online",
    "revision",
    "data",
)
_WRITE = (
    f"INSERT INTO remote_agents (id, {', '.join(_COLUMNS)}) VALUES (?{', ?' * len(_COLUMNS)})"
    f" ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _COLUMNS)}"
)


def _build_row(entry: AgentEntry, owner: str) -> tuple[Any, ...]:
    return (
        entry.id,
        entry.node_id,
        owner,
        entry.definition_id,
        entry.workspace,
        entry.profile,
        int(entry.lifecycle is not Lifecycle.RETIRED),
        int(any(one.online for one in entry.instances)),
        entry.revision,
        encode_for_store(entry),
    )


def _list_words(entry: AgentEntry) -> Iterable[tuple[str, str, str]]:
    """Yield the harness and the model words of each instance; an empty word asks for any model."""
    for one in entry.instances:
        for word in ("", *(list_model_words(one.model) if one.model else ())):
            yield entry.id, one.harness or "", word


def _write_name(connection: sqlite3.Connection, name: str) -> None:
    added = connection.execute("INSERT OR IGNORE INTO remote_names VALUES (?)", (name,)).rowcount
    if added:
        keys = [(key, name) for key in build_keys(name)]
        connection.executemany("INSERT INTO remote_name_keys VALUES (?, ?)", keys)
