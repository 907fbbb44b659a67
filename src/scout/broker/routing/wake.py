"""Wake decisions for messages and asks: which agent, through which endpoint, and why an ask is held."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from scout.base.refusal import Refused, get_code
from scout.broker.routing import (
    attention_items,
    conversations,
    posts,
    routes,
)
from scout.broker.routing.attention_items import find_person_for, open_held_item
from scout.broker.routing.remote import check_node
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.ask import Ask, IfUnreachable
from scout.model.conversation import (
    Conversation,
    ConversationKind,
    Message,
)
from scout.model.delivery import Delivery
from scout.model.events.envelope import Metadata
from scout.model.flight import Flight, hold_flight
from scout.model.problems.session import WakeBudget
from scout.model.waiting import WaitingKind, WaitingOn
from scout.policy.choose import Choice, Demand
from scout.policy.directory import Party
from scout.policy.wake import (
    Cause,
    Occasion,
    Reach,
    WakeAction,
    WakeContext,
    WakeDecision,
    apply_wake_budget,
    check_reach,
    decide_wake,
)
from scout.protocol.operations import build_command_line

_MINUTE = 60
_HOUR = 3600
_COUNTED = 200


def find_route(
    tx: Transaction, agent: Agent, wish: Demand, choice: Choice | None, *, queue: bool
) -> tuple[routes.AgentRoute, str]:
    """Return the route of an ask, and the reason if it must be queued."""
    try:
        route = routes.choose_route(tx, agent, choice, harness=wish.harness, strict=True)
        check_reach(route.reach)
        if agent.is_remote:
            check_node(tx, agent)
        tx.routes[agent.id] = route
    except Refused as refusal:
        if not queue:
            raise
        return routes.choose_route(tx, agent), refusal.diagnostic.message
    return route, ""


def find_route_again(
    tx: Transaction, ask: Ask, agent: Agent, *, queue: bool = False
) -> tuple[routes.AgentRoute, str]:
    """Return the route of an existing ask; `queue` lets it wait even if its asker did not allow that."""
    wish = routes.build_demand(tx, ask)
    queue = queue or ask.if_unreachable is IfUnreachable.QUEUE
    try:
        choice = None if agent.is_remote else routes.choose_endpoint(tx, agent, wish)
        return find_route(tx, agent, wish, choice, queue=queue)
    except Refused as refusal:
        if not queue:
            raise
        return routes.choose_route(tx, agent), refusal.diagnostic.message


def decide_ask_wake(
    tx: Transaction, ask: Ask, route: routes.AgentRoute, conversation: Conversation
) -> WakeDecision:
    """Decide whether an ask wakes its target, within the conversation's wake budget."""
    party = Party(agent_id=ask.target, session_id=ask.target_session_id)
    occasion = Occasion(
        cause=Cause.ASK,
        sender=Party(agent_id=ask.sender, session_id=ask.sender_session_id),
        follow_up=ask.sender == ask.target,
        targets=(party,),
        place=build_wake_context(tx, conversation),
    )
    return decide_who_is_woken(tx, occasion, {ask.target: route.reach})


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
    """Create the delivery of an ask, which starts a program if the decision is to wake."""
    return posts.create_delivery(
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
    """Hold a flight that cannot start now: with a reason, the owner of the next move, and the next check."""
    if waits:
        until, kind, reason = tx.now.plus(tx.rules.periods.queue_expiry), WaitingKind.PEER, waits
        check = _MINUTE
    elif decision.action is WakeAction.HOLD:
        until, kind, reason = None, WaitingKind.OPERATOR, explain_decision(tx, decision)
        check = _HOUR  # the budget is free again by then; a manual start needs no reminder
        if decision.rule != get_code(WakeBudget):
            open_held_item(tx, ask.target, "is started by hand", decision.remedies)
    else:
        return flight
    on = WaitingOn(kind=kind, ref=ask.resolved, until=until)
    owner = find_person_for(tx, ask.target)
    held = hold_flight(flight, on, tx.now, next_move_owner_id=owner, reason=reason)
    return replace(held, next_check_at=tx.now.plus(check))


def build_wake_context(tx: Transaction, conversation: Conversation) -> WakeContext:
    """Return the facts about a conversation that wake rules use; a thread follows its channel's policy."""
    rules = conversation
    while rules.kind is ConversationKind.THREAD:
        rules = tx.need(Conversation, "conversation", rules.parent_id or "")
    channel = rules.kind is ConversationKind.CHANNEL
    beside = {"conversation": rules.id, "agent": tx.sender, "limit": _COUNTED}
    return WakeContext(
        conversation_id=conversation.id,
        kind=conversation.kind,
        quiet=conversation.quiet or rules.quiet,
        soft_mentions=rules.soft_mentions,
        master_id=rules.master_id,
        channel_owner_id=rules.created_by if channel else None,
        others=tx.ledger.value("members_beside", **beside) if channel else 1,
    )


def decide_who_is_woken(
    tx: Transaction, occasion: Occasion, known: Mapping[str, Reach] | None = None
) -> WakeDecision:
    """Decide which agent is woken, notified or held, within the conversation's wake budget."""
    ids = [one.agent_id for one in (*occasion.targets, *occasion.soft)]
    ids += [occasion.leading.agent_id] if occasion.leading else []
    place, duty = occasion.place, occasion.duty
    ids += [one for one in (duty.next_move_owner_id, duty.owner_id) if one] if duty else []
    ids += [occasion.suggestion.agent_id] if occasion.suggestion else []
    ids += [one for one in (place.master_id, place.channel_owner_id) if one] if place else []
    reaches = dict(known or {})
    for agent_id in dict.fromkeys(ids):
        agent = None if agent_id in reaches else tx.agent(agent_id)
        if agent is not None:
            tx.routes[agent_id] = route = routes.choose_route(tx, agent)
            reaches[agent_id] = route.reach
    decision = decide_wake(occasion, reaches, tx.rules.routing)
    if decision.action is not WakeAction.WAKE or place is None or _is_asked_by_person(tx, occasion):
        return decision
    return _apply_wake_budget(tx, decision, place.conversation_id)


def _is_asked_by_person(tx: Transaction, occasion: Occasion) -> bool:
    """Whether a person causes the wake."""
    sender = tx.agent(occasion.sender.agent_id)
    return sender is not None and sender.is_person


def _apply_wake_budget(tx: Transaction, decision: WakeDecision, conversation_id: str) -> WakeDecision:
    """Return the decision, turned into a hold if agents have used up the conversation's wake budget."""
    most = tx.rules.limits.wakes_per_hour
    since = int(tx.now.plus(-_HOUR))
    wanted: dict[str, Any] = {"conversation": conversation_id, "since": since, "limit": most}
    if len(tx.ledger.many(Delivery, "wakes_in", **wanted)) < most:
        return decision  # not even with the wakes by people, which do not count
    wakes = tx.ledger.times("wakes_recent", **wanted)
    name = conversations.name_conversation(tx, conversation_id)
    held = apply_wake_budget(decision, wakes, tx.rules.limits, tx.now, name=name)
    if held is not decision:
        attention_items.report_wake_budget(tx, conversation_id, wakes, name)
    return held


def explain_decision(tx: Transaction, decision: WakeDecision) -> str:
    """Explain a decision; a hold includes the commands with which a person can release it."""
    if decision.action is not WakeAction.HOLD or decision.holder is None:
        return decision.reason
    commands = "; ".join(build_command_line(remedy) for remedy in decision.remedies)
    if decision.rule == get_code(WakeBudget):
        return f"{decision.reason}; {commands}"
    by_hand = f"{tx.address(decision.holder.agent_id)} is started by hand: {commands}"
    return "; ".join(filter(None, (decision.reason, by_hand)))


def deliver_message(
    tx: Transaction,
    message: Message,
    reached: str,
    decision: WakeDecision,
    metadata: Metadata = Metadata(),
    *,
    delegates: bool = False,
) -> Delivery:
    """Create the delivery of a message, which starts a program if the decision is to wake.

    `delegates`: no record tracks the expected answer, so reminders watch the delivery itself.
    """
    holder = decision.holder
    if decision.action is WakeAction.HOLD and decision.rule != get_code(WakeBudget):
        open_held_item(tx, reached, "is started by hand", decision.remedies)
    route = _find_route_to(tx, reached) if decision.action is WakeAction.WAKE else None
    return posts.create_delivery(
        tx,
        message,
        reached,
        wake=route is not None and route.runs,
        delegates=delegates and _is_answer_expected(decision, reached),
        rule=decision.rule,
        reason=explain_decision(tx, decision),
        endpoint_id=route.endpoint.id if route and route.endpoint else None,
        session_id=holder.session_id if holder else None,
        decision=decision.stored if holder else None,
        metadata=metadata,
    )


def _find_route_to(tx: Transaction, agent_id: str) -> routes.AgentRoute | None:
    """Return the route on which the decision was made."""
    agent = tx.agent(agent_id)
    return tx.routes.get(agent_id) or (routes.choose_route(tx, agent) if agent is not None else None)


def _is_answer_expected(decision: WakeDecision, reached: str) -> bool:
    """Whether the recipient is expected to act, even if it was unreachable."""
    if decision.holder is None:
        return decision.instead_of is not None and decision.instead_of.agent_id == reached
    return decision.action in (WakeAction.WAKE, WakeAction.HOLD)
