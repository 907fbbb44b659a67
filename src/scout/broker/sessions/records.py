"""Sessions as records: looked at, begun, taken up, copied, ended. What talks to programs is elsewhere."""

from typing import NamedTuple

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker.delivery import pause, recovery, session_records
from scout.broker.delivery.opening import Opening
from scout.broker.effects import session_end
from scout.broker.routing import registration, routes
from scout.broker.routing.views import enriched
from scout.broker.transaction.paging import before, page, size
from scout.broker.transaction.transaction import Turn, subject_of
from scout.model.agent import Agent, Lifecycle
from scout.model.delivery import Delivery
from scout.model.endpoint import ENDPOINT, Endpoint, EndpointState
from scout.model.events.presence import SessionResumed
from scout.model.problems.session import Layer, NoSession, SessionNotAttachable
from scout.model.problems.target import HarnessMismatch, PeerUnreachable
from scout.model.session import (
    Session,
    SessionOrigin,
    SessionState,
    is_refused_attach,
    native_id_of,
    resume_session,
)
from scout.model.usage import Ledger as Book
from scout.model.usage import Usage
from scout.policy.choose import Action, Choice
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

__all__ = [
    "Taking",
    "fork",
    "get_session",
    "in_other_hands",
    "known",
    "list_sessions",
    "may_read",
    "start",
    "stop",
    "take_up",
    "view",
]

_MANY = 10_000


# -- looking -----------------------------------------------------------------------------------------


def list_sessions(turn: Turn, request: ListSessions) -> Page[ListedSession]:
    """Sessions, newest first, of the agents that the caller sees."""
    wanted = size(request.limit, turn.rules.limits)
    bound, limit = before(request.cursor), wanted + 1
    if request.agent:
        agent = turn.resolve(request.agent).agent
        found = turn.ledger.many(Session, "sessions_of", agent=agent.id, before=bound, limit=limit)
    elif request.live:
        running = turn.ledger.many(Session, "sessions_running", limit=_MANY)
        found = [one for one in reversed(running) if one.id < bound][:limit]
    else:
        found = turn.ledger.many(Session, "sessions_all", before=bound, limit=limit)
    listed = page(found, wanted, lambda session: session.id)
    real = [one for one in listed.items if not is_refused_attach(one)]
    seen = [one for one in real if turn.directory.agent(one.agent_id) is not None]
    kept = [one for one in seen if not request.live or one.state is not SessionState.ENDED]
    named = (enriched(ListedSession, one, address=turn.address(one.agent_id)) for one in kept)
    return Page(items=tuple(named), next=listed.next)


def get_session(turn: Turn, request: GetSession) -> SessionView:
    """One session of an agent that the caller sees."""
    session = turn.need(Session, "session", request.session_id)
    if turn.directory.agent(session.agent_id) is None:
        raise turn.missing("session", request.session_id)
    return view(turn, session)


def view(turn: Turn, session: Session) -> SessionView:
    """A session with what the records say of it."""
    at_work = _at_work(turn, session)
    return enriched(
        SessionView,
        session,
        address=turn.address(session.agent_id),
        running=at_work is not None,
        flight_id=at_work.flight_id if at_work else None,
        tokens=_tokens(turn, session),
    )


def may_read(turn: Turn, session: Session) -> bool:
    """Whether the caller may see what its program wrote."""
    agent = turn.agent(session.agent_id)
    return agent is not None and turn.allows(Deed.READ, subject_of(agent))


def _at_work(turn: Turn, session: Session) -> Delivery | None:
    ways = turn.ledger.many(Endpoint, "endpoints_of_session", session=session.id)
    working = [one for one in ways if one.held and one.state is EndpointState.WORKING]
    return recovery.taken_by(turn.ledger, working[-1]) if working else None


