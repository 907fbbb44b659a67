"""Whether and how an agent can be reached now."""

from collections.abc import Sequence
from enum import StrEnum

from scout.base.record import Record
from scout.base.refusal import PLACEHOLDER, Refused, Remedy
from scout.base.time import Time
from scout.model.agent import Agent, Lifecycle, WakePolicy
from scout.model.endpoint import Endpoint, EndpointState, get_wake_policy, is_online
from scout.model.problems.target import RetiredTarget, TargetOffline
from scout.policy.limits import Periods

# An idle or working endpoint without a heartbeat counts as unreachable.
_SILENT = frozenset({EndpointState.UNREACHABLE, EndpointState.IDLE, EndpointState.WORKING})


class WakeAction(StrEnum):
    """Start a turn; deliver to a live session when it is ready; hold for the operator; do nothing."""

    WAKE = "wake"
    DELIVER = "deliver"
    HOLD = "hold"
    NOBODY = "nobody"


class Reach(Record, omit_defaults=True):
    """The reachability of an agent. `wakeable`: a session can be started or resumed for it.

    A `person` is reached through an inbox and never started. `unreachable`: it has an endpoint that does
    not respond.
    """

    agent_id: str
    address: str
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    policy: WakePolicy = WakePolicy.ON_DEMAND
    live: bool = False
    wakeable: bool = True
    person: bool = False
    harness: str | None = None
    last_seen: Time | None = None
    why_not: str = ""
    unreachable: bool = False

    @property
    def remedy(self) -> Remedy:
        """The command with which a person starts or revives it."""
        if self.lifecycle is Lifecycle.RETIRED:
            return Remedy(operation="agent.revive", parameters={"address": self.address})
        harness = {"harness": self.harness} if self.harness else {}
        return Remedy(operation="session.start", parameters={"agent": self.address, **harness})

    def find_obstacle(self, waking: bool) -> str:
        """Return why it cannot be reached, or an empty text. A plain message can wait until it is read."""
        if self.lifecycle is Lifecycle.RETIRED:
            return "it is retired"
        if waking and not (self.live or self.person or self.wakeable):
            return self.why_not or "it cannot be woken"
        return ""

    def choose_action(self, waking: bool) -> WakeAction:
        """Return the action that reaches it; a person starts a manual agent that has no live session."""
        if not waking or self.person:
            return WakeAction.DELIVER
        manual = self.policy is WakePolicy.MANUAL and not self.live
        return WakeAction.HOLD if manual else WakeAction.WAKE


def build_reach(
    agent: Agent,
    address: str,
    endpoints: Sequence[Endpoint],
    now: Time,
    periods: Periods,
    *,
    wakeable: bool = True,
    person: bool = False,
    why_not: str = "",
) -> Reach:
    """Return an agent's reach from its records. `wakeable` is passed in because records do not tell."""
    online = [one for one in endpoints if is_online(one, now, periods.online_within)]
    latest = max(online or endpoints, key=lambda one: (one.last_seen or 0, one.id), default=None)
    return Reach(
        agent_id=agent.id,
        address=address,
        lifecycle=agent.lifecycle,
        policy=get_wake_policy(agent, latest),
        live=bool(online),
        wakeable=wakeable,
        person=person,
        harness=latest.harness if latest else agent.config.harness,
        last_seen=latest.last_seen if latest else None,
        why_not=why_not,
        unreachable=not online and any(one.state in _SILENT for one in endpoints),
    )


def check_reach(reach: Reach) -> WakeAction:
    """Return how an ask reaches its target; refuse a target that cannot run."""
    if reach.lifecycle is Lifecycle.RETIRED:
        gone = RetiredTarget(address=reach.address, agent_id=reach.agent_id, remedies=(reach.remedy,))
        raise Refused(gone)
    obstacle = reach.find_obstacle(waking=True)
    if obstacle:
        wish = {"to": reach.address, "body": PLACEHOLDER, "ifUnreachable": "queue"}
        look = Remedy(operation="show", parameters={"address": reach.address}, why="show its endpoints")
        queue = Remedy(operation="ask", parameters=wish, why="queue it for up to 24 hours")
        remedies = (queue, look) if reach.unreachable else (reach.remedy, queue)
        away = TargetOffline(
            address=reach.address,
            last_seen=reach.last_seen,
            reason=_describe_silence(reach) or obstacle,
            unreachable=reach.unreachable,
            remedies=remedies,
        )
        raise Refused(away)
    return reach.choose_action(waking=True)


def _describe_silence(reach: Reach) -> str:
    """Return the reason shown for an agent whose endpoint does not respond."""
    return "its session does not respond; it may reconnect by itself" if reach.unreachable else ""


def is_kept_warm(reach: Reach) -> bool:
    """Whether to start a session although no work is waiting."""
    cold = not reach.live and not reach.person
    return reach.policy is WakePolicy.KEEP_WARM and cold and not reach.find_obstacle(waking=True)
