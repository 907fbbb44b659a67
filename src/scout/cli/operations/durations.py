"""Durations as people type them: 30m, 2h, 90s."""

from __future__ import annotations

import re
from typing import Any

import click

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
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
