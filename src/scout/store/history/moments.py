"""Moments: the last event at or before a time, and how much happened between two times."""

import itertools
import sqlite3
from collections.abc import Sequence

from scout.base.time import Time
from scout.store.history.feed import get_tenth
from scout.store.log import read_events

_NEAR = 1000  # maximum events of a tenth of a second that are compared with a time


def find_seq(connection: sqlite3.Connection, time: Time) -> int:
    """Return the number of the last event at or before a time, to the millisecond; 0 if there is none.

    Where the clock was set back, the later events of the same time are meant.
    """
    millisecond = time // 1000
    before = _find_tenth(connection, millisecond // 100)
    last = _find_tenth(connection, get_tenth(time))
    first = max(before, last - _NEAR)
    near = read_events(connection, first, last - first)
    return max((event.seq for event in near if event.time // 1000 <= millisecond), default=before)


def _find_tenth(connection: sqlite3.Connection, tenth: int) -> int:
    query = "SELECT seq FROM history_moments WHERE tenth <= ? ORDER BY tenth DESC LIMIT 1"
    found = connection.execute(query, (tenth,)).fetchone()
    return int(found[0]) if found else 0


def find_range(connection: sqlite3.Connection) -> tuple[Time, Time]:
    """Return the first and the last time of the history, to a tenth of a second."""
    first, last = connection.execute("SELECT min(tenth), max(tenth) FROM history_moments").fetchone()
    return Time((first or 0) * 100_000), Time((last or 0) * 100_000)


def read_time(connection: sqlite3.Connection, seq: int) -> Time | None:
    """Return the time of an event."""
    return next((event.time for event in read_events(connection, seq - 1, 1)), None)


def count_events(connection: sqlite3.Connection, times: Sequence[Time]) -> list[int]:
    """Return how many events happened from each time to the next one, to a tenth of a second."""
    tenths = [get_tenth(time) for time in times]
    places = [_find_tenth(connection, tenth) for tenth in (tenths[0] - 1, *tenths[1:])]
    return [max(later - earlier, 0) for earlier, later in itertools.pairwise(places)]
