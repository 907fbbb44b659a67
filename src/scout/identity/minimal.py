"""The shortest address that still resolves to the same instance."""

from collections.abc import Callable, Iterable

from scout.identity.address import QUALIFIERS, Address


def shorten_address(
    canonical: Address, means_the_same: Callable[[Address], bool], aliases: Iterable[str] = ()
) -> str:
    """Return the address without unneeded qualifiers (dropped in canonical order), or a shorter alias.

    `means_the_same` resolves an address for a caller outside every project and node; `aliases` are
    the names of aliases that resolve to the instance.
    """
    address = canonical
    for dimension in QUALIFIERS:
        if getattr(address, dimension) is not None and means_the_same(address.without(dimension)):
            address = address.without(dimension)
    texts = (f"@{alias}" for alias in sorted(aliases))
    return min((address.canonical, *texts), key=len)
