"""Credentials and rights: tokens and grants."""

from msgspec.structs import replace

from scout.broker.routing import conversations
from scout.broker.routing.views import enriched
from scout.broker.transaction.paging import before, page, size
from scout.broker.transaction.transaction import Turn
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

__all__ = [
    "add_grant",
    "create_token",
    "for_agent",
    "list_grants",
    "list_tokens",
    "revoke_all",
    "revoke_grant",
    "revoke_of_session",
    "revoke_token_of",
    "rotate_token",
]

_MANY = 1000


def for_agent(turn: Turn, agent: Agent, *, session_id: str | None = None, label: str = "") -> str:
    """A new credential that stands for an agent; the secret, which nobody can read again."""
    token = Token(
        id=turn.mint("tok"),
        created_at=turn.now,
        updated_at=turn.now,
        kind=TokenKind.AGENT,
        hashed="",
        label=label,
        user=agent.owner,
        agent_id=agent.id,
        session_id=session_id,
        created_by=turn.sender,
    )
    return _minted(turn, token)[1]


def _minted(turn: Turn, token: Token) -> tuple[Token, str]:
    secret = turn.world.ids.secret()
    token = check_token(replace(token, hashed=hash_of(secret)))
    return turn.record(TokenCreated, token, move="create"), secret


def revoke_all(turn: Turn, agent: Agent, reason: str) -> None:
    """End every credential of an agent."""
    for token in turn.ledger.many(Token, "tokens_of_agent", agent=agent.id, limit=_MANY):
        _revoke(turn, token, reason)


def revoke_of_session(turn: Turn, session: Session, reason: str) -> None:
    """End every credential that was for one session."""
    for token in turn.ledger.many(Token, "tokens_of_session", session=session.id, limit=_MANY):
        _revoke(turn, token, reason)


def _revoke(turn: Turn, token: Token, reason: str) -> Token:
    revoked = revoke_token(token, reason, turn.now)
    return turn.record(TokenRevoked, revoked, move="revoke", reason=reason)


def _shown(turn: Turn, token: Token) -> TokenView:
    address = turn.address(token.agent_id) if token.agent_id else None
    return enriched(TokenView, replace(token, hashed=""), address=address)


def create_token(turn: Turn, request: CreateToken) -> Minted:
    """A new credential of any kind; only the operator makes them."""
    turn.permit(Deed.ADMINISTER, Subject(name="credentials"))
    agent = turn.resolve(request.agent).agent if request.agent else None
    if agent is None and request.kind is TokenKind.OPERATOR:
        agent = turn.ledger.get(Agent, turn.world.operator_agent)
    session = turn.need(Session, "session", request.session_id) if request.session_id else None
    if session is not None and (agent is None or session.agent_id != agent.id):
        raise turn.missing("session of this agent", session.id)
    token = Token(
        id=turn.mint("tok"),
        created_at=turn.now,
        updated_at=turn.now,
        kind=request.kind,
        hashed="",
        label=request.label,
        user=agent.owner if agent else turn.actor.user,
        agent_id=agent.id if agent else None,
        session_id=request.session_id,
        node=request.node,
        connector=request.connector,
        expires_at=turn.now.plus(request.expires_in) if request.expires_in is not None else None,
        created_by=turn.sender,
    )
    made, secret = _minted(turn, token)
    return Minted(token=_shown(turn, made), secret=secret)


def list_tokens(turn: Turn, request: ListTokens) -> Page[TokenView]:
    """Every credential, without its secret."""
    turn.permit(Deed.ADMINISTER, Subject(name="credentials"))
    wanted = size(request.limit, turn.rules.limits)
    found = turn.ledger.many(Token, "tokens_all", before=before(request.cursor), limit=wanted + 1)
    return page([_shown(turn, token) for token in found], wanted, lambda token: token.id)


def revoke_token_of(turn: Turn, request: RevokeToken) -> TokenView:
    """End a credential: one's own, or any for the operator; doing it again changes nothing."""
    token = _own_token(turn, request.token_id)
    over = token.state is not TokenState.ACTIVE
    return _shown(turn, token if over else _revoke(turn, token, request.reason))


def rotate_token(turn: Turn, request: RotateToken) -> Minted:
    """A new credential in the place of one's own, or of any for the operator."""
    old = _own_token(turn, request.token_id)
    _revoke(turn, old, "rotated")
    fresh = replace(old, id=turn.mint("tok"), revision=1, created_at=turn.now, updated_at=turn.now)
    made, secret = _minted(turn, replace(fresh, last_used_at=None, created_by=turn.sender))
    return Minted(token=_shown(turn, made), secret=secret)


def _own_token(turn: Turn, token_id: str) -> Token:
    if token_id != turn.actor.token_id:
        turn.permit(Deed.ADMINISTER, Subject(name=token_id[:60]))
    return turn.need(Token, "token", token_id)


# -- grants ------------------------------------------------------------------------------------------


def add_grant(turn: Turn, request: AddGrant) -> Grant:
    """Allow an agent, or every agent of a user, what the defaults do not."""
    turn.permit(Deed.ADMINISTER, Subject(name="grants"))
    holder = turn.resolve(request.agent).agent if request.agent else None
    scope = GrantScope(
        path=AgentPath.parse(request.path) if request.path else None,
        user=request.user,
        project_root=request.project,
        conversation_id=_channel(turn, request.channel) if request.channel else None,
    )
    grant = Grant(
        id=turn.mint("grt"),
        created_at=turn.now,
        updated_at=turn.now,
        action=request.action,
        scope=scope,
        agent_id=holder.id if holder else None,
        user=request.holder,
        reason=request.reason,
        expires_at=turn.now.plus(request.expires_in) if request.expires_in is not None else None,
        created_by=turn.sender,
    )
    return turn.record(GrantCreated, check_grant(grant), move="create", reason=request.reason)


def _channel(turn: Turn, name: str) -> str:
    """A channel by its name, or any conversation by its id."""
    found = turn.ledger.get(Conversation, name)
    return found.id if found is not None else conversations.channel_named(turn, name).id


def list_grants(turn: Turn, request: ListGrants) -> Page[Grant]:
    """Every grant, newest first."""
    turn.permit(Deed.ADMINISTER, Subject(name="grants"))
    wanted = size(request.limit, turn.rules.limits)
    found = turn.ledger.many(Grant, "grants_all", before=before(request.cursor), limit=wanted + 1)
    return page(found, wanted, lambda grant: grant.id)


def revoke_grant(turn: Turn, request: RevokeGrant) -> Grant:
    """Take a grant back."""
    turn.permit(Deed.ADMINISTER, Subject(name="grants"))
    grant = turn.need(Grant, "grant", request.grant_id)
    ended = end_grant(grant, GrantMove.REVOKE, turn.now, reason=request.reason)
    return turn.record(GrantRevoked, ended, move=GrantMove.REVOKE, reason=request.reason)
