"""Enrolment of sessions that people opened themselves: each becomes a session of its project's agent."""

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.routing import registration, routes
from scout.broker.transaction import admission
from scout.broker.transaction.transaction import Transaction, find_session_alias, name_session
from scout.identity.spelling import name_session_alias
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
    mark_ready,
    resume_session,
    update_enrolment,
)
from scout.policy.directory import Wanted
from scout.policy.permit import Deed, Subject
from scout.protocol.enrolment import Enrol, Enrolled
from scout.store.ledger import LAST

_MANY = 1000
_LABEL = "host"
_SESSION = "session"  # the key of the host's own session id


def enrol_session(tx: Transaction, request: Enrol) -> Enrolled:
    """Enrol a session. Enrolling again keeps its record, revokes its old credential and issues a new one.

    Nothing is started, so any project directory is allowed. The operator is recorded as the actor.
    """
    tx.permit(Deed.ENROL, Subject(name="sessions"))
    tx.actor = replace(tx.actor, agent_id=tx.services.operator_agent)
    found = _find_session(tx, request)
    session = _start_session(tx, request) if found is None else _enrol_again(tx, found, request)
    agent = tx.need(Agent, "agent", session.agent_id)
    endpoint = routes.find_endpoint(tx, session.id) or _create_endpoint(tx, agent, session)
    admission.revoke_session_tokens(tx, session, "its session enrolled again")
    token = admission.create_agent_token(tx, agent, session_id=session.id, label=_LABEL)
    return Enrolled(
        session=session,
        agent_id=agent.id,
        address=tx.address(agent.id),
        minimal=tx.minimal(tx.instance(agent, session.id)),
        name=name_session(tx, session.id, agent.id),
        endpoint_id=endpoint.id,
        token=token,
        has_door=routes.can_wake_live(tx.services, session.harness),
    )


# -- finding the session -----------------------------------------------------------------------------


def _find_session(tx: Transaction, request: Enrol) -> Session | None:
    """Return the known session: by the host's session id, else by its process."""
    native = request.native_session_id
    found = tx.everybody.native_session(request.harness, native) if native else None
    if found is None:
        return _find_same_process(tx, request)
    if found.origin is not SessionOrigin.ENROLLED:
        needs = ("the token that Scout gave it",)
        raise Refused(Forbidden(action="enrol", subject=found.id, needs=needs))
    return found


def _find_same_process(tx: Transaction, request: Enrol) -> Session | None:
    """Return the session in the same process; sessions with different native ids are not the same."""
    process = (request.parent_pid, request.parent_started)
    if None in process:
        return None
    running = tx.ledger.many(Session, "sessions_running", limit=_MANY)
    same = [
        one
        for one in running
        if (one.pid, one.pid_started) == process
        and one.harness == request.harness
        and one.origin is SessionOrigin.ENROLLED
        and not (request.native_session_id and one.native_ids)
    ]
    here = [one for one in same if tx.place and one.cwd == tx.place.directory]
    return next(reversed(here or same), None)


def _start_session(tx: Transaction, request: Enrol) -> Session:
    assert tx.place is not None  # the request names a directory
    agent = _check_not_retired(tx, registration.ensure_base_agent(tx, tx.place))
    session = Session(
        id=tx.mint("ses"),
        created_at=tx.now,
        updated_at=tx.now,
        agent_id=agent.id,
        node=tx.services.node,
        harness=request.harness,
        origin=SessionOrigin.ENROLLED,
        enrolled_by=tx.actor.token_id,
        pid=request.parent_pid,
        pid_started=request.parent_started,
        window_pid=request.window_pid,
        window_started=request.window_started,
        cwd=tx.place.directory,
        model_observed=request.model,
        created_by=tx.sender,
    )
    tx.record(SessionStarted, session, move="enrol")
    ready = mark_ready(session, tx.now, native_ids=_read_native_ids(request))
    tx.record(SessionReady, ready, move="ready")
    _add_session_alias(tx, agent, ready)
    return ready


def _check_not_retired(tx: Transaction, agent: Agent) -> Agent:
    if agent.lifecycle is Lifecycle.RETIRED:
        raise Refused(routes.build_retired_refusal(tx, agent))
    return agent


def _read_window(request: Enrol) -> tuple[int, str] | None:
    if request.window_pid is None or request.window_started is None:
        return None
    return request.window_pid, request.window_started


def _read_native_ids(request: Enrol) -> dict[str, str]:
    return {_SESSION: request.native_session_id} if request.native_session_id else {}


def _enrol_again(tx: Transaction, session: Session, request: Enrol) -> Session:
    _check_not_retired(tx, tx.need(Agent, "agent", session.agent_id))
    if session.state is not SessionState.LIVE:
        session = tx.record(SessionResumed, resume_session(session, tx.now), move="resume")
        session = tx.record(SessionReady, mark_ready(session, tx.now), move="ready")
    process = (request.parent_pid or session.pid, request.parent_started or session.pid_started)
    if process != (session.pid, session.pid_started):
        _leave_endpoint(tx, session, "it runs in another process")
    seen = update_enrolment(
        session,
        tx.now,
        by=tx.actor.token_id,
        native_ids=_read_native_ids(request),
        pid=request.parent_pid,
        pid_started=request.parent_started,
        window=_read_window(request),
        model=request.model,
    )
    return tx.record(SessionUpdated, seen, move="enrol")


def _add_session_alias(tx: Transaction, agent: Agent, session: Session) -> None:
    """Give a second live session of an agent an alias, which is removed when the session ends."""
    others = tx.ledger.many(Session, "sessions_of", agent=agent.id, before=LAST, limit=_MANY)
    if not any(one.state is SessionState.LIVE and one.id != session.id for one in others):
        return
    assert agent.definition_id is not None  # a project's agent has one
    names = (name_session_alias(agent.definition_id, number) for number in range(2, _MANY))
    owner = agent.owner or tx.services.operator
    alias = Alias(
        id=tx.mint("als"),
        created_at=tx.now,
        updated_at=tx.now,
        owner=owner,
        name=next(name for name in names if _is_free(tx, owner, name)),
        target=check_target(AliasTarget(session_id=session.id)),
        until_session_ends=True,
        created_by=tx.sender,
    )
    tx.record(AliasCreated, alias, move="create", reason="a second live session")


def _is_free(tx: Transaction, owner: str, name: str) -> bool:
    taken = tx.ledger.one(Alias, "alias_named", owner=owner, name=name)
    if taken is not None and taken.state is not AliasState.REMOVED:
        return False
    return not tx.everybody.find(Wanted(definition_id=name, own=True), 1)


# -- the endpoint ------------------------------------------------------------------------------------


def _create_endpoint(tx: Transaction, agent: Agent, session: Session) -> Endpoint:
    """Create the session's endpoint, with the pull transport."""
    endpoint = Endpoint(
        id=tx.mint("ept"),
        created_at=tx.now,
        updated_at=tx.now,
        agent_id=agent.id,
        node=session.node,
        harness=session.harness,
        model=session.model_observed,
        transport=Transport.PULL,
        session_id=session.id,
        preferred=find_session_alias(tx, session.id) is None,
        last_seen=tx.now,
    )
    tx.record(EndpointRegistered, endpoint, move="enrol")
    return routes.record_endpoint_move(tx, endpoint, EndpointMove.READY)


def _leave_endpoint(tx: Transaction, session: Session, reason: str) -> None:
    endpoint = routes.find_endpoint(tx, session.id)
    if endpoint is not None:
        routes.record_endpoint_move(tx, endpoint, EndpointMove.STOP, reason)
