"""Quiet hours in their time zone: reading them, and when they end."""

import functools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.people.user import ConnectorKey, KeyState, QuietHours, count_quiet_minutes, read_quiet_hours
from scout.store.ledger import LAST, Ledger

_OFF = "off"
_MANY = 100_000


def read_hours(text: str, time_zone: str) -> QuietHours | None:
    """Return the quiet hours of a text such as `22:00-07:00`; None for `off`."""
    if text.strip().lower() == _OFF:
        return None
    return read_quiet_hours(text, load_zone(time_zone).key)


@functools.cache
def load_zone(name: str) -> ZoneInfo:
    """Return a time zone by its name, or refuse. It is read from disk once: call it first in a thread."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a name may be no path, or a folder
        problem = f"'{name:.60}' is not a time zone: use a name such as Europe/Berlin"
        raise Refused(BadRequest(problem=problem, field="timeZone")) from None


def load_zones(ledger: Ledger) -> None:
    """Read the zones of all accounts, so that `find_quiet_end` does not touch the disk."""
    for key in ledger.many(ConnectorKey, "keys_all", before=LAST, limit=_MANY):
        if key.quiet is not None and key.state is KeyState.ACTIVE:
            load_zone(key.quiet.time_zone)


def find_quiet_end(key: ConnectorKey, now: Time) -> Time | None:
    """Return when the quiet hours of an account end; None if it is not quiet there now.

    On a day with a change of the clock the end is the wall-clock time that was set.
    """
    if key.quiet is None:
        return None
    zone = load_zone(key.quiet.time_zone)
    local = datetime.fromtimestamp(int(now) / 1_000_000, zone)
    left = count_quiet_minutes(key.quiet, local.hour * 60 + local.minute)
    if not left:
        return None
    # Wall-clock arithmetic: the offset of the result is the one at that time.
    end = local.replace(second=0, microsecond=0) + timedelta(minutes=left)
    return Time(round(end.astimezone(UTC).timestamp()) * 1_000_000)
