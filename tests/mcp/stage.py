"""A broker behind its real HTTP surface on loopback, and the SDK's own client to talk to it."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from scout.api.app import Application
from scout.api.asgi import Mount
from scout.daemon.lazy_mcp import LazyMcp
from scout.daemon.server import Server
from scout.store.integrity.verify import verify
from tests.broker.rig import SECRET, Rig, open_rig

MODES = ("legacy", "2026-07-28")
_CONTEXT = ssl.create_default_context()  # a client makes one for itself, though it never meets TLS here


class Mounted(Mount, Protocol):
    """MCP below an HTTP surface."""

    async def close(self) -> None:
        """Leave nothing running."""
        ...


class Served:
    """A rig that can be reached over HTTP."""

    def __init__(self, rig: Rig, url: str, application: Application) -> None:
        self.rig = rig
        self.url = url
        self.application = application

    async def token(self, name: str, **more: Any) -> str:
        """The token of an agent; entered first if it is new."""
        if name == "operator":
            return SECRET
        await self.rig.agent(name, **more)
        return self.rig.tokens[name]

    @asynccontextmanager
    async def client(
        self, name: str, path: str = "/mcp", *, mode: str = MODES[0], **more: Any
    ) -> AsyncGenerator[Client]:
        """An agent's MCP client."""
        token = await self.token(name)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30, verify=_CONTEXT) as http:
            transport = streamable_http_client(self.url + path, http_client=http)
            async with Client(transport, mode=mode, **more) as client:
                yield client

    async def request(self, method: str, path: str, token: str | None, **more: Any) -> httpx2.Response:
        """One bare HTTP request."""
        headers = {"Accept": "application/json, text/event-stream", **more.pop("headers", {})}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        async with httpx2.AsyncClient(timeout=30, verify=_CONTEXT) as http:
            return await http.request(method, self.url + path, headers=headers, **more)


@asynccontextmanager
async def open_server(
    home: Path,
    *,
    mount: Callable[[str], Mounted] = LazyMcp,
    kind: type[Application] = Application,
    **options: Any,
) -> AsyncGenerator[Served]:
    """A broker that answers on a port of its own."""
    async with open_rig(home, **options) as made:
        mcp = mount("0")
        application = kind(made.broker, version="0", comment=15, counters=made.broker.counters, mounts=(mcp,))
        ready = asyncio.Event()
        server = Server(application, ready.set)
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen(256)
        serving = asyncio.create_task(server.serve([listening]))
        await ready.wait()
        try:
            yield Served(made, f"http://127.0.0.1:{listening.getsockname()[1]}", application)
        finally:
            server.stop()
            await serving
            await mcp.close()


def scene(play: Callable[[Served], Awaitable[None]]) -> Callable[[Path], None]:
    """A scene as a test; what it leaves behind must follow from its log."""

    def test(tmp_path: Path) -> None:
        async def run() -> None:
            async with open_server(tmp_path) as stage:
                await play(stage)

        asyncio.run(run())
        assert verify(tmp_path / "scout.db").clean

    test.__name__ = test.__qualname__ = play.__name__
    test.__module__ = play.__module__
    return test


def scenes(play: Callable[[Served, str], Awaitable[None]]) -> Callable[[Path, str], None]:
    """The same in both generations of the protocol."""

    @pytest.mark.parametrize("mode", MODES)
    def test(tmp_path: Path, mode: str) -> None:
        @scene
        async def one(stage: Served) -> None:
            await play(stage, mode)

        one(tmp_path)

    test.__name__ = test.__qualname__ = play.__name__
    test.__module__ = play.__module__
    return test


async def facts(client: Client, tool: str, /, **arguments: Any) -> Any:
    """What a tool answers; it must not refuse."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return result.structured_content


async def refusal(client: Client, tool: str, /, **arguments: Any) -> Any:
    """What a tool refuses with; it must refuse."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    return result.structured_content


def text(result: CallToolResult) -> str:
    """The one line of a result."""
    (block,) = result.content
    assert block.type == "text"
    return block.text
