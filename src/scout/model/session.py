"""A concrete harness conversation, process or thread. Provider ids live only in `native_ids`."""

from enum import StrEnum

import msgspec

from scout.base.machine import Machine
from scout.base.record import Record
from scout.base.refusal import Refused, Remedy
from scout.base.time import Time
from scout.model.agent import PermissionProfile
from scout.model.change import Mutable, changed, moved
from scout.model.problems.session import Layer, SessionNotAttachable


class SessionState(StrEnum):
    STARTING = "starting"
    LIVE = "live"
    ENDED = "ended"
    LOST = "lost"


class SessionMove(StrEnum):
    READY = "ready"
    END = "end"
    LOSE = "lose"
    RESUME = "resume"


SESSION = Machine(
    "session",
    SessionState.STARTING,
    {
        SessionState.STARTING: {
            SessionMove.READY: SessionState.LIVE,
            SessionMove.END: SessionState.ENDED,
            SessionMove.LOSE: SessionState.LOST,
        },
        SessionState.LIVE: {
            SessionMove.END: SessionState.ENDED,
            SessionMove.LOSE: SessionState.LOST,
        },
        SessionState.ENDED: {SessionMove.RESUME: SessionState.STARTING},
        SessionState.LOST: {
            SessionMove.RESUME: SessionState.STARTING,
            SessionMove.END: SessionState.ENDED,
        },
    },
    settled=frozenset({SessionState.ENDED}),
)


class SessionClass(StrEnum):
    """What can be done with a session when nothing runs in it."""

    RESUMABLE = "resumable"
    REACHABILITY_UNKNOWN = "reachability_unknown"
    NOT_ATTACHABLE = "not_attachable"
    TERMINAL = "terminal"


class SessionOrigin(StrEnum):
    """Scout started it, Scout attached to it, or a person's own session enrolled itself."""

    STARTED = "started"
    ATTACHED = "attached"
    ENROLLED = "enrolled"


class Terminal(Record):
    """The process of a person's terminal that has a session open, and whose it is."""

    pid: int
    started: str
    by: str
    since: Time


class LiveTurn(Record):
    """The turn that a session of a person is in. `alone_for`: the flight whose ask alone began it.

    `reminded`: the flights whose answer the agent was already asked for.
    """

    alone_for: str | None = None
    reminded: tuple[str, ...] = ()


class Session(Mutable):
    """One session of one agent on one node in one harness; none of the four ever changes.

    `contract_at`: when its program first took a turn of Scout's, and with it the contract.
    `terminal`: a person has it open in a terminal of theirs, and is its only writer.
    """

    agent_id: str
    node: str
    harness: str
    state: SessionState = SessionState.STARTING
    session_class: SessionClass = msgspec.field(name="class", default=SessionClass.RESUMABLE)
    origin: SessionOrigin = SessionOrigin.STARTED
    # The credential of the host that enrolled it: it alone reports for it.
    enrolled_by: str | None = None
    native_ids: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    pid: int | None = None
    # A pid is reused by the system; with its start time it names one process.
    pid_started: str | None = None
    # Of a session whose program lives longer than the window that a person has open: that window's process.
    window_pid: int | None = None
    window_started: str | None = None
    cwd: str | None = None
    model_requested: str | None = None
    model_resolved: str | None = None
    model_observed: str | None = None
    permission_profile: PermissionProfile | None = None
    isolated_for: str | None = None
    forked_from: str | None = None
    terminal: Terminal | None = None
    contract_at: Time | None = None
    live_turn: LiveTurn | None = None
    reason: str = ""
    last_event_at: Time | None = None
    ended_at: Time | None = None
    created_by: str


def ready_session(session: Session, now: Time, *, native_ids: dict[str, str] | None = None) -> Session:
    """The harness answers; what it calls itself is learned here."""
    known = {**session.native_ids, **(native_ids or {})}
    return moved(SESSION, session, SessionMove.READY, now, native_ids=known, last_event_at=now)


