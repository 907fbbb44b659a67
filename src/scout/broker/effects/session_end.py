"""The end of a session, and of an endpoint: what it had not taken is routed again, what it had taken fails.

All of it is one transaction, so that nothing is "running" without a session that could run it.
"""

from collections.abc import Iterator

from scout.base.refusal import Remedy
from scout.broker.effects import flight_state, held_flights
from scout.broker.routing import credentials, routes
from scout.broker.transaction.transaction import Turn
from scout.model.agent import Agent, Lifecycle
from scout.model.ask import Ask, IfUnreachable
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, nack
from scout.model.endpoint import BROKEN, ENDPOINT, Endpoint, EndpointMove, is_online
from scout.model.events.presence import SessionEnded
from scout.model.flight import Flight, FlightState, error_of, fail_flight, retry_remedy
from scout.model.problems.session import Layer, SessionFailed
from scout.model.session import SESSION, Session, SessionClass, SessionState, end_session
from scout.store.ledger import LAST

__all__ = ["end", "fail_start", "lose_endpoint", "stop_endpoint"]

_MANY = 1000


def end(
    turn: Turn,
    session: Session,
    reason: str,
    ending: SessionClass | None = None,
    layer: Layer = Layer.SESSION,
) -> Session:
    """End a session, its endpoints, its credentials and its work. Ending it twice changes nothing more."""
    for endpoint in turn.ledger.many(Endpoint, "endpoints_of_session", session=session.id):
        if endpoint.state not in ENDPOINT.terminal:
            routes.move(turn, endpoint, EndpointMove.STOP, reason)
    if session.state not in SESSION.settled:
        ended = end_session(session, reason, turn.now, ending=ending)
        session = turn.record(SessionEnded, ended, move="end", reason=reason)
    credentials.revoke_of_session(turn, session, reason)
    _return_untaken(turn, session, reason)
    _settle_flights(turn, session, reason, layer)
    return session


def fail_start(turn: Turn, session_id: str | None, reason: str, layer: Layer = Layer.HARNESS) -> None:
    """End a session that never became live."""
    session = turn.ledger.get(Session, session_id)
    if session is not None and session.state is SessionState.STARTING:
        end(turn, session, f"it did not start: {reason}", layer=layer)


# -- its deliveries ----------------------------------------------------------------------------------


def _return_untaken(turn: Turn, session: Session, reason: str) -> None:
    """Give back what was leased for a session that did not take it."""
    for delivery in turn.ledger.many(Delivery, "inbox", agent=session.agent_id, after="", limit=_MANY):
        if delivery.state is not DeliveryState.LEASED:
            continue
        if session.id in (delivery.leased_by, delivery.session_id):
            holder, rule = delivery.leased_by or "", turn.rules.back_off
            after = nack(delivery, holder, turn.now, problem=reason, retry_after=0, rule=rule)
            flight_state.delivered(turn, delivery, after, DeliveryMove.NACK)


# -- its flights -------------------------------------------------------------------------------------


def _open_flights(turn: Turn, agent_id: str) -> Iterator[Flight]:
    """The open flights to an agent, oldest first, each as it is when its turn comes."""
    found = turn.ledger.many(Flight, "flights_open_to", agent=agent_id, before=LAST, limit=_MANY)
    for flight in reversed(found):
        yield turn.need(Flight, "flight", flight.id)


def _settle_flights(turn: Turn, session: Session, reason: str, layer: Layer) -> None:
    """Fail what it had taken or was to take; what was only sent its way is routed again."""
    agent = turn.need(Agent, "agent", session.agent_id)
    for flight in _open_flights(turn, session.agent_id):
        if flight.session_id == session.id and not _may_wait(turn, flight):
            _fail(turn, flight, session.id, reason, layer)
        elif agent.lifecycle is not Lifecycle.RETIRED:
            _route_again(turn, flight, reason)


def _may_wait(turn: Turn, flight: Flight) -> bool:
    """Whether a flight for exactly this session was not taken, and its asker lets it wait."""
    ask = turn.ledger.get(Ask, flight.ask_id)
    waits = ask is not None and ask.if_unreachable is IfUnreachable.QUEUE
    return waits and flight.state is FlightState.QUEUED


def _fail(turn: Turn, flight: Flight, session_id: str, reason: str, layer: Layer) -> None:
    remedies: tuple[Remedy, ...] = (retry_remedy(flight),)
    problem = SessionFailed(session_id=session_id, layer=layer, reason=reason, remedies=remedies)
    flight_state.finish(turn, flight, fail_flight(flight, error_of(problem), turn.now))


def _route_again(turn: Turn, flight: Flight, reason: str) -> None:
    """Find another way for a flight whose target was to take it through an endpoint that is gone."""
    deliveries = turn.ledger.many(Delivery, "deliveries_of_flight", flight=flight.id)
    pending = [one for one in deliveries if one.state is DeliveryState.PENDING]
    ways = [turn.ledger.get(Endpoint, one.endpoint_id) for one in pending]
    if flight.state is FlightState.QUEUED and any(one is None or one.state in BROKEN for one in ways):
        held_flights.route_again(turn, flight, reason)


# -- an endpoint without a session -------------------------------------------------------------------


def lose_endpoint(turn: Turn, endpoint: Endpoint, reason: str) -> None:
    """Mark an endpoint that fell silent; what waits for its agent finds another way or says for what."""
    routes.move(turn, endpoint, EndpointMove.EXPIRE, reason)
    for flight in _open_flights(turn, endpoint.agent_id):
        _route_again(turn, flight, f"its target fell silent: {reason}")


def stop_endpoint(turn: Turn, endpoint: Endpoint, reason: str) -> Endpoint:
    """Stop an endpoint for good; what its agent took through it has failed, unless it is there otherwise."""
    stopped = routes.move(turn, endpoint, EndpointMove.STOP, reason)
    within = turn.rules.periods.online_within
    if any(is_online(one, turn.now, within) for one in turn.endpoints(endpoint.agent_id)):
        return stopped
    for flight in _open_flights(turn, endpoint.agent_id):
        _route_again(turn, flight, reason)
        if flight.state is not FlightState.QUEUED and flight.endpoint_id == endpoint.id:
            _fail(turn, flight, endpoint.session_id or "unknown", reason, Layer.SESSION)
    return stopped
