"""One app server of a session: a thread that it holds, and the turns that it was told."""

import json
from collections.abc import Mapping
from typing import Any

from scout.adapters.codex.flags import UNHEARD
from scout.adapters.persistent.pipe import Pipe
from scout.adapters.persistent.rpc import Rpc, is_call, message_of, tag_of_reply
from scout.adapters.transcript import Entry, inner, text

_HELLO, _READY, _THREAD = "hello", "ready", "thread"
_OPENING = 120.0  # seconds for a thread, with the MCP servers it needs


class CodexProgram:
    """What it was told and what it said are in the files of its pipe: nothing else needs to be remembered."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.rpc = Rpc(pipe, version=None)
        self.number = pipe.run.folder.name
        self._opened: Entry = {}

    # -- its thread ------------------------------------------------------------------------------

    @property
    def is_opened(self) -> bool:
        """Whether it was told which thread to hold."""
        return self.pipe.sent_at(_THREAD) is not None

    async def greet(self) -> None:
        """Wait until it answers; what was told before is not told again."""
        client = {"name": "scout", "title": "Scout", "version": "1"}
        unheard = {"optOutNotificationMethods": UNHEARD}
        await self.rpc.call(_HELLO, "initialize", {"clientInfo": client, "capabilities": unheard})
        if self.pipe.sent_at(_READY) is None:
            await self.rpc.notify("initialized", {}, _READY)

    async def open(self, method: str, params: Mapping[str, Any]) -> None:
        """Wait until it has its thread; what was told before is only waited for."""
        if not self._opened:
            self._opened = await self.rpc.call(_THREAD, method, params, _OPENING)

    @property
    def thread(self) -> str:
        """The thread that it holds or held; empty if it never had one."""
        if not self._opened:
            self._opened = inner(self._answer(_THREAD), "result")
        return text(inner(self._opened, "thread"), "id")

    @property
    def model(self) -> str | None:
        return text(self._opened, "model") or None

    # -- its turns -------------------------------------------------------------------------------

    def turn_id(self, delivery_id: str) -> str:
        """What it calls this turn; empty while it has not said so."""
        return text(inner(inner(self._answer(delivery_id), "result"), "turn"), "id")

    def is_over(self, delivery_id: str) -> bool:
        """Whether it said that this turn has ended."""
        turn, begun = self.turn_id(delivery_id), self.pipe.sent_at(delivery_id)
        lines = (line.text for line in self.pipe.read_lines(begun or 0))
        ends = (message_of(line) for line in lines if b'"turn/completed"' in line)
        return any(text(inner(inner(end, "params"), "turn"), "id") == turn for end in ends)

    def has_answered(self, delivery_id: str) -> bool:
        """Whether it said anything to the prompt of this delivery."""
        return bool(self._answer(delivery_id))

    async def interrupt(self, delivery_id: str) -> None:
        """End this turn; it is over when it says so."""
        turn = inner(await self.rpc.call(delivery_id, "turn/start", None), "turn")
        params = {"threadId": self.thread, "turnId": text(turn, "id")}
        await self.rpc.send(f"interrupt:{delivery_id}", "turn/interrupt", params)
        async for _ in self.pipe.follow_lines(self.pipe.sent_at(delivery_id) or 0):
            if self.is_over(delivery_id):
                return

    # -- its requests ----------------------------------------------------------------------------

    def is_open(self, ident: object) -> bool:
        """Whether a request of it has no answer yet."""
        return self.pipe.sent_at(tag_of_reply(ident)) is None

    def find_request(self, name: str) -> Entry | None:
        """A request of it that still waits, by its id as JSON."""
        said = (message_of(line.text) for line in self.pipe.read_lines())
        named = (one for one in said if is_call(one) and json.dumps(one["id"]) == name)
        return next((one for one in named if self.is_open(one["id"])), None)

    def _answer(self, tag: str) -> Entry:
        begun = self.pipe.sent_at(tag)
        if begun is None:
            return {}
        said = (message_of(line.text) for line in self.pipe.read_lines(begun))
        answers = (one for one in said if one.get("id") == tag and "method" not in one)
        return next(answers, Entry())


def text_input(words: str) -> list[dict[str, str]]:
    """A prompt in Codex's shape."""
    return [{"type": "text", "text": words}]
