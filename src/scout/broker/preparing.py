"""Before a turn: through which endpoint, with which prompt and credential. Nothing is started here."""

from typing import NamedTuple

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker import credentials, reaching, settle, turns
from scout.broker.turn import Turn
from scout.model.agent import Agent
from scout.model.ask import Ask, SessionPolicy
from scout.model.conversation import Message
from scout.model.delivery import Delivery, DeliveryMove, is_due, lease
from scout.model.endpoint import Endpoint, EndpointMove, EndpointState, Transport, permission_of
from scout.model.flight import Flight, FlightState
from scout.model.presence_event import EndpointRegistered, SessionStarted
from scout.model.session import Session, SessionState
from scout.model.session_problem import Layer
from scout.model.token import Token
from scout.policy.choose import Action, Choice, Demand
from scout.policy.directory import Instance
from scout.policy.prompt import PromptContext, contract
from scout.policy.prompt import Turn as PromptTurn
from scout.ports import Failed, Prompt, SessionSpec

__all__ = ["prepare", "resume"]

_MANY = 1000


def prepare(turn: Turn, ident: str) -> turns.Prepared | None:
    """Begin an attempt: it is counted and committed before the program hears of it."""
    delivery = turn.ledger.get(Delivery, ident)
    if delivery is None or not is_due(delivery, turn.now):
        return None
    agent = turn.need(Agent, "agent", delivery.target)
    ask = turn.ledger.get(Ask, delivery.ask_id) if delivery.flight_id else None
    leased = lease(delivery, turns.HOLDER, turn.now, seconds=turn.rules.periods.lease)
    found = _carrier(turn, agent, delivery, ask)
    if isinstance(found, Failed):
        settle.delivered(turn, delivery, leased, DeliveryMove.LEASE)
        turns.returned(turn, leased, found)
        return None
    endpoint, fresh = found
    leased = replace(leased, endpoint_id=endpoint.id, session_id=endpoint.session_id)
    settle.delivered(turn, delivery, leased, DeliveryMove.LEASE)
    if endpoint.state is EndpointState.IDLE:
        endpoint = reaching.move(turn, endpoint, EndpointMove.CLAIM)
    return _prepared(turn, agent, leased, endpoint, fresh=fresh, token=_token(turn, agent, leased, endpoint))


def _carrier(turn: Turn, agent: Agent, delivery: Delivery, ask: Ask | None) -> tuple[Endpoint, bool] | Failed:
    """Through which endpoint, and whether its session has yet to be started; or why through none."""
    wish = reaching.demand_of(turn, ask) if ask else Demand(session_id=delivery.session_id)
    try:
        route = reaching.route_of(turn, agent, _choice(turn, agent, wish), harness=wish.harness, strict=True)
    except Refused as refusal:
        return Failed(layer=Layer.HARNESS, reason=refusal.diagnostic.message, again=True)
    if not route.runs or route.harness is None:
        problem = route.reach.obstacle(waking=True) or "nothing can run it"
        return Failed(layer=Layer.HARNESS, reason=problem, again=True)
    isolated = ask is not None and ask.session_policy is SessionPolicy.NEW
    usable = None if isolated else _usable(turn, route)
    if usable is None and wish.session_id is not None:
        return Failed(layer=Layer.SESSION, reason=f"the session {wish.session_id} is not there any more")
    model = wish.model or agent.config.model
    return usable or (
        _started(turn, agent, route.harness, model, delivery.sender if isolated else None),
        True,
    )


def _choice(turn: Turn, agent: Agent, wish: Demand) -> Choice | None:
    """What the ask insists on, by the same function as everywhere; an inbox is nothing to carry to."""
    choice = reaching.choice_for(turn, agent, wish)
    pulls = choice.endpoint is not None and choice.endpoint.transport is Transport.PULL
    return Choice(action=Action.START, rule="carried by a program") if pulls else choice


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
    if not turn.world.harnesses[endpoint.harness or ""].capabilities.calls_back:
        return _Token()
    secret = credentials.for_agent(turn, agent, session_id=endpoint.session_id, label=delivery.id)
    return _Token(turn.events[-1].target.id, secret)


