"""A door of Scout's for tests: an MCP server on loopback with one tool, which counts its calls."""

import contextlib
import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from scout.ports import McpAccess

__all__ = ["McpDoor", "mcp_door"]

_TOOL = {
    "name": "count",
    "description": "Counts.",
    "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}},
}


class McpDoor:
    """Where it is, and what came: the tokens that were shown, and the words that were counted."""

    def __init__(self) -> None:
        self.tokens = set[str]()
        self.words: list[str] = []
        self.port = 0

    def door(self, token: str = "a-token") -> McpAccess:
        return McpAccess(url=f"http://127.0.0.1:{self.port}/mcp", token=token)

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        """The result of one call."""
        match method:
            case "initialize":
                facts = {"name": "scout", "version": "1"}
                version = params["protocolVersion"]
                return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": facts}
            case "tools/list":
                return {"tools": [_TOOL]}
            case "tools/call":
                self.words.append(params["arguments"].get("word", ""))
                return {"content": [{"type": "text", "text": f"counted {len(self.words)}"}]}
            case _:
                return {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5

    def do_POST(self) -> None:
        assert isinstance(self.server, _Server)
        door = self.server.door
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        door.tokens.add(self.headers.get("Authorization", "").removeprefix("Bearer "))
        if "id" not in message:
            self._reply(202, b"")
            return
        result = door.answer(message["method"], message.get("params") or {})
        self._reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    def do_GET(self) -> None:
        self._reply(405, b"")

    do_DELETE = do_GET  # noqa: N815 (the base class looks for this name)

    def _reply(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class calls it so)
        """Nobody reads it."""


class _Server(ThreadingHTTPServer):
    def __init__(self, door: McpDoor) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.door = door


@contextlib.contextmanager
def mcp_door() -> Generator[McpDoor]:
    """A door on a port of its own."""
    door = McpDoor()
    with _Server(door) as server:
        door.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield door
        finally:
            server.shutdown()
            thread.join()
