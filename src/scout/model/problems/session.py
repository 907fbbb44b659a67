"""Refusals and failures of starting, reaching or waking a session."""

from enum import StrEnum
from typing import ClassVar

from scout.base.refusal import Diagnostic, Family
from scout.base.time import Time


class Layer(StrEnum):
    """The layer between Scout and the model where something failed."""

    BROKER = "broker"
    NODE = "node"
    ADAPTER = "adapter"
    PROCESS = "process"
    HARNESS = "harness"
    SESSION = "session"
    PROVIDER = "provider"


class Missing(StrEnum):
    """What a harness needs before it can run."""

    BINARY = "binary"
    LOGIN = "login"
    VERSION = "version"


class NoSession(Diagnostic, tag="no_session"):
    """The agent has no matching session.

    Nothing was started, because the call asked for an existing session. The remedies are the
    commands that start a session for the agent or attach a running one.
    """

    family: ClassVar[Family] = Family.UNREACHABLE
    status: ClassVar[int | None] = 409

    address: str
    harness: str | None = None
    session: str | None = None

    @property
    def message(self) -> str:
        which = f" {self.session}" if self.session else ""
        where = f" in {self.harness}" if self.harness else ""
        who = "Scout knows" if self.address == self.session else f"{self.address} has"
        return f"{who} no session{which}{where}: start or attach one"


class HarnessUnavailable(Diagnostic, tag="harness_unavailable"):
    """The harness cannot run on this machine: its program, its login or a version is missing.

    `hint` shows how to install it or log in, `program` is what is missing from the daemon's PATH;
    a daemon keeps the PATH of the shell that started it, until `scout restart`. `scout runtimes` shows
    every harness and what it needs; `scout doctor` checks them again. `known` lists the harnesses of this
    Scout if the name is none of them.
    """

    family: ClassVar[Family] = Family.UNREACHABLE

    harness: str
    missing: Missing
    hint: str = ""
    program: str = ""
    known: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        hint = f": {self.hint}" if self.hint else ""
        if self.known:
            return f"there is no harness '{self.harness}'{hint}; choose one of {', '.join(self.known)}"
        return f"{self.harness} is not available: its {self.missing} is missing{hint}"


class DirectoryNotAllowed(Diagnostic, tag="directory_not_allowed"):
    """Scout starts programs only below folders that the operator has allowed.

    The operator can allow the folder
    with the command in the remedies, or you can work in one of the allowed roots.
    """

    family: ClassVar[Family] = Family.CREDENTIAL

    directory: str
    roots: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        roots = ", ".join(self.roots) or "none configured"
        return f"{self.directory} is outside the allowed roots ({roots})"


class SessionNotAttachable(Diagnostic, tag="session_not_attachable"):
    """This session cannot be continued. Scout does not silently use another one.

    Its harness cannot resume it, it has ended, or another program is writing to it. Start a new
    session, fork it if the harness supports that, or wait until it is free.
    """

    family: ClassVar[Family] = Family.CONFLICT

    session_id: str
    layer: Layer
    reason: str
    log: str | None = None

    @property
    def message(self) -> str:
        return f"session {self.session_id} cannot be attached ({self.layer}): {self.reason}"


class SessionFailed(Diagnostic, tag="session_failed"):
    """The session failed while starting or running.

    `layer` is where it failed, `log` is its last output; `scout session inspect` shows both.
    Retry the flight with the command in the remedies.
    """

    family: ClassVar[Family] = Family.FAILURE
    status: ClassVar[int | None] = 502

    session_id: str
    layer: Layer
    reason: str
    log: str | None = None

    @property
    def message(self) -> str:
        log = f" (output in {self.log})" if self.log else ""
        return f"session {self.session_id} failed in the {self.layer}: {self.reason}{log}"


class SessionBusy(Diagnostic, tag="session_busy"):
    """The session is running another turn.

    A session runs one turn at a time. Wait, interrupt it, or ask without naming the session,
    so that the ask is queued or another session takes it.
    """

    family: ClassVar[Family] = Family.CONFLICT

    session_id: str
    layer: Layer = Layer.SESSION
    reason: str = "a turn is running"
    flight_id: str | None = None
    log: str | None = None

    @property
    def message(self) -> str:
        flight = f" (flight {self.flight_id})" if self.flight_id else ""
        return f"session {self.session_id} is busy: {self.reason}{flight}"


class WakeFailed(Diagnostic, tag="wake_failed"):
    """Scout tried to wake the target and gave up after a bounded number of attempts.

    `layer` and `reason` describe the last failure. Fix it (`scout doctor` helps), then retry the
    flight: a retry is a new flight of the same ask.
    """

    family: ClassVar[Family] = Family.UNREACHABLE

    target: str
    attempts: int
    layer: Layer
    reason: str
    log: str | None = None

    @property
    def message(self) -> str:
        often = "once" if self.attempts == 1 else f"{self.attempts} times, last"
        return f"waking {self.target} failed {often} in the {self.layer}: {self.reason}"


class WakeBudget(Diagnostic, tag="wake_budget"):
    """Agents have used up the hourly wake budget of this conversation.

    The budget stops agents from waking each other in a loop. It never holds a person's asks.
    The message is stored. The operator was notified and can raise `limits.wakesPerHour` with the
    command in the remedies, or wake the target by hand.
    """

    family: ClassVar[Family] = Family.LIMIT

    conversation_id: str
    used: int
    limit: int
    resets_at: Time | None = None
    name: str = ""

    @property
    def message(self) -> str:
        until = f" until {self.resets_at}" if self.resets_at is not None else ""
        where = self.name or self.conversation_id
        return f"agents used {self.used} of {self.limit} wakes per hour in {where}: none left{until}"


class Paused(Diagnostic, tag="paused"):
    """Scout is paused on this machine: no turns start and no agents are woken.

    Asks and messages are still accepted and wait. The operator ends the pause with
    `scout resume`; waiting turns then start in order.
    """

    family: ClassVar[Family] = Family.CONFLICT

    since: Time
    reason: str = ""

    @property
    def message(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"Scout has been paused since {self.since}{why}: nothing starts"


class AskLoop(Diagnostic, tag="ask_loop"):
    """The ask would exceed the maximum chain length or create a loop.

    `chain` lists the agents that wait for each other. If you need something from the agent that asked
    you, ask a question in that flight: a question to a waiting asker is not a loop.
    """

    family: ClassVar[Family] = Family.LIMIT
    status: ClassVar[int | None] = 409

    chain: tuple[str, ...]
    limit: int

    @property
    def message(self) -> str:
        return f"this ask would loop or exceed the chain {' → '.join(self.chain)} (maximum {self.limit})"


class EmptyReply(Diagnostic, tag="empty_reply"):
    """The target finished its turn without any text.

    The flight failed instead of completing with an empty answer. Check the session's output, then
    retry the flight.
    """

    family: ClassVar[Family] = Family.FAILURE
    status: ClassVar[int | None] = 422

    flight_id: str

    @property
    def message(self) -> str:
        return f"flight {self.flight_id} ended without a reply"
