"""Session records: list, start, attach, fork and stop. `control` talks to the programs."""

from typing import NamedTuple

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker.delivery import pause, recovery, session_records
from scout.broker.delivery.session_records import SessionOpening
from scout.broker.effects import session_end
from scout.broker.routing import registration, routes
from scout.broker.routing.views import extend_record
from scout.broker.transaction.paging import build_page, decode_bound, get_page_size
from scout.broker.transaction.transaction import Transaction, build_subject, require_local
from scout.model.agent import Agent, Lifecycle
from scout.model.attention import Attention
from scout.model.delivery import Delivery
from scout.model.endpoint import (
    ENDPOINT,
    Endpoint,
    EndpointState,
    ProgramState,
    choose_program_state,
    get_program_state,
)
from scout.model.events.presence import SessionResumed
from scout.model.problems.session import Layer, NoSession, SessionNotAttachable
from scout.model.problems.target import HarnessMismatch, PeerUnreachable
from scout.model.session import (
    Session,
    SessionClass,
    SessionOrigin,
    SessionState,
    get_native_id,
    is_refused_attach,
    resume_session,
)
from scout.model.usage import Usage
from scout.model.usage import UsageLedger as Book
from scout.policy.choose import Choice, ChoiceAction
from scout.policy.permit import Deed
from scout.protocol.request import Page
from scout.protocol.sessions import (
    AttachSession,
    ForkSession,
    GetSession,
    ListedSession,
    ListSessions,
    SessionView,
    StartSession,
    StopSession,
    TokenUse,
)
from scout.store.ledger import LAST

_MANY = 10_000
_SOME = 20


# -- reading -----------------------------------------------------------------------------------------


def list_sessions(tx: Transaction, request: ListSessions) -> Page[ListedSession]:
    """List sessions of the agents that the caller may see, newest first."""
    wanted = get_page_size(request.limit, tx.rules.limits)
    bound, limit = decode_bound(request.cursor), wanted + 1
    if request.agent:
        agent = require_local(tx, tx.resolve(request.agent).agent)
        found = tx.ledger.many(Session, "sessions_of", agent=agent.id, before=bound, limit=limit)
    elif request.live:
        running = tx.ledger.many(Session, "sessions_running", limit=_MANY)
        found = [one for one in reversed(running) if one.id < bound][:limit]
    else:
        found = tx.ledger.many(Session, "sessions_all", before=bound, limit=limit)
    listed = build_page(found, wanted, lambda session: session.id)
    real = [one for one in listed.items if not is_refused_attach(one)]
    seen = [one for one in real if tx.directory.agent(one.agent_id) is not None]
    kept = [one for one in seen if not request.live or one.state is not SessionState.ENDED]
    named = (
        extend_record(
            ListedSession,
            one,
            address=tx.address(one.agent_id),
            program_state=find_program_state(tx, one),
        )
        for one in kept
    )
    return Page(items=tuple(named), next=listed.next)


def get_session(tx: Transaction, request: GetSession) -> SessionView:
    """Return one session of an agent that the caller may see."""
    session = tx.need(Session, "session", request.session_id)
    if tx.directory.agent(session.agent_id) is None:
        raise tx.missing("session", request.session_id)
    return show_session(tx, session)


def show_session(tx: Transaction, session: Session) -> SessionView:
    """Return a session with its address, current flight and token use."""
    at_work = _find_work(tx, session)
    return extend_record(
        SessionView,
        session,
        address=tx.address(session.agent_id),
        program_state=find_program_state(tx, session),
        running=at_work is not None,
        flight_id=at_work.flight_id if at_work else None,
        tokens=_sum_tokens(tx, session),
    )


def find_program_state(tx: Transaction, session: Session) -> ProgramState | None:
    """Return what the program of a session does. Unknown: nothing tells, or a person has it in a terminal."""
    if session.state is not SessionState.LIVE:
        return None
    if session.session_class is SessionClass.REACHABILITY_UNKNOWN:
        return ProgramState.UNKNOWN
    ways = [one for one in tx.endpoints(session.agent_id) if one.session_id == session.id]
    told = (get_program_state(one, tx.now, tx.rules.periods.online_within) for one in ways)
    state = choose_program_state(told)
    if state is None or (session.terminal is not None and not any(one.program_state for one in ways)):
        return ProgramState.UNKNOWN
    waits = state is ProgramState.WORKING and _waits_for_person(tx, session)
    return ProgramState.WAITING if waits else state


