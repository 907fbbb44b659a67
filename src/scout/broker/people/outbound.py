"""What goes out to chats, queued in the transaction of what causes it.

It is read off the events of a transaction at its end, so that no other part has to know about chats: answers
to what came from a chat, items that need a person, their decisions, and the talk of bound conversations.
"""

from collections.abc import Callable
from typing import Any

from scout.broker.effects import foreground
from scout.broker.people import accounts
from scout.broker.people.chat_posts import find_home, find_origin, queue_post, record_post
from scout.broker.transaction.transaction import Transaction
from scout.model.attention import ATTENTION, Attention, Risk
from scout.model.conversation import Message
from scout.model.events.asks import DeliveryRequested
from scout.model.events.envelope import Event
from scout.model.events.talk import (
    AttentionAnswered,
    AttentionCreated,
    AttentionDenied,
    AttentionDismissed,
    AttentionExpired,
    AttentionResolved,
    MessagePosted,
    read_message,
)
from scout.model.imported import is_imported
from scout.model.people.binding import Binding
from scout.model.people.chat import ChatPlace
from scout.model.people.chat_post import CHAT_POST, ChatPost, decide_post
from scout.model.people.user import ConnectorKey
from scout.policy.people.chat_texts import describe_outcome
from scout.policy.people.choices import list_choices

_MANY = 200


def queue_chat_posts(tx: Transaction) -> None:
    """Queue what the events of this transaction show in chats."""
    for event in tuple(tx.events):
        show = _SHOWN.get(type(event))
        if show is not None:
            show(tx, event)


# -- messages ----------------------------------------------------------------------------------------


def _show_message(tx: Transaction, event: MessagePosted) -> None:
    message = read_message(event)
    if is_imported(message.imported_from):
        return  # it was said elsewhere, long ago
    answered = _show_answer(tx, message)
    _show_bound(tx, message, answered)


def _show_answer(tx: Transaction, message: Message) -> ChatPlace | None:
    """Queue an answer for the chat that the question came from; return that chat."""
    origin = find_origin(tx, message.in_reply_to)
    asked = tx.get(Message, message.in_reply_to) if origin is not None else None
    if origin is None or asked is None or asked.sender == message.sender:
        return None
    came = origin.payload
    key = tx.get(ConnectorKey, came.key_id)
    if key is None:
        return None
    queue_post(
        tx,
        came.connector,
        came.place,
        key.user,
        key=key,
        message_id=message.id,
        reply_to=came.external_id,
        author=_find_author(tx, message, came.connector),
    )
    return came.place


def _find_author(tx: Transaction, message: Message, connector: str) -> str | None:
    """Return the agent that is named above its words; the agent of the chat and Scout are not."""
    agent = tx.agent(message.sender)
    is_own = agent is None or agent.path.connector == connector or agent.id in tx.services.own_agents
    return None if is_own else message.sender


def _show_bound(tx: Transaction, message: Message, answered: ChatPlace | None) -> None:
    """Queue a message for the chats that its conversation is bound to, but not where it came from."""
    values = {"conversation": message.conversation_id, "limit": _MANY}
    bindings = tx.ledger.many(Binding, "bindings_of_conversation", **values)
    origin = find_origin(tx, message.id) if bindings else None
    seen = [place for place in (answered, origin.payload.place if origin else None) if place is not None]
    for binding in bindings:
        place = ChatPlace(chat_id=binding.external_id, thread_id=binding.topic_id, group=True)
        if not any(_is_same_place(place, one) for one in seen):
            user = binding.user or tx.services.operator
            queue_post(tx, binding.name, place, user, message_id=message.id, author=message.sender)


def _is_same_place(one: ChatPlace, other: ChatPlace) -> bool:
    return one.chat_id == other.chat_id and one.thread_id in (None, other.thread_id)


def _show_foreground(tx: Transaction, event: DeliveryRequested) -> None:
    """Queue a message of a background agent to its user, if the agent in front is that of a chat."""
    delivery = event.payload.record
    agent = tx.agent(delivery.target) if delivery.rule == foreground.RULE else None
    connector = agent.path.connector if agent is not None and not agent.is_person else None
    if agent is None or connector is None or delivery.message_id is None:
        return
    keys = [one for one in accounts.list_keys(tx, agent.owner or "") if one.connector == connector]
    key = max(keys, key=lambda one: one.last_used_at or 0, default=None)
    place = find_home(tx, key) if key is not None else None
    if key is not None and place is not None:
        what = {"message_id": delivery.message_id, "author": delivery.sender}
        queue_post(tx, connector, place, key.user, key=key, **what)


def post_message(tx: Transaction, message: Message, user: str) -> list[ChatPost]:
    """Queue a message for every chat in which a user is reached."""
    found: list[ChatPost] = []
    for key in accounts.list_keys(tx, user):
        place = find_home(tx, key)
        if place is not None:
            shown = queue_post(
                tx, key.connector, place, user, key=key, message_id=message.id, author=message.sender
            )
            found.append(shown)
    return found


# -- attention ---------------------------------------------------------------------------------------


def _show_item(tx: Transaction, event: AttentionCreated) -> None:
    """Queue an item that needs a person for their chats; one that was decided at once needs nobody."""
    item = tx.get(Attention, event.payload.record.id)
    if item is None or item.state in ATTENTION.terminal:
        return
    urgent = item.risk is Risk.HIGH
    for key in accounts.list_keys(tx, item.user):
        place = find_home(tx, key)
        if place is None or (place.group and urgent and not tx.rules.chats.high_risk_in_groups):
            continue
        what = {"attention_id": item.id, "choices": list_choices(item), "urgent": urgent}
        queue_post(tx, key.connector, place, item.user, key=key, **what)


def _show_decision(tx: Transaction, event: Any) -> None:
    """Replace the buttons of a decided item by who decided it, wherever it is shown."""
    item: Attention = event.payload.record
    posts = tx.ledger.many(ChatPost, "chat_posts_about", attention=item.id, limit=_MANY)
    by = tx.address(item.decided_by) if item.decided_by else ""
    for post in posts:
        if post.state not in CHAT_POST.terminal:
            record_post(tx, decide_post(post, describe_outcome(item, by), tx.now))


_SHOWN: dict[type[Event], Callable[[Transaction, Any], None]] = {
    DeliveryRequested: _show_foreground,
    MessagePosted: _show_message,
    AttentionCreated: _show_item,
    AttentionResolved: _show_decision,
    AttentionDenied: _show_decision,
    AttentionAnswered: _show_decision,
    AttentionExpired: _show_decision,
    AttentionDismissed: _show_decision,
}
