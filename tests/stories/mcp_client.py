"""An MCP client at the daemon of a person's shell."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.running import Shell


def over_mcp(shell: Shell, token: str, act: Callable[[Client], Awaitable[Any]]) -> Any:
    """What a client with this token gets."""
    url, headers = shell.data("status")["url"], {"Authorization": f"Bearer {token}"}

    async def run() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            return await act(client)

    return asyncio.run(run())
