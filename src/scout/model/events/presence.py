"""Events of who is there: agents, their reachability, endpoints, sessions."""

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
    """An agent exists from here on, under these spellings."""


class AgentUpdated(AgentEvent, tag="collab.agent.updated"):
    """Its config, role or folder changed, or it took a child's index."""


class AgentSleeping(AgentEvent, tag="collab.agent.sleeping"):
    """It owes nothing and was idle for its time; its sessions are let go."""


class AgentWoken(AgentEvent, tag="collab.agent.woken"):
    """It sleeps no longer."""


class AgentRetired(AgentEvent, tag="collab.agent.retired"):
    """Its name is a tombstone from here on."""


class AgentRevived(AgentEvent, tag="collab.agent.revived"):
    """It was brought back on purpose."""


AGENT_EVENTS: Mapping[AgentMove, type[AgentEvent]] = {
    AgentMove.SLEEP: AgentSleeping,
    AgentMove.WAKE: AgentWoken,
    AgentMove.RETIRE: AgentRetired,
    AgentMove.REVIVE: AgentRevived,
}


class Reached(Record, omit_defaults=True):
    """A look at one agent's reachability, through which endpoint and why it changed."""

    agent_id: str
    endpoint_id: str | None = None
    last_seen: Time | None = None
    reason: str = ""


class ReachEvent(Event):
    payload: Reached


class AgentHeartbeat(ReachEvent, tag="collab.agent.heartbeat"):
    """A sign of life, at most every ten minutes per endpoint."""


class AgentOnline(ReachEvent, tag="collab.agent.online"):
    """It can be reached again."""


class AgentOffline(ReachEvent, tag="collab.agent.offline"):
    """It can no longer be reached."""


class EndpointEvent(Event):
    payload: Changed[Endpoint]


class EndpointRegistered(EndpointEvent, tag="collab.endpoint.registered"):
    """A new way to an agent."""


class EndpointUpdated(EndpointEvent, tag="collab.endpoint.updated"):
    """Its preference, model or policies changed, or it got its session."""


class EndpointAttaching(EndpointEvent, tag="collab.endpoint.attaching"):
    """Scout looks for what runs there."""


class EndpointWaking(EndpointEvent, tag="collab.endpoint.waking"):
    """Scout starts a program for it."""


class EndpointReady(EndpointEvent, tag="collab.endpoint.ready"):
    """It answers and is free."""


class EndpointClaimed(EndpointEvent, tag="collab.endpoint.claimed"):
    """It works."""


class EndpointReleased(EndpointEvent, tag="collab.endpoint.released"):
    """It is free again."""


class EndpointLost(EndpointEvent, tag="collab.endpoint.lost"):
    """It does not answer; what it did is kept."""


class EndpointFailed(EndpointEvent, tag="collab.endpoint.failed"):
    """It broke; the reason and what it did are kept."""


class EndpointStale(EndpointEvent, tag="collab.endpoint.stale"):
    """No sign of life for too long."""


class EndpointStopped(EndpointEvent, tag="collab.endpoint.stopped"):
    """It was ended on purpose, for good."""


class EndpointRecovered(EndpointEvent, tag="collab.endpoint.recovered"):
    """Scout tries to get it back."""


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
    """Its harness answers."""


class SessionUpdated(SessionEvent, tag="collab.session.updated"):
    """Its class, process or model was seen anew."""


class SessionEnded(SessionEvent, tag="collab.session.ended"):
    """Nothing runs in it any more; the reason is kept."""


class SessionLost(SessionEvent, tag="collab.session.lost"):
    """It is out of sight."""


class SessionResumed(SessionEvent, tag="collab.session.resumed"):
    """It is taken up again."""


SESSION_EVENTS: Mapping[SessionMove, type[SessionEvent]] = {
    SessionMove.READY: SessionReady,
    SessionMove.END: SessionEnded,
    SessionMove.LOSE: SessionLost,
    SessionMove.RESUME: SessionResumed,
}
