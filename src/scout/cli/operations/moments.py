"""Moments as people type them: local times become times with offset; the daemon reads everything else."""

from __future__ import annotations

import re
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from scout.cli.connection.refusal import RefusalError

_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_CLOCK = re.compile(r"(?:(today|yesterday|tomorrow)\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}))?)?", re.IGNORECASE)
_LIMITS = (24, 60, 60)
# What people type for a while, and the number of days it has; months and years are no exact time.
_SPANS = {"day": 1, "week": 7, "month": 30, "year": 365}
_SPAN = re.compile(
    r"(?:the\s+)?(last|past|next|in|\d{1,4})\s+(?:(\d{1,4})\s+)?(day|week|month|year)s?(?:\s+ago)?"
)


def format_moment(text: str, now: float | None = None) -> str:
    """Return a local time as RFC 3339; a clock time is the last one that has passed. Other text stays.

    A day without a time of day means its start.
    """
    words = text.strip()
    moment = time.time() if now is None else now
    if words.lower() in _DAYS:
        return _format_utc(_find_day(words, moment))
    if (clock := _CLOCK.fullmatch(words)) and _is_clock(clock.groups()[1:]):
        return _find_clock(clock, moment)
    if (date := _DATE.fullmatch(words)) and _is_clock(date.groups()[3:]):
        seconds = _to_seconds([int(one or 0) for one in date.groups()])
        return text if seconds is None else _format_utc(seconds)
    return text


def format_deadline(text: str, now: float | None = None) -> str:
    """Return a local time as RFC 3339; a clock time is the next one. Other text stays.

    `today` means until the end of today; any other day without a time of day means its start.
    """
    words, moment = text.strip(), time.time() if now is None else now
    if words.lower() == "today":
        return _format_utc(_find_day("tomorrow", moment))
    clock = _CLOCK.fullmatch(words)
    if clock and clock[1] is None and _is_clock(clock.groups()[1:]):
        today = _find_time(clock, "today", moment)
        return _format_utc(today if today > moment else _find_time(clock, "tomorrow", moment))
    return format_moment(text, moment)


def read_moment(text: str, option: str, operation: str) -> str:
    """Return a moment for the daemon; refuse a text that the daemon would not read either."""
    found = format_moment(text)
    if _parse(found, 0) is None:
        raise _build_refusal(text, option, operation, " or the number of an event")
    return found


def read_time(text: str, option: str, operation: str) -> str:
    """Return a complete time, also for a while ago; refuse everything else."""
    now = time.time()
    found = None if text.strip().isdecimal() else _parse(format_moment(text, now), now)
    if found is None:
        raise _build_refusal(text, option, operation)
    return str(found)


def _parse(text: str, now: float) -> object | None:
    """Return the moment as the daemon reads it; None if it refuses the text."""
    from scout.base.refusal import Refused
    from scout.base.time import Time
    from scout.policy.moment import parse_moment

    try:
        return parse_moment(text, Time(int(now * 1_000_000)))
    except Refused:
        return None


def _build_refusal(text: str, option: str, operation: str, more: str = "") -> RefusalError:
    """Return the refusal of a text: the forms with today's dates, and the typed command with a moment."""
    from scout.cli.connection.refusal import RefusalError, build_remedy

    day = time.strftime("%Y-%m-%d", time.localtime(_find_day("yesterday", time.time())))
    forms = f"yesterday, {day}, '{day} 14:05', 14:05, '2 hours ago'{more}"
    typed = correct_typed(text, guess_moment(text) or day)
    return RefusalError.of(
        "bad_request",
        f"expected a moment such as {forms}; got {text[:60]!r} (at --{option})",
        field=option,
        remedies=[build_remedy(operation, typed)] if typed else [],
    )


def guess_moment(text: str, ahead: bool = False) -> str:
    """Return what a text such as 'last week' or 'in 2 days' probably means; else empty."""
    found = _SPAN.fullmatch(" ".join(text.lower().split()))
    if found is None or (found[1] in ("next", "in")) != ahead:
        return ""
    count = int(found[2] or (found[1] if found[1].isdecimal() else 1)) * _SPANS[found[3]]
    if not ahead:
        return f"{count} day{'' if count == 1 else 's'} ago"
    year, month, day = time.localtime()[:3]
    return time.strftime(
        "%Y-%m-%d", time.localtime(time.mktime((year, month, day + count, 0, 0, 0, 0, 0, -1)))
    )


def correct_typed(given: str, other: str, argv: Sequence[str] | None = None) -> str:
    """Return the typed command with another value for an option; empty if the value was not typed.

    A corrected command never carries a consent that was given to something else.
    """
    import shlex

    words = list(sys.argv[1:] if argv is None else argv)
    typed = [f"{word[: -len(given)]}{other}" if _is_value(word, given) else word for word in words]
    if not given or typed == words:
        return ""
    return shlex.join(["scout", *(word for word in typed if word not in ("--yes", "-y"))])


def _is_value(word: str, given: str) -> bool:
    return word == given or (word[:2] == "--" and word.endswith(f"={given}"))


def add_seconds(seconds: float, now: float | None = None) -> str:
    """Return the time after so many seconds, as RFC 3339."""
    return _format_utc((time.time() if now is None else now) + seconds)


def _is_clock(parts: tuple[str | None, ...]) -> bool:
    return all(int(one or 0) < limit for one, limit in zip(parts, _LIMITS, strict=True))


def _find_clock(found: re.Match[str], now: float) -> str:
    day = (found[1] or "today").lower()
    moment = _find_time(found, day, now)
    if not found[1] and moment > now:
        moment = _find_time(found, "yesterday", now)
    return _format_utc(moment)


def _find_time(found: re.Match[str], day: str, now: float) -> float:
    """Return a clock time on a day near the local day of `now`."""
    return _find_day(day, now, [int(one or 0) for one in found.groups()[1:]])


def _find_day(word: str, now: float, clock: Sequence[int] = (0, 0, 0)) -> float:
    year, month, day = time.localtime(now)[:3]
    hour, minute, second = clock
    return time.mktime((year, month, day + _DAYS[word.lower()], hour, minute, second, 0, 0, -1))


def _to_seconds(parts: list[int]) -> float | None:
    """Return a local time in seconds; None if the calendar has no such day, or before 1970."""
    year, month, day, hour, minute, second = parts
    try:
        moment = time.mktime((year, month, day, hour, minute, second, 0, 0, -1))
    except (OverflowError, ValueError):
        return None
    return moment if moment >= 0 and time.localtime(moment)[:3] == (year, month, day) else None


def _format_utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
