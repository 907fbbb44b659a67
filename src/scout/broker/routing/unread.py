"""What is unread for an agent, in one place for the inbox, claims, the brief, hooks and turns.

There are two kinds. What is for the agent alone has a delivery: it is leased and acknowledged (see `inbox`).
What is said to many (a channel, a thread, a broadcast) has none: each member has a cursor, and `mark_read`
moves it. `list_unread` lists both, oldest first; `count_unread` counts them; a message that is delivered to
the agent as well counts once, by its delivery.
"""

import heapq
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from scout.base.time import Time
from scout.broker.routing import posts
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Conversation, Member, Message, advance_cursor, broadcast_id
from scout.model.delivery import Delivery
from scout.model.events.talk import ConversationCursor
from scout.model.ref import Ref
from scout.store.ledger import LAST

_COUNTED = 1000
_NEWEST = (1 << 62) - 1


class Unread(NamedTuple):
    """One thing for an agent; without a delivery it is read by the cursor of its conversation."""

    message: Message | None
    delivery: Delivery | None = None

    @property
    def at(self) -> Time:
        """When it came."""
        if self.delivery is not None:
            return self.delivery.created_at
        assert self.message is not None  # what has no delivery is a message
        return self.message.created_at


class Position(NamedTuple):
    """How far a list of both kinds was read."""

    delivery_id: str = ""
    seq: int = 0


START = Position()
LATEST = Position(LAST, _NEWEST)  # where a list that begins with the newest begins


def _any(_: Delivery) -> bool:
    return True


def list_unread(
    tx: Transaction,
    agent_id: str,
    limit: int,
    start: Position = START,
    wanted: Callable[[Delivery], bool] = _any,
) -> list[Unread]:
    """What is unread for an agent after a position, oldest first; `wanted` chooses among the deliveries."""
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
    """What was said to many: of the conversations whose next message came first, no more than is shown."""
    places = [place for place in followed_places(tx, agent_id, after) if place.next_seq is not None]
    places.sort(key=lambda place: place.next_seq or 0)
    found: list[Message] = []
    for place in places[:limit]:
        after_both = max(place.read_seq, after)
        bounds = {"conversation": place.conversation_id, "after": after_both, "limit": limit}
        found += tx.ledger.many(Message, "said_to", agent=agent_id, **bounds)
    return sorted(found, key=lambda message: message.seq)[:limit]


def list_read(tx: Transaction, agent_id: str, limit: int, before: Position) -> list[Unread]:
    """Everything that ever came, newest first, read or not; from before a position."""
    mail = tx.ledger.many(Delivery, "deliveries_to", agent=agent_id, before=before.delivery_id, limit=limit)
    delivered = [Unread(tx.get(Message, one.message_id), one) for one in mail]
    said = [Unread(one) for one in _list_said_before(tx, agent_id, limit, before.seq)]
    return list(heapq.merge(delivered, said, key=lambda one: one.at, reverse=True))[:limit]


def _list_said_before(tx: Transaction, agent_id: str, limit: int, before: int) -> list[Message]:
    rows = tx.ledger.rows("followed_back", agent=agent_id, before=before)
    newest = sorted((row for row in rows if row[2] is not None), key=lambda row: row[2], reverse=True)
    places = [(str(row[0]), 0) for row in newest[:limit]]
    if (broadcast := _unjoined_broadcast(tx, agent_id)) is not None:
        places.append((broadcast.conversation_id, broadcast.read_seq))
    found: list[Message] = []
    for conversation_id, since in places:
        bounds = {"conversation": conversation_id, "before": before, "limit": limit}
        said = tx.ledger.many(Message, "said_to_back", agent=agent_id, **bounds)
        member = tx.ledger.one(Member, "membership", conversation=conversation_id, agent=agent_id)
        begin = member.created_at if member else Time(0)
        found += [one for one in said if one.seq > since and one.created_at >= begin]
    return sorted(found, key=lambda message: -message.seq)[:limit]


# -- how far ----------------------------------------------------------------------------------------


