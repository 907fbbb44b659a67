"""Where traces and metrics go: the variables of OpenTelemetry, then the setting."""

import pytest

from scout.adapters.telemetry.target import find_target

BASE = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
    ("environ", "setting", "traces", "metrics"),
    [
        ({}, "http://a:4318/", "http://a:4318/v1/traces", "http://a:4318/v1/metrics"),
        ({BASE: "http://b"}, "http://a", "http://b/v1/traces", "http://b/v1/metrics"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/x"}, None, "http://t/x", None),
        ({BASE: "http://b", "OTEL_METRICS_EXPORTER": "none"}, None, "http://b/v1/traces", None),
        ({BASE: "http://b", "OTEL_TRACES_EXPORTER": "none"}, None, None, "http://b/v1/metrics"),
    ],
)
def test_each_signal_has_its_endpoint(
    environ: dict[str, str], setting: str | None, traces: str | None, metrics: str | None
) -> None:
    found = find_target(environ, setting)
    assert found is not None
    assert (found.traces, found.metrics, found.problem) == (traces, metrics, "")


@pytest.mark.parametrize("environ", [{}, {BASE: " "}, {BASE: "http://b", "OTEL_SDK_DISABLED": "True"}])
def test_nothing_is_sent_that_nobody_wants(environ: dict[str, str]) -> None:
    assert find_target(environ, None) is None


def test_a_protocol_that_scout_does_not_speak_is_named() -> None:
    found = find_target({BASE: "http://b", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, None)
    assert found is not None
    assert "grpc" in found.problem


def test_a_password_in_the_address_is_not_shown() -> None:
    found = find_target({}, "https://user:secret@host:4318/otlp")
    assert found is not None
    assert found.shown == "https://host:4318/otlp/v1/traces"
