"""Endpoints: registration, updates and heartbeats."""

from typing import Any

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker.effects import session_end
from scout.broker.routing import registration, routes
from scout.broker.routing.routes import wake_agent
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.transaction import Transaction, build_subject, require_local
from scout.identity.address import fold
from scout.model.agent import Agent, Lifecycle
from scout.model.endpoint import (
    ENDPOINT,
    Endpoint,
    EndpointMove,
    EndpointState,
    Transport,
    is_news,
    record_heartbeat,
    update_endpoint,
)
from scout.model.events.presence import (
    AgentHeartbeat,
    EndpointRecovered,
    EndpointRegistered,
    EndpointUpdated,
    Reached,
)
from scout.model.problems.target import HarnessMismatch
from scout.model.session import Session
from scout.policy.permit import Deed
from scout.protocol.endpoints import Heartbeat, RegisterEndpoint, RemoveEndpoint, UpdateEndpoint

# The moves that lead from a new endpoint to its requested state.
_FIRST = {
    EndpointState.REGISTERED: (),
    EndpointState.ATTACHING: (EndpointMove.ATTACH,),
    EndpointState.WAKING: (EndpointMove.WAKE,),
    EndpointState.IDLE: (EndpointMove.READY,),
    EndpointState.WORKING: (EndpointMove.READY, EndpointMove.CLAIM),
}

# Transports to another node or protocol; their bridges create these endpoints.
_MADE_BY_SCOUT = (Transport.MESH, Transport.A2A)


def _get_controlled(tx: Transaction, agent_id: str) -> Agent:
    """Return the agent if the caller is this agent or controls it."""
    agent = require_local(tx, tx.need(Agent, "agent", agent_id))
    tx.permit(Deed.CONTROL, build_subject(agent))
    return agent


def register_endpoint(tx: Transaction, request: RegisterEndpoint) -> Endpoint:
    """Register a new endpoint of an agent."""
    agent = _get_controlled(tx, request.agent_id or tx.sender)
    if agent.lifecycle is Lifecycle.RETIRED:
        raise Refused(routes.build_retired_refusal(tx, agent))
    registration.check_profile(tx, request.permission_profile, None)
    steps = _FIRST.get(request.state)
    if steps is None:
        problem = f"a new endpoint is {', '.join(_FIRST)}, not {request.state}"
        raise Refused(BadRequest(problem=problem, field="state"))
    session = _check_own_session(tx, agent, request.session_id)
    endpoint = Endpoint(
        id=tx.mint("ept"),
        created_at=tx.now,
        updated_at=tx.now,
        agent_id=agent.id,
        node=fold(request.node) if request.node else tx.services.node,
        harness=request.harness or (session.harness if session else None),
        model=request.model,
        transport=request.transport,
        session_id=session.id if session else None,
        preferred=request.preferred,
        wake_policy=request.wake_policy,
        permission_profile=request.permission_profile,
        last_seen=tx.now,
    )
    _check_session(tx, endpoint, session)
    _check_transport(tx, endpoint)
    tx.record(EndpointRegistered, endpoint, move="register")
    for step in steps:
        endpoint = routes.record_endpoint_move(tx, endpoint, step)
    return endpoint


def _check_own_session(tx: Transaction, agent: Agent, session_id: str | None) -> Session | None:
    """Return the endpoint's session, which must belong to its agent."""
    session = tx.need(Session, "session", session_id) if session_id else None
    if session is not None and session.agent_id != agent.id:
        raise tx.missing("session", session.id)
    return session


def _check_session(tx: Transaction, endpoint: Endpoint, session: Session | None) -> None:
    """Refuse an endpoint whose harness or node differs from its session's."""
    if session is None or (endpoint.harness, endpoint.node) == (session.harness, session.node):
        return
    address = tx.address(endpoint.agent_id)
    right = {
        "agentId": endpoint.agent_id,
        "harness": session.harness,
        "node": session.node,
        "sessionId": session.id,
    }
    remedy = Remedy(operation="endpoint.register", parameters=right, why="in the harness of its session")
    requested = f"{endpoint.harness or 'nameless'} on {endpoint.node}"
    attached = (f"{session.harness} on {session.node}",)
    raise Refused(
        HarnessMismatch(address=address, requested=requested, attached=attached, remedies=(remedy,))
    )


def _check_transport(tx: Transaction, endpoint: Endpoint) -> None:
    """Refuse an endpoint on another node, or with a transport that only Scout creates."""
    here = tx.services.node
    by_hand = tuple(one for one in Transport if one not in _MADE_BY_SCOUT)
    right = {"agentId": endpoint.agent_id, "node": here, "transport": str(Transport.PULL)}
    again = Remedy(operation="endpoint.register", parameters=right, why="on this node, and pull")
    if endpoint.transport in _MADE_BY_SCOUT:
        accepted = ", ".join(by_hand)
        problem = (
            f"Scout makes endpoints with the transport {endpoint.transport} itself; accepted: {accepted}"
        )
        raise Refused(BadRequest(problem=problem, field="transport", remedies=(again,)))
    if endpoint.node != here:
        problem = f"an endpoint is registered at its own node: this one is {here}, not {endpoint.node:.60}"
        raise Refused(BadRequest(problem=problem, field="node", remedies=(again,)))


