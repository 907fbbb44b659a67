"""The directory on disk: each lookup of the resolver is one indexed query."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from scout.base.codec import decode
from scout.base.time import Time
from scout.identity.path import AgentPath
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.endpoint import Endpoint, is_online
from scout.model.node import Node
from scout.model.session import Session
from scout.policy.directory import Wanted
from scout.store import mirror
from scout.store.ledger import Ledger
from scout.store.table import get_table

_COUNTED = 1000
_LIVE = "a.lifecycle <> 'retired'"


class View(NamedTuple):
    """The names a caller sees: aliases of `user`; all agents, or those of some users, trees and projects."""

    user: str | None
    everybody: bool = False
    users: tuple[str, ...] = ()
    paths: tuple[AgentPath, ...] = ()
    projects: tuple[str, ...] = ()

    def shows(self, agent: Agent) -> bool:
        """Whether this view includes the agent. A path names an agent of this node only."""
        below = not agent.is_remote and any(path.contains(agent.path) for path in self.paths)
        return self.everybody or agent.owner in self.users or agent.project_root in self.projects or below

    @property
    def term(self) -> tuple[str, list[Any]]:
        """Return the view as a condition on `agents a`; `0` sorts just after `/`, so it ends a subtree.

        The `+` keeps SQLite from scanning all agents of a user: a name is always rarer.
        """
        if self.everybody:
            return "1", []
        terms = ["+a.owner = ?" for _ in self.users] + ["+a.project_root = ?" for _ in self.projects]
        terms += ["+a.path = ? OR (+a.path > ? AND +a.path < ?)" for _ in self.paths]
        bounds = [bound for path in self.paths for bound in (f"{path}", f"{path}/", f"{path}0")]
        return f"({' OR '.join(terms) or '0'})", [*self.users, *self.projects, *bounds]

    @property
    def remote_term(self) -> tuple[str, list[Any]]:
        """Return the view as a condition on `remote_agents r`; paths and projects are of this node."""
        if self.everybody:
            return "1", []
        return f"({' OR '.join('+r.owner = ?' for _ in self.users) or '0'})", list(self.users)


def find_work_tree_agent(ledger: Ledger, folder: str) -> Agent | None:
    """Return the agent that was spawned with the work tree in this folder."""
    return ledger.one(Agent, "agent_of_work_tree", folder=folder)


class StoredDirectory:
    """The directory as one caller sees it at one time. It stores nothing itself.

    `meshed`: agents of other nodes are known, and the mirror is looked at after the agents of this node.
    """

    def __init__(
        self, ledger: Ledger, view: View, now: Time, online_within: float = 90, *, meshed: bool = False
    ) -> None:
        self._ledger = ledger
        self._view = view
        self._user = view.user
        self._now = now
        self._online_within = online_within
        self._meshed = meshed

    def find(self, wanted: Wanted, limit: int) -> tuple[Agent, ...]:
        found = self._select(wanted, limit, _ONLINE)
        if wanted.online and len(found) < limit and self._ledger.has_signs:
            found += self._find_heard(wanted, {agent.id for agent in found}, limit - len(found))
        if len(found) < limit:
            found += self._find_remote(wanted, limit - len(found))
        return tuple(found)

    def _find_remote(self, wanted: Wanted, limit: int) -> list[Agent]:
        """Return matching agents of other nodes."""
        if not self._is_elsewhere(wanted):
            return []
        where, values = self._build_remote_conditions(wanted)
        query = f"{mirror.SELECT} WHERE {where} LIMIT ?"
        return [one.agent for one in self._ledger.remote_agents(query, *values, limit)]

    def _is_elsewhere(self, wanted: Wanted) -> bool:
        """Whether agents of other nodes may match: they have no project here."""
        here = wanted.own or wanted.homeless or wanted.project_root is not None
        return self._meshed and not here

    def _build_remote_conditions(self, wanted: Wanted) -> tuple[str, list[Any]]:
        seen, values = self._view.remote_term
        terms = [seen, mirror.LISTED, "r.definition_id = ?"]
        values.append(wanted.definition_id)
        for column, value in (("workspace", wanted.workspace), ("profile", wanted.profile)):
            if value is not None or wanted.exact:
                terms.append(f"r.{column} IS ?")
                values.append(value)
        if wanted.node is not None:
            rare = "+" if wanted.workspace is not None else ""
            terms.append(f"{rare}r.node_id = (SELECT id FROM nodes WHERE name = ?)")
            values.append(wanted.node)
        if wanted.online:
            terms.append("r.online = 1 AND n.state = 'online'")
        if wanted.harness is not None or wanted.model is not None:
            terms.append(f"({_REMOTE_RUNS} OR {_REMOTE_OPEN})")
            values += [wanted.harness, wanted.harness, wanted.model or ""]
        return " AND ".join(terms), values

    def _find_heard(self, wanted: Wanted, known: Collection[str], limit: int) -> list[Agent]:
        """Return agents that are online by a heartbeat that is not in their rows yet."""
        silent = (one for one in self._select(wanted, _COUNTED, _SILENT) if one.id not in known)
        return list(islice((one for one in silent if self._is_heard(one)), limit))

    def _is_heard(self, agent: Agent) -> bool:
        return any(is_online(one, self._now, self._online_within) for one in self.endpoints(agent.id))

    def _select(self, wanted: Wanted, limit: int, online: str) -> list[Agent]:
        if wanted.homeless or wanted.node not in (None, self._ledger.node):
            return []  # it lives elsewhere; the row of an agent may hold an earlier name of this node
        where, values = self._build_conditions(wanted, online)
        query = f"SELECT a.data FROM {_SOURCE[wanted.online]} WHERE {where} LIMIT ?"
        read = get_table(Agent).read
        complete = self._ledger.complete
        return [complete(read(data)) for (data,) in self._rows(query, *values, limit)]

    def count(self, wanted: Wanted) -> int:
        if wanted.online:
            return len(self.find(wanted, _COUNTED))
        if wanted.homeless or wanted.node not in (None, self._ledger.node):
            return self._count_remote(wanted)
        where, values = self._build_conditions(wanted, _ONLINE)
        query = f"SELECT count(*) FROM (SELECT 1 FROM {_SOURCE[False]} WHERE {where} LIMIT ?)"
        count = int(next(self._rows(query, *values, _COUNTED))[0])
        return min(count + self._count_remote(wanted), _COUNTED)

    def _count_remote(self, wanted: Wanted) -> int:
        if not self._is_elsewhere(wanted):
            return 0
        where, values = self._build_remote_conditions(wanted)
        query = f"SELECT count(*) FROM (SELECT 1 FROM {mirror.SOURCE} WHERE {where} LIMIT ?)"
        return int(next(self._rows(query, *values, _COUNTED))[0])

    def _build_conditions(self, wanted: Wanted, online: str) -> tuple[str, list[Any]]:
        """Return the conditions of a query and their values; `online` applies if only those are wanted."""
        table = "r" if wanted.online else "a"
        seen, values = self._view.term
        terms = [seen, f"{table}.definition_id = ?", _LIVE]
        values.append(wanted.definition_id)
        for column, value, exact in (
            ("workspace", wanted.workspace, wanted.exact),
            ("profile", wanted.profile, wanted.exact),
            ("project_root", wanted.project_root, False),
        ):
            if value is not None or exact:
                # A workspace is rarer than a project: the `+` keeps SQLite from the index of projects.
                others = wanted.workspace is not None and column == "project_root"
                terms.append(f"{'+' if others else ''}a.{column} IS ?")
                values.append(value)
        if wanted.online:
            terms.append(online)
            values.append(int(self._now.plus(-self._online_within)))
        if wanted.harness is not None or wanted.model is not None:
            terms.append(f"({_RUNS} OR {_OPEN})")
            values += [wanted.harness, wanted.harness, wanted.model or ""]
        return " AND ".join(terms), values

    def agent(self, agent_id: str) -> Agent | None:
        return self._filter_visible(self._ledger.get(Agent, agent_id))

    def at_path(self, path: AgentPath) -> Agent | None:
        found = self._one(Agent, "SELECT data FROM agents WHERE path = ?", str(path))
        return self._filter_visible(self._follow(found))

    def _follow(self, agent: Agent | None) -> Agent | None:
        """Return an agent; one that moved to another node as that node lists it."""
        moved = agent is not None and agent.moved_to is not None
        return self._ledger.get(Agent, agent.id) if agent is not None and moved else agent

    def at_branch(self, project_root: str, branch: str) -> Agent | None:
        query = f"SELECT data FROM agents a WHERE project_root = ? AND birth_branch = ? AND {_LIVE}"
        return self._filter_visible(self._one(Agent, query, project_root, branch))

    def of_project(self, project_root: str) -> Agent | None:
        """Return the base agent of a directory, without a profile, or the agent whose work tree it is."""
        seen, values = self._view.term
        query = f"SELECT data FROM agents a WHERE {_LIVE} AND {_BASE} AND {seen} ORDER BY id LIMIT 1"
        found = self._one(Agent, query, project_root, *values) or self._of_work_tree(project_root)
        return self._filter_visible(found)

    def _of_work_tree(self, directory: str) -> Agent | None:
        """Return the spawned agent whose work tree this is; it lies below its project's repository."""
        root = next((directory.partition(mark)[0] for mark in _WORK_TREES if mark in directory), None)
        if root is None:
            return None
        # The range has the repository and the projects in it; `0` sorts just after `/`.
        born = f"SELECT data FROM agents a WHERE {_LIVE} AND {_BORN} LIMIT 1"
        return self._one(Agent, born, root, f"{root}0", directory)

    def retired(self, wanted: Wanted) -> Agent | None:
        query = (
            "SELECT data FROM agents WHERE definition_id = ? AND workspace IS ? AND profile IS ?"
            " AND lifecycle = 'retired' ORDER BY id DESC LIMIT 1"
        )
        found = self._one(Agent, query, wanted.definition_id, wanted.workspace, wanted.profile)
        return self._filter_visible(self._follow(found))

    def endpoints(self, agent_id: str) -> Sequence[Endpoint]:
        query = "SELECT data FROM endpoints WHERE agent_id = ? ORDER BY id"
        read = get_table(Endpoint).read
        found = [self._ledger.complete(read(data)) for (data,) in self._rows(query, agent_id)]
        remote = self._ledger.remote_agent(agent_id) if self._meshed and not found else None
        return found if remote is None else remote.endpoints

    def endpoint(self, endpoint_id: str) -> Endpoint | None:
        return self._ledger.get(Endpoint, endpoint_id)

    def session(self, session_id: str) -> Session | None:
        return self._ledger.get(Session, session_id)

    def native_session(self, harness: str, native_id: str) -> Session | None:
        known = "SELECT session_id FROM native_sessions WHERE harness = ? AND native_id = ?"
        query = f"{known} ORDER BY session_id DESC LIMIT 1"
        found = next(self._rows(query, harness, native_id), None)
        return self.session(found[0]) if found else None

    def alias(self, name: str) -> Alias | None:
        query = "SELECT data FROM aliases WHERE owner = ? AND name = ? AND state <> 'removed'"
        return self._one(Alias, query, self._user, name)

    def aliases_of(self, agent_id: str, limit: int) -> Sequence[Alias]:
        mine = "SELECT data FROM aliases WHERE agent_id = ? AND owner = ? AND state <> 'removed'"
        query = f"{mine} ORDER BY name LIMIT ?"
        return [decode(data, Alias) for (data,) in self._rows(query, agent_id, self._user, limit)]

    def node(self, name: str) -> Node | None:
        return self._one(Node, "SELECT data FROM nodes WHERE name = ?", name)

    def nodes_like(self, prefix: str, limit: int) -> Sequence[str]:
        query = "SELECT name FROM nodes WHERE name >= ? AND name < ? ORDER BY name LIMIT ?"
        return [name for (name,) in self._rows(query, prefix, f"{prefix}{{", limit)]

    def near(self, keys: Collection[str], limit: int) -> Sequence[str]:
        marks = ", ".join("?" for _ in keys)
        return self._list_names("name_keys", f"n.key IN ({marks})", sorted(keys), limit)

    def prefixed(self, prefix: str, limit: int) -> Sequence[str]:
        # The first text after every text with this prefix; a folded name holds nothing beyond 'z'.
        return self._list_names("names", "n.name >= ? AND n.name < ?", [prefix, f"{prefix}{{"], limit)

    def _list_names(self, table: str, condition: str, values: list[str], limit: int) -> list[str]:
        """Return the names that a caller sees, of agents here and on other nodes, and of its aliases."""
        sources = [(table, self._held_condition)]
        if self._meshed:
            sources.append((f"remote_{table}", self._remote_held_condition))
        found: set[str] = set()
        for source, (held, more) in sources:
            named = f"SELECT DISTINCT n.name FROM {source} n WHERE {condition} AND {held}"
            found.update(
                name for (name,) in self._rows(f"{named} ORDER BY n.name LIMIT ?", *values, *more, limit)
            )
        return sorted(found)[:limit]

    def ever_prefixed(self, prefix: str, limit: int) -> Sequence[str]:
        """Return the names that were ever used, also those that no live agent has."""
        query = "SELECT name FROM names WHERE name >= ? AND name < ? ORDER BY name LIMIT ?"
        return [name for (name,) in self._rows(query, prefix, f"{prefix}{{", limit)]

    def in_workspace(self, workspace: str, limit: int) -> Sequence[Agent]:
        seen, values = self._view.term
        query = f"SELECT data FROM agents a WHERE workspace = ? AND {_LIVE} AND {seen} ORDER BY id LIMIT ?"
        complete, read = self._ledger.complete, get_table(Agent).read
        found = [complete(read(data)) for (data,) in self._rows(query, workspace, *values, limit)]
        if self._meshed and len(found) < limit:
            seen, values = self._view.remote_term
            query = f"{mirror.SELECT} WHERE {mirror.LISTED} AND r.workspace = ? AND {seen} LIMIT ?"
            there = self._ledger.remote_agents(query, workspace, *values, limit - len(found))
            found += [one.agent for one in there]
        return found

    @property
    def _remote_held_condition(self) -> tuple[str, list[Any]]:
        """Return the condition that a visible agent of another node has a name."""
        seen, values = self._view.remote_term
        listed = (
            f"SELECT 1 FROM remote_agents r WHERE r.definition_id = n.name AND {mirror.LISTED} AND {seen}"
        )
        return f"EXISTS ({listed})", values

    @property
    def _held_condition(self) -> tuple[str, list[Any]]:
        """Return the condition that a visible agent still has a name, or that it is an alias."""
        seen, values = self._view.term
        live = f"SELECT 1 FROM agents a WHERE a.definition_id = n.name AND {_LIVE} AND {seen}"
        mine = "SELECT 1 FROM aliases s WHERE s.owner = ? AND s.name = n.name AND s.state <> 'removed'"
        return f"(EXISTS ({live}) OR EXISTS ({mine}))", [*values, self._user]

    def _filter_visible(self, agent: Agent | None) -> Agent | None:
        return agent if agent is not None and self._view.shows(agent) else None

    def _one(self, kind: Any, query: str, *values: Any) -> Any:
        found = next(self._rows(query, *values), None)
        record: Any = get_table(kind).read(found[0]) if found else None
        return self._ledger.complete(record) if kind is Agent and found else record

    def _rows(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        return self._ledger.select(_TABLES, query, values)


# Every table that a lookup reads.
_TABLES = frozenset(
    {"agents", "aliases", "endpoints", "endpoint_words", "name_keys", "names", "native_sessions", "nodes"}
    | {"reachable", "remote_agents", "remote_name_keys", "remote_names", "remote_words"}
)
# Online agents are searched among those that can be online: CROSS JOIN keeps SQLite to this order.
_SOURCE = {False: "agents a", True: "reachable r CROSS JOIN agents a ON a.id = r.agent_id"}
_ONLINE = (
    "EXISTS (SELECT 1 FROM endpoints e WHERE e.agent_id = a.id AND e.state IN ('idle', 'working')"
    " AND (e.held OR e.last_seen >= ?))"
)
# Silent by their rows; a heartbeat may still be in memory.
_SILENT = (
    "EXISTS (SELECT 1 FROM endpoints e WHERE e.agent_id = a.id AND e.state IN ('idle', 'working')"
    " AND NOT e.held AND e.last_seen < ?)"
)
_RUNS = (
    "EXISTS (SELECT 1 FROM endpoint_words w WHERE w.agent_id = a.id"
    " AND (? IS NULL OR w.harness = ?) AND w.word = ?)"
)
# No endpoint, or one without a harness and model: the agent takes any.
_OPEN = (
    "NOT EXISTS (SELECT 1 FROM endpoint_words w WHERE w.agent_id = a.id"
    " AND (w.harness <> '' OR w.word <> ''))"
)
_REMOTE_RUNS = (
    "EXISTS (SELECT 1 FROM remote_words w WHERE w.agent_id = r.id"
    " AND (? IS NULL OR w.harness = ?) AND w.word = ?)"
)
_REMOTE_OPEN = (
    "NOT EXISTS (SELECT 1 FROM remote_words w WHERE w.agent_id = r.id AND (w.harness <> '' OR w.word <> ''))"
)
_BASE = "coalesce(a.working_dir, a.project_root) = ? AND a.kind = 'agent' AND a.profile IS NULL"
_BORN = (
    "a.project_root >= ? AND a.project_root < ? AND a.birth_branch IS NOT NULL"
    " AND a.working_dir = ? AND a.kind = 'sub'"
)
_WORK_TREES = ("/.scout/worktrees/", "/.exo/worktrees/")
