"""Before a turn: through which endpoint, with which prompt and credential. Nothing is started here."""

from typing import NamedTuple

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker import credentials, prompting, reaching, settle, spending, turns
from scout.broker.prepared import Opening, Prepared
from scout.broker.turn import Turn
from scout.model.agent import Agent, WakePolicy
from scout.model.ask import Ask, SessionPolicy
from scout.model.delivery import Delivery, DeliveryMove, is_due, lease
from scout.model.endpoint import (
    BROKEN,
    Endpoint,
    EndpointMove,
    EndpointState,
    Transport,
    permission_of,
    wake_policy_of,
)
from scout.model.flight import Flight, FlightState
from scout.model.presence_event import EndpointRegistered, SessionStarted
from scout.model.session import Session, SessionState
from scout.model.session_problem import Layer
from scout.model.token import Token
from scout.policy.choose import Action, Choice, Demand
from scout.policy.directory import Instance
from scout.ports import Failed, Prompt, SessionSpec

__all__ = ["open_session", "prepare", "resume"]

_MANY = 1000


def prepare(turn: Turn, ident: str) -> Prepared | None:
    """Begin an attempt: it is counted and committed before the program hears of it."""
    delivery = turn.ledger.get(Delivery, ident)
    if delivery is None or not is_due(delivery, turn.now):
        return None
    agent = turn.need(Agent, "agent", delivery.target)
    if spending.hold_for_budget(turn, agent, delivery):
        return None
    ask = _asked_by(turn, delivery)
    leased = lease(delivery, turns.HOLDER, turn.now, seconds=turn.rules.periods.lease)
    wish = reaching.demand_of(turn, ask) if ask else Demand(session_id=delivery.session_id)
    isolated = ask is not None and ask.session_policy is SessionPolicy.NEW
    found = _carrier(turn, agent, wish, delivery.sender if isolated else None)
    if isinstance(found, Failed):
        settle.delivered(turn, delivery, leased, DeliveryMove.LEASE)
        turns.returned(turn, leased, found)
        return None
    endpoint, fresh = found
    leased = replace(leased, endpoint_id=endpoint.id, session_id=endpoint.session_id)
    settle.delivered(turn, delivery, leased, DeliveryMove.LEASE)
    if endpoint.state is EndpointState.IDLE:
        endpoint = reaching.move(turn, endpoint, EndpointMove.CLAIM)
    token = _token(turn, agent, leased, endpoint)
    told = prompting.told(turn, agent, leased, endpoint, token.secret)
    prompting.charge(turn, told.contract, leased, endpoint)
    return _prepared(turn, agent, leased, endpoint, told.prompt, fresh=fresh, token_id=token.ident)


def _asked_by(turn: Turn, delivery: Delivery) -> Ask | None:
    """The ask that a delivery carries; what is said to its flight later goes to the session that has it."""
    ask = turn.ledger.get(Ask, delivery.ask_id) if delivery.flight_id else None
    return ask if ask is not None and ask.message_id == delivery.message_id else None


def open_session(turn: Turn, agent: Agent) -> Opening | Failed | None:
    """A session for which nothing waits yet; nothing if there is one by now, or why there can be none."""
    found = _carrier(turn, agent, Demand())
    if isinstance(found, Failed):
        return found
    endpoint, fresh = found
    if not fresh:
        return None
    return Opening(
        harness=endpoint.harness or "", spec=_spec(turn, agent, endpoint), endpoint_id=endpoint.id, fresh=True
    )


def _carrier(
    turn: Turn, agent: Agent, wish: Demand, isolated_for: str | None = None
) -> tuple[Endpoint, bool] | Failed:
    """Through which endpoint, and whether its session has yet to be started; or why through none."""
    try:
        route = reaching.route_of(turn, agent, _choice(turn, agent, wish), harness=wish.harness, strict=True)
    except Refused as refusal:
        return Failed(layer=Layer.HARNESS, reason=refusal.diagnostic.message, again=True)
    if not route.runs or route.harness is None:
        problem = route.reach.obstacle(waking=True) or "nothing can run it"
        return Failed(layer=Layer.HARNESS, reason=problem, again=True)
    usable = None if isolated_for else _usable(turn, route)
    if usable is None and wish.session_id is not None:
        return Failed(layer=Layer.SESSION, reason=f"the session {wish.session_id} is not there any more")
    model = wish.model or agent.config.model
    return usable or (_started(turn, agent, route.harness, model, isolated_for), True)


def _choice(turn: Turn, agent: Agent, wish: Demand) -> Choice | None:
    """What the ask insists on, by the same function as everywhere; an inbox is nothing to carry to."""
    choice = reaching.choice_for(turn, agent, wish)
    pulls = choice.endpoint is not None and choice.endpoint.transport is Transport.PULL
    if pulls or _is_outdated(choice, agent, wish):
        return Choice(action=Action.START, rule="carried by a program")
    return choice


