"""Inside of which ask another is made; not too often, not too many at once, not in a circle."""

import hashlib

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.broker.operations.flights import flight_named
from scout.broker.transaction.transaction import Turn
from scout.model.ask import Ask
from scout.model.conversation import Message
from scout.model.flight import Flight
from scout.policy.chain import Link, check_chain
from scout.policy.duty import Party
from scout.policy.limits import check_ask_rate, check_open_flights
from scout.store.ledger import LAST

__all__ = ["check_limits", "check_room", "inside_of", "lineage_of", "worked_on"]

_MINUTE = 60


def inside_of(turn: Turn, within: str | None) -> Ask | None:
    """The ask that the caller is working on."""
    flight = worked_on(turn, within)
    return turn.need(Ask, "ask", flight.ask_id) if flight else None


def worked_on(turn: Turn, within: str | None) -> Flight | None:
    """The flight that the caller is working on: named, or its session's, or its only open one."""
    if within is not None:
        flight = flight_named(turn, within)
        if flight.target != turn.sender:
            raise turn.missing("flight of yours", within)
        return flight
    if not _open_flights(turn, turn.sender):
        return None
    open_flights = turn.ledger.many(Flight, "flights_open_to", agent=turn.sender, before=LAST, limit=50)
    running = [one for one in open_flights if one.started_at is not None]
    mine = [one for one in running if turn.actor.session_id and one.session_id == turn.actor.session_id]
    candidates = mine or running
    return candidates[0] if len(candidates) == 1 else None


def check_room(turn: Turn, ask: Ask) -> None:
    """Not too many at once."""
    limits = turn.rules.limits
    check_open_flights(ask.resolved or ask.target, len(_open_flights(turn, ask.target)), limits)


def _open_flights(turn: Turn, agent_id: str) -> set[str]:
    def load() -> list[str]:
        return [ident for (ident,) in turn.ledger.rows("flights_open_ids", agent=agent_id)]

    return turn.memory.open_flights(agent_id, load)


def _check_rate(turn: Turn, sender_id: str, sender: str) -> None:
    since, limits = int(turn.now.plus(-_MINUTE)), turn.rules.limits

    def load() -> list[int]:
        return [moment for (moment,) in turn.ledger.rows("asks_recent", sender=sender_id, since=since)]

    moments = turn.memory.asked_since(sender_id, since, load)
    if len(moments) >= limits.asks_per_minute:
        check_ask_rate(sender, [Time(one) for one in reversed(moments)], limits, turn.now)


def check_limits(turn: Turn, ask: Ask, body: str) -> None:
    """Not too often, not too many at once, not in a circle."""
    limits = turn.rules.limits
    sender, target = turn.address(ask.sender), turn.address(ask.target)
    _check_rate(turn, ask.sender, sender)
    check_room(turn, ask)
    link = Link(
        asker=Party(agent_id=ask.sender, session_id=ask.sender_session_id),
        asker_address=sender,
        target=Party(agent_id=ask.target, session_id=ask.target_session_id),
        target_address=target,
        body_hash=_hash(body),
    )
    try:
        check_chain(lineage_of(turn, ask), link, limits, _open_asks(turn, ask) if ask.chain else ())
    except Refused as refusal:
        turn.alarms.append(refusal.diagnostic)
        raise


def lineage_of(turn: Turn, ask: Ask) -> list[Link]:
    """The asks inside of which this one is made, oldest first."""
    return [_link(turn, turn.need(Ask, "ask", ident)) for ident in ask.chain]


def _link(turn: Turn, ask: Ask) -> Link:
    flights = turn.ledger.many(Flight, "flights_of_ask", ask=ask.id)
    message = turn.ledger.get(Message, ask.message_id)
    return Link(
        asker=Party(agent_id=ask.sender, session_id=ask.sender_session_id),
        asker_address=turn.address(ask.sender),
        target=Party(agent_id=ask.target, session_id=ask.target_session_id),
        target_address=turn.address(ask.target),
        ask_id=ask.id,
        flight_id=flights[-1].id if flights else "",
        body_hash=_hash(message.body) if message else "",
    )


def _open_asks(turn: Turn, ask: Ask) -> list[Link]:
    """What the asker already waits for, to the same target."""
    waits = turn.ledger.many(Flight, "flights_open_for", agent=ask.sender, before=LAST, limit=50)
    same = [one for one in waits if one.target == ask.target]
    return [_link(turn, turn.need(Ask, "ask", one.ask_id)) for one in same]


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
