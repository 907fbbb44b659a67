"""Asks: do this and track it. Nothing is parked in silence: it is refused, or it says what it waits for."""

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Diagnostic, Refused, Remedy
from scout.broker.effects import notices
from scout.broker.operations import ask_chain
from scout.broker.operations.flights import flight_named
from scout.broker.routing import attention_items, conversations, messages, posts, routes
from scout.broker.routing.ask_routes import decide_wake, deliver_ask, find_route, find_route_again, hold_ask
from scout.broker.routing.targets import Target, target_of
from scout.broker.transaction import ownership
from scout.broker.transaction.transaction import Turn, subject_of
from scout.identity.mention import find_mentions
from scout.model.agent import Agent
from scout.model.ask import Ask, AskReceipt, IfUnreachable, SessionPolicy, check_ask
from scout.model.conversation import Conversation, Message, check_body
from scout.model.delivery import Delivery
from scout.model.events.asks import AskCreated, FlightQueued
from scout.model.events.envelope import Metadata
from scout.model.events.talk import WorkItemCreated
from scout.model.flight import Flight, new_flight, retry_flight
from scout.model.problems.session import HarnessUnavailable, NoSession
from scout.model.session import Session, SessionState
from scout.model.work_item import WorkItem, new_work
from scout.policy.permit import Deed
from scout.policy.reach import Action
from scout.protocol.asks import MakeAsk, RetryFlight

__all__ = ["make", "retry"]


def make(turn: Turn, request: MakeAsk) -> AskReceipt:
    """Store message, ask and flight together and route them; refused, nothing is stored at all."""
    body = check_body(request.body)
    try:
        target = target_of(turn, request)
        agent = target.agent
        if target.card is None:
            turn.permit(Deed.ASK, subject_of(agent))
        route, waits = _way(turn, request, target)
    except Refused as refusal:
        problem = refusal.diagnostic if request.project_path is None else _of_project(refusal.diagnostic)
        raise Refused(_with_harness(problem)) from None
    _check_fork(turn, request, route)
    conversation = _conversation(turn, request, agent)
    ask = _ask(turn, request, target, conversation)
    ask_chain.check_limits(turn, ask, body)
    flight = new_flight(turn.mint("flt"), ask, turn.now)
    _begin_work(turn, request, ask)
    message = _say(turn, request, ask, flight)
    turn.record(AskCreated, ask, move="create", target=ask.id)
    return _queue(turn, ask, flight, message, route=route, conversation=conversation, waits=waits)


# -- how it gets there -------------------------------------------------------------------------------


def _way(turn: Turn, request: MakeAsk, target: Target) -> tuple[routes.Route, str]:
    """How it gets there; or why it waits, when the asker said that it may."""
    queue = request.if_unreachable is IfUnreachable.QUEUE
    return find_route(turn, target.agent, target.wish, target.choice, queue=queue)


def _with_harness(problem: Diagnostic) -> Diagnostic:
    """A harness that was misspelt is offered under its name."""
    if not isinstance(problem, HarnessUnavailable) or not problem.candidates:
        return problem
    wish = {"harness": problem.candidates[0].address}
    again = Remedy(operation="ask", parameters=wish, why="the nearest harness")
    return replace(problem, remedies=(again, *problem.remedies))


def _of_project(problem: Diagnostic) -> Diagnostic:
    """The project's agent was not made, so no remedy may name it."""
    others = tuple(one for one in problem.remedies if one.operation != "session.start")
    return replace(problem, remedies=others)


def _check_fork(turn: Turn, request: MakeAsk, route: routes.Route) -> None:
    """A harness that cannot fork a session must not go on in it instead."""
    if request.session_policy is not SessionPolicy.FORK:
        return
    harness = turn.world.harnesses.get(route.harness or "")
    if harness is None or not harness.capabilities.fork:
        problem = f"{route.harness or 'its program'} cannot fork a session"
        fresh = {"to": turn.address(route.reach.agent_id), "sessionPolicy": "new", "body": request.body}
        remedy = Remedy(operation="ask", parameters=fresh, why="in a new session")
        raise Refused(BadRequest(problem=problem, field="sessionPolicy", remedies=(remedy,)))


