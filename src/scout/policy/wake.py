"""Whether an agent can be reached now, and the wake decision: at most one agent, and the reason.

This module wakes nothing itself.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from scout.base.codec import decode, encode
from scout.base.record import Record
from scout.base.refusal import PLACEHOLDER, Refused, Remedy, get_code
from scout.base.time import Time
from scout.model.agent import Agent, Lifecycle, WakePolicy
from scout.model.conversation import ConversationKind, MessageKind, SoftMentions
from scout.model.endpoint import Endpoint, EndpointState, get_wake_policy, is_online
from scout.model.events.envelope import PassedOver, WakeFact
from scout.model.problems.session import WakeBudget
from scout.model.problems.target import RetiredTarget, TargetOffline
from scout.policy.directory import Party
from scout.policy.limits import Limits, Periods, Routing, check_wake_budget
from scout.policy.obligation import Obligation

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


# -- the decision ------------------------------------------------------------------------------------


class Cause(StrEnum):
    """The cause of a decision. A plain `send` starts no turn; any other cause may."""

    SEND = "send"
    WAKE = "wake"
    ASK = "ask"
    QUESTION = "question"
    ANSWER = "answer"
    ASSIGNMENT = "assignment"
    MOVE = "move"
    NUDGE = "nudge"


class Role(StrEnum):
    """Why an agent is considered, in order of consideration; also the rule of the decision."""

    TARGET = "explicit target"
    MENTION = "leading mention"
    SOFT_MENTION = "soft mention"
    DEPENDENCY_OWNER = "dependency owner"
    NEXT_MOVE_OWNER = "next-move owner"
    OWNER = "owner"
    MASTER = "conversation master"
    CHANNEL_OWNER = "channel owner"
    SUGGESTION = "model suggestion"


class WakeContext(Record, omit_defaults=True):
    """The conversation. `others`: the number of participating agents besides the sender."""

    conversation_id: str
    kind: ConversationKind
    quiet: bool = False
    soft_mentions: SoftMentions = SoftMentions.RECORD
    master_id: str | None = None
    channel_owner_id: str | None = None
    others: int = 1


class Occasion(Record, omit_defaults=True):
    """The input of a decision. `suggestion`: the choice of a model-assisted router, if it was asked."""

    cause: Cause
    sender: Party
    kind: MessageKind = MessageKind.CHAT
    follow_up: bool = False
    targets: tuple[Party, ...] = ()
    leading: Party | None = None
    soft: tuple[Party, ...] = ()
    duty: Obligation | None = None
    place: WakeContext | None = None
    suggestion: Party | None = None


class Considered(Record):
    """An agent that was considered; `why_not` is empty for the chosen agent."""

    role: Role
    party: Party
    why_not: str = ""
    unreachable: bool = False

    @property
    def stored(self) -> PassedOver:
        party = self.party
        return PassedOver(
            agent_id=party.agent_id, session_id=party.session_id, role=self.role, why=self.why_not
        )


_DEFAULT_ROUTING = Routing()  # a stored decision leaves it out


class WakeFacts(Record, omit_defaults=True):
    """All facts of the decision: deciding again from them gives the same result."""

    occasion: Occasion
    reaches: tuple[Reach, ...]
    routing: Routing = _DEFAULT_ROUTING


class WakeDecision(Record):
    """At most one holder. `instead_of`: the intended holder, if unreachable; `reason`: why.

    The targets and mentions of the message are kept unchanged in `facts`.
    """

    action: WakeAction
    rule: str
    holder: Party | None = None
    instead_of: Party | None = None
    reason: str = ""
    considered: tuple[Considered, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    facts: WakeFacts

    @property
    def woken(self) -> Party | None:
        """The agent for which a turn is started, if any."""
        return self.holder if self.action is WakeAction.WAKE else None

    @property
    def stored(self) -> WakeFact:
        """The decision as stored in the event's metadata."""
        holder, missed = self.holder, self.instead_of
        # Encode and decode, so that a replay compares equal.
        facts = decode(encode(self.facts), dict[str, Any])
        return WakeFact(
            agent_id=holder.agent_id if holder else None,
            session_id=holder.session_id if holder else None,
            action=self.action,
            rule=self.rule,
            reason=self.reason,
            instead_of=missed.agent_id if missed else None,
            passed_over=tuple(one.stored for one in self.considered if one.why_not),
            facts=facts,
        )


