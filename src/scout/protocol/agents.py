"""Requests about agents: who there is, what a name means, how each is reached."""

from typing import Annotated, Any, ClassVar

import msgspec

from scout.base.record import Record
from scout.base.refusal import Candidate
from scout.base.time import Time
from scout.model.agent import Agent, PermissionProfile, ToolRole, WakePolicy
from scout.model.endpoint import Endpoint
from scout.model.events.event_types import AnyEvent
from scout.model.session import Session
from scout.model.status import AgentStatus
from scout.protocol.parameters import Address, Cursor, Limit, Revision, Words, says
from scout.protocol.request import Page, Request, Write

__all__ = [
    "AgentDetail",
    "AgentView",
    "ConfigureAgent",
    "Identity",
    "MoveProject",
    "Moved",
    "Parse",
    "Parsed",
    "ReadFeed",
    "RegisterAgent",
    "Registered",
    "Resolve",
    "Resolved",
    "RetireAgent",
    "ReviveAgent",
    "ShowAgent",
    "Who",
    "WhoAmI",
]


class AgentView(Agent):
    """An agent and what follows from its records: how it is, what it is called, what it is for."""

    status: AgentStatus
    address: str
    alias: str | None
    canonical: str
    minimal: str
    label: str
    description: str | None = None


class AgentDetail(AgentView):
    """An agent with the ways to reach it."""

    endpoints: tuple[Endpoint, ...] = ()
    sessions: tuple[Session, ...] = ()
    open_flights: int = 0
    unread: int = 0
    aliases: tuple[str, ...] = ()


class Identity(Record):
    """Whom your credential stands for."""

    kind: str
    token_id: str
    sender: str | None
    agent_id: str | None
    address: str | None
    alias: str | None
    canonical: str | None
    minimal: str | None
    path: str | None
    birth_branch: str | None
    role: str | None
    session_id: str | None
    user: str | None
    project: str | None
    node: str
    url: str
    version: str


class WhoAmI(Request[Identity]):
    """Say who you are to Scout."""

    operation: ClassVar[str] = "whoami"
    route: ClassVar[str] = "GET /v1/whoami"


class Registered(Record):
    """The agent's record. `token`: once, for a new agent without a harness and a command."""

    agent: AgentView
    address: str
    canonical: str
    minimal: str
    path: str
    created: bool
    token: str | None = None
    notes: tuple[str, ...] = ()


class RegisterAgent(Write[Registered]):
    """Enter an agent in the directory; the same identity from the same project is the same record."""

    operation: ClassVar[str] = "agent.register"
    route: ClassVar[str] = "POST /v1/agents"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("definitionId",)
    flags: ClassVar[dict[str, str]] = {"projectRoot": "project"}
    permission: ClassVar[str] = "the operator, or an agent with the role host"
    folder_field: ClassVar[str] = "project_root"
    settings_field: ClassVar[str] = "config"

    definition_id: Annotated[Words, says("its name; folded to lower case")]
    workspace: Annotated[Words | None, says("which work tree or branch of it")] = None
    profile: Annotated[Words | None, says("which persona of it")] = None
    project_root: Annotated[Words | None, says("the project's directory; yours unless said")] = None
    tool_role: Annotated[ToolRole | None, says("which tools it has: tl, dev, worker or host")] = None
    harness: Annotated[Words | None, says("the program that runs it")] = None
    model: Annotated[Words | None, says("the model it asks for")] = None
    wake_policy: Annotated[WakePolicy | None, says("manual, on_demand or keep_warm")] = None
    permission_profile: Annotated[PermissionProfile | None, says("what its program may do")] = None
    command: Annotated[
        tuple[Words, ...] | None, says("for the harness `command`: the program and its arguments")
    ] = None
    config: Annotated[dict[str, Any], says("further settings of the agent")] = {}


class Who(Request[Page[AgentView]]):
    """List the agents you can see, newest first."""

    operation: ClassVar[str] = "who"
    route: ClassVar[str] = "GET /v1/agents"
    words: ClassVar[tuple[str, ...]] = ("query",)
    permission: ClassVar[str] = "what you may see"
    folder_field: ClassVar[str] = "project_root"

    query: Annotated[Words | None, says("names that begin like this, or words of a description")] = None
    project_root: Annotated[Words | None, says("only this project's")] = None
    online: Annotated[bool, says("only those that can be reached at once")] = False
    retired: Annotated[bool, says("the retired ones too")] = False
    all: Annotated[bool, says("people and Scout's own parts too")] = False
    cursor: Cursor = None
    limit: Limit = None


