"""Moments as people type them: local times become times with offset; the daemon reads everything else."""

from __future__ import annotations

import re
import time

_CLOCK = re.compile(r"(?:(today|yesterday)\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}))?)?", re.IGNORECASE)
_DAY = 86_400
_LIMITS = (24, 60, 60)


def format_moment(text: str, now: float | None = None) -> str:
    """Return a local time as RFC 3339; a clock time is the last one that has passed. Other text stays."""
    words = text.strip()
    if (clock := _CLOCK.fullmatch(words)) and _is_clock(clock.groups()[1:]):
        return _find_clock(clock, time.time() if now is None else now)
    if (date := _DATE.fullmatch(words)) and _is_clock(date.groups()[3:]):
        return _format_utc(_to_seconds([int(one or 0) for one in date.groups()]))
    return text


def _is_clock(parts: tuple[str | None, ...]) -> bool:
    return all(int(one or 0) < limit for one, limit in zip(parts, _LIMITS, strict=True))


def _find_clock(found: re.Match[str], now: float) -> str:
    day, *parts = found.groups()
    clock = [int(one or 0) for one in parts]
    moment = _to_seconds([*time.localtime(now)[:3], *clock])
    if (day or "").lower() == "yesterday" or (day is None and moment > now):
        moment = _to_seconds([*time.localtime(now - _DAY)[:3], *clock])
    return _format_utc(moment)


def _to_seconds(parts: list[int]) -> float:
    year, month, day, hour, minute, second = parts
    return time.mktime((year, month, day, hour, minute, second, 0, 0, -1))


def _format_utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
