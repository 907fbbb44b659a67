"""Which envelopes share a bundle: one signature and one round trip to the server for all of them."""

from collections.abc import Sequence

MOST = 100  # envelopes of a bundle, so that the receiver takes each bundle in a few commits
SIZE = 250_000  # bytes of its envelopes; a larger envelope travels alone


def split_into_bundles(sizes: Sequence[int]) -> list[range]:
    """Return the places of the envelopes of each bundle, in order; `sizes` are those of the envelopes."""
    bundles: list[range] = []
    start = total = 0
    for place, size in enumerate(sizes):
        if place > start and (total + size > SIZE or place - start == MOST):
            bundles.append(range(start, place))
            start, total = place, 0
        total += size
    return [*bundles, range(start, len(sizes))] if sizes else []
