"""What the resolver needs to look up. Every method is an indexed lookup: none may scan the fleet."""

import functools
from collections.abc import Collection, Sequence
from typing import Protocol

from scout.base.record import Record
from scout.identity.address import Address
from scout.identity.path import AgentPath
from scout.identity.segment import fold
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.endpoint import Endpoint, EndpointState
from scout.model.node import Node
from scout.model.session import Session


class Viewpoint(Record):
    """Who resolves. A caller outside every project and node has none of these."""

    agent_id: str | None = None
    session_id: str | None = None
    path: AgentPath | None = None
    user: str | None = None
    project_root: str | None = None
    root_branch: str | None = None
    node: str | None = None


OUTSIDE = Viewpoint()


class Wanted(Record):
    """Which agents are looked for. What is None matches anything, unless `exact`.

    `exact`: an absent workspace or profile means an agent without one. `homeless`: an agent without
    a node. `harness` and `model` match agents with such an instance, and agents with none at all.
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


class Directory(Protocol):
    """The live agents a caller may see, under every name they have."""

    def find(self, wanted: Wanted, limit: int) -> tuple[Agent, ...]:
        """The first agents that match."""
        ...

    def count(self, wanted: Wanted) -> int:
        """How many match; asked only to explain, and it may stop at a thousand."""
        ...

    def agent(self, agent_id: str) -> Agent | None:
        """By id, live or retired."""
        ...

    def at_path(self, path: AgentPath) -> Agent | None:
        """By path, live or retired."""
        ...

    def at_branch(self, project_root: str, branch: str) -> Agent | None: ...
    def of_project(self, project_root: str) -> Agent | None:
        """The base agent of a project directory."""
        ...

    def retired(self, wanted: Wanted) -> Agent | None:
        """A tombstone under this name."""
        ...

    def endpoints(self, agent_id: str) -> Sequence[Endpoint]: ...
    def endpoint(self, endpoint_id: str) -> Endpoint | None: ...
    def session(self, session_id: str) -> Session | None: ...
    def native_session(self, harness: str, native_id: str) -> Session | None: ...
    def alias(self, name: str) -> Alias | None: ...
    def aliases_of(self, agent_id: str, limit: int) -> Sequence[Alias]: ...
    def node(self, name: str) -> Node | None: ...
    def near(self, keys: Collection[str], limit: int) -> Sequence[str]:
        """Definitions and aliases that share one of these keys (see `nearest.keys_of`)."""
        ...

    def prefixed(self, prefix: str, limit: int) -> Sequence[str]:
        """Definitions and aliases that begin with this text."""
        ...

    def in_workspace(self, workspace: str, limit: int) -> Sequence[Agent]:
        """Agents of any definition in a workspace of this name."""
        ...


class Instance(Record):
    """One way an agent presents itself: its endpoints with the same harness and model."""

    agent: Agent
    harness: str | None = None
    model: str | None = None
    endpoints: tuple[Endpoint, ...] = ()

    @property
    def address(self) -> Address | None:
        """The canonical address; None for agents that are known by their path."""
        agent = self.agent
        if agent.definition_id is None:
            return None
        base = (agent.definition_id, agent.workspace, agent.profile)
        return _named(*base, harness=self.harness, model=self.model, node=agent.node)[0]

    @property
    def canonical(self) -> str:
        agent = self.agent
        if agent.definition_id is None:
            return str(agent.path)
        base = (agent.definition_id, agent.workspace, agent.profile)
        return _named(*base, harness=self.harness, model=self.model, node=agent.node)[1]


@functools.lru_cache(maxsize=8192)
def _named(
    definition: str,
    workspace: str | None,
    profile: str | None,
    *,
    harness: str | None,
    model: str | None,
    node: str,
) -> tuple[Address, str]:
    """An address and its canonical text; asked for at every step of every request."""
    address = Address(
        definition_id=definition,
        workspace_qualifier=workspace,
        profile=profile,
        harness=harness,
        model=model,
        node=fold(node) or None,
    )
    return address, address.canonical


def instance_of(agent: Agent, endpoint: Endpoint | None) -> Instance:
    """The instance that one endpoint is; without one, the agent with neither harness nor model."""
    return instances_of(agent, [endpoint] if endpoint else [])[0]


def is_instance(endpoint: Endpoint) -> bool:
    """Whether a name may mean this endpoint: not once it stopped or failed, nor if one ask alone has it."""
    ended = endpoint.state in (EndpointState.STOPPED, EndpointState.FAILED)
    return not ended and endpoint.isolated_for is None


def instances_of(agent: Agent, endpoints: Sequence[Endpoint]) -> tuple[Instance, ...]:
    """The instances of one agent; without endpoints it has one, with neither harness nor model."""
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