def _prepared(
    turn: Turn, agent: Agent, delivery: Delivery, endpoint: Endpoint, *, fresh: bool, token: _Token
) -> turns.Prepared:
    spec = SessionSpec(
        session_id=endpoint.session_id or "",
        agent_id=agent.id,
        address=Instance(agent=agent).canonical,
        cwd=agent.working_dir or agent.project_root,
        model=endpoint.model or agent.config.model,
        permission=permission_of(agent, endpoint),
        command=agent.config.command,
    )
    return turns.Prepared(
        harness=endpoint.harness or "",
        spec=spec,
        prompt=_prompt(turn, agent, delivery, endpoint, token.secret),
        delivery_id=delivery.id,
        endpoint_id=endpoint.id,
        flight_id=delivery.flight_id,
        token_id=token.ident,
        fresh=fresh,
    )


def _prompt(turn: Turn, agent: Agent, delivery: Delivery, endpoint: Endpoint, secret: str | None) -> Prompt:
    """The message, the contract around it, and how the program calls back.

    A plain program reads the message alone; the contract is in its environment.
    """
    message = turn.ledger.get(Message, delivery.message_id)
    body = message.body if message else ""
    context = PromptContext(
        address=Instance(agent=agent).canonical,
        path=str(agent.path),
        role=agent.tool_role,
        turn=PromptTurn.STARTED,
        session=endpoint.session_id,
        project=agent.project_root,
        directory=agent.working_dir,
        branch=agent.birth_branch,
        permission=permission_of(agent, endpoint),
        conversation=delivery.conversation_id,
        sender=turn.canonical(delivery.sender),
        ask=delivery.ask_id,
        flight=delivery.flight_id,
        body=body,
        may_repeat=delivery.may_repeat,
    )
    facts = {
        "SCOUT_AGENT": str(agent.path),
        "SCOUT_SESSION": endpoint.session_id,
        "SCOUT_FLIGHT": delivery.flight_id,
        "SCOUT_DELIVERY": delivery.id,
        "SCOUT_URL": turn.world.status.url,
        "SCOUT_SOCKET": turn.world.status.socket,
        "SCOUT_TOKEN": secret,
        "SCOUT_MAY_REPEAT": "1" if delivery.may_repeat else None,
    }
    text = body
    if endpoint.harness == "command":
        facts["SCOUT_CONTRACT"] = contract(replace(context, body=None), "command").text
    elif endpoint.harness != "echo":
        text = contract(context, endpoint.harness or "").text
    environment = {name: value for name, value in facts.items() if value}
    return Prompt(delivery_id=turns.run_of(delivery), text=text, body=body, environment=environment)


def resume(turn: Turn, ident: str) -> turns.Prepared | None:
    """A turn that goes on after a restart: the same delivery, so nothing is started twice."""
    delivery = turn.ledger.get(Delivery, ident)
    endpoint = turn.ledger.get(Endpoint, delivery.endpoint_id) if delivery else None
    if delivery is None or endpoint is None or endpoint.harness not in turn.world.harnesses:
        return None
    agent = turn.need(Agent, "agent", delivery.target)
    tokens = turn.ledger.many(Token, "tokens_of_session", session=endpoint.session_id, limit=_MANY)
    token = next((_Token(one.id) for one in tokens if one.label == delivery.id), _Token())
    prepared = _prepared(turn, agent, delivery, endpoint, fresh=False, token=token)
    flight = turn.ledger.get(Flight, delivery.flight_id)
    prepared.accepted = True
    prepared.unwanted = flight is not None and flight.state in (FlightState.CANCELLED, FlightState.FAILED)
    return prepared
