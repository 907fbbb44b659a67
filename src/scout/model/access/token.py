"""Tokens: credentials. Only the hash of a secret is stored; the secret is shown once."""

import hashlib
import re
from collections.abc import Iterable
from enum import StrEnum

from scout.base.machine import Machine, Mutable, move_record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.problems.request import Unauthenticated


class TokenState(StrEnum):
    ACTIVE = "active"
    REVOKED = "revoked"
    EXPIRED = "expired"


class TokenMove(StrEnum):
    REVOKE = "revoke"
    EXPIRE = "expire"


TOKEN = Machine(
    "token",
    TokenState.ACTIVE,
    {
        TokenState.ACTIVE: {TokenMove.REVOKE: TokenState.REVOKED, TokenMove.EXPIRE: TokenState.EXPIRED},
        TokenState.REVOKED: {},
        TokenState.EXPIRED: {},
    },
)


class TokenKind(StrEnum):
    OPERATOR = "operator"
    AGENT = "agent"
    HOST = "host"
    NODE = "node"
    CONNECTOR = "connector"
    GUEST = "guest"
    LINK = "link"
    BROWSER = "browser"


class Token(Mutable):
    """One credential of an agent (in one session), a node, a connector or a user.

    A link is exchanged once for a browser session, which is valid only on the web page.
    """

    kind: TokenKind
    hashed: str
    label: str = ""
    user: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    node: str | None = None
    connector: str | None = None
    state: TokenState = TokenState.ACTIVE
    reason: str = ""
    expires_at: Time | None = None
    last_used_at: Time | None = None
    created_by: str


_SECRET = re.compile(r"sct_[A-Za-z0-9_\-]{20,}")
_HIDDEN = "sct_…"
_NEEDS = {
    TokenKind.AGENT: "agent_id",
    TokenKind.NODE: "node",
    TokenKind.CONNECTOR: "connector",
    TokenKind.OPERATOR: "user",
    TokenKind.LINK: "user",
    TokenKind.BROWSER: "user",
}


def hash_secret(secret: str) -> str:
    """Return the stored hash of a secret. Secrets are long and random, so a plain hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def check_token(token: Token) -> Token:
    """Return the token; refuse one without the identity that its kind needs."""
    needed = _NEEDS.get(token.kind)
    if needed is not None and not getattr(token, needed):
        raise Refused(BadRequest(problem=f"a token of kind {token.kind} needs its {needed}", field=needed))
    return token


def is_valid(token: Token, now: Time) -> bool:
    """Whether the token is active and not expired."""
    return token.state is TokenState.ACTIVE and (token.expires_at is None or now < token.expires_at)


def require_valid(token: Token, now: Time) -> Token:
    """Return the token; refuse one that is revoked or expired."""
    if token.state is not TokenState.ACTIVE:
        raise Refused(Unauthenticated(reason=f"the token is {token.state}", needs=(_name_other(token),)))
    if token.expires_at is not None and token.expires_at <= now:
        reason = f"the token expired at {token.expires_at}"
        raise Refused(Unauthenticated(reason=reason, needs=(_name_other(token),)))
    return token


def revoke_token(token: Token, reason: str, now: Time, *, seen: int | None = None) -> Token:
    """Revoke the token: it was rotated or withdrawn, or its session ended."""
    return move_record(TOKEN, token, TokenMove.REVOKE, now, seen=seen, reason=reason)


def expire_token(token: Token, now: Time) -> Token:
    """Mark the token as expired."""
    return move_record(TOKEN, token, TokenMove.EXPIRE, now, reason="expired")


def _name_other(token: Token) -> str:
    return f"another {token.kind} token"


# -- secrets in texts --------------------------------------------------------------------------------


def find_secrets(text: str) -> tuple[str, ...]:
    """Return the texts that look like Scout tokens, without duplicates."""
    return tuple(dict.fromkeys(_SECRET.findall(text))) if "sct_" in text else ()


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace these secrets; longer ones first, so that no part of them remains."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text
