"""JSON-RPC over a pipe: calls that are made once, also when a broker after a restart makes them again."""

import asyncio
import json
from typing import Any, cast

from scout.adapters.persistent.pipe import Pipe
from scout.base.codec import encode


class RpcError(Exception):
    """The program refused a call, or is gone."""

    def __init__(self, message: str, code: int | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def message_of(line: bytes) -> dict[str, Any]:
    """A line as a message; what is none is empty."""
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", read) if isinstance(read, dict) else {}


def is_call(message: dict[str, Any]) -> bool:
    """Whether the program asks something and waits for the answer."""
    return "method" in message and "id" in message


def tag_of_reply(ident: object) -> str:
    """Under which tag the answer to a call of the program is told."""
    return f"re:{encode(ident).decode()}".replace(" ", "_")


class Rpc:
    """The tag of a call is its id: a call that was made before is only waited for."""

    def __init__(self, pipe: Pipe, version: str | None = "2.0") -> None:
        self.pipe = pipe
        self._head = {"jsonrpc": version} if version else {}

    async def send(self, tag: str, method: str, params: Any) -> int:
        """Make a call without waiting for it; from where on its answer is to be looked for."""
        begun = self.pipe.sent_at(tag)
        if begun is None:
            line = encode({**self._head, "id": tag, "method": method, "params": params})
            if not await self.pipe.send(line, tag):
                raise RpcError(f"the program is gone: {await self.pipe.wait_for_end()}")
            begun = self.pipe.sent_at(tag)
        return begun or 0

    async def call(self, tag: str, method: str, params: Any, seconds: float = 60.0) -> Any:
        """The result of a call."""
        begun = await self.send(tag, method, params)
        try:
            async with asyncio.timeout(seconds):
                async for line in self.pipe.follow_lines(begun):
                    message = message_of(line.text)
                    if message.get("id") == tag and "method" not in message:
                        return result_of(message)
        except TimeoutError:
            raise RpcError(f"{method} was not answered within {seconds:g} s") from None
        raise RpcError(f"the program is gone: {self.pipe.end_reason}")

    async def notify(self, method: str, params: Any, tag: str = "-") -> bool:
        """Say something that has no answer."""
        return await self.pipe.send(encode({**self._head, "method": method, "params": params}), tag)

    async def reply(self, ident: object, result: Any) -> bool:
        """Answer a call of the program, once."""
        tag = tag_of_reply(ident)
        if self.pipe.sent_at(tag) is not None:
            return False
        return await self.pipe.send(encode({**self._head, "id": ident, "result": result}), tag)

    async def refuse(self, ident: object, message: str, code: int = -32601) -> bool:
        """Refuse a call of the program."""
        error = {"code": code, "message": message}
        tag = tag_of_reply(ident)
        if self.pipe.sent_at(tag) is not None:
            return False
        return await self.pipe.send(encode({**self._head, "id": ident, "error": error}), tag)


def result_of(message: dict[str, Any]) -> Any:
    """What an answer holds; a refusal is raised."""
    error: Any = message.get("error")
    if error is None:
        return message.get("result")
    if not isinstance(error, dict):
        raise RpcError(str(error))
    error = cast("dict[str, Any]", error)
    raise RpcError(str(error.get("message", "refused")), error.get("code"), error.get("data"))