def _waits_for_person(tx: Transaction, session: Session) -> bool:
    """Whether the program asked a person something that is not decided."""
    raised = tx.ledger.many(Attention, "attention_by_open", agent=session.agent_id, before=LAST, limit=_SOME)
    return any(one.return_path.session_id == session.id and one.return_path.request for one in raised)


def may_read(tx: Transaction, session: Session) -> bool:
    """Whether the caller may read the output of the session's program."""
    agent = tx.agent(session.agent_id)
    return agent is not None and tx.allows(Deed.READ, build_subject(agent))


def _find_work(tx: Transaction, session: Session) -> Delivery | None:
    ways = tx.ledger.many(Endpoint, "endpoints_of_session", session=session.id)
    working = [one for one in ways if one.held and one.state is EndpointState.WORKING]
    return recovery.find_delivery_of_endpoint(tx.ledger, working[-1]) if working else None


def _sum_tokens(tx: Transaction, session: Session) -> TokenUse:
    """Sum the tokens of the session's turns, from its agent's usage reports."""
    found = tx.ledger.many(
        Usage, "usage_of_agent", agent=session.agent_id, since=session.created_at, limit=_MANY
    )
    own = [one for one in found if one.session_id == session.id and one.category is Book.HARNESS_EXECUTION]
    return TokenUse(
        prompt_tokens=sum(one.prompt_tokens for one in own),
        completion_tokens=sum(one.completion_tokens for one in own),
        total_tokens=sum(one.total_tokens for one in own),
        estimated=any(one.estimated for one in own),
    )


# -- start and fork ----------------------------------------------------------------------------------


def _check_controlled(tx: Transaction, agent: Agent) -> Agent:
    """Return the agent if the caller controls it, and it lives here and is not retired."""
    require_local(tx, agent)
    tx.permit(Deed.CONTROL, build_subject(agent))
    if agent.lifecycle is Lifecycle.RETIRED:
        raise Refused(routes.build_retired_refusal(tx, agent))
    return agent


def start(tx: Transaction, request: StartSession) -> SessionOpening:
    """Create a new session for an agent, regardless of its other sessions."""
    pause.check_not_paused(tx)
    agent = _check_controlled(tx, tx.resolve(request.agent).agent)
    if request.node not in (None, tx.services.node):
        raise Refused(PeerUnreachable(node=request.node or ""))
    fresh = Choice(action=ChoiceAction.START, rule="a new session", harness=request.harness)
    route = routes.choose_route(tx, agent, fresh, harness=request.harness, strict=True)
    if route.harness is None or not route.runs:
        raise Refused(routes.build_harness_refusal(tx, route.harness or request.harness or "", agent))
    more = {"cwd": _check_requested_folder(tx, route.harness)} if request.cwd is not None else {}
    endpoint = session_records.create_session(
        tx,
        agent,
        route.harness,
        model=request.model,
        permission=request.permission_,
        more=more,
    )
    return session_records.build_opening(tx, agent, endpoint)


def _check_requested_folder(tx: Transaction, harness: str) -> str:
    """Return the requested directory, if programs may be started in it."""
    assert tx.place is not None  # the request names a directory
    routes.check_folder(tx, tx.place.directory, harness, tx.place.repository)
    return tx.place.directory


def fork(tx: Transaction, request: ForkSession) -> SessionOpening:
    """Create a copy of a session, which only the caller can reach, by its id."""
    pause.check_not_paused(tx)
    session = tx.need(Session, "session", request.session_id)
    agent = _check_controlled(tx, tx.need(Agent, "agent", session.agent_id))
    harness = tx.services.harnesses.get(session.harness)
    if harness is None or not harness.capabilities.fork or get_native_id(session) is None:
        raise Refused(_build_unforkable(tx, session))
    endpoint = session_records.create_session(
        tx,
        agent,
        session.harness,
        model=session.model_requested,
        permission=session.permission_profile,
        isolated_for=tx.sender,
        more={"cwd": session.cwd, "forked_from": session.id},
    )
    return session_records.build_opening(tx, agent, endpoint)


def _build_unforkable(tx: Transaction, session: Session) -> SessionNotAttachable:
    new = {"agent": tx.address(session.agent_id), "harness": session.harness}
    remedy = Remedy(operation="session.start", parameters=new, why="a new session")
    reason = f"{session.harness} cannot fork a session"
    return SessionNotAttachable(session_id=session.id, layer=Layer.HARNESS, reason=reason, remedies=(remedy,))


# -- attach ------------------------------------------------------------------------------------------


