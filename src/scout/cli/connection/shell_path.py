"""Programs that this shell finds and the daemon does not: a daemon keeps the PATH it was started with."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def explain_path(told: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> str:
    """One sentence about a harness or a refusal that names a `program`; empty when a restart cannot help."""
    program = str(told.get("program") or "")
    if not program or environ.get("SCOUT_URL"):  # that daemon has another shell
        return ""
    import shutil  # costs more than the rest of a session list

    found = shutil.which(program, path=environ.get("PATH"))
    return f"your shell has {found}, the daemon does not: scout restart" if found else ""
