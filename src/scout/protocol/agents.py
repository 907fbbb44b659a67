"""Requests about agents: list, register, resolve, configure and retire them."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET

from scout.base.record import Record
from scout.base.refusal import Candidate
from scout.base.time import Time
from scout.model.agent import Agent, PermissionProfile, ToolRole, WakePolicy
from scout.model.endpoint import Endpoint, ProgramState, Transport
from scout.model.reservation import Reservation
from scout.model.session import Session
from scout.model.status import AgentStatus
from scout.protocol.parameters import Address, At, Cursor, Limit, Revision, Seconds, Words, describe
from scout.protocol.request import Page, PastMoment, Request, Write


class AgentView(Agent):
    """An agent with its status, its names and its description.

    `program_state`: what its programs do, as far as that is known; none if no program is running.
    """

    status: AgentStatus
    address: str
    alias: str | None
    canonical: str
    minimal: str
    label: str
    description: str | None = None
    program_state: ProgramState | None = None


class AgentDetail(AgentView):
    """An agent with its endpoints, sessions, open work, aliases and active reservations.

    `notes`: what its owner should know. Unread messages are not known for the past.
    """

    endpoints: tuple[Endpoint, ...] = ()
    sessions: tuple[Session, ...] = ()
    open_flights: int = 0
    unread: int | None = 0
    aliases: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    moment: PastMoment = UNSET


class Identity(Record):
    """The identity behind your credential."""

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
    """Show who you are to Scout."""

    operation: ClassVar[str] = "whoami"
    route: ClassVar[str] = "GET /v1/whoami"


class Registered(Record):
    """The agent's record. `token` is shown once, for a new agent without a harness or command."""

    agent: AgentView
    address: str
    canonical: str
    minimal: str
    path: str
    created: bool
    token: str | None = None
    notes: tuple[str, ...] = ()


class RegisterAgent(Write[Registered]):
    """Register an agent. The same name from the same project returns the existing record."""

    operation: ClassVar[str] = "agent.register"
    route: ClassVar[str] = "POST /v1/agents"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("definitionId",)
    flags: ClassVar[dict[str, str]] = {"projectRoot": "project"}
    permission: ClassVar[str] = "the operator, or an agent with the role host"
    folder_field: ClassVar[str] = "project_root"
    settings_field: ClassVar[str] = "config"

    definition_id: Annotated[Words, describe("the agent's name, in lower case")]
    workspace: Annotated[Words | None, describe("work tree or branch")] = None
    profile: Annotated[Words | None, describe("persona")] = None
    project_root: Annotated[Words | None, describe("project directory; default: the current directory")] = (
        None
    )
    tool_role: Annotated[ToolRole | None, describe("tool set: tl, dev, worker or host")] = None
    harness: Annotated[Words | None, describe("the program that runs the agent")] = None
    model: Annotated[Words | None, describe("the model to use")] = None
    wake_policy: Annotated[WakePolicy | None, describe("manual, on_demand or keep_warm")] = None
    permission_profile: Annotated[PermissionProfile | None, describe("what the agent's program may do")] = (
        None
    )
    command: Annotated[
        tuple[Words, ...] | None, describe("the program and its arguments, for the harness `command`")
    ] = None
    transport: Annotated[
        Transport | None, describe("a2a for an agent of another system, which answers at a URL")
    ] = None
    url: Annotated[Words | None, describe("where such an agent answers: the URL above its card")] = None
    credential_file: Annotated[
        Words | None, describe("the file with the token for that URL; only you may be able to read it")
    ] = None
    config: Annotated[dict[str, Any], describe("additional agent settings")] = {}


class Who(Request[Page[AgentView]]):
    """List the agents you can see, newest first."""

    operation: ClassVar[str] = "who"
    route: ClassVar[str] = "GET /v1/agents"
    words: ClassVar[tuple[str, ...]] = ("query",)
    permission: ClassVar[str] = "only what you may see"
    folder_field: ClassVar[str] = "project_root"

    query: Annotated[Words | None, describe("beginning of a name, or words of a description")] = None
    project_root: Annotated[Words | None, describe("only agents of this project")] = None
    online: Annotated[bool, describe("only agents that are online")] = False
    retired: Annotated[bool, describe("include retired agents")] = False
    all: Annotated[bool, describe("include people and Scout's own agents")] = False
    all_nodes: Annotated[bool, describe("include agents of the other nodes of the mesh")] = False
    cursor: Cursor = None
    limit: Limit = None
    at: At = None


class ShowAgent(Request[AgentDetail]):
    """Show one agent."""

    operation: ClassVar[str] = "show"
    route: ClassVar[str] = "GET /v1/agents/{address}"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "only what you may see"

    address: Address
    at: At = None


