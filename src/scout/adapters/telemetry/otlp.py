"""Traces and metrics through the SDK of OpenTelemetry. Loading this module needs the extra `otel`.

The SDK queues and sends in its own threads. An endpoint that is away costs nothing else: the queue is
bounded, and the SDK's own complaints are kept back. One notice says that exports fail, another that they
work again.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from scout.adapters.telemetry.target import ExportTarget
from scout.model.trace import TimedStep, TraceContext, TraceSide

_LOG = logging.getLogger("scout.telemetry")
_QUEUE = 2048  # steps that wait to be sent, unless OTEL_BSP_MAX_QUEUE_SIZE says otherwise
_LAST_MOMENT = 2.0  # seconds
_KINDS = {
    TraceSide.INTERNAL: SpanKind.INTERNAL,
    TraceSide.CLIENT: SpanKind.CLIENT,
    TraceSide.SERVER: SpanKind.SERVER,
}
ReadCounters = Callable[[], Mapping[str, float]]


class ExportHealth:
    """Whether exports arrive, and how many steps did. It is changed by the threads of the SDK."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self.exported = 0
        self.dropped = 0
        self.failing: str | None = None
        self.tried = False
        self.last_words = ""

    def note(self, arrived: bool, steps: int = 0) -> None:
        """Record how one export ended; the first failure and the next success are logged."""
        with self._lock:
            self.tried = True
            before = self.failing
            self.exported += steps if arrived else 0
            self.dropped += 0 if arrived else steps
            self.failing = None if arrived else self.last_words or "the endpoint does not answer"
        if before is None and self.failing is not None:
            _LOG.warning("exports to %s fail: %s; Scout keeps trying", self._endpoint, self.failing)
        elif before is not None and self.failing is None:
            _LOG.info("exports to %s work again", self._endpoint)

    def drop(self, steps: int) -> None:
        with self._lock:
            self.dropped += steps


class _KeepWords(logging.Handler):
    """Keeps the last complaint of the SDK, instead of a line in the log for each export."""

    def __init__(self, health: ExportHealth) -> None:
        super().__init__(logging.WARNING)
        self._health = health

    def emit(self, record: logging.LogRecord) -> None:
        self._health.last_words = " ".join(record.getMessage().split())[:300]


class _WatchedSpans(SpanExporter):
    def __init__(self, exporter: SpanExporter, health: ExportHealth) -> None:
        self._exporter = exporter
        self._health = health
        self.done = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        self._health.note(result is SpanExportResult.SUCCESS, len(spans))
        self.done += len(spans)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class _WatchedMetrics(MetricExporter):
    def __init__(self, exporter: OTLPMetricExporter, health: ExportHealth) -> None:
        super().__init__()
        self._exporter = exporter
        self._health = health

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object
    ) -> MetricExportResult:
        result = self._exporter.export(metrics_data, timeout_millis)  # pyright: ignore[reportUnknownMemberType] (the SDK does not type its keywords)
        self._health.note(result is MetricExportResult.SUCCESS)
        return result

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        self._exporter.shutdown()  # pyright: ignore[reportUnknownMemberType] (as above)


class _GivenIds(IdGenerator):
    """Ids that are derived from those of records, and not drawn."""

    def __init__(self) -> None:
        self.next = TraceContext("", "")

    def generate_span_id(self) -> int:
        return int(self.next.step_id, 16)

    def generate_trace_id(self) -> int:
        return int(self.next.trace_id, 16)


class OtlpExporter:
    """Sends steps as spans, and counters as metrics. One thread at a time calls `send`."""

    def __init__(self, target: ExportTarget, version: str, read_counters: ReadCounters) -> None:
        self.health = ExportHealth(target.shown)
        complaints = logging.getLogger("opentelemetry")
        complaints.propagate = False
        complaints.handlers[:] = [_KeepWords(self.health)]
        resource = Resource.create(_name_service(version))
        self._ids = _GivenIds()
        self._sent = 0
        self._most = int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE") or _QUEUE)
        self._spans: _WatchedSpans | None = None
        self._traces = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        self._tracer = self._traces.get_tracer("scout", version)
        self._metrics: MeterProvider | None = None
        if target.traces is not None:
            self._spans = _WatchedSpans(OTLPSpanExporter(endpoint=target.traces), self.health)
            self._traces.add_span_processor(BatchSpanProcessor(self._spans))
        if target.metrics is not None:
            exporter = _WatchedMetrics(OTLPMetricExporter(endpoint=target.metrics), self.health)
            reader = PeriodicExportingMetricReader(exporter)
            self._metrics = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
            _observe(self._metrics, version, read_counters)

    def send(self, steps: Sequence[TimedStep]) -> None:
        """Queue the steps of one flight; the sampler decides about the first, and with it about all."""
        if self._spans is None:
            return
        if self._sent - self._spans.done + len(steps) > self._most:
            self.health.drop(len(steps))
            return
        for step in steps:
            if not self._send_step(step):
                break
            self._sent += 1

    def _send_step(self, step: TimedStep) -> bool:
        self._ids.next = step.context
        attributes = {**step.attributes, "error.type": step.error} if step.error else step.attributes
        span = self._tracer.start_span(
            step.name,
            _build_parent(step.parent),
            _KINDS[step.side],
            attributes,
            start_time=step.start * 1000,
        )
        if step.error:
            span.set_status(Status(StatusCode.ERROR, step.problem or step.error))
        span.end(step.end * 1000)
        return span.is_recording() or span.get_span_context().trace_flags.sampled

    def close(self) -> None:
        """Send what is queued, for a moment at most. An endpoint that is away is not waited for."""
        if self.health.failing is not None and self._spans is not None:
            self._spans.shutdown()
        # A thread that does not end in time is left alone: the process ends without it.
        ending = threading.Thread(target=self._shut_down, name="telemetry-close", daemon=True)
        ending.start()
        ending.join(_LAST_MOMENT)

    def _shut_down(self) -> None:
        self._traces.shutdown()
        if self._metrics is not None:
            self._metrics.shutdown(int(_LAST_MOMENT * 1000))


def _build_parent(parent: TraceContext | None) -> Context:
    if parent is None:
        return Context()
    flags = TraceFlags(TraceFlags.SAMPLED if parent.sampled else TraceFlags.DEFAULT)
    trace_id, span_id = int(parent.trace_id, 16), int(parent.step_id, 16)
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)
    return set_span_in_context(NonRecordingSpan(context), Context())


def _name_service(version: str) -> dict[str, str]:
    """Return the name of the service, unless the environment gives another one."""
    named = "OTEL_SERVICE_NAME" in os.environ
    named = named or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return {"service.version": version} if named else {"service.name": "scout", "service.version": version}


def _observe(provider: MeterProvider, version: str, read: ReadCounters) -> None:
    """Offer each counter of `/metrics` under the same name, as OpenTelemetry writes names."""
    meter = provider.get_meter("scout", version)
    for name in read():
        watch = _build_callback(name, read)
        if name.endswith("_total"):
            meter.create_observable_counter(f"scout.{name.removesuffix('_total')}", [watch])
        else:
            meter.create_observable_gauge(f"scout.{name}", [watch])


def _build_callback(name: str, read: ReadCounters) -> Callable[[CallbackOptions], list[Observation]]:
    return lambda _: [Observation(read()[name])]
