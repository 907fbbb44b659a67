"""The time zones of the system, or of the package `tzdata` where the system has none."""

import os
from contextlib import suppress
from datetime import tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from scout.base.refusal import Candidate, Refused
from scout.model.problems.request import NotFound
from scout.policy.nearest import rank_names

_LONGEST = 60
_UTC = "UTC"
_FOLDER = "zoneinfo/"


class SystemZones:
    """Reads zones from the disk; Python keeps those that were read."""

    def __init__(self, folder: Path = Path("/etc")) -> None:
        self._folder = folder

    def load(self, name: str) -> tzinfo:
        try:
            return ZoneInfo(name)
        except (ValueError, OSError, ZoneInfoNotFoundError):
            raise Refused(_build_refusal(name)) from None

    def find_local(self) -> str:
        """Return the zone that TZ names, else the one that the system's clock is set to, else UTC."""
        names = [os.environ.get("TZ", "").lstrip(":")]
        with suppress(OSError):
            names.append(str((self._folder / "localtime").readlink()))
        with suppress(OSError):
            names.append((self._folder / "timezone").read_text("utf-8", "replace").strip())
        zones = [name.rpartition(_FOLDER)[2] for name in names]
        return next((zone for zone in zones if zone and self._is_known(zone)), _UTC)

    def _is_known(self, name: str) -> bool:
        try:
            self.load(name)
        except Refused:
            return False
        return True


def _build_refusal(name: str) -> NotFound:
    """Return the refusal of an unknown zone, with those of that city and those of a similar name."""
    known = sorted(available_timezones())
    city = name.lower().replace(" ", "_")
    cities = [zone for zone in known if zone.lower().rpartition("/")[2] == city]
    near = tuple(dict.fromkeys([*cities, *rank_names(name[:_LONGEST], known, 3)]))[:3]
    candidates = tuple(Candidate(address=zone) for zone in near)
    return NotFound(noun="time zone", id=name[:_LONGEST], candidates=candidates)
