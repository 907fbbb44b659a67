"""The Gemini dialect: `POST /v1beta/models/MODEL:streamGenerateContent`, and the same without a stream."""

import json
from collections.abc import Iterator
from typing import Any

from tests.live.model.script import Call, Heard, Turn

__all__ = ["PATH", "PING", "closing", "opening", "problem", "read_request"]

PATH = "/v1beta/models/"
PING = b": ping\n\n"

_USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
_CHOICE = json.dumps({"reasoning": "scripted", "model_choice": "flash", "complexity_score": 1})


def read_request(body: Any) -> Heard:
    """What a request says; the program's own instructions are elsewhere."""
    turns = [turn for content in body["contents"] for turn in _turns(content)]
    tools = [tool for one in body.get("tools") or () for tool in one.get("functionDeclarations") or ()]
    return Heard(tuple(turns), tuple(tool["name"] for tool in tools))


def _turns(content: Any) -> Iterator[Turn]:
    if content["role"] == "model":
        yield Turn("model")
        return
    for part in content["parts"]:
        if "functionResponse" in part:
            yield Turn("tool", _text(part["functionResponse"]["response"]))
        elif "text" in part:
            yield Turn("user", part["text"])


def _text(response: Any) -> str:
    told = response.get("output", response)
    return told if isinstance(told, str) else json.dumps(told)


def opening(body: Any, ident: str) -> Iterator[bytes]:
    """Nothing: an answer begins with its first part."""
    yield from ()


def closing(blocks: tuple[str | Call, ...], body: Any, ident: str) -> Iterator[bytes]:
    """One event with all parts."""
    if body.get("generationConfig", {}).get("responseMimeType") == "application/json":
        blocks = (_CHOICE,)  # the program asks which of its models should answer
    parts = [_part(block, f"{ident}-{place}") for place, block in enumerate(blocks)]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    yield f"data: {json.dumps({'candidates': [candidate], 'usageMetadata': _USAGE})}\r\n\r\n".encode()


def _part(block: str | Call, ident: str) -> dict[str, Any]:
    if isinstance(block, Call):
        return {"functionCall": {"name": block.name, "args": block.arguments, "id": ident}}
    return {"text": block}


def problem(text: str) -> dict[str, Any]:
    """The body of an HTTP error."""
    return {"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}}
