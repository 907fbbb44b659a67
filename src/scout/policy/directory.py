"""The lookups that the resolver needs. Every method is an indexed lookup: none may scan the fleet."""

import functools
from collections.abc import Collection, Sequence
from typing import Protocol

from scout.base.record import Record
from scout.identity.address import Address, fold
from scout.identity.path import AgentPath
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.endpoint import Endpoint, EndpointState
from scout.model.node import Node
from scout.model.session import Session


class Viewpoint(Record):
    """The caller that resolves an address. Outside every project and node, all fields are empty."""

    agent_id: str | None = None
    session_id: str | None = None
    path: AgentPath | None = None
    user: str | None = None
    project_root: str | None = None
    root_branch: str | None = None
    node: str | None = None


OUTSIDE = Viewpoint()


class Party(Record, omit_defaults=True):
    """An agent, or one session of it: two sessions of one agent are two parties."""

    agent_id: str
    session_id: str | None = None

    def is_same(self, other: "Party") -> bool:
        """Whether `other` includes this party; an agent without a session includes all its sessions."""
        return self.agent_id == other.agent_id and other.session_id in (None, self.session_id)


class Wanted(Record):
    """A query for agents. None matches any value, unless `exact`.

    `exact`: an absent workspace or profile matches only agents without one. `homeless`: agents without
    a node. `harness` and `model` match agents with such an instance, and agents that have neither.
    `own`: only agents of this node, not those of others.
    """

    definition_id: str
    workspace: str | None = None
    profile: str | None = None
    node: str | None = None
    exact: bool = False
    homeless: bool = False
    harness: str | None = None
    model: str | None = None
    online: bool = False
    project_root: str | None = None
    own: bool = False


class Directory(Protocol):
    """The live agents that a caller may see, under all their names."""

    def find(self, wanted: Wanted, limit: int) -> tuple[Agent, ...]:
        """Return the first matching agents."""
        ...

    def count(self, wanted: Wanted) -> int:
        """Return the number of matches, for explanations only; counting may stop at a thousand."""
        ...

    def agent(self, agent_id: str) -> Agent | None:
        """Return an agent by id, live or retired."""
        ...

    def at_path(self, path: AgentPath) -> Agent | None:
        """Return an agent by path, live or retired."""
        ...

    def at_branch(self, project_root: str, branch: str) -> Agent | None: ...
    def of_project(self, project_root: str) -> Agent | None:
        """Return the base agent of a project directory."""
        ...

    def retired(self, wanted: Wanted) -> Agent | None:
        """Return the retired agent with this name."""
        ...

    def endpoints(self, agent_id: str) -> Sequence[Endpoint]: ...
    def endpoint(self, endpoint_id: str) -> Endpoint | None: ...
    def session(self, session_id: str) -> Session | None: ...
    def native_session(self, harness: str, native_id: str) -> Session | None: ...
    def alias(self, name: str) -> Alias | None: ...
    def aliases_of(self, agent_id: str, limit: int) -> Sequence[Alias]: ...
    def node(self, name: str) -> Node | None: ...
    def nodes_like(self, prefix: str, limit: int) -> Sequence[str]:
        """Return names of nodes that begin with this text."""
        ...

    def near(self, keys: Collection[str], limit: int) -> Sequence[str]:
        """Return definitions and aliases that share one of these keys (see `nearest.build_keys`)."""
        ...

    def prefixed(self, prefix: str, limit: int) -> Sequence[str]:
        """Return definitions and aliases that begin with this text."""
        ...

    def in_workspace(self, workspace: str, limit: int) -> Sequence[Agent]:
        """Return agents of any definition in the workspace with this name."""
        ...


class Instance(Record):
    """An instance of an agent: its endpoints with the same harness and model."""

    agent: Agent
    harness: str | None = None
    model: str | None = None
    endpoints: tuple[Endpoint, ...] = ()

    @property
    def address(self) -> Address | None:
        """The canonical address; None for agents that are addressed by their path."""
        agent = self.agent
        if agent.definition_id is None:
            return None
        base = (agent.definition_id, agent.workspace, agent.profile)
        return _build_address(*base, harness=self.harness, model=self.model, node=agent.node)[0]

    @property
    def canonical(self) -> str:
        agent = self.agent
        if agent.definition_id is None:
            return agent.id if agent.is_remote else str(agent.path)  # a path names an agent of this node
        base = (agent.definition_id, agent.workspace, agent.profile)
        return _build_address(*base, harness=self.harness, model=self.model, node=agent.node)[1]


@functools.lru_cache(maxsize=8192)
def _build_address(
    definition: str,
    workspace: str | None,
    profile: str | None,
    *,
    harness: str | None,
    model: str | None,
    node: str,
) -> tuple[Address, str]:
    """Return an address and its canonical text. Cached, because every step of every request needs it."""
    address = Address(
        definition_id=definition,
        workspace_qualifier=workspace,
        profile=profile,
        harness=harness,
        model=model,
        node=fold(node) or None,
    )
    return address, address.canonical


def get_instance(agent: Agent, endpoint: Endpoint | None) -> Instance:
    """Return the instance of one endpoint; without an endpoint, the agent with neither harness nor model."""
    return list_instances(agent, [endpoint] if endpoint else [])[0]


def is_instance(endpoint: Endpoint) -> bool:
    """Whether a name may resolve to this endpoint: not if stopped, failed or isolated for one caller."""
    ended = endpoint.state in (EndpointState.STOPPED, EndpointState.FAILED)
    return not ended and endpoint.isolated_for is None


def list_instances(agent: Agent, endpoints: Sequence[Endpoint]) -> tuple[Instance, ...]:
    """Return the instances of an agent; without endpoints, one with neither harness nor model."""
    grouped: dict[tuple[str | None, str | None], list[Endpoint]] = {}
    for endpoint in endpoints:
        model = fold(endpoint.model) or None if endpoint.model else None
        grouped.setdefault((endpoint.harness, model), []).append(endpoint)
    if not grouped:
        return (Instance(agent=agent),)
    return tuple(
        Instance(agent=agent, harness=harness, model=model, endpoints=tuple(members))
        for (harness, model), members in grouped.items()
    )
