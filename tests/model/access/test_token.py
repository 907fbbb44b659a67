import hashlib

import pytest

from scout.base.refusal import BadRequest, Refused
from scout.model.access.token import (
    TOKEN,
    Token,
    TokenKind,
    TokenState,
    check_token,
    expire_token,
    find_secrets,
    hash_secret,
    hide_secrets,
    is_valid,
    require_valid,
    revoke_token,
)
from scout.model.problems.request import Unauthenticated
from tests.model.samples import T1, a_token
from tests.model.table import cells, check_cell

TABLE = """
          revoke   expire
active    revoked  expired
revoked   -        -
expired   -        -
"""


@pytest.mark.parametrize(("state", "move", "after"), cells(TOKEN, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(TOKEN, state, move, after)


def test_only_the_hash_of_a_secret_is_kept() -> None:
    assert hash_secret("secret") == hashlib.sha256(b"secret").hexdigest()
    assert hash_secret("\ud800")
    assert "secret" not in repr(a_token())


def test_a_valid_token_passes() -> None:
    for token in (a_token(), a_token(expires_at=T1.plus(1))):
        assert require_valid(token, T1) is token


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (revoke_token(a_token(), "its session ended", T1, seen=1), "the token is revoked"),
        (expire_token(a_token(), T1), "the token is expired"),
        (a_token(expires_at=T1), f"the token expired at {T1}"),
    ],
)
def test_any_other_is_refused_with_what_would_do(token: Token, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        require_valid(token, T1)
    assert refused.value.diagnostic == Unauthenticated(reason=reason, needs=("another agent token",))


def test_ending_says_why() -> None:
    revoked = revoke_token(a_token(), "rotated", T1)
    assert (revoked.state, revoked.reason) == (TokenState.REVOKED, "rotated")
    assert expire_token(a_token(), T1).reason == "expired"


@pytest.mark.parametrize(
    ("kind", "field", "name"),
    [
        (TokenKind.AGENT, "agent_id", "agt_1"),
        (TokenKind.NODE, "node", "mini"),
        (TokenKind.CONNECTOR, "connector", "telegram"),
        (TokenKind.OPERATOR, "user", "u1"),
    ],
)
def test_a_token_stands_for_somebody(kind: TokenKind, field: str, name: str) -> None:
    with pytest.raises(Refused) as refused:
        check_token(a_token(kind=kind, agent_id=None))
    problem = refused.value.diagnostic
    assert isinstance(problem, BadRequest)
    assert problem.field == field
    token = a_token(kind=kind, **{"agent_id": None, field: name})
    assert check_token(token) is token


@pytest.mark.parametrize("kind", [TokenKind.HOST, TokenKind.GUEST])
def test_a_host_or_guest_token_stands_for_nobody(kind: TokenKind) -> None:
    token = a_token(kind=kind, agent_id=None)
    assert check_token(token) is token


def test_a_token_is_valid_while_it_is_active_and_not_expired() -> None:
    assert is_valid(a_token(), T1)
    assert not is_valid(a_token(expires_at=T1), T1)
    assert not is_valid(revoke_token(a_token(), "rotated", T1), T1)


ONE, TWO = "sct_" + "a" * 43, "sct_" + "a" * 43 + "b"


def test_tokens_are_found_once_and_hidden_whole() -> None:
    text = f"token={ONE} and {TWO}, again {ONE}; not sct_short"
    assert find_secrets(text) == (ONE, TWO)
    assert hide_secrets(text, find_secrets(text)) == "token=sct_… and sct_…, again sct_…; not sct_short"
    assert find_secrets("nothing") == ()