def decide_wake(
    occasion: Occasion, reaches: Mapping[str, Reach], routing: Routing = _DEFAULT_ROUTING
) -> WakeDecision:
    """Choose the agent to wake, notify or hold for the operator, if any. `reaches` is by agent id."""
    silence = _find_silence_rule(occasion)
    considered: list[Considered] = []
    looked_at: dict[str, Reach] = {}
    for role, party in _list_candidates(occasion, reaches, routing):
        reach = reaches.get(party.agent_id)
        if reach is not None:
            looked_at[party.agent_id] = reach
        considered.append(_consider_candidate(role, party, occasion, reach, silence))
        if not considered[-1].why_not:
            break
    routing = _DEFAULT_ROUTING if routing == _DEFAULT_ROUTING else routing
    facts = WakeFacts(occasion=occasion, reaches=tuple(looked_at.values()), routing=routing)
    return _build_decision(considered, silence, looked_at, facts)


def may_suggest(facts: WakeFacts) -> bool:
    """Whether to ask a router: the rules found no agent, and its suggestion would be used."""
    occasion = facts.occasion
    if _find_silence_rule(occasion):
        return False
    decision = decide_wake(occasion, {reach.agent_id: reach for reach in facts.reaches}, facts.routing)
    asked = msgspec.structs.replace(occasion, suggestion=occasion.sender)
    found = decision.holder is not None or decision.instead_of is not None
    return not found and bool(_list_suggested(asked, facts.routing))


def apply_wake_budget(
    decision: WakeDecision, wakes: Sequence[Time], limits: Limits, now: Time, *, name: str = ""
) -> WakeDecision:
    """Return the decision, or hold it for the operator when agents have used up the conversation's wakes."""
    place = decision.facts.occasion.place
    if decision.action is not WakeAction.WAKE or place is None:
        return decision
    try:
        check_wake_budget(place.conversation_id, wakes, limits, now, name=name)
    except Refused as refusal:
        problem = refusal.diagnostic
        held = {"action": WakeAction.HOLD, "rule": problem.code, "reason": problem.message}
        return msgspec.structs.replace(decision, **held, remedies=problem.remedies)
    return decision


def _list_candidates(
    occasion: Occasion, reaches: Mapping[str, Reach], routing: Routing
) -> list[tuple[Role, Party]]:
    found = [
        *_list_explicit(occasion),
        *_list_responsible(occasion, reaches),
        *_list_suggested(occasion, routing),
    ]
    first: dict[Party, Role] = {}
    for role, party in found:
        first.setdefault(party, role)
    return [(role, party) for party, role in first.items()]


def _list_explicit(occasion: Occasion) -> list[tuple[Role, Party]]:
    """Return structured targets, else the leading mention; soft mentions where the channel allows them."""
    named = [(Role.TARGET, party) for party in occasion.targets]
    if not named and occasion.leading is not None:
        named = [(Role.MENTION, occasion.leading)]
    place = occasion.place
    if place is None or place.soft_mentions is not SoftMentions.WAKE:
        return named
    return named + [(Role.SOFT_MENTION, party) for party in occasion.soft]


def _list_responsible(occasion: Occasion, reaches: Mapping[str, Reach]) -> list[tuple[Role, Party]]:
    """Return the next-move owner, then the owners to notify if that agent cannot act."""
    duty, place = occasion.duty, occasion.place
    holders: list[tuple[Role, str | None]] = []
    if place is not None:
        holders = [(Role.MASTER, place.master_id), (Role.CHANNEL_OWNER, place.channel_owner_id)]
    if duty is not None:
        next_move = (Role.DEPENDENCY_OWNER if duty.waiting else Role.NEXT_MOVE_OWNER, duty.next_move_owner_id)
        holders = [next_move, (Role.OWNER, duty.owner_id), *holders]
        if duty.settled:
            holders = []
        elif duty.waiting and not _is_unreachable(duty.next_move_owner_id, occasion, reaches):
            holders = [next_move]
    return [(role, Party(agent_id=agent_id)) for role, agent_id in holders if agent_id]


def _is_unreachable(agent_id: str | None, occasion: Occasion, reaches: Mapping[str, Reach]) -> bool:
    """Whether an agent other than the sender owns the next move and cannot be reached."""
    if agent_id is None or _is_sender(Party(agent_id=agent_id), occasion):
        return False
    reach = reaches.get(agent_id)
    return reach is None or bool(reach.find_obstacle(_is_waking(occasion)))


def _is_sender(party: Party, occasion: Occasion) -> bool:
    return occasion.sender.is_same(party) and not occasion.follow_up


def _list_suggested(occasion: Occasion, routing: Routing) -> list[tuple[Role, Party]]:
    """Return the router's suggestion: last, only in a channel of several agents, and only when enabled."""
    duty, place, party = occasion.duty, occasion.place, occasion.suggestion
    if party is None or place is None or not routing.model_assisted or not _is_waking(occasion):
        return []
    several = place.kind is ConversationKind.CHANNEL and place.others > 1
    decided = duty is not None and (duty.settled or duty.waiting)
    return [(Role.SUGGESTION, party)] if several and not decided else []


