"""Chats as conversations of Scout: which one a text is posted in, and which agent a chat speaks to."""

from scout.base.ids import derive_id
from scout.base.refusal import Refused, Remedy
from scout.broker.people import accounts
from scout.broker.routing import posts
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath
from scout.model.agent import Agent
from scout.model.conversation import Conversation, ConversationKind, derive_channel_id
from scout.model.people.binding import Binding, Surface
from scout.model.people.chat import ChatPlace
from scout.model.people.user import ConnectorKey
from scout.model.problems.request import NotFound


def find_group_key(tx: Transaction, connector: str, place: ChatPlace) -> ConnectorKey | None:
    """Return the key of the group that a chat belongs to."""
    return accounts.find_key(tx, connector, place.chat_id) if place.group else None


def find_binding(tx: Transaction, connector: str, place: ChatPlace) -> Binding | None:
    """Return the binding of a chat: that of its thread, else that of the whole chat."""
    found = find_binding_at(tx, connector, place.chat_id, place.thread_id)
    if found is None and place.thread_id is not None:
        return find_binding_at(tx, connector, place.chat_id, None)
    return found


def find_binding_at(tx: Transaction, connector: str, chat: str, topic: str | None) -> Binding | None:
    """Return the binding of exactly this thread, or of a chat as a whole."""
    place = {"surface": Surface.CONNECTOR, "name": connector, "chat": chat, "topic": topic or ""}
    return tx.ledger.one(Binding, "binding_at", **place)


def find_chat_agent(tx: Transaction, user: str, connector: str) -> Agent:
    """Return the agent that answers plain text of a user on a platform."""
    path = AgentPath.root(user, connector)
    found = tx.ledger.one(Agent, "agent_at_path", path=str(path))
    if found is None:
        link = Remedy(operation="user.link", parameters={"user": user, "connector": connector})
        raise Refused(NotFound(noun="agent", id=str(path), remedies=(link,)))
    return found


def find_chat_conversation(tx: Transaction, connector: str, place: ChatPlace, agent: Agent) -> Conversation:
    """Return the conversation of a chat with its agent: direct, or the channel of a group; each thread apart.

    The caller becomes a member.
    """
    base = (
        _find_group_channel(tx, connector, agent)
        if place.group and agent.owner is not None
        else posts.ensure_direct_conversation(tx, tx.sender, agent.id)
    )
    if place.thread_id is None:
        return base
    ident = derive_id("cnv", "chat", connector, place.chat_id, place.thread_id, base.id)
    found = tx.conversation(ident)
    if found is None:
        made = _build(tx, ident, ConversationKind.THREAD, owner=base.owner, parent_id=base.id)
        found = posts.create_conversation(tx, made)
    posts.ensure_member(tx, found.id, tx.sender)
    return found


def _find_group_channel(tx: Transaction, connector: str, agent: Agent) -> Conversation:
    """Return the channel that everybody in a group's chats shares."""
    owner = agent.owner or ""
    ident = derive_channel_id(owner, connector)
    found = tx.conversation(ident)
    if found is None:
        made = _build(tx, ident, ConversationKind.CHANNEL, owner=owner, name=connector, master_id=agent.id)
        found = posts.create_conversation(tx, made)
    posts.ensure_member(tx, found.id, tx.sender)
    return found


def _build(tx: Transaction, ident: str, kind: ConversationKind, **more: str | None) -> Conversation:
    return Conversation(
        id=ident,
        created_at=tx.now,
        updated_at=tx.now,
        kind=kind,
        created_by=tx.sender,
        **more,  # pyright: ignore[reportArgumentType] (fields of the record)
    )
