"""An agent's own session: woken so that it is there, interrupted in what it does."""

from scout.base.refusal import Refused, Remedy
from scout.broker.delivery import pause, preparation, recovery, session_records, turn_record
from scout.broker.delivery.opening import Opening
from scout.broker.effects import flight_state
from scout.broker.operations import agents
from scout.broker.routing import routes
from scout.broker.transaction.transaction import Turn
from scout.identity.grammar import parse_handle
from scout.identity.lexer import lex
from scout.identity.name import HandleName
from scout.model.agent import Agent, Lifecycle
from scout.model.delivery import Delivery
from scout.model.endpoint import Endpoint, EndpointState, is_online
from scout.model.flight import FLIGHT, Flight, cancel_flight
from scout.model.problems.session import Layer, WakeFailed
from scout.model.session import Session
from scout.policy.choose import Demand
from scout.policy.permit import Deed
from scout.policy.reach import check_reach
from scout.ports import Failed
from scout.protocol.sessions import Interrupt, Interrupted, Wake, Woken

__all__ = ["Unnamed", "interrupt", "wake"]

Unnamed = tuple[str, str, str]  # a turn that has no flight: its harness, session and run


def wake(turn: Turn, request: Wake) -> tuple[Woken, Opening | None]:
    """The session that is live, perhaps with a program that rests; or one that has yet to be started."""
    agent = agents.find(turn, request.address, Deed.CONTROL)
    if agent.lifecycle is Lifecycle.RETIRED:
        raise Refused(routes.retired(turn, agent))
    wish = Demand(harness=_harness_in(request.address), caller=turn.caller)
    routes.check_harness(turn, agent, wish)
    choice = routes.choice_for(turn, agent, wish)
    endpoint = choice.endpoint
    if endpoint is not None and is_online(endpoint, turn.now, turn.rules.periods.online_within):
        return _woken(turn, agent, endpoint), _resting(turn, agent, endpoint)
    pause.check_not_paused(turn)
    check_reach(routes.route_of(turn, agent, choice, harness=wish.harness, strict=True).reach)
    opening = preparation.open_session(turn, agent, wish)
    if not isinstance(opening, Opening):
        raise Refused(_cannot(turn, agent, opening))
    return _woken(turn, agent, turn.need(Endpoint, "endpoint", opening.endpoint_id)), opening


def _harness_in(address: str) -> str | None:
    """The harness that an address names, as in `@arc#codex`."""
    return parse_handle(address).harness if isinstance(lex(address), HandleName) else None


def _woken(turn: Turn, agent: Agent, endpoint: Endpoint) -> Woken:
    return Woken(
        outcome="already live",
        address=turn.address(agent.id),
        session_id=endpoint.session_id,
        harness=endpoint.harness,
    )


def _resting(turn: Turn, agent: Agent, endpoint: Endpoint) -> Opening | None:
    """What would start its program, where one goes on between turns and nobody else has the session."""
    harness = turn.world.harnesses.get(endpoint.harness or "")
    session = turn.ledger.get(Session, endpoint.session_id)
    if not endpoint.held or harness is None or session is None or session.terminal is not None:
        return None
    if endpoint.state is not EndpointState.IDLE or not harness.capabilities.keeps_process:
        return None
    pause.check_not_paused(turn)
    opening = session_records.opening_of(turn, agent, endpoint)
    opening.fresh = False
    return opening


def _cannot(turn: Turn, agent: Agent, problem: Failed | None) -> WakeFailed:
    address = turn.address(agent.id)
    look = Remedy(operation="show", parameters={"address": address}, why="how it is reached")
    failed = problem or Failed(layer=Layer.SESSION, reason="its session is being started")
    return WakeFailed(
        target=address, attempts=1, layer=failed.layer, reason=failed.reason, log=failed.log, remedies=(look,)
    )


def interrupt(turn: Turn, request: Interrupt) -> tuple[Interrupted, list[Unnamed]]:
    """Cancel the flights of the turns that an agent is at; with the turns that have none."""
    agent = agents.find(turn, request.address, Deed.CONTROL)
    who = turn.address(turn.sender)
    reason = f"interrupted by {who}{f': {request.reason}' if request.reason else ''}"
    flights: list[str] = []
    others: list[Unnamed] = []
    for endpoint, delivery in _at_work(turn, agent):
        flight = turn.ledger.get(Flight, delivery.flight_id)
        if flight is not None and flight.state not in FLIGHT.terminal:
            flight_state.finish(turn, flight, cancel_flight(flight, reason, turn.now))
            flights.append(flight.id)
        else:
            others.append((endpoint.harness or "", endpoint.session_id or "", turn_record.run_of(delivery)))
    address = turn.address(agent.id)
    told = reason if flights or others else "nothing was under way"
    return Interrupted(
        address=address, interrupted=bool(flights), flights=tuple(flights), reason=told
    ), others


def _at_work(turn: Turn, agent: Agent) -> list[tuple[Endpoint, Delivery]]:
    """The turns under way in sessions that Scout holds."""
    working = [one for one in turn.endpoints(agent.id) if one.state is EndpointState.WORKING and one.held]
    found = [(one, recovery.taken_by(turn.ledger, one)) for one in working]
    return [(one, delivery) for one, delivery in found if delivery is not None]
