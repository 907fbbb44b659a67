"""Agent tokens: mint and revoke them."""

from msgspec.structs import replace

from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.events.directory import TokenCreated, TokenRevoked
from scout.model.session import Session
from scout.model.token import Token, TokenKind, check_token, hash_secret, revoke_token

_MANY = 1000


def create_agent_token(
    tx: Transaction, agent: Agent, *, session_id: str | None = None, label: str = ""
) -> str:
    """Create a token for an agent; return its secret, which is not stored."""
    token = Token(
        id=tx.mint("tok"),
        created_at=tx.now,
        updated_at=tx.now,
        kind=TokenKind.AGENT,
        hashed="",
        label=label,
        user=agent.owner,
        agent_id=agent.id,
        session_id=session_id,
        created_by=tx.sender,
    )
    return mint_token(tx, token)[1]


def mint_token(tx: Transaction, token: Token) -> tuple[Token, str]:
    secret = tx.services.ids.secret()
    token = check_token(replace(token, hashed=hash_secret(secret)))
    return tx.record(TokenCreated, token, move="create"), secret


def revoke_agent_tokens(tx: Transaction, agent: Agent, reason: str) -> None:
    """Revoke all tokens of an agent."""
    for token in tx.ledger.many(Token, "tokens_of_agent", agent=agent.id, limit=_MANY):
        record_revocation(tx, token, reason)


def revoke_session_tokens(tx: Transaction, session: Session, reason: str) -> None:
    """Revoke all tokens of a session."""
    for token in tx.ledger.many(Token, "tokens_of_session", session=session.id, limit=_MANY):
        record_revocation(tx, token, reason)


def record_revocation(tx: Transaction, token: Token, reason: str) -> Token:
    revoked = revoke_token(token, reason, tx.now)
    return tx.record(TokenRevoked, revoked, move="revoke", reason=reason)
