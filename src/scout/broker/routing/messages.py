"""Messages: said once, on disk before anybody is told, carried to whom they are for."""

import mimetypes
from collections.abc import Mapping, Sequence
from typing import Any

from scout.base.refusal import BadRequest, Refused, code_of
from scout.broker.routing import (
    attachments,
    attention_items,
    conversations,
    names,
    operator_alarms,
    posts,
    registration,
    routes,
)
from scout.broker.routing.held_items import show_held
from scout.broker.transaction.transaction import Transaction, subject_of
from scout.identity.lexer import lex
from scout.identity.name import PathName
from scout.identity.path import AgentPath, Kind
from scout.model.agent import Agent, Lifecycle, read_config
from scout.model.conversation import (
    Attachment,
    Conversation,
    ConversationKind,
    Message,
    Receipt,
    check_body,
    dm_id,
)
from scout.model.delivery import Delivery
from scout.model.events.envelope import Metadata
from scout.model.problems.request import NotFound
from scout.model.problems.session import WakeBudget
from scout.model.token import TokenKind
from scout.policy.limits import check_person_rate
from scout.policy.obligation import Party
from scout.policy.permit import Deed, Subject
from scout.policy.reach import Reach, WakeAction
from scout.policy.resolve import Resolution, resolve
from scout.policy.target import Targeting, decide_target
from scout.policy.wake import Cause, Occasion, WakeContext, WakeDecision, budgeted, decide_wake
from scout.protocol.operations import command_line
from scout.protocol.talk import Send
from scout.store.ledger import LAST

_HOUR = 3600
_MINUTE = 60
_NEWEST = (1 << 63) - 1
_COUNTED = 200
_MEDIA_TYPES = mimetypes.MimeTypes()  # made here, for it reads the files of the system


def send(tx: Transaction, request: Send) -> Receipt:
    """Store a message and route it; whether anybody is woken is decided here and stored with it."""
    body = check_body(request.body)
    _one_place(request)
    card = request.to if request.to is not None and request.to.startswith("crd_") else None
    targeting = _by_card(tx, card) if card else _targeting(tx, request)
    target = targeting.target.agent if targeting.target else None
    if target is not None and card is None:
        tx.permit(Deed.ADDRESS, subject_of(target))
    _check_person_rate(tx, target)
    conversation = _conversation(tx, request, target)
    decision = _decision(tx, request, targeting, conversation)
    metadata = _metadata(tx, request, targeting, decision, conversation)
    message = posts.post(
        tx,
        conversation.id,
        body,
        kind=request.kind,
        follow_up=request.follow_up,
        reply_to=_reply_to(tx, request.reply_to),
        attachments=attachments_of(tx, request.attachments),
        metadata=metadata,
    )
    deliveries = _route(tx, message, conversation, target, decision=decision, metadata=metadata)
    notes = tuple(problem.message for problem in targeting.unresolved)
    return Receipt(
        conversation_id=conversation.id,
        message_id=message.id,
        deliveries=tuple(posts.receipt_of(tx, one) for one in deliveries),
        notes=(*notes, *_waits(tx, decision)),
        alias_id=metadata.alias_id,
        alias_revision=metadata.alias_revision,
    )


def _waits(tx: Transaction, decision: WakeDecision) -> list[str]:
    """Why whom it is for is not woken now, or another is."""
    pause = tx.services.paused if decision.action is WakeAction.WAKE else None
    return [told for told in (explain_decision(tx, decision), pause.words if pause else "") if told]


def _check_person_rate(tx: Transaction, target: Agent | None) -> None:
    """An agent writes so often to a person and no more; people and Scout may."""
    actor, limits = tx.actor, tx.rules.limits
    if target is None or actor.kind is not TokenKind.AGENT or not attention_items.is_person(target):
        return
    most, place = limits.messages_to_person_per_minute, dm_id(tx.sender, target.id)
    back = tx.ledger.one(Message, "messages_back", conversation=place, some=most - 1)
    if back is None or tx.now.since(back.created_at) >= _MINUTE:
        return
    newest = tx.ledger.many(Message, "messages_before", conversation=place, before=_NEWEST, limit=2 * most)
    mine = [one.created_at for one in newest if one.sender == tx.sender]
    if len(mine) >= most:
        check_person_rate(tx.address(tx.sender), mine[most - 1], limits, tx.now)


