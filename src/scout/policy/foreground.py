"""Where something goes: how an agent is reached, which one of a user is in front, which chat is behind it."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from scout.base.record import Record
from scout.base.refusal import Candidate, Refused, Remedy
from scout.base.time import Time
from scout.identity.path import AgentPath, Kind
from scout.model.agent import Agent, Lifecycle, WakePolicy
from scout.model.endpoint import Endpoint, is_online, wake_policy_of
from scout.model.request_problem import NotFound
from scout.model.target_problem import RetiredTarget, TargetOffline, UnknownTarget
from scout.model.user import ConnectorKey, ConnectorTarget, KeyState, target_of
from scout.policy.limits import Periods

__all__ = [
    "DIRECT",
    "FOREGROUND",
    "Action",
    "Foreground",
    "Outlet",
    "Reach",
    "check_reach",
    "connector_target",
    "is_kept_warm",
    "most_recent_foreground",
    "reach_of",
]

DIRECT = "direct"  # the connector that is built in: it needs no key
FOREGROUND = frozenset({Kind.CONNECTOR, Kind.AGENT, Kind.SUBUSER})
_RANK = {Lifecycle.ACTIVE: 0, Lifecycle.SLEEPING: 1}


class Action(StrEnum):
    """Start a turn; tell a live session at its next natural moment; wait for the operator; nothing."""

    WAKE = "wake"
    DELIVER = "deliver"
    HOLD = "hold"
    NOBODY = "nobody"


class Reach(Record):
    """How an agent can be reached. `wakeable`: a session could be started or resumed for it.

    A `person` is reached through an inbox and never started.
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

    @property
    def remedy(self) -> Remedy:
        """The command by which a person brings it up."""
        if self.lifecycle is Lifecycle.RETIRED:
            return Remedy(operation="agent.revive", parameters={"address": self.address})
        harness = {"harness": self.harness} if self.harness else {}
        return Remedy(operation="session.start", parameters={"agent": self.address, **harness})

    def obstacle(self, waking: bool) -> str:
        """Why it cannot be reached, or nothing; a plain message only needs somebody to read it one day."""
        if self.lifecycle is Lifecycle.RETIRED:
            return "it is retired"
        if waking and not (self.live or self.person or self.wakeable):
            return self.why_not or "it cannot be woken"
        return ""

    def action(self, waking: bool) -> Action:
        """What it takes to reach it; a manual agent without a live session is started by a person."""
        if not waking or self.person:
            return Action.DELIVER
        manual = self.policy is WakePolicy.MANUAL and not self.live
        return Action.HOLD if manual else Action.WAKE


class Foreground(Record):
    """The agent in front (None: there is none), and who was passed over and why."""

    agent_id: str | None
    rule: str
    considered: tuple[str, ...] = ()
    passed_over: dict[str, str] = {}


class Outlet(Record):
    """Where a reply leaves Scout, through which key, by which rule."""

    target: ConnectorTarget
    key_id: str | None = None
    rule: str
    considered: tuple[str, ...] = ()


def reach_of(
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
    """An agent's reach from its records; whether a harness could run it is not in them."""
    online = [one for one in endpoints if is_online(one, now, periods.online_within)]
    latest = max(online or endpoints, key=lambda one: (one.last_seen or 0, one.id), default=None)
    return Reach(
        agent_id=agent.id,
        address=address,
        lifecycle=agent.lifecycle,
        policy=wake_policy_of(agent, latest),
        live=bool(online),
        wakeable=wakeable,
        person=person,
        harness=latest.harness if latest else agent.config.harness,
        last_seen=latest.last_seen if latest else None,
        why_not=why_not,
    )


def check_reach(reach: Reach) -> Action:
    """How an ask gets to its target, or the refusal of one that nothing can run."""
    if reach.lifecycle is Lifecycle.RETIRED:
        gone = RetiredTarget(address=reach.address, agent_id=reach.agent_id, remedies=(reach.remedy,))
        raise Refused(gone)
    obstacle = reach.obstacle(waking=True)
    if obstacle:
        queue = Remedy(operation="ask", parameters={"to": reach.address, "ifUnreachable": "queue"})
        remedies = (reach.remedy, queue)
        away = TargetOffline(
            address=reach.address, last_seen=reach.last_seen, reason=obstacle, remedies=remedies
        )
        raise Refused(away)
    return reach.action(waking=True)


def is_kept_warm(reach: Reach) -> bool:
    """Whether a session is to be started although nothing waits for it."""
    cold = not reach.live and not reach.person
    return reach.policy is WakePolicy.KEEP_WARM and cold and not reach.obstacle(waking=True)


def most_recent_foreground(agents: Iterable[Agent]) -> Foreground:
    """Where a background agent's message to its user goes: active before sleeping, then latest activity."""
    passed_over: dict[str, str] = {}
    ranked: list[tuple[int, int, str]] = []
    for agent in agents:
        if agent.kind not in FOREGROUND:
            passed_over[agent.id] = f"a {agent.kind} agent is in the background"
        elif agent.lifecycle not in _RANK:
            passed_over[agent.id] = f"it is {agent.lifecycle}"
        else:
            ranked.append((_RANK[agent.lifecycle], -(agent.last_active_at or 0), agent.id))
    ranked.sort()
    considered = tuple(agent_id for _, _, agent_id in ranked)
    rule = "most recent foreground" if ranked else "no foreground agent"
    first = considered[0] if considered else None
    return Foreground(agent_id=first, rule=rule, considered=considered, passed_over=passed_over)


def connector_target(path: AgentPath, keys: Iterable[ConnectorKey], last_key_id: str | None = None) -> Outlet:
    """`/<u>/telegram` → where a reply goes; of several keys the one that last spoke in the conversation."""
    connector, user = path.connector, path.user
    if connector is None or user is None:
        reason = f"a {path.kind} agent has no chat behind it"
        raise Refused(UnknownTarget(address=str(path), reason=reason, remedies=(_keys(user),)))
    if connector == DIRECT:
        return Outlet(target=ConnectorTarget(connector=DIRECT, target_id=user), rule="built in")
    mine = [key for key in keys if (key.user, key.connector) == (user, connector)]
    usable = [key for key in mine if key.state is KeyState.ACTIVE]
    spoke = [key for key in usable if key.id == last_key_id]
    if not spoke and len(usable) != 1:
        raise Refused(_no_key(path, connector, usable))
    key = (spoke or usable)[0]
    rule = "last spoke in this conversation" if spoke else "only key"
    considered = tuple(one.id for one in usable)
    return Outlet(target=target_of(key), key_id=key.id, rule=rule, considered=considered)


def _no_key(path: AgentPath, connector: str, usable: Sequence[ConnectorKey]) -> NotFound:
    which = f"{connector} key that spoke in this conversation" if usable else f"{connector} key"
    found = tuple(Candidate(address=key.id, why=f"{connector} key of {path.user}") for key in usable)
    link = Remedy(operation="user.link", parameters={"user": path.user, "connector": connector})
    remedies = (_keys(path.user),) if usable else (link,)
    return NotFound(noun=which, id=str(path), candidates=found, remedies=remedies)


def _keys(user: str | None) -> Remedy:
    return Remedy(operation="user.keys", parameters={"user": user} if user else {}, why="the keys there are")
