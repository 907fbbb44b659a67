"""The OpenAI Chat Completions dialect, streamed: `POST /v1/chat/completions`."""

import json
from collections.abc import Iterator
from typing import Any

from tests.live.model.script import Call, Heard, Turn

__all__ = ["PATH", "PING", "closing", "opening", "problem", "read_request"]

PATH = "/v1/chat/completions"
PING = b": ping\n\n"

_USAGE = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
_WHO = {"user": "user", "assistant": "model", "tool": "tool"}


def read_request(body: Any) -> Heard:
    """What a request says; what the program itself tells the model is left out."""
    turns = [turn for message in body["messages"] for turn in _turns(message)]
    return Heard(tuple(turns), tuple(tool["function"]["name"] for tool in body.get("tools") or ()))


def _turns(message: Any) -> Iterator[Turn]:
    who = _WHO.get(message["role"])
    if who == "user":
        content = message["content"]
        for part in [{"text": content}] if isinstance(content, str) else content:
            yield Turn("user", part.get("text", ""))
    elif who is not None:
        yield Turn(who, "" if who == "model" else _text(message.get("content")))


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if "text" in part)  # pyright: ignore (plain JSON)
    return content or ""


def opening(body: Any, ident: str) -> Iterator[bytes]:
    """The chunk with which an answer begins."""
    yield _chunk(body, ident, {"role": "assistant", "content": ""})


def closing(blocks: tuple[str | Call, ...], body: Any, ident: str) -> Iterator[bytes]:
    """The chunks of the blocks, and the end."""
    calls = 0
    for block in blocks:
        if isinstance(block, Call):
            named = {"name": block.name, "arguments": ""}
            head = {"index": calls, "id": f"call_{ident}_{calls}", "type": "function", "function": named}
            more = {"index": calls, "function": {"arguments": json.dumps(block.arguments)}}
            yield _chunk(body, ident, {"tool_calls": [head]})
            yield _chunk(body, ident, {"tool_calls": [more]})
            calls += 1
        else:
            yield _chunk(body, ident, {"content": block})
    yield _chunk(body, ident, {}, "tool_calls" if calls else "stop")
    yield _line({**_head(body, ident), "choices": [], "usage": _USAGE})
    yield b"data: [DONE]\n\n"


def problem(text: str) -> dict[str, Any]:
    """The body of an HTTP error."""
    return {"error": {"type": "server_error", "code": "scripted", "message": text}}


def _head(body: Any, ident: str) -> dict[str, Any]:
    model = body.get("model", "scripted")
    return {"id": f"chatcmpl-{ident}", "object": "chat.completion.chunk", "created": 0, "model": model}


def _chunk(body: Any, ident: str, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _line({**_head(body, ident), "choices": [choice]})


def _line(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()
