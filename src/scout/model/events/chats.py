"""Events of chats: what came from a platform, and what Scout shows there."""

from collections.abc import Mapping
from enum import StrEnum

from scout.base.record import Record
from scout.model.events.envelope import Changed, Event
from scout.model.people.chat import ChatPlace
from scout.model.people.chat_post import ChatPost, PostState


class Meaning(StrEnum):
    """What a text, a pressed button or a reaction in a chat means."""

    IGNORED = "ignored"  # not for Scout
    LINK = "link"  # a one-time code
    STRANGER = "stranger"  # of somebody whose account is not linked
    COMMAND = "command"
    DECISION = "decision"  # about an attention item
    CORRECTION = "correction"  # an edit of an earlier text
    BOUND = "bound"  # for the conversation or agent that the chat is bound to
    MENTION = "mention"  # for the agent that it begins with
    PLAIN = "plain"  # for the agent of the chat


class Received(Record, omit_defaults=True):
    """Something that came from a platform, taken once. `inbound_id` is unique there.

    `external_id`: the message on the platform. `message_id`: the message of Scout that it became; its answer
    goes to `place`. `asks`: it began an ask. `refused`: why nothing came of it.
    """

    connector: str
    inbound_id: str
    meaning: Meaning
    place: ChatPlace
    key_id: str | None = None
    external_id: str | None = None
    message_id: str | None = None
    asks: bool = False
    refused: str = ""


class ChatReceived(Event, tag="collab.chat.received"):
    """A text or a decision came from a chat."""

    payload: Received


class Stranger(Record):
    """Somebody whose account is not linked wrote on a day. Only a short hash of the account is kept."""

    connector: str
    hashed: str
    day: str


class ChatStranger(Event, tag="collab.chat.stranger"):
    """Somebody unknown wrote, and was told once that day how to be linked."""

    payload: Stranger


class ChatPostEvent(Event):
    payload: Changed[ChatPost]


class ChatQueued(ChatPostEvent, tag="collab.chat.queued"):
    """A post waits to be sent, again, or to be replaced by its outcome."""


class ChatSending(ChatPostEvent, tag="collab.chat.sending"):
    """An attempt to send a post began, or one part of it is shown."""


class ChatSent(ChatPostEvent, tag="collab.chat.sent"):
    """The platform shows the post."""


class ChatFailed(ChatPostEvent, tag="collab.chat.failed"):
    """The post was given up."""


class ChatReplaced(ChatPostEvent, tag="collab.chat.replaced"):
    """The post shows the outcome, or is no longer needed."""


CHAT_EVENTS: Mapping[PostState, type[ChatPostEvent]] = {
    PostState.QUEUED: ChatQueued,
    PostState.SENDING: ChatSending,
    PostState.SENT: ChatSent,
    PostState.FAILED: ChatFailed,
    PostState.REPLACED: ChatReplaced,
}
