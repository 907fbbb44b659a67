"""Unread items of an agent, in one place for the inbox, claims, the brief, hooks and turns.

There are two kinds. An item for the agent alone has a delivery: it is leased and acknowledged (see `inbox`).
A group message (in a channel, thread or broadcast) has none: each member has a read cursor, which `mark_read`
advances. `list_unread` lists both, oldest first; `count_unread` counts them. A group message that is also
delivered to the agent counts once, as its delivery.
"""

import heapq
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from scout.base.time import Time
from scout.broker.routing import posts
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Conversation, Member, Message, advance_cursor, derive_broadcast_id
from scout.model.delivery import Delivery
from scout.model.events.talk import ConversationCursor
from scout.store.ledger import LAST

_COUNTED = 1000
_NEWEST = (1 << 62) - 1


class Unread(NamedTuple):
    """One item for an agent; an item without a delivery is a group message, read by its cursor."""

    message: Message | None
    delivery: Delivery | None = None

    @property
    def at(self) -> Time:
        """When the item arrived."""
        if self.delivery is not None:
            return self.delivery.created_at
        assert self.message is not None  # an item without a delivery is a message
        return self.message.created_at


class Position(NamedTuple):
    """A position in a list of both kinds."""

    delivery_id: str = ""
    seq: int = 0


START = Position()
LATEST = Position(LAST, _NEWEST)  # the start of a newest-first list


def _accept_any(_: Delivery) -> bool:
    return True


def list_unread(
    tx: Transaction,
    agent_id: str,
    limit: int,
    start: Position = START,
    wanted: Callable[[Delivery], bool] = _accept_any,
) -> list[Unread]:
    """List an agent's unread items after a position, oldest first; `wanted` filters the deliveries."""
    delivered = _list_delivered(tx, agent_id, limit, start.delivery_id, wanted)
    said = [Unread(one) for one in _list_said(tx, agent_id, limit, start.seq)]
    return list(heapq.merge(delivered, said, key=lambda one: one.at))[:limit]


def _list_delivered(
    tx: Transaction, agent_id: str, limit: int, after: str, wanted: Callable[[Delivery], bool]
) -> list[Unread]:
    found: list[Delivery] = []
    while len(found) < limit:
        rows = tx.ledger.many(Delivery, "inbox", agent=agent_id, after=after, limit=limit)
        found += [one for one in rows if wanted(one)]
        if len(rows) < limit:
            break
        after = rows[-1].id
    return [Unread(tx.get(Message, one.message_id), one) for one in found[:limit]]


def _list_said(tx: Transaction, agent_id: str, limit: int, after: int) -> list[Message]:
    """List unread group messages, oldest first; only the `limit` conversations with the oldest are read."""
    places = [
        place for place in list_followed_conversations(tx, agent_id, after) if place.next_seq is not None
    ]
    places.sort(key=lambda place: place.next_seq or 0)
    found: list[Message] = []
    for place in places[:limit]:
        after_both = max(place.read_seq, after)
        bounds = {"conversation": place.conversation_id, "after": after_both, "limit": limit}
        found += tx.ledger.many(Message, "said_to", agent=agent_id, **bounds)
    return sorted(found, key=lambda message: message.seq)[:limit]


def list_read(tx: Transaction, agent_id: str, limit: int, before: Position) -> list[Unread]:
    """List all items ever received before a position, read or not, newest first."""
    mail = tx.ledger.many(Delivery, "deliveries_to", agent=agent_id, before=before.delivery_id, limit=limit)
    delivered = [Unread(tx.get(Message, one.message_id), one) for one in mail]
    said = [Unread(one) for one in _list_said_before(tx, agent_id, limit, before.seq)]
    return list(heapq.merge(delivered, said, key=lambda one: one.at, reverse=True))[:limit]


def _list_said_before(tx: Transaction, agent_id: str, limit: int, before: int) -> list[Message]:
    rows = tx.ledger.rows("followed_back", agent=agent_id, before=before)
    newest = sorted((row for row in rows if row[2] is not None), key=lambda row: row[2], reverse=True)
    places = [(str(row[0]), 0) for row in newest[:limit]]
    if (broadcast := _find_unjoined_broadcast(tx, agent_id)) is not None:
        places.append((broadcast.conversation_id, broadcast.read_seq))
    found: list[Message] = []
    for conversation_id, since in places:
        bounds = {"conversation": conversation_id, "before": before, "limit": limit}
        said = tx.ledger.many(Message, "said_to_back", agent=agent_id, **bounds)
        member = tx.ledger.one(Member, "membership", conversation=conversation_id, agent=agent_id)
        begin = member.created_at if member else Time(0)
        found += [one for one in said if one.seq > since and one.created_at >= begin]
    return sorted(found, key=lambda message: -message.seq)[:limit]


