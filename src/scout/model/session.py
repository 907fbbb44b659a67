"""Sessions: a concrete harness conversation, process or thread. Provider ids exist only in `native_ids`."""

from enum import StrEnum

import msgspec

from scout.base.machine import Machine, Mutable, change_record, move_record
from scout.base.record import Record
from scout.base.refusal import Refused, Remedy
from scout.base.time import Time
from scout.model.agent import PermissionProfile
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
    """What can be done with a session that has no running program."""

    RESUMABLE = "resumable"
    REACHABILITY_UNKNOWN = "reachability_unknown"
    NOT_ATTACHABLE = "not_attachable"
    TERMINAL = "terminal"


class SessionOrigin(StrEnum):
    """Whether Scout started it, Scout attached to it, or a person's session enrolled itself."""

    STARTED = "started"
    ATTACHED = "attached"
    ENROLLED = "enrolled"


class Terminal(Record):
    """The process of the terminal in which a person has the session open, and that person."""

    pid: int
    started: str
    by: str
    since: Time


class ProcessLoad(Record):
    """What a program and its descendants use now. `cpu_percent`: 100 is one whole processor."""

    processes: int
    cpu_percent: float
    memory_bytes: int


class LiveTurn(Record):
    """The current turn of a person's session. `alone_for`: the flight whose ask alone started it.

    `reminded`: the flights for which the agent was already reminded to answer. `told`: what the exit check
    has told the agent that it owes.
    """

    alone_for: str | None = None
    reminded: tuple[str, ...] = ()
    told: tuple[str, ...] = ()


class Session(Mutable):
    """One session of one agent on one node in one harness; these never change. `effort`: as requested.

    `contract_at`: when its program first took a turn from Scout, and with it the contract.
    `terminal`: a person has it open in a terminal and is its only writer.
    """

    agent_id: str
    node: str
    harness: str
    state: SessionState = SessionState.STARTING
    session_class: SessionClass = msgspec.field(name="class", default=SessionClass.RESUMABLE)
    origin: SessionOrigin = SessionOrigin.STARTED
    # The credential of the host that enrolled it; only this credential may report for it.
    enrolled_by: str | None = None
    native_ids: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    pid: int | None = None
    # The system reuses pids; together with its start time a pid names one process.
    pid_started: str | None = None
    # The process of the person's window, if the session's program outlives that window.
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
    effort: str | None = None


def mark_ready(session: Session, now: Time, *, native_ids: dict[str, str] | None = None) -> Session:
    """Mark the session as live and record its native ids."""
    known = {**session.native_ids, **(native_ids or {})}
    return move_record(SESSION, session, SessionMove.READY, now, native_ids=known, last_event_at=now)


def end_session(
    session: Session, reason: str, now: Time, *, ending: SessionClass | None = None, seen: int | None = None
) -> Session:
    """End the session; `ending` says whether it can be resumed."""
    session_class = ending or session.session_class
    return move_record(
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
    """Whether the harness never had this session: the record of a failed attach."""
    attached = session.origin is SessionOrigin.ATTACHED
    return attached and session.state is SessionState.ENDED and not session.native_ids


def lose_session(session: Session, reason: str, now: Time) -> Session:
    """Mark the session as lost. It may still run, so pid and native ids are kept for the search."""
    return move_record(SESSION, session, SessionMove.LOSE, now, reason=reason)


def resume_session(session: Session, now: Time, *, seen: int | None = None) -> Session:
    """Resume the session; refuse if its harness cannot."""
    if session.session_class in (SessionClass.NOT_ATTACHABLE, SessionClass.TERMINAL):
        raise Refused(_build_refusal(session))
    return move_record(SESSION, session, SessionMove.RESUME, now, seen=seen, reason="", ended_at=None)


def check_class(session: Session, found: SessionClass, now: Time) -> Session:
    """Record the class that an inspection found; after a restart it starts as `reachability_unknown`."""
    return change_record("session", session, now, session_class=found)


def observe_session(
    session: Session,
    now: Time,
    *,
    model: str | None = None,
    pid: int | None = None,
    pid_started: str | None = None,
    native_ids: dict[str, str] | None = None,
) -> Session:
    """Record the observed process, native ids and the model that actually answers."""
    return change_record(
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
    """Hand the session to a person's terminal, which becomes its only writer."""
    return change_record("session", session, now, terminal=terminal, pid=None, pid_started=None)


def give_back(session: Session, now: Time) -> Session:
    """Release the session from the person's terminal."""
    return change_record("session", session, now, terminal=None, last_event_at=now)


def note_turn(session: Session, turn: LiveTurn, now: Time) -> Session:
    """Record the details of the current turn; an ordinary turn stores nothing."""
    return change_record(
        "session", session, now, live_turn=None if turn == LiveTurn() else turn, last_event_at=now
    )


def get_native_id(session: Session) -> str | None:
    """Return the harness's id of the session, or else its first native id."""
    known = session.native_ids
    return known.get("session") or next(iter(known.values()), None)


def update_enrolment(
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
    """Update an enrolled session when its host enrols again, perhaps with another process or native id."""
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


def _build_refusal(session: Session) -> SessionNotAttachable:
    start = {"agent": session.agent_id, "harness": session.harness}
    return SessionNotAttachable(
        session_id=session.id,
        layer=Layer.HARNESS,
        reason=f"it is {session.session_class}; {session.reason or 'its harness cannot resume it'}",
        remedies=(Remedy(operation="session.start", parameters=start, why="a new session"),),
    )
