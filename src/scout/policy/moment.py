"""Moments as people and programs write them: a time, a while ago, or the number of an event."""

import re

from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO = re.compile(
    r"(\d{1,9}(?:\.\d{1,3})?)\s*(s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?|w|weeks?)(?:\s+ago)?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[0-9]{1,18}")


def parse_moment(text: str, now: Time, field: str = "at") -> Time | int:
    """Return the time that a text means, or the number of an event as a plain integer."""
    words = text.strip()
    if _NUMBER.fullmatch(words):
        return int(words)
    if words.lower() == "now":
        return now
    if ago := _AGO.fullmatch(words):
        return now.plus(-float(ago[1]) * _UNITS[ago[2][0].lower()])
    try:
        return Time.parse(words)
    except Refused:
        expected = "expected a time with offset, a while such as '10 minutes ago', or the number of an event"
        raise Refused(BadRequest(problem=f"{expected}; got {words!r:.60}", field=field)) from None