def end_session(
    session: Session, reason: str, now: Time, *, ending: SessionClass | None = None, seen: int | None = None
) -> Session:
    """Nothing runs in it any more; `ending` says whether it can be taken up again."""
    session_class = ending or session.session_class
    return moved(
        SESSION,
        session,
        SessionMove.END,
        now,
        seen=seen,
        reason=reason,
        session_class=session_class,
        pid=None,
        pid_started=None,
        window_pid=None,
        window_started=None,
        terminal=None,
        live_turn=None,
        ended_at=now,
    )


def is_refused_attach(session: Session) -> bool:
    """Whether its harness never had it: the record of an attempt, and no session."""
    attached = session.origin is SessionOrigin.ATTACHED
    return attached and session.state is SessionState.ENDED and not session.native_ids


def lose_session(session: Session, reason: str, now: Time) -> Session:
    """Out of sight: it may run on, so pid and native ids are kept for the search."""
    return moved(SESSION, session, SessionMove.LOSE, now, reason=reason)


def resume_session(session: Session, now: Time, *, seen: int | None = None) -> Session:
    """Take it up again, unless its harness cannot."""
    if session.session_class in (SessionClass.NOT_ATTACHABLE, SessionClass.TERMINAL):
        raise Refused(_not_attachable(session))
    return moved(SESSION, session, SessionMove.RESUME, now, seen=seen, reason="", ended_at=None)


def check_class(session: Session, found: SessionClass, now: Time) -> Session:
    """What a look at the harness found; `reachability_unknown` is where a restarted broker begins."""
    return changed("session", session, now, session_class=found)


def observe_session(
    session: Session,
    now: Time,
    *,
    model: str | None = None,
    pid: int | None = None,
    pid_started: str | None = None,
    native_ids: dict[str, str] | None = None,
) -> Session:
    """What the harness was seen to be: its process, its own names, and the model that really answers."""
    return changed(
        "session",
        session,
        now,
        native_ids={**session.native_ids, **(native_ids or {})},
        model_observed=model or session.model_observed,
        pid=pid or session.pid,
        pid_started=pid_started or session.pid_started,
        last_event_at=now,
    )


def hand_over(session: Session, terminal: Terminal, now: Time) -> Session:
    """A person goes on with it in a terminal: from now on they alone write to it."""
    return changed("session", session, now, terminal=terminal, pid=None, pid_started=None)


def give_back(session: Session, now: Time) -> Session:
    """It is free again."""
    return changed("session", session, now, terminal=None, last_event_at=now)


def note_turn(session: Session, turn: LiveTurn, now: Time) -> Session:
    """The session with what is known of the turn that it is in; nothing is kept of an ordinary one."""
    return changed("session", session, now, live_turn=None if turn == LiveTurn() else turn, last_event_at=now)


def native_id_of(session: Session) -> str | None:
    """What its harness calls it: its session, or the only name that it has."""
    known = session.native_ids
    return known.get("session") or next(iter(known.values()), None)


def enrol_again(
    session: Session,
    now: Time,
    *,
    by: str,
    native_ids: dict[str, str],
    pid: int | None = None,
    pid_started: str | None = None,
    window: tuple[int, str] | None = None,
    model: str | None = None,
) -> Session:
    """Its host came again: perhaps as another process, or with the name by which it knows the session."""
    seen = observe_session(session, now, model=model, pid=pid, pid_started=pid_started)
    kept = (session.window_pid, session.window_started)
    window_pid, window_started = window or kept
    return msgspec.structs.replace(
        seen,
        enrolled_by=by,
        native_ids={**session.native_ids, **native_ids},
        window_pid=window_pid,
        window_started=window_started,
    )


def _not_attachable(session: Session) -> SessionNotAttachable:
    start = {"agent": session.agent_id, "harness": session.harness}
    return SessionNotAttachable(
        session_id=session.id,
        layer=Layer.HARNESS,
        reason=f"it is {session.session_class}; {session.reason or 'its harness cannot resume it'}",
        remedies=(Remedy(operation="session.start", parameters=start, why="a new session"),),
    )
