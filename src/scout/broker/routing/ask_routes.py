"""The route of an ask: through which endpoint it goes, who is woken for it, and why it is held."""

from msgspec.structs import replace

from scout.base.refusal import Refused, code_of
from scout.broker.routing import messages, posts, routes
from scout.broker.routing.held_items import show_held
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.ask import Ask, IfUnreachable
from scout.model.conversation import Conversation, Message
from scout.model.delivery import Delivery
from scout.model.events.envelope import Metadata
from scout.model.flight import Flight, hold_flight
from scout.model.problems.session import WakeBudget
from scout.model.waiting import WaitingKind, WaitingOn
from scout.policy.choose import Choice, Demand
from scout.policy.obligation import Party
from scout.policy.reach import WakeAction, check_reach
from scout.policy.wake import Cause, Occasion, WakeDecision

_MINUTE = 60
_HOUR = 3600


def find_route(
    tx: Transaction, agent: Agent, wish: Demand, choice: Choice | None, *, queue: bool
) -> tuple[routes.AgentRoute, str]:
    """The route of an ask; or, where it may be queued, the reason why it waits."""
    try:
        route = routes.route_of(tx, agent, choice, harness=wish.harness, strict=True)
        check_reach(route.reach)
    except Refused as refusal:
        if not queue:
            raise
        return routes.route_of(tx, agent), refusal.diagnostic.message
    return route, ""


def find_route_again(
    tx: Transaction, ask: Ask, agent: Agent, *, queue: bool = False
) -> tuple[routes.AgentRoute, str]:
    """The route of an ask that was made before; `queue` lets it wait even if its asker did not."""
    wish = routes.demand_of(tx, ask)
    queue = queue or ask.if_unreachable is IfUnreachable.QUEUE
    try:
        choice = routes.choice_for(tx, agent, wish)
        return find_route(tx, agent, wish, choice, queue=queue)
    except Refused as refusal:
        if not queue:
            raise
        return routes.route_of(tx, agent), refusal.diagnostic.message


def decide_wake(
    tx: Transaction, ask: Ask, route: routes.AgentRoute, conversation: Conversation
) -> WakeDecision:
    """Decide who is woken for an ask: its target, within the budget of the conversation."""
    party = Party(agent_id=ask.target, session_id=ask.target_session_id)
    occasion = Occasion(
        cause=Cause.ASK,
        sender=Party(agent_id=ask.sender, session_id=ask.sender_session_id),
        follow_up=ask.sender == ask.target,
        targets=(party,),
        place=messages.wake_context(tx, conversation),
    )
    return messages.decide_who_is_woken(tx, occasion, {ask.target: route.reach})


def deliver_ask(
    tx: Transaction,
    ask: Ask,
    message: Message,
    *,
    route: routes.AgentRoute,
    decision: WakeDecision,
    reason: str,
    waits: bool = False,
) -> Delivery:
    """Record the delivery of an ask; a program is started for it if that was decided."""
    return posts.deliver(
        tx,
        message,
        ask.target,
        wake=route.runs and decision.action is WakeAction.WAKE and not waits,
        rule=decision.rule,
        reason=decision.reason or reason,
        endpoint_id=route.endpoint.id if route.endpoint else None,
        session_id=ask.target_session_id,
        decision=decision.stored,
        metadata=Metadata(resolved=ask.resolved, alias_id=ask.alias_id, alias_revision=ask.alias_revision),
    )


def hold_ask(tx: Transaction, ask: Ask, flight: Flight, decision: WakeDecision, waits: str) -> Flight:
    """A flight that cannot start now says why, whose move it is and when it is looked at again."""
    if waits:
        until, kind, reason = tx.now.plus(tx.rules.periods.queue_expiry), WaitingKind.PEER, waits
        check = _MINUTE
    elif decision.action is WakeAction.HOLD:
        until, kind, reason = None, WaitingKind.OPERATOR, messages.explain_decision(tx, decision)
        check = _HOUR  # a budget is free again by then; who starts by hand needs no reminder
        if decision.rule != code_of(WakeBudget):
            show_held(tx, ask.target, "is started by hand", decision.remedies)
    else:
        return flight
    on = WaitingOn(kind=kind, ref=ask.resolved, until=until)
    owner = tx.services.operator_agent
    held = hold_flight(flight, on, tx.now, next_move_owner_id=owner, reason=reason)
    return replace(held, next_check_at=tx.now.plus(check))
