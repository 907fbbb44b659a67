"""Intervals are found by a number inside them, under few forks."""

from hypothesis import given
from hypothesis import strategies as st

from scout.base.intervals import find_fork, list_forks

numbers = st.integers(min_value=1, max_value=1 << 40)


@given(numbers, numbers)
def test_a_fork_lies_in_its_interval(one: int, other: int) -> None:
    first, last = sorted((one, other))
    assert first <= find_fork(first, last) <= last


@given(numbers, numbers, numbers)
def test_an_interval_is_found_exactly_by_the_numbers_in_it(one: int, other: int, number: int) -> None:
    first, last = sorted((one, other))
    fork, forks = find_fork(first, last), list_forks(number, last)
    found = (fork in forks.below and last >= number) or (fork in forks.above and first <= number)
    assert found == (first <= number <= last)


def test_there_is_one_fork_for_each_bit() -> None:
    forks = list_forks(5, 1_000_000)
    assert len(forks.below) + len(forks.above) == 20
    assert forks.below == [5, 4]
    assert forks.above[:3] == [6, 8, 16]
