"""Intervals of whole numbers, found by a number inside them through plain indexes.

Every interval has one fork: the number in it that is divisible by the highest power of two. The intervals
that contain a number are found under few forks, one for each bit of the numbers, however many intervals there
are before and after it. At a fork at or below the number, those that end at or after it contain it; at a fork
above it, those that begin at or before it.
"""

from typing import NamedTuple


class Forks(NamedTuple):
    """The forks under which intervals that contain a number can be: at or below it, and above it."""

    below: list[int]
    above: list[int]


def find_fork(first: int, last: int) -> int:
    """Return the fork of the interval from `first` to `last`, both included; `first` is at least 1."""
    shift = ((first - 1) ^ last).bit_length() - 1
    return last >> shift << shift


def list_forks(number: int, highest: int) -> Forks:
    """Return the forks of all intervals that contain a number, if none ends after `highest`."""
    nodes = [(number >> bit | 1) << bit for bit in range(max(number, highest).bit_length())]
    return Forks([one for one in nodes if one <= number], [one for one in nodes if one > number])