def _find_silence_rule(occasion: Occasion) -> str:
    """Return the rule that wakes no agent, if one applies. Asks, questions and work always have a holder."""
    if occasion.kind in (MessageKind.STATUS, MessageKind.FINAL):
        return f"a {occasion.kind} message wakes no agent"
    if occasion.place is None or occasion.cause not in (Cause.SEND, Cause.WAKE):
        return ""
    if occasion.place.kind is ConversationKind.BROADCAST:
        return "a broadcast wakes no agent"
    return "a quiet conversation wakes no agent" if occasion.place.quiet else ""


def _is_waking(occasion: Occasion, role: Role | None = None) -> bool:
    """Whether a turn may be started for this, rather than only notifying a live session."""
    if occasion.cause is not Cause.SEND or occasion.kind is MessageKind.QUESTION:
        return True
    if role is Role.TARGET and occasion.leading is not None:
        return occasion.leading.agent_id in [party.agent_id for party in occasion.targets]
    return role in (Role.MENTION, Role.SOFT_MENTION)


def _consider_candidate(
    role: Role, party: Party, occasion: Occasion, reach: Reach | None, silence: str
) -> Considered:
    why_not = silence or ("it is the sender" if _is_sender(party, occasion) else "")
    if why_not:
        return Considered(role=role, party=party, why_not=why_not)
    waking = _is_waking(occasion, role)
    obstacle = "it is not a known agent" if reach is None else reach.find_obstacle(waking)
    return Considered(role=role, party=party, why_not=obstacle, unreachable=bool(obstacle))


def _build_decision(
    considered: Sequence[Considered], silence: str, reaches: Mapping[str, Reach], facts: WakeFacts
) -> WakeDecision:
    """Return the decision: the last agent that was considered is the chosen one, unless it was rejected."""
    chosen = considered[-1] if considered and not considered[-1].why_not else None
    missed = next((one for one in considered if one.unreachable), None)
    action, rule, remedies = WakeAction.NOBODY, silence or "no other agent owns the next move", ()
    if missed is not None and chosen is None:
        lost = reaches.get(missed.party.agent_id)
        rule, remedies = "no agent can be reached", (lost.remedy,) if lost else ()
    if chosen is not None:
        reach = reaches[chosen.party.agent_id]
        action, rule = reach.choose_action(_is_waking(facts.occasion, chosen.role)), chosen.role
        remedies = (reach.remedy,) if action is WakeAction.HOLD else ()
    return WakeDecision(
        action=action,
        rule=rule,
        holder=chosen.party if chosen else None,
        instead_of=missed.party if missed else None,
        reason=_build_reason(missed, reaches) if missed else "",
        considered=tuple(considered),
        remedies=remedies,
        facts=facts,
    )


def _build_reason(missed: Considered, reaches: Mapping[str, Reach]) -> str:
    reach = reaches.get(missed.party.agent_id)
    name = reach.address if reach else missed.party.agent_id
    return f"{missed.role} {name}: {missed.why_not}"


_BUDGET = get_code(WakeBudget)


def describe_decision(wake: WakeFact) -> str:
    """Return a decision in one line: action, agent, rule, and the agents passed over."""
    session = f" in {wake.session_id}" if wake.session_id else ""
    whom = f" {wake.agent_id}{session}" if wake.agent_id else ""
    instead = f", instead of {wake.instead_of}" if wake.instead_of else ""
    passed = "".join(f"; not {one.agent_id} ({one.role}: {one.why})" for one in wake.passed_over)
    return f"{wake.action}{whom} ({wake.rule}){instead}{passed}"


def compare_decision(stored: WakeFact) -> str:
    """Return what today's policy decides from a stored decision's facts; empty if it is the same."""
    try:
        facts = decode(stored.facts, WakeFacts)
    except Refused as refusal:
        return f"cannot be decided again: {refusal.diagnostic.message}"
    reaches = {reach.agent_id: reach for reach in facts.reaches}
    today = decide_wake(facts.occasion, reaches, facts.routing).stored
    if stored.rule == _BUDGET and today.action == WakeAction.WAKE:
        # Earlier wakes are not in the facts: without the budget, a held decision is a wake.
        today = replace(today, action=WakeAction.HOLD, rule=_BUDGET)
    return "" if _get_outcome(today) == _get_outcome(stored) else describe_decision(today)


def _get_outcome(wake: WakeFact) -> tuple[Any, ...]:
    """Return the parts that make two decisions equal, without their sentences, which may be reworded."""
    rule = wake.rule if wake.agent_id else ""
    passed_over = tuple((one.agent_id, one.session_id, one.role) for one in wake.passed_over)
    return wake.action, wake.agent_id, wake.session_id, rule, wake.instead_of, passed_over
