"""Requests about harness sessions (start, attach, inspect, open, stop) and about harnesses."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.model.agent import PermissionProfile
from scout.model.endpoint import ProgramState
from scout.model.problems.session import Missing
from scout.model.session import ProcessLoad, Session
from scout.protocol.parameters import At, Cursor, Limit, Seconds, Words, describe
from scout.protocol.request import Page, Request, Write

SessionId = Annotated[Words, describe("the session's id")]
_CONTROL = "the operator, the agent itself, or callers who control it"


class TokenUse(Record):
    """Tokens used by a session's turns; `estimated` if some are estimates."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    estimated: bool = False


class ListedSession(Session):
    """A session with its agent's address.

    `program_state`: what its program does, as far as that is known; none if it has ended, and for the past.
    `load`: what its processes use now, while they run; a list has it only with `live`.
    """

    address: str
    program_state: ProgramState | None = None
    load: ProcessLoad | None = None


class SessionView(ListedSession):
    """A session with its live state.

    `running`: its program runs. `log_tail`: the last lines of its program's stderr, for callers
    who may read its agent.
    """

    running: bool = False
    flight_id: str | None = None
    tokens: TokenUse = TokenUse()
    log_tail: tuple[str, ...] = ()


class ListSessions(Request[Page[ListedSession]]):
    """List harness sessions, newest first."""

    operation: ClassVar[str] = "session.list"
    route: ClassVar[str] = "GET /v1/sessions"
    permission: ClassVar[str] = "only what you may see"

    agent: Annotated[Words | None, describe("only this agent")] = None
    live: Annotated[bool, describe("only sessions that have not ended")] = False
    cursor: Cursor = None
    limit: Limit = None
    at: At = None


class GetSession(Request[SessionView]):
    """Show a session: state, harness, process, token use and last output."""

    operation: ClassVar[str] = "session.inspect"
    route: ClassVar[str] = "GET /v1/sessions/{sessionId}"
    words: ClassVar[tuple[str, ...]] = ("sessionId",)
    permission: ClassVar[str] = "what you may see; output: callers who may read its agent"

    session_id: SessionId


class StartSession(Write[SessionView]):
    """Start a harness session for an agent and print its id."""

    operation: ClassVar[str] = "session.start"
    route: ClassVar[str] = "POST /v1/sessions"
    status: ClassVar[int] = 201
    permission: ClassVar[str] = _CONTROL
    folder_field: ClassVar[str] = "cwd"

    agent: Annotated[Words, describe("the agent")]
    harness: Annotated[Words | None, describe("the harness; default: the agent's")] = None
    model: Annotated[Words | None, describe("the model to use")] = None
    permission_: Annotated[
        PermissionProfile | None, describe("permission profile: observe, review, workspace_write or trusted")
    ] = msgspec.field(name="permission", default=None)
    node: Annotated[Words | None, describe("the node; only this machine is supported")] = None
    cwd: Annotated[Words | None, describe("working directory; default: the agent's folder")] = None


class AttachSession(Write[SessionView]):
    """Attach an existing session, by its harness id or its Scout id. Never falls back to another."""

    operation: ClassVar[str] = "session.attach"
    route: ClassVar[str] = "POST /v1/sessions/attach"
    words: ClassVar[tuple[str, ...]] = ("session",)
    permission: ClassVar[str] = _CONTROL
    folder_field: ClassVar[str] = "cwd"

    session: Annotated[Words, describe("its harness id or its Scout id")]
    harness: Annotated[Words | None, describe("its harness; required if Scout does not know the session")] = (
        None
    )
    agent: Annotated[Words | None, describe("the agent that gets it; default: the folder's agent")] = None
    cwd: Annotated[Words | None, describe("working directory; default: the agent's folder")] = None


class StopSession(Write[SessionView]):
    """Stop a session and its processes. A flight running in it fails."""

    operation: ClassVar[str] = "session.stop"
    route: ClassVar[str] = "POST /v1/sessions/{sessionId}/stop"
    words: ClassVar[tuple[str, ...]] = ("sessionId",)
    permission: ClassVar[str] = _CONTROL

    session_id: SessionId
    reason: Annotated[Words, describe("why")] = ""


class ForkSession(Write[SessionView]):
    """Copy a session, if its harness supports that. Only you can reach the copy, by its id."""

    operation: ClassVar[str] = "session.fork"
    route: ClassVar[str] = "POST /v1/sessions/{sessionId}/fork"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("sessionId",)
    permission: ClassVar[str] = _CONTROL

    session_id: SessionId


class SessionOpened(Record):
    """The command that continues a session in a terminal."""

    session: Session
    command: tuple[str, ...]
    cwd: str | None = None
    environment: Mapping[str, str] = {}


