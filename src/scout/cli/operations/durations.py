"""Durations and deadlines as people type them: 30m, 2h, 90s, 18:00, tomorrow 9:00."""

from __future__ import annotations

import re
import time
from typing import Any

import click

from scout.cli.operations.moments import add_seconds, correct_typed, format_deadline, guess_moment

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_COMPLETE = re.compile(r"\d{4}-\d{2}-\d{2}T", re.IGNORECASE)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)(?:in|ours?|ays?|ec)?", re.IGNORECASE)


class Duration(click.ParamType[float]):
    """A number of seconds; a unit may follow the number."""

    name = "duration"

    def __init__(self, most: str = "") -> None:
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = _DURATION.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"expected a duration such as 30m, 2h or 90s, got {str(value)[:40]!r}", param, ctx)
        seconds = float(found[1]) * _UNITS[found[2].lower()]
        if self._most and seconds > Duration().convert(self._most, param, ctx):
            self.fail(f"the maximum is {self._most}, got {str(value)[:40]}", param, ctx)
        return seconds


class FutureTime(click.ParamType[str]):
    """A time to come: the end of a duration, or a time of day, a date or a complete time."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        typed = str(value).strip()
        if typed and not typed.isdigit() and _DURATION.fullmatch(typed):
            return add_seconds(Duration().convert(typed, param, ctx))
        found = format_deadline(typed)
        if not _COMPLETE.match(found):
            day = time.strftime("%Y-%m-%d", time.localtime(time.time() + 86_400))
            forms = f"2h, 18:00, tomorrow, 'tomorrow 9:00', {day} or {day}T18:00"
            typed_again = correct_typed(str(value), guess_moment(typed, ahead=True) or day)
            more = f"\ntry: {typed_again}" if typed_again else ""
            self.fail(f"expected {forms}, got {typed[:40]!r}{more}", param, ctx)
        return found
