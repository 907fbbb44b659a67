"""Agents of other nodes as records: an agent and its endpoints, built from what its node lists."""

from collections.abc import Iterable

from scout.base.record import Record
from scout.base.time import Time
from scout.identity.path import AgentPath
from scout.model.agent import Agent, AgentConfig, Lifecycle
from scout.model.endpoint import Endpoint, EndpointState, Transport, is_online
from scout.model.mesh.entry import AgentEntry, RemoteInstance
from scout.model.node import Node, NodeState
from scout.model.status import AgentStatus

_ENDED = frozenset({EndpointState.STOPPED, EndpointState.FAILED})


class RemoteAgent(Record):
    """An agent of another node. `listed`: its node lists it now."""

    agent: Agent
    endpoints: tuple[Endpoint, ...]
    status: AgentStatus
    node_id: str
    node_state: NodeState
    listed: bool
    revision: int


def scope_user(operator_key: str) -> str:
    """Return the user of another operator's agents: scoped by the operator's key, never by a login name."""
    return f"~{operator_key[:8]}"


def find_node_owner(node: Node, operator: str) -> str:
    """Return the user that a node's agents belong to: the operator here, or the one of a guest's key."""
    return operator if node.guest_key is None else scope_user(node.guest_key)


def build_remote_agent(
    entry: AgentEntry, *, node: str, owner: str, listed: bool, state: NodeState
) -> RemoteAgent:
    """Return the agent behind an entry as this node sees it; `node` is its node's name here."""
    live = listed and entry.lifecycle is not Lifecycle.RETIRED
    agent = Agent(
        id=entry.id,
        created_at=entry.updated_at,
        updated_at=entry.updated_at,
        owner=owner,
        path=scope_path(entry.path, owner),
        kind=entry.path.kind,
        definition_id=entry.definition_id,
        workspace=entry.workspace,
        profile=entry.profile,
        node=node,
        model_role=entry.path.model_role,
        lifecycle=entry.lifecycle if live else Lifecycle.RETIRED,
        config=AgentConfig(name=entry.name, description=entry.description),
        created_by=entry.node_id,
    )
    reachable = state is NodeState.ONLINE
    return RemoteAgent(
        agent=agent,
        endpoints=tuple(_build_endpoint(entry, one, node, reachable) for one in entry.instances)
        if live
        else (),
        status=_find_status(entry, live=live, reachable=reachable),
        node_id=entry.node_id,
        node_state=state,
        listed=live,
        revision=entry.revision,
    )


def scope_path(path: AgentPath, owner: str) -> AgentPath:
    """Return the path below the owner here. The user in an entry is a name on another machine."""
    user = path.user
    return path if user is None else AgentPath.parse(f"/{owner}{str(path)[len(user) + 1 :]}")


def _build_endpoint(entry: AgentEntry, instance: RemoteInstance, node: str, reachable: bool) -> Endpoint:
    active = EndpointState.IDLE if instance.online else EndpointState.REGISTERED
    return Endpoint(
        id=instance.endpoint_id,
        created_at=entry.updated_at,
        updated_at=entry.updated_at,
        agent_id=entry.id,
        node=node,
        harness=instance.harness,
        model=instance.model,
        transport=Transport.MESH,
        state=active if reachable else EndpointState.UNREACHABLE,
        # Its own node watches it, as this one watches the programs that it holds.
        held=instance.online,
    )


def _find_status(entry: AgentEntry, *, live: bool, reachable: bool) -> AgentStatus:
    if not live:
        return AgentStatus.OFFLINE
    return entry.status if reachable else AgentStatus.UNREACHABLE


def build_entry(
    agent: Agent,
    endpoints: Iterable[Endpoint],
    status: AgentStatus,
    *,
    node_id: str,
    revision: int,
    now: Time,
    within: float,
) -> AgentEntry:
    """Return what this node tells the others about one of its agents: no prompts, no folders."""
    usable = (one for one in endpoints if one.state not in _ENDED and one.isolated_for is None)
    return AgentEntry(
        id=agent.id,
        node_id=node_id,
        path=agent.path,
        definition_id=agent.definition_id,
        workspace=agent.workspace,
        profile=agent.profile,
        name=agent.config.name,
        description=agent.config.description,
        status=status,
        lifecycle=agent.lifecycle,
        instances=tuple(
            RemoteInstance(
                endpoint_id=one.id,
                harness=one.harness,
                model=one.model,
                online=is_online(one, now, within),
            )
            for one in usable
        ),
        revision=revision,
        updated_at=now,
    )