class OpenSession(Write[SessionOpened]):
    """Open a session in a terminal. New asks wait until it is closed there."""

    operation: ClassVar[str] = "session.open"
    route: ClassVar[str] = "POST /v1/sessions/{sessionId}/open"
    words: ClassVar[tuple[str, ...]] = ("sessionId",)
    permission: ClassVar[str] = _CONTROL

    session_id: SessionId
    pid: Annotated[int, describe("the process that takes over; when it ends, the session is released")]
    pid_started: Annotated[Words, describe("when that process started, as the operating system reports it")]


class CloseSession(Write[Session]):
    """Release a session that was open in a terminal. Waiting asks continue."""

    operation: ClassVar[str] = "session.close"
    route: ClassVar[str] = "POST /v1/sessions/{sessionId}/close"
    words: ClassVar[tuple[str, ...]] = ("sessionId",)
    permission: ClassVar[str] = _CONTROL

    session_id: SessionId


# -- an agent's sessions -----------------------------------------------------------------------------


class Woken(Record):
    """`outcome`: started, attached (its session was resumed), or already live."""

    outcome: str
    address: str
    session_id: str | None
    harness: str | None = None


class Wake(Write[Woken]):
    """Make sure an agent has a live session and print its id."""

    operation: ClassVar[str] = "wake"
    route: ClassVar[str] = "POST /v1/agents/{address}/wake"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = _CONTROL

    address: Annotated[Words, describe("any address of the agent")]


class Interrupted(Record):
    """The flights that were cancelled, and whether a turn was running."""

    address: str
    interrupted: bool
    flights: tuple[str, ...] = ()
    reason: str = ""


class Interrupt(Write[Interrupted]):
    """Interrupt an agent's current turn. Its flight is cancelled."""

    operation: ClassVar[str] = "interrupt"
    route: ClassVar[str] = "POST /v1/agents/{address}/interrupt"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = _CONTROL

    address: Annotated[Words, describe("any address of the agent")]
    reason: Annotated[Words, describe("why")] = ""


# -- what can run them -------------------------------------------------------------------------------


class Verdict(StrEnum):
    """The result of one item of the compatibility checklist."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_SUPPORTED = "not supported"
    NOT_TRIED = "not tried"


class CheckState(StrEnum):
    """The state of a harness check."""

    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"


class CheckLine(Record):
    """One item of the compatibility checklist: its verdict and what was observed."""

    line: str
    verdict: Verdict
    because: str
    remedies: tuple[Remedy, ...] = ()


class Runtime(Record):
    """A harness: whether it is ready, what it needs, what it can do, and what it does not enforce.

    `program`: the program missing from the daemon's PATH. `check` and `checks`: the last check and its
    verdicts so far. `turns`: how many model turns a full check takes.
    """

    name: str
    ready: bool
    version: str | None = None
    missing: Missing | None = None
    hint: str = ""
    program: str = ""
    capabilities: Mapping[str, bool | str]
    native_profiles: tuple[PermissionProfile, ...] = ()
    notes: tuple[str, ...] = ()
    turns: int = 0
    check: CheckState | None = None
    checks: tuple[CheckLine, ...] = ()


class ListRuntimes(Request[Page[Runtime]]):
    """List installed harnesses, what each can do and what it still needs.

    With `check`, shows only that harness, with the verdicts of its last check. Starts nothing.
    """

    operation: ClassVar[str] = "runtimes"
    route: ClassVar[str] = "GET /v1/runtimes"

    check: Annotated[Words | None, describe("only this harness, with the verdicts of its check")] = None
    seen: Annotated[int | None, describe("with `wait`: how many verdicts you already have")] = None
    wait: Annotated[Seconds, describe("wait up to this many seconds for the next verdict, maximum 60")] = 0


class CheckRuntime(Write[Runtime]):
    """Check a harness: run the compatibility checklist in a temporary Scout.

    Returns at once; `GET /v1/runtimes?check=HARNESS` shows the verdicts. A running check is joined.
    Without `yes`, items that need model turns are skipped.
    """

    operation: ClassVar[str] = "runtimes.check"
    route: ClassVar[str] = "POST /v1/runtimes/{harness}/check"
    typed: ClassVar[tuple[str, ...]] = ("runtimes",)
    flags: ClassVar[dict[str, str]] = {"harness": "check"}
    permission: ClassVar[str] = "the operator"

    harness: Annotated[Words, describe("the harness to check")]
    yes: Annotated[bool, describe("allow the model turns that the check needs")] = False
    command: Annotated[
        tuple[Words, ...] | None,
        describe("the program and its arguments, for a harness that runs any program"),
    ] = None


class StopCheck(Write[Runtime]):
    """Stop a harness check and everything it started."""

    operation: ClassVar[str] = "runtimes.stop"
    route: ClassVar[str] = "POST /v1/runtimes/{harness}/check/stop"
    permission: ClassVar[str] = "the operator"

    harness: Annotated[Words, describe("the harness being checked")]
