"""Where traces are sent, if a person wants them somewhere."""

from collections.abc import Sequence
from typing import Protocol

from scout.model.trace import TelemetryStatus, TimedStep


class Telemetry(Protocol):
    """Sends traces and metrics to a system outside of Scout. `bodies`: traces may hold what was said."""

    @property
    def bodies(self) -> bool: ...

    async def open(self) -> None:
        """Load what is needed; called once, before anything is sent. A failure is kept for `describe`."""
        ...

    def send(self, steps: Sequence[TimedStep]) -> None:
        """Queue the steps of one flight. It never waits: what does not fit is dropped and counted."""
        ...

    def describe(self) -> TelemetryStatus:
        """Return where it sends to, and whether that works."""
        ...

    async def close(self) -> None:
        """Send what is queued, for a moment at most, and stop."""
        ...
