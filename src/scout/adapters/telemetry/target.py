"""Where traces and metrics go: the standard variables of OpenTelemetry, then Scout's own setting."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

_BASE = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROTOCOLS = ("http/protobuf", "")


class ExportTarget(NamedTuple):
    """The endpoint of each signal; none: it is not sent. `problem`: why nothing can be sent there."""

    traces: str | None
    metrics: str | None
    problem: str = ""

    @property
    def shown(self) -> str:
        """The endpoint without a user and password."""
        found = urlsplit(self.traces or self.metrics or "")
        return urlunsplit(found._replace(netloc=found.netloc.rpartition("@")[2]))


def find_target(environ: Mapping[str, str], setting: str | None) -> ExportTarget | None:
    """Return where to send to; None if nobody wants anything sent."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    base = environ.get(_BASE, "").strip() or setting
    traces, metrics = _find_endpoint(environ, base, "traces"), _find_endpoint(environ, base, "metrics")
    if traces is None and metrics is None:
        return None
    wanted = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "").strip()
    problem = "" if wanted in _PROTOCOLS else f"Scout speaks http/protobuf and not {wanted}"
    return ExportTarget(traces, metrics, problem)


def _find_endpoint(environ: Mapping[str, str], base: str | None, signal: str) -> str | None:
    if environ.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip() == "none":
        return None
    own = environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "").strip()
    return own or (f"{base.rstrip('/')}/v1/{signal}" if base else None)
