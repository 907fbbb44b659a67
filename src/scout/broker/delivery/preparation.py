"""Preparing a turn: its endpoint, prompt and credential. Nothing is started here."""

from typing import NamedTuple

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.delivery import prompts, session_records, terminals, turn_record
from scout.broker.delivery.lanes import is_isolated
from scout.broker.delivery.session_records import PreparedTurn, SessionOpening
from scout.broker.effects import budget, flight_state
from scout.broker.routing import routes
from scout.broker.transaction import admission
from scout.broker.transaction.transaction import Transaction
from scout.model.access.token import Token
from scout.model.agent import Agent
from scout.model.ask import Ask, SessionPolicy
from scout.model.conversation import Message, MessageKind
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, is_due, lease
from scout.model.endpoint import ACTIVE, BROKEN, Endpoint, EndpointMove, EndpointState, Transport
from scout.model.flight import Flight, FlightState
from scout.model.problems.session import Layer
from scout.model.session import Session, SessionClass, SessionState
from scout.policy.choose import Choice, ChoiceAction, Demand
from scout.ports import Failed

_MANY = 1000


_INBOX = 50
_LETTERS = 20


def prepare_turn(tx: Transaction, ident: str, route: routes.AgentRoute | None = None) -> PreparedTurn | None:
    """Begin an attempt. It is counted and committed before the program gets the prompt.

    `route`: the one that was chosen in the same transaction, if it carries an ask.
    """
    delivery = tx.get(Delivery, ident)
    if delivery is None or not is_due(delivery, tx.now):
        return None
    agent = tx.need(Agent, "agent", delivery.target)
    if agent.is_remote:  # it moved to another node, and its mail follows
        return None
    if budget.hold_for_budget(tx, agent, delivery):
        return None
    ask = _get_ask(tx, delivery)
    leased = lease(delivery, turn_record.HOLDER, tx.now, seconds=tx.rules.periods.lease)
    wish = routes.build_demand(tx, ask) if ask else Demand(session_id=delivery.session_id)
    isolated = ask is not None and is_isolated(ask)
    forked = wish.session_id if ask is not None and ask.session_policy is SessionPolicy.FORK else None
    chosen = route if ask else None  # a later message goes to the session that has the ask
    found = _find_carrier(tx, agent, wish, delivery.sender if isolated else None, forked, route=chosen)
    if isinstance(found, Failed):
        flight_state.record_delivery(tx, delivery, leased, DeliveryMove.LEASE)
        turn_record.retry_or_give_up(tx, leased, found)
        return None
    endpoint, fresh = found
    session = tx.get(Session, endpoint.session_id)
    if not fresh and session is not None and session.terminal is not None:
        terminals.hold_turn(tx, delivery, session)
        return None
    leased = replace(leased, endpoint_id=endpoint.id, session_id=endpoint.session_id)
    # Everything is read before the first change is recorded: a query would write the changes up to then.
    message, letters = tx.get(Message, leased.message_id), find_mail(tx, leased)
    flight_state.record_delivery(tx, delivery, leased, DeliveryMove.LEASE)
    if endpoint.state is EndpointState.IDLE:
        endpoint = routes.record_endpoint_move(tx, endpoint, EndpointMove.CLAIM)
    token = _issue_token(tx, agent, leased, endpoint)
    more = lease_batch(tx, leased, message, turn_record.HOLDER) if leased.flight_id is None else []
    mail = [_lease_along(tx, one, letter, leased, turn_record.HOLDER) for one, letter in letters]
    told = prompts.build_prompt(
        tx,
        agent,
        leased,
        endpoint,
        message,
        secret=token.secret,
        more=[one for _, one in more],
        mail=[one for _, one in mail],
    )
    prompts.charge_overhead(tx, told, leased, endpoint)
    prepared = _build_turn(tx, agent, leased, endpoint, told, fresh=fresh, token_id=token.ident)
    prepared.also = tuple(one.id for one, _ in (*more, *mail))
    return prepared


def _get_ask(tx: Transaction, delivery: Delivery) -> Ask | None:
    """Return the ask that a delivery carries; later messages about it go to the session that has it."""
    ask = tx.get(Ask, delivery.ask_id) if delivery.flight_id else None
    return ask if ask is not None and ask.message_id == delivery.message_id else None


