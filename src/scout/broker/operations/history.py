"""What was said: reading messages, and the one way to take a body out of history."""

from scout.base.refusal import BadRequest, Refused
from scout.broker.operations import agents
from scout.broker.routing import conversations, posts
from scout.broker.routing.views import enriched
from scout.broker.transaction.paging import after_number, page, size
from scout.broker.transaction.transaction import Turn
from scout.model.conversation import Conversation, Member, Message, dm_id
from scout.model.delivery import Delivery
from scout.model.events.talk import MessageRedacted
from scout.policy.permit import Deed, Subject
from scout.protocol.request import Page
from scout.protocol.talk import GetMessage, ListMessages, MessageLine, MessageView, RedactMessage
from scout.store.redact import redact as take_out

__all__ = ["get", "list_messages", "redact_message"]

_NEWEST = (1 << 63) - 1


def get(turn: Turn, request: GetMessage) -> MessageView:
    """One message: who took it, who has read it, who answered."""
    return _shown(turn, _readable(turn, request.message_id))


def _readable(turn: Turn, message_id: str) -> Message:
    message = turn.need(Message, "message", message_id)
    conversation = turn.need(Conversation, "conversation", message.conversation_id)
    conversations.may_read(turn, conversation)
    return message


def _shown(turn: Turn, message: Message) -> MessageView:
    most = turn.rules.limits.page_most
    deliveries = turn.ledger.many(Delivery, "deliveries_of_message", message=message.id, limit=most)
    replies = turn.ledger.many(Message, "replies_to", message=message.id, limit=most)
    members: list[Member] = conversations.members_of(turn, message.conversation_id)
    read = [one.agent_id for one in members if one.read_seq >= message.seq and one.agent_id != message.sender]
    return enriched(
        MessageView,
        message,
        deliveries=tuple(posts.receipt_of(turn, one) for one in deliveries),
        read_by=tuple(read),
        replies=tuple(one.id for one in replies),
    )


def list_messages(turn: Turn, request: ListMessages) -> Page[MessageLine]:
    """A conversation's messages, oldest first."""
    conversation = _listed(turn, request)
    if conversation is None:
        return Page(items=())
    conversations.may_read(turn, conversation)
    wanted = size(request.limit, turn.rules.limits)
    if request.newest:
        newest = turn.ledger.many(
            Message, "messages_before", conversation=conversation.id, before=_NEWEST, limit=wanted
        )
        return Page(items=tuple(_line(turn, message) for message in reversed(newest)))
    after = after_number(request.cursor)
    found = turn.ledger.many(
        Message, "messages_after", conversation=conversation.id, after=after, limit=wanted + 1
    )
    return page([_line(turn, message) for message in found], wanted, lambda message: message.seq)


def _line(turn: Turn, message: Message) -> MessageLine:
    return enriched(MessageLine, message, sender_address=turn.address(message.sender))


def _listed(turn: Turn, request: ListMessages) -> Conversation | None:
    if request.conversation is not None:
        return turn.need(Conversation, "conversation", request.conversation)
    if request.channel is not None:
        return conversations.channel_named(turn, request.channel)
    if request.to is not None:
        other = agents.find(turn, request.to).id
        return turn.ledger.get(Conversation, dm_id(turn.sender, other))
    problem = "which conversation? give conversation, channel or to"
    raise Refused(BadRequest(problem=problem, field="conversation"))


def redact_message(turn: Turn, request: RedactMessage) -> MessageView:
    """The only change of history: a body is taken out everywhere; that it was there stays."""
    turn.permit(Deed.ADMINISTER, Subject(name=request.message_id[:60]))
    message = turn.need(Message, "message", request.message_id)
    done = take_out(turn.ledger.connection, message.id, turn.now)
    if done.first:
        turn.record(MessageRedacted, done.message, move="redact", target=message.conversation_id)
    return _shown(turn, done.message)
