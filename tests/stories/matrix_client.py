"""A person's phone: an account on a Matrix homeserver, used through the client library matrix-nio."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from nio import (  # pyright: ignore[reportMissingTypeStubs] (it ships no types)
    AsyncClient,
    LoginResponse,
    RoomCreateResponse,
    RoomMessagesResponse,
    RoomMessageText,
    RoomSendResponse,
)

__all__ = ["MatrixPhone", "a_matrix_phone"]

_WAIT = 60.0
T = TypeVar("T")


class MatrixPhone:
    """One account, and the room in which it talks with the bot."""

    def __init__(self, client: AsyncClient, runner: asyncio.Runner) -> None:
        self._client, self._runner = client, runner
        self.room = ""

    def open_chat(self, bot: str) -> None:
        """Start a direct chat without encryption, as a person does."""
        made = self._runner.run(self._client.room_create(is_direct=True, invite=[bot]))
        self.room = _need(made, RoomCreateResponse).room_id

    def say(self, text: str) -> None:
        self._send("m.room.message", {"msgtype": "m.text", "body": text})

    def react(self, message: str, sign: str) -> None:
        relation = {"rel_type": "m.annotation", "event_id": message, "key": sign}
        self._send("m.reaction", {"m.relates_to": relation})

    def shows(self, text: str) -> RoomMessageText:
        """The newest message of another account with this text, as soon as it is there."""
        until = time.monotonic() + _WAIT
        while not (found := [one for one in self.read() if text in one.body]):
            assert time.monotonic() < until, f"no {text!r} among {[one.body for one in self.read()]}"
            self._runner.run(self._client.sync(timeout=2000))  # returns with the next event
        return found[0]

    def read(self) -> list[RoomMessageText]:
        """What others have said, newest first; an edit is a message too."""
        page = _need(self._runner.run(self._client.room_messages(self.room, limit=100)), RoomMessagesResponse)
        own = self._client.user_id
        return [one for one in page.chunk if isinstance(one, RoomMessageText) and one.sender != own]

    def _send(self, kind: str, content: dict[str, Any]) -> None:
        _need(self._runner.run(self._client.room_send(self.room, kind, content)), RoomSendResponse)


def _need(answer: object, kind: type[T]) -> T:
    assert isinstance(answer, kind), answer
    return answer


@contextmanager
def a_matrix_phone(url: str, user: str, password: str) -> Generator[MatrixPhone]:
    """A phone that is logged in."""
    with asyncio.Runner() as runner:

        async def log_in() -> AsyncClient:
            client = AsyncClient(url, user)
            _need(await client.login(password), LoginResponse)
            return client

        client = runner.run(log_in())
        try:
            yield MatrixPhone(client, runner)
        finally:
            runner.run(client.close())
