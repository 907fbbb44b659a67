import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.codec import to_plain
from scout.base.refusal import BadRequest, Refused
from scout.model.card import (
    CARD,
    Card,
    CardState,
    check_card,
    expire_card,
    get_default_expiry,
    get_default_max_uses,
    get_effective_card,
    revoke_card,
    use_card,
)
from scout.model.problems.target import ExpiredCard
from tests.model.samples import T0, T1, a_card
from tests.model.table import cells, check_cell

TABLE = """
          use     use_up  expire   revoke
active    active  used    expired  revoked
used      -       -       -        -
expired   -       -       -        -
revoked   -       -       -        -
"""


@pytest.mark.parametrize(("state", "move", "after"), cells(CARD, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(CARD, state, move, after)


def test_an_agents_card_is_for_one_use_and_a_persons_for_any() -> None:
    assert (get_default_max_uses(made_by_agent=True), get_default_max_uses(made_by_agent=False)) == (1, None)
    used = use_card(a_card(), T1)
    assert (used.state, used.uses, used.cleanup_reason) == (CardState.USED, 1, "used up")
    assert use_card(a_card(max_uses=2), T1).cleanup_reason is None


def test_a_card_carries_its_return_address_and_needs_no_session() -> None:
    wire = to_plain(a_card())
    assert {"expiresAt", "maxUses", "uses", "createdBy", "replyToSessionId", "cleanupReason"} <= set(wire)
    assert wire["replyToSessionId"] is None


@given(st.none() | st.integers(1, 5), st.integers(0, 8))
def test_a_card_is_used_as_often_as_it_may(most: int | None, tries: int) -> None:
    card, used = a_card(max_uses=most), 0
    for _ in range(tries):
        try:
            card = use_card(card, T1)
        except Refused as refused:
            assert isinstance(refused.diagnostic, ExpiredCard)
            break
        used += 1
    assert card.uses == used == (tries if most is None else min(tries, most))
    assert (card.state is CardState.USED) == (most is not None and used == most)


def _refusal(card: Card) -> ExpiredCard:
    with pytest.raises(Refused) as refused:
        use_card(card, T1)
    assert isinstance(refused.value.diagnostic, ExpiredCard)
    return refused.value.diagnostic


def test_a_card_that_is_over_is_refused_with_why() -> None:
    revoked = revoke_card(a_card(), T1, reason="leaked", seen=1)
    assert (_refusal(revoked).state, _refusal(revoked).reason) == ("revoked", "leaked")
    assert _refusal(expire_card(a_card(), T1)).reason == "expired"
    late = a_card(expires_at=T1)
    assert (_refusal(late).state, late.state) == ("expired", CardState.ACTIVE)
    assert use_card(a_card(expires_at=T1.plus(0.001)), T1).uses == 1


@pytest.mark.parametrize("uses", [0, -1])
def test_a_card_without_uses_is_refused(uses: int) -> None:
    with pytest.raises(Refused) as refused:
        check_card(a_card(max_uses=uses))
    assert isinstance(refused.value.diagnostic, BadRequest)


@pytest.mark.parametrize("uses", [None, 1, 9])
def test_any_other_card_is_fine(uses: int | None) -> None:
    card = a_card(max_uses=uses, created_at=T0)
    assert check_card(card) is card


def test_the_card_of_an_agent_lasts_a_day_and_a_persons_until_it_is_revoked() -> None:
    assert get_default_expiry(T1, made_by_agent=True) == T1.plus(86_400)
    assert get_default_expiry(T1, made_by_agent=False) is None


def test_a_card_is_shown_as_expired_from_the_moment_its_time_is_over() -> None:
    card = a_card(expires_at=T1)
    assert get_effective_card(card, T0) is card
    assert get_effective_card(card, T1).state is CardState.EXPIRED
    revoked = revoke_card(card, T0)
    assert get_effective_card(revoked, T1) is revoked
    lasting = a_card(expires_at=None)
    assert get_effective_card(lasting, T1) is lasting
