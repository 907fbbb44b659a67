"""Events of conversations: messages, questions, work items, attention."""

from collections.abc import Mapping

from scout.base.record import Record
from scout.model.allowance import Allowance
from scout.model.attention import Attention, AttentionMove
from scout.model.conversation import Attachment, Conversation, Member, Message, MessageKind
from scout.model.events.envelope import Changed, Event
from scout.model.question import Question, QuestionMove
from scout.model.work_item import WorkItem


class Posted(Record, omit_defaults=True):
    """A message in the log: what the envelope does not say already."""

    message_id: str
    text: str
    kind: MessageKind
    follow_up: bool = False
    reply_to: str | None = None
    sender_session_id: str | None = None
    attachments: tuple[Attachment, ...] = ()
    ask_id: str | None = None
    work_item_id: str | None = None
    flight_id: str | None = None


class MessagePosted(Event, tag="collab.message.posted"):
    """Somebody said something: from an agent to a conversation."""

    payload: Posted


class MessageRedacted(Event, tag="collab.message.redacted"):
    """The body of a message was taken out of history; that it was there stays."""

    payload: Changed[Message]


def posted(message: Message) -> Posted:
    """The payload that stores this message."""
    return Posted(
        message_id=message.id,
        text=message.body,
        kind=message.kind,
        follow_up=message.follow_up,
        reply_to=message.reply_to,
        sender_session_id=message.sender_session_id,
        attachments=message.attachments,
        ask_id=message.ask_id,
        work_item_id=message.work_item_id,
        flight_id=message.flight_id,
    )


def message_of(event: MessagePosted) -> Message:
    """The message that an event stores."""
    said, beside = event.payload, event.metadata
    return Message(
        id=said.message_id,
        seq=event.seq,
        conversation_id=event.target.id,
        sender=event.source.id,
        sender_session_id=said.sender_session_id,
        body=said.text,
        kind=said.kind,
        follow_up=said.follow_up,
        reply_to=said.reply_to,
        in_reply_to=beside.in_reply_to,
        mentions=beside.mentions,
        target_agents=beside.target_agents,
        attachments=said.attachments,
        ask_id=said.ask_id,
        work_item_id=said.work_item_id,
        flight_id=said.flight_id,
        created_at=event.time,
    )


class AttachmentStored(Event, tag="collab.attachment.stored"):
    """An agent stored a file; the same bytes stored again by the same agent are no new fact."""

    payload: Attachment


class Opened(Changed[Conversation], omit_defaults=True):
    """A new conversation and those who are in it from the first."""

    members: tuple[Member, ...] = ()


class ConversationEvent(Event):
    payload: Changed[Conversation]


class ConversationCreated(Event, tag="collab.conversation.created"):
    """A DM, channel, thread or broadcast exists from here on."""

    payload: Opened


class ConversationPolicy(ConversationEvent, tag="collab.conversation.policy"):
    """Its master, its soft mentions or its quiet changed."""


class ConversationArchived(ConversationEvent, tag="collab.conversation.archived"):
    """It is out of the lists."""


class MemberEvent(Event):
    payload: Changed[Member]


class ConversationMember(MemberEvent, tag="collab.conversation.member"):
    """An agent joined, left, or muted it."""


class ConversationCursor(MemberEvent, tag="collab.conversation.cursor"):
    """A member has read further."""


class QuestionEvent(Event):
    payload: Changed[Question]


class QuestionCreated(QuestionEvent, tag="collab.question.created"):
    """Information is wanted; the responder holds the next move."""


class QuestionAnswered(QuestionEvent, tag="collab.question.answered"):
    """The responder answered; the asker holds the next move."""


class QuestionClosed(QuestionEvent, tag="collab.question.closed"):
    """Nobody needs it any more."""


class QuestionDeclined(QuestionEvent, tag="collab.question.declined"):
    """The responder will not answer."""


class QuestionReopened(QuestionEvent, tag="collab.question.reopened"):
    """It is asked again."""


QUESTION_EVENTS: Mapping[QuestionMove, type[QuestionEvent]] = {
    QuestionMove.ANSWER: QuestionAnswered,
    QuestionMove.DECLINE: QuestionDeclined,
    QuestionMove.CLOSE: QuestionClosed,
    QuestionMove.REOPEN: QuestionReopened,
}


class WorkItemEvent(Event):
    payload: Changed[WorkItem]


class WorkItemCreated(WorkItemEvent, tag="collab.work_item.created"):
    """Work is owned from here on."""


class WorkItemUpdated(WorkItemEvent, tag="collab.work_item.updated"):
    """A move, a progress report, another holder, an edit: `move` says which."""


class AttentionEvent(Event):
    payload: Changed[Attention]


class AttentionCreated(AttentionEvent, tag="collab.attention.created"):
    """Something needs the human."""


class AttentionNotified(AttentionEvent, tag="collab.attention.notified"):
    """A person was told."""


class AttentionResolved(AttentionEvent, tag="collab.attention.resolved"):
    """Approved, or mended."""


class AttentionDenied(AttentionEvent, tag="collab.attention.denied"):
    """The human said no."""


class AttentionAnswered(AttentionEvent, tag="collab.attention.answered"):
    """The human answered."""


class AttentionExpired(AttentionEvent, tag="collab.attention.expired"):
    """Nobody answered in time; a consult's default action was taken."""


class AttentionDismissed(AttentionEvent, tag="collab.attention.dismissed"):
    """The human put it away."""


class AllowanceEvent(Event):
    payload: Changed[Allowance]


class AllowanceCreated(AllowanceEvent, tag="collab.allowance.created"):
    """A person decided once for all later requests of the same shape."""


class AllowanceRevoked(AllowanceEvent, tag="collab.allowance.revoked"):
    """A person is asked again."""


ATTENTION_EVENTS: Mapping[AttentionMove, type[AttentionEvent]] = {
    AttentionMove.NOTIFY: AttentionNotified,
    AttentionMove.APPROVE: AttentionResolved,
    AttentionMove.DENY: AttentionDenied,
    AttentionMove.ANSWER: AttentionAnswered,
    AttentionMove.EXPIRE: AttentionExpired,
    AttentionMove.DISMISS: AttentionDismissed,
}
