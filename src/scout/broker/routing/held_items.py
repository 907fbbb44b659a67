"""What is held for the operator: one open item for each agent, which counts its flights when it is shown."""

from collections.abc import Sequence

from msgspec.structs import replace

from scout.base.refusal import Remedy
from scout.broker.routing import attention_items
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.attention import Attention, AttentionKind
from scout.model.flight import Flight, FlightPhase
from scout.model.waiting import WaitingKind
from scout.protocol.operations import command_line
from scout.store.ledger import LAST, Ledger

_HELD = "held:"
_MANY = 200


def flights_held(ledger: Ledger, agent_id: str) -> list[Flight]:
    """The flights to an agent that wait for the operator, oldest first."""
    found = ledger.many(Flight, "flights_open_to", agent=agent_id, before=LAST, limit=_MANY)
    return [one for one in reversed(found) if _waits_for_operator(one)]


def _waits_for_operator(flight: Flight) -> bool:
    on = flight.waiting_on
    return flight.phase is FlightPhase.HELD and on is not None and on.kind is WaitingKind.OPERATOR


def show_held(tx: Transaction, agent_id: str, why: str, remedies: Sequence[Remedy]) -> None:
    """See to it that the operator has one open item about what is held for an agent."""
    agent = tx.need(Agent, "agent", agent_id)
    tries = [f"try: {command_line(remedy)}" for remedy in remedies]
    attention_items.open_item(
        tx,
        AttentionKind.WAITING,
        user=agent.owner or tx.services.operator,
        source=tx.services.system_agent,
        agent_id=agent_id,
        title=f"{tx.address(agent_id)} {why}",
        body="\n".join(tries),
        dedupe=f"{_HELD}{agent_id}",
    )


def has_item(ledger: Ledger, agent_id: str) -> bool:
    """Whether the operator has an open item about what is held for an agent."""
    return bool(ledger.many(Attention, "attention_about", dedupe=f"{_HELD}{agent_id}"))


def settle_held(tx: Transaction, agent_id: str) -> None:
    """Put the item away once nothing is held for the agent any more."""
    if flights_held(tx.ledger, agent_id):
        return
    for item in tx.ledger.many(Attention, "attention_about", dedupe=f"{_HELD}{agent_id}"):
        attention_items.close_item(tx, item, "nothing is held any more")


def count_held(tx: Transaction, item: Attention) -> Attention:
    """The item with how many asks are held now; no fact is written for each of them."""
    if not (item.dedupe or "").startswith(_HELD) or item.agent_id is None:
        return item
    count = len(flights_held(tx.ledger, item.agent_id))
    asks = "1 ask waits" if count == 1 else f"{count} asks wait"
    return replace(item, title=f"{item.title}: {asks}") if count else item
