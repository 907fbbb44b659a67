"""The seed of a run: fixed, so that two runs draw the same; SCOUT_SEED changes it, as `./dev explore` does."""

import os

__all__ = ["run_seed"]

_FIXED = 20261116


def run_seed() -> int:
    """The seed for tests that draw their own random numbers."""
    return int(os.environ.get("SCOUT_SEED", _FIXED))
