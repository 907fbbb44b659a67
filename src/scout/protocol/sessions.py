"""Requests about harness sessions: begin, take up, look at, hand over and end them; and what can run them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.model.agent import PermissionProfile
from scout.model.problems.session import Missing
from scout.model.session import Session
from scout.protocol.parameters import Cursor, Limit, Seconds, Words, says
from scout.protocol.request import Page, Request, Write

__all__ = [
    "AttachSession",
    "CheckLine",
    "CheckRuntime",
    "CheckState",
    "CloseSession",
    "ForkSession",
    "GetSession",
    "Interrupt",
    "Interrupted",
    "ListRuntimes",
    "ListSessions",
    "ListedSession",
    "OpenSession",
    "Runtime",
    "SessionOpened",
    "SessionView",
    "StartSession",
    "StopCheck",
    "StopSession",
    "TokenUse",
    "Verdict",
    "Wake",
    "Woken",
]

SessionId = Annotated[Words, says("the session's id")]
_CONTROL = "the operator, the agent itself, or who controls it"


class TokenUse(Record):
    """What the turns of a session cost; `estimated`: some of it is a guess."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    estimated: bool = False


class ListedSession(Session):
    """A session, and how its agent is called."""

    address: str


class SessionView(ListedSession):
    """A session and what is known of it now.

    `running`: a program of it runs. `log_tail`: the last lines that its program wrote to stderr, for those
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
    permission: ClassVar[str] = "what you may see"

    agent: Annotated[Words | None, says("only this agent's")] = None
    live: Annotated[bool, says("only those that are not over")] = False
    cursor: Cursor = None
    limit: Limit = None


class GetSession(Request[SessionView]):
    """Show one session: its state, its harness, its process, what it cost and what it wrote last."""

    operation: ClassVar[str] = "session.inspect"
    route: ClassVar[str] = "GET /v1/sessions/{sessionId}"
    words: ClassVar[tuple[str, ...]] = ("sessionId",)
    permission: ClassVar[str] = "what you may see; its output, who may read its agent"

    session_id: SessionId


class StartSession(Write[SessionView]):
    """Start a harness session for an agent, and say which."""

    operation: ClassVar[str] = "session.start"
    route: ClassVar[str] = "POST /v1/sessions"
    status: ClassVar[int] = 201
    permission: ClassVar[str] = _CONTROL
    folder_field: ClassVar[str] = "cwd"

    agent: Annotated[Words, says("for whom")]
    harness: Annotated[Words | None, says("the program that runs it; the agent's own unless said")] = None
    model: Annotated[Words | None, says("the model to ask for")] = None
    permission_: Annotated[
        PermissionProfile | None, says("what its program may do: observe, review, workspace_write, trusted")
    ] = msgspec.field(name="permission", default=None)
    node: Annotated[Words | None, says("the machine; only this one can be named")] = None
    cwd: Annotated[Words | None, says("where it runs; the agent's folder unless said")] = None


class AttachSession(Write[SessionView]):
    """Take up a session that exists, by its own id or by Scout's: exactly this one, or a refusal."""

    operation: ClassVar[str] = "session.attach"
    route: ClassVar[str] = "POST /v1/sessions/attach"
    words: ClassVar[tuple[str, ...]] = ("session",)
    permission: ClassVar[str] = _CONTROL
    folder_field: ClassVar[str] = "cwd"

    session: Annotated[Words, says("what its harness calls it, or the id that Scout gave it")]
    harness: Annotated[Words | None, says("the program that it is a session of; needed for a new one")] = None
    agent: Annotated[Words | None, says("whose it becomes; the folder's agent unless said")] = None
    cwd: Annotated[Words | None, says("where it works; the agent's folder unless said")] = None


class StopSession(Write[SessionView]):
    """End a session and its program, children included; a flight that ran in it fails and says so."""

    operation: ClassVar[str] = "session.stop"
    route: ClassVar[str] = "POST /v1/sessions/{sessionId}/stop"
    words: ClassVar[tuple[str, ...]] = ("sessionId",)
    permission: ClassVar[str] = _CONTROL

    session_id: SessionId
    reason: Annotated[Words, says("why")] = ""


class ForkSession(Write[SessionView]):
    """Begin a session as a copy of another, where its harness can; only you reach it, by its id."""

    operation: ClassVar[str] = "session.fork"
    route: ClassVar[str] = "POST /v1/sessions/{sessionId}/fork"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("sessionId",)
    permission: ClassVar[str] = _CONTROL

    session_id: SessionId


class SessionOpened(Record):
    """The command with which a person goes on with a session in a terminal."""

    session: Session
    command: tuple[str, ...]
    cwd: str | None = None
    environment: Mapping[str, str] = {}


