"""Who may have schedules and tasks: the user in person, and callers who control that user's agents."""

from scout.broker.transaction.transaction import Transaction, build_subject
from scout.identity.path import AgentPath
from scout.model.agent import Agent
from scout.policy.permit import Deed, Subject, is_person_for


def require_control(tx: Transaction, owner: str, path: AgentPath) -> None:
    """Refuse a caller who is neither the user in person nor may control an agent at this path."""
    if not is_person_for(tx.actor, owner):
        tx.permit(Deed.CONTROL, Subject(name=str(path), path=path, user=owner))


def may_see(tx: Transaction, agent: Agent) -> bool:
    """Whether the caller is the agent, its user in person, or may control it."""
    if tx.actor.agent_id == agent.id or (agent.owner and is_person_for(tx.actor, agent.owner)):
        return True
    return tx.allows(Deed.CONTROL, build_subject(agent))
