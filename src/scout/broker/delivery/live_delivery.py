"""Waking a session that a person has open, through its input and never by a second writer.

A handed-over delivery is leased to the session. Only the session's own report that its model reads it
(see `operations/hooks`) is the receipt. Without it the lease expires, and a few more attempts follow.
"""

import logging
from typing import NamedTuple

from scout.base.time import Time
from scout.broker.effects import flight_state
from scout.broker.operations import hooks, inbox
from scout.broker.routing.routes import can_wake_live
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import ReadLedger, Transaction, WriteAsBroker
from scout.model.agent import Agent
from scout.model.delivery import Backoff, Delivery, DeliveryState, back_off, is_ahead_of_clock, is_due
from scout.model.endpoint import Endpoint, EndpointState, Transport
from scout.model.flight import Flight, FlightPhase, FlightState, note_flight
from scout.model.session import Session, SessionOrigin, SessionState
from scout.policy.host_text import build_mail_text
from scout.protocol.inbox import NackInbox
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.dispatch")
_MAX_ATTEMPTS = 3  # afterwards the session takes it at the end of its next turn
_SOME = 200
_MANY = 1000
_REFUSED = "its session did not accept it"
_STAYS = "handed to its session {} times without a response; the session takes it when it is next active"


class _Handover(NamedTuple):
    """The text for one live session, and the deliveries leased to the session for it."""

    harness: str
    native_id: str
    session_id: str
    text: str
    delivery_ids: tuple[str, ...]


def compute_next_attempt(delivery: Delivery, rule: Backoff) -> Time:
    """Return when to try to wake the session: at once, then after growing pauses."""
    pause = back_off(delivery.attempts, rule) if delivery.attempts else 0
    return max(delivery.updated_at.plus(pause), delivery.next_attempt_at)


class LiveSessions:
    """Sessions that people have open and that can be woken; `write` and `read` as the dispatcher has them."""

    def __init__(
        self,
        services: Services,
        write: WriteAsBroker,
        read: ReadLedger,
    ) -> None:
        self._services = services
        self._write = write
        self._read = read
        self._agents = set[str]()  # with a session that can be woken, now or earlier

    def on_session(self, session: Session) -> None:
        """Remember the agent of a session that can be woken."""
        if self._is_wakeable(session):
            self._agents.add(session.agent_id)

    @property
    def agents(self) -> list[str]:
        """Return the agents that have had a session that can be woken."""
        return sorted(self._agents)

    def may_concern(self, delivery: Delivery) -> bool:
        """Whether a live session may have to be woken for a delivery, judged from memory alone."""
        aimed = delivery.endpoint_id is not None or delivery.flight_id is not None
        return aimed and not delivery.wake and delivery.target in self._agents

    async def load_agents(self) -> list[str]:
        """Load the agents with a session that can be woken, and return them."""
        running: list[Session] = await self._read(
            lambda ledger: ledger.many(Session, "sessions_running", limit=_MANY)
        )
        for session in running:
            self.on_session(session)
        return self.agents

    def _is_wakeable(self, session: Session) -> bool:
        return session.origin is SessionOrigin.ENROLLED and can_wake_live(self._services, session.harness)

    async def deliver_live(self, agent_id: str) -> None:
        """Hand what waits for an agent to its idle session, if any; give it back if refused."""
        if self._services.paused is not None or not await self._read(
            lambda ledger: self._may_wake(ledger, agent_id)
        ):
            return
        found: _Handover | None = await self._write(lambda tx: _lease_handover(tx, agent_id))
        if found is None:
            return
        try:
            accepted = await self._services.harnesses[found.harness].deliver_live(found.native_id, found.text)
        except Exception:  # noqa: BLE001 (it is logged, and what was leased is given back)
            _LOG.exception("waking %s", found.session_id)
            accepted = False
        settle = _record_wake if accepted else _give_back
        await self._write(lambda tx: settle(tx, found))

    def _may_wake(self, ledger: Ledger, agent_id: str) -> bool:
        """Check on a reader first, to spare the writer: most agents have no such session."""
        endpoints = ledger.many(Endpoint, "endpoints_of", agent=agent_id)
        return any(_is_idle(one) and can_wake_live(self._services, one.harness) for one in endpoints)


def _is_idle(endpoint: Endpoint) -> bool:
    """Whether a session is idle; a working one takes its mail itself after the turn."""
    return endpoint.transport is Transport.PULL and endpoint.state is EndpointState.IDLE


# -- handing over ------------------------------------------------------------------------------------