def _tokens(turn: Turn, session: Session) -> TokenUse:
    """What its turns cost, by the reports of its agent since it began."""
    found = turn.ledger.many(
        Usage, "usage_of_agent", agent=session.agent_id, since=session.created_at, limit=_MANY
    )
    own = [one for one in found if one.session_id == session.id and one.category is Book.HARNESS_EXECUTION]
    return TokenUse(
        prompt_tokens=sum(one.prompt_tokens for one in own),
        completion_tokens=sum(one.completion_tokens for one in own),
        total_tokens=sum(one.total_tokens for one in own),
        estimated=any(one.estimated for one in own),
    )


# -- a new one ---------------------------------------------------------------------------------------


def _controlled(turn: Turn, agent: Agent) -> Agent:
    """An agent for which the caller may start and end programs."""
    turn.permit(Deed.CONTROL, subject_of(agent))
    if agent.lifecycle is Lifecycle.RETIRED:
        raise Refused(routes.retired(turn, agent))
    return agent


def start(turn: Turn, request: StartSession) -> Opening:
    """A new session for an agent, whatever else it has."""
    pause.check_not_paused(turn)
    agent = _controlled(turn, turn.resolve(request.agent).agent)
    if request.node not in (None, turn.world.node):
        raise Refused(PeerUnreachable(node=request.node or ""))
    fresh = Choice(action=Action.START, rule="a new session", harness=request.harness)
    route = routes.route_of(turn, agent, fresh, harness=request.harness, strict=True)
    if route.harness is None or not route.runs:
        raise Refused(routes.unavailable(turn, route.harness or request.harness or "", agent))
    more = {"cwd": _folder(turn, route.harness)} if request.cwd is not None else {}
    endpoint = session_records.begun(
        turn,
        agent,
        route.harness,
        model=request.model or agent.config.model,
        permission=request.permission_,
        more=more,
    )
    return session_records.opening_of(turn, agent, endpoint)


def _folder(turn: Turn, harness: str) -> str:
    """The directory that the request names, in which programs may be started."""
    assert turn.place is not None  # the request names a directory
    routes.check_folder(turn, turn.place.directory, harness, turn.place.repository)
    return turn.place.directory


def fork(turn: Turn, request: ForkSession) -> Opening:
    """A copy of a session, which its maker alone reaches, by its id."""
    pause.check_not_paused(turn)
    session = turn.need(Session, "session", request.session_id)
    agent = _controlled(turn, turn.need(Agent, "agent", session.agent_id))
    harness = turn.world.harnesses.get(session.harness)
    if harness is None or not harness.capabilities.fork or native_id_of(session) is None:
        raise Refused(_unforkable(turn, session))
    endpoint = session_records.begun(
        turn,
        agent,
        session.harness,
        model=session.model_requested,
        permission=session.permission_profile,
        isolated_for=turn.sender,
        more={"cwd": session.cwd, "forked_from": session.id},
    )
    return session_records.opening_of(turn, agent, endpoint)


def _unforkable(turn: Turn, session: Session) -> SessionNotAttachable:
    new = {"agent": turn.address(session.agent_id), "harness": session.harness}
    remedy = Remedy(operation="session.start", parameters=new, why="a new session")
    reason = f"{session.harness} cannot fork a session"
    return SessionNotAttachable(session_id=session.id, layer=Layer.HARNESS, reason=reason, remedies=(remedy,))


# -- one that exists ---------------------------------------------------------------------------------


class Taking(NamedTuple):
    """A session about to be taken up. `opening` is none when Scout has it already."""

    session: Session
    native: str
    opening: Opening | None = None


