"""What Scout needs from the world. The daemon hands the real ones in, a test may hand in its own."""

from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from typing import Protocol

from scout.base.record import Record
from scout.base.time import Time
from scout.model.agent import PermissionProfile
from scout.model.delivery import Found
from scout.model.session_problem import Layer, Missing

__all__ = [
    "Accepted",
    "Blobs",
    "Capabilities",
    "Clock",
    "Completed",
    "Failed",
    "Harness",
    "HarnessEvent",
    "Ids",
    "NeedsHuman",
    "Notice",
    "Place",
    "Places",
    "Probe",
    "Progress",
    "Prompt",
    "Router",
    "Said",
    "SessionSpec",
    "Sink",
    "Spent",
    "Started",
    "ToolUse",
    "UsageKind",
]


class Clock(Protocol):
    """Wall-clock time for records, monotonic time for timeouts."""

    def now(self) -> Time: ...
    def monotonic(self) -> float: ...


class Ids(Protocol):
    """Chance: ids for records, secrets for credentials."""

    def mint(self, prefix: str) -> str: ...
    def secret(self) -> str: ...


class Place(Record):
    """What the disk says about a directory. Paths are real and absolute.

    `project_root` is the nearest folder upward with a `.scout/project.toml`, else the git top level,
    else the directory. `definition` is the configured name or the folder's (of a linked work tree, its main
    repository's); `workspace` is the folded branch of a linked work tree and None elsewhere.
    """

    directory: str
    project_root: str
    definition: str
    parent_folder: str
    branch: str | None = None
    workspace: str | None = None
    repository: str | None = None
    configured_name: str | None = None
    harness: str | None = None
    model: str | None = None


class Places(Protocol):
    """The disk, as far as names depend on it."""

    def locate(self, directory: str, base: str | None = None) -> Place:
        """What a directory is; `base` is what a relative one is relative to. Refused when it is not there."""
        ...

    @property
    def home(self) -> str: ...
    @property
    def temporary(self) -> tuple[str, ...]: ...


class Blobs(Protocol):
    """Files by the SHA-256 of their bytes."""

    def put(self, data: bytes) -> str: ...
    def get(self, sha256: str) -> bytes | None: ...


# ----------------------------------------------------------------------------------------- people


class Notice(Record, omit_defaults=True):
    """What a person is told outside of Scout: one thing that needs them, or how many there are at once.

    `id` stays the same when it is told again, so that a receiver can know it.
    """

    id: str
    title: str
    text: str = ""
    kind: str = ""
    risk: str = ""
    agent: str = ""
    count: int = 1
    at: Time


class Sink(Protocol):
    """A way to a person's eyes. It knows nothing of what becomes of the thing."""

    @property
    def name(self) -> str: ...

    async def tell(self, notice: Notice) -> None:
        """Show it, or raise what went wrong: then it is tried again."""
        ...


class Router(Protocol):
    """Somebody who breaks a tie in a channel of several agents, where no rule names one of them."""

    async def suggest(self, text: str, candidates: tuple[str, ...]) -> str | None:
        """One of the addresses, or none; an `OSError` or a `TimeoutError` says that there is no answer."""
        ...


# ------------------------------------------------------------------------------------- harnesses


class UsageKind(StrEnum):
    EXACT = "exact"
    ESTIMATED = "estimated"
    NONE = "none"


class Capabilities(Record):
    """What a harness can do. `native_profiles`: the permission profiles it enforces itself.

    `calls_back`: its program may call Scout, so it gets a token of its own for the run. `starts_programs`:
    it runs something in the agent's folder, which must be allowed.
    """

    resume: bool = False
    fork: bool = False
    steer: bool = False
    permissions: bool = False
    usage: UsageKind = UsageKind.NONE
    live_wake: bool = False
    calls_back: bool = False
    starts_programs: bool = True
    native_profiles: tuple[PermissionProfile, ...] = ()


class Probe(Record):
    """Whether a harness could run here now; `missing` and `hint` say what to do when not."""

    ready: bool
    version: str | None = None
    missing: Missing | None = None
    hint: str = ""


class SessionSpec(Record):
    """The session to start. `environment` is all that its program gets beside the allow-list."""

    session_id: str
    agent_id: str
    address: str
    cwd: str | None = None
    model: str | None = None
    permission: PermissionProfile = PermissionProfile.WORKSPACE_WRITE
    command: tuple[str, ...] = ()


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


class HarnessEvent(Record, tag_field="type"):
    """What a harness tells while it works."""


class Accepted(HarnessEvent, tag="accepted"):
    """The program took the prompt."""

    pid: int | None = None
    pid_started: str | None = None


class Progress(HarnessEvent, tag="progress"):
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
    """The program waits for a person; `request` is how it knows the answer again."""

    request: str
    question: str
    options: tuple[str, ...] = ()


class Spent(HarnessEvent, tag="spent"):
    """Tokens, as the program reports them or as they are estimated."""

    prompt_tokens: int
    completion_tokens: int
    model: str | None = None
    estimated: bool = True


class Completed(HarnessEvent, tag="completed"):
    """The turn is over; its final text is the reply."""

    text: str


class Failed(HarnessEvent, tag="failed"):
    """The turn is over without a reply. `again`: another attempt may work."""

    layer: Layer
    reason: str
    log: str | None = None
    again: bool = False


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
        """Begin a session; refused when it cannot."""
        ...

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        """Take up a session that exists: exactly this one, or a refusal."""
        ...

    def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        """Carry one turn; the stream ends with Completed or Failed."""
        ...

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        """Stop the turn, its children included; whether there was one."""
        ...

    async def inspect(self, session_id: str, delivery_id: str) -> Found:
        """Whether the program took this delivery, as far as can be seen after a restart."""
        ...

    async def stop(self, session_id: str) -> None:
        """End the session: gracefully, then by force, children included."""
        ...
