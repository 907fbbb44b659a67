"""The OpenAI Responses dialect, streamed: `POST /v1/responses`."""

import json
from collections.abc import Iterator
from typing import Any

from tests.live.model.script import Call, Heard, Turn

__all__ = ["PATH", "PING", "closing", "opening", "problem", "read_request"]

PATH = "/v1/responses"
PING = b": ping\n\n"

_USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 20,
}
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")


def read_request(body: Any) -> Heard:
    """What a request says; a tool of a namespace is spelled `namespace/name`."""
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    turns = [turn for item in items for turn in _turns(item)]
    return Heard(tuple(turns), tuple(_offered(body.get("tools", ()))))


def _turns(item: Any) -> Iterator[Turn]:
    kind = item.get("type", "message")
    if kind in _CALLS or item.get("role") == "assistant":
        yield Turn("model")
    elif kind.endswith("_output"):
        yield Turn("tool", _text(item.get("output", "")))
    elif item.get("role") == "user":
        content = item["content"]
        for part in [{"text": content}] if isinstance(content, str) else content:
            if "text" in part:
                yield Turn("user", part["text"])


def _text(output: Any) -> str:
    if isinstance(output, list):
        return "\n".join(part["text"] for part in output if "text" in part)  # pyright: ignore (plain JSON)
    return output if isinstance(output, str) else json.dumps(output)


def _offered(tools: Any, space: str = "") -> Iterator[str]:
    for tool in tools:
        if tool["type"] == "namespace":
            yield from _offered(tool["tools"], f"{tool['name']}/")
        elif "name" in tool:
            yield space + tool["name"]


def opening(body: Any, ident: str) -> Iterator[bytes]:
    """The events with which an answer begins."""
    response: dict[str, Any] = {
        "id": f"resp_{ident}",
        "object": "response",
        "status": "in_progress",
        "output": [],
    }
    yield _event("response.created", response=response)
    yield _event("response.in_progress", response=response)


def closing(blocks: tuple[str | Call, ...], body: Any, ident: str) -> Iterator[bytes]:
    """The events of the blocks, and the end."""
    output: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        item, events = (
            _call(block, ident, index) if isinstance(block, Call) else _message(block, ident, index)
        )
        begun = {**item, "status": "in_progress"}
        begun |= {"arguments": ""} if isinstance(block, Call) else {"content": []}
        yield _event("response.output_item.added", output_index=index, item=begun)
        yield from events
        yield _event("response.output_item.done", output_index=index, item=item)
        output.append(item)
    response = {
        "id": f"resp_{ident}",
        "object": "response",
        "status": "completed",
        "model": body.get("model", "scripted"),
        "output": output,
        "usage": _USAGE,
    }
    yield _event("response.completed", response=response)


def _message(text: str, ident: str, index: int) -> tuple[dict[str, Any], list[bytes]]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    where = {"item_id": f"msg_{ident}_{index}", "output_index": index, "content_index": 0}
    item = {
        "type": "message",
        "id": where["item_id"],
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    return item, [
        _event("response.content_part.added", **where, part={**part, "text": ""}),
        _event("response.output_text.delta", **where, delta=text),
        _event("response.output_text.done", **where, text=text),
        _event("response.content_part.done", **where, part=part),
    ]


def _call(call: Call, ident: str, index: int) -> tuple[dict[str, Any], list[bytes]]:
    space, _, name = call.name.rpartition("/")
    where = {"item_id": f"fc_{ident}_{index}", "output_index": index}
    arguments = json.dumps(call.arguments)
    item = {
        "type": "function_call",
        "id": where["item_id"],
        "call_id": f"call_{ident}_{index}",
        "name": name,
        **({"namespace": space} if space else {}),
        "arguments": arguments,
        "status": "completed",
    }
    return item, [
        _event("response.function_call_arguments.delta", **where, delta=arguments),
        _event("response.function_call_arguments.done", **where, arguments=arguments),
    ]


def problem(text: str) -> dict[str, Any]:
    """The body of an HTTP error; a text that is an object is the error itself."""
    if text.startswith("{"):
        return {"error": json.loads(text)}
    return {"error": {"type": "server_error", "code": "scripted", "message": text}}


def _event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()
