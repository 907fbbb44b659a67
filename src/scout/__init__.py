"""Scout: a local-first broker that gives every coding agent a name and loses no work."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from scout.client import BlockingScout, Scout

__all__ = ["BlockingScout", "Scout", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """The clients are loaded when they are asked for: importing a part of Scout stays cheap."""
    if name in ("BlockingScout", "Scout"):
        import scout.client  # noqa: PLC0415 (start-up time is part of the contract)

        return getattr(scout.client, name)
    raise AttributeError(f"module 'scout' has no attribute {name!r}")
