"""The first seconds of a daemon: what it loads later must cost the first requests nothing."""

import asyncio
import json
from collections.abc import Iterator

from bench.called import build_call
from bench.daemon import Daemon, fresh
from bench.figure import Figure
from bench.load import Result, request, run

SECONDS = 5.0
CONNECTIONS = 4
_BODY = " ".join(["word"] * 35)


def figures(_: float = 1.0) -> Iterator[Figure]:
    """The slowest hundredth of the first five seconds, beside the same load when everything is loaded."""
    with fresh() as to:
        requests = _prepare(to)
        first = asyncio.run(run(to.socket, requests, SECONDS))
        asyncio.run(_call_mcp(to))
        later = asyncio.run(run(to.socket, requests, SECONDS))
    with fresh() as to:
        joined = asyncio.run(_run_beside_mcp(to, _prepare(to)))
    for name, found in (
        ("first five seconds", first),
        ("first five seconds, an MCP client connects", joined),
        ("five seconds, MCP is loaded", later),
    ):
        assert not found.failed, (name, found)
        yield Figure(name=f"{name}: p99", result=found.p99, unit="ms")
        yield Figure(name=f"{name}: accepted", result=found.rate, unit="/s")
    yield Figure(
        name="first five seconds: p99 against later", result=first.p99 / later.p99, unit="x", goal=1.5
    )


def _prepare(to: Daemon) -> list[list[bytes]]:
    """Messages of a few agents to one, on a connection each."""
    to.call("POST", "/v1/agents", {"definitionId": "reader"})
    names = [f"sender{number}" for number in range(CONNECTIONS)]
    tokens = [to.call("POST", "/v1/agents", {"definitionId": name})["token"] for name in names]
    body = json.dumps({"to": "@reader", "body": _BODY}).encode()
    return [[request("POST", "/v1/messages", token, body)] for token in tokens]


async def _run_beside_mcp(to: Daemon, requests: list[list[bytes]]) -> Result:
    found, _ = await asyncio.gather(run(to.socket, requests, SECONDS), _call_mcp(to))
    return found


async def _call_mcp(to: Daemon) -> None:
    """Call a tool, which loads MCP."""
    await run(to.socket, [[build_call(to.token, "whoami", {})]], 0.5)
