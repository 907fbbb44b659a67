"""Events of conversations, messages, questions, work items and attention items."""

from collections.abc import Mapping

from msgspec import UNSET

from scout.base.record import Record
from scout.base.time import Time
from scout.model.access.allowance import Allowance
from scout.model.attention import Attention, AttentionMove
from scout.model.conversation import Attachment, Conversation, Member, Message, MessageKind
from scout.model.events.envelope import Changed, Event
from scout.model.imported import Origin
from scout.model.question import Question, QuestionMove
from scout.model.work_item import WorkItem


class Posted(Record, omit_defaults=True):
    """A message in the log, without the fields that the envelope already holds.

    `written_at`: when an imported message was written; any other is as old as its event.
    """

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
    written_at: Time | None = None
    imported_from: Origin = UNSET


class MessagePosted(Event, tag="collab.message.posted"):
    """An agent posted a message to a conversation."""

    payload: Posted


class MessageRedacted(Event, tag="collab.message.redacted"):
    """The body of a message was removed; the message record is kept."""

    payload: Changed[Message]


def build_post(message: Message) -> Posted:
    """Return the payload that stores this message."""
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
        written_at=None if message.imported_from is UNSET else message.created_at,
        imported_from=message.imported_from,
    )


def read_message(event: MessagePosted) -> Message:
    """Return the message that an event stores."""
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
        created_at=event.time if said.written_at is None else said.written_at,
        imported_from=said.imported_from,
    )


class AttachmentStored(Event, tag="collab.attachment.stored"):
    """An agent stored a file. If it stores the same bytes again, no event is added."""

    payload: Attachment


class Opened(Changed[Conversation], omit_defaults=True):
    """A new conversation and its first members."""

    members: tuple[Member, ...] = ()


class ConversationEvent(Event):
    payload: Changed[Conversation]


class ConversationCreated(Event, tag="collab.conversation.created"):
    """A DM, channel, thread or broadcast was created."""

    payload: Opened


class ConversationPolicy(ConversationEvent, tag="collab.conversation.policy"):
    """The conversation's master, soft mentions or quiet mode changed."""


class ConversationArchived(ConversationEvent, tag="collab.conversation.archived"):
    """The conversation was archived and is no longer listed."""


class MemberEvent(Event):
    payload: Changed[Member]


class ConversationMember(MemberEvent, tag="collab.conversation.member"):
    """An agent joined, left or muted the conversation."""


class ConversationCursor(MemberEvent, tag="collab.conversation.cursor"):
    """A member's read position moved forward."""


class QuestionEvent(Event):
    payload: Changed[Question]


class QuestionCreated(QuestionEvent, tag="collab.question.created"):
    """A question was asked; the responder holds the next move."""


class QuestionAnswered(QuestionEvent, tag="collab.question.answered"):
    """The responder answered; the asker holds the next move."""


class QuestionClosed(QuestionEvent, tag="collab.question.closed"):
    """The question is no longer needed."""


class QuestionDeclined(QuestionEvent, tag="collab.question.declined"):
    """The responder declined to answer."""


class QuestionReopened(QuestionEvent, tag="collab.question.reopened"):
    """The question was asked again."""


QUESTION_EVENTS: Mapping[QuestionMove, type[QuestionEvent]] = {
    QuestionMove.ANSWER: QuestionAnswered,
    QuestionMove.DECLINE: QuestionDeclined,
    QuestionMove.CLOSE: QuestionClosed,
    QuestionMove.REOPEN: QuestionReopened,
}


class WorkItemEvent(Event):
    payload: Changed[WorkItem]


class WorkItemCreated(WorkItemEvent, tag="collab.work_item.created"):
    """A work item was created and has an owner."""


class WorkItemUpdated(WorkItemEvent, tag="collab.work_item.updated"):
    """A move, a progress report, another holder or an edit; `move` names it."""


class AttentionEvent(Event):
    payload: Changed[Attention]


class AttentionCreated(AttentionEvent, tag="collab.attention.created"):
    """An attention item for a person was created."""


class AttentionNotified(AttentionEvent, tag="collab.attention.notified"):
    """A person was notified."""


class AttentionResolved(AttentionEvent, tag="collab.attention.resolved"):
    """The request was approved, or the problem was fixed."""


class AttentionDenied(AttentionEvent, tag="collab.attention.denied"):
    """The request was denied."""


class AttentionAnswered(AttentionEvent, tag="collab.attention.answered"):
    """The item was answered."""


class AttentionExpired(AttentionEvent, tag="collab.attention.expired"):
    """The item expired without an answer; a consult takes its default action."""


class AttentionDismissed(AttentionEvent, tag="collab.attention.dismissed"):
    """The item was dismissed."""


class AllowanceEvent(Event):
    payload: Changed[Allowance]


class AllowanceCreated(AllowanceEvent, tag="collab.allowance.created"):
    """A person made a standing decision for later requests of the same shape."""


class AllowanceRevoked(AllowanceEvent, tag="collab.allowance.revoked"):
    """The standing decision was revoked; later requests need a person again."""


ATTENTION_EVENTS: Mapping[AttentionMove, type[AttentionEvent]] = {
    AttentionMove.NOTIFY: AttentionNotified,
    AttentionMove.APPROVE: AttentionResolved,
    AttentionMove.DENY: AttentionDenied,
    AttentionMove.ANSWER: AttentionAnswered,
    AttentionMove.EXPIRE: AttentionExpired,
    AttentionMove.DISMISS: AttentionDismissed,
}
