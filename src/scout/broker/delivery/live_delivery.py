"""Waking a session that a person has open, through its own door and never by a second writer.

What is said through the door is leased to the session: only the session's own word that its model reads it
(see `hosting`) is the receipt. Without one the lease runs out, and it is tried again a few times.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from scout.base.time import Time
from scout.broker.effects import flight_state
from scout.broker.operations import hooks, inbox
from scout.broker.routing.routes import can_wake_live
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.delivery import Backoff, Delivery, DeliveryState, back_off, is_due, is_from_the_future
from scout.model.endpoint import Endpoint, EndpointState, Transport
from scout.model.flight import Flight, FlightPhase, FlightState, note_flight
from scout.model.session import Session, SessionOrigin, SessionState
from scout.policy.host_text import mail_text
from scout.protocol.inbox import NackInbox
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.dispatch")
_KNOCKS = 3  # then it stays for the session's own next moment
_SOME = 200
_MANY = 1000
_REFUSED = "its session did not let it in"
_STAYS = "handed to its session {} times without a sign; it takes it at its own next moment"


class _Knock(NamedTuple):
    """What to say through which door, and what is leased to the session for that."""

    harness: str
    native_id: str
    session_id: str
    text: str
    delivery_ids: tuple[str, ...]


def next_attempt_at(delivery: Delivery, rule: Backoff) -> Time:
    """When to knock for it: at once, later after each time. Its session may take it by itself before."""
    pause = back_off(delivery.attempts, rule) if delivery.attempts else 0
    return max(delivery.updated_at.plus(pause), delivery.next_attempt_at)


class LiveSessions:
    """The doors of live sessions; `write` and `read` as the dispatcher has them."""

    def __init__(
        self,
        services: Services,
        write: Callable[[Callable[[Transaction], Any]], Awaitable[Any]],
        read: Callable[[Callable[[Ledger], Any]], Awaitable[Any]],
    ) -> None:
        self._services = services
        self._write = write
        self._read = read
        self._agents = set[str]()  # those that have had a session with a door

    def on_session(self, session: Session) -> None:
        """A session began."""
        if self._is_behind_a_door(session):
            self._agents.add(session.agent_id)

    @property
    def agents(self) -> list[str]:
        """The agents that have had a session with a door."""
        return sorted(self._agents)

    def concern(self, delivery: Delivery) -> bool:
        """Whether a live session may have to be woken for it, as far as is known without looking."""
        aimed = delivery.endpoint_id is not None or delivery.flight_id is not None
        return aimed and not delivery.wake and delivery.target in self._agents

    async def after_a_start(self) -> list[str]:
        """The agents with a session that could be woken."""
        running: list[Session] = await self._read(
            lambda ledger: ledger.many(Session, "sessions_running", limit=_MANY)
        )
        for session in running:
            self.on_session(session)
        return self.agents

    def _is_behind_a_door(self, session: Session) -> bool:
        return session.origin is SessionOrigin.ENROLLED and can_wake_live(self._services, session.harness)

    async def deliver_live(self, agent_id: str) -> None:
        """Hand what waits for an agent to its idle session, if it has one; refused, it is given back."""
        if self._services.paused is not None or not await self._read(
            lambda ledger: self._may_wake(ledger, agent_id)
        ):
            return
        found: _Knock | None = await self._write(lambda tx: _handed_over(tx, agent_id))
        if found is None:
            return
        try:
            went_in = await self._services.harnesses[found.harness].deliver_live(found.native_id, found.text)
        except Exception:  # noqa: BLE001 (it is logged, and what was leased is given back)
            _LOG.exception("knocking at %s", found.session_id)
            went_in = False
        settled = _woken if went_in else _given_back
        await self._write(lambda tx: settled(tx, found))

    def _may_wake(self, ledger: Ledger, agent_id: str) -> bool:
        """A look before the writer is troubled: most agents have no such session."""
        endpoints = ledger.many(Endpoint, "endpoints_of", agent=agent_id)
        return any(_is_idle(one) and can_wake_live(self._services, one.harness) for one in endpoints)


def _is_idle(endpoint: Endpoint) -> bool:
    """A session that works takes what comes by itself, when its turn is over."""
    return endpoint.transport is Transport.PULL and endpoint.state is EndpointState.IDLE


# -- what is handed over -----------------------------------------------------------------------------


def _handed_over(tx: Transaction, agent_id: str) -> _Knock | None:
    """Lease to one idle session what it is woken for, and what waits besides."""
    waiting = tx.ledger.many(Delivery, "inbox", agent=agent_id, after="", limit=_SOME)
    _tell_what_stays(tx, waiting)
    due = [one for one in waiting if is_due(one, tx.now) and not one.wake and one.attempts < _KNOCKS]
    for delivery in due:
        is_time = next_attempt_at(delivery, tx.rules.back_off) <= tx.now
        wakes = (is_time or is_from_the_future(delivery, tx.now)) and _wakes(tx, delivery)
        session = _idle_session(tx, delivery) if wakes else None
        if session is not None and not any(_is_held_by(one, session) for one in waiting):
            others = [one for one in due if one is not delivery and one.session_id in (None, session.id)]
            return _knock(tx, session, hooks.group_deliveries([delivery, *others]))
    return None


def _wakes(tx: Transaction, delivery: Delivery) -> bool:
    """Whether it was decided that its target is woken; a plain message waits for a natural moment."""
    flight = tx.get(Flight, delivery.flight_id)
    if flight is not None and flight.phase is FlightPhase.HELD:
        return False
    return delivery.endpoint_id is not None or (flight is not None and flight.state is FlightState.QUEUED)


def _idle_session(tx: Transaction, delivery: Delivery) -> Session | None:
    """The session that was chosen for it, else the one that was heard of last."""
    ways = [one for one in tx.endpoints(delivery.target) if _is_idle(one)]
    ways.sort(key=lambda one: (one.id == delivery.endpoint_id, one.last_seen or 0), reverse=True)
    for way in ways:
        session = tx.get(Session, way.session_id)
        if session is not None and _can_be_woken(tx, session) and delivery.session_id in (None, session.id):
            return session
    return None


def _can_be_woken(tx: Transaction, session: Session) -> bool:
    """A person's own session that lives, whose program knows it by a name and has a door."""
    enrolled = session.origin is SessionOrigin.ENROLLED and session.state is SessionState.LIVE
    return (
        enrolled and bool(session.native_ids.get("session")) and can_wake_live(tx.services, session.harness)
    )


