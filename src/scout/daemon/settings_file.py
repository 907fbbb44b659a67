"""The settings file of a running daemon: what has changed in it, and what of that can be used at once."""

from scout.broker.transaction.services import LiveSettings
from scout.settings.load import load
from scout.settings.record import SETTINGS, values_of


class SettingsFile:
    """The settings as the daemon found them when it started, and as it read them last."""

    def __init__(self) -> None:
        self._started = self._last = values_of(load().settings)

    def read(self) -> LiveSettings:
        """The settings as they are now; a file that is wrong is refused and changes nothing."""
        settings = load().settings
        before, self._last = self._last, values_of(settings)
        return LiveSettings(
            rules=settings.rules,
            roots=settings.roots,
            default_harness=settings.harness,
            changed=self._different(before, needs_restart=False),
            needs_restart=self._different(self._started, needs_restart=True),
        )

    def _different(self, before: dict[str, object], *, needs_restart: bool) -> tuple[str, ...]:
        return tuple(
            key
            for key, row in SETTINGS.items()
            if row.needs_restart is needs_restart and self._last[key] != before[key]
        )