class Followed(NamedTuple):
    """A conversation of many, how far an agent has nothing unread there, and what is next for it."""

    conversation_id: str
    read_seq: int
    next_seq: int | None


def followed_places(tx: Transaction, agent_id: str, after: int = 0) -> list[Followed]:
    """The conversations of many that an agent takes part in, the broadcasts of its user among them."""
    places = [Followed(*row) for row in tx.ledger.rows("followed_of", agent=agent_id, after=after)]
    broadcast = _unjoined_broadcast(tx, agent_id, after)
    return places if broadcast is None else [*places, broadcast]


def talks_of(tx: Transaction, agent_id: str) -> list[str]:
    """Where something may be said to many, an agent among them; a broadcast may still be the first."""
    agent = tx.agent(agent_id)
    places = [str(row[0]) for row in tx.ledger.rows("followed_all", agent=agent_id)]
    to_all = [broadcast_id(agent.owner)] if agent is not None and agent.owner else []
    return list(dict.fromkeys((*places, *to_all)))


def broadcast_for(tx: Transaction, agent_id: str) -> Conversation | None:
    """The conversation of the broadcasts that reach an agent, if there is one: only agents of this node."""
    agent = tx.agent(agent_id)
    if agent is None or agent.owner is None or agent.node != tx.services.node:
        return None
    return tx.conversation(broadcast_id(agent.owner))


def _unjoined_broadcast(tx: Transaction, agent_id: str, after: int = 0) -> Followed | None:
    """The broadcasts for an agent that has read none yet: from its registration on."""
    found = broadcast_for(tx, agent_id)
    if found is None or tx.ledger.rows("followed_at", agent=agent_id, conversation=found.id):
        return None
    since = int(tx.ledger.value("first_fact_of", ref=str(Ref.to(agent_id))) or 0)
    bounds = {"conversation": found.id, "after": max(since, after), "limit": 1}
    upcoming = tx.ledger.many(Message, "said_to", agent=agent_id, **bounds)
    return Followed(found.id, since, upcoming[0].seq if upcoming else None)


def read_up_to(tx: Transaction, agent_id: str, conversation_id: str) -> int:
    """How far an agent has nothing unread in a conversation of many."""
    rows = tx.ledger.rows("followed_at", agent=agent_id, conversation=conversation_id)
    if rows:
        return int(rows[0][0])
    broadcast = _unjoined_broadcast(tx, agent_id)
    is_it = broadcast is not None and broadcast.conversation_id == conversation_id
    return broadcast.read_seq if broadcast is not None and is_it else _NEWEST


# -- how much ---------------------------------------------------------------------------------------


def count_unread(tx: Transaction, agent_id: str) -> int:
    """How much is unread for an agent; up to a thousand of each kind are counted."""
    return counts_by_conversation(tx, agent_id).total()


def counts_by_conversation(tx: Transaction, agent_id: str) -> Counter[str]:
    """How much of it lies in each conversation."""
    rows = tx.ledger.rows("inbox_places", agent=agent_id, limit=_COUNTED)
    counts = Counter[str](row[0] or "" for row in rows)
    for place in followed_places(tx, agent_id):
        if place.next_seq is not None:
            bounds = {"conversation": place.conversation_id, "after": place.read_seq, "limit": _COUNTED}
            counts[place.conversation_id] += tx.ledger.value("messages_unread", agent=agent_id, **bounds)
    return counts


# -- reading ----------------------------------------------------------------------------------------


def mark_read(tx: Transaction, agent_id: str, conversation_id: str, seq: int) -> None:
    """Move an agent's cursor in a conversation of many; it never goes back, nor past what was said."""
    newest = posts.newest_message(tx, conversation_id)
    seq = min(seq, newest.seq if newest else 0)
    member = tx.ledger.one(Member, "membership", conversation=conversation_id, agent=agent_id)
    member = member or posts.new_member(tx, conversation_id, agent_id)
    moved = advance_cursor(member, seq, tx.now)
    if moved is not member:
        tx.record(ConversationCursor, moved, move="read", target=conversation_id, source=agent_id)
