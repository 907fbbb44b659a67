"""The connector `telegram` against a Bot API that others wrote: the npm package telegram-test-api.

It knows texts, buttons and edits; it has neither files, threads nor typing, and reports each update once.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import telegram

from scout.model.attention import AttentionState
from scout.protocol.attention import GetAttention
from tests.broker.rig import wait_until
from tests.connectors.chatting import Chat, chat_test
from tests.connectors.stage import Fault, Shown
from tests.connectors.telegram_fake import NOW
from tests.connectors.telegram_stage import TelegramStage
from tests.live.programs import Program, require_program

pytestmark = pytest.mark.slow

EMULATOR = Program("telegram-test-api", "4.2.1", "telegram-test-api/lib/index.js")
_TOKEN = "666:" + "emulated-" * 4
_START = """
const TelegramServer = require(process.argv[1]);
const server = new TelegramServer({ host: '127.0.0.1', port: Number(process.argv[2]), storeTimeout: 600 });
server.start().then(() => console.log('ready'));
"""


class EmulatedStage(TelegramStage):
    """People at the emulator; it speaks HTTP with them, too."""

    faults = frozenset[Fault]()

    def __init__(self, url: str) -> None:
        self.values = {"token": _TOKEN, "baseUrl": url}
        self._url = url

    def _post(self, path: str, body: Any) -> Any:
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def person(self, name: str) -> str:
        return str(100 + sum(map(ord, name)))

    def private(self, person: str) -> str:
        return person

    def say(self, person: str, chat: str, text: str, **more: Any) -> str:
        message = telegram.Message(0, NOW, _chat(chat), from_user=_user(person), text=text)
        self._post("/sendMessage", {**message.to_dict(), "botToken": _TOKEN})
        return ""

    def press(self, person: str, chat: str, message_id: str, label: str) -> None:
        (shown,) = [one for one in self._history(chat) if str(one["messageId"]) == message_id]
        rows = shown["message"]["reply_markup"]["inline_keyboard"]
        (data,) = [one["callback_data"] for row in rows for one in row if one["text"] == label]
        on = telegram.Message(int(message_id), NOW, _chat(chat), text="x").to_dict()
        query = {"from": _user(person).to_dict(), "message": on, "data": data, "botToken": _TOKEN}
        self._post("/sendCallback", query)

    def shown(self, chat: str) -> list[Shown]:
        return [_show(one) for one in self._history(chat)]

    def _history(self, chat: str) -> list[Any]:
        found = self._post("/getUpdatesHistory", {"token": _TOKEN})["result"]
        return [one for one in found if str(one.get("message", {}).get("chat_id")) == chat]

    def problems(self) -> list[str]:
        return []


def _user(person: str) -> telegram.User:
    return telegram.User(int(person), "somebody", False)


def _chat(chat: str) -> telegram.Chat:
    return telegram.Chat(int(chat), "private")


def _show(update: Any) -> Shown:
    message = update["message"]
    keyboard: dict[str, list[list[Any]]] = message.get("reply_markup") or {}
    rows = keyboard.get("inline_keyboard", [])
    return Shown(
        message_id=str(update["messageId"]),
        text=message["text"],
        markup=message["text"],
        buttons=tuple(one["text"] for row in rows for one in row),
    )


@contextlib.contextmanager
def emulated_stage() -> Generator[EmulatedStage]:
    library = require_program(EMULATOR)
    node = shutil.which("node")
    assert node is not None  # npm needs it, too
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [node, "-e", _START, str(library), str(port)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield EmulatedStage(f"http://127.0.0.1:{port}")
        finally:
            server.kill()


def test_link_ask_and_approve(tmp_path: Path) -> None:
    async def scene(chat: Chat) -> None:
        ada = await chat.link("ada")
        await chat.let_answer("ada")
        await chat.say(ada, "!say *twelve* & <more>")
        shown = await chat.shows(ada, "twelve")
        assert shown.markup == "<i>twelve</i> &amp; &lt;more&gt;"
        item = await chat.wants("npm test")
        asked = await chat.shows(ada, "npm test")
        assert asked.buttons == ("Once", "This session", "Always", "Deny")
        await chat.press(ada, "Once", asked)

        async def decided() -> bool:
            view = await chat.rig.operator(GetAttention(attention_id=str(item)))
            return view.state is AttentionState.RESOLVED

        await wait_until(decided)
        await chat.shows(ada, "Approved by /ada/direct")

    chat_test(emulated_stage(), tmp_path, scene)
