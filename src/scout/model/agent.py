"""Agents: the record behind every name of an agent."""

import difflib
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET

from scout.base.codec import decode, to_plain
from scout.base.ids import derive_id
from scout.base.machine import Machine, Mutable, change_record, move_record
from scout.base.record import Record
from scout.base.refusal import BadRequest, Candidate, Refused
from scout.base.time import Time
from scout.identity.path import AgentPath, Kind, ModelRole
from scout.model.imported import Origin


class Lifecycle(StrEnum):
    ACTIVE = "active"
    SLEEPING = "sleeping"
    RETIRED = "retired"

    @classmethod
    def _missing_(cls, value: object) -> "Lifecycle | None":
        # Older stores use this word.
        return cls.RETIRED if value == "dead" else None


class AgentMove(StrEnum):
    SLEEP = "sleep"
    WAKE = "wake"
    RETIRE = "retire"
    REVIVE = "revive"


AGENT = Machine(
    "agent",
    Lifecycle.ACTIVE,
    {
        Lifecycle.ACTIVE: {AgentMove.SLEEP: Lifecycle.SLEEPING, AgentMove.RETIRE: Lifecycle.RETIRED},
        Lifecycle.SLEEPING: {AgentMove.WAKE: Lifecycle.ACTIVE, AgentMove.RETIRE: Lifecycle.RETIRED},
        Lifecycle.RETIRED: {AgentMove.REVIVE: Lifecycle.ACTIVE},
    },
    settled=frozenset({Lifecycle.RETIRED}),
)


class ToolRole(StrEnum):
    """The set of MCP tools an agent has; not to be confused with its model role."""

    TL = "tl"
    DEV = "dev"
    WORKER = "worker"
    HOST = "host"


class WakePolicy(StrEnum):
    MANUAL = "manual"
    ON_DEMAND = "on_demand"
    KEEP_WARM = "keep_warm"


class PermissionProfile(StrEnum):
    """The access a harness has to the machine, from least to most."""

    OBSERVE = "observe"
    REVIEW = "review"
    WORKSPACE_WRITE = "workspace_write"
    TRUSTED = "trusted"


class AgentConfig(Record):
    """The settings of an agent that its owner may change. `command`: the program of the `command` harness.

    `effort`: how much its model thinks, in the words of its harness. `url`: where an agent of another system
    answers, for the harness `a2a`; `credential_file`: the file with the token that is sent there.
    """

    name: str | None = None
    username: str | None = None
    description: str | None = None
    system_prompt: str | None = None
    workspace_dir: str | None = None
    app_id: str | None = None
    harness: str | None = None
    model: str | None = None
    command: tuple[str, ...] = ()
    wake_policy: WakePolicy = WakePolicy.ON_DEMAND
    permission_profile: PermissionProfile = PermissionProfile.WORKSPACE_WRITE
    effort: str | None = None
    url: str | None = None
    credential_file: str | None = None


def is_self_connected(config: AgentConfig) -> bool:
    """Whether Scout starts no program for the agent, because it has neither harness nor command."""
    return config.harness is None and not config.command


class Agent(Mutable):
    """One agent. Its path is its full name; `definition_id`, `workspace`, `profile` form its base handle.

    `moved_to`: the id of the node that it moved to; the record here is a forward to it. `moved_from`: the id
    of the node that it came from. `published_at`: since when agents of other systems reach it by A2A.
    """

    owner: str | None
    path: AgentPath
    kind: Kind
    parent_id: str | None = None
    definition_id: str | None = None
    workspace: str | None = None
    profile: str | None = None
    node: str
    project_root: str | None = None
    working_dir: str | None = None
    birth_branch: str | None = None
    tool_role: ToolRole = ToolRole.DEV
    model_role: ModelRole | None = None
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    next_sub_index: int = 0
    next_search_index: int = 0
    config: AgentConfig = AgentConfig()
    created_by: str
    # Volatile: the sweeper records the latest activity here; its next check is one idle timeout later.
    last_active_at: Time | None = None
    sleeping_since: Time | None = None
    moved_to: str | None = None
    moved_from: str | None = None
    imported_from: Origin = UNSET
    published_at: Time | None = None

    @property
    def is_remote(self) -> bool:
        """Whether the agent lives on another node: it moved there, or that node stands as its creator."""
        return self.moved_to is not None or self.created_by.startswith("nod_")

    @property
    def home_id(self) -> str:
        """The id of the node on which a remote agent lives."""
        return self.moved_to or self.created_by

    @property
    def is_person(self) -> bool:
        """Whether this is a user in person, and not a program. An agent behind a chat is a program."""
        return self.kind is Kind.CONNECTOR and self.path.is_person


# The fields an owner may change; the rest is identity or bookkeeping.
_CHANGEABLE = frozenset({"config", "model_role", "project_root", "tool_role", "working_dir"})


def create_agent(agent_id: str, path: AgentPath, now: Time, *, node: str, by: str, **more: Any) -> Agent:
    """Return a new agent; owner, kind and model role come from the path, its folder from the project."""
    read = {"owner": path.user, "kind": path.kind, "model_role": path.model_role}
    facts: dict[str, Any] = {**read, "working_dir": more.get("project_root"), "last_active_at": now, **more}
    return Agent(id=agent_id, path=path, node=node, created_by=by, created_at=now, updated_at=now, **facts)