def _reply_to(tx: Transaction, address: str | None) -> str | None:
    """Who wants the answers, if it is an agent that the sender may speak to."""
    if address is None:
        return None
    agent = tx.resolve(address).agent
    tx.permit(Deed.ADDRESS, subject_of(agent))
    return agent.id


def _one_place(request: Send) -> None:
    places = (request.to, request.channel, request.conversation_id, request.thread, request.broadcast or None)
    if sum(one is not None for one in places) > 1:
        problem = "name one of to, channel, conversationId, thread and broadcast"
        raise Refused(BadRequest(problem=problem, field="to"))


def _by_card(tx: Transaction, card_id: str) -> Targeting:
    """Whoever holds a card may use it, whether or not they see its agent otherwise."""
    card, agent = names.used_card(tx, card_id)
    wanted = names.session_of_card(tx, card) or agent.id
    return Targeting(rule="card", target=resolve(wanted, tx.everybody, tx.caller, tx.now))


def _targeting(tx: Transaction, request: Send) -> Targeting:
    elsewhere = bool(request.channel or request.conversation_id or request.thread or request.broadcast)
    try:
        return decide_target(request.body, request.to, elsewhere, tx.resolve)
    except Refused:
        name = lex(request.to) if request.to and request.to.startswith("/") else None
        if not isinstance(name, PathName):
            raise
        _check_subtree(tx, name.path)
        if request.create is None or tx.everybody.at_path(name.path) is not None:
            raise
        return Targeting(rule="created", target=_created(tx, request, name.path))


def _check_subtree(tx: Transaction, path: AgentPath) -> None:
    """What lies below another user is forbidden, whether or not it is there."""
    if tx.ledger.many(Agent, "agents_of_owner", owner=path.user, before=LAST, limit=1):
        tx.permit(Deed.ADDRESS, Subject(name=str(path), path=path))


def _created(tx: Transaction, request: Send, path: AgentPath) -> Resolution:
    """Posting to a path that nobody has, with a config, makes its agent first."""
    tx.permit(Deed.CONTROL, Subject(name=str(path), path=path))
    config = registration.checked_config(tx, read_config(request.create or {}))
    registration.enter_at(tx, path, config)
    return tx.resolve(str(path))


# -- where -------------------------------------------------------------------------------------------


def _conversation(tx: Transaction, request: Send, target: Agent | None) -> Conversation:
    if request.channel is not None:
        return _joined(tx, conversations.channel_named(tx, request.channel))
    if request.conversation_id is not None:
        found = tx.need(Conversation, "conversation", request.conversation_id)
        return _with(tx, _joined(tx, found), target)
    if request.thread is not None:
        return _with(tx, _joined(tx, conversations.thread_on(tx, request.thread)), target)
    if request.broadcast:
        return _joined(tx, posts.broadcast_conversation(tx, tx.actor.user or tx.services.operator))
    assert target is not None  # without a place there is a target, or it was refused
    return posts.direct_conversation(tx, tx.sender, target.id)


def _with(tx: Transaction, conversation: Conversation, target: Agent | None) -> Conversation:
    return conversations.check_recipients(tx, conversation, target) if target else conversation


def _joined(tx: Transaction, conversation: Conversation) -> Conversation:
    """Who speaks in a conversation takes part in it; a direct one is for its two alone."""
    if conversation.kind in (ConversationKind.CHANNEL, ConversationKind.BROADCAST):
        if conversation.owner != tx.actor.user:
            subject = Subject(name=conversation.name or conversation.id, conversation_id=conversation.id)
            tx.permit(Deed.ADDRESS, subject)
        posts.ensure_member(tx, conversation.id, tx.sender)
        return conversation
    if conversation.kind is ConversationKind.THREAD:
        conversations.may_read(tx, conversation)
        posts.ensure_member(tx, conversation.id, tx.sender)
        return conversation
    members = tuple(one.agent_id for one in conversations.members_of(tx, conversation.id))
    if tx.sender not in members:
        subject = Subject(name=conversation.id, conversation_id=conversation.id, members=members)
        tx.permit(Deed.ADDRESS, subject)
    for gone in _retired(tx, members):
        raise Refused(routes.retired_target(tx, gone))
    return conversation


