"""What was said: reading messages, and the one way to take a body out of history."""

from scout.base.refusal import BadRequest, Refused
from scout.broker.operations import agents
from scout.broker.routing import conversations, posts
from scout.broker.routing.views import extend_record
from scout.broker.transaction.paging import after_number, page, size
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Conversation, Member, Message, dm_id
from scout.model.delivery import Delivery
from scout.model.events.talk import MessageRedacted
from scout.policy.permit import Deed, Subject
from scout.protocol.request import Page
from scout.protocol.talk import GetMessage, ListMessages, MessageLine, MessageView, RedactMessage
from scout.store.redact import redact as take_out

_NEWEST = (1 << 63) - 1


def get(tx: Transaction, request: GetMessage) -> MessageView:
    """One message: who took it, who has read it, who answered."""
    return _shown(tx, _readable(tx, request.message_id))


def _readable(tx: Transaction, message_id: str) -> Message:
    message = tx.need(Message, "message", message_id)
    conversation = tx.need(Conversation, "conversation", message.conversation_id)
    conversations.may_read(tx, conversation)
    return message


def _shown(tx: Transaction, message: Message) -> MessageView:
    most = tx.rules.limits.page_most
    deliveries = tx.ledger.many(Delivery, "deliveries_of_message", message=message.id, limit=most)
    replies = tx.ledger.many(Message, "replies_to", message=message.id, limit=most)
    members: list[Member] = conversations.members_of(tx, message.conversation_id)
    read = [one.agent_id for one in members if one.read_seq >= message.seq and one.agent_id != message.sender]
    return extend_record(
        MessageView,
        message,
        deliveries=tuple(posts.receipt_of(tx, one) for one in deliveries),
        read_by=tuple(read),
        replies=tuple(one.id for one in replies),
    )


def list_messages(tx: Transaction, request: ListMessages) -> Page[MessageLine]:
    """A conversation's messages, oldest first."""
    conversation = _listed(tx, request)
    if conversation is None:
        return Page(items=())
    conversations.may_read(tx, conversation)
    wanted = size(request.limit, tx.rules.limits)
    if request.newest:
        newest = tx.ledger.many(
            Message, "messages_before", conversation=conversation.id, before=_NEWEST, limit=wanted
        )
        return Page(items=tuple(_line(tx, message) for message in reversed(newest)))
    after = after_number(request.cursor)
    found = tx.ledger.many(
        Message, "messages_after", conversation=conversation.id, after=after, limit=wanted + 1
    )
    return page([_line(tx, message) for message in found], wanted, lambda message: message.seq)


def _line(tx: Transaction, message: Message) -> MessageLine:
    return extend_record(MessageLine, message, sender_address=tx.address(message.sender))


def _listed(tx: Transaction, request: ListMessages) -> Conversation | None:
    if request.conversation is not None:
        return tx.need(Conversation, "conversation", request.conversation)
    if request.channel is not None:
        return conversations.channel_named(tx, request.channel)
    if request.to is not None:
        other = agents.find(tx, request.to).id
        return tx.get(Conversation, dm_id(tx.sender, other))
    problem = "which conversation? give conversation, channel or to"
    raise Refused(BadRequest(problem=problem, field="conversation"))


def redact_message(tx: Transaction, request: RedactMessage) -> MessageView:
    """The only change of history: a body is taken out everywhere; that it was there stays."""
    tx.permit(Deed.ADMINISTER, Subject(name=request.message_id[:60]))
    message = tx.need(Message, "message", request.message_id)
    done = take_out(tx.ledger.connection, message.id, tx.now)
    if done.first:
        tx.record(MessageRedacted, done.message, move="redact", target=message.conversation_id)
    return _shown(tx, done.message)
