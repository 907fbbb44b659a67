"""Credentials and rights: tokens and grants."""

from msgspec.structs import replace

from scout.broker.routing import conversations
from scout.broker.routing.views import extend_record
from scout.broker.transaction.paging import before, page, size
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath
from scout.model.agent import Agent
from scout.model.conversation import Conversation
from scout.model.events.directory import GrantCreated, GrantRevoked, TokenCreated, TokenRevoked
from scout.model.grant import Grant, GrantMove, GrantScope, check_grant, end_grant
from scout.model.session import Session
from scout.model.token import Token, TokenKind, TokenState, check_token, hash_of, revoke_token
from scout.policy.permit import Deed, Subject
from scout.protocol.access import (
    AddGrant,
    CreateToken,
    ListGrants,
    ListTokens,
    Minted,
    RevokeGrant,
    RevokeToken,
    RotateToken,
    TokenView,
)
from scout.protocol.request import Page

_MANY = 1000


def for_agent(tx: Transaction, agent: Agent, *, session_id: str | None = None, label: str = "") -> str:
    """A new credential that stands for an agent; the secret, which nobody can read again."""
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
    return _minted(tx, token)[1]


def _minted(tx: Transaction, token: Token) -> tuple[Token, str]:
    secret = tx.services.ids.secret()
    token = check_token(replace(token, hashed=hash_of(secret)))
    return tx.record(TokenCreated, token, move="create"), secret


def revoke_all(tx: Transaction, agent: Agent, reason: str) -> None:
    """End every credential of an agent."""
    for token in tx.ledger.many(Token, "tokens_of_agent", agent=agent.id, limit=_MANY):
        _revoke(tx, token, reason)


def revoke_of_session(tx: Transaction, session: Session, reason: str) -> None:
    """End every credential that was for one session."""
    for token in tx.ledger.many(Token, "tokens_of_session", session=session.id, limit=_MANY):
        _revoke(tx, token, reason)


def _revoke(tx: Transaction, token: Token, reason: str) -> Token:
    revoked = revoke_token(token, reason, tx.now)
    return tx.record(TokenRevoked, revoked, move="revoke", reason=reason)


def _shown(tx: Transaction, token: Token) -> TokenView:
    address = tx.address(token.agent_id) if token.agent_id else None
    return extend_record(TokenView, replace(token, hashed=""), address=address)


def create_token(tx: Transaction, request: CreateToken) -> Minted:
    """A new credential of any kind; only the operator makes them."""
    tx.permit(Deed.ADMINISTER, Subject(name="credentials"))
    agent = tx.resolve(request.agent).agent if request.agent else None
    if agent is None and request.kind is TokenKind.OPERATOR:
        agent = tx.get(Agent, tx.services.operator_agent)
    session = tx.need(Session, "session", request.session_id) if request.session_id else None
    if session is not None and (agent is None or session.agent_id != agent.id):
        raise tx.missing("session of this agent", session.id)
    token = Token(
        id=tx.mint("tok"),
        created_at=tx.now,
        updated_at=tx.now,
        kind=request.kind,
        hashed="",
        label=request.label,
        user=agent.owner if agent else tx.actor.user,
        agent_id=agent.id if agent else None,
        session_id=request.session_id,
        node=request.node,
        connector=request.connector,
        expires_at=tx.now.plus(request.expires_in) if request.expires_in is not None else None,
        created_by=tx.sender,
    )
    made, secret = _minted(tx, token)
    return Minted(token=_shown(tx, made), secret=secret)


def list_tokens(tx: Transaction, request: ListTokens) -> Page[TokenView]:
    """Every credential, without its secret."""
    tx.permit(Deed.ADMINISTER, Subject(name="credentials"))
    wanted = size(request.limit, tx.rules.limits)
    found = tx.ledger.many(Token, "tokens_all", before=before(request.cursor), limit=wanted + 1)
    return page([_shown(tx, token) for token in found], wanted, lambda token: token.id)


def revoke_token_of(tx: Transaction, request: RevokeToken) -> TokenView:
    """End a credential: one's own, or any for the operator; doing it again changes nothing."""
    token = _own_token(tx, request.token_id)
    over = token.state is not TokenState.ACTIVE
    return _shown(tx, token if over else _revoke(tx, token, request.reason))


def rotate_token(tx: Transaction, request: RotateToken) -> Minted:
    """A new credential in the place of one's own, or of any for the operator."""
    old = _own_token(tx, request.token_id)
    _revoke(tx, old, "rotated")
    fresh = replace(old, id=tx.mint("tok"), revision=1, created_at=tx.now, updated_at=tx.now)
    made, secret = _minted(tx, replace(fresh, last_used_at=None, created_by=tx.sender))
    return Minted(token=_shown(tx, made), secret=secret)


def _own_token(tx: Transaction, token_id: str) -> Token:
    if token_id != tx.actor.token_id:
        tx.permit(Deed.ADMINISTER, Subject(name=token_id[:60]))
    return tx.need(Token, "token", token_id)


# -- grants ------------------------------------------------------------------------------------------


def add_grant(tx: Transaction, request: AddGrant) -> Grant:
    """Allow an agent, or every agent of a user, what the defaults do not."""
    tx.permit(Deed.ADMINISTER, Subject(name="grants"))
    holder = tx.resolve(request.agent).agent if request.agent else None
    scope = GrantScope(
        path=AgentPath.parse(request.path) if request.path else None,
        user=request.user,
        project_root=request.project,
        conversation_id=_channel(tx, request.channel) if request.channel else None,
    )
    grant = Grant(
        id=tx.mint("grt"),
        created_at=tx.now,
        updated_at=tx.now,
        action=request.action,
        scope=scope,
        agent_id=holder.id if holder else None,
        user=request.holder,
        reason=request.reason,
        expires_at=tx.now.plus(request.expires_in) if request.expires_in is not None else None,
        created_by=tx.sender,
    )
    return tx.record(GrantCreated, check_grant(grant), move="create", reason=request.reason)


def _channel(tx: Transaction, name: str) -> str:
    """A channel by its name, or any conversation by its id."""
    found = tx.get(Conversation, name)
    return found.id if found is not None else conversations.channel_named(tx, name).id


def list_grants(tx: Transaction, request: ListGrants) -> Page[Grant]:
    """Every grant, newest first."""
    tx.permit(Deed.ADMINISTER, Subject(name="grants"))
    wanted = size(request.limit, tx.rules.limits)
    found = tx.ledger.many(Grant, "grants_all", before=before(request.cursor), limit=wanted + 1)
    return page(found, wanted, lambda grant: grant.id)


def revoke_grant(tx: Transaction, request: RevokeGrant) -> Grant:
    """Take a grant back."""
    tx.permit(Deed.ADMINISTER, Subject(name="grants"))
    grant = tx.need(Grant, "grant", request.grant_id)
    ended = end_grant(grant, GrantMove.REVOKE, tx.now, reason=request.reason)
    return tx.record(GrantRevoked, ended, move=GrantMove.REVOKE, reason=request.reason)