def _retired(tx: Transaction, members: Sequence[str]) -> list[Agent]:
    found = [tx.agent(one) for one in members if one != tx.sender]
    return [one for one in found if one is not None and one.lifecycle is Lifecycle.RETIRED]


# -- whom to wake ------------------------------------------------------------------------------------


def wake_context(tx: Transaction, conversation: Conversation) -> WakeContext:
    """A conversation as far as waking looks at it; a thread is ruled by the channel that it hangs on."""
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


def _decision(
    tx: Transaction, request: Send, targeting: Targeting, conversation: Conversation
) -> WakeDecision:
    target, leading = targeting.target, targeting.leading
    party: tuple[Party, ...] = (_party(target),) if target and targeting.rule != "leading mention" else ()
    if target is None:
        party = tuple(Party(agent_id=one) for one in conversations.default_recipients(tx, conversation))
    soft = [_soft(tx, text) for text in targeting.soft]
    occasion = Occasion(
        cause=Cause.WAKE if request.wake else Cause.SEND,
        sender=Party(agent_id=tx.sender, session_id=tx.actor.session_id),
        kind=request.kind,
        follow_up=request.follow_up,
        targets=party,
        leading=_party(leading) if leading else None,
        soft=tuple(one for one in soft if one),
        place=wake_context(tx, conversation),
    )
    return decide_who_is_woken(tx, occasion)


def _party(found: Resolution) -> Party:
    endpoint = found.choice.endpoint
    named = found.form == "session" or found.text.startswith("ses_")
    exact = endpoint.session_id if endpoint is not None and named else None
    return Party(agent_id=found.agent.id, session_id=exact)


def _soft(tx: Transaction, text: str) -> Party | None:
    """A mention inside a body counts only for somebody whom the sender may speak to."""
    try:
        agent = tx.resolve(text).agent
    except Refused:
        return None
    return Party(agent_id=agent.id) if tx.allows(Deed.ADDRESS, subject_of(agent)) else None


def decide_who_is_woken(
    tx: Transaction, occasion: Occasion, known: Mapping[str, Reach] | None = None
) -> WakeDecision:
    """Who is woken, told or waited for; within the budget of the conversation."""
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
            reaches[agent_id] = routes.route_of(tx, agent).reach
    decision = decide_wake(occasion, reaches, tx.rules.routing)
    if decision.action is not WakeAction.WAKE or place is None or _is_asked_by_person(tx, occasion):
        return decision
    return _within_budget(tx, decision, place.conversation_id)


def _is_asked_by_person(tx: Transaction, occasion: Occasion) -> bool:
    """Whether no agent causes the wake: a person does."""
    sender = tx.agent(occasion.sender.agent_id)
    return sender is not None and sender.kind is Kind.CONNECTOR


def _within_budget(tx: Transaction, decision: WakeDecision, conversation_id: str) -> WakeDecision:
    """The decision, held when agents have used up the wakes of the conversation."""
    most = tx.rules.limits.wakes_per_hour
    since = int(tx.now.plus(-_HOUR))
    wanted: dict[str, Any] = {"conversation": conversation_id, "since": since, "limit": most}
    if tx.ledger.value("wakes_recent_count", **wanted) < most:
        return decision
    wakes = tx.ledger.times("wakes_recent", **wanted)
    name = conversations.name_of(tx, conversation_id)
    held = budgeted(decision, wakes, tx.rules.limits, tx.now, name=name)
    if held is not decision:
        operator_alarms.report_wake_budget(tx, conversation_id, wakes, name)
    return held


def explain_decision(tx: Transaction, decision: WakeDecision) -> str:
    """Why another has it, or why nobody is woken yet; with the command by which a person changes that."""
    if decision.action is not WakeAction.HOLD or decision.holder is None:
        return decision.reason
    commands = "; ".join(command_line(remedy) for remedy in decision.remedies)
    if decision.rule == code_of(WakeBudget):
        return f"{decision.reason}; {commands}"
    by_hand = f"{tx.address(decision.holder.agent_id)} is started by hand: {commands}"
    return "; ".join(filter(None, (decision.reason, by_hand)))


