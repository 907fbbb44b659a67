"""Suggestions for mistyped names, found by index keys instead of a scan."""

import difflib
from collections.abc import Iterable

_LENGTH = 48  # longer names are compared by this prefix
_LIKENESS = 0.6


def build_keys(name: str) -> frozenset[str]:
    """Return the name and every variant with one letter removed.

    Two names that differ by one inserted, removed, replaced or swapped letter share at least one key.
    """
    start = name[:_LENGTH]
    return frozenset((start, *(start[:index] + start[index + 1 :] for index in range(len(start)))))


def rank_names(name: str, found: Iterable[str], limit: int) -> tuple[str, ...]:
    """Return the found names, nearest first; dissimilar names are left out."""
    likeness = {other: difflib.SequenceMatcher(None, name, other).ratio() for other in found}
    near = (other for other, ratio in likeness.items() if ratio >= _LIKENESS or other.startswith(name))
    return tuple(sorted(near, key=lambda other: (-likeness[other], other))[:limit])