def _lease_handover(tx: Transaction, agent_id: str) -> _Handover | None:
    """Lease to one idle session the delivery that wakes it, and what else waits."""
    waiting = tx.ledger.many(Delivery, "inbox", agent=agent_id, after="", limit=_SOME)
    _note_exhausted(tx, waiting)
    due = [one for one in waiting if is_due(one, tx.now) and not one.wake and one.attempts < _MAX_ATTEMPTS]
    for delivery in due:
        is_time = compute_next_attempt(delivery, tx.rules.back_off) <= tx.now
        wakes = (is_time or is_ahead_of_clock(delivery, tx.now)) and _is_wake_due(tx, delivery)
        session = _find_idle_session(tx, delivery) if wakes else None
        if session is not None and not any(_is_held_by(one, session) for one in waiting):
            others = [one for one in due if one is not delivery and one.session_id in (None, session.id)]
            return _build_handover(tx, session, hooks.group_deliveries([delivery, *others]))
    return None


def _is_wake_due(tx: Transaction, delivery: Delivery) -> bool:
    """Whether a delivery is to wake its target; a plain message waits for the next turn."""
    flight = tx.get(Flight, delivery.flight_id)
    if flight is not None and flight.phase is FlightPhase.HELD:
        return False
    return delivery.endpoint_id is not None or (flight is not None and flight.state is FlightState.QUEUED)


def _find_idle_session(tx: Transaction, delivery: Delivery) -> Session | None:
    """Return the idle session chosen for a delivery, else the one seen last."""
    ways = [one for one in tx.endpoints(delivery.target) if _is_idle(one)]
    ways.sort(key=lambda one: (one.id == delivery.endpoint_id, one.last_seen or 0), reverse=True)
    for way in ways:
        session = tx.get(Session, way.session_id)
        if session is not None and _can_be_woken(tx, session) and delivery.session_id in (None, session.id):
            return session
    return None


def _can_be_woken(tx: Transaction, session: Session) -> bool:
    """Whether a session is a person's own, live, known by its native id, and can be woken."""
    enrolled = session.origin is SessionOrigin.ENROLLED and session.state is SessionState.LIVE
    return (
        enrolled and bool(session.native_ids.get("session")) and can_wake_live(tx.services, session.harness)
    )


def _is_held_by(delivery: Delivery, session: Session) -> bool:
    return delivery.state is DeliveryState.LEASED and delivery.leased_by == session.id


def _build_handover(tx: Transaction, session: Session, deliveries: list[Delivery]) -> _Handover:
    hooks.act_as_session(tx, tx.need(Agent, "agent", session.agent_id), session)
    items = inbox.lease_deliveries(tx, deliveries)
    return _Handover(
        harness=session.harness,
        native_id=session.native_ids["session"],
        session_id=session.id,
        text=build_mail_text([hooks.build_mail(tx, one) for one in items], session.harness),
        delivery_ids=tuple(one.id for one in deliveries),
    )


# -- outcome ----------------------------------------------------------------------------------------


def _record_wake(tx: Transaction, handover: _Handover) -> None:
    """Record the wake for the first delivery: the session was woken for it."""
    delivery = tx.need(Delivery, "delivery", handover.delivery_ids[0])
    flight_state.record_wake(tx, delivery, f"the {handover.harness} session took it in")


def _give_back(tx: Transaction, handover: _Handover) -> None:
    """Give the deliveries back; the session may still take them itself."""
    session = tx.need(Session, "session", handover.session_id)
    found = [tx.need(Delivery, "delivery", one) for one in handover.delivery_ids]
    held = tuple(one.id for one in found if _is_held_by(one, session))
    hooks.act_as_session(tx, tx.need(Agent, "agent", session.agent_id), session)
    inbox.give_back(tx, NackInbox(delivery_ids=held, problem=_REFUSED, retry_after=0))


def _note_exhausted(tx: Transaction, waiting: list[Delivery]) -> None:
    """Note in each flight whose attempts are used up that its session takes it later."""
    for delivery in waiting:
        flight = tx.get(Flight, delivery.flight_id)
        tried = delivery.state is DeliveryState.PENDING and delivery.attempts >= _MAX_ATTEMPTS
        if tried and flight is not None and flight.phase is FlightPhase.RETRYING:
            reason = f"{_STAYS.format(delivery.attempts)} ({delivery.problem})"
            flight_state.record_note(tx, note_flight(flight, FlightPhase.ACCEPTED, tx.now, reason=reason))