def _metadata(
    tx: Transaction, request: Send, targeting: Targeting, decision: WakeDecision, conversation: Conversation
) -> Metadata:
    target = targeting.target
    replied = tx.get(Message, request.in_reply_to) if request.in_reply_to else None
    if request.in_reply_to and (replied is None or replied.conversation_id != conversation.id):
        raise Refused(NotFound(noun="message of this conversation", id=request.in_reply_to[:60]))
    leading = (targeting.leading.canonical,) if targeting.leading else ()
    nobody = decision.holder is None
    return Metadata(
        mentions=(*leading, *targeting.soft),
        target_agents=(target.agent.id,) if target else (),
        in_reply_to=request.in_reply_to,
        wake=decision.stored if nobody else None,
        resolved=target.canonical if target else None,
        alias_id=target.alias_id if target else None,
        alias_revision=target.alias_revision if target else None,
    )


def _route(
    tx: Transaction,
    message: Message,
    conversation: Conversation,
    target: Agent | None,
    *,
    decision: WakeDecision,
    metadata: Metadata,
) -> list[Delivery]:
    """One delivery for the one who holds the next move; a direct message reaches its partner anyway."""
    holder = decision.holder
    reached = holder.agent_id if holder else _partner(tx, conversation, target)
    if reached is None:
        return []
    delivery = deliver_message(tx, message, reached, decision, metadata, delegates=True)
    named = target.id if target is not None else None
    if holder is None or named in (None, reached, tx.sender):
        return [delivery]
    # Whom a message names finds it in its inbox, although another has the next move.
    also = posts.deliver(tx, message, str(named), rule="named", reason=decision.reason, metadata=metadata)
    return [delivery, also]


def deliver_message(
    tx: Transaction,
    message: Message,
    reached: str,
    decision: WakeDecision,
    metadata: Metadata = Metadata(),
    *,
    delegates: bool = False,
) -> Delivery:
    """The delivery of a message to whom a decision names; a program is started for it if that was decided.

    `delegates`: no record says that its holder is to act, so that the message itself is watched.
    """
    holder = decision.holder
    if decision.action is WakeAction.HOLD and decision.rule != code_of(WakeBudget):
        show_held(tx, reached, "is started by hand", decision.remedies)
    wakes = decision.action is WakeAction.WAKE
    agent = tx.agent(reached) if wakes else None
    route = routes.route_of(tx, agent) if agent else None
    return posts.deliver(
        tx,
        message,
        reached,
        wake=route is not None and route.runs,
        delegates=delegates and _expects_answer(decision, reached),
        rule=decision.rule,
        reason=explain_decision(tx, decision),
        endpoint_id=route.endpoint.id if route and route.endpoint else None,
        session_id=holder.session_id if holder else None,
        decision=decision.stored if holder else None,
        metadata=metadata,
    )


def _expects_answer(decision: WakeDecision, reached: str) -> bool:
    """Whether somebody was to act on it, also one who could not be reached then."""
    if decision.holder is None:
        return decision.instead_of is not None and decision.instead_of.agent_id == reached
    return decision.action in (WakeAction.WAKE, WakeAction.HOLD)


def _partner(tx: Transaction, conversation: Conversation, target: Agent | None) -> str | None:
    """Who a message is for, although nobody is woken for it; not oneself."""
    if target is not None:
        return target.id if target.id != tx.sender else None
    return next(iter(conversations.default_recipients(tx, conversation)), None)


def attachments_of(tx: Transaction, hashes: Sequence[str]) -> tuple[Attachment, ...]:
    """The stored files that a message names, each once; their sizes were looked up before."""
    return tuple({one.sha256: one for one in (_attachment(tx, text) for text in hashes)}.values())


def _attachment(tx: Transaction, text: str) -> Attachment:
    """A file is named by its hash, with what it is called behind a colon."""
    sha256, _, name = text.partition(":")
    size = tx.files.get(sha256)
    if size is None or not attachments.may_read(tx, sha256):
        raise Refused(NotFound(noun="attachment", id=text[:80]))
    media_type = _MEDIA_TYPES.guess_type(name)[0] or "application/octet-stream"
    return Attachment(sha256=sha256, name=name or sha256[:12], size=size, media_type=media_type)
