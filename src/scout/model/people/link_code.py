"""Link codes: typed once in a chat, they link its account to a user. Only their hash is stored."""

import hashlib
import re
from enum import StrEnum

from scout.base.machine import Machine, Mutable, move_record
from scout.base.time import Time


class LinkCodeState(StrEnum):
    OPEN = "open"
    REDEEMED = "redeemed"
    REVOKED = "revoked"


class LinkCodeMove(StrEnum):
    REDEEM = "redeem"
    REVOKE = "revoke"


LINK_CODE = Machine(
    "link code",
    LinkCodeState.OPEN,
    {
        LinkCodeState.OPEN: {
            LinkCodeMove.REDEEM: LinkCodeState.REDEEMED,
            LinkCodeMove.REVOKE: LinkCodeState.REVOKED,
        },
        LinkCodeState.REDEEMED: {},
        LinkCodeState.REVOKED: {},
    },
)


class LinkCode(Mutable):
    """One code for a user and a connector. `key_id`: the key that it made."""

    user: str
    connector: str
    hashed: str
    expires_at: Time
    state: LinkCodeState = LinkCodeState.OPEN
    key_id: str | None = None
    reason: str = ""
    created_by: str


# Without letters that look like digits; 32 of them, so that a byte modulo 32 is fair.
_LETTERS = "abcdefghjkmnpqrstvwxyz0123456789"
_LENGTH = 8
_PREFIX = "scout-"
# The prefix keeps an ordinary word from being read as a code. Telegram sends `/start CODE` from a link.
_TYPED = re.compile(
    r"(?:/(?:link|start)\s+)?scout[\s-]*([a-z0-9]{4})[\s-]*([a-z0-9]{4})", re.IGNORECASE | re.ASCII
)
_MISREAD = str.maketrans("oil", "011")


def build_code(entropy: bytes) -> str:
    """Return a code of 40 bits, as it is shown and typed: `scout-k7qf-3m9t`."""
    assert len(entropy) >= _LENGTH
    letters = "".join(_LETTERS[byte % len(_LETTERS)] for byte in entropy[:_LENGTH])
    return f"{_PREFIX}{letters[:4]}-{letters[4:]}"


def find_code(text: str) -> str | None:
    """Return the code that a message consists of, in its canonical spelling; None if it is another text."""
    found = _TYPED.fullmatch(text.strip())
    if found is None:
        return None
    first, second = (part.lower().translate(_MISREAD) for part in found.groups())
    return f"{_PREFIX}{first}-{second}"


def hash_code(connector: str, code: str) -> str:
    """Return the stored hash of a code. It is valid for one connector only."""
    return hashlib.sha256(f"{connector}\0{code}".encode()).hexdigest()


def is_open_code(code: LinkCode, now: Time) -> bool:
    """Whether the code can still be redeemed."""
    return code.state is LinkCodeState.OPEN and now < code.expires_at


def redeem_code(code: LinkCode, key_id: str, now: Time) -> LinkCode:
    """Record that the code was used, and the key it made."""
    return move_record(LINK_CODE, code, LinkCodeMove.REDEEM, now, key_id=key_id)


def revoke_code(code: LinkCode, reason: str, now: Time) -> LinkCode:
    """Withdraw the code: a newer one replaces it, or its user is retired."""
    return move_record(LINK_CODE, code, LinkCodeMove.REVOKE, now, reason=reason)
