"""Sessions that people opened themselves: they enrol as their project's agent, and end with their host."""

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.routing import credentials, registration, routes
from scout.broker.transaction.session_name import alias_of, name_of
from scout.broker.transaction.transaction import Turn
from scout.identity.spelling import session_alias
from scout.model.agent import Agent, Lifecycle
from scout.model.alias import Alias, AliasState, AliasTarget, check_target
from scout.model.endpoint import Endpoint, EndpointMove, Transport
from scout.model.events.directory import AliasCreated
from scout.model.events.presence import (
    EndpointRegistered,
    SessionReady,
    SessionResumed,
    SessionStarted,
    SessionUpdated,
)
from scout.model.problems.request import Forbidden
from scout.model.session import (
    Session,
    SessionOrigin,
    SessionState,
    enrol_again,
    ready_session,
    resume_session,
)
from scout.policy.directory import Wanted
from scout.policy.permit import Deed, Subject
from scout.protocol.enrolment import Enrol, Enrolled
from scout.store.ledger import LAST

__all__ = ["enrol"]

_MANY = 1000
_LABEL = "host"
_SESSION = "session"  # the key of what the host calls it


def enrol(turn: Turn, request: Enrol) -> Enrolled:
    """The same session again keeps its record and gets a fresh credential; the one before is over.

    Nothing is started, so any project directory will do. It is done in the name of the person whose
    host it is.
    """
    turn.permit(Deed.ENROL, Subject(name="sessions"))
    turn.actor = replace(turn.actor, agent_id=turn.world.operator_agent)
    found = _known(turn, request)
    session = _begun(turn, request) if found is None else _again(turn, found, request)
    agent = turn.need(Agent, "agent", session.agent_id)
    endpoint = routes.endpoint_of(turn, session.id) or _way(turn, agent, session)
    credentials.revoke_of_session(turn, session, "its session enrolled again")
    token = credentials.for_agent(turn, agent, session_id=session.id, label=_LABEL)
    return Enrolled(
        session=session,
        agent_id=agent.id,
        address=turn.address(agent.id),
        minimal=turn.minimal(turn.instance(agent, session.id)),
        name=name_of(turn, session.id, agent.id),
        endpoint_id=endpoint.id,
        token=token,
        has_door=routes.has_door(turn.world, session.harness),
    )


# -- which session -----------------------------------------------------------------------------------


def _known(turn: Turn, request: Enrol) -> Session | None:
    """The session that this is: by the name its host gives it, else by its process."""
    native = request.native_session_id
    found = turn.everybody.native_session(request.harness, native) if native else None
    if found is None:
        return _same_process(turn, request)
    if found.origin is not SessionOrigin.ENROLLED:
        needs = ("the token that Scout gave it",)
        raise Refused(Forbidden(action="enrol", subject=found.id, needs=needs))
    return found


def _same_process(turn: Turn, request: Enrol) -> Session | None:
    """A process may hold several sessions: those with a name of their own are told apart by it."""
    process = (request.parent_pid, request.parent_started)
    if None in process:
        return None
    running = turn.ledger.many(Session, "sessions_running", limit=_MANY)
    same = [
        one
        for one in running
        if (one.pid, one.pid_started) == process
        and one.harness == request.harness
        and one.origin is SessionOrigin.ENROLLED
        and not (request.native_session_id and one.native_ids)
    ]
    here = [one for one in same if turn.place and one.cwd == turn.place.directory]
    return next(reversed(here or same), None)


def _begun(turn: Turn, request: Enrol) -> Session:
    assert turn.place is not None  # the request names a directory
    agent = _in_service(turn, registration.base_agent(turn, turn.place))
    session = Session(
        id=turn.mint("ses"),
        created_at=turn.now,
        updated_at=turn.now,
        agent_id=agent.id,
        node=turn.world.node,
        harness=request.harness,
        origin=SessionOrigin.ENROLLED,
        enrolled_by=turn.actor.token_id,
        pid=request.parent_pid,
        pid_started=request.parent_started,
        window_pid=request.window_pid,
        window_started=request.window_started,
        cwd=turn.place.directory,
        model_observed=request.model,
        created_by=turn.sender,
    )
    turn.record(SessionStarted, session, move="enrol")
    ready = ready_session(session, turn.now, native_ids=_native(request))
    turn.record(SessionReady, ready, move="ready")
    _name_apart(turn, agent, ready)
    return ready