def _conversation(turn: Turn, request: MakeAsk, agent: Agent) -> Conversation:
    if request.conversation_id is None:
        return posts.dm_of(turn, turn.sender, agent.id)
    conversation = turn.need(Conversation, "conversation", request.conversation_id)
    conversations.may_read(turn, conversation)
    conversations.check_company(turn, conversation, agent)
    posts.joined(turn, conversation.id, agent.id)
    return conversation


# -- what --------------------------------------------------------------------------------------------


def _ask(turn: Turn, request: MakeAsk, target: Target, conversation: Conversation) -> Ask:
    found, wish = target.found, target.wish
    inside = ask_chain.inside_of(turn, request.within)
    policy = request.session_policy
    existing = SessionPolicy.EXISTING if wish.session_id else SessionPolicy.REUSE
    ask = Ask(
        id=turn.mint("ask"),
        conversation_id=conversation.id,
        message_id=turn.mint("msg"),
        sender=turn.sender,
        sender_session_id=turn.actor.session_id,
        target=target.agent.id,
        resolved=target.canonical,
        alias_id=found.alias_id if found else None,
        alias_revision=found.alias_revision if found else None,
        project_path=turn.place.directory if turn.place and request.project_path else None,
        session_policy=policy or (SessionPolicy.NEW if request.isolated else existing),
        target_session_id=wish.session_id,
        harness=wish.harness,
        model=wish.model,
        node=wish.node,
        reply_to=_return_address(turn, request),
        reply_to_session_id=request.reply_to_session_id,
        reply_mode=request.reply_mode,
        if_unreachable=request.if_unreachable,
        work_item_id=_work_item_id(turn, request),
        card_id=target.card.id if target.card else None,
        chain=(*inside.chain, inside.id) if inside else (),
        created_at=turn.now,
        expires_at=turn.now.plus(turn.rules.periods.queue_expiry),
    )
    return check_ask(ask)


def _work_item_id(turn: Turn, request: MakeAsk) -> str | None:
    """The item it belongs to: one that the asker has a part in, or a new one."""
    if request.work_item is not None and request.work_item_id is not None:
        problem = "an ask belongs to a work item or begins one, not both"
        raise Refused(BadRequest(problem=problem, field="workItem"))
    if request.work_item_id is not None:
        item = turn.need(WorkItem, "work item", request.work_item_id)
        parties = (item.owner_id, item.requester_id, item.reviewer_id, item.next_move_owner_id)
        ownership.check_mover(turn, "work item", item.id, *parties)
        return item.id
    return turn.mint("wrk") if request.work_item is not None else None


def _begin_work(turn: Turn, request: MakeAsk, ask: Ask) -> None:
    """The new item is the target's, and the ask itself tells it so."""
    if request.work_item is not None and ask.work_item_id is not None:
        item = new_work(
            ask.work_item_id,
            request.work_item,
            turn.now,
            requester_id=ask.sender,
            owner_id=ask.target,
            conversation_id=ask.conversation_id,
            ask_id=ask.id,
        )
        notices.noted(turn, WorkItemCreated, item, move="create", reason=f"ask {ask.id}")


def _return_address(turn: Turn, request: MakeAsk) -> str | None:
    """Where the answer goes, if not to the asker: somebody who may be spoken to, a session that lives."""
    named = turn.resolve(request.reply_to).agent if request.reply_to else None
    if request.reply_to_session_id is not None:
        session = turn.need(Session, "session", request.reply_to_session_id)
        agent = turn.need(Agent, "agent", session.agent_id)
        if session.state not in (SessionState.STARTING, SessionState.LIVE):
            raise Refused(NoSession(address=turn.address(agent.id), session=session.id))
        if named is not None and named.id != agent.id:
            raise turn.missing(f"session of {turn.address(named.id)}", session.id)
        named = agent
    if named is None:
        return None
    if named.id != turn.sender:
        turn.permit(Deed.ADDRESS, subject_of(named))
    return named.id