def update(tx: Transaction, request: UpdateEndpoint) -> Endpoint:
    """Change an endpoint's settings, then move it to the requested state."""
    endpoint = tx.need(Endpoint, "endpoint", request.endpoint_id)
    agent = _get_controlled(tx, endpoint.agent_id)
    if agent.id == tx.actor.agent_id:
        endpoint = replace(endpoint, last_seen=tx.now)  # its own request is a sign of life
    names = ("preferred", "model", "session_id", "wake_policy", "permission_profile")
    changes: dict[str, Any] = {name: getattr(request, name) for name in names}
    given = {name: value for name, value in changes.items() if value is not None}
    _check_session(tx, endpoint, _check_own_session(tx, agent, request.session_id))
    registration.check_profile(tx, request.permission_profile, endpoint.permission_profile)
    changed = update_endpoint(endpoint, tx.now, seen=request.revision, **given)
    if given:
        endpoint = tx.record(EndpointUpdated, changed, move="update")
    if request.state is not None and request.state is not endpoint.state:
        endpoint = routes.record_endpoint_move(
            tx, endpoint, _choose_move(endpoint, request.state), request.reason
        )
    return endpoint


def _choose_move(endpoint: Endpoint, wanted: EndpointState) -> EndpointMove:
    """Return the move that leads to a state; the state table refuses if there is none."""
    for step, following in ENDPOINT.table[endpoint.state].items():
        if following is wanted:
            return step
    reverse = {state: step for moves in ENDPOINT.table.values() for step, state in moves.items()}
    ENDPOINT.after(endpoint.state, reverse.get(wanted, EndpointMove.ATTACH))
    raise AssertionError  # the table has refused


def remove_endpoint(tx: Transaction, request: RemoveEndpoint) -> Endpoint:
    """Stop an endpoint; safe to repeat."""
    endpoint = tx.need(Endpoint, "endpoint", request.endpoint_id)
    _get_controlled(tx, endpoint.agent_id)
    if endpoint.state is EndpointState.STOPPED:
        return endpoint
    return session_end.stop_endpoint(tx, endpoint, "its endpoint was removed")


# -- heartbeats --------------------------------------------------------------------------------------


async def receive_heartbeat(call: CallContext[CallBroker], request: Heartbeat) -> Endpoint:
    """Keep a heartbeat that changes nothing in memory; store one that is news."""
    broker = call.broker
    known = broker.signs_of_life.get(request.endpoint_id)
    endpoint = await call.read(lambda tx: _read_unchanged(tx, request, known))
    if endpoint is None:
        broker.signs_of_life.pop(request.endpoint_id, None)  # the stored one is newer
        return await call.write(lambda tx: store_heartbeat(tx, request))
    broker.signs_of_life[endpoint.id] = endpoint
    broker.cache.refresh(endpoint)
    return endpoint


def _read_unchanged(tx: Transaction, request: Heartbeat, known: Endpoint | None) -> Endpoint | None:
    """Return the endpoint after a heartbeat that is no news, else None."""
    endpoint = tx.need(Endpoint, "endpoint", request.endpoint_id)
    if known is not None and known.revision == endpoint.revision:
        endpoint = known
    return record_heartbeat(endpoint, tx.now) if is_quiet(tx, endpoint) else None


def is_quiet(tx: Transaction, endpoint: Endpoint) -> bool:
    """Whether a heartbeat changes nothing, so that it may stay in memory."""
    _get_controlled(tx, endpoint.agent_id)
    after = record_heartbeat(endpoint, tx.now)
    every = tx.rules.periods.heartbeat_event
    written = max(endpoint.updated_at, tx.services.heard.get(endpoint.id, endpoint.updated_at))
    return not is_news(endpoint, after, tx.now, written=written, every=every)


def store_heartbeat(tx: Transaction, request: Heartbeat) -> Endpoint:
    """Store a heartbeat that is news: it recovers a stale endpoint, or the last stored one is old."""
    endpoint = tx.need(Endpoint, "endpoint", request.endpoint_id)
    _get_controlled(tx, endpoint.agent_id)
    after = record_heartbeat(endpoint, tx.now)
    if after.state is not endpoint.state:
        reason = "it was heard from"
        tx.record(EndpointRecovered, after, move=EndpointMove.RECOVER, reason=reason)
        routes.announce_presence(tx, endpoint, after, reason)
    else:
        tx.ledger.refresh(after)
        tx.cache.forget()
    wake_agent(tx, after.agent_id, "it was heard from")
    tx.services.heard[after.id] = tx.now
    seen = Reached(agent_id=after.agent_id, endpoint_id=after.id, last_seen=tx.now)
    tx.append(AgentHeartbeat, after.agent_id, seen)
    return after
