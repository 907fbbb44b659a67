"""The Anthropic Messages dialect, streamed: `POST /v1/messages`."""

import json
from collections.abc import Iterator
from typing import Any

from tests.live.model.script import Call, Heard, Turn

__all__ = ["PATH", "PING", "closing", "opening", "problem", "read_request"]

PATH = "/v1/messages"
PING = b'event: ping\ndata: {"type":"ping"}\n\n'

_USAGE = {
    "input_tokens": 10,
    "output_tokens": 10,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


def read_request(body: Any) -> Heard:
    """What a request says. A user's message may hold several texts and the results of tools between them."""
    turns = [turn for message in body["messages"] for turn in _turns(message)]
    return Heard(tuple(turns), tuple(tool["name"] for tool in body.get("tools", ())))


def _turns(message: Any) -> Iterator[Turn]:
    if message["role"] == "assistant":
        yield Turn("model")
    if message["role"] != "user":  # the program's own reminders may stand in between
        return
    content = message["content"]
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if block["type"] == "text":
            yield Turn("user", block["text"])
        elif block["type"] == "tool_result":
            yield Turn("tool", _text(block.get("content", "")))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def opening(body: Any, ident: str) -> Iterator[bytes]:
    """The events with which an answer begins."""
    message: dict[str, Any] = {
        "id": f"msg_{ident}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _USAGE,
    }
    yield _event("message_start", message=message)


def closing(blocks: tuple[str | Call, ...], body: Any, ident: str) -> Iterator[bytes]:
    """The events of the blocks, and the end."""
    for index, block in enumerate(blocks):
        if isinstance(block, Call):
            begun: dict[str, Any] = {
                "type": "tool_use",
                "id": f"toolu_{ident}_{index}",
                "name": block.name,
                "input": {},
            }
            more = {"type": "input_json_delta", "partial_json": json.dumps(block.arguments)}
        else:
            begun = {"type": "text", "text": ""}
            more = {"type": "text_delta", "text": block}
        yield _event("content_block_start", index=index, content_block=begun)
        yield _event("content_block_delta", index=index, delta=more)
        yield _event("content_block_stop", index=index)
    calls = any(isinstance(block, Call) for block in blocks)
    ended = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage={"output_tokens": 10})
    yield _event("message_stop")


def problem(text: str) -> dict[str, Any]:
    """The body of an HTTP error."""
    return {"type": "error", "error": {"type": "api_error", "message": text}}


def _event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()
