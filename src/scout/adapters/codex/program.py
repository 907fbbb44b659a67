"""One app server of a session: its thread, its turns and its requests."""

import json
from collections.abc import Mapping
from typing import Any

from scout.adapters.codex.flags import UNHEARD
from scout.adapters.persistent.pipe import Pipe
from scout.adapters.persistent.rpc import Rpc, build_reply_tag, is_call, parse_message
from scout.adapters.transcript import Entry, get_object, get_text

_HELLO, _READY, _THREAD = "hello", "ready", "thread"
_OPENING = 120.0  # seconds to open a thread and start its MCP servers


class CodexProgram:
    """One app server. Its whole state is in the files of its pipe."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.rpc = Rpc(pipe, version=None)
        self.number = pipe.run.folder.name
        self._opened: Entry = {}

    # -- its thread ------------------------------------------------------------------------------

    @property
    def is_opened(self) -> bool:
        """Whether a thread was requested from the program."""
        return self.pipe.find_position(_THREAD) is not None

    async def greet(self) -> None:
        """Wait until the program answers the handshake, which is sent only once."""
        client = {"name": "scout", "title": "Scout", "version": "1"}
        unheard = {"optOutNotificationMethods": UNHEARD}
        await self.rpc.call(_HELLO, "initialize", {"clientInfo": client, "capabilities": unheard})
        if self.pipe.find_position(_READY) is None:
            await self.rpc.notify("initialized", {}, _READY)

    async def open(self, method: str, params: Mapping[str, Any]) -> None:
        """Wait until the thread is open. The request is sent only once."""
        if not self._opened:
            self._opened = await self.rpc.call(_THREAD, method, params, _OPENING)

    @property
    def thread(self) -> str:
        """The id of the thread that was opened; empty if none was."""
        if not self._opened:
            self._opened = get_object(self._answer(_THREAD), "result")
        return get_text(get_object(self._opened, "thread"), "id")

    @property
    def model(self) -> str | None:
        return get_text(self._opened, "model") or None

    # -- its turns -------------------------------------------------------------------------------

    def turn_id(self, delivery_id: str) -> str:
        """Return Codex's id of this turn; empty until it is known."""
        return get_text(get_object(get_object(self._answer(delivery_id), "result"), "turn"), "id")

    def is_over(self, delivery_id: str) -> bool:
        """Whether the program has reported the end of this turn."""
        turn, begun = self.turn_id(delivery_id), self.pipe.find_position(delivery_id)
        lines = (line.text for line in self.pipe.read_lines(begun or 0))
        ends = (parse_message(line) for line in lines if b'"turn/completed"' in line)
        return any(get_text(get_object(get_object(end, "params"), "turn"), "id") == turn for end in ends)

    def has_answered(self, delivery_id: str) -> bool:
        """Whether the program has answered the prompt of this delivery."""
        return bool(self._answer(delivery_id))

    async def interrupt(self, delivery_id: str) -> None:
        """Interrupt this turn and wait until it has ended."""
        turn = get_object(await self.rpc.call(delivery_id, "turn/start", None), "turn")
        params = {"threadId": self.thread, "turnId": get_text(turn, "id")}
        await self.rpc.send(f"interrupt:{delivery_id}", "turn/interrupt", params)
        async for _ in self.pipe.follow_lines(self.pipe.find_position(delivery_id) or 0):
            if self.is_over(delivery_id):
                return

    # -- its requests ----------------------------------------------------------------------------

    def is_open(self, ident: object) -> bool:
        """Whether a request of the program has no answer yet."""
        return self.pipe.find_position(build_reply_tag(ident)) is None

    def find_request(self, name: str) -> Entry | None:
        """Return an unanswered request of the program by its id as JSON."""
        said = (parse_message(line.text) for line in self.pipe.read_lines())
        named = (one for one in said if is_call(one) and json.dumps(one["id"]) == name)
        return next((one for one in named if self.is_open(one["id"])), None)

    def _answer(self, tag: str) -> Entry:
        begun = self.pipe.find_position(tag)
        if begun is None:
            return {}
        said = (parse_message(line.text) for line in self.pipe.read_lines(begun))
        answers = (one for one in said if one.get("id") == tag and "method" not in one)
        return next(answers, Entry())


def build_input(words: str) -> list[dict[str, str]]:
    """Return a prompt in Codex's format."""
    return [{"type": "text", "text": words}]
