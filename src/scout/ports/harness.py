"""The programs that run agents: what they can do, what they are given, and the events they report."""

from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from typing import Protocol

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.model.access.permission import PermissionRequest
from scout.model.agent import PermissionProfile
from scout.model.conversation import Attachment
from scout.model.delivery import InspectResult
from scout.model.endpoint import ProgramState, Transport
from scout.model.problems.session import Layer, Missing


class UsageKind(StrEnum):
    EXACT = "exact"
    ESTIMATED = "estimated"
    NONE = "none"


class Capabilities(Record):
    """What a harness can do. `native_profiles`: the permission profiles it enforces itself.

    `calls_back`: its program may call Scout, so each run gets a token. `keeps_process`: its program keeps
    running between turns, so the token belongs to the session. `starts_programs`: it runs a program in the
    agent's folder, which must be allowed. `needs_command`: the agent's config names the program.
    `live_wake`: a session that a person opened can be reached while it is open. `calls_model`: a turn may
    cost money. `plain_body`: the program reads the message alone, and the contract is in its environment.
    `hidden`: it is used only when it is named. `announces_edits`: it asks Scout before it edits a file.
    `provider`: whose models it calls, as OpenTelemetry names providers; empty if it depends.
    `transport`: how its endpoints are reached.
    `reads_screen`: what its program does is seen on a screen, also between turns.
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
    announces_edits: bool = False
    provider: str = ""
    transport: Transport = Transport.PROCESS
    reads_screen: bool = False
    native_profiles: tuple[PermissionProfile, ...] = ()


class Probe(Record):
    """Whether a harness can run here now; if not, `missing` and `hint` say what to do.

    `program`: the program that is not on the daemon's PATH.
    `notes`: what its profiles do not enforce by themselves, a sentence each.
    """

    ready: bool
    version: str | None = None
    missing: Missing | None = None
    hint: str = ""
    program: str = ""
    notes: tuple[str, ...] = ()


class McpAccess(Record):
    """How the program of a session calls Scout: its MCP address and the credential of the session."""

    url: str
    token: str


class SessionSpec(Record):
    """The session to start or resume. `native_ids`: what the harness calls it, once that is known.

    `instructions`: the contract, which the model is given once: as system prompt if the harness has one, else
    with the first prompt. `fork_of`: the native id of the session that this one starts as a copy of. `door`
    and `environment` are for a program that is about to be started; a running one already has them. `idle`:
    the idle timeout of a persistent program in seconds; none means that it is kept. `repository`: the project
    root whose linked work tree `cwd` is, if the agent was spawned there. `effort`: how much the model thinks,
    in the words of the harness; a harness without such a setting ignores it. `readable`: folders outside of
    its own that it may read. `url`: where an agent of another system answers, `credential_file`: the file
    with the token that is sent there.
    """

    session_id: str
    agent_id: str
    address: str
    cwd: str | None = None
    repository: str | None = None
    model: str | None = None
    effort: str | None = None
    permission: PermissionProfile = PermissionProfile.WORKSPACE_WRITE
    command: tuple[str, ...] = ()
    native_ids: Mapping[str, str] = {}
    fork_of: str | None = None
    door: McpAccess | None = None
    environment: Mapping[str, str] = {}
    instructions: str = ""
    idle: float | None = 300.0
    readable: tuple[str, ...] = ()
    url: str | None = None
    credential_file: str | None = None


class Started(Record):
    """What the harness calls the session."""

    native_ids: Mapping[str, str] = {}
    pid: int | None = None
    pid_started: str | None = None
    model: str | None = None


class Prompt(Record):
    """One turn. The same delivery id again continues the same turn; nothing is started twice."""

    delivery_id: str
    text: str
    body: str
    environment: Mapping[str, str] = {}


class Asked(StrEnum):
    """What a program wants of a person."""

    PERMISSION = "permission"
    QUESTION = "question"


class HumanAnswer(Record):
    """A person's answer: yes or no to a permission; a text or one of the options to a question."""

    allow: bool
    text: str = ""


class HarnessEvent(Record, tag_field="type"):
    """An event that a harness reports during a turn."""


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
    """The program waits for a person; the answer names `request`. Reported again after a restart.

    `observed`: the question was only seen on a screen, so the answer is typed there. `wish`: the exact
    permission.
    """

    request: str
    question: str
    kind: Asked = Asked.PERMISSION
    detail: str = ""
    options: tuple[str, ...] = ()
    observed: bool = False
    wish: PermissionRequest | None = None


class RequestSettled(HarnessEvent, tag="settled"):
    """The program continues: its request was answered, or no longer needs an answer."""

    request: str


