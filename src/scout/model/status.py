"""The status of an agent in one word: derived from its records, never stored."""

from collections.abc import Iterable
from enum import StrEnum

from scout.base.time import Time
from scout.model.agent import Agent, Lifecycle
from scout.model.attention import Attention, is_blocking
from scout.model.endpoint import Endpoint, EndpointState, is_online
from scout.model.flight import Flight, FlightPhase, FlightState


class AgentStatus(StrEnum):
    ONLINE = "online"
    WAKING = "waking"
    WAITING = "waiting"
    NEEDS_ATTENTION = "needs_attention"
    UNREACHABLE = "unreachable"
    OFFLINE = "offline"


_STARTING = frozenset({EndpointState.ATTACHING, EndpointState.WAKING})
# An idle or working endpoint without a heartbeat counts as unreachable.
_SILENT = frozenset({EndpointState.UNREACHABLE, EndpointState.IDLE, EndpointState.WORKING})


def get_status(
    agent: Agent,
    endpoints: Iterable[Endpoint],
    now: Time,
    *,
    flights: Iterable[Flight] = (),
    attention: Iterable[Attention] = (),
    within: float = 90,
) -> AgentStatus:
    """Return the status: blockers come first, then activity, then reachability."""
    if agent.lifecycle is Lifecycle.RETIRED:
        return AgentStatus.OFFLINE
    if any(is_blocking(item) for item in attention):
        return AgentStatus.NEEDS_ATTENTION
    reached, flown = tuple(endpoints), tuple(flights)
    online = [endpoint for endpoint in reached if is_online(endpoint, now, within)]
    working = any(endpoint.state is EndpointState.WORKING for endpoint in online)
    if not working and any(flight.state is FlightState.WAITING for flight in flown):
        return AgentStatus.WAITING
    if online:
        return AgentStatus.ONLINE
    return _get_away_status({endpoint.state for endpoint in reached}, {flight.phase for flight in flown})


def _get_away_status(states: set[EndpointState], phases: set[FlightPhase]) -> AgentStatus:
    if states & _STARTING or FlightPhase.WAKING in phases:
        return AgentStatus.WAKING
    return AgentStatus.UNREACHABLE if states & _SILENT else AgentStatus.OFFLINE
