"""Retiring and reviving agents."""

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Candidate, Refused, Remedy
from scout.broker.effects import retirement
from scout.broker.operations.agents import build_name_taken, find
from scout.broker.routing import unread, users
from scout.broker.routing.registration import break_alias_named
from scout.broker.routing.views import build_agent_detail
from scout.broker.transaction import admission
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.identity.lexer import lex
from scout.identity.name import HandleName
from scout.identity.path import Kind
from scout.model.agent import Agent, AgentMove, move_agent
from scout.model.events.envelope import FinishedTree, Metadata
from scout.model.events.presence import AGENT_EVENTS
from scout.model.problems.target import AmbiguousTarget
from scout.policy.directory import Wanted
from scout.policy.permit import Deed
from scout.policy.resolver.handle import build_wanted, find_closest
from scout.protocol.agents import AgentDetail, RetireAgent, ReviveAgent

_NAMES = 20
_COUNTED = 1000


def retire(tx: Transaction, request: RetireAgent) -> AgentDetail:
    """Retire an agent: nothing more is delivered to it, and senders are notified."""
    agent = find(tx, request.address, Deed.CONTROL)
    if agent.id == tx.services.operator_agent or agent.kind is Kind.SYSTEM:
        raise Refused(BadRequest(problem=f"Scout cannot do without {agent.path}", field="address"))
    if agent.is_person:
        whole = Remedy(operation="user.retire", parameters={"user": agent.owner}, why="retire the user")
        problem = f"{agent.path} is a person and stays as long as the user"
        raise Refused(BadRequest(problem=problem, field="address", remedies=(whole,)))
    return build_agent_detail(tx, retire_agent(tx, agent, request.reason))


def retire_agent(tx: Transaction, agent: Agent, reason: str, finished: FinishedTree | None = None) -> Agent:
    """Record that an agent is retired, release its obligations and revoke its tokens."""
    move, retired = AgentMove.RETIRE, move_agent(agent, AgentMove.RETIRE, tx.now)
    tx.record(AGENT_EVENTS[move], retired, move=move, reason=reason, metadata=Metadata(finished=finished))
    retirement.release_obligations(tx, retired)
    admission.revoke_agent_tokens(tx, retired, "its agent is retired")
    return retired


def revive(tx: Transaction, request: ReviveAgent) -> AgentDetail:
    """Bring a retired agent back under the same names."""
    return build_agent_detail(tx, revive_agent(tx, find_revivable(tx, request.address)))


def revive_agent(tx: Transaction, agent: Agent, reason: str = "") -> Agent:
    """Record that a retired agent is active again; refuse if its handle was taken meanwhile."""
    revived = move_agent(agent, AgentMove.REVIVE, tx.now)
    _check_handle(tx, revived)
    tx.record(AGENT_EVENTS[AgentMove.REVIVE], revived, move=AgentMove.REVIVE, reason=reason)
    break_alias_named(tx, revived)
    broadcast = unread.find_broadcast(tx, revived.id)
    if broadcast is not None:  # skip broadcasts sent while it was retired
        unread.mark_read(tx, revived.id, broadcast.id, tx.ledger.last_seq())
    return revived


def find_revivable(tx: Transaction, address: str) -> Agent:
    """Return the agent to revive: the retired one that a handle names, else the one at the address."""
    agent = _find_retired(tx, address) or find(tx, address)
    tx.permit(Deed.CONTROL, build_subject(agent))
    owner = users.find_user(tx, agent.owner)
    if owner is not None:
        users.require_active(tx, owner)
    return agent


def _find_retired(tx: Transaction, text: str) -> Agent | None:
    """Return the retired agent that a handle names; None if there is none or the text is no handle."""
    try:
        name = lex(text)
    except Refused:
        return None  # `find` reports the error
    if not isinstance(name, HandleName):
        return None
    found = _find_retired_matches(tx, build_wanted(name.address))
    if len(found) > 1:
        raise Refused(_build_ambiguous(text, found))
    return found[0] if found else None


def _find_retired_matches(tx: Transaction, wanted: Wanted) -> list[Agent]:
    """Return retired agents of exactly this name; other matches only if no live agent has the exact name."""
    known = tx.ledger.many(Agent, "agents_retired", name=wanted.definition_id, limit=_COUNTED)
    found = find_closest(wanted, [one for one in known if tx.view.shows(one)])
    exact = [one for one in found if (one.workspace, one.profile) == (wanted.workspace, wanted.profile)]
    return exact if exact or tx.directory.find(replace(wanted, exact=True), 1) else found


def _build_ambiguous(text: str, found: list[Agent]) -> AmbiguousTarget:
    paths = [str(one.path) for one in found]
    return AmbiguousTarget(
        address=text[:200],
        count=len(found),
        retry=paths[0],
        noun="retired agent",
        candidates=tuple(Candidate(address=path) for path in paths[:_NAMES]),
        remedies=tuple(Remedy(operation="agent.revive", parameters={"address": path}) for path in paths[:3]),
    )


def _check_handle(tx: Transaction, agent: Agent) -> None:
    """Refuse if another live agent has taken the handle; handles are unique among live agents."""
    if agent.definition_id is None:
        return
    wanted = Wanted(
        definition_id=agent.definition_id,
        workspace=agent.workspace,
        profile=agent.profile,
        node=agent.node,
        exact=True,
    )
    for holder in tx.everybody.find(wanted, 1):
        raise Refused(build_name_taken("agent", tx.address(agent.id), holder))
