"""Traces and metrics of this daemon. The SDK is an extra of the package and is loaded once it is needed."""

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from scout import __version__
from scout.adapters.telemetry.target import ExportTarget, find_target
from scout.model.trace import ExportState, TelemetryStatus, TimedStep
from scout.settings.record import TelemetrySettings

if TYPE_CHECKING:
    from scout.adapters.telemetry.otlp import OtlpExporter

_LOG = logging.getLogger("scout.telemetry")
_INSTALL = f"{sys.executable} -m pip install 'scout-broker[otel]'"
ReadCounters = Callable[[], Mapping[str, float]]


def build_telemetry(environ: Mapping[str, str], settings: TelemetrySettings) -> "LazyTelemetry | None":
    """Return the exporter, if an endpoint is set in the environment or in the settings."""
    target = find_target(environ, settings.endpoint)
    return LazyTelemetry(target, bodies=settings.bodies) if target is not None else None


class LazyTelemetry:
    """Follows the port `Telemetry`. Nothing is loaded before the daemon answers requests."""

    def __init__(self, target: ExportTarget, *, bodies: bool) -> None:
        self._target = target
        self._bodies = bodies
        self._exporter: OtlpExporter | None = None
        self._problem = target.problem
        self._answering = asyncio.Event()
        self._read_counters: ReadCounters = dict[str, float]

    @property
    def bodies(self) -> bool:
        return self._bodies

    def begin(self, read_counters: ReadCounters) -> None:
        """Begin to export, with the counters of `/metrics`: the daemon answers requests."""
        self._read_counters = read_counters
        self._answering.set()

    async def open(self) -> None:
        await self._answering.wait()
        if not self._problem:
            self._exporter = await asyncio.to_thread(self._load)
        if self._problem:
            _LOG.warning("nothing is exported: %s", self._problem)

    def _load(self) -> "OtlpExporter | None":
        try:
            from scout.adapters.telemetry.otlp import OtlpExporter  # noqa: PLC0415 (large, and few need it)
        except ImportError:
            self._problem = f"the extra is not installed: {_INSTALL}"
            return None
        try:
            return OtlpExporter(self._target, __version__, self._read_counters)
        except Exception as error:  # noqa: BLE001 (a wrong variable must not stop the daemon)
            self._problem = f"the SDK refuses its settings: {error}"
            return None

    def send(self, steps: Sequence[TimedStep]) -> None:
        if self._exporter is not None:
            self._exporter.send(steps)

    def describe(self) -> TelemetryStatus:
        health = self._exporter.health if self._exporter is not None else None
        if self._problem:
            state, problem = ExportState.UNAVAILABLE, self._problem
        elif health is None or not health.tried:
            state, problem = ExportState.STARTING, ""
        else:
            state = ExportState.FAILING if health.failing is not None else ExportState.WORKING
            problem = health.failing or ""
        return TelemetryStatus(
            endpoint=self._target.shown,
            state=state,
            exported=health.exported if health is not None else 0,
            dropped=health.dropped if health is not None else 0,
            problem=problem,
            bodies=self._bodies,
        )

    async def close(self) -> None:
        if self._exporter is not None:
            await asyncio.to_thread(self._exporter.close)