def _in_service(turn: Turn, agent: Agent) -> Agent:
    if agent.lifecycle is Lifecycle.RETIRED:
        raise Refused(routes.retired(turn, agent))
    return agent


def _window(request: Enrol) -> tuple[int, str] | None:
    if request.window_pid is None or request.window_started is None:
        return None
    return request.window_pid, request.window_started


def _native(request: Enrol) -> dict[str, str]:
    return {_SESSION: request.native_session_id} if request.native_session_id else {}


def _again(turn: Turn, session: Session, request: Enrol) -> Session:
    _in_service(turn, turn.need(Agent, "agent", session.agent_id))
    if session.state is not SessionState.LIVE:
        session = turn.record(SessionResumed, resume_session(session, turn.now), move="resume")
        session = turn.record(SessionReady, ready_session(session, turn.now), move="ready")
    process = (request.parent_pid or session.pid, request.parent_started or session.pid_started)
    if process != (session.pid, session.pid_started):
        _leave(turn, session, "it runs in another process")
    seen = enrol_again(
        session,
        turn.now,
        by=turn.actor.token_id,
        native_ids=_native(request),
        pid=request.parent_pid,
        pid_started=request.parent_started,
        window=_window(request),
        model=request.model,
    )
    return turn.record(SessionUpdated, seen, move="enrol")


def _name_apart(turn: Turn, agent: Agent, session: Session) -> None:
    """A second live session of one agent gets a name of its own, which ends with it."""
    others = turn.ledger.many(Session, "sessions_of", agent=agent.id, before=LAST, limit=_MANY)
    if not any(one.state is SessionState.LIVE and one.id != session.id for one in others):
        return
    assert agent.definition_id is not None  # a project's agent has one
    names = (session_alias(agent.definition_id, number) for number in range(2, _MANY))
    owner = agent.owner or turn.world.operator
    alias = Alias(
        id=turn.mint("als"),
        created_at=turn.now,
        updated_at=turn.now,
        owner=owner,
        name=next(name for name in names if _is_free(turn, owner, name)),
        target=check_target(AliasTarget(session_id=session.id)),
        until_session_ends=True,
        created_by=turn.sender,
    )
    turn.record(AliasCreated, alias, move="create", reason="a second live session")


def _is_free(turn: Turn, owner: str, name: str) -> bool:
    taken = turn.ledger.one(Alias, "alias_named", owner=owner, name=name)
    if taken is not None and taken.state is not AliasState.REMOVED:
        return False
    return not turn.everybody.find(Wanted(definition_id=name), 1)


# -- how it is reached -------------------------------------------------------------------------------


def _way(turn: Turn, agent: Agent, session: Session) -> Endpoint:
    """It takes what comes by itself, at its own natural moments."""
    endpoint = Endpoint(
        id=turn.mint("ept"),
        created_at=turn.now,
        updated_at=turn.now,
        agent_id=agent.id,
        node=session.node,
        harness=session.harness,
        model=session.model_observed,
        transport=Transport.PULL,
        session_id=session.id,
        preferred=alias_of(turn, session.id) is None,
        last_seen=turn.now,
    )
    turn.record(EndpointRegistered, endpoint, move="enrol")
    return routes.move(turn, endpoint, EndpointMove.READY)


def _leave(turn: Turn, session: Session, reason: str) -> None:
    endpoint = routes.endpoint_of(turn, session.id)
    if endpoint is not None:
        routes.move(turn, endpoint, EndpointMove.STOP, reason)
