"""An in-memory directory for files, tests and benchmarks, indexed like the store."""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from scout.base.time import Time
from scout.identity.model_word import list_model_words
from scout.identity.path import AgentPath, Kind
from scout.model.agent import Agent, Lifecycle
from scout.model.alias import Alias
from scout.model.endpoint import Endpoint, is_online
from scout.model.node import Node
from scout.model.session import Session
from scout.policy.directory import Wanted, list_instances
from scout.policy.nearest import build_keys

_COUNTED = 1000  # counting stops here: exact totals above this do not matter

_Facet = tuple[str | None, ...]


class Fleet:
    """Agents with their endpoints and aliases under every name. Cost depends on matches, not on size."""

    def __init__(self, now: Time) -> None:
        self.now = now
        self.names: list[str] = []
        self._agents: dict[str, Agent] = {}
        self._endpoints: dict[str, list[Endpoint]] = {}
        self._endpoint: dict[str, Endpoint] = {}
        self._sessions: dict[str, Session] = {}
        self._native: dict[tuple[str, str], Session] = {}
        self._paths: dict[str, Agent] = {}
        self._branches: dict[tuple[str, str], Agent] = {}
        self._projects: dict[str, Agent] = {}
        self._workspaces: dict[str, dict[str, Agent]] = {}
        self._tombstones: dict[_Facet, Agent] = {}
        self._facets: dict[_Facet, dict[str, Agent]] = {}
        self._aliases: dict[str, Alias] = {}
        self._aliases_of: dict[str, list[Alias]] = {}
        self._nodes: dict[str, Node] = {}
        self._near: dict[str, set[str]] = {}

    def add(self, agent: Agent, endpoints: Iterable[Endpoint] = ()) -> None:
        """Add an agent with all of its endpoints."""
        self._agents[agent.id] = self._paths[agent.path] = agent
        if agent.lifecycle is Lifecycle.RETIRED:
            self._tombstones[(agent.definition_id, agent.workspace, agent.profile)] = agent
            return
        mine = self._endpoints[agent.id] = list(endpoints)
        self._endpoint.update((one.id, one) for one in mine)
        self._index_places(agent)
        if agent.definition_id is not None:
            self._index_name(agent.definition_id)
            for facet in self._list_facets(agent, mine):
                self._facets.setdefault(facet, {})[agent.id] = agent

    def add_alias(self, alias: Alias) -> None:
        self._aliases[alias.name] = alias
        self._index_name(alias.name)
        if alias.target.agent_id is not None:
            self._aliases_of.setdefault(alias.target.agent_id, []).append(alias)

    def add_session(self, session: Session) -> None:
        self._sessions[session.id] = session
        self._native.update(((session.harness, native), session) for native in session.native_ids.values())

    def add_node(self, node: Node) -> None:
        self._nodes[node.name] = node

    def _index_places(self, agent: Agent) -> None:
        if agent.project_root is not None:
            if agent.birth_branch is not None:
                self._branches[agent.project_root, agent.birth_branch] = agent
            if agent.kind is Kind.AGENT and agent.profile is None:
                self._projects.setdefault(agent.working_dir or agent.project_root, agent)
        if agent.workspace is not None:
            self._workspaces.setdefault(agent.workspace, {})[agent.id] = agent

    def _index_name(self, name: str) -> None:
        index = bisect_left(self.names, name)
        if self.names[index : index + 1] != [name]:
            insort(self.names, name)
            for key in build_keys(name):
                self._near.setdefault(key, set()).add(name)

    def _list_facets(self, agent: Agent, endpoints: Sequence[Endpoint]) -> Iterable[_Facet]:
        """Yield every single condition of `Wanted` that the agent meets, each under its definition."""
        name = agent.definition_id
        yield (name,)
        yield (name, "workspace", agent.workspace)
        yield (name, "profile", agent.profile)
        yield (name, "node", agent.node)
        yield (name, "project", agent.project_root)
        if any(is_online(one, self.now) for one in endpoints):
            yield (name, "online")
        instances = list_instances(agent, endpoints)
        if all(one.harness is None and one.model is None for one in instances):
            yield (name, "open")
        for one in instances:
            words = (None, *(list_model_words(one.model) if one.model else ()))
            yield from ((name, "runs", harness, word) for harness in {one.harness, None} for word in words)

    # -- the Directory protocol -------------------------------------------------------------------

    def find(self, wanted: Wanted, limit: int) -> tuple[Agent, ...]:
        return tuple(islice(self._list_matching(wanted), limit))

    def count(self, wanted: Wanted) -> int:
        return sum(1 for _ in islice(self._list_matching(wanted), _COUNTED))

    def _list_matching(self, wanted: Wanted) -> Iterator[Agent]:
        """Iterate over the smallest set that meets one condition and test the others."""
        smallest, *others = sorted((self._facets.get(one, {}) for one in _list_conditions(wanted)), key=len)
        runs = self._find_running(wanted)
        for agent_id, agent in smallest.items():
            if all(agent_id in other for other in others) and (
                runs is None or any(agent_id in one for one in runs)
            ):
                yield agent

    def _find_running(self, wanted: Wanted) -> tuple[dict[str, Agent], ...] | None:
        """Return the agents with the requested harness and model, and those with no harness or model yet."""
        if wanted.harness is None and wanted.model is None:
            return None
        name = wanted.definition_id
        runs = self._facets.get((name, "runs", wanted.harness, wanted.model), {})
        return (runs, self._facets.get((name, "open"), {}))

    def agent(self, agent_id: str) -> Agent | None:
        return self._agents.get(agent_id)

    def at_path(self, path: AgentPath) -> Agent | None:
        return self._paths.get(path)

    def at_branch(self, project_root: str, branch: str) -> Agent | None:
        return self._branches.get((project_root, branch))

    def of_project(self, project_root: str) -> Agent | None:
        return self._projects.get(project_root)

    def retired(self, wanted: Wanted) -> Agent | None:
        return self._tombstones.get((wanted.definition_id, wanted.workspace, wanted.profile))

    def endpoints(self, agent_id: str) -> Sequence[Endpoint]:
        return self._endpoints.get(agent_id, ())

    def endpoint(self, endpoint_id: str) -> Endpoint | None:
        return self._endpoint.get(endpoint_id)

    def session(self, session_id: str) -> Session | None:
        return self._sessions.get(session_id)

    def native_session(self, harness: str, native_id: str) -> Session | None:
        return self._native.get((harness, native_id))

    def alias(self, name: str) -> Alias | None:
        return self._aliases.get(name)

    def aliases_of(self, agent_id: str, limit: int) -> Sequence[Alias]:
        return self._aliases_of.get(agent_id, [])[:limit]

    def node(self, name: str) -> Node | None:
        return self._nodes.get(name)

    def nodes_like(self, prefix: str, limit: int) -> Sequence[str]:
        return sorted(name for name in self._nodes if name.startswith(prefix))[:limit]

    def near(self, keys: Collection[str], limit: int) -> Sequence[str]:
        found: set[str] = set()
        for key in sorted(keys):
            found.update(sorted(self._near.get(key, ()))[:limit])
        return sorted(found)[:limit]

    def prefixed(self, prefix: str, limit: int) -> Sequence[str]:
        start = bisect_left(self.names, prefix)
        return [name for name in self.names[start : start + limit] if name.startswith(prefix)]

    def in_workspace(self, workspace: str, limit: int) -> Sequence[Agent]:
        return list(self._workspaces.get(workspace, {}).values())[:limit]


def _list_conditions(wanted: Wanted) -> list[_Facet]:
    """Return the single conditions of a query, except harness and model."""
    name = wanted.definition_id
    facets: list[_Facet] = []
    if wanted.exact or wanted.workspace is not None:
        facets.append((name, "workspace", wanted.workspace))
    if wanted.exact or wanted.profile is not None:
        facets.append((name, "profile", wanted.profile))
    if wanted.homeless or wanted.node is not None:
        facets.append((name, "node", wanted.node or ""))
    if wanted.project_root is not None:
        facets.append((name, "project", wanted.project_root))
    if wanted.online:
        facets.append((name, "online"))
    return facets or [(name,)]
