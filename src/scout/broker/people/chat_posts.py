"""Posts in chats: queued in the transaction of what they show, and changed step by step as they are sent."""

from typing import Any

from scout.broker.routing import users
from scout.broker.transaction.transaction import Transaction
from scout.model.events.chats import CHAT_EVENTS, ChatReceived
from scout.model.people.chat import ChatPlace
from scout.model.people.chat_post import ChatPost, check_post
from scout.model.people.user import ConnectorKey, UserKind


def queue_post(
    tx: Transaction,
    connector: str,
    place: ChatPlace,
    user: str,
    *,
    key: ConnectorKey | None = None,
    **what: Any,
) -> ChatPost:
    """Queue a post; it is sent after the commit."""
    post = ChatPost(
        id=tx.mint("pst"),
        created_at=tx.now,
        updated_at=tx.now,
        connector=connector,
        place=place,
        user=user,
        key_id=key.id if key is not None else None,
        next_attempt_at=tx.now,
        created_by=tx.actor.agent_id or tx.services.system_agent,
        **what,
    )
    return record_post(tx, check_post(post))


def record_post(tx: Transaction, post: ChatPost, reason: str = "") -> ChatPost:
    """Record a post as it is now, in the name of Scout."""
    kind, by = CHAT_EVENTS[post.state], tx.services.system_agent
    return tx.record(kind, post, move=post.state, reason=reason or post.problem, source=by)


def find_home(tx: Transaction, key: ConnectorKey) -> ChatPlace | None:
    """Return the chat in which a user is reached: the private one of a person, or that of a group."""
    if key.chat_id is None:
        return None
    user = users.find_user(tx, key.user)
    return ChatPlace(chat_id=key.chat_id, group=user is not None and user.kind is UserKind.GROUP)


def find_origin(tx: Transaction, message_id: str | None) -> ChatReceived | None:
    """Return the chat that a message came from."""
    if message_id is None:
        return None
    found = next(iter(tx.ledger.facts("chat_origin", message=message_id)), None)
    return found if isinstance(found, ChatReceived) else None
