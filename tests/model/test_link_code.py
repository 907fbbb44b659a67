import pytest

from scout.model.people.link_code import (
    LINK_CODE,
    LinkCodeState,
    build_code,
    find_code,
    hash_code,
    is_open_code,
    redeem_code,
    revoke_code,
)
from tests.model.samples import T0, T1, a_link_code, ident
from tests.model.table import cells, check_cell

CODES = """
          redeem    revoke
open      redeemed  revoked
redeemed  -         -
revoked   -         -
"""


@pytest.mark.parametrize(("state", "move", "after"), cells(LINK_CODE, CODES))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(LINK_CODE, state, move, after)


def test_a_code_has_forty_bits_and_no_letter_that_is_easily_misread() -> None:
    code = build_code(bytes(range(0, 256, 32)))
    assert code == "scout-aaaa-aaaa"
    letters = {build_code(bytes([byte] * 8))[-1] for byte in range(256)}
    assert len(letters) == 32
    assert not letters & set("ilou")


@pytest.mark.parametrize(
    "text",
    [
        "scout-k7qf-3m9t",
        " SCOUT-K7QF-3M9T\n",
        "scout k7qf 3m9t",
        "scoutk7qf3m9t",
        "/link scout-k7qf-3m9t",
        "/start scout-k7qf-3m9t",
    ],
)
def test_a_code_is_read_however_it_is_typed(text: str) -> None:
    assert find_code(text) == "scout-k7qf-3m9t"


def test_letters_that_look_like_digits_are_read_as_digits() -> None:
    assert find_code("scout-Oil0-0000") == "scout-0110-0000"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "long-term",
        "k7qf-3m9t",
        "my code is scout-k7qf-3m9t",
        "scout-k7qf",
        "scout-k7qf-3m9t-x",
        "scout-k7qf-3m9é",
    ],
)
def test_another_text_is_no_code(text: str) -> None:
    assert find_code(text) is None


def test_a_code_counts_for_one_connector() -> None:
    assert hash_code("telegram", "scout-k7qf-3m9t") != hash_code("matrix", "scout-k7qf-3m9t")


def test_a_code_is_open_until_it_is_used_withdrawn_or_old() -> None:
    code = a_link_code(expires_at=T1)
    assert is_open_code(code, T0)
    assert not is_open_code(code, T1)
    used = redeem_code(code, ident("key"), T0)
    assert (used.state, used.key_id) == (LinkCodeState.REDEEMED, ident("key"))
    gone = revoke_code(code, "a new one", T0)
    assert gone.reason == "a new one"
    assert not is_open_code(used, T0)
    assert not is_open_code(gone, T0)
