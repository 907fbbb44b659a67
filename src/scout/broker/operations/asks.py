"""Asks: make and retry them. An ask that cannot start is refused, or its flight records the reason."""

from typing import NamedTuple

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Diagnostic, Refused, Remedy
from scout.broker.effects import notices
from scout.broker.operations import access
from scout.broker.operations.ask_limits import check_ask_limits
from scout.broker.operations.flights import check_room, find_enclosing_flight, find_flight
from scout.broker.routing import (
    attachments,
    children,
    conversations,
    posts,
    registration,
    routes,
    traces,
)
from scout.broker.routing.remote import describe_move, find_node_name, wait_for_node
from scout.broker.routing.wake import decide_ask_wake, deliver_ask, find_route, find_route_again, hold_ask
from scout.broker.transaction.transaction import Transaction, build_subject, require_owner
from scout.model.agent import Agent
from scout.model.ask import Ask, AskLink, AskReceipt, IfUnreachable, SessionPolicy, check_ask
from scout.model.card import Card
from scout.model.conversation import Attachment, Conversation, Message, check_body
from scout.model.delivery import Delivery
from scout.model.events.asks import AskCreated, FlightQueued
from scout.model.events.directory import CardCreated
from scout.model.events.envelope import Metadata
from scout.model.events.talk import WorkItemCreated
from scout.model.flight import Flight, create_flight, retry_flight
from scout.model.problems.session import NoSession
from scout.model.session import Session, SessionState
from scout.model.work_item import WorkItem, create_work
from scout.policy.choose import Choice, Demand
from scout.policy.directory import Instance
from scout.policy.permit import Deed
from scout.policy.resolver.resolve import Resolution, decide_target, list_soft_mentions
from scout.policy.wake import WakeAction
from scout.protocol.asks import MakeAsk, RetryFlight

_DAY = 86_400


class Target(NamedTuple):
    """The agent that an ask is for, what the ask demands, and how the agent was resolved.

    `soft`: the agents that the body mentions after its beginning.
    """

    agent: Agent
    wish: Demand
    choice: Choice | None
    canonical: str
    found: Resolution | None = None
    card: Card | None = None
    soft: tuple[str, ...] = ()


