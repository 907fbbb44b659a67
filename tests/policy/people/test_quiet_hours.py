"""Quiet hours end at the wall-clock time that was set, also on the days on which clocks change."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from scout.base.time import Time
from scout.model.people.user import QuietHours
from scout.policy.people.quiet_hours import find_quiet_end

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = QuietHours(start=22 * 60, end=7 * 60, time_zone="Europe/Berlin")


def at(text: str) -> Time:
    return Time(round(datetime.fromisoformat(text).timestamp() * 1_000_000))


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-11-17T21:59:59+01:00", None),
        ("2026-11-17T22:00:00+01:00", "2026-11-18T07:00:00+01:00"),
        ("2026-11-18T06:59:30+01:00", "2026-11-18T07:00:00+01:00"),
        ("2026-11-18T07:00:00+01:00", None),
        ("2026-03-28T23:00:00+01:00", "2026-03-29T07:00:00+02:00"),
        ("2026-10-24T23:00:00+02:00", "2026-10-25T07:00:00+01:00"),
    ],
)
def test_quiet_hours_end(now: str, end: str | None) -> None:
    assert find_quiet_end(NIGHT, BERLIN, at(now)) == (at(end) if end else None)