class Taking(NamedTuple):
    """A session to be attached. `opening` is None if Scout already holds it."""

    session: Session
    native: str
    opening: SessionOpening | None = None


def find_session(tx: Transaction, request: AttachSession) -> tuple[Session | None, str]:
    """Return the requested session, if Scout knows it, and its harness; refuse a different harness."""
    session = tx.get(Session, request.session) if request.session.startswith("ses_") else None
    if session is None and request.session.startswith("ses_"):
        raise tx.missing("session", request.session)
    if session is None and request.harness is None:
        problem = "name the harness of a session that Scout does not know"
        raise Refused(BadRequest(problem=problem, field="harness"))
    named = request.harness or (session.harness if session else "")
    if named not in tx.services.harnesses:
        raise Refused(routes.build_harness_refusal(tx, named))
    session = session or tx.everybody.native_session(named, request.session)
    if session is not None and session.harness != named:
        raise Refused(_build_mismatch(tx, session, named))
    return session, named


def _build_mismatch(tx: Transaction, session: Session, named: str) -> HarnessMismatch:
    address = tx.address(session.agent_id)
    right = {"session": session.id, "harness": session.harness}
    new = {"agent": address, "harness": named}
    remedies = (
        Remedy(operation="session.attach", parameters=right, why="in its own harness"),
        Remedy(operation="session.start", parameters=new, why="a new session"),
    )
    return HarnessMismatch(address=address, requested=named, attached=(session.harness,), remedies=remedies)


def attach_session(tx: Transaction, request: AttachSession) -> Taking:
    """Create the record and endpoint of the session to attach; refuse one that a person has open."""
    session, harness = find_session(tx, request)
    agent = _check_controlled(tx, _find_owner(tx, request, session))
    if session is None:
        native = request.session
        cwd = (
            _check_requested_folder(tx, harness)
            if request.cwd is not None
            else agent.working_dir or agent.project_root
        )
        more = {"cwd": cwd, "origin": SessionOrigin.ATTACHED}
        endpoint = session_records.create_session(tx, agent, harness, more=more)
        session = tx.need(Session, "session", endpoint.session_id or "")
        return Taking(session, native, session_records.build_opening(tx, agent, endpoint))
    native = get_native_id(session) or session.id
    if _is_held(tx, session):
        return Taking(session, native)
    if session.state is SessionState.LIVE and session.origin is SessionOrigin.ENROLLED:
        raise Refused(
            build_not_attachable(session.id, "a person has it open; it receives messages by itself")
        )
    if session.state is not SessionState.LIVE:
        session = tx.record(SessionResumed, resume_session(session, tx.now), move="resume")
    endpoint = session_records.create_endpoint(tx, session, session.permission_profile)
    return Taking(session, native, session_records.build_opening(tx, agent, endpoint))


def build_not_attachable(ident: str, reason: str) -> SessionNotAttachable:
    """Return the refusal of a session that another program has open."""
    return SessionNotAttachable(session_id=ident, layer=Layer.SESSION, reason=reason)


def _is_held(tx: Transaction, session: Session) -> bool:
    ways = tx.ledger.many(Endpoint, "endpoints_of_session", session=session.id)
    live = session.state in (SessionState.STARTING, SessionState.LIVE)
    return live and any(one.held and one.state not in ENDPOINT.terminal for one in ways)


def _find_owner(tx: Transaction, request: AttachSession, session: Session | None) -> Agent:
    """Return the agent that the session belongs to or will belong to; the owner never changes."""
    named = tx.resolve(request.agent).agent if request.agent else None
    if session is None:
        place = tx.place or tx.here
        if named is not None:
            return named
        if place is None:
            raise Refused(BadRequest(problem="name the agent that gets the session", field="agent"))
        return registration.ensure_base_agent(tx, place)
    if named is not None and named.id != session.agent_id:
        address = tx.address(session.agent_id)
        raise Refused(NoSession(address=tx.address(named.id), session=f"{session.id} of {address}"))
    return tx.need(Agent, "agent", session.agent_id)


# -- stop --------------------------------------------------------------------------------------------


def stop(tx: Transaction, request: StopSession) -> Session:
    """End a session by request; its running turn fails with that reason. Safe to repeat."""
    session = tx.need(Session, "session", request.session_id)
    tx.permit(Deed.CONTROL, build_subject(tx.need(Agent, "agent", session.agent_id)))
    who = tx.address(tx.sender)
    reason = f"the session was stopped by {who}{f': {request.reason}' if request.reason else ''}"
    return session_end.record_session_end(tx, session, reason)
