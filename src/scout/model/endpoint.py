"""Endpoints: the current way to reach an agent, as one attachment to one harness on one node."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

from scout.base.machine import Machine, Mutable, change_record, move_record
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.agent import Agent, PermissionProfile, WakePolicy


class EndpointState(StrEnum):
    """The state of the attachment, never of a task."""

    REGISTERED = "registered"
    ATTACHING = "attaching"
    WAKING = "waking"
    IDLE = "idle"
    WORKING = "working"
    UNREACHABLE = "unreachable"
    FAILED = "failed"
    STALE = "stale"
    STOPPED = "stopped"


class ProgramState(StrEnum):
    """What the program behind an endpoint does. `unknown`: there is not enough evidence."""

    WORKING = "working"
    WAITING = "waiting"
    IDLE = "idle"
    UNKNOWN = "unknown"


class EndpointMove(StrEnum):
    ATTACH = "attach"
    WAKE = "wake"
    READY = "ready"
    CLAIM = "claim"
    RELEASE = "release"
    LOSE = "lose"
    FAIL = "fail"
    EXPIRE = "expire"
    STOP = "stop"
    RECOVER = "recover"


ENDPOINT = Machine(
    "endpoint",
    EndpointState.REGISTERED,
    {
        EndpointState.REGISTERED: {
            EndpointMove.ATTACH: EndpointState.ATTACHING,
            EndpointMove.WAKE: EndpointState.WAKING,
            EndpointMove.READY: EndpointState.IDLE,
            EndpointMove.LOSE: EndpointState.UNREACHABLE,
            EndpointMove.FAIL: EndpointState.FAILED,
            EndpointMove.STOP: EndpointState.STOPPED,
        },
        EndpointState.ATTACHING: {
            # Attaching may find that the program no longer runs.
            EndpointMove.WAKE: EndpointState.WAKING,
            EndpointMove.READY: EndpointState.IDLE,
            EndpointMove.LOSE: EndpointState.UNREACHABLE,
            EndpointMove.FAIL: EndpointState.FAILED,
            EndpointMove.EXPIRE: EndpointState.STALE,
            EndpointMove.STOP: EndpointState.STOPPED,
        },
        EndpointState.WAKING: {
            EndpointMove.READY: EndpointState.IDLE,
            EndpointMove.LOSE: EndpointState.UNREACHABLE,
            EndpointMove.FAIL: EndpointState.FAILED,
            EndpointMove.EXPIRE: EndpointState.STALE,
            EndpointMove.STOP: EndpointState.STOPPED,
        },
        EndpointState.IDLE: {
            EndpointMove.CLAIM: EndpointState.WORKING,
            EndpointMove.LOSE: EndpointState.UNREACHABLE,
            EndpointMove.FAIL: EndpointState.FAILED,
            EndpointMove.EXPIRE: EndpointState.STALE,
            EndpointMove.STOP: EndpointState.STOPPED,
        },
        EndpointState.WORKING: {
            EndpointMove.RELEASE: EndpointState.IDLE,
            EndpointMove.LOSE: EndpointState.UNREACHABLE,
            EndpointMove.FAIL: EndpointState.FAILED,
            EndpointMove.EXPIRE: EndpointState.STALE,
            EndpointMove.STOP: EndpointState.STOPPED,
        },
        # An unreachable endpoint is searched for first; a failed one is started again.
        EndpointState.UNREACHABLE: {
            EndpointMove.RECOVER: EndpointState.ATTACHING,
            EndpointMove.FAIL: EndpointState.FAILED,
            EndpointMove.EXPIRE: EndpointState.STALE,
            EndpointMove.STOP: EndpointState.STOPPED,
        },
        EndpointState.STALE: {
            EndpointMove.RECOVER: EndpointState.ATTACHING,
            EndpointMove.FAIL: EndpointState.FAILED,
            EndpointMove.STOP: EndpointState.STOPPED,
        },
        EndpointState.FAILED: {
            EndpointMove.RECOVER: EndpointState.WAKING,
            EndpointMove.STOP: EndpointState.STOPPED,
        },
        EndpointState.STOPPED: {},
    },
)

ACTIVE = frozenset({EndpointState.IDLE, EndpointState.WORKING})
BROKEN = frozenset(
    {EndpointState.UNREACHABLE, EndpointState.FAILED, EndpointState.STALE, EndpointState.STOPPED}
)
_CHANGEABLE = frozenset({"held", "model", "permission_profile", "preferred", "wake_policy"})


class Transport(StrEnum):
    PROCESS = "process"
    SOCKET = "socket"
    ACP = "acp"
    TMUX = "tmux"
    PULL = "pull"
    A2A = "a2a"
    MESH = "mesh"


class EndpointFailure(Record):
    """Why the attachment failed, and its state before."""

    reason: str
    was: EndpointState


class Endpoint(Mutable):
    """One way to reach an agent. A new process, node or session is a new endpoint.

    `held`: the broker holds the process, so it needs no heartbeat. `isolated_for`: the agent whose isolated
    ask created it; it is a route for that agent only. `program_state`: what was seen on its screen, for a
    program that Scout only sees; for others it follows from the state.
    """

    agent_id: str
    node: str
    harness: str | None = None
    model: str | None = None
    transport: Transport
    session_id: str | None = None
    state: EndpointState = EndpointState.REGISTERED
    preferred: bool = False
    permission_profile: PermissionProfile | None = None
    wake_policy: WakePolicy | None = None
    last_seen: Time | None = None
    held: bool = False
    isolated_for: str | None = None
    failure: EndpointFailure | None = None
    program_state: ProgramState | None = None


def move_endpoint(
    endpoint: Endpoint, move: EndpointMove, now: Time, *, seen: int | None = None, reason: str = ""
) -> Endpoint:
    """Return the endpoint after a move; a failure keeps the previous state, READY clears the failure."""
    failure = endpoint.failure
    if move in (EndpointMove.FAIL, EndpointMove.LOSE, EndpointMove.EXPIRE):
        failure = EndpointFailure(reason=reason, was=_get_previous_state(endpoint))
    if move is EndpointMove.READY:
        failure = None
    return move_record(ENDPOINT, endpoint, move, now, seen=seen, failure=failure)


def update_endpoint(endpoint: Endpoint, now: Time, *, seen: int | None = None, **changes: Any) -> Endpoint:
    """Return the endpoint with other settings; its identity never changes, its session is set once."""
    learns = {"session_id"} if endpoint.session_id is None else set[str]()
    for name in sorted(changes.keys() - _CHANGEABLE - learns):
        if changes[name] != getattr(endpoint, name, object()):
            problem = f"an endpoint's {name} cannot be changed: register a new endpoint"
            raise Refused(BadRequest(problem=problem, field=name))
    return change_record("endpoint", endpoint, now, seen=seen, **changes)


def record_heartbeat(endpoint: Endpoint, now: Time) -> Endpoint:
    """Record a heartbeat. The revision stays the same unless a lost endpoint recovers."""
    endpoint = msgspec.structs.replace(endpoint, last_seen=now)
    if endpoint.state not in (EndpointState.UNREACHABLE, EndpointState.STALE):
        return endpoint
    worked = endpoint.failure is not None and endpoint.failure.was is EndpointState.WORKING
    moves = [EndpointMove.RECOVER, EndpointMove.READY, *([EndpointMove.CLAIM] if worked else [])]
    for move in moves:
        endpoint = move_endpoint(endpoint, move, now)
    return endpoint


def is_online(endpoint: Endpoint, now: Time, within: float = 90) -> bool:
    """Whether the endpoint is idle or working, and held by the broker or recently heard from."""
    if endpoint.state not in ACTIVE:
        return False
    return endpoint.held or (endpoint.last_seen is not None and now.since(endpoint.last_seen) <= within)


def get_program_state(endpoint: Endpoint, now: Time, within: float = 90) -> ProgramState | None:
    """Return what the program behind an endpoint does; None if the endpoint has ended or not yet begun."""
    if endpoint.state in (EndpointState.UNREACHABLE, EndpointState.STALE):
        return ProgramState.UNKNOWN
    if endpoint.state not in ACTIVE:
        return None
    if not is_online(endpoint, now, within):
        return ProgramState.UNKNOWN
    if endpoint.program_state is not None:
        return endpoint.program_state
    return ProgramState.WORKING if endpoint.state is EndpointState.WORKING else ProgramState.IDLE


# Of several programs, the one that a person should know about comes first.
_TOLD_FIRST = (ProgramState.WAITING, ProgramState.WORKING, ProgramState.UNKNOWN, ProgramState.IDLE)


def choose_program_state(states: Iterable[ProgramState | None]) -> ProgramState | None:
    """Return what an agent's programs do in one word; None if none is running."""
    found = set(states)
    return next((state for state in _TOLD_FIRST if state in found), None)


