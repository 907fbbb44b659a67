"""What concerns one agent, from the log: found by an index, however long the log is.

That is every fact that names it, and what was said to many where it takes part.
"""

from collections.abc import Callable, Iterator

from scout.broker.routing.unread import broadcast_for
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Member, Message, broadcast_id
from scout.model.events.envelope import Event
from scout.model.events.talk import MessagePosted
from scout.model.ref import Ref
from scout.store.ledger import Ledger

_STRETCH = 500


def facts_after(tx: Transaction, agent_id: str, after: int, limit: int) -> list[Event]:
    """The next facts that concern an agent, oldest first."""
    named = tx.ledger.facts("concerning", agent=agent_id, after=after, limit=limit)
    said = _said(tx, agent_id, "followed_next", "messages_after", limit, after=after)
    found = {event.seq: event for event in (*named, *said)}
    return [found[seq] for seq in sorted(found)[:limit]]


def facts_before(tx: Transaction, agent_id: str, before: int) -> Iterator[Event]:
    """All of them before a number, newest first; read as far as somebody looks."""
    while True:
        named = tx.ledger.facts("concerning_back", agent=agent_id, before=before, limit=_STRETCH)
        said = _said(tx, agent_id, "followed_back", "messages_before", _STRETCH, before=before)
        found = {event.seq: event for event in (*named, *said)}
        stretch = sorted(found, reverse=True)[:_STRETCH]
        yield from (found[seq] for seq in stretch)
        if len(stretch) < _STRETCH:
            return
        before = stretch[-1]


def _said(
    tx: Transaction, agent_id: str, places: str, messages: str, limit: int, **bound: int
) -> list[Event]:
    """What was said to many: of the conversations that come first, no more than is shown."""
    since = _since(tx, agent_id)
    heads = [(row[0], row[-1]) for row in tx.ledger.rows(places, agent=agent_id, **bound)]
    begun = sorted((one for one in heads if one[1] is not None), key=lambda one: one[1])
    chosen = [ident for ident, _ in (begun if "after" in bound else begun[::-1])[:limit]]
    to_all = broadcast_for(tx, agent_id)
    chosen = [*dict.fromkeys((*chosen, *((to_all.id,) if to_all else ())))]
    found: list[Message] = []
    for ident in chosen:
        some = tx.ledger.many(Message, messages, conversation=ident, limit=limit, **bound)
        found += [one for one in some if to_all is None or ident != to_all.id or one.seq > since]
    found.sort(key=lambda one: one.seq, reverse="before" in bound)
    return [event for one in found[:limit] for event in tx.ledger.facts("event_numbered", seq=one.seq)]


def _since(tx: Transaction, agent_id: str) -> int:
    """From when on broadcasts reach an agent."""
    return int(tx.ledger.value("first_fact_of", ref=str(Ref.to(agent_id))) or 0)


def reaches(tx: Transaction, agent_id: str, look: Callable[[], Ledger]) -> Callable[[Event], bool]:
    """Whether a fact was said to many, an agent among them."""
    agent = tx.agent(agent_id)
    to_all = broadcast_id(agent.owner) if agent is not None and agent.owner else None
    since = _since(tx, agent_id)

    def is_said_to(event: Event) -> bool:
        if not isinstance(event, MessagePosted):
            return False
        if event.target.id == to_all:
            return event.seq > since
        member = look().one(Member, "membership", conversation=event.target.id, agent=agent_id)
        return member is not None and member.left_at is None

    return is_said_to
