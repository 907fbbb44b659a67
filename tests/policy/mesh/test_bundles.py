"""Bundles keep the order of the envelopes and stay small."""

from hypothesis import given
from hypothesis import strategies as st

from scout.policy.mesh.bundles import MOST, SIZE, split_into_bundles


@given(st.lists(st.integers(1, SIZE * 2), max_size=300))
def test_each_envelope_is_in_one_bundle_in_order(sizes: list[int]) -> None:
    bundles = split_into_bundles(sizes)
    assert [place for one in bundles for place in one] == list(range(len(sizes)))
    assert all(bundles), "an empty bundle"


@given(st.lists(st.integers(1, SIZE * 2), max_size=300))
def test_a_bundle_is_small_and_as_full_as_it_may_be(sizes: list[int]) -> None:
    bundles = split_into_bundles(sizes)
    totals = [sum(sizes[place] for place in one) for one in bundles]
    assert all(len(one) == 1 or total <= SIZE for one, total in zip(bundles, totals, strict=True))
    assert all(len(one) <= MOST for one in bundles)
    for one, following, total in zip(bundles, bundles[1:], totals, strict=False):
        assert len(one) == MOST or total + sizes[following[0]] > SIZE


def test_many_small_envelopes_share_bundles() -> None:
    assert [len(one) for one in split_into_bundles([1000] * (MOST + 1))] == [MOST, 1]
    assert split_into_bundles([]) == []
