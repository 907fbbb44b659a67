"""A chain of asks is one trace at an OTLP endpoint, and an endpoint that is away disturbs nobody."""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.daemon.daemons import Daemon, daemon, eventually
from tests.daemon.otlp_receiver import OtlpReceiver, ReceivedSpan, otlp_receiver

pytestmark = pytest.mark.slow

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"
SCOUT = f"{shlex.quote(sys.executable)} -m scout"
FAST = {"OTEL_BSP_SCHEDULE_DELAY": "100", "OTEL_METRIC_EXPORT_INTERVAL": "500"}
SECRET_BODY, SECRET_ANSWER = "the-wording-of-the-ask", "the-wording-of-the-answer"


@pytest.fixture(scope="module")
def receiver() -> Generator[OtlpReceiver]:
    with otlp_receiver() as received:
        yield received


@pytest.fixture(scope="module")
def scout(receiver: OtlpReceiver, tmp_path_factory: pytest.TempPathFactory) -> Generator[Daemon]:
    folder = tmp_path_factory.mktemp("traced")
    more = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "SCOUT_ROOTS": str(folder), **FAST}
    with daemon(folder / "home", **more) as running:
        yield running


def finished(scout: Daemon, flight_id: str) -> Any:
    def look() -> Any:
        found = scout.call("GET", f"/v1/flights/{flight_id}").json
        return found if found["finishedAt"] else None

    return eventually(look)


def ask(scout: Daemon, to: str, body: str = "go", **headers: str) -> str:
    reply = scout.call("POST", "/v1/asks", {"to": to, "body": body}, headers)
    assert reply.status == 201, reply.body
    return str(reply.json["flightId"])


def whole(receiver: OtlpReceiver, agent: str, count: int = 1) -> list[ReceivedSpan]:
    """The spans of the flights to an agent."""

    def look() -> list[ReceivedSpan] | None:
        found = receiver.find("ask", **{"gen_ai.agent.name": agent})
        return found if len(found) >= count else None

    return eventually(look)


async def call_tool(scout: Daemon, token: str, name: str, arguments: dict[str, Any], meta: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{scout.running.url}/mcp", http_client=http)) as client,
    ):
        return (await client.call_tool(name, arguments, meta=meta)).structured_content


def test_a_chain_over_mcp_between_two_agents_is_one_trace(
    scout: Daemon, receiver: OtlpReceiver, tmp_path: Path
) -> None:
    """The asker is traced; hudson asks talbot within its turn, by a program that Scout started."""
    asker = scout.register("asker")["token"]
    scout.register("talbot", command=["echo", SECRET_ANSWER])
    seen = tmp_path / "seen"
    inner = f'echo "$TRACEPARENT" > {seen}; {SCOUT} ask @talbot {SECRET_BODY}'
    scout.register("hudson", command=["sh", "-c", inner])
    given = {"to": "@hudson", "body": SECRET_BODY}
    asked = asyncio.run(call_tool(scout, asker, "ask", given, {"traceparent": TRACEPARENT}))
    finished(scout, asked["flightId"])
    (outer,), (nested,) = whole(receiver, "hudson"), whole(receiver, "talbot")

    assert {outer.trace_id, nested.trace_id} == {TRACE}
    assert outer.parent_id == CALLER
    steps = {one.attributes["scout.step"]: one for one in receiver.spans if one.parent_id == outer.span_id}
    assert steps.keys() == {"route", "wake", "turn", "reply"}
    assert nested.parent_id == steps["turn"].span_id  # the ask was made within that turn
    assert seen.read_text().strip() == f"00-{TRACE}-{steps['turn'].span_id}-01"
    assert outer.name == "invoke_agent hudson"
    assert outer.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert outer.attributes["gen_ai.conversation.id"] == asked["conversationId"]
    assert outer.resource["service.name"] == "scout"
    assert outer.start <= steps["wake"].start <= steps["turn"].start <= nested.start
    assert nested.end <= steps["turn"].end <= outer.end


def test_no_body_leaves_the_machine(scout: Daemon, receiver: OtlpReceiver) -> None:
    scout.register("quiet", command=["sh", "-c", f"cat > /dev/null; echo {SECRET_ANSWER}; exit 0"])
    finished(scout, ask(scout, "@quiet", SECRET_BODY))
    scout.register("broken", command=["sh", "-c", f"echo {SECRET_ANSWER} >&2; exit 3"])
    failed = finished(scout, ask(scout, "@broken", SECRET_BODY))
    (span,) = whole(receiver, "broken")
    whole(receiver, "quiet")
    assert span.error
    assert span.attributes["error.type"] == failed["error"]["code"]
    everything = "\n".join(one.raw for one in receiver.spans)
    assert SECRET_BODY not in everything
    assert SECRET_ANSWER not in everything


def test_an_ask_over_http_continues_the_trace_of_its_header(scout: Daemon, receiver: OtlpReceiver) -> None:
    scout.register("headed", harness="echo")
    finished(scout, ask(scout, "@headed", traceparent=TRACEPARENT))
    finished(scout, ask(scout, "@headed", traceparent="00-not-a-context"))
    first, second = whole(receiver, "headed", 2)
    assert (first.trace_id, first.parent_id) == (TRACE, CALLER)
    assert second.trace_id != TRACE
    assert second.parent_id == ""


