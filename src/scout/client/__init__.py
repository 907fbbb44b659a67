"""Scout over HTTP: a client for every operation."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from scout.client.blocking import BlockingScout
    from scout.client.client import Scout

__all__ = ["BlockingScout", "Scout"]


def __getattr__(name: str) -> object:
    """Load the clients on first use: the command line needs only a small part of this package."""
    if name == "Scout":
        from scout.client.client import Scout  # noqa: PLC0415 (start-up time is part of the contract)

        return Scout
    if name == "BlockingScout":
        from scout.client.blocking import BlockingScout  # noqa: PLC0415 (the same)

        return BlockingScout
    raise AttributeError(f"module 'scout.client' has no attribute {name!r}")
