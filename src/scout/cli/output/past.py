"""Output about the past: the moment that a result shows, and the activity over time."""

from __future__ import annotations

from scout.cli.connection.text import format_local_time, format_table, get_columns, paint, print_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_BAR = "▏▎▍▌▋▊▉█"
_WIDEST = 40


def show_moment(moment: dict[str, Any]) -> None:
    """Print that what follows is the past, and which moment of it."""
    seconds = str(moment["at"])[17:19]
    says = f"As it was at {format_local_time(moment['at'])}:{seconds}, event {moment['seq']}"
    print_out(paint(says, "yellow"))


def _show_activity(told: dict[str, Any]) -> None:
    """Print one line for each part: its beginning, its events, and a bar."""
    first, last = told["first"], told["last"]
    print_out(
        f"history: {format_local_time(first['at'])} (event {first['seq']}) to "
        f"{format_local_time(last['at'])} (event {last['seq']})"
    )
    if last["seq"] < told["events"]:
        print_out(f"still reading: {last['seq']} of {told['events']} events")
    begin, end = _to_seconds(told["from"]), _to_seconds(told["to"])
    counts, most = told["counts"], max(told["counts"]) or 1
    width = min(max((get_columns() or 80) - 30, 8), _WIDEST)
    step = (end - begin) / len(counts)
    rows = [
        [_format_begin(begin + step * part, step), str(count), _draw_bar(count / most * width)]
        for part, count in enumerate(counts)
    ]
    print_out(format_table(["from", "events", ""], rows))


def _to_seconds(moment: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(moment).timestamp()


def _format_begin(moment: float, step: float) -> str:
    import time
    from datetime import UTC, datetime

    shown = format_local_time(datetime.fromtimestamp(moment, UTC).isoformat())
    return shown if step >= 60 else f"{shown}:{time.localtime(moment).tm_sec:02d}"


def _draw_bar(length: float) -> str:
    eighths = round(length * 8)
    return _BAR[-1] * (eighths // 8) + (_BAR[eighths % 8 - 1] if eighths % 8 else "")


PRINTERS: dict[str, Callable[[Any], None]] = {"activity": _show_activity}
