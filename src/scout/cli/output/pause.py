"""How a pause is shown to a person."""

from __future__ import annotations

from scout.cli.connection.text import age, out, paint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def pause_line(paused: dict[str, Any]) -> str:
    """One line for every surface: nothing starts, since when, why, and how it ends."""
    why = f", {paused['reason']}" if paused.get("reason") else ""
    return f"{paint('paused', 'yellow')} ({age(paused['since'])}{why}): nothing starts until scout resume"


def _show_pause(told: dict[str, Any]) -> None:
    out(pause_line(told["paused"]) if told.get("paused") else f"{paint('resumed', 'green')}: turns start")
    out(f"turns that run: {told['running']}; that wait: {told['waiting']}")
    for flight_id in told.get("interrupted") or ():
        out(f"interrupted {flight_id}; again: scout flight retry {flight_id}")


PAUSE: dict[str, Callable[[Any], None]] = {"pause": _show_pause, "resume": _show_pause}
