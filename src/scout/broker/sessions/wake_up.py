"""Wake an agent's session, and interrupt its turns."""

from scout.base.refusal import Refused, Remedy
from scout.broker.delivery import pause, preparation, recovery, session_records, turn_record
from scout.broker.delivery.session_records import SessionOpening
from scout.broker.effects import flight_state
from scout.broker.operations import agents
from scout.broker.routing import routes
from scout.broker.transaction.transaction import Transaction
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
from scout.policy.wake import check_reach
from scout.ports import Failed
from scout.protocol.sessions import Interrupt, Interrupted, Wake, Woken

Unnamed = tuple[str, str, str]  # a turn without a flight: its harness, session and run


def wake(tx: Transaction, request: Wake) -> tuple[Woken, SessionOpening | None]:
    """Return the agent's live session, with an opening if its program or session must be started."""
    agent = agents.find(tx, request.address, Deed.CONTROL)
    if agent.lifecycle is Lifecycle.RETIRED:
        raise Refused(routes.build_retired_refusal(tx, agent))
    wish = Demand(harness=_read_harness(request.address), caller=tx.caller)
    routes.check_harness(tx, agent, wish)
    choice = routes.choose_endpoint(tx, agent, wish)
    endpoint = choice.endpoint
    if endpoint is not None and is_online(endpoint, tx.now, tx.rules.periods.online_within):
        return _build_already_live(tx, agent, endpoint), _build_restart(tx, agent, endpoint)
    pause.check_not_paused(tx)
    check_reach(routes.choose_route(tx, agent, choice, harness=wish.harness, strict=True).reach)
    opening = preparation.open_session(tx, agent, wish)
    if not isinstance(opening, SessionOpening):
        raise Refused(_build_cannot_wake(tx, agent, opening))
    return _build_already_live(tx, agent, tx.need(Endpoint, "endpoint", opening.endpoint_id)), opening


def _read_harness(address: str) -> str | None:
    """Return the harness in an address such as `@arc#codex`."""
    return parse_handle(address).harness if isinstance(lex(address), HandleName) else None


def _build_already_live(tx: Transaction, agent: Agent, endpoint: Endpoint) -> Woken:
    return Woken(
        outcome="already live",
        address=tx.address(agent.id),
        session_id=endpoint.session_id,
        harness=endpoint.harness,
    )


def _build_restart(tx: Transaction, agent: Agent, endpoint: Endpoint) -> SessionOpening | None:
    """Return the opening that restarts an idle session's program, if its harness keeps one between turns."""
    harness = tx.services.harnesses.get(endpoint.harness or "")
    session = tx.get(Session, endpoint.session_id)
    if not endpoint.held or harness is None or session is None or session.terminal is not None:
        return None
    if endpoint.state is not EndpointState.IDLE or not harness.capabilities.keeps_process:
        return None
    pause.check_not_paused(tx)
    opening = session_records.build_opening(tx, agent, endpoint)
    opening.fresh = False
    return opening


def _build_cannot_wake(tx: Transaction, agent: Agent, problem: Failed | None) -> WakeFailed:
    address = tx.address(agent.id)
    look = Remedy(operation="show", parameters={"address": address}, why="show how it is reached")
    failed = problem or Failed(layer=Layer.SESSION, reason="its session is being started")
    return WakeFailed(
        target=address, attempts=1, layer=failed.layer, reason=failed.reason, log=failed.log, remedies=(look,)
    )


def interrupt(tx: Transaction, request: Interrupt) -> tuple[Interrupted, list[Unnamed]]:
    """Cancel the flights of an agent's running turns; also return the turns without a flight."""
    agent = agents.find(tx, request.address, Deed.CONTROL)
    who = tx.address(tx.sender)
    reason = f"interrupted by {who}{f': {request.reason}' if request.reason else ''}"
    flights: list[str] = []
    others: list[Unnamed] = []
    for endpoint, delivery in _find_running_turns(tx, agent):
        flight = tx.get(Flight, delivery.flight_id)
        if flight is not None and flight.state not in FLIGHT.terminal:
            flight_state.finish_flight(tx, flight, cancel_flight(flight, reason, tx.now))
            flights.append(flight.id)
        else:
            others.append(
                (endpoint.harness or "", endpoint.session_id or "", turn_record.build_run_id(delivery))
            )
    address = tx.address(agent.id)
    told = reason if flights or others else "no turn was running"
    return Interrupted(
        address=address, interrupted=bool(flights), flights=tuple(flights), reason=told
    ), others


def _find_running_turns(tx: Transaction, agent: Agent) -> list[tuple[Endpoint, Delivery]]:
    """Return the running turns in sessions that Scout holds."""
    working = [one for one in tx.endpoints(agent.id) if one.state is EndpointState.WORKING and one.held]
    found = [(one, recovery.find_delivery_of_endpoint(tx.ledger, one)) for one in working]
    return [(one, delivery) for one, delivery in found if delivery is not None]