def open_session(tx: Transaction, agent: Agent, wish: Demand = Demand()) -> SessionOpening | Failed | None:
    """Open a session in advance; None if the agent has one, or the reason why it cannot have one."""
    found = _find_carrier(tx, agent, wish)
    if isinstance(found, Failed):
        return found
    endpoint, fresh = found
    if not fresh:
        return None
    return session_records.build_opening(tx, agent, endpoint)


def _find_carrier(
    tx: Transaction,
    agent: Agent,
    wish: Demand,
    isolated_for: str | None = None,
    forked: str | None = None,
    *,
    route: routes.AgentRoute | None = None,
) -> tuple[Endpoint, bool] | Failed:
    """Return the endpoint and whether its session has to be started, or why there is none.

    `forked`: the session that a new one copies. `route`: the one to take, if it is chosen already.
    """
    try:
        route = route or routes.choose_route(
            tx, agent, _choose_endpoint(tx, agent, wish), harness=wish.harness, strict=True
        )
    except Refused as refusal:
        return Failed(layer=Layer.HARNESS, reason=refusal.diagnostic.message, again=True)
    if not route.runs or route.harness is None:
        problem = route.reach.find_obstacle(waking=True) or "nothing can run it"
        return Failed(layer=Layer.HARNESS, reason=problem, again=True)
    usable = None if isolated_for else _get_usable_endpoint(route)
    if route.endpoint is not None and not isolated_for and _is_resumable(tx, route):
        return session_records.resume_session_record(tx, route.endpoint), True
    if usable is None and wish.session_id is not None and forked is None:
        return Failed(layer=Layer.SESSION, reason=f"the session {wish.session_id} no longer exists")
    if usable is not None:
        return usable, False
    if route.endpoint is not None and route.endpoint.state is EndpointState.WAKING and not isolated_for:
        return Failed(layer=Layer.SESSION, reason="its session is being started", again=True)
    new = session_records.create_session(
        tx,
        agent,
        route.harness,
        model=wish.model,
        isolated_for=isolated_for,
        more={"forked_from": forked},
    )
    return new, True


def _choose_endpoint(tx: Transaction, agent: Agent, wish: Demand) -> Choice | None:
    """Choose the endpoint that the ask demands; an inbox cannot run a turn."""
    choice = routes.choose_endpoint(tx, agent, wish)
    pulls = choice.endpoint is not None and choice.endpoint.transport is Transport.PULL
    if pulls or _is_outdated(choice, routes.find_set_harness(tx, agent), wish):
        return Choice(action=ChoiceAction.START, rule="carried by a program")
    return choice


def _is_outdated(choice: Choice, harness: str | None, wish: Demand) -> bool:
    """Whether the choice names only a session of a harness that is no longer the one set."""
    if harness in (None, choice.harness) or wish.harness or wish.session_id:
        return False
    return choice.endpoint is None or choice.endpoint.state in BROKEN


def _get_usable_endpoint(route: routes.AgentRoute) -> Endpoint | None:
    """Return the route's endpoint if this broker holds it and its session is live."""
    endpoint = route.endpoint
    if endpoint is None or not endpoint.held or endpoint.harness != route.harness:
        return None
    return endpoint if endpoint.state in ACTIVE else None


def _is_resumable(tx: Transaction, route: routes.AgentRoute) -> bool:
    """Whether the session behind an endpoint ended only because its agent slept, and can be resumed."""
    endpoint = route.endpoint
    if endpoint is None or not routes.is_released_endpoint(endpoint) or endpoint.harness != route.harness:
        return False
    session = tx.get(Session, endpoint.session_id)
    if session is None or session.state is not SessionState.ENDED:
        return False
    return session.session_class is SessionClass.RESUMABLE


class _Token(NamedTuple):
    """The credential of one run; the secret is not stored."""

    ident: str | None = None
    secret: str | None = None


def _issue_token(tx: Transaction, agent: Agent, delivery: Delivery, endpoint: Endpoint) -> _Token:
    can = tx.services.harnesses[endpoint.harness or ""].capabilities
    if can.keeps_process or not can.calls_back:
        return _Token()
    secret = admission.create_agent_token(tx, agent, session_id=endpoint.session_id, label=delivery.id)
    return _Token(tx.events[-1].target.id, secret)


