"""Whether this runs inside a harness session, where the operator's credential is never used."""

from __future__ import annotations

TYPE_CHECKING = False  # the command line asks this on its warm path, where `typing` is too slow
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SESSION_MARKS", "in_session"]

# Set by Scout for what it starts, and by harnesses for the programs that they run.
SESSION_MARKS = (
    "SCOUT_SESSION",
    "SCOUT_FLIGHT",
    "SCOUT_AGENT",
    "CLAUDECODE",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "OPENCODE",
)


def in_session(environ: Mapping[str, str]) -> str | None:
    """The mark of the harness session this runs in, if it runs in one."""
    return next((mark for mark in SESSION_MARKS if environ.get(mark)), None)
