"""A real OTLP endpoint: it takes protobuf over HTTP and keeps what it got."""

import contextlib
import gzip
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

Value = str | int | bool | list[str]


class ReceivedSpan:
    """A span as it came over the wire."""

    def __init__(self, span: Any, resource: dict[str, Value]) -> None:
        self.name: str = span.name
        self.trace_id: str = span.trace_id.hex()
        self.span_id: str = span.span_id.hex()
        self.parent_id: str = span.parent_span_id.hex()
        self.kind: int = span.kind
        self.start: int = span.start_time_unix_nano
        self.end: int = span.end_time_unix_nano
        self.error: bool = span.status.code == 2
        self.attributes = _read_attributes(span.attributes)
        self.resource = resource
        self.raw = str(span)

    def __repr__(self) -> str:
        return f"{self.name} {self.span_id} < {self.parent_id} {self.attributes}"


class OtlpReceiver:
    """What arrived so far. `refuses`: the status of every answer, if it is not 200."""

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self.metrics: dict[str, float] = {}
        self.requests = 0
        self.headers: dict[str, str] = {}
        self.refuses: int | None = None
        self.url = ""

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                resource = _read_attributes(group.resource.attributes)
                self.spans += [
                    ReceivedSpan(span, resource) for scope in group.scope_spans for span in scope.spans
                ]
        elif path == "/v1/metrics":
            for group in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for one in (metric for scope in group.scope_metrics for metric in scope.metrics):
                    points = one.sum.data_points or one.gauge.data_points
                    self.metrics[one.name] = points[0].as_double or points[0].as_int

    def find(self, step: str, **attributes: Value) -> list[ReceivedSpan]:
        """The spans of one step, those of a flight or an agent if that is named."""
        wanted: dict[str, Value] = {"scout.step": step, **attributes}
        return [one for one in self.spans if wanted.items() <= one.attributes.items()]


def _read_attributes(pairs: Any) -> dict[str, Value]:
    return {one.key: _read_value(one.value) for one in pairs}


def _read_value(value: Any) -> Value:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [one.string_value for one in value.array_value.values]
    return getattr(value, kind)


@contextlib.contextmanager
def otlp_receiver(port: int = 0) -> Generator[OtlpReceiver]:
    """An endpoint on loopback that is gone at the end."""
    received = OtlpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.requests += 1
            received.headers = {name.lower(): value for name, value in self.headers.items()}
            if received.refuses is None:
                zipped = self.headers.get("content-encoding") == "gzip"
                received.take(self.path, gzip.decompress(body) if zipped else body)
            self.send_response(received.refuses or 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name in the base class)
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    received.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    serving.start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