class TurnUsage(HarnessEvent, tag="spent"):
    """Tokens, as the program reports them or as they are estimated."""

    prompt_tokens: int
    completion_tokens: int
    model: str | None = None
    estimated: bool = True


class Other(HarnessEvent, tag="other"):
    """An event without a meaning for Scout, under the program's name for it. The files keep its content."""

    kind: str


class Completed(HarnessEvent, tag="completed"):
    """The turn ended. Its final text is the reply, with files where the text is too long."""

    text: str
    attachments: tuple[Attachment, ...] = ()


class Limited(HarnessEvent, tag="limited"):
    """The turn ended because of a usage limit of the provider; it can be retried after `until`."""

    reason: str
    until: Time | None = None


class Failed(HarnessEvent, tag="failed"):
    """The turn ended without a reply. `again`: a retry may succeed. `missing`: what a person must set up.

    `remedies`: what to do instead of a retry.
    """

    layer: Layer
    reason: str
    log: str | None = None
    again: bool = False
    missing: Missing | None = None
    remedies: tuple[Remedy, ...] = ()


class Observed(Record, omit_defaults=True):
    """A session of a harness that was found on this machine. `live`: its program is running, under `pid`.

    `parent`: the session of a sub-agent or team member. `source`: the file or socket it was found in.
    `limits`: what cannot be seen there.
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
    """One entry of a transcript: who (`user`, `assistant`, `tool`, `system`) and the text."""

    who: str
    text: str
    at: Time | None = None


class ContextUse(Record):
    """How many tokens the context of a session holds; `window`: how many it can hold, if known."""

    tokens: int
    window: int | None = None


class Tailed(Record):
    """A part of a transcript; `next` is where the next part begins. `source` is the harness's own file.

    `context` is read with the last lines only.
    """

    lines: tuple[TailLine, ...]
    next: int
    source: str
    context: ContextUse | None = None


class ProgramSight(Record):
    """What the program of a session does. `ended`: how it ended, if it has."""

    state: ProgramState = ProgramState.UNKNOWN
    ended: str = ""


class Transcript(Record):
    """Where a harness writes the transcript of a session. `file` may contain `*`; `folder` holds it."""

    file: str
    folder: str


class OpenedSession(Record):
    """The command that resumes a session in a person's terminal. `joins`: it joins the running program."""

    command: tuple[str, ...]
    cwd: str | None = None
    environment: Mapping[str, str] = {}
    joins: bool = False


class Harness(Protocol):
    """A kind of program that runs agents. It carries turns; it does not route."""

    @property
    def name(self) -> str: ...
    @property
    def capabilities(self) -> Capabilities: ...

    async def probe(self) -> Probe:
        """Return whether it can run here now."""
        ...

    async def start(self, spec: SessionSpec) -> Started:
        """Start a session, or resume the one that is named. Refused if neither is possible."""
        ...

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        """Attach an existing session: exactly this one, or a refusal. Nothing is started."""
        ...

    async def is_warm(self, session_id: str) -> bool:
        """Whether a program of this session is running, so that it needs no new credential."""
        ...

    async def look(self, session_id: str) -> ProgramSight:
        """Return what the program of a session does now, if the harness reads its screen."""
        ...

    def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        """Run one turn; the stream ends with Completed, Limited or Failed."""
        ...

    async def steer(self, session_id: str, text: str) -> bool:
        """Send a text into the running turn; whether the program took it."""
        ...

    async def respond(self, session_id: str, request: str, answer: HumanAnswer) -> bool:
        """Pass a person's answer to the program; whether the program was still waiting for it."""
        ...

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        """Stop the turn and its child processes; whether the turn was running."""
        ...

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        """Return whether the program took this delivery, as far as its files show after a restart."""
        ...

    async def stop(self, session_id: str) -> None:
        """Stop the session's program and its child processes: gracefully, then by force."""
        ...

    async def deliver_live(self, native_id: str, text: str) -> bool:
        """Deliver a text into a session that a person has open; whether the session took it.

        The session itself reports that its model reads the text.
        """
        ...

    async def open(self, spec: SessionSpec) -> OpenedSession:
        """Return the command that resumes this session in a terminal. Refused if there is none."""
        ...

    def locate_transcript(self, native_id: str, cwd: str | None) -> Transcript | None:
        """Return where the transcript of a session lies; the disk is not read. None if there is none."""
        ...

    async def observe(self) -> list[Observed]:
        """List the sessions of this harness on this machine. Read-only."""
        ...

    async def tail(self, spec: SessionSpec, after: int, limit: int) -> Tailed:
        """Read a part of the session's own transcript; a negative `after` means the last lines."""
        ...
