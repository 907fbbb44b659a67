"""Messages: send, read and redact them, and store the files they carry."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused
from scout.broker.operations import access, agents
from scout.broker.routing import (
    attachments,
    conversations,
    posts,
    registration,
    remote,
    routes,
    users,
    wake,
)
from scout.broker.routing.remote import find_node_name
from scout.broker.routing.unread import count_by_conversation, find_broadcast
from scout.broker.routing.views import extend_record
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.paging import build_page, decode_number, get_page_size
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.identity.lexer import lex
from scout.identity.name import PathName
from scout.identity.path import AgentPath
from scout.model.access.token import TokenKind
from scout.model.agent import Agent, Lifecycle, read_config
from scout.model.conversation import (
    Attachment,
    Conversation,
    ConversationKind,
    Member,
    Message,
    Receipt,
    check_body,
    derive_dm_id,
)
from scout.model.delivery import Delivery
from scout.model.events.envelope import Metadata
from scout.model.events.talk import (
    AttachmentStored,
    MessageRedacted,
    read_message,
)
from scout.model.node import Node
from scout.model.problems.request import Forbidden, NotFound
from scout.policy.directory import Party
from scout.policy.limits import check_attachment, check_person_rate
from scout.policy.permit import Deed, Subject
from scout.policy.resolver.resolve import Resolution, Targeting, decide_target, resolve
from scout.policy.wake import Cause, Occasion, WakeAction, WakeDecision
from scout.protocol.request import Page
from scout.protocol.talk import (
    Blob,
    GetBlob,
    GetMessage,
    Latest,
    LatestItem,
    ListMessages,
    MessageLine,
    MessageView,
    PutBlob,
    RedactMessage,
    Send,
)
from scout.store.ledger import LAST
from scout.store.redact import redact as take_out

_MINUTE = 60
_NEWEST = (1 << 63) - 1


def send(tx: Transaction, request: Send) -> Receipt:
    """Store a message and route it, together with the wake decision."""
    body = check_body(request.body)
    _check_one_place(request)
    card = request.to if request.to is not None and request.to.startswith("crd_") else None
    targeting = _resolve_card(tx, card) if card else _choose_target(tx, request)
    target = targeting.target.agent if targeting.target else None
    if target is not None and card is None:
        tx.permit(Deed.ADDRESS, build_subject(target))
    check_rate_to_person(tx, target)
    conversation = _find_conversation(tx, request, target)
    decision = _decide_wake(tx, request, targeting, conversation)
    metadata = _build_metadata(tx, request, targeting, decision, conversation)
    nodes = _list_nodes(tx, request)
    metadata = replace(metadata, nodes=tuple(one.id for one in nodes)) if nodes else metadata
    message = posts.post_message(
        tx,
        conversation.id,
        body,
        kind=request.kind,
        follow_up=request.follow_up,
        reply_to=_check_reply_to(tx, request.reply_to),
        attachments=attachments.find_attachments(tx, request.attachments),
        metadata=metadata,
    )
    deliveries = _route(tx, message, conversation, target, decision=decision, metadata=metadata)
    notes = tuple(problem.message for problem in targeting.unresolved)
    notes += tuple(note for one in deliveries for note in remote.describe_way(tx, one.target))
    return Receipt(
        conversation_id=conversation.id,
        message_id=message.id,
        deliveries=tuple(posts.build_delivery_receipt(tx, one) for one in deliveries),
        notes=(*notes, *_build_notes(tx, decision, nodes)),
        alias_id=metadata.alias_id,
        alias_revision=metadata.alias_revision,
    )


def _build_notes(tx: Transaction, decision: WakeDecision, nodes: Sequence[Node]) -> list[str]:
    """Explain whom a broadcast reaches, why the recipient is not woken now, or why another agent is."""
    reach = remote.describe_reach(tx, nodes, agents.count_agents(tx)) if nodes else ()
    pause = tx.services.paused if decision.action is WakeAction.WAKE else None
    return [one for one in (*reach, wake.explain_decision(tx, decision), pause.words if pause else "") if one]


def check_rate_to_person(tx: Transaction, target: Agent | None) -> None:
    """Limit how often an agent may message a person; people and Scout are exempt."""
    actor, limits = tx.actor, tx.rules.limits
    if target is None or actor.kind is not TokenKind.AGENT or not target.is_person:
        return
    most, place = limits.messages_to_person_per_minute, derive_dm_id(tx.sender, target.id)
    back = tx.ledger.one(Message, "messages_back", conversation=place, some=most - 1)
    if back is None or tx.now.since(back.created_at) >= _MINUTE:
        return
    newest = tx.ledger.many(Message, "messages_before", conversation=place, before=_NEWEST, limit=2 * most)
    mine = [one.created_at for one in newest if one.sender == tx.sender]
    if len(mine) >= most:
        check_person_rate(tx.address(tx.sender), mine[most - 1], limits, tx.now)


def _check_reply_to(tx: Transaction, address: str | None) -> str | None:
    """Return the agent that gets the replies; the sender must be allowed to address it."""
    if address is None:
        return None
    agent = tx.resolve(address).agent
    tx.permit(Deed.ADDRESS, build_subject(agent))
    return agent.id


def _check_one_place(request: Send) -> None:
    places = (request.to, request.channel, request.conversation_id, request.thread, request.broadcast or None)
    if len([one for one in places if one is not None]) > 1:
        problem = "name one of to, channel, conversationId, thread and broadcast"
        raise Refused(BadRequest(problem=problem, field="to"))


def _list_nodes(tx: Transaction, request: Send) -> list[Node]:
    """Return the other nodes of the operator that a broadcast is sent to."""
    if not request.all_nodes:
        return []
    if not request.broadcast:
        raise Refused(BadRequest(problem="allNodes needs broadcast", field="allNodes"))
    tx.permit(Deed.ADDRESS, Subject(name="your other machines", user=tx.services.operator))
    return remote.list_own_nodes(tx)


def _resolve_card(tx: Transaction, card_id: str) -> Targeting:
    """Resolve a card's target; its holder needs no permission to see the agent."""
    card, agent = access.use_card(tx, card_id)
    wanted = access.find_card_session(tx, card) or agent.id
    return Targeting(rule="card", target=resolve(wanted, tx.everybody, tx.caller, tx.now))


