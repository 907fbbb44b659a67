"""A fleet read from a file: `{"instances": {key: dimensions…}, "aliases": {name: key}}`.

It answers which agent a name would resolve to. Instances with the same definition, workspace, profile
and node are endpoints of one agent. Besides the six dimensions an instance may set `online` (default
true), `preferred`, `retired`, `path`, `projectRoot` and `birthBranch`; the file may name a `caller`
(`projectRoot`, `rootBranch`, `node`, `user`, `agent`: a key) and `unreachableNodes`.
"""

from collections.abc import Mapping
from typing import Any

from scout.base.codec import decode
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.identity.address import Address, fold_segment
from scout.identity.grammar import FIELDS, parse_dimensions
from scout.identity.path import PATH_WORDS, AgentPath
from scout.model.agent import Agent, Lifecycle
from scout.model.alias import Alias, AliasTarget
from scout.model.endpoint import Endpoint, EndpointState, Transport
from scout.model.node import Node, NodeState
from scout.policy.directory import Instance, Viewpoint, list_instances
from scout.policy.resolver.fleet import Fleet

_NOW = Time(0)
_USER = "me"


class _Row(Record):
    online: bool = True
    preferred: bool = False
    retired: bool = False
    path: str | None = None
    project_root: str | None = None
    birth_branch: str | None = None


class _FileCaller(Record):
    agent: str | None = None
    user: str | None = None
    project_root: str | None = None
    root_branch: str | None = None
    node: str | None = None


class _File(Record):
    instances: dict[str, dict[str, Any]]
    aliases: dict[str, str] = {}
    caller: _FileCaller = _FileCaller()
    unreachable_nodes: tuple[str, ...] = ()


class FleetFile:
    """The fleet of a file, with the file's key for every instance."""

    def __init__(self, data: object) -> None:
        file = decode(data, _File)
        self.now = _NOW
        self.fleet = Fleet(_NOW)
        self.instances: dict[str, Instance] = {}
        self._keys: dict[str, str] = {}
        rows = {key: (self._read_address(key, row), decode(row, _Row)) for key, row in file.instances.items()}
        self._add_agents(rows)
        for name, key in file.aliases.items():
            self._add_alias(name, key)
        for name in file.unreachable_nodes:
            self._add_node(fold_segment(name))
        self.caller = self._read_caller(file.caller)

    def key_of(self, endpoint_id: str) -> str:
        """Return the file's key for an endpoint or agent."""
        return self._keys[endpoint_id]

    def _read_address(self, key: str, row: Mapping[str, object]) -> Address:
        try:
            return parse_dimensions({name: value for name, value in row.items() if name in FIELDS})
        except Refused as refusal:
            problem = f"instance '{key[:60]}': {refusal.diagnostic.message}"
            raise Refused(BadRequest(problem=problem, field=f"instances.{key[:60]}")) from None

    def _add_agents(self, rows: Mapping[str, tuple[Address, _Row]]) -> None:
        grouped: dict[Address, list[str]] = {}
        for key, (address, _) in rows.items():
            base = address.without("harness").without("model")
            grouped.setdefault(base, []).append(key)
        for base, keys in grouped.items():
            row = rows[keys[0]][1]
            agent = self._build_agent(keys[0], base, row)
            endpoints = [self._build_endpoint(agent, key, *rows[key]) for key in keys]
            self.fleet.add(agent, endpoints)
            by_dimensions = {(one.harness, one.model): one for one in list_instances(agent, endpoints)}
            for key, endpoint in zip(keys, endpoints, strict=True):
                self.instances[key] = by_dimensions[endpoint.harness, endpoint.model]

    def _build_agent(self, key: str, base: Address, row: _Row) -> Agent:
        path = AgentPath.parse(row.path) if row.path else self._choose_path(base)
        self._keys[key] = key
        return Agent(
            id=key,
            created_at=_NOW,
            updated_at=_NOW,
            owner=path.user,
            path=path,
            kind=path.kind,
            definition_id=base.definition_id,
            workspace=base.workspace_qualifier,
            profile=base.profile,
            node=base.node or "",
            project_root=row.project_root,
            birth_branch=row.birth_branch,
            lifecycle=Lifecycle.RETIRED if row.retired else Lifecycle.ACTIVE,
            created_by="file",
        )

    def _choose_path(self, base: Address) -> AgentPath:
        """Return a unique path for each agent, even if two nodes have agents with the same name."""
        parts = (base.definition_id, base.workspace_qualifier, base.profile)
        name = ".".join(part for part in parts if part)
        free = name not in PATH_WORDS and self.fleet.at_path(AgentPath.root(_USER, "agent", name)) is None
        return AgentPath.root(_USER, "agent", name if free else f"{name}~{base.node or 'here'}")

    def _build_endpoint(self, agent: Agent, key: str, address: Address, row: _Row) -> Endpoint:
        self._keys.setdefault(key, key)
        return Endpoint(
            id=key,
            created_at=_NOW,
            updated_at=_NOW,
            agent_id=agent.id,
            node=agent.node,
            harness=address.harness,
            model=address.model,
            transport=Transport.PULL,
            state=EndpointState.IDLE if row.online else EndpointState.REGISTERED,
            preferred=row.preferred,
            held=True,
        )

    def _add_alias(self, name: str, key: str) -> None:
        instance = self._get_instance(key, f"aliases.{name[:60]}")
        several = len(self.fleet.endpoints(instance.agent.id)) > 1
        target = AliasTarget(
            agent_id=instance.agent.id,
            harness=instance.harness if several else None,
            model=instance.model if several else None,
        )
        self.fleet.add_alias(
            Alias(
                id=f"alias:{name}",
                created_at=_NOW,
                updated_at=_NOW,
                owner=_USER,
                name=fold_segment(name),
                target=target,
                created_by="file",
            )
        )

    def _add_node(self, name: str) -> None:
        node = Node(id=name, created_at=_NOW, updated_at=_NOW, name=name, state=NodeState.UNREACHABLE)
        self.fleet.add_node(node)

    def _get_instance(self, key: str, field: str) -> Instance:
        if key not in self.instances:
            raise Refused(BadRequest(problem=f"no instance has the key '{key[:60]}'", field=field))
        return self.instances[key]

    def _read_caller(self, told: _FileCaller) -> Viewpoint:
        agent = self._get_instance(told.agent, "caller.agent").agent if told.agent else None
        return Viewpoint(
            agent_id=agent.id if agent else None,
            user=told.user or (agent.owner if agent else None),
            project_root=told.project_root or (agent.project_root if agent else None),
            root_branch=told.root_branch,
            node=told.node or (agent.node if agent else None),
        )


def read_fleet(data: object) -> FleetFile:
    """Read a fleet from JSON text, bytes or decoded data; the refusal of a bad file names the field."""
    return FleetFile(data)
