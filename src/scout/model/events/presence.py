"""Events of agents, their reachability, endpoints and sessions."""

from collections.abc import Mapping

from scout.base.record import Record
from scout.base.time import Time
from scout.model.agent import Agent, AgentMove
from scout.model.endpoint import Endpoint, EndpointMove
from scout.model.events.envelope import Changed, Event
from scout.model.session import Session, SessionMove


class AgentEvent(Event):
    payload: Changed[Agent]


class AgentRegistered(AgentEvent, tag="collab.agent.registered"):
    """An agent was registered with these names."""


class AgentUpdated(AgentEvent, tag="collab.agent.updated"):
    """The agent's config, role or folder changed, or it assigned an index to a child."""


class AgentPublished(AgentEvent, tag="collab.agent.published"):
    """Agents of other systems reach the agent by A2A."""


class AgentUnpublished(AgentEvent, tag="collab.agent.unpublished"):
    """Agents of other systems no longer reach the agent."""


class AgentSleeping(AgentEvent, tag="collab.agent.sleeping"):
    """The agent has no open work and reached its idle timeout; its sessions are released."""


class AgentWoken(AgentEvent, tag="collab.agent.woken"):
    """The agent is no longer asleep."""


class AgentRetired(AgentEvent, tag="collab.agent.retired"):
    """The agent was retired; its name is now a tombstone."""


class AgentRevived(AgentEvent, tag="collab.agent.revived"):
    """A retired agent was brought back."""


class AgentMoved(AgentEvent, tag="collab.agent.moved"):
    """The agent left for another node, arrived from one, or is back because that node refused it."""


AGENT_EVENTS: Mapping[AgentMove, type[AgentEvent]] = {
    AgentMove.SLEEP: AgentSleeping,
    AgentMove.WAKE: AgentWoken,
    AgentMove.RETIRE: AgentRetired,
    AgentMove.REVIVE: AgentRevived,
}


class Reached(Record, omit_defaults=True):
    """The reachability of one agent: through which endpoint, and why it changed."""

    agent_id: str
    endpoint_id: str | None = None
    last_seen: Time | None = None
    reason: str = ""


class ReachEvent(Event):
    payload: Reached


class AgentHeartbeat(ReachEvent, tag="collab.agent.heartbeat"):
    """A heartbeat, recorded at most every ten minutes per endpoint."""


class AgentOnline(ReachEvent, tag="collab.agent.online"):
    """The agent is reachable again."""


class AgentOffline(ReachEvent, tag="collab.agent.offline"):
    """The agent is no longer reachable."""


class EndpointEvent(Event):
    payload: Changed[Endpoint]


class EndpointRegistered(EndpointEvent, tag="collab.endpoint.registered"):
    """A new endpoint of an agent was registered."""


class EndpointUpdated(EndpointEvent, tag="collab.endpoint.updated"):
    """The endpoint's preference, model or policies changed, or its session was set."""


class EndpointAttaching(EndpointEvent, tag="collab.endpoint.attaching"):
    """Scout is looking for a running program to attach to."""


class EndpointWaking(EndpointEvent, tag="collab.endpoint.waking"):
    """Scout is starting a program for the endpoint."""


class EndpointReady(EndpointEvent, tag="collab.endpoint.ready"):
    """The endpoint responds and is idle."""


class EndpointClaimed(EndpointEvent, tag="collab.endpoint.claimed"):
    """The endpoint is working."""


class EndpointReleased(EndpointEvent, tag="collab.endpoint.released"):
    """The endpoint is idle again."""


class EndpointLost(EndpointEvent, tag="collab.endpoint.lost"):
    """The endpoint does not respond; its previous state is kept."""


class EndpointFailed(EndpointEvent, tag="collab.endpoint.failed"):
    """The endpoint failed; the reason and its previous state are kept."""


class EndpointStale(EndpointEvent, tag="collab.endpoint.stale"):
    """The endpoint sent no heartbeat for too long."""


class EndpointStopped(EndpointEvent, tag="collab.endpoint.stopped"):
    """The endpoint was stopped permanently."""


class EndpointRecovered(EndpointEvent, tag="collab.endpoint.recovered"):
    """Scout is trying to recover the endpoint."""


ENDPOINT_EVENTS: Mapping[EndpointMove, type[EndpointEvent]] = {
    EndpointMove.ATTACH: EndpointAttaching,
    EndpointMove.WAKE: EndpointWaking,
    EndpointMove.READY: EndpointReady,
    EndpointMove.CLAIM: EndpointClaimed,
    EndpointMove.RELEASE: EndpointReleased,
    EndpointMove.LOSE: EndpointLost,
    EndpointMove.FAIL: EndpointFailed,
    EndpointMove.EXPIRE: EndpointStale,
    EndpointMove.STOP: EndpointStopped,
    EndpointMove.RECOVER: EndpointRecovered,
}


class SessionEvent(Event):
    payload: Changed[Session]


class SessionStarted(SessionEvent, tag="collab.session.started"):
    """A session was started, attached or enrolled."""


class SessionReady(SessionEvent, tag="collab.session.ready"):
    """The session's harness responds."""


class SessionUpdated(SessionEvent, tag="collab.session.updated"):
    """The session's class, process, model, terminal or live turn changed."""


class SessionEnded(SessionEvent, tag="collab.session.ended"):
    """The session ended; the reason is kept."""


class SessionLost(SessionEvent, tag="collab.session.lost"):
    """Scout lost contact with the session."""


class SessionResumed(SessionEvent, tag="collab.session.resumed"):
    """The session is being resumed."""


SESSION_EVENTS: Mapping[SessionMove, type[SessionEvent]] = {
    SessionMove.READY: SessionReady,
    SessionMove.END: SessionEnded,
    SessionMove.LOSE: SessionLost,
    SessionMove.RESUME: SessionResumed,
}