def move_agent(agent: Agent, move: AgentMove, now: Time, *, seen: int | None = None) -> Agent:
    """Put an agent to sleep, wake, retire or revive it; `sleeping_since` is set while it sleeps."""
    since = now if move is AgentMove.SLEEP else None
    moved_agent = move_record(AGENT, agent, move, now, seen=seen, field="lifecycle", sleeping_since=since)
    return mark_active(moved_agent, now)


def leave_for_node(agent: Agent, node_id: str, node: str, now: Time) -> Agent:
    """Return the forward that stays behind when an agent moves to another node; no program runs for it."""
    moved = move_record(AGENT, agent, AgentMove.RETIRE, now, field="lifecycle", sleeping_since=None)
    return msgspec.structs.replace(moved, moved_to=node_id, node=node)


def return_from_move(agent: Agent, node: str, now: Time) -> Agent:
    """Return an agent whose move came to nothing: it lives on this node as before."""
    return move_record(
        AGENT, agent, AgentMove.REVIVE, now, field="lifecycle", moved_to=None, node=node, last_active_at=now
    )


def arrive_from_node(
    moved: Agent, node_id: str, now: Time, *, node: str, path: AgentPath, known: Agent | None
) -> Agent:
    """Return an agent that came from another node; `known` is the forward that it left here before.

    Its folders and its parent are those of the other machine.
    """
    return msgspec.structs.replace(
        moved,
        revision=max(moved.revision, known.revision if known else 0) + 1,
        updated_at=now,
        owner=path.user,
        path=path,
        node=node,
        lifecycle=Lifecycle.ACTIVE,
        parent_id=None,
        birth_branch=known.birth_branch if known else None,
        project_root=known.project_root if known else None,
        working_dir=known.working_dir if known else None,
        config=msgspec.structs.replace(
            moved.config, workspace_dir=known.config.workspace_dir if known else None
        ),
        last_active_at=now,
        sleeping_since=None,
        moved_to=None,
        moved_from=node_id,
    )


def update_agent(agent: Agent, now: Time, *, seen: int | None = None, **changes: Any) -> Agent:
    """Return the agent with another config, role or folder; its names never change."""
    for name in sorted(changes.keys() - _CHANGEABLE):
        problem = f"an agent's {name} cannot be changed; these can: {', '.join(sorted(_CHANGEABLE))}"
        raise Refused(BadRequest(problem=problem, field=name))
    return change_record("agent", agent, now, seen=seen, **changes)


def publish_agent(agent: Agent, now: Time) -> Agent:
    """Return the agent as reachable by A2A; one that is published stays so since then."""
    return agent if agent.published_at is not None else change_record("agent", agent, now, published_at=now)


def unpublish_agent(agent: Agent, now: Time) -> Agent:
    """Return the agent as no longer reachable by A2A."""
    return agent if agent.published_at is None else change_record("agent", agent, now, published_at=None)


def mark_active(agent: Agent, now: Time) -> Agent:
    """Return the agent with a new `last_active_at`, which is volatile: the revision stays."""
    return msgspec.structs.replace(agent, last_active_at=now)


def take_sub_index(agent: Agent, now: Time) -> tuple[Agent, int]:
    """Return the parent with its counter incremented, and the index of the new child."""
    index = agent.next_sub_index
    return change_record("agent", agent, now, next_sub_index=index + 1), index


def raise_sub_index(agent: Agent, taken: int, now: Time) -> Agent:
    """Return the parent with its counter above an index that a child has already."""
    return change_record("agent", agent, now, next_sub_index=max(agent.next_sub_index, taken + 1))


def take_search_index(agent: Agent, now: Time) -> tuple[Agent, int]:
    """Return the parent with its search counter incremented, and the index of the new child."""
    index = agent.next_search_index
    return change_record("agent", agent, now, next_search_index=index + 1), index


def derive_project_id(node: str, project_root: str) -> str:
    """Return the id of a project, derived from the node and the folder."""
    return derive_id("prj", node, project_root)


CONFIG_KEYS = tuple(field.encode_name for field in msgspec.structs.fields(AgentConfig))


def read_config(data: object, base: AgentConfig | None = None) -> AgentConfig:
    """Decode a config from outside, merged over `base`; refuse unknown keys and suggest the nearest."""
    fields = decode(data, dict[str, Any])
    for key in fields:
        _check_key(key)
    return decode({**to_plain(base or AgentConfig()), **fields}, AgentConfig)


def _check_key(key: str) -> None:
    if key == "connectorUserId":
        problem = "connectorUserId does not belong in a config: a connector key holds the external id"
        raise Refused(BadRequest(problem=problem, field=key))
    if key not in CONFIG_KEYS:
        nearest = difflib.get_close_matches(key, CONFIG_KEYS, n=3)
        problem = f"unknown config key '{key:.60}'; known keys: {', '.join(CONFIG_KEYS)}"
        candidates = tuple(Candidate(address=name) for name in nearest)
        raise Refused(BadRequest(problem=problem, field=f"{key:.60}", candidates=candidates))
