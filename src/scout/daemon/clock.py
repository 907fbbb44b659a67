"""Time and chance, as the world has them."""

import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from scout.base import ids
from scout.base.time import Time

_CHANCE = 10


class SystemClock:
    """The machine's clocks.

    For tests, SCOUT_TEST_CLOCK_FILE names a file with seconds to add to the wall clock, read at every look.
    """

    def __init__(self) -> None:
        self._moved_by = os.environ.get("SCOUT_TEST_CLOCK_FILE", "")

    def now(self) -> Time:
        moved = _seconds_in(self._moved_by) if self._moved_by else 0
        return Time(time.time_ns() // 1000 + moved * 1_000_000)

    def monotonic(self) -> float:
        return time.monotonic()


def _seconds_in(file: str) -> int:
    """The whole seconds that the file says; none while it is not there or half written."""
    try:
        return int(Path(file).read_text("ascii"))
    except (OSError, ValueError):
        return 0


class SystemIds:
    """Ids by time and chance; secrets that a log filter and a leak scanner recognise.

    Within one millisecond ids count up from a random number, so that they are in order, and so that
    asking the system for chance is not the dearest part of a message.
    """

    def __init__(self) -> None:
        self._moment = 0
        self._series: Iterator[str] = iter(())

    def mint(self, prefix: str) -> str:
        moment = time.time_ns() // 1_000_000
        if moment > self._moment:
            self._begin(moment)
        text = next(self._series, None)
        if text is None:
            self._begin(self._moment + 1)
            text = next(self._series)
        return f"{prefix}_{text}"

    def _begin(self, moment: int) -> None:
        """The ids of a millisecond; of the next one where those of this are used up."""
        self._moment = moment
        self._series = ids.series(moment, secrets.token_bytes(_CHANCE))

    def secret(self) -> str:
        return f"sct_{secrets.token_urlsafe(32)}"