def _choose_target(tx: Transaction, request: Send) -> Targeting:
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
        return Targeting(rule="created", target=_create_target(tx, request, name.path))


def _check_subtree(tx: Transaction, path: AgentPath) -> None:
    """Require permission for a path below another user, whether or not the agent exists.

    Only the operator's agents are told that there is no such user.
    """
    theirs = tx.actor.user == tx.services.operator
    if not theirs or users.find_user(tx, path.user) is not None:
        tx.permit(Deed.ADDRESS, Subject(name=str(path), path=path))


def _create_target(tx: Transaction, request: Send, path: AgentPath) -> Resolution:
    """Create the agent at an unused path from the config in the request."""
    tx.permit(Deed.CONTROL, Subject(name=str(path), path=path))
    config = registration.check_config(tx, read_config(request.create or {}))
    registration.register_agent_at(tx, path, config)
    return tx.resolve(str(path))


# -- the conversation --------------------------------------------------------------------------------


def _find_conversation(tx: Transaction, request: Send, target: Agent | None) -> Conversation:
    if request.channel is not None:
        return _join(tx, conversations.require_channel(tx, request.channel))
    if request.conversation_id is not None:
        found = tx.need(Conversation, "conversation", request.conversation_id)
        return _check_target(tx, _join(tx, found), target)
    if request.thread is not None:
        return _check_target(tx, _join(tx, conversations.ensure_thread(tx, request.thread)), target)
    if request.broadcast:
        return _join(tx, posts.ensure_broadcast_conversation(tx, tx.actor.user or tx.services.operator))
    assert target is not None  # a request without a conversation has a target, or was refused
    return posts.ensure_direct_conversation(tx, tx.sender, target.id)


def _check_target(tx: Transaction, conversation: Conversation, target: Agent | None) -> Conversation:
    return conversations.check_recipients(tx, conversation, target) if target else conversation


def _join(tx: Transaction, conversation: Conversation) -> Conversation:
    """Make the sender a member of the conversation; a direct conversation admits only its two members."""
    if conversation.kind in (ConversationKind.CHANNEL, ConversationKind.BROADCAST):
        if conversation.owner != tx.actor.user:
            conversations.require_permission(tx, Deed.ADDRESS, conversation)
        posts.ensure_member(tx, conversation.id, tx.sender)
        return conversation
    if conversation.kind is ConversationKind.THREAD:
        conversations.require_readable(tx, conversation)
        posts.ensure_member(tx, conversation.id, tx.sender)
        return conversation
    members = tuple(one.agent_id for one in conversations.list_members(tx, conversation.id))
    if tx.sender not in members:
        subject = Subject(name=conversation.id, conversation_id=conversation.id, members=members)
        tx.permit(Deed.ADDRESS, subject)
    for gone in _find_retired(tx, members):
        raise Refused(routes.build_retired_refusal(tx, gone))
    return conversation


def _find_retired(tx: Transaction, members: Sequence[str]) -> list[Agent]:
    found = [tx.agent(one) for one in members if one != tx.sender]
    return [one for one in found if one is not None and one.lifecycle is Lifecycle.RETIRED]


# -- the wake decision -------------------------------------------------------------------------------