def _say(turn: Turn, request: MakeAsk, ask: Ask, flight: Flight) -> Message:
    body = request.body
    mentions = find_mentions(body)
    soft = tuple(one.address.canonical for one in mentions.soft if one.address)
    metadata = Metadata(
        mentions=soft,
        target_agents=(ask.target,),
        resolved=ask.resolved,
        alias_id=ask.alias_id,
        alias_revision=ask.alias_revision,
    )
    return posts.post(
        turn,
        ask.conversation_id,
        body,
        message_id=ask.message_id,
        attachments=messages.attached(turn, request.attachments),
        ask_id=ask.id,
        flight_id=flight.id,
        work_item_id=ask.work_item_id,
        metadata=metadata,
    )


# -- how ---------------------------------------------------------------------------------------------


def _queue(
    turn: Turn,
    ask: Ask,
    flight: Flight,
    message: Message,
    *,
    route: routes.Route,
    conversation: Conversation,
    waits: str = "",
) -> AskReceipt:
    """The flight and its delivery: carried by a program, taken from an inbox, or held with a reason."""
    decision = decide_wake(turn, ask, route, conversation)
    queued = _in_line(turn, flight, carried=route.runs and decision.action is Action.WAKE)
    flight = hold_ask(turn, ask, queued, decision, waits)
    turn.record(FlightQueued, flight, move="queue", reason=flight.reason)
    delivery = deliver_ask(
        turn, ask, message, route=route, decision=decision, reason=flight.reason, waits=bool(waits)
    )
    notes = tuple(f"{root} is an allowed root from now on" for root in dict.fromkeys(turn.new_roots))
    return receipt(turn, ask, flight, delivery, route=route, notes=notes)


def _in_line(turn: Turn, flight: Flight, *, carried: bool) -> Flight:
    """A flight that Scout carries says at once when it cannot start at once."""
    person = attention_items.is_person(turn.agent(flight.requester_id))
    forecast = turn.world.forecast(person) if carried or turn.world.paused else ""
    return replace(flight, reason=forecast) if forecast else flight


def receipt(
    turn: Turn,
    ask: Ask,
    flight: Flight,
    delivery: Delivery,
    *,
    route: routes.Route,
    notes: tuple[str, ...] = (),
) -> AskReceipt:
    """What the asker gets back."""
    endpoint = None if ask.session_policy is SessionPolicy.NEW else route.endpoint
    return AskReceipt(
        conversation_id=ask.conversation_id,
        message_id=ask.message_id,
        ask_id=ask.id,
        flight_id=flight.id,
        state=flight.state,
        phase=flight.phase,
        target=ask.target,
        address=turn.address(ask.target),
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
        model_requested=ask.model,
        attempts=delivery.attempts or None,
        may_repeat=delivery.may_repeat,
        notes=notes,
    )


def retry(turn: Turn, request: RetryFlight) -> AskReceipt:
    """The same ask again, in a new flight."""
    old = flight_named(turn, request.flight_id)
    ask = turn.need(Ask, "ask", old.ask_id)
    agent = turn.need(Agent, "agent", ask.target)
    if ask.sender != turn.sender:
        turn.permit(Deed.CONTROL, subject_of(agent))
    newest = turn.ledger.many(Flight, "flights_of_ask", ask=ask.id)[-1]
    flight = retry_flight(newest, ask, turn.mint("flt"), turn.now)
    message = turn.need(Message, "message", ask.message_id)
    ask_chain.check_room(turn, ask)
    route, waits = find_route_again(turn, ask, agent)
    conversation = turn.need(Conversation, "conversation", ask.conversation_id)
    again = replace(message, flight_id=flight.id)
    return _queue(turn, ask, flight, again, route=route, conversation=conversation, waits=waits)