def known(turn: Turn, request: AttachSession) -> tuple[Session | None, str]:
    """The session that is meant, if Scout knows it, and its harness; another harness is refused."""
    session = turn.ledger.get(Session, request.session) if request.session.startswith("ses_") else None
    if session is None and request.session.startswith("ses_"):
        raise turn.missing("session", request.session)
    if session is None and request.harness is None:
        problem = "a session that Scout does not know is named together with its harness"
        raise Refused(BadRequest(problem=problem, field="harness"))
    named = request.harness or (session.harness if session else "")
    if named not in turn.world.harnesses:
        raise Refused(routes.unavailable(turn, named))
    session = session or turn.everybody.native_session(named, request.session)
    if session is not None and session.harness != named:
        raise Refused(_mismatch(turn, session, named))
    return session, named


def _mismatch(turn: Turn, session: Session, named: str) -> HarnessMismatch:
    address = turn.address(session.agent_id)
    right = {"session": session.id, "harness": session.harness}
    new = {"agent": address, "harness": named}
    remedies = (
        Remedy(operation="session.attach", parameters=right, why="in the harness that it is of"),
        Remedy(operation="session.start", parameters=new, why="a new session"),
    )
    return HarnessMismatch(address=address, requested=named, attached=(session.harness,), remedies=remedies)


def take_up(turn: Turn, request: AttachSession) -> Taking:
    """The session with a way to it that has yet to be tried; one writer, so none that is in other hands."""
    session, harness = known(turn, request)
    agent = _controlled(turn, _owner(turn, request, session))
    if session is None:
        native = request.session
        cwd = _folder(turn, harness) if request.cwd is not None else agent.working_dir or agent.project_root
        more = {"cwd": cwd, "origin": SessionOrigin.ATTACHED}
        endpoint = session_records.begun(turn, agent, harness, model=agent.config.model, more=more)
        session = turn.need(Session, "session", endpoint.session_id or "")
        return Taking(session, native, session_records.opening_of(turn, agent, endpoint))
    native = native_id_of(session) or session.id
    if _is_held(turn, session):
        return Taking(session, native)
    if session.state is SessionState.LIVE and session.origin is SessionOrigin.ENROLLED:
        raise Refused(in_other_hands(session.id, "a person has it open, and it takes what comes by itself"))
    if session.state is not SessionState.LIVE:
        session = turn.record(SessionResumed, resume_session(session, turn.now), move="resume")
    endpoint = session_records.way_to(turn, session, session.permission_profile)
    return Taking(session, native, session_records.opening_of(turn, agent, endpoint))


def in_other_hands(ident: str, reason: str) -> SessionNotAttachable:
    """A session has one writer."""
    return SessionNotAttachable(session_id=ident, layer=Layer.SESSION, reason=reason)


def _is_held(turn: Turn, session: Session) -> bool:
    ways = turn.ledger.many(Endpoint, "endpoints_of_session", session=session.id)
    live = session.state in (SessionState.STARTING, SessionState.LIVE)
    return live and any(one.held and one.state not in ENDPOINT.terminal for one in ways)


def _owner(turn: Turn, request: AttachSession, session: Session | None) -> Agent:
    """Whose session it is or becomes; that never changes."""
    named = turn.resolve(request.agent).agent if request.agent else None
    if session is None:
        place = turn.place or turn.here
        if named is not None:
            return named
        if place is None:
            raise Refused(BadRequest(problem="say whose session it becomes", field="agent"))
        return registration.base_agent(turn, place)
    if named is not None and named.id != session.agent_id:
        address = turn.address(session.agent_id)
        raise Refused(NoSession(address=turn.address(named.id), session=f"{session.id} of {address}"))
    return turn.need(Agent, "agent", session.agent_id)


# -- an end ------------------------------------------------------------------------------------------


def stop(turn: Turn, request: StopSession) -> Session:
    """A session is over by somebody's word: what ran in it has failed and says so. Twice is once."""
    session = turn.need(Session, "session", request.session_id)
    turn.permit(Deed.CONTROL, subject_of(turn.need(Agent, "agent", session.agent_id)))
    who = turn.address(turn.sender)
    reason = f"the session was stopped by {who}{f': {request.reason}' if request.reason else ''}"
    return session_end.end(turn, session, reason)
