"""Where a message to a person goes: the user's foreground agent, and the chat behind it."""

from collections.abc import Iterable, Sequence

from scout.base.record import Record
from scout.base.refusal import Candidate, Refused, Remedy
from scout.identity.path import AgentPath, Kind
from scout.model.agent import Agent, Lifecycle
from scout.model.conversation import MessageKind
from scout.model.people.user import ConnectorKey, ConnectorTarget, KeyState, get_target
from scout.model.problems.request import NotFound
from scout.model.problems.target import UnknownTarget

DIRECT = "direct"  # the built-in connector, which needs no key
FOREGROUND = frozenset({Kind.CONNECTOR, Kind.AGENT, Kind.SUBUSER})
# Questions are attention items, which nobody but the user and the asker reads.
_PASSED_ON = frozenset({MessageKind.CHAT, MessageKind.STATUS, MessageKind.FINAL})
_RANK = {Lifecycle.ACTIVE: 0, Lifecycle.SLEEPING: 1}


class Foreground(Record):
    """The foreground agent (None if there is none), and why other agents were passed over."""

    agent_id: str | None
    rule: str
    considered: tuple[str, ...] = ()
    passed_over: dict[str, str] = {}


class Outlet(Record):
    """The chat a reply is sent to, the connector key it uses, and the rule that decided."""

    target: ConnectorTarget
    key_id: str | None = None
    rule: str
    considered: tuple[str, ...] = ()


def is_for_foreground(kind: MessageKind, sender: Agent, origin: Agent, person: Agent) -> bool:
    """Whether a message to a person also goes to the person's foreground agent.

    `origin`: the agent to which the message is an answer, else its sender. It has to be in the background,
    and of the same user. Scout's own notices stay in the inbox: one about a failing chat must not go there.
    """
    background = origin.kind not in FOREGROUND
    ours = origin.owner == person.owner
    return kind in _PASSED_ON and background and ours and sender.id != person.id


def choose_foreground(agents: Iterable[Agent]) -> Foreground:
    """Choose the agent for a message to its user: active before sleeping, then latest activity."""
    passed_over: dict[str, str] = {}
    ranked: list[tuple[int, int, str]] = []
    for agent in agents:
        if agent.is_person:
            passed_over[agent.id] = "it is the user in person"
        elif agent.kind not in FOREGROUND:
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


def choose_connector_target(
    path: AgentPath, keys: Iterable[ConnectorKey], last_key_id: str | None = None
) -> Outlet:
    """Return the chat behind `/<u>/telegram`. Of several keys, the last one used in the conversation wins."""
    connector, user = path.connector, path.user
    if connector is None or user is None:
        reason = f"a {path.kind} agent has no chat behind it"
        raise Refused(UnknownTarget(address=str(path), reason=reason, remedies=(_suggest_keys(user),)))
    if connector == DIRECT:
        return Outlet(target=ConnectorTarget(connector=DIRECT, target_id=user), rule="built in")
    mine = [key for key in keys if (key.user, key.connector) == (user, connector)]
    usable = [key for key in mine if key.state is KeyState.ACTIVE]
    spoke = [key for key in usable if key.id == last_key_id]
    if not spoke and len(usable) != 1:
        raise Refused(_build_refusal(path, connector, usable))
    key = (spoke or usable)[0]
    rule = "last spoke in this conversation" if spoke else "only key"
    considered = tuple(one.id for one in usable)
    return Outlet(target=get_target(key), key_id=key.id, rule=rule, considered=considered)


def _build_refusal(path: AgentPath, connector: str, usable: Sequence[ConnectorKey]) -> NotFound:
    which = f"{connector} account of {path.user}"
    which = f"{which} that spoke in this conversation" if usable else which
    found = tuple(Candidate(address=key.id, why=f"{connector} {key.label}".rstrip()) for key in usable)
    link = Remedy(operation="user.link", parameters={"user": path.user, "connector": connector})
    remedies = (_suggest_keys(path.user),) if usable else (link,)
    return NotFound(noun=which, id="only", candidates=found, remedies=remedies)


def _suggest_keys(user: str | None) -> Remedy:
    return Remedy(operation="user.keys", parameters={"user": user} if user else {}, why="list the accounts")