class AskIds(NamedTuple):
    """The ids of an ask, and what it is nested in and carries. An ask of another node has them already."""

    ask_id: str
    message_id: str
    flight_id: str
    chain: tuple[str, ...] = ()
    ancestors: tuple[AskLink, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    traceparent: str | None = None


def make_ask(tx: Transaction, request: MakeAsk, given: AskIds | None = None) -> AskReceipt:
    """Store message, ask and flight in one transaction, and route them. A refused ask stores nothing.

    `given`: the ask comes from another node, which has stored it already.
    """
    body = check_body(request.body)
    try:
        target = _find_target(tx, request)
        agent = target.agent
        if target.card is None:
            tx.permit(Deed.ASK, build_subject(agent))
        queue = request.if_unreachable is IfUnreachable.QUEUE
        route, waits = find_route(tx, agent, target.wish, target.choice, queue=queue)
    except Refused as refusal:
        problem = refusal.diagnostic if request.project_path is None else _drop_start(refusal.diagnostic)
        raise Refused(problem) from None
    _check_fork(tx, request, route)
    conversation = _find_conversation(tx, request, agent)
    ids = given or _mint_ids(tx, request)
    ask = _create_ask(tx, request, target, conversation, ids)
    check_ask_limits(tx, ask, body)
    flight = create_flight(ids.flight_id, ask, tx.now)
    _create_work(tx, request, ask)
    message = _post_message(tx, request, ask, flight, soft=target.soft, files=ids.attachments)
    tx.record(AskCreated, ask, move="create", target=ask.id)
    return _queue_flight(
        tx, ask, flight, message, agent=agent, route=route, conversation=conversation, waits=waits
    )


def _mint_ids(tx: Transaction, request: MakeAsk) -> AskIds:
    """Return new ids; an ask made in a turn is nested in the ask of that turn."""
    working = find_enclosing_flight(tx, request.within)
    inside = tx.need(Ask, "ask", working.ask_id) if working else None
    return AskIds(
        tx.mint("ask"),
        tx.mint("msg"),
        tx.mint("flt"),
        (*inside.chain, inside.id) if inside else (),
        inside.ancestors if inside else (),
        attachments.find_attachments(tx, request.attachments) if request.attachments else (),
        traces.find_parent(tx, request.traceparent, working, inside),
    )


# -- checks ------------------------------------------------------------------------------------------


def _drop_start(problem: Diagnostic) -> Diagnostic:
    """Drop the remedies that name the project's agent: the refusal undoes its creation."""
    others = tuple(one for one in problem.remedies if one.operation != "session.start")
    return replace(problem, remedies=others)


def _check_fork(tx: Transaction, request: MakeAsk, route: routes.AgentRoute) -> None:
    """Refuse a fork that the harness cannot make, instead of continuing in the original session."""
    if request.session_policy is not SessionPolicy.FORK or route.remote:
        return
    harness = tx.services.harnesses.get(route.harness or "")
    if harness is None or not harness.capabilities.fork:
        problem = f"{route.harness or 'its program'} cannot fork a session"
        fresh = {"to": tx.address(route.reach.agent_id), "sessionPolicy": "new", "body": request.body}
        remedy = Remedy(operation="ask", parameters=fresh, why="in a new session")
        raise Refused(BadRequest(problem=problem, field="sessionPolicy", remedies=(remedy,)))


def _find_conversation(tx: Transaction, request: MakeAsk, agent: Agent) -> Conversation:
    if request.conversation_id is None:
        return posts.ensure_direct_conversation(tx, tx.sender, agent.id)
    conversation = tx.need(Conversation, "conversation", request.conversation_id)
    conversations.require_readable(tx, conversation)
    conversations.check_recipients(tx, conversation, agent)
    posts.ensure_member(tx, conversation.id, agent.id)
    return conversation


# -- records -----------------------------------------------------------------------------------------


def _create_ask(
    tx: Transaction, request: MakeAsk, target: Target, conversation: Conversation, ids: AskIds
) -> Ask:
    found, wish = target.found, target.wish
    policy = request.session_policy
    existing = SessionPolicy.EXISTING if wish.session_id else SessionPolicy.REUSE
    ask = Ask(
        id=ids.ask_id,
        conversation_id=conversation.id,
        message_id=ids.message_id,
        sender=tx.sender,
        sender_session_id=tx.actor.session_id,
        target=target.agent.id,
        resolved=target.canonical,
        alias_id=found.alias_id if found else None,
        alias_revision=found.alias_revision if found else None,
        project_path=tx.place.directory if tx.place and request.project_path else None,
        session_policy=policy or (SessionPolicy.NEW if request.isolated else existing),
        target_session_id=wish.session_id,
        harness=wish.harness,
        model=wish.model,
        node=wish.node,
        reply_to=_find_return_address(tx, request),
        reply_to_session_id=request.reply_to_session_id,
        reply_mode=request.reply_mode,
        if_unreachable=request.if_unreachable,
        work_item_id=_find_work_item_id(tx, request),
        card_id=target.card.id if target.card else None,
        chain=ids.chain,
        ancestors=ids.ancestors,
        origin=request.origin,
        created_at=tx.now,
        expires_at=tx.now.plus(tx.rules.periods.queue_expiry),
        traceparent=ids.traceparent,
    )
    return check_ask(ask)


def _find_work_item_id(tx: Transaction, request: MakeAsk) -> str | None:
    """Return the work item that the ask belongs to: one that the asker has a part in, or a new one."""
    if request.work_item is not None and request.work_item_id is not None:
        problem = "an ask belongs to a work item or creates one, not both"
        raise Refused(BadRequest(problem=problem, field="workItem"))
    if request.work_item_id is not None:
        item = tx.need(WorkItem, "work item", request.work_item_id)
        parties = (item.owner_id, item.requester_id, item.reviewer_id, item.next_move_owner_id)
        require_owner(tx, "work item", item.id, *parties)
        return item.id
    return tx.mint("wrk") if request.work_item is not None else None


def _create_work(tx: Transaction, request: MakeAsk, ask: Ask) -> None:
    """Create the work item that the ask begins. Its owner is the target, which learns of it by the ask."""
    if request.work_item is not None and ask.work_item_id is not None:
        item = create_work(
            ask.work_item_id,
            request.work_item,
            tx.now,
            requester_id=ask.sender,
            owner_id=ask.target,
            conversation_id=ask.conversation_id,
            ask_id=ask.id,
        )
        notices.record_and_notify(tx, WorkItemCreated, item, move="create", reason=f"ask {ask.id}")


def _find_return_address(tx: Transaction, request: MakeAsk) -> str | None:
    """Return the agent that gets the answer instead of the asker, which must be allowed to address it."""
    named = tx.resolve(request.reply_to).agent if request.reply_to else None
    if request.reply_to_session_id is not None:
        session = tx.need(Session, "session", request.reply_to_session_id)
        agent = tx.need(Agent, "agent", session.agent_id)
        if session.state not in (SessionState.STARTING, SessionState.LIVE):
            raise Refused(NoSession(address=tx.address(agent.id), session=session.id))
        if named is not None and named.id != agent.id:
            raise tx.missing(f"session of {tx.address(named.id)}", session.id)
        named = agent
    if named is None:
        return None
    if named.id != tx.sender:
        tx.permit(Deed.ADDRESS, build_subject(named))
    return named.id


def _post_message(
    tx: Transaction,
    request: MakeAsk,
    ask: Ask,
    flight: Flight,
    *,
    soft: tuple[str, ...],
    files: tuple[Attachment, ...],
) -> Message:
    metadata = Metadata(
        mentions=soft,
        target_agents=(ask.target,),
        resolved=ask.resolved,
        alias_id=ask.alias_id,
        alias_revision=ask.alias_revision,
    )
    return posts.post_message(
        tx,
        ask.conversation_id,
        request.body,
        message_id=ask.message_id,
        attachments=files,
        ask_id=ask.id,
        flight_id=flight.id,
        work_item_id=ask.work_item_id,
        metadata=metadata,
    )


# -- the queue ---------------------------------------------------------------------------------------


def _queue_flight(
    tx: Transaction,
    ask: Ask,
    flight: Flight,
    message: Message,
    *,
    agent: Agent,
    route: routes.AgentRoute,
    conversation: Conversation,
    waits: str = "",
) -> AskReceipt:
    """Record the flight and its delivery: to a program, to an inbox, or held with a reason."""
    decision = decide_ask_wake(tx, ask, route, conversation)
    if route.remote is not None:
        flight = wait_for_node(flight, route.remote, tx.now.plus(tx.rules.periods.queue_expiry), waits)
    else:
        queued = _add_forecast(tx, flight, carried=route.runs and decision.action is WakeAction.WAKE)
        flight = hold_ask(tx, ask, queued, decision, waits)
    tx.record(FlightQueued, flight, move="queue", reason=flight.reason)
    delivery = deliver_ask(
        tx, ask, message, route=route, decision=decision, reason=flight.reason, waits=bool(waits)
    )
    roots = (f"{root} is an allowed root from now on" for root in dict.fromkeys(tx.new_roots))
    notes = (*roots, *describe_move(tx, agent), *routes.describe_profile(tx, agent, route))
    return _build_receipt(tx, ask, flight, delivery, agent=agent, route=route, notes=notes)


def _add_forecast(tx: Transaction, flight: Flight, *, carried: bool) -> Flight:
    """Add the reason why a flight that Scout runs cannot start at once."""
    asker = tx.agent(flight.requester_id)
    by_person = asker is not None and asker.is_person
    forecast = tx.services.forecast(by_person) if carried or tx.services.paused else ""
    return replace(flight, reason=forecast) if forecast else flight


def _build_receipt(
    tx: Transaction,
    ask: Ask,
    flight: Flight,
    delivery: Delivery,
    *,
    agent: Agent,
    route: routes.AgentRoute,
    notes: tuple[str, ...] = (),
) -> AskReceipt:
    endpoint = None if ask.session_policy is SessionPolicy.NEW else route.endpoint
    harness = endpoint.harness if endpoint else route.harness
    runtime = routes.choose_agent_runtime(tx, agent, harness) if harness else None
    model = endpoint.model if endpoint else ask.model
    return AskReceipt(
        conversation_id=ask.conversation_id,
        message_id=ask.message_id,
        ask_id=ask.id,
        flight_id=flight.id,
        state=flight.state,
        phase=flight.phase,
        target=ask.target,
        address=tx.address(ask.target),
        node=find_node_name(tx, ask.target),
        canonical=ask.resolved,
        endpoint_id=endpoint.id if endpoint else None,
        session_id=ask.target_session_id or (endpoint.session_id if endpoint else None),
        work_item_id=ask.work_item_id,
        card_id=ask.card_id,
        alias_id=ask.alias_id,
        alias_revision=ask.alias_revision,
        reason=flight.reason,
        next_check_at=flight.next_check_at,
        next_move_owner_id=flight.next_move_owner_id,
        harness_requested=ask.harness,
        harness_resolved=harness,
        model_requested=ask.model,
        model_resolved=model or (runtime.model if runtime else None),
        effort=runtime.effort if runtime else None,
        attempts=delivery.attempts or None,
        may_repeat=delivery.may_repeat,
        notes=notes,
    )


def retry_ask(tx: Transaction, request: RetryFlight, flight_id: str | None = None) -> AskReceipt:
    """Run the same ask again, in a new flight; `flight_id`: another node has created it already."""
    old = find_flight(tx, request.flight_id)
    ask = tx.need(Ask, "ask", old.ask_id)
    agent = tx.need(Agent, "agent", ask.target)
    if ask.sender != tx.sender:
        tx.permit(Deed.CONTROL, build_subject(agent))
    newest = tx.ledger.many(Flight, "flights_of_ask", ask=ask.id)[-1]
    flight = retry_flight(newest, ask, flight_id or tx.mint("flt"), tx.now)
    message = tx.need(Message, "message", ask.message_id)
    check_room(tx, ask)
    route, waits = find_route_again(tx, ask, agent)
    conversation = tx.need(Conversation, "conversation", ask.conversation_id)
    again = replace(message, flight_id=flight.id)
    return _queue_flight(
        tx, ask, flight, again, agent=agent, route=route, conversation=conversation, waits=waits
    )


# -- the target --------------------------------------------------------------------------------------


def _find_target(tx: Transaction, request: MakeAsk) -> Target:
    """Find the agent that a request names: by an address, a session, a card, a project or a mention."""
    named = [request.to, request.project_path, request.target_session_id]
    if len([one for one in named if one is not None]) > 1:
        problem = "name one of to, projectPath and targetSessionId"
        raise Refused(BadRequest(problem=problem, field="to"))
    if request.project_path is not None:
        target = _find_project_target(tx, request)
    elif request.target_session_id is not None:
        found = tx.resolve(request.target_session_id)
        target = _choose_endpoint(tx, request, found.agent, found)
    elif request.to is not None and request.to.startswith("crd_"):
        target = _resolve_card_target(tx, request, request.to)
    else:
        if request.to is not None and "/" in request.to:
            children.ensure_named_child(tx, request.to)
        targeting = decide_target(request.body, request.to, False, tx.resolve)
        found = targeting.target
        assert found is not None  # a request without a target was refused
        if request.child is not None:
            child = children.ensure_child(tx, found.agent, request.child)
            return _choose_endpoint(tx, request, child, soft=targeting.soft)
        return _choose_endpoint(tx, request, found.agent, found, targeting.soft)
    return target._replace(soft=list_soft_mentions(request.body))


def _resolve_card_target(tx: Transaction, request: MakeAsk, card_id: str) -> Target:
    """Return the agent of a card, in the session that the card names."""
    card, agent = access.use_card(tx, card_id)
    session = access.find_card_session(tx, card)
    wanted = replace(request, target_session_id=session) if session else request
    return _choose_endpoint(tx, wanted, agent)._replace(card=card)


def _find_project_target(tx: Transaction, request: MakeAsk) -> Target:
    """Return the project's agent, created if there is none. An isolated ask gets a single-use card."""
    assert tx.place is not None  # the request names a directory
    agent = registration.ensure_base_agent(tx, tx.place)
    target = _choose_endpoint(tx, request, agent)
    if not request.isolated:
        return target
    card = Card(
        id=tx.mint("crd"),
        created_at=tx.now,
        updated_at=tx.now,
        agent_id=agent.id,
        created_by=tx.sender,
        expires_at=tx.now.plus(_DAY),
        max_uses=1,
        reply_to_session_id=request.reply_to_session_id,
    )
    tx.record(CardCreated, card, move="create")
    used, _ = access.use_card(tx, card.id)
    return target._replace(card=used)


def _choose_endpoint(
    tx: Transaction,
    request: MakeAsk,
    agent: Agent,
    found: Resolution | None = None,
    soft: tuple[str, ...] = (),
) -> Target:
    """Choose the endpoint by what the ask demands; `found` may have chosen it already.

    A session, harness, model or node in the resolved address counts as a demand of the ask.
    """
    spelt = found.demand if found else Demand()
    wish = Demand(
        session_id=request.target_session_id or spelt.session_id,
        harness=request.harness or spelt.harness,
        model=request.model or spelt.model,
        node=request.node or spelt.node,
        caller=tx.caller,
    )
    if agent.is_remote:  # its node knows what it has
        return Target(agent, wish, None, found.canonical if found else agent.id, found)
    routes.check_harness(tx, agent, wish)
    known = _reuse_choice(tx, wish, found) if found else None
    canonical = found.canonical if found else Instance(agent=agent).canonical
    choice = known or routes.choose_endpoint(tx, agent, wish)
    return Target(agent, wish, choice, canonical, found, soft=soft)


def _reuse_choice(tx: Transaction, wish: Demand, found: Resolution) -> Choice | None:
    """Return the choice of the resolution, if choosing again from the same records would repeat it.

    With several endpoints it might not: an address prefers the session that it spells out.
    """
    if not wish.is_empty:
        return None
    chosen = [found.choice.endpoint] if found.choice.endpoint else []
    return found.choice if chosen == list(tx.endpoints(found.agent.id)) else None
