"""The system's clocks and random ids."""

import os
import secrets
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from scout.base import ids
from scout.base.time import Time

_RANDOM_BYTES = 10
_MARGIN = 1000  # milliseconds: a large transaction gives out the ids of several


class SystemClock:
    """The machine's clocks.

    For tests, SCOUT_TEST_CLOCK_FILE names a file with seconds to add to the wall clock; it is read each time.
    """

    def __init__(self) -> None:
        self._moved_by = os.environ.get("SCOUT_TEST_CLOCK_FILE", "")

    def now(self) -> Time:
        moved = _read_seconds(self._moved_by) if self._moved_by else 0
        return Time(time.time_ns() // 1000 + moved * 1_000_000)

    def monotonic(self) -> float:
        return time.monotonic()


def _read_seconds(file: str) -> int:
    """Return the seconds in a file; 0 while the file is missing or half written."""
    try:
        return int(Path(file).read_text("ascii"))
    except (OSError, ValueError):
        return 0


class SystemIds:
    """Ids from the time and random bits; secrets that a log filter and a leak scanner recognise.

    Within one millisecond ids count up from a random number. They are in order, and the system is not asked
    for random bytes for each of them. While the clock is behind the last id, they count on from that.
    """

    def __init__(self, clock: SystemClock | None = None) -> None:
        self._now = (clock or SystemClock()).now
        self._moment = 0
        self._series: Iterator[str] = iter(())

    def continue_after(self, ident: str) -> None:
        self._moment = ids.read_milliseconds(ident) + _MARGIN
        self._series = chain.from_iterable(self._generate())

    def series(self) -> Iterator[str]:
        moment = int(self._now()) // 1000
        if moment > self._moment:
            self._moment = moment
            self._series = chain.from_iterable(self._generate())
        return self._series

    def _generate(self) -> Iterator[Iterator[str]]:
        """Yield the ids of each millisecond; when they are used up, those of the next."""
        while True:
            yield ids.make_id_series(self._moment, os.urandom(_RANDOM_BYTES))
            self._moment += 1

    def secret(self) -> str:
        return f"sct_{secrets.token_urlsafe(32)}"