class ConfigureAgent(Write[AgentDetail]):
    """Change an agent's settings, role or folder. Its name never changes."""

    operation: ClassVar[str] = "agent.config"
    route: ClassVar[str] = "PATCH /v1/agents/{address}"
    words: ClassVar[tuple[str, ...]] = ("address",)
    flags: ClassVar[dict[str, str]] = {"config": "set"}
    permission: ClassVar[str] = "callers who control the agent"
    folder_field: ClassVar[str] = "working_dir"
    settings_field: ClassVar[str] = "config"

    address: Address
    config: Annotated[dict[str, Any], describe("the settings to change")] = {}
    tool_role: Annotated[ToolRole | None, describe("tl, dev, worker or host")] = None
    working_dir: Annotated[Words | None, describe("the folder its program runs in")] = None
    revision: Revision = None


class RetireAgent(Write[AgentDetail]):
    """Retire an agent. Its name stays reserved."""

    operation: ClassVar[str] = "agent.retire"
    route: ClassVar[str] = "POST /v1/agents/{address}/retire"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "callers who control the agent"

    address: Address
    reason: Annotated[Words, describe("why")] = ""


class MovedAgent(Record, omit_defaults=True):
    """An agent that moved to another node. `arrived`: that node has it; otherwise it is on its way.

    `sessions` stay on this node. `unread`: messages that follow the agent.
    """

    agent_id: str
    address: str
    node: str
    arrived: bool
    sessions: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    work_items: int = 0
    questions: int = 0
    unread: int = 0
    notes: tuple[str, ...] = ()


class MoveAgent(Write[MovedAgent]):
    """Move an agent to another machine of yours, with its open work and unread messages.

    Its sessions stay here. Its address keeps working on this machine.
    """

    operation: ClassVar[str] = "agent.move"
    route: ClassVar[str] = "POST /v1/agents/{address}/move"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "the operator"

    address: Address
    to: Annotated[Words, describe("the machine that it moves to")]
    wait: Annotated[Seconds, describe("wait up to this many seconds for the other machine")] = 10


class ReviveAgent(Write[AgentDetail]):
    """Restore a retired agent with its name and messages. Its sessions, tokens and flights stay ended."""

    operation: ClassVar[str] = "agent.revive"
    route: ClassVar[str] = "POST /v1/agents/{address}/revive"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "callers who control the agent"

    address: Address


# -- A2A -------------------------------------------------------------------------------------------


class Publication(Record, omit_defaults=True):
    """A published agent: what its card tells, and where. `changed_at`: when that last changed."""

    address: str
    path: str
    name: str
    description: str = ""
    url: str
    card_url: str
    published_at: Time | None = None
    changed_at: Time
    notes: tuple[str, ...] = ()


class PublishAgent(Write[Publication]):
    """Publish an agent: clients of other systems that you grant `ask` reach it by A2A."""

    operation: ClassVar[str] = "agent.publish"
    route: ClassVar[str] = "POST /v1/agents/{address}/publish"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "the operator"

    address: Address


class UnpublishAgent(Write[Publication]):
    """Withdraw an agent from A2A. Its open tasks continue; no client reaches them any more."""

    operation: ClassVar[str] = "agent.unpublish"
    route: ClassVar[str] = "POST /v1/agents/{address}/unpublish"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "the operator"

    address: Address


class ShowPublication(Request[Publication]):
    """Show what the A2A card of an agent is made from. Refused for an agent that you may not ask."""

    operation: ClassVar[str] = "agent.publication"
    route: ClassVar[str] = "GET /v1/agents/{address}/publication"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "callers who may ask the agent"

    address: Address


# -- events, names and projects ---------------------------------------------------------------------


class Resolved(Record, omit_defaults=True):
    """The agent an address resolves to, and why."""

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
    """Show which agent an address resolves to, and why. Changes nothing."""

    operation: ClassVar[str] = "resolve"
    route: ClassVar[str] = "GET /v1/resolve"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "only what you may see"

    address: Address
    from_: Annotated[Words | None, describe("resolve from this directory or agent; default: yours")] = (
        msgspec.field(name="from", default=None)
    )


class Parsed(Record):
    """One result per text: its form and parts, or the refusal under `error`."""

    items: tuple[dict[str, Any], ...]


class Parse(Request[Parsed]):
    """Parse addresses without looking them up."""

    operation: ClassVar[str] = "parse"
    route: ClassVar[str] = "POST /v1/parse"
    words: ClassVar[tuple[str, ...]] = ("texts",)

    texts: Annotated[tuple[Words, ...], describe("the texts to parse")]
    mentions: Annotated[bool, describe("list the mentions in each text instead")] = False


class Moved(Record):
    """The agents whose folder changed."""

    agents: tuple[str, ...]
    at: Time


class MoveProject(Write[Moved]):
    """Reconnect a project that moved on disk with its agents."""

    operation: ClassVar[str] = "project.move"
    route: ClassVar[str] = "POST /v1/projects/move"
    words: ClassVar[tuple[str, ...]] = ("old", "new")
    permission: ClassVar[str] = "the operator"
    folder_field: ClassVar[str] = "new"

    old: Annotated[Words, describe("the old path")]
    new: Annotated[Words, describe("the new path")]
