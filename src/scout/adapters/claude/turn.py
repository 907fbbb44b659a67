"""One turn of Claude Code, read from the files of its program, and the lines that are sent to it."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from itertools import takewhile
from typing import Any

from scout.adapters.claude.events import ClaudeReader, is_cancelled, read_request
from scout.adapters.persistent.harness import accept, describe_end
from scout.adapters.persistent.pipe import Pipe, PipeLine
from scout.adapters.persistent.rpc import parse_message
from scout.adapters.transcript import Entry
from scout.base.codec import encode
from scout.model.problems.session import Layer
from scout.ports import Completed, Failed, HarnessEvent

STEER = "steer:"
PROMPT_MARK = b'"type":"user"'
_SPACE = uuid.UUID("5c0a7d6e-1f0b-4c0e-9d5e-7b1f3a2c9e41")  # namespace of Scout's ids for Claude Code
_LOST = ("No conversation found", "already in use")


def make_uuid(name: str) -> str:
    """Return Claude Code's id for a session or prompt that Scout started; the same name gives the same id."""
    return str(uuid.uuid5(_SPACE, name))


# -- what is sent ------------------------------------------------------------------------------------


def encode_prompt(text: str, tag: str) -> bytes:
    """Encode a prompt. A leading slash would be read as a command of the program."""
    content = f" {text}" if text.startswith("/") else text
    return encode({"type": "user", "message": {"role": "user", "content": content}, "uuid": make_uuid(tag)})


def encode_control(ident: str, request: dict[str, Any]) -> bytes:
    """Encode a request to the program itself."""
    return encode({"type": "control_request", "request_id": ident, "request": request})


async def send_response(pipe: Pipe, request: str, response: dict[str, Any]) -> bool:
    """Answer a request of the program; whether the program took the answer."""
    line = encode({"type": "control_response", "response": {**response, "request_id": request}})
    return await pipe.send(line, _build_reply_tag(request))


def _build_reply_tag(request: str) -> str:
    return f"re:{request}"


# -- what was said -----------------------------------------------------------------------------------


def find_request(pipe: Pipe, request: str) -> Entry | None:
    """Return the request of this id while it waits for an answer."""
    if pipe.find_position(_build_reply_tag(request)) is not None:
        return None
    for line in pipe.read_lines():
        if request.encode() in line.text and read_request(message := parse_message(line.text)) is not None:
            return None if _is_withdrawn(pipe, request, line.after) else message
    return None


def _is_withdrawn(pipe: Pipe, request: str, after: int) -> bool:
    later = (line.text for line in pipe.read_lines(after) if request.encode() in line.text)
    return any(is_cancelled(parse_message(line), request) for line in later)


def read_end(pipe: Pipe) -> Failed:
    """Return the failure of a turn whose program has ended, often because it could not resume its session."""
    end = describe_end(pipe)
    lost = any(words in end.reason for words in _LOST)
    return Failed(layer=Layer.SESSION if lost else end.layer, reason=end.reason, log=end.log)


class ClaudeTurn:
    """A turn that was sent to the program. `find_answer` looks for the answer in the transcript."""

    def __init__(self, pipe: Pipe, delivery_id: str, find_answer: Callable[[], str | None]) -> None:
        self._pipe = pipe
        self._begun = pipe.find_position(delivery_id) or 0
        self._delivery_id = delivery_id
        self._reader = ClaudeReader(make_uuid(delivery_id))
        self._find_answer = find_answer
        self._expected = set[str]()  # prompts that are being steered into the turn now

    @property
    def is_waiting(self) -> bool:
        return bool(self._reader.waiting)

    async def events(self) -> AsyncIterator[HarnessEvent]:
        yield accept(self._pipe)
        async for line in self._pipe.follow_lines(self._begun):
            for event in await self._read(line):
                yield event
            if self._reader.over:
                return
        yield await asyncio.to_thread(self._explain_loss)

    def is_over(self) -> bool:
        """Whether the program has reported the end of the turn."""
        for line in self._pipe.read_lines(self._begun):
            self._read_message(parse_message(line.text))
        return self._reader.over

    def list_steered(self) -> list[str]:
        """Return the ids of the prompts that were steered into the turn: those sent before the next turn."""
        sent = self._pipe.read_sent_lines()
        begun = next((at for at, one in enumerate(sent, 1) if one.tag == self._delivery_id), len(sent))
        same_turn = takewhile(lambda one: ":" in one.tag or PROMPT_MARK not in one.text, sent[begun:])
        return [make_uuid(one.tag) for one in same_turn if one.tag.startswith(STEER)]

    def expect(self, tag: str) -> bool:
        """Wait for the answer to a prompt that is about to be sent; return False if the turn has ended."""
        if self._reader.over:
            return False
        self._expected.add(make_uuid(tag))
        return True

    def stop_expecting(self, tag: str) -> None:
        """The prompt did not reach the program."""
        self._expected.discard(make_uuid(tag))

    async def _read(self, line: PipeLine) -> list[HarnessEvent]:
        message, events = parse_message(line.text), list[HarnessEvent]()
        for request in self._reader.waiting:
            if self._pipe.find_position(_build_reply_tag(request)) is not None:
                events += self._reader.settle(request)
        if message.get("type") == "control_request" and not await self._needs_answer(message, line):
            return events
        return [*events, *self._read_message(message)]

    def _read_message(self, message: Entry) -> list[HarnessEvent]:
        ends = message.get("type") in ("result", "command_lifecycle")
        return list(self._reader.read(message, {*self.list_steered(), *self._expected} if ends else ()))

    async def _needs_answer(self, message: Entry, line: PipeLine) -> bool:
        """Whether a person must answer: the request is for a person, and neither answered nor withdrawn."""
        request = str(message.get("request_id"))
        if self._pipe.find_position(_build_reply_tag(request)) is not None or not self._pipe.is_running:
            return False
        if read_request(message) is None:
            await send_response(
                self._pipe, request, {"subtype": "error", "error": "Scout does not support this request"}
            )
            return True
        return not _is_withdrawn(self._pipe, request, line.after)

    def _explain_loss(self) -> HarnessEvent:
        """Return the end of a turn without a result. The transcript may hold the answer."""
        text = None if self._pipe.run.stopped else self._find_answer()
        return read_end(self._pipe) if text is None else Completed(text=text)
