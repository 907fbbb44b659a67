"""When quiet hours end. The time zone comes in as an argument, because its rules are read from the disk."""

from datetime import UTC, datetime, timedelta, tzinfo

from scout.base.time import Time
from scout.model.people.user import QuietHours, count_quiet_minutes


def find_quiet_end(quiet: QuietHours, zone: tzinfo, now: Time) -> Time | None:
    """Return when quiet hours in their zone end; None outside of them.

    On a day with a change of the clock the end is the wall-clock time that was set.
    """
    local = datetime.fromtimestamp(int(now) / 1_000_000, zone)
    left = count_quiet_minutes(quiet, local.hour * 60 + local.minute)
    if not left:
        return None
    # Wall-clock arithmetic: the offset of the result is the one at that time.
    end = local.replace(second=0, microsecond=0) + timedelta(minutes=left)
    return Time(round(end.astimezone(UTC).timestamp()) * 1_000_000)