def _decide_wake(
    tx: Transaction, request: Send, targeting: Targeting, conversation: Conversation
) -> WakeDecision:
    target, leading = targeting.target, targeting.leading
    party: tuple[Party, ...] = (
        (_build_party(target),) if target and targeting.rule != "leading mention" else ()
    )
    if target is None:
        party = tuple(
            Party(agent_id=one) for one in conversations.choose_default_recipients(tx, conversation)
        )
    soft = [_resolve_soft_mention(tx, text) for text in targeting.soft]
    occasion = Occasion(
        cause=Cause.WAKE if request.wake else Cause.SEND,
        sender=Party(agent_id=tx.sender, session_id=tx.actor.session_id),
        kind=request.kind,
        follow_up=request.follow_up,
        targets=party,
        leading=_build_party(leading) if leading else None,
        soft=tuple(one for one in soft if one),
        place=wake.build_wake_context(tx, conversation),
    )
    return wake.decide_who_is_woken(tx, occasion)


def _build_party(found: Resolution) -> Party:
    endpoint = found.choice.endpoint
    named = found.form == "session" or found.text.startswith("ses_")
    exact = endpoint.session_id if endpoint is not None and named else None
    return Party(agent_id=found.agent.id, session_id=exact)


def _resolve_soft_mention(tx: Transaction, text: str) -> Party | None:
    """Return the mentioned agent if the sender may address it."""
    try:
        agent = tx.resolve(text).agent
    except Refused:
        return None
    return Party(agent_id=agent.id) if tx.allows(Deed.ADDRESS, build_subject(agent)) else None