def _is_outdated(choice: Choice, agent: Agent, wish: Demand) -> bool:
    """Whether nothing is left but what ran in another harness than its agent is set to now."""
    if agent.config.harness in (None, choice.harness) or wish.harness or wish.session_id:
        return False
    return choice.endpoint is None or choice.endpoint.state in BROKEN


def _usable(turn: Turn, route: reaching.Route) -> tuple[Endpoint, bool] | None:
    """An endpoint that this broker holds goes on; one that failed to start is started anew."""
    endpoint = route.endpoint
    if endpoint is None or not endpoint.held or endpoint.harness != route.harness:
        return None
    if endpoint.state in (EndpointState.IDLE, EndpointState.WORKING):
        return endpoint, False
    session = turn.ledger.get(Session, endpoint.session_id)
    if endpoint.state is EndpointState.FAILED and session and session.state is SessionState.STARTING:
        return reaching.move(turn, endpoint, EndpointMove.RECOVER, "another attempt"), True
    return None


def _started(turn: Turn, agent: Agent, harness: str, model: str | None, isolated_for: str | None) -> Endpoint:
    session = Session(
        id=turn.mint("ses"),
        created_at=turn.now,
        updated_at=turn.now,
        agent_id=agent.id,
        node=turn.world.node,
        harness=harness,
        cwd=agent.working_dir or agent.project_root,
        model_requested=model,
        permission_profile=permission_of(agent),
        isolated_for=isolated_for,
        created_by=turn.sender,
    )
    turn.record(SessionStarted, session, move="start")
    endpoint = Endpoint(
        id=turn.mint("ept"),
        created_at=turn.now,
        updated_at=turn.now,
        agent_id=agent.id,
        node=turn.world.node,
        harness=harness,
        model=model,
        transport=Transport.PROCESS,
        session_id=session.id,
        held=True,
        isolated_for=isolated_for,
        last_seen=turn.now,
    )
    turn.record(EndpointRegistered, endpoint, move="register")
    return reaching.move(turn, endpoint, EndpointMove.WAKE)


class _Token(NamedTuple):
    """The credential of one run; its secret is known only to who made it."""

    ident: str | None = None
    secret: str | None = None


def _token(turn: Turn, agent: Agent, delivery: Delivery, endpoint: Endpoint) -> _Token:
    can = turn.world.harnesses[endpoint.harness or ""].capabilities
    if can.keeps_process or not can.calls_back:
        return _Token()
    secret = credentials.for_agent(turn, agent, session_id=endpoint.session_id, label=delivery.id)
    return _Token(turn.events[-1].target.id, secret)


def _prepared(
    turn: Turn,
    agent: Agent,
    delivery: Delivery,
    endpoint: Endpoint,
    prompt: Prompt,
    *,
    fresh: bool,
    token_id: str | None,
) -> Prepared:
    return Prepared(
        harness=endpoint.harness or "",
        spec=_spec(turn, agent, endpoint),
        prompt=prompt,
        delivery_id=delivery.id,
        endpoint_id=endpoint.id,
        flight_id=delivery.flight_id,
        token_id=token_id,
        fresh=fresh,
    )


def _spec(turn: Turn, agent: Agent, endpoint: Endpoint) -> SessionSpec:
    """What the harness is told of a session; of one that goes on between turns, also what it calls it."""
    can = turn.world.harnesses[endpoint.harness or ""].capabilities
    session = turn.ledger.get(Session, endpoint.session_id) if can.keeps_process or can.resume else None
    keeps = wake_policy_of(agent, endpoint) is WakePolicy.KEEP_WARM
    return SessionSpec(
        session_id=endpoint.session_id or "",
        agent_id=agent.id,
        address=Instance(agent=agent).canonical,
        cwd=(session.cwd if session else None) or agent.working_dir or agent.project_root,
        model=endpoint.model or agent.config.model,
        permission=permission_of(agent, endpoint),
        command=agent.config.command,
        native_ids=session.native_ids if session else {},
        idle=None if keeps else turn.rules.periods.session_idle,
    )


def resume(turn: Turn, ident: str) -> Prepared | None:
    """A turn that goes on after a restart: the same delivery, so nothing is started twice."""
    delivery = turn.ledger.get(Delivery, ident)
    endpoint = turn.ledger.get(Endpoint, delivery.endpoint_id) if delivery else None
    if delivery is None or endpoint is None or endpoint.harness not in turn.world.harnesses:
        return None
    agent = turn.need(Agent, "agent", delivery.target)
    tokens = turn.ledger.many(Token, "tokens_of_session", session=endpoint.session_id, limit=_MANY)
    token_id = next((one.id for one in tokens if one.label == delivery.id), None)
    prompt = prompting.told(turn, agent, delivery, endpoint, None).prompt
    prepared = _prepared(turn, agent, delivery, endpoint, prompt, fresh=False, token_id=token_id)
    flight = turn.ledger.get(Flight, delivery.flight_id)
    prepared.accepted = True
    prepared.unwanted = flight is not None and flight.state in (FlightState.CANCELLED, FlightState.FAILED)
    return prepared
