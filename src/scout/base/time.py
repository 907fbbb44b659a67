"""Points in time: integer microseconds inside, RFC 3339 UTC with milliseconds on the wire.

This module reads no clock: pure code takes `now` as an argument.
"""

from datetime import UTC, datetime, timedelta

from scout.base.refusal import BadRequest, Refused

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_LAST = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // _MICRO


class Time(int):
    """Microseconds since 1970-01-01T00:00:00Z."""

    @classmethod
    def parse(cls, text: object) -> "Time":
        """Read RFC 3339 text with an offset, or the stored integer."""
        if isinstance(text, int) and text.__class__ is not bool and 0 <= text <= _LAST:
            return cls(text)
        try:
            moment = datetime.fromisoformat(text.upper()) if isinstance(text, str) else None
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            raise Refused(BadRequest(problem=f"expected an RFC 3339 time with offset, got {text!r:.60}"))
        micros = (moment - _EPOCH) // _MICRO
        if not 0 <= micros <= _LAST:
            raise Refused(BadRequest(problem=f"expected a time from 1970 to 9999, got {text!r:.60}"))
        return cls(micros)

    def plus(self, seconds: float) -> "Time":
        """Return the time this many seconds later (or earlier, if negative), limited to 1970 to 9999."""
        step = seconds * 1_000_000
        if 0 <= self + step <= _LAST:
            return Time(self + round(step))
        return Time(_LAST if step > 0 else 0)

    def since(self, earlier: int) -> float:
        """Return the seconds from `earlier` to this time."""
        return (self - earlier) / 1_000_000

    def __str__(self) -> str:
        moment = _EPOCH + timedelta(microseconds=int(self))
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
