"""The floor of MCP: the SDK's own server with one tool of the same shape, which looks nothing up.

`python -m bench.bare_mcp SOCKET`
"""

import asyncio
import sys
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
from uvicorn.loops.auto import auto_loop_factory

_FACTS = {
    "kind": "agent",
    "tokenId": "tok_01m7h3v2bse1r92ax11r46ns4c",
    "sender": "@caller1.node:mini",
    "agentId": "agt_01m7h3v2bse1r92ax11r46ns4a",
    "canonical": "@caller1.node:mini",
    "minimal": "@caller1",
    "path": "/ada/agent/caller1",
    "role": "dev",
    "user": "ada",
    "node": "mini",
    "url": "http://127.0.0.1:7432",
    "version": "0.1.0",
}


async def _list(_: Any, __: Any) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name="whoami", input_schema={"type": "object", "properties": {}})])


async def _call(_: Any, __: Any) -> CallToolResult:
    text = TextContent(text="You are @caller1, role dev.")
    return CallToolResult(content=[text], structured_content=dict(_FACTS))


async def main(socket: str) -> None:
    manager = StreamableHTTPSessionManager(Server("bare", on_list_tools=_list, on_call_tool=_call))
    config = uvicorn.Config(
        manager.handle_request,
        uds=socket,
        log_level="error",
        lifespan="off",
        interface="asgi3",
        access_log=False,
    )
    async with manager.run():
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:  # as the daemon has it
        runner.run(main(sys.argv[1]))