def observe_program(endpoint: Endpoint, state: ProgramState, now: Time) -> Endpoint:
    """Record what was seen on the screen of the program."""
    return change_record("endpoint", endpoint, now, program_state=state)


def is_news(
    before: Endpoint, after: Endpoint, now: Time, *, written: Time | None, every: float = 600
) -> bool:
    """Whether to log a heartbeat: reachability changed, or the last logged one is too old."""
    if before.state is not after.state or written is None:
        return True
    return is_online(before, now) != is_online(after, now) or now.since(written) >= every


def get_wake_policy(agent: Agent, endpoint: Endpoint | None = None) -> WakePolicy:
    """Return the endpoint's wake policy, or by default its agent's."""
    own = endpoint.wake_policy if endpoint is not None else None
    return own or agent.config.wake_policy


def get_permission_profile(agent: Agent, endpoint: Endpoint | None = None) -> PermissionProfile:
    """Return the endpoint's permission profile, or by default its agent's."""
    own = endpoint.permission_profile if endpoint is not None else None
    return own or agent.config.permission_profile


def _get_previous_state(endpoint: Endpoint) -> EndpointState:
    # A second failure (lost, then failed) must not hide the state before the first.
    if endpoint.state in BROKEN and endpoint.failure is not None:
        return endpoint.failure.was
    return endpoint.state