class ShowAgent(Request[AgentDetail]):
    """Show one agent."""

    operation: ClassVar[str] = "show"
    route: ClassVar[str] = "GET /v1/agents/{address}"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "what you may see"

    address: Address


class ConfigureAgent(Write[AgentDetail]):
    """Change an agent's settings, role or folder; what it is called never changes."""

    operation: ClassVar[str] = "agent.config"
    route: ClassVar[str] = "PATCH /v1/agents/{address}"
    words: ClassVar[tuple[str, ...]] = ("address",)
    flags: ClassVar[dict[str, str]] = {"config": "set"}
    permission: ClassVar[str] = "who controls it"
    folder_field: ClassVar[str] = "working_dir"
    settings_field: ClassVar[str] = "config"

    address: Address
    config: Annotated[dict[str, Any], says("the settings that change")] = {}
    tool_role: Annotated[ToolRole | None, says("tl, dev, worker or host")] = None
    working_dir: Annotated[Words | None, says("where its program runs")] = None
    revision: Revision = None


class RetireAgent(Write[AgentDetail]):
    """Take an agent out of service; its name stays its own."""

    operation: ClassVar[str] = "agent.retire"
    route: ClassVar[str] = "POST /v1/agents/{address}/retire"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "who controls it"

    address: Address
    reason: Annotated[Words, says("why")] = ""


class ReviveAgent(Write[AgentDetail]):
    """Bring a retired agent back with its name and messages; its sessions, tokens and flights stay ended."""

    operation: ClassVar[str] = "agent.revive"
    route: ClassVar[str] = "POST /v1/agents/{address}/revive"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "who controls it"

    address: Address


class ReadFeed(Request[Page[AnyEvent]]):
    """Read what concerned one agent: its messages, deliveries, flights and errors, oldest first."""

    operation: ClassVar[str] = "feed"
    route: ClassVar[str] = "GET /v1/agents/{address}/feed"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "who may read it"

    address: Address
    after: Annotated[int, says("only events after this number")] = 0
    limit: Limit = None


class Resolved(Record, omit_defaults=True):
    """What an address means for you now, and why."""

    agent_id: str
    endpoint_id: str | None = None
    session_id: str | None = None
    harness: str | None = None
    address: str
    canonical: str
    minimal: str
    path: str
    birth_branch: str | None = None
    rule: str
    action: str
    steps: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    alias_id: str | None = None
    alias_revision: int | None = None
    description: str | None = None


class Resolve(Request[Resolved]):
    """Say what an address means, and why. Nothing is changed."""

    operation: ClassVar[str] = "resolve"
    route: ClassVar[str] = "GET /v1/resolve"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "what you may see"

    address: Address
    from_: Annotated[Words | None, says("the directory or agent to look from; yours unless said")] = (
        msgspec.field(name="from", default=None)
    )


class Parsed(Record):
    """One answer per text: its form and parts, or the refusal under `error`."""

    items: tuple[dict[str, Any], ...]


class Parse(Request[Parsed]):
    """Read addresses without a directory."""

    operation: ClassVar[str] = "parse"
    route: ClassVar[str] = "POST /v1/parse"
    words: ClassVar[tuple[str, ...]] = ("texts",)

    texts: Annotated[tuple[Words, ...], says("the texts to read")]
    mentions: Annotated[bool, says("find the mentions of each text instead")] = False


class Moved(Record):
    """Which agents have another folder now."""

    agents: tuple[str, ...]
    at: Time


class MoveProject(Write[Moved]):
    """Give a project that was moved on disk its agents back."""

    operation: ClassVar[str] = "project.move"
    route: ClassVar[str] = "POST /v1/projects/move"
    words: ClassVar[tuple[str, ...]] = ("old", "new")
    permission: ClassVar[str] = "the operator"
    folder_field: ClassVar[str] = "new"

    old: Annotated[Words, says("where it was")]
    new: Annotated[Words, says("where it is")]
