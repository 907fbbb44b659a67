"""The programs that run agents: what they can do, what they are told, and what they tell."""

from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from typing import Protocol

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.model.agent import PermissionProfile
from scout.model.conversation import Attachment
from scout.model.delivery import InspectResult
from scout.model.permission import PermissionRequest
from scout.model.problems.session import Layer, Missing

__all__ = [
    "Accepted",
    "Asked",
    "Capabilities",
    "Completed",
    "Failed",
    "Harness",
    "HarnessEvent",
    "HumanAnswer",
    "Identified",
    "Limited",
    "McpAccess",
    "NeedsHuman",
    "Observed",
    "OpenedSession",
    "Other",
    "Probe",
    "Prompt",
    "RequestSettled",
    "Said",
    "SessionSpec",
    "Started",
    "TailLine",
    "Tailed",
    "ToolUse",
    "TurnProgress",
    "TurnUsage",
    "UsageKind",
]


class UsageKind(StrEnum):
    EXACT = "exact"
    ESTIMATED = "estimated"
    NONE = "none"


class Capabilities(Record):
    """What a harness can do. `native_profiles`: the permission profiles it enforces itself.

    `calls_back`: its program may call Scout, so it gets a token of its own for the run. `keeps_process`: its
    program goes on between turns, so that credential is the session's. `starts_programs`: it runs something
    in the agent's folder, which must be allowed. `needs_command`: the agent's config names the program.
    `live_wake`: a session that a person opened is reached while it is open. `calls_model`: a turn may
    cost money. `plain_body`: its program reads the message alone, and the contract is in its environment.
    `hidden`: it runs an agent only when it is named.
    """

    resume: bool = False
    fork: bool = False
    steer: bool = False
    permissions: bool = False
    usage: UsageKind = UsageKind.NONE
    live_wake: bool = False
    calls_back: bool = False
    keeps_process: bool = False
    starts_programs: bool = True
    needs_command: bool = False
    calls_model: bool = True
    plain_body: bool = False
    hidden: bool = False
    native_profiles: tuple[PermissionProfile, ...] = ()


class Probe(Record):
    """Whether a harness could run here now; `missing` and `hint` say what to do when not.

    `program`: what was looked for on the PATH of the daemon and was not there.
    `notes`: what its profiles do not enforce by themselves, a sentence each.
    """

    ready: bool
    version: str | None = None
    missing: Missing | None = None
    hint: str = ""
    program: str = ""
    notes: tuple[str, ...] = ()


class McpAccess(Record):
    """How the program of a session calls Scout: its own MCP address, and the session's credential."""

    url: str
    token: str


class SessionSpec(Record):
    """The session to start or go on with. `native_ids`: what the harness calls it, once that is known.

    `instructions`: the contract, which its model is told once: as its system prompt where the harness has
    one, else with its first prompt.
    `fork_of`: the native id of the session that it begins as a copy of. `door` and `environment` are for a
    program that is about to be started; one that runs already has its own. `idle`: seconds for which a
    program that is kept may be without a turn; none keeps it for good.
    """

    session_id: str
    agent_id: str
    address: str
    cwd: str | None = None
    model: str | None = None
    permission: PermissionProfile = PermissionProfile.WORKSPACE_WRITE
    command: tuple[str, ...] = ()
    native_ids: Mapping[str, str] = {}
    fork_of: str | None = None
    door: McpAccess | None = None
    environment: Mapping[str, str] = {}
    instructions: str = ""
    idle: float | None = 300.0


class Started(Record):
    """What the harness calls the session."""

    native_ids: Mapping[str, str] = {}
    pid: int | None = None
    pid_started: str | None = None
    model: str | None = None


class Prompt(Record):
    """One turn. The same delivery id again continues the same turn: nothing is started twice."""

    delivery_id: str
    text: str
    body: str
    environment: Mapping[str, str] = {}


class Asked(StrEnum):
    """What a program wants of a person."""

    PERMISSION = "permission"
    QUESTION = "question"


class HumanAnswer(Record):
    """A person's word: yes or no to a permission; to a question, a text or one of its options."""

    allow: bool
    text: str = ""


class HarnessEvent(Record, tag_field="type"):
    """What a harness tells while it works."""


class Accepted(HarnessEvent, tag="accepted"):
    """The program took the prompt."""

    pid: int | None = None
    pid_started: str | None = None


class Identified(HarnessEvent, tag="identified"):
    """What the program calls its session, and the model that answers."""

    native_ids: Mapping[str, str] = {}
    model: str | None = None


class TurnProgress(HarnessEvent, tag="progress"):
    """A sign of life."""

    text: str


class Said(HarnessEvent, tag="said"):
    """Text before the final one."""

    text: str


