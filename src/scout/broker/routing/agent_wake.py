"""An agent that slept is awake again: it was asked, it was started, or it did something itself."""

from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent, AgentMove, Lifecycle, move_agent
from scout.model.events.presence import AgentWoken


def wake_agent(tx: Transaction, agent_id: str | None, reason: str) -> Agent | None:
    """Store that an agent sleeps no longer, if it did."""
    agent = tx.agent(agent_id)
    if agent is None or agent.lifecycle is not Lifecycle.SLEEPING:
        return agent
    return tx.record(AgentWoken, move_agent(agent, AgentMove.WAKE, tx.now), move="wake", reason=reason)