def _build_metadata(
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
    """Deliver to the holder of the next move; a direct message always reaches its partner."""
    holder = decision.holder
    reached = holder.agent_id if holder else _find_partner(tx, conversation, target)
    if reached is None:
        return []
    delivery = wake.deliver_message(tx, message, reached, decision, metadata, delegates=True)
    named = target.id if target is not None else None
    if holder is None or named in (None, reached, tx.sender):
        return [delivery]
    # The named agent also gets it in its inbox, although another agent has the next move.
    also = posts.create_delivery(
        tx, message, str(named), rule="named", reason=decision.reason, metadata=metadata
    )
    return [delivery, also]


def _find_partner(tx: Transaction, conversation: Conversation, target: Agent | None) -> str | None:
    """Return the recipient of a message that wakes no agent; never the sender."""
    if target is not None:
        return target.id if target.id != tx.sender else None
    return next(iter(conversations.choose_default_recipients(tx, conversation)), None)


# -- files -------------------------------------------------------------------------------------------


async def put_blob(call: CallContext[CallBroker], request: PutBlob) -> Attachment:
    """Store the bytes in a thread, then record the uploader. Idempotency compares the file's hash."""
    stored = await asyncio.to_thread(_store, call.glance(), request)
    hashed = replace(request, data=stored.sha256.encode())
    return await call.write_once(hashed, lambda tx, _: record_upload(tx, stored))


def _store(tx: Transaction, request: PutBlob) -> Attachment:
    """Store a file; the same bytes are the same file."""
    if tx.actor.kind is TokenKind.GUEST or tx.actor.agent_id is None:
        raise Refused(Forbidden(action="store", subject="a file", needs=("the token of an agent",)))
    check_attachment(request.name[:60], len(request.data), tx.rules.limits)
    return Attachment(
        sha256=tx.services.blobs.put(request.data),
        name=request.name,
        size=len(request.data),
        media_type=request.media_type,
    )


def record_upload(tx: Transaction, stored: Attachment) -> Attachment:
    """Record the uploader of a file, which may read it from now on."""
    if not tx.ledger.value("file_uploaded", hashed=stored.sha256, agent=tx.sender):
        tx.append(AttachmentStored, tx.sender, stored)
    return stored


def get_blob(tx: Transaction, request: GetBlob) -> Blob:
    """Return a stored file. A file that the caller may not read is reported as not found."""
    if not attachments.may_read(tx, request.sha256):
        raise attachments.build_missing_refusal(request.sha256)
    data = tx.services.blobs.get(request.sha256) if attachments.SHA256.fullmatch(request.sha256) else None
    if data is None:
        raise attachments.build_missing_refusal(request.sha256)
    attachment = Attachment(sha256=request.sha256, name=request.sha256[:12], size=len(data))
    return Blob(attachment=attachment, data=data)


# -- history -----------------------------------------------------------------------------------------


def get_message(tx: Transaction, request: GetMessage) -> MessageView:
    """Return one message with its deliveries, readers and replies."""
    return _show_message(tx, _get_readable(tx, request.message_id))


def _get_readable(tx: Transaction, message_id: str) -> Message:
    message = tx.need(Message, "message", message_id)
    conversation = tx.need(Conversation, "conversation", message.conversation_id)
    conversations.require_readable(tx, conversation)
    return message


def _show_message(tx: Transaction, message: Message) -> MessageView:
    most = tx.rules.limits.page_most
    deliveries = tx.ledger.many(Delivery, "deliveries_of_message", message=message.id, limit=most)
    replies = tx.ledger.many(Message, "replies_to", message=message.id, limit=most)
    members: list[Member] = conversations.list_members(tx, message.conversation_id)
    read = [one.agent_id for one in members if one.read_seq >= message.seq and one.agent_id != message.sender]
    return extend_record(
        MessageView,
        message,
        deliveries=tuple(posts.build_delivery_receipt(tx, one) for one in deliveries),
        read_by=tuple(read),
        replies=tuple(one.id for one in replies),
    )


def list_messages(tx: Transaction, request: ListMessages) -> Page[MessageLine]:
    """List a conversation's messages, oldest first."""
    conversation = _find_listed(tx, request)
    if conversation is None:
        return Page(items=())
    conversations.require_readable(tx, conversation)
    wanted = get_page_size(request.limit, tx.rules.limits)
    if request.newest:
        newest = tx.ledger.many(
            Message, "messages_before", conversation=conversation.id, before=_NEWEST, limit=wanted
        )
        return Page(items=tuple(_build_line(tx, message) for message in reversed(newest)))
    after = decode_number(request.cursor)
    found = tx.ledger.many(
        Message, "messages_after", conversation=conversation.id, after=after, limit=wanted + 1
    )
    return build_page([_build_line(tx, message) for message in found], wanted, lambda message: message.seq)


def _build_line(tx: Transaction, message: Message) -> MessageLine:
    return extend_record(
        MessageLine,
        message,
        sender_address=tx.address(message.sender),
        sender_node=find_node_name(tx, message.sender),
    )


def _find_listed(tx: Transaction, request: ListMessages) -> Conversation | None:
    if request.conversation is not None:
        return tx.need(Conversation, "conversation", request.conversation)
    if request.channel is not None:
        return conversations.require_channel(tx, request.channel)
    if request.to is not None:
        other = agents.find(tx, request.to).id
        return tx.get(Conversation, derive_dm_id(tx.sender, other))
    problem = "which conversation? give conversation, channel or to"
    raise Refused(BadRequest(problem=problem, field="conversation"))


def require_redaction(tx: Transaction, request: RedactMessage) -> Message:
    """Return the message to redact; refuse a caller who may not."""
    tx.permit(Deed.ADMINISTER, Subject(name=request.message_id[:60]))
    return tx.need(Message, "message", request.message_id)


def redact_message(tx: Transaction, request: RedactMessage) -> MessageView:
    """Remove a message's body from the store but keep its record; the only operation that changes history."""
    message = require_redaction(tx, request)
    done = take_out(tx.ledger.connection, message.id, tx.now)
    if done.first:
        tx.record(MessageRedacted, done.message, move="redact", target=message.conversation_id)
    return _show_message(tx, done.message)


def list_latest(tx: Transaction, request: Latest) -> Page[LatestItem]:
    """List the newest message of each conversation that the caller recently joined or exchanged mail in."""
    wanted = get_page_size(request.limit, tx.rules.limits)
    reach = 4 * wanted
    ours = [read_message(event) for event in tx.ledger.log.list_said(tx.sender, reach)]
    came = tx.ledger.many(Delivery, "deliveries_to", agent=tx.sender, before=LAST, limit=reach)
    got = [tx.get(Message, one.message_id) for one in came]
    joined = tx.ledger.many(Member, "memberships", agent=tx.sender, before=_NEWEST, limit=reach)
    places = [one.conversation_id for one in (*ours, *(one for one in got if one), *joined)]
    broadcast = find_broadcast(tx, tx.sender)
    places += [broadcast.id] if broadcast else []
    counts = count_by_conversation(tx, tx.sender)
    found = [
        posts.find_newest_message(tx, place) for place in dict.fromkeys((*places, *filter(None, counts)))
    ]
    newest = sorted((one for one in found if one), key=lambda one: -one.seq)
    return Page(items=tuple(_build_latest_item(tx, one, counts) for one in newest[:wanted]))


def _build_latest_item(tx: Transaction, newest: Message, counts: Counter[str]) -> LatestItem:
    conversation = tx.need(Conversation, "conversation", newest.conversation_id)
    others = [one for one in conversations.list_members(tx, conversation.id, 3) if one.agent_id != tx.sender]
    name = conversation.name or ", ".join(tx.address(one.agent_id) for one in others)
    return LatestItem(
        conversation_id=conversation.id,
        kind=conversation.kind,
        name=name,
        message=newest,
        unread=counts[conversation.id],
    )