def _is_held_by(delivery: Delivery, session: Session) -> bool:
    return delivery.state is DeliveryState.LEASED and delivery.leased_by == session.id


def _knock(tx: Transaction, session: Session, deliveries: list[Delivery]) -> _Knock:
    hooks.act_as_session(tx, tx.need(Agent, "agent", session.agent_id), session)
    items = inbox.lease_deliveries(tx, deliveries)
    return _Knock(
        harness=session.harness,
        native_id=session.native_ids["session"],
        session_id=session.id,
        text=mail_text([hooks.mail_of(tx, one) for one in items], session.harness),
        delivery_ids=tuple(one.id for one in deliveries),
    )


# -- what came to nothing ----------------------------------------------------------------------------


def _woken(tx: Transaction, knock: _Knock) -> None:
    """The session's door took it: the first is what it was woken for."""
    delivery = tx.need(Delivery, "delivery", knock.delivery_ids[0])
    flight_state.record_wake(tx, delivery, f"the {knock.harness} session took it in")


def _given_back(tx: Transaction, knock: _Knock) -> None:
    """It did not go in: its session may still take it by itself, now or when it is knocked at again."""
    session = tx.need(Session, "session", knock.session_id)
    found = [tx.need(Delivery, "delivery", one) for one in knock.delivery_ids]
    held = tuple(one.id for one in found if _is_held_by(one, session))
    hooks.act_as_session(tx, tx.need(Agent, "agent", session.agent_id), session)
    inbox.give_back(tx, NackInbox(delivery_ids=held, problem=_REFUSED, retry_after=0))


def _tell_what_stays(tx: Transaction, waiting: list[Delivery]) -> None:
    """A flight that nobody knocks for any more says so."""
    for delivery in waiting:
        flight = tx.get(Flight, delivery.flight_id)
        tried = delivery.state is DeliveryState.PENDING and delivery.attempts >= _KNOCKS
        if tried and flight is not None and flight.phase is FlightPhase.RETRYING:
            reason = f"{_STAYS.format(delivery.attempts)} ({delivery.problem})"
            flight_state.record_note(tx, note_flight(flight, FlightPhase.ACCEPTED, tx.now, reason=reason))
