"""The end of a session or an endpoint: untaken work is routed again, taken work fails.

All of it is one transaction, so that nothing is "running" without a session that could run it.
"""

from collections.abc import Iterator

from scout.base.refusal import Remedy
from scout.broker.effects import flight_state, held_flights, reservations
from scout.broker.routing import routes
from scout.broker.transaction import admission
from scout.broker.transaction.transaction import Transaction
from scout.model.access.allowance import Allowance, AllowanceMove, revoke_allowance
from scout.model.agent import Agent, Lifecycle
from scout.model.ask import Ask, IfUnreachable
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, nack
from scout.model.endpoint import BROKEN, ENDPOINT, Endpoint, EndpointMove, is_online
from scout.model.events.presence import SessionEnded
from scout.model.events.talk import AllowanceRevoked
from scout.model.flight import Flight, FlightState, build_error, fail_flight, retry_remedy
from scout.model.problems.session import Layer, SessionFailed
from scout.model.session import SESSION, Session, SessionClass, SessionState, end_session
from scout.store.ledger import LAST

_MANY = 1000


def record_session_end(
    tx: Transaction,
    session: Session,
    reason: str,
    ending: SessionClass | None = None,
    layer: Layer = Layer.SESSION,
) -> Session:
    """End a session with its endpoints, credentials and work. Ending it twice changes nothing."""
    for endpoint in tx.ledger.many(Endpoint, "endpoints_of_session", session=session.id):
        if endpoint.state not in ENDPOINT.terminal:
            routes.record_endpoint_move(tx, endpoint, EndpointMove.STOP, reason)
    if session.state not in SESSION.settled:
        ended = end_session(session, reason, tx.now, ending=ending)
        session = tx.record(SessionEnded, ended, move="end", reason=reason)
    admission.revoke_session_tokens(tx, session, reason)
    reservations.release_for_session(tx, session.id, reason)
    _end_allowances(tx, session, reason)
    _give_back_untaken(tx, session, reason)
    _settle_flights(tx, session, reason, layer)
    return session


def _end_allowances(tx: Transaction, session: Session, reason: str) -> None:
    """Revoke the standing decisions that were made for this session."""
    why = f"its session ended: {reason}"
    for one in tx.ledger.many(Allowance, "allowances_of_session", session=session.id, limit=_MANY):
        gone = revoke_allowance(one, tx.now, reason=why)
        tx.record(AllowanceRevoked, gone, move=AllowanceMove.REVOKE, reason=why)


def fail_start(tx: Transaction, session_id: str | None, reason: str, layer: Layer = Layer.HARNESS) -> None:
    """End a session that never became live."""
    session = tx.get(Session, session_id)
    if session is not None and session.state is SessionState.STARTING:
        record_session_end(tx, session, f"it did not start: {reason}", layer=layer)


# -- deliveries --------------------------------------------------------------------------------------


def _give_back_untaken(tx: Transaction, session: Session, reason: str) -> None:
    """Return deliveries that were leased for a session and not taken."""
    for delivery in tx.ledger.many(Delivery, "inbox", agent=session.agent_id, after="", limit=_MANY):
        if delivery.state is not DeliveryState.LEASED:
            continue
        if session.id in (delivery.leased_by, delivery.session_id):
            holder, rule = delivery.leased_by or "", tx.rules.back_off
            after = nack(delivery, holder, tx.now, problem=reason, retry_after=0, rule=rule)
            flight_state.record_delivery(tx, delivery, after, DeliveryMove.NACK)


# -- flights -----------------------------------------------------------------------------------------


def _open_flights(tx: Transaction, agent_id: str) -> Iterator[Flight]:
    """Yield the open flights to an agent, oldest first, each read when it is reached."""
    found = tx.ledger.many(Flight, "flights_open_to", agent=agent_id, before=LAST, limit=_MANY)
    for flight in reversed(found):
        yield tx.need(Flight, "flight", flight.id)


def _settle_flights(tx: Transaction, session: Session, reason: str, layer: Layer) -> None:
    """Fail flights that the session took or had to take; route the others again."""
    agent = tx.need(Agent, "agent", session.agent_id)
    for flight in _open_flights(tx, session.agent_id):
        if flight.session_id == session.id and not _may_wait(tx, flight):
            _fail_flight(tx, flight, session.id, reason, layer)
        elif agent.lifecycle is not Lifecycle.RETIRED:
            _reroute_flight(tx, flight, reason)


def _may_wait(tx: Transaction, flight: Flight) -> bool:
    """Whether nothing took a flight for exactly this session, and its asker allows it to wait."""
    ask = tx.get(Ask, flight.ask_id)
    waits = ask is not None and ask.if_unreachable is IfUnreachable.QUEUE
    return waits and flight.state is FlightState.QUEUED


def _fail_flight(tx: Transaction, flight: Flight, session_id: str, reason: str, layer: Layer) -> None:
    remedies: tuple[Remedy, ...] = (retry_remedy(flight),)
    problem = SessionFailed(session_id=session_id, layer=layer, reason=reason, remedies=remedies)
    flight_state.finish_flight(tx, flight, fail_flight(flight, build_error(problem), tx.now))


def _reroute_flight(tx: Transaction, flight: Flight, reason: str) -> None:
    """Find another route for a flight whose endpoint is gone."""
    deliveries = tx.ledger.many(Delivery, "deliveries_of_flight", flight=flight.id)
    pending = [one for one in deliveries if one.state is DeliveryState.PENDING]
    ways = [tx.get(Endpoint, one.endpoint_id) for one in pending]
    if flight.state is FlightState.QUEUED and any(one is None or one.state in BROKEN for one in ways):
        held_flights.reroute_flight(tx, flight, reason)


# -- an endpoint without a session -------------------------------------------------------------------


def lose_endpoint(tx: Transaction, endpoint: Endpoint, reason: str) -> None:
    """Mark a silent endpoint; what waits for its agent is routed again or held."""
    routes.record_endpoint_move(tx, endpoint, EndpointMove.EXPIRE, reason)
    for flight in _open_flights(tx, endpoint.agent_id):
        _reroute_flight(tx, flight, f"its target stopped responding: {reason}")


def stop_endpoint(tx: Transaction, endpoint: Endpoint, reason: str) -> Endpoint:
    """Stop an endpoint for good; flights taken through it fail, unless the agent is reachable otherwise."""
    stopped = routes.record_endpoint_move(tx, endpoint, EndpointMove.STOP, reason)
    within = tx.rules.periods.online_within
    if any(is_online(one, tx.now, within) for one in tx.endpoints(endpoint.agent_id)):
        return stopped
    for flight in _open_flights(tx, endpoint.agent_id):
        _reroute_flight(tx, flight, reason)
        if flight.state is not FlightState.QUEUED and flight.endpoint_id == endpoint.id:
            _fail_flight(tx, flight, endpoint.session_id or "unknown", reason, Layer.SESSION)
    return stopped
