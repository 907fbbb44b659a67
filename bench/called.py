"""MCP: two hundred clients on one daemon, beside a bare server of the SDK in the same run."""

import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.daemon import fresh
from bench.figure import Figure
from bench.load import Connection, Result, result_of

CLIENTS = 200
SECONDS = 6.0
VERSION = "2026-07-28"


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """Calls per second and the slowest hundredth, for a tool that reads and one that stores."""
    seconds = max(1.0, SECONDS * min(scale * 10, 1))
    with fresh() as to, _bare() as bare:
        names = [f"caller{number}" for number in range(CLIENTS)]
        made = [to.call("POST", "/v1/agents", {"definitionId": name}) for name in names]
        tokens = [one["token"] for one in made]
        who = [[build_call(token, "whoami", {})] for token in tokens]
        sending = [
            [build_call(token, "messages_send", {"to": names[(place + 1) % CLIENTS], "body": "word " * 35})]
            for place, token in enumerate(tokens)
        ]
        ours, floor = _interleaved(to.socket, bare, who, seconds)
        stored = asyncio.run(_run(to.socket, sending, seconds))
    for name, found in (("whoami", ours), ("messages_send", stored), ("whoami on a bare server", floor)):
        assert not found.failed, (name, found)
        yield Figure(name=f"MCP, {CLIENTS} clients, {name}", result=found.rate, unit="/s")
        yield Figure(name=f"MCP, {CLIENTS} clients, {name}: p99", result=found.p99, unit="ms")
    yield Figure(name="MCP, whoami against a bare server", result=floor.rate / ours.rate, unit="x", goal=1.5)


def _interleaved(ours: str, bare: str, requests: list[list[bytes]], seconds: float) -> tuple[Result, Result]:
    """The best of three turns each: what else the machine does only ever takes from them."""
    turns = [
        (asyncio.run(_run(ours, requests, seconds / 3)), asyncio.run(_run(bare, requests, seconds / 3)))
        for _ in range(3)
    ]
    return max((one for one, _ in turns), key=_rate), max((one for _, one in turns), key=_rate)


class _Client(Connection):
    """Makes its first call as soon as it is connected, and the others when all have made theirs."""

    def __init__(self, requests: Sequence[bytes], all_ready: asyncio.Event) -> None:
        super().__init__(requests, float("inf"))
        self.ready = asyncio.Event()
        self._all_ready = all_ready

    def _send(self) -> None:
        if self.times and not self._all_ready.is_set():
            self.ready.set()
        else:
            super()._send()

    def begin(self, until: float) -> None:
        self.times.clear()
        self.until = until
        super()._send()


async def _run(socket: str, requests: list[list[bytes]], seconds: float) -> Result:
    """One client for each list of requests; what is measured begins when every one has been answered once."""
    loop, all_ready = asyncio.get_running_loop(), asyncio.Event()
    clients: list[_Client] = []
    for one in requests:
        _, client = await loop.create_unix_connection(lambda one=one: _Client(one, all_ready), socket)
        await client.ready.wait()
        clients.append(client)
    all_ready.set()
    until = time.perf_counter() + seconds
    for client in clients:
        client.begin(until)
    await asyncio.gather(*(client.over for client in clients))
    return result_of(clients, seconds)


def _rate(result: Result) -> float:
    return result.rate


def build_call(token: str, tool: str, arguments: dict[str, Any]) -> bytes:
    """One call of the generation without sessions, as bytes."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    lines = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {VERSION}",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {tool}",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join((*lines, "", "")).encode() + body


@contextlib.contextmanager
def _bare() -> Generator[str]:
    with tempfile.TemporaryDirectory(prefix="scout-bare-") as folder:
        socket = f"{folder}/bare.sock"
        process = subprocess.Popen([sys.executable, "-m", "bench.bare_mcp", socket])
        try:
            while not Path(socket).exists():
                assert process.poll() is None
                time.sleep(0.05)
            yield socket
        finally:
            process.terminate()
            process.wait(30)