def test_a_repeated_request_may_be_another_step_of_its_trace(scout: Daemon) -> None:
    scout.register("again", harness="echo")
    body = {"to": "@again", "body": "go"}
    one = {"Idempotency-Key": "k1", "traceparent": TRACEPARENT}
    other = {"Idempotency-Key": "k1", "traceparent": f"00-{TRACE}-{CALLER[::-1]}-01"}
    replies = [scout.call("POST", "/v1/asks", body, headers) for headers in (one, other)]
    assert [reply.status for reply in replies] == [201, 201]
    assert replies[0].json["flightId"] == replies[1].json["flightId"]


def test_the_wait_for_a_person_is_a_step(scout: Daemon, receiver: OtlpReceiver) -> None:
    scout.register("asks-me", command=["sh", "-c", f'{SCOUT} need "which one?"'])
    flight_id = ask(scout, "@asks-me")

    def look() -> Any:
        items = scout.call("GET", "/v1/attention").json["items"]
        return next((one for one in items if one["returnPath"].get("flightId") == flight_id), None)

    item = eventually(look)
    reply = scout.call("POST", f"/v1/attention/{item['id']}/answer", {"answer": "this one"})
    assert reply.status == 200, reply.body
    finished(scout, flight_id)
    (span,) = whole(receiver, "asks-me")
    waits = receiver.find("wait", **{"scout.flight.id": flight_id})
    assert [one.name for one in waits] == ["wait for operator"]
    assert waits[0].parent_id == span.span_id
    assert len(receiver.find("turn", **{"scout.flight.id": flight_id})) == 1


def test_the_counters_of_metrics_arrive_too(scout: Daemon, receiver: OtlpReceiver) -> None:
    eventually(lambda: receiver.metrics.get("scout.http_requests"))
    shown = {
        line.split()[0] for line in scout.call("GET", "/metrics").body.decode().splitlines() if line[0] != "#"
    }
    assert {f"scout_{name.removeprefix('scout.')}" for name in receiver.metrics} == {
        name.removesuffix("_total") for name in shown
    }


def test_status_and_doctor_say_where_traces_go(scout: Daemon, receiver: OtlpReceiver) -> None:
    scout.register("stated", harness="echo")
    finished(scout, ask(scout, "@stated"))
    eventually(lambda: _state(scout) == "working")
    told = scout.call("GET", "/v1/status").json["telemetry"]
    assert told["endpoint"] == f"{receiver.url}/v1/traces"


def test_a_restart_in_the_middle_of_a_flight_keeps_one_trace(tmp_path: Path) -> None:
    """The daemon is killed while a program works; the next one exports the whole flight."""
    go = tmp_path / "go"
    with otlp_receiver() as received:
        more = {"OTEL_EXPORTER_OTLP_ENDPOINT": received.url, "SCOUT_ROOTS": str(tmp_path), **FAST}
        with daemon(tmp_path / "home", **more) as first:
            script = f"while [ ! -e {go} ]; do sleep 0.05; done; echo done"
            first.register("slow", command=["sh", "-c", script])
            flight_id = ask(first, "@slow", traceparent=TRACEPARENT)
            eventually(lambda: first.call("GET", f"/v1/flights/{flight_id}").json["state"] == "running")
            os.kill(first.running.pid, signal.SIGKILL)
            eventually(lambda: not Path(f"/proc/{first.running.pid}").exists() or _is_gone(first.running.pid))
        with daemon(tmp_path / "home", **more) as second:
            go.touch()
            finished(second, flight_id)
            (span,) = whole(received, "slow")
    assert (span.trace_id, span.parent_id) == (TRACE, CALLER)
    assert [one.attributes["scout.step"] for one in received.spans if one.parent_id == span.span_id] == [
        "route",
        "wake",
        "turn",
        "reply",
    ]


def _is_gone(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] == "Z"


def test_an_endpoint_that_is_away_gets_one_notice_and_recovers(tmp_path: Path) -> None:
    with otlp_receiver() as received:
        received.refuses = 400
        more = {"OTEL_EXPORTER_OTLP_ENDPOINT": received.url, **FAST}
        with daemon(tmp_path / "home", **more) as scout:
            scout.register("fast", harness="echo")
            finished(scout, ask(scout, "@fast"))
            eventually(lambda: _state(scout) == "failing")
            tried = received.requests
            eventually(lambda: received.requests > tried + 2)
            log = (tmp_path / "home" / "logs" / "scout.log").read_text()
            assert log.count("fail:") == 1, log
            assert "opentelemetry" not in log
            received.refuses = None
            finished(scout, ask(scout, "@fast"))
            eventually(lambda: _state(scout) == "working")
            whole(received, "fast")


def _state(scout: Daemon) -> str:
    return str(scout.call("GET", "/v1/status").json["telemetry"]["state"])


def test_bodies_are_sent_if_a_setting_says_so(tmp_path: Path) -> None:
    with otlp_receiver() as received:
        more = {"SCOUT_TELEMETRY_ENDPOINT": received.url, "SCOUT_TELEMETRY_BODIES": "1", **FAST}
        with daemon(tmp_path / "home", **more) as scout:
            scout.register("open", harness="echo")
            finished(scout, ask(scout, "@open", SECRET_BODY))
            (span,) = whole(received, "open")
            assert SECRET_BODY in str(span.attributes["gen_ai.input.messages"])
            assert SECRET_BODY in str(span.attributes["gen_ai.output.messages"])
