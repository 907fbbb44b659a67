"""Nearest names share a key with what was typed, and are ranked by likeness."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scout.policy.nearest import build_keys, rank_names

NAMES = st.text("abcdefgh-", min_size=2, max_size=12)


def test_the_keys_are_the_name_and_each_text_with_one_letter_left_out() -> None:
    assert build_keys("abc") == {"abc", "bc", "ac", "ab"}
    assert build_keys("") == {""}
    assert build_keys("x" * 60) == {"x" * 48, "x" * 47}


@given(NAMES, st.data())
def test_names_one_slip_apart_share_a_key(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 2))
    slips = [
        name[:at] + name[at + 1 :],
        name[:at] + "x" + name[at:],
        name[:at] + "x" + name[at + 1 :],
        name[:at] + name[at + 1] + name[at] + name[at + 2 :],
    ]
    for slip in slips:
        assume(len(slip) > 0)
        assert build_keys(name) & build_keys(slip)


@pytest.mark.parametrize(
    ("typed", "known", "expected"),
    [
        ("hudsn", ["zebra", "hudson", "hugo"], ("hudson",)),
        ("hud", ["hudson", "huddy", "hu"], ("hu", "huddy", "hudson")),
        ("abcd", ["abdc", "abcde", "abc"], ("abcde", "abc", "abdc")),
        ("same", ["same"], ("same",)),
        ("x", [], ()),
    ],
)
def test_the_nearest_come_first_and_strangers_are_left_out(
    typed: str, known: list[str], expected: tuple[str, ...]
) -> None:
    assert rank_names(typed, known, 5) == expected
    assert rank_names(typed, known, 1) == expected[:1]


def test_a_prefix_counts_however_long_the_rest_is() -> None:
    assert rank_names("hu", ["hudson-of-the-very-long-name"], 5) == ("hudson-of-the-very-long-name",)


def test_equal_likeness_is_ordered_by_name() -> None:
    assert rank_names("ab", ["abd", "abc"], 5) == ("abc", "abd")
