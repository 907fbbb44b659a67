"""Nested asks: the enclosing ask, rate limit, open-flight limit, loop detection."""

import hashlib

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.broker.operations.flights import find_flight
from scout.broker.transaction.transaction import Transaction
from scout.model.ask import Ask
from scout.model.conversation import Message
from scout.model.flight import Flight
from scout.policy.chain import Link, check_chain
from scout.policy.limits import check_ask_rate, check_open_flights
from scout.policy.obligation import Party
from scout.store.ledger import LAST

_MINUTE = 60


def find_enclosing_ask(tx: Transaction, within: str | None) -> Ask | None:
    """Return the ask that the caller is working on."""
    flight = find_enclosing_flight(tx, within)
    return tx.need(Ask, "ask", flight.ask_id) if flight else None


def find_enclosing_flight(tx: Transaction, within: str | None) -> Flight | None:
    """Return the flight the caller works on: the named one, else its session's, else its only running one."""
    if within is not None:
        flight = find_flight(tx, within)
        if flight.target != tx.sender:
            raise tx.missing("flight of yours", within)
        return flight
    if not _open_flights(tx, tx.sender):
        return None
    open_flights = tx.ledger.many(Flight, "flights_open_to", agent=tx.sender, before=LAST, limit=50)
    running = [one for one in open_flights if one.started_at is not None]
    mine = [one for one in running if tx.actor.session_id and one.session_id == tx.actor.session_id]
    candidates = mine or running
    return candidates[0] if len(candidates) == 1 else None


def check_room(tx: Transaction, ask: Ask) -> None:
    """Enforce the target's limit of open flights."""
    limits = tx.rules.limits
    check_open_flights(ask.resolved or ask.target, len(_open_flights(tx, ask.target)), limits)


def _open_flights(tx: Transaction, agent_id: str) -> set[str]:
    def load() -> list[str]:
        return [ident for (ident,) in tx.ledger.rows("flights_open_ids", agent=agent_id)]

    return tx.cache.open_flights(agent_id, load)


def _check_rate(tx: Transaction, sender_id: str, sender: str) -> None:
    since, limits = int(tx.now.plus(-_MINUTE)), tx.rules.limits

    def load() -> list[int]:
        return [moment for (moment,) in tx.ledger.rows("asks_recent", sender=sender_id, since=since)]

    moments = tx.cache.asked_since(sender_id, since, load)
    if len(moments) >= limits.asks_per_minute:
        check_ask_rate(sender, [Time(one) for one in reversed(moments)], limits, tx.now)


def check_limits(tx: Transaction, ask: Ask, body: str) -> None:
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
        body_hash=_hash_body(body),
    )
    try:
        check_chain(list_ancestors(tx, ask), link, limits, _open_asks(tx, ask) if ask.chain else ())
    except Refused as refusal:
        tx.alarms.append(refusal.diagnostic)
        raise


def list_ancestors(tx: Transaction, ask: Ask) -> list[Link]:
    """Return the enclosing asks of this one, oldest first."""
    return [_build_link(tx, tx.need(Ask, "ask", ident)) for ident in ask.chain]


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
