"""Somebody else on the same machine."""

from typing import Any

from scout.broker.local import LocalScout
from scout.broker.routing import users
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath
from scout.model.agent import Agent, create_agent
from scout.model.events.presence import AgentRegistered
from scout.protocol.access import CreateToken
from scout.protocol.request import Request
from tests.broker.rig import Rig


async def stranger(rig: Rig, name: str = "zed", user: str = "bob") -> Agent:
    """An agent of another user, with a handle."""

    def enter(tx: Transaction) -> Agent:
        users.ensure_user(tx, user)
        path = AgentPath.parse(f"/{user}/agent/{name}")
        agent = create_agent(tx.mint("agt"), path, tx.now, node="mini", by=tx.sender, definition_id=name)
        return tx.record(AgentRegistered, agent, move="register")

    return await rig.broker.as_system(enter)


def draw_requests(*requests: Request[Any]) -> tuple[Request[Any], ...]:
    """Several requests of several kinds."""
    return requests


async def open_seat(rig: Rig, agent: Agent) -> LocalScout:
    """A seat in the name of any agent."""
    minted = await rig.operator(CreateToken(agent=agent.id))
    return await rig.scout(minted.secret)