def _build_turn(
    tx: Transaction,
    agent: Agent,
    delivery: Delivery,
    endpoint: Endpoint,
    told: prompts.PromptText,
    *,
    fresh: bool,
    token_id: str | None,
) -> PreparedTurn:
    return PreparedTurn(
        harness=endpoint.harness or "",
        spec=replace(session_records.build_session_spec(tx, agent, endpoint), instructions=told.contract),
        prompt=told.prompt,
        delivery_id=delivery.id,
        endpoint_id=endpoint.id,
        flight_id=delivery.flight_id,
        token_id=token_id,
        isolated=endpoint.isolated_for is not None,
        fresh=fresh,
    )


def resume_turn(tx: Transaction, ident: str) -> PreparedTurn | None:
    """Follow a turn again after a restart. It is the same delivery, so nothing starts twice."""
    delivery = tx.get(Delivery, ident)
    endpoint = tx.get(Endpoint, delivery.endpoint_id) if delivery else None
    if delivery is None or endpoint is None or endpoint.harness not in tx.services.harnesses:
        return None
    agent = tx.need(Agent, "agent", delivery.target)
    tokens = tx.ledger.many(Token, "tokens_of_session", session=endpoint.session_id, limit=_MANY)
    token_id = next((one.id for one in tokens if one.label == delivery.id), None)
    message = tx.get(Message, delivery.message_id)
    told = prompts.build_prompt(tx, agent, delivery, endpoint, message)
    prepared = _build_turn(tx, agent, delivery, endpoint, told, fresh=False, token_id=token_id)
    flight = tx.get(Flight, delivery.flight_id)
    prepared.accepted = True
    prepared.unwanted = flight is not None and flight.state in (FlightState.CANCELLED, FlightState.FAILED)
    return prepared


def find_mail(tx: Transaction, first: Delivery) -> list[tuple[Delivery, Message]]:
    """Return the agent's waiting mail that started no program: it is delivered with this turn.

    An ask is never delivered with another turn, even if it is held.
    """
    waiting = tx.ledger.many(Delivery, "inbox", agent=first.target, after="", limit=_INBOX)
    quiet = [one for one in waiting if not (one.wake or one.flight_id) and _is_free(tx, one, first)]
    found = [(one, tx.get(Message, one.message_id)) for one in quiet[:_LETTERS]]
    return [(one, message) for one, message in found if message is not None]


def _lease_along(
    tx: Transaction, one: Delivery, message: Message, first: Delivery, by: str
) -> tuple[Delivery, Message]:
    """Lease a delivery for the turn of another delivery."""
    leased = lease(one, by, tx.now, seconds=tx.rules.periods.lease)
    way = {"endpoint_id": first.endpoint_id, "session_id": first.session_id, "carried_with": first.id}
    flight_state.record_delivery(tx, one, replace(leased, **way), DeliveryMove.LEASE)
    return leased, message


def lease_batch(
    tx: Transaction, first: Delivery, message: Message | None, by: str
) -> list[tuple[Delivery, Message]]:
    """Lease the other messages that the program gets in the turn of a leased delivery."""
    if not _is_plain(message, first):
        return []
    waiting = tx.ledger.many(Delivery, "inbox", agent=first.target, after=first.id, limit=_INBOX)
    found = [(one, tx.get(Message, one.message_id)) for one in waiting if _is_same_batch(tx, one, first)]
    return [
        _lease_along(tx, one, other, first, by)
        for one, other in found
        if other is not None and _is_plain(other, one)
    ]


def _is_same_batch(tx: Transaction, one: Delivery, first: Delivery) -> bool:
    same = (one.sender, one.conversation_id) == (first.sender, first.conversation_id)
    return same and one.wake and _is_free(tx, one, first)


def _is_free(tx: Transaction, one: Delivery, first: Delivery) -> bool:
    here = one.session_id in (None, first.session_id)
    return here and one.state is DeliveryState.PENDING and is_due(one, tx.now)


def _is_plain(message: Message | None, delivery: Delivery) -> bool:
    """Whether a message is neither an ask nor part of one; those get separate turns."""
    apart = delivery.flight_id or delivery.ask_id or delivery.work_item_id or delivery.may_repeat
    return message is not None and message.kind is MessageKind.CHAT and not apart
