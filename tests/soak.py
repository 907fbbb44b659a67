"""Long counts, which only `./dev soak` runs: what each test counted is kept in one file of the repository."""

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from tests.seeds import run_seed

__all__ = ["RESULT", "Soaked", "is_soak", "store_counts"]

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "bench" / "soak.json"


class Soaked(Protocol):
    """Called by a soak test that passed, with what it counted."""

    def __call__(self, **counts: int) -> None: ...


def is_soak() -> bool:
    return bool(os.environ.get("SCOUT_SOAK"))


def store_counts(test: str, counts: dict[str, int]) -> None:
    """Keep what a test counted, with the commit and the seed; tests of other commits keep theirs."""
    found: dict[str, object] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    day = datetime.now(UTC).date().isoformat()
    found[test] = {"commit": commit, "day": day, "seed": run_seed(), **counts}
    RESULT.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
