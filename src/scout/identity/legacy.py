"""Legacy descriptors: ten variants of an agent's identity, converted one way into paths and config.

The conversion returns a plan: it changes nothing, and the same input gives the same plan. Agents that
were converted before keep their paths (`existing`), so it can be repeated as the source grows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from scout.base.record import Record
from scout.base.refusal import BadRequest, Diagnostic, Refused
from scout.base.time import Time
from scout.identity.address import fold_segment
from scout.identity.path import AgentPath, Kind, is_segment
from scout.identity.problem import build_malformed

CONFIG_KEYS = ("name", "username", "description", "systemPrompt", "workspaceDir", "appId")


class LegacyAgent(Record):
    """A row of the old store: the agent's user, its descriptor, and its last change."""

    id: str
    user_id: str
    descriptor: dict[str, Any]
    updated_at: Time


class Converted(Record):
    id: str
    path: AgentPath
    config: dict[str, str]


class Duplicate(Record):
    """An agent that is skipped because a newer agent has its path."""

    id: str
    path: AgentPath
    kept_id: str


class Rejected(Record):
    id: str
    reason: str
    code: str


class Conversion(Record):
    """The whole plan. Apps are deferred until there is a model for them."""

    converted: tuple[Converted, ...]
    duplicates: tuple[Duplicate, ...]
    deferred: tuple[str, ...]
    rejected: tuple[Rejected, ...]


def convert(
    agents: Sequence[LegacyAgent],
    users_by_key: Mapping[str, str],
    existing: Mapping[str, AgentPath] | None = None,
) -> Conversion:
    """Plan the paths of legacy agents. `users_by_key` maps connector keys such as `telegram:123` to users."""
    return _Plan(agents, users_by_key, existing or {}).build()


class _Plan:
    def __init__(
        self,
        agents: Sequence[LegacyAgent],
        users_by_key: Mapping[str, str],
        existing: Mapping[str, AgentPath],
    ) -> None:
        # Newest first: the first agent to claim a path is kept.
        self.agents = sorted(agents, key=lambda agent: (-agent.updated_at, agent.id))
        self.users_by_key = users_by_key
        self.paths: dict[str, AgentPath] = dict(existing)
        self.holders: dict[AgentPath, str] = {}
        self.next_index: dict[tuple[AgentPath | None, Kind], int] = {}
        for agent_id, path in existing.items():
            self._hold(path, agent_id)
        self.converted: dict[str, Converted] = {}
        self.duplicates: list[Duplicate] = []
        self.deferred: list[str] = []
        self.rejected: list[Rejected] = []

    def build(self) -> Conversion:
        roots = [agent for agent in self.agents if not _get_parent_id(agent)]
        for agent in roots:
            self._take(agent)
        waiting = sorted((agent for agent in self.agents if _get_parent_id(agent)), key=_get_sort_key)
        while ready := [agent for agent in waiting if _get_parent_id(agent) in self.paths]:
            waiting = [agent for agent in waiting if _get_parent_id(agent) not in self.paths]
            for agent in ready:
                self._take(agent)
        for agent in waiting:
            self._reject(agent.id, BadRequest(problem=f"its parent '{_get_parent_id(agent)}' is unknown"))
        return Conversion(
            converted=tuple(self.converted.values()),
            duplicates=tuple(self.duplicates),
            deferred=tuple(self.deferred),
            rejected=tuple(self.rejected),
        )

    def _take(self, agent: LegacyAgent) -> None:
        if agent.descriptor.get("type") == "app":
            self.deferred.append(agent.id)
            return
        try:
            config = _read_config(agent.descriptor)
            path = self.paths.get(agent.id) or self._path(agent)
        except Refused as refusal:
            self._reject(agent.id, refusal.diagnostic)
            return
        holder = self._hold(path, agent.id)
        if holder != agent.id or agent.id in self.converted:
            self.duplicates.append(Duplicate(id=agent.id, path=path, kept_id=holder))
            return
        self.paths[agent.id] = path
        self.converted[agent.id] = Converted(id=agent.id, path=path, config=config)

    def _reject(self, agent_id: str, diagnostic: Diagnostic) -> None:
        self.rejected.append(Rejected(id=agent_id, reason=diagnostic.message, code=diagnostic.code))

    def _path(self, agent: LegacyAgent) -> AgentPath:
        descriptor = agent.descriptor
        match descriptor.get("type"):
            case "user":
                return self._connector_path(descriptor)
            case "permanent":
                return AgentPath.root(agent.user_id, "agent", _fold_name(_require_text(descriptor, "name")))
            case "cron" | "task" | "subuser" as kind:
                return AgentPath.root(agent.user_id, kind, _fold_name(_require_text(descriptor, "id")))
            case "system":
                return AgentPath.root("system", _fold_name(_require_text(descriptor, "tag")))
            case "memory-agent":
                return self.paths[_get_parent_id(agent)].memory()
            case "subagent":
                parent = self.paths[_get_parent_id(agent)]
                return parent.sub(self._index(parent, Kind.SUB))
            case "memory-search":
                parent = self.paths[_get_parent_id(agent)]
                return parent.search(self._index(parent, Kind.SEARCH))
            case other:
                raise build_malformed(
                    str(other), 0, f"the unknown descriptor type {other!r:.60}", "one of the ten"
                )

    def _connector_path(self, descriptor: Mapping[str, Any]) -> AgentPath:
        connector = _require_text(descriptor, "connector")
        external = (str(descriptor[name]) for name in ("channelId", "userId") if descriptor.get(name))
        keys = [f"{connector}:{one}" for one in external]
        user = next((self.users_by_key[key] for key in keys if key in self.users_by_key), None)
        if user is None:
            raise Refused(
                BadRequest(problem=f"no user has the connector key {' or '.join(keys) or connector}")
            )
        return AgentPath.root(user, connector)

    def _hold(self, path: AgentPath, agent_id: str) -> str:
        """Return the id of the agent that holds the path: this agent, or the first to claim it."""
        if path.kind in (Kind.SUB, Kind.SEARCH):
            following = int(path.segments[-1]) + 1
            self.next_index[path.parent, path.kind] = max(following, self._index(path.parent, path.kind))
        return self.holders.setdefault(path, agent_id)

    def _index(self, parent: AgentPath | None, kind: Kind) -> int:
        return self.next_index.get((parent, kind), 0)


def _get_parent_id(agent: LegacyAgent) -> str:
    """Return the id of the parent agent, or '' for a root."""
    match agent.descriptor.get("type"):
        case "subagent" | "memory-search":
            return str(agent.descriptor.get("parentAgentId") or "?")
        case "memory-agent":
            return str(agent.descriptor.get("id") or "?")
        case _:
            return ""


def _get_sort_key(agent: LegacyAgent) -> str:
    """Return the sort key: children get indexes in the order of their ids; memories stay newest first."""
    return "" if agent.descriptor.get("type") == "memory-agent" else agent.id


def _fold_name(text: str) -> str:
    return text if is_segment(text) else fold_segment(text)


def _require_text(descriptor: Mapping[str, Any], field: str) -> str:
    value = descriptor.get(field)
    if not isinstance(value, str) or not value:
        raise Refused(BadRequest(problem="expected a text", field=field))
    return value


def _read_config(descriptor: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: _require_text(descriptor, key) for key in CONFIG_KEYS if descriptor.get(key) not in (None, "")
    }
