"""When an agent was last active, from the records: it acted, was asked, or one of its sessions lived."""

from collections.abc import Sequence

from msgspec.structs import replace

from scout.base.time import Time
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.attention import Attention
from scout.model.endpoint import Endpoint
from scout.model.flight import Flight
from scout.store.ledger import LAST


def find_last_activity(
    tx: Transaction, agent: Agent, endpoints: Sequence[Endpoint], records: Sequence[Flight | Attention]
) -> Time:
    """Return when an agent last acted, was asked or was changed; unread mail does not count."""
    moments = [agent.updated_at, *(one.updated_at for one in records)]
    moments += [one.updated_at if one.held else one.last_seen or one.created_at for one in endpoints]
    return max([*moments, tx.ledger.log.find_last_deed(agent.id) or Time(0)])


def add_last_activity(tx: Transaction, agent: Agent) -> Agent:
    """Return an agent with its latest activity; the stored row is as old as the last sweep."""
    flights = tx.ledger.many(Flight, "flights_to", agent=agent.id, before=LAST, limit=1)
    return replace(agent, last_active_at=find_last_activity(tx, agent, tx.endpoints(agent.id), flights))
