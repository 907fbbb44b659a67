"""JSON-RPC over a pipe. A call is sent only once, even if a restarted broker repeats it."""

import asyncio
import json
from typing import Any, cast

from scout.adapters.persistent.pipe import Pipe
from scout.base.codec import encode


class RpcError(Exception):
    """The program refused a call, or has ended."""

    def __init__(self, message: str, code: int | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def parse_message(line: bytes) -> dict[str, Any]:
    """Parse a line as a message; empty if it is not one."""
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", read) if isinstance(read, dict) else {}


def is_call(message: dict[str, Any]) -> bool:
    """Whether a message is a request of the program, which waits for an answer."""
    return "method" in message and "id" in message


def build_reply_tag(ident: object) -> str:
    """Return the tag of the answer to a request of the program."""
    return f"re:{encode(ident).decode()}".replace(" ", "_")


class Rpc:
    """The tag of a call is its id. If a call was sent before, only its answer is awaited."""

    def __init__(self, pipe: Pipe, version: str | None = "2.0") -> None:
        self.pipe = pipe
        self._head = {"jsonrpc": version} if version else {}

    async def send(self, tag: str, method: str, params: Any) -> int:
        """Send a call without waiting; return where in the output its answer may begin."""
        begun = self.pipe.find_position(tag)
        if begun is None:
            line = encode({**self._head, "id": tag, "method": method, "params": params})
            if not await self.pipe.send(line, tag):
                raise RpcError(f"its program ended: {await self.pipe.wait_for_end()}")
            begun = self.pipe.find_position(tag)
        return begun or 0

    async def call(self, tag: str, method: str, params: Any, seconds: float = 60.0) -> Any:
        """Send a call and return its result."""
        begun = await self.send(tag, method, params)
        try:
            async with asyncio.timeout(seconds):
                async for line in self.pipe.follow_lines(begun):
                    message = parse_message(line.text)
                    if message.get("id") == tag and "method" not in message:
                        return get_result(message)
        except TimeoutError:
            raise RpcError(f"{method} was not answered within {seconds:g} s") from None
        raise RpcError(f"its program ended: {self.pipe.end_reason}")

    async def notify(self, method: str, params: Any, tag: str = "-") -> bool:
        """Send a notification."""
        return await self.pipe.send(encode({**self._head, "method": method, "params": params}), tag)

    async def reply(self, ident: object, result: Any) -> bool:
        """Answer a request of the program, once."""
        tag = build_reply_tag(ident)
        if self.pipe.find_position(tag) is not None:
            return False
        return await self.pipe.send(encode({**self._head, "id": ident, "result": result}), tag)

    async def refuse(self, ident: object, message: str, code: int = -32601) -> bool:
        """Refuse a request of the program."""
        error = {"code": code, "message": message}
        tag = build_reply_tag(ident)
        if self.pipe.find_position(tag) is not None:
            return False
        return await self.pipe.send(encode({**self._head, "id": ident, "error": error}), tag)


def get_result(message: dict[str, Any]) -> Any:
    """Return the result of an answer; raise its error."""
    error: Any = message.get("error")
    if error is None:
        return message.get("result")
    if not isinstance(error, dict):
        raise RpcError(str(error))
    error = cast("dict[str, Any]", error)
    raise RpcError(str(error.get("message", "refused")), error.get("code"), error.get("data"))