# -- cursors ----------------------------------------------------------------------------------------


class Followed(NamedTuple):
    """A group conversation, an agent's read cursor in it, and its next unread message."""

    conversation_id: str
    read_seq: int
    next_seq: int | None


def list_followed_conversations(tx: Transaction, agent_id: str, after: int = 0) -> list[Followed]:
    """Return an agent's group conversations, including its user's broadcasts."""
    places = [Followed(*row) for row in tx.ledger.rows("followed_of", agent=agent_id, after=after)]
    broadcast = _find_unjoined_broadcast(tx, agent_id, after)
    return places if broadcast is None else [*places, broadcast]


def list_followed_ids(tx: Transaction, agent_id: str) -> list[str]:
    """Return the ids of group conversations that reach an agent, including a broadcast not yet created."""
    agent = tx.agent(agent_id)
    places = [str(row[0]) for row in tx.ledger.rows("followed_all", agent=agent_id)]
    to_all = [derive_broadcast_id(agent.owner)] if agent is not None and agent.owner else []
    return list(dict.fromkeys((*places, *to_all)))


def find_broadcast(tx: Transaction, agent_id: str) -> Conversation | None:
    """Return the broadcast conversation that reaches an agent of this node, if there is one."""
    agent = tx.agent(agent_id)
    if agent is None or agent.owner is None or agent.node != tx.services.node:
        return None
    return tx.conversation(derive_broadcast_id(agent.owner))


def _find_unjoined_broadcast(tx: Transaction, agent_id: str, after: int = 0) -> Followed | None:
    """Return the broadcasts for an agent that has read none yet, counted from its registration."""
    found = find_broadcast(tx, agent_id)
    if found is None or tx.ledger.rows("followed_at", agent=agent_id, conversation=found.id):
        return None
    since = tx.ledger.log.find_first_seq(agent_id)
    bounds = {"conversation": found.id, "after": max(since, after), "limit": 1}
    upcoming = tx.ledger.many(Message, "said_to", agent=agent_id, **bounds)
    return Followed(found.id, since, upcoming[0].seq if upcoming else None)


def find_read_cursor(tx: Transaction, agent_id: str, conversation_id: str) -> int:
    """Return an agent's read cursor in a group conversation."""
    rows = tx.ledger.rows("followed_at", agent=agent_id, conversation=conversation_id)
    if rows:
        return int(rows[0][0])
    broadcast = _find_unjoined_broadcast(tx, agent_id)
    is_it = broadcast is not None and broadcast.conversation_id == conversation_id
    return broadcast.read_seq if broadcast is not None and is_it else _NEWEST


# -- counts -----------------------------------------------------------------------------------------


def count_unread(tx: Transaction, agent_id: str) -> int:
    """Count an agent's unread items, up to a thousand deliveries and a thousand per conversation."""
    return count_by_conversation(tx, agent_id).total()


def count_by_conversation(tx: Transaction, agent_id: str) -> Counter[str]:
    """Count an agent's unread items by conversation."""
    rows = tx.ledger.rows("inbox_places", agent=agent_id, limit=_COUNTED)
    counts = Counter[str](row[0] or "" for row in rows)
    for place in list_followed_conversations(tx, agent_id):
        if place.next_seq is not None:
            bounds = {"conversation": place.conversation_id, "after": place.read_seq, "limit": _COUNTED}
            counts[place.conversation_id] += tx.ledger.value("messages_unread", agent=agent_id, **bounds)
    return counts


# -- reading ----------------------------------------------------------------------------------------


def mark_read(tx: Transaction, agent_id: str, conversation_id: str, seq: int) -> None:
    """Advance an agent's read cursor in a group conversation; never back, nor past the newest message."""
    newest = posts.find_newest_message(tx, conversation_id)
    seq = min(seq, newest.seq if newest else 0)
    member = tx.ledger.one(Member, "membership", conversation=conversation_id, agent=agent_id)
    member = member or posts.build_member(tx, conversation_id, agent_id)
    moved = advance_cursor(member, seq, tx.now)
    if moved is not member:
        tx.record(ConversationCursor, moved, move="read", target=conversation_id, source=agent_id)
