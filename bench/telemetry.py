"""What traces cost: asks to `echo` without telemetry, with an endpoint that takes them, and with one that is away."""

import socket
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bench.daemon import Daemon, fresh
from bench.figure import Figure
from tests.daemon.otlp_receiver import otlp_receiver

COUNT = 400
_FIRST = 20  # asks that are not counted
_AFTER = 4.0  # seconds in which the traces of the last asks are built and sent
_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class _Cost(NamedTuple):
    """Milliseconds of one ask: until it is answered, and processor time of the daemon."""

    answered: float
    spent: float


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """One ask after the other. The time to the answer must not change; the traces are built beside it."""
    count = max(round(COUNT * scale), 40)
    off = _measure({}, count)
    with otlp_receiver() as received:
        on = _measure({_ENDPOINT: received.url}, count)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    away = _measure({_ENDPOINT: f"http://127.0.0.1:{port}"}, count)
    for name, cost in (("off", off), ("on", on), ("on, endpoint away", away)):
        yield Figure(name=f"telemetry {name}: an ask to echo, p50", result=cost.answered, unit="ms")
        yield Figure(name=f"telemetry {name}: processor time of an ask", result=cost.spent, unit="ms")
    ratio = away.answered / off.answered
    yield Figure(name="telemetry: time to the answer, endpoint away / off", result=ratio, unit="x", goal=1.2)
    spent = away.spent / on.spent
    yield Figure(name="telemetry: processor time, endpoint away / on", result=spent, unit="x", goal=1.1)


def _measure(more: Mapping[str, str], count: int) -> _Cost:
    with fresh(**more) as to:
        to.call("POST", "/v1/agents", {"definitionId": "arc", "harness": "echo"})
        for _ in range(_FIRST):
            _ask(to)
        time.sleep(_AFTER)  # the SDK is loaded meanwhile
        before = to.read_processor_time()
        answered = statistics.median(_ask(to) for _ in range(count))
        time.sleep(_AFTER)
        return _Cost(answered, (to.read_processor_time() - before) / count)


def _ask(to: Daemon) -> float:
    began = time.perf_counter()
    receipt = to.call("POST", "/v1/asks", {"to": "@arc", "body": "word " * 35, "wait": 30})
    assert receipt["state"] == "completed", receipt
    return 1000 * (time.perf_counter() - began)
