"""What others call exactly one session: its agent's address, or the name that sets it apart from another."""

from scout.broker.transaction.transaction import Transaction
from scout.model.alias import Alias


def alias_of(tx: Transaction, session_id: str | None) -> str | None:
    """The name that a second live session of an agent got, as an address."""
    found = tx.ledger.one(Alias, "alias_of_session", session=session_id) if session_id else None
    return f"@{found.name}" if found else None


def name_of(tx: Transaction, session_id: str | None, agent_id: str) -> str:
    """The address that reaches this session."""
    return alias_of(tx, session_id) or tx.address(agent_id)
