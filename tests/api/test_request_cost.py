"""What one request costs at the edge: calls, tasks and writes, which do not depend on the machine."""

import asyncio
import cProfile
import json
import pstats
from pathlib import Path
from typing import Any, cast

import uvicorn
from uvicorn.server import ServerState

import scout
from scout.api.app import Application
from scout.api.http import Protocol
from tests.api.tasks import count_tasks
from tests.broker.counted import stop_background
from tests.broker.rig import Rig, as_test

ROUNDS = 20
OWN = f"{Path(scout.__file__).parent}/"  # a clone may be called scout, too


class Wire(asyncio.Transport):
    """The other end of a connection: what was written, and when a response is complete."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.news = asyncio.Event()
        self.closed = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))
        self.news.set()

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def resume_reading(self) -> None:
        """Nothing was paused."""


class Edge:
    """Scout's HTTP protocol on a broker, with one connection."""

    def __init__(self, rig: Rig) -> None:
        application = Application(rig.broker, version="0", comment=60.0, counters=rig.broker.counters)
        config = uvicorn.Config(
            cast("Any", application), lifespan="off", interface="asgi3", log_config=None, access_log=False
        )
        config.load()
        self.wire = Wire()
        self.protocol = Protocol(config, ServerState(), {})
        self.protocol.connection_made(self.wire)

    async def request(self, method: str, path: str, token: str | None, body: Any = None) -> list[bytes]:
        """Send a request; return the writes of its response."""
        data = json.dumps(body).encode() if body is not None else b""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}"]
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}", "", ""]
        self.wire.writes.clear()
        self.wire.news.clear()
        self.protocol.data_received("\r\n".join(lines).encode() + data)
        async with asyncio.timeout(20):
            while not self._is_complete():
                await self.wire.news.wait()
                self.wire.news.clear()
        return list(self.wire.writes)

    def _is_complete(self) -> bool:
        head, found, body = b"".join(self.wire.writes).partition(b"\r\n\r\n")
        size = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        return bool(found) and len(body) >= int(size)


@as_test
async def test_a_small_read_costs_few_calls_and_one_write(rig: Rig) -> None:
    token = (await rig.register("me")).token
    edge = Edge(rig)
    await edge.request("GET", "/v1/whoami", token)  # its caller is admitted, its encoder is built
    await stop_background(rig)
    profile = cProfile.Profile()
    profile.enable()
    answers = [await edge.request("GET", "/v1/whoami", token) for _ in range(ROUNDS)]
    profile.disable()
    ((answer,), *_) = answers
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["sender"] == "@me"
    assert count_own_calls(profile) / ROUNDS <= 60


@as_test
async def test_a_message_costs_few_calls_at_the_edge(rig: Rig) -> None:
    """Routing, admission, reading the body and encoding the receipt; what the broker does is counted there."""
    await rig.register("peer")
    token, edge = (await rig.register("me")).token, Edge(rig)
    message = {"to": "@peer", "body": "word " * 34}
    for _ in range(2):
        await edge.request("POST", "/v1/messages", token, message)
    await stop_background(rig)
    profile = cProfile.Profile()
    profile.enable()
    answers = [await edge.request("POST", "/v1/messages", token, message) for _ in range(ROUNDS)]
    profile.disable()
    assert all(len(writes) == 1 and writes[0].startswith(b"HTTP/1.1 201") for writes in answers)
    assert count_own_calls(profile, "api/") / ROUNDS <= 50


@as_test
async def test_a_request_that_waits_has_one_task(rig: Rig) -> None:
    token = (await rig.register("me")).token
    await rig.register("held", harness="echo", wake_policy="manual")
    edge = Edge(rig)
    (answer,) = await edge.request("POST", "/v1/asks", token, {"to": "@held", "body": "hello"})
    flight = json.loads(answer.partition(b"\r\n\r\n")[2])["flightId"]
    with count_tasks() as made:
        (answer,) = await edge.request("GET", f"/v1/flights/{flight}?wait=0.05", token)
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["state"] == "queued"
    assert made == ["RequestResponseCycle.run_asgi"]


@as_test
async def test_a_busy_connection_makes_few_timers(rig: Rig) -> None:
    token = (await rig.register("me")).token
    edge = Edge(rig)
    await edge.request("GET", "/v1/whoami", token)
    await stop_background(rig)
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(ROUNDS):
        await edge.request("GET", "/v1/whoami", token)
    profile.disable()
    made = sum(
        calls for (_, _, name), (_, calls, *_) in list_stats(profile) if name in {"_arm", "call_later"}
    )
    assert made <= ROUNDS / 4


def list_stats(profile: cProfile.Profile) -> Any:
    return cast("Any", pstats.Stats(profile)).stats.items()


def count_own_calls(profile: cProfile.Profile, room: str = "") -> int:
    return sum(calls for (file, _, _), (_, calls, *_) in list_stats(profile) if file.startswith(OWN + room))
