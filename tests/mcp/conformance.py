"""The public conformance suite at a server of Scout's with the tools that the suite prescribes."""

import asyncio
import contextlib
import json
import platform
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

from scout.api.app import Application
from scout.api.asgi import AsgiSend, Receive, Scope
from scout.mcp.address import PATHS
from scout.mcp.app import McpSurface
from scout.protocol.scout import Scout
from tests.broker.rig import online_agent
from tests.live.programs import Program, require_program
from tests.mcp.fixture.offer import OFFER
from tests.mcp.fixture.tasks import WORKER, work
from tests.mcp.stage import Served, open_server

__all__ = ["SUITE", "Check", "checked", "node_words", "offered"]

_MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_NODE = f"node-{platform.system().lower()}-{_MACHINE}"
_NODE_22 = Program(_NODE, "22.23.3", f"{_NODE}/bin/node")
SUITE = Program(
    "@modelcontextprotocol/conformance", "0.2.0-alpha.12", "@modelcontextprotocol/conformance/dist/index.js"
)
_ASKER = "asker"
_LONGEST = 300


class Check(NamedTuple):
    """What the suite says of one thing: `scenario:id`, and SUCCESS, FAILURE, WARNING, SKIPPED or INFO."""

    name: str
    status: str
    problem: str


class _Mount:
    """The fixture in the place of Scout's own tools."""

    paths = PATHS

    def __init__(self, version: str) -> None:
        self._surface = McpSurface(version, OFFER)
        self._started = asyncio.Event()
        self._running = asyncio.get_running_loop().create_task(self._surface.run(self._started))

    async def __call__(self, scout: Scout, scope: Scope, receive: Receive, send: AsgiSend) -> None:
        await self._started.wait()
        await self._surface(scout, scope, receive, send)

    def stop(self) -> None:
        self._surface.stop()

    async def close(self) -> None:
        self.stop()
        await self._running


class _Proxy(Application):
    """The suite knows of no token: each of its requests gets the asker's."""

    token = ""

    async def __call__(self, scope: Scope, receive: Receive, send: AsgiSend) -> None:
        given = [one for one in scope["headers"] if one[0] != b"authorization"]
        token = (b"authorization", f"Bearer {self.token}".encode())
        await super().__call__({**scope, "headers": [*given, token]}, receive, send)


@contextlib.asynccontextmanager
async def offered(home: Path) -> AsyncGenerator[Served]:
    """The fixture, with a worker that does what its tools ask for."""
    async with open_server(home, mount=_Mount, kind=_Proxy) as stage:
        assert isinstance(stage.application, _Proxy)
        stage.application.token = await stage.token(_ASKER)
        working = asyncio.get_running_loop().create_task(work(await online_agent(stage.rig, WORKER)))
        try:
            yield stage
            assert not working.done(), working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


def node_words(program: Program) -> list[str]:
    """How a program of npm is run; the test is skipped where it cannot be had."""
    return [str(require_program(_NODE_22)), str(require_program(program))]


async def checked(url: str, revision: str, results: Path) -> list[Check]:
    """What the suite says of a server, against the requirements of a revision."""
    words = [*node_words(SUITE), "server", "--url", url, "--requirements", revision]
    running = await asyncio.create_subprocess_exec(
        *words,
        "--output-dir",
        str(results),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await asyncio.wait_for(running.communicate(), _LONGEST)
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
    found = _found(results)
    assert found, said.decode()
    return found


def _found(results: Path) -> list[Check]:
    return [one for file in sorted(results.glob("*/checks.json")) for one in _checks(file)]


def _checks(file: Path) -> list[Check]:
    """One scenario's; an id that comes again is counted."""
    scenario = file.parent.name.removeprefix("server-").partition("-20")[0]
    seen: dict[str, int] = {}
    made: list[Check] = []
    rows: list[dict[str, Any]] = json.loads(file.read_text())
    for row in rows:
        seen[row["id"]] = seen.get(row["id"], 0) + 1
        again = f"#{seen[row['id']]}" if seen[row["id"]] > 1 else ""
        name = f"{scenario}:{row['id']}{again}"
        made.append(Check(name, row["status"], row.get("errorMessage") or ""))
    return made