class OpenSession(Write[SessionOpened]):
    """Hand a session over to a person's terminal: what is asked of it waits until it is given back."""

    operation: ClassVar[str] = "session.open"
    route: ClassVar[str] = "POST /v1/sessions/{sessionId}/open"
    words: ClassVar[tuple[str, ...]] = ("sessionId",)
    permission: ClassVar[str] = _CONTROL

    session_id: SessionId
    pid: Annotated[int, says("the process that will be its program; with its end the session is given back")]
    pid_started: Annotated[Words, says("when that process began, as the system says it")]


class CloseSession(Write[Session]):
    """Give a session back that was open in a terminal: what waited for it goes on."""

    operation: ClassVar[str] = "session.close"
    route: ClassVar[str] = "POST /v1/sessions/{sessionId}/close"
    words: ClassVar[tuple[str, ...]] = ("sessionId",)
    permission: ClassVar[str] = _CONTROL

    session_id: SessionId


# -- an agent's sessions -----------------------------------------------------------------------------


class Woken(Record):
    """`outcome`: started, attached (its session runs again), or already live."""

    outcome: str
    address: str
    session_id: str | None
    harness: str | None = None


class Wake(Write[Woken]):
    """See to it that an agent has a live session, and say which: started, attached or already live."""

    operation: ClassVar[str] = "wake"
    route: ClassVar[str] = "POST /v1/agents/{address}/wake"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = _CONTROL

    address: Annotated[Words, says("any spelling of an agent")]


class Interrupted(Record):
    """What was stopped: the flights that are cancelled now, and whether there was a turn at all."""

    address: str
    interrupted: bool
    flights: tuple[str, ...] = ()
    reason: str = ""


class Interrupt(Write[Interrupted]):
    """Stop the turn that an agent is at; its flight is cancelled and says by whom."""

    operation: ClassVar[str] = "interrupt"
    route: ClassVar[str] = "POST /v1/agents/{address}/interrupt"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = _CONTROL

    address: Annotated[Words, says("any spelling of an agent")]
    reason: Annotated[Words, says("why")] = ""


# -- what can run them -------------------------------------------------------------------------------


class Verdict(StrEnum):
    """How a harness meets one promise of the checklist."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_SUPPORTED = "not supported"
    NOT_TRIED = "not tried"


class CheckState(StrEnum):
    """Whether a check of a harness still runs."""

    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"


class CheckLine(Record):
    """One promise of the compatibility checklist: its verdict, and what was seen when it was tried."""

    line: str
    verdict: Verdict
    because: str
    remedies: tuple[Remedy, ...] = ()


class Runtime(Record):
    """A harness: whether it is ready, what it lacks, what it can do, and what it does not enforce.

    `program`: what the daemon did not find on its PATH. `check` and `checks`: the last check of it, and its
    verdicts so far. `turns`: how many turns of a model a whole check takes.
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
    """List the harnesses of this machine, what each can do and what it lacks.

    With `check`, only that harness, with the verdicts of its last check. This starts nothing.
    """

    operation: ClassVar[str] = "runtimes"
    route: ClassVar[str] = "GET /v1/runtimes"

    check: Annotated[Words | None, says("only this one, with the verdicts of its check")] = None
    seen: Annotated[int | None, says("with `wait`: how many verdicts you have")] = None
    wait: Annotated[Seconds, says("answer after the next verdict or this many seconds, maximum 60")] = 0


class CheckRuntime(Write[Runtime]):
    """Check a harness: play each promise of the checklist in a Scout that exists only for the check.

    It answers at once; `GET /v1/runtimes?check=HARNESS` has the verdicts. A check that runs is joined.
    Without `yes`, what would take turns of a model is not tried.
    """

    operation: ClassVar[str] = "runtimes.check"
    route: ClassVar[str] = "POST /v1/runtimes/{harness}/check"
    typed: ClassVar[tuple[str, ...]] = ("runtimes",)
    flags: ClassVar[dict[str, str]] = {"harness": "check"}
    permission: ClassVar[str] = "the operator"

    harness: Annotated[Words, says("the harness to check")]
    yes: Annotated[bool, says("allow the turns of a model that the check takes")] = False
    command: Annotated[
        tuple[Words, ...] | None, says("for a harness that runs any program: the program and its arguments")
    ] = None


class StopCheck(Write[Runtime]):
    """Stop the check of a harness; everything that it started ends."""

    operation: ClassVar[str] = "runtimes.stop"
    route: ClassVar[str] = "POST /v1/runtimes/{harness}/check/stop"
    permission: ClassVar[str] = "the operator"

    harness: Annotated[Words, says("the harness that is checked")]