class ToolUse(HarnessEvent, tag="tool_use"):
    """The program used a tool."""

    name: str
    detail: str = ""


class NeedsHuman(HarnessEvent, tag="needs_human"):
    """The program waits for a person; `request` is how it knows the answer again. Told again after a restart.

    `observed`: it was only seen on a screen, so that what is answered is typed there. `wish`: what exactly
    a permission is asked for.
    """

    request: str
    question: str
    kind: Asked = Asked.PERMISSION
    detail: str = ""
    options: tuple[str, ...] = ()
    observed: bool = False
    wish: PermissionRequest | None = None


class RequestSettled(HarnessEvent, tag="settled"):
    """The program goes on: what it asked was answered, or needs no answer any more."""

    request: str


class TurnUsage(HarnessEvent, tag="spent"):
    """Tokens, as the program reports them or as they are estimated."""

    prompt_tokens: int
    completion_tokens: int
    model: str | None = None
    estimated: bool = True


class Other(HarnessEvent, tag="other"):
    """What has no meaning for Scout, by the program's own name for it. Its files keep the rest."""

    kind: str


class Completed(HarnessEvent, tag="completed"):
    """The turn is over; its final text is the reply, with files where it is too long for one."""

    text: str
    attachments: tuple[Attachment, ...] = ()


class Limited(HarnessEvent, tag="limited"):
    """The turn is over because of a usage limit of its provider; after `until` it can go on."""

    reason: str
    until: Time | None = None


class Failed(HarnessEvent, tag="failed"):
    """The turn is over without a reply. `again`: another attempt may work. `missing`: what a person repairs.

    `remedies`: what to do in place of another attempt.
    """

    layer: Layer
    reason: str
    log: str | None = None
    again: bool = False
    missing: Missing | None = None
    remedies: tuple[Remedy, ...] = ()


class Observed(Record, omit_defaults=True):
    """A session that a harness shows on this machine. `live`: its program runs now, under `pid`.

    `parent`: the session it belongs to, for a sub-agent or a member of a team. `source` is the file or
    socket it was seen in, `limits` what cannot be seen there.
    """

    harness: str
    native_id: str
    kind: str = "session"
    cwd: str | None = None
    title: str = ""
    state: str = ""
    live: bool = False
    pid: int | None = None
    parent: str | None = None
    updated_at: Time | None = None
    source: str
    limits: str = ""


class TailLine(Record, omit_defaults=True):
    """One thing of a transcript: who (`user`, `assistant`, `tool`, `system`) and what."""

    who: str
    text: str
    at: Time | None = None


class Tailed(Record):
    """Some of a transcript; `next` is where to go on. `source` is the harness's own file."""

    lines: tuple[TailLine, ...]
    next: int
    source: str


class OpenedSession(Record):
    """The command with which a person goes on with a session in a terminal of their own."""

    command: tuple[str, ...]
    cwd: str | None = None
    environment: Mapping[str, str] = {}


class Harness(Protocol):
    """A program that runs agents. It carries; it does not route."""

    @property
    def name(self) -> str: ...
    @property
    def capabilities(self) -> Capabilities: ...

    async def probe(self) -> Probe:
        """Whether it could run here now."""
        ...

    async def start(self, spec: SessionSpec) -> Started:
        """Begin a session, or go on with the one that it names; refused when it cannot."""
        ...

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        """Take up a session that exists: exactly this one, or a refusal. Nothing is started."""
        ...

    async def is_warm(self, session_id: str) -> bool:
        """Whether a program of this session runs, so that it needs no other credential."""
        ...

    def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        """Carry one turn; the stream ends with Completed, Limited or Failed."""
        ...

    async def steer(self, session_id: str, text: str) -> bool:
        """Say something into the turn that runs; whether the program took it."""
        ...

    async def respond(self, session_id: str, request: str, answer: HumanAnswer) -> bool:
        """Hand a person's answer to the program that waits for it; whether it still did."""
        ...

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        """Stop the turn, its children included; whether there was one."""
        ...

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        """Whether the program took this delivery, as far as can be seen after a restart."""
        ...

    async def stop(self, session_id: str) -> None:
        """End the session's program: gracefully, then by force, children included."""
        ...

    async def deliver_live(self, native_id: str, text: str) -> bool:
        """Say something into a session that a person has open, through its own door; whether it went in.

        That its model reads it is told by the session itself.
        """
        ...

    async def open(self, spec: SessionSpec) -> OpenedSession:
        """How a person goes on with this session in a terminal; refused when that cannot be done."""
        ...

    async def observe(self) -> list[Observed]:
        """The sessions that the harness shows on this machine, only looked at."""
        ...

    async def tail(self, spec: SessionSpec, after: int, limit: int) -> Tailed:
        """Some of the session's transcript, read from the harness's own file; negative: its last lines."""
        ...
