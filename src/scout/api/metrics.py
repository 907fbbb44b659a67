"""Metrics for Prometheus: counts only, never a name."""

import re
from collections.abc import Mapping

from scout.api.asgi import Response

_NAME = re.compile(r"[^a-zA-Z0-9_:]")
_HEADERS = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)


def render_metrics(counters: Mapping[str, float]) -> Response:
    """Return the counters in the text format; names that end in `_total` are counters, others gauges."""
    lines = [line for name, value in sorted(counters.items()) for line in _render_metric(name, value)]
    return Response("".join(lines).encode(), headers=_HEADERS)


def _render_metric(name: str, value: float) -> list[str]:
    full = f"scout_{_NAME.sub('_', name.removeprefix('scout_'))}"
    kind = "counter" if full.endswith("_total") else "gauge"
    return [f"# TYPE {full} {kind}\n", f"{full} {value:.15g}\n"]
