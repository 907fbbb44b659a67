"""The limits of asks: their rate, the room of their target, and chains of asks that loop or grow too long."""

import hashlib

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.broker.operations.flights import check_room
from scout.broker.transaction.transaction import Transaction
from scout.model.ask import Ask, AskLink
from scout.model.conversation import Message
from scout.model.flight import Flight
from scout.policy.directory import Instance, Party
from scout.policy.limits import Link, check_ask_rate, check_chain
from scout.store.ledger import LAST

_MINUTE = 60


def check_ask_limits(tx: Transaction, ask: Ask, body: str) -> None:
    """Enforce the ask rate, the open-flight limit, and the loop and depth limits of the chain."""
    limits = tx.rules.limits
    sender, target = tx.address(ask.sender), tx.address(ask.target)
    _check_rate(tx, ask.sender, sender)
    check_room(tx, ask)
    link = Link(
        asker=Party(agent_id=ask.sender, session_id=ask.sender_session_id),
        asker_address=sender,
        target=Party(agent_id=ask.target, session_id=ask.target_session_id),
        target_address=target,
        body_hash=_hash_body(body) if ask.chain else "",  # compared with the asks around it
    )
    try:
        check_chain(_list_ancestors(tx, ask), link, limits, _open_asks(tx, ask) if ask.chain else ())
    except Refused as refusal:
        tx.alarms.append(refusal.diagnostic)
        raise


def _check_rate(tx: Transaction, sender_id: str, sender: str) -> None:
    since, limits = int(tx.now.plus(-_MINUTE)), tx.rules.limits

    def load() -> list[int]:
        return [moment for (moment,) in tx.ledger.rows("asks_recent", sender=sender_id, since=since)]

    moments = tx.cache.list_asks_since(sender_id, since, load)
    if len(moments) >= limits.asks_per_minute:
        check_ask_rate(sender, [Time(one) for one in reversed(moments)], limits, tx.now)


def _list_ancestors(tx: Transaction, ask: Ask) -> list[Link]:
    """Return the enclosing asks of this one, oldest first; those of other nodes came with it."""
    foreign = {one.ask_id: one for one in ask.ancestors}
    found = ((ident, tx.get(Ask, ident)) for ident in ask.chain)
    links = (_build_link(tx, one) if one else _read_link(foreign.get(ident)) for ident, one in found)
    return [link for link in links if link is not None]


def _read_link(link: AskLink | None) -> Link | None:
    if link is None:
        return None
    return Link(
        asker=Party(agent_id=link.asker, session_id=link.asker_session_id),
        asker_address=link.asker_canonical,
        target=Party(agent_id=link.target, session_id=link.target_session_id),
        target_address=link.target_canonical,
        ask_id=link.ask_id,
        flight_id=link.flight_id,
        body_hash=link.body_hash,
    )


def list_ancestors(tx: Transaction, ask: Ask) -> tuple[AskLink, ...]:
    """Return the chain of an ask for another node, which knows none of its asks."""
    return tuple(
        AskLink(
            ask_id=one.ask_id,
            asker=one.asker.agent_id,
            asker_canonical=_spell(tx, one.asker, one.asker_address),
            asker_session_id=one.asker.session_id,
            target=one.target.agent_id,
            target_canonical=_spell(tx, one.target, one.target_address),
            target_session_id=one.target.session_id,
            flight_id=one.flight_id,
            body_hash=one.body_hash,
        )
        for one in _list_ancestors(tx, ask)
    )


def _spell(tx: Transaction, party: Party, known: str) -> str:
    """Return the canonical address of an agent; `known`: that of an agent which only other nodes know."""
    agent = tx.agent(party.agent_id)
    return Instance(agent=agent).canonical if agent is not None else known


def _build_link(tx: Transaction, ask: Ask) -> Link:
    flights = tx.ledger.many(Flight, "flights_of_ask", ask=ask.id)
    message = tx.get(Message, ask.message_id)
    return Link(
        asker=Party(agent_id=ask.sender, session_id=ask.sender_session_id),
        asker_address=tx.address(ask.sender),
        target=Party(agent_id=ask.target, session_id=ask.target_session_id),
        target_address=tx.address(ask.target),
        ask_id=ask.id,
        flight_id=flights[-1].id if flights else "",
        body_hash=_hash_body(message.body) if message else "",
    )


def _open_asks(tx: Transaction, ask: Ask) -> list[Link]:
    """Return the asker's open asks to the same target."""
    waits = tx.ledger.many(Flight, "flights_open_for", agent=ask.sender, before=LAST, limit=50)
    same = [one for one in waits if one.target == ask.target]
    return [_build_link(tx, tx.need(Ask, "ask", one.ask_id)) for one in same]


def _hash_body(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
