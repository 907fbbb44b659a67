"""The stage of the connector `matrix`: a real Synapse, accounts of people as phones, and a proxy that plays faults.

Everything that people and the bot do is done by Synapse. The proxy stands between Synapse and the bot only, and forwards
what it gets as long as no fault is played.
"""

import asyncio
import contextlib
import itertools
import re
from collections.abc import Generator
from typing import Any
from urllib.parse import parse_qsl, urlencode

import httpx2

from tests.connectors.loopback import Loopback, Receive, Request, Response, Send, respond
from tests.connectors.matrix_phone import Phone
from tests.connectors.stage import Fault, Shown
from tests.connectors.synapse import Synapse

__all__ = ["MatrixProxy", "MatrixStage", "matrix_stage"]

_numbers = itertools.count(1)
_CHOICE = re.compile(
    "^([\u2190-\U0001faff]\\S*|\\d\ufe0f\u20e3) (.+)$", re.MULTILINE
)  # a sign, and its label
_SENDING = re.compile(r".*/rooms/[^/]+/send/")
_TYPING = re.compile(r".*/rooms/([^/]+)/typing/")


class MatrixProxy:
    """Forwards to Synapse."""

    def __init__(self, synapse: Synapse) -> None:
        self._synapse = synapse
        self._faults: list[Fault] = []
        self._first: str | None = None
        self._again = False
        self._interrupted = asyncio.Event()
        self.typing: list[str] = []
        self.server = Loopback(self)

    def play(self, fault: Fault) -> None:
        """Answer with a fault from now on. A limit is for messages."""
        self._faults.append(fault)
        if fault is not Fault.RATE:
            self._interrupt()

    def stop_playing(self, fault: Fault) -> None:
        if fault in self._faults:
            self._faults.remove(fault)

    def repeat(self) -> None:
        """Report everything once more: the next sync begins with the first position."""
        self._again = True
        self._interrupt()

    def _interrupt(self) -> None:
        self.server.call(self._interrupted.set)

    async def handle_socket(self, path: str, query: str, receive: Receive, send: Send) -> None:
        raise AssertionError("Matrix has no sockets")

    async def handle(self, request: Request) -> Response:
        if (fault := self._find_fault(request)) is not None:
            return fault
        if found := _TYPING.match(request.path):
            self.typing.append(found[1])
        return await self._sync(request) if request.path.endswith("/sync") else await self._forward(request)

    def _find_fault(self, request: Request) -> Response | None:
        fault = self._faults[0] if self._faults else None
        match fault:
            case Fault.RATE if _SENDING.match(request.path):
                self._faults.remove(Fault.RATE)
                return respond(
                    {"errcode": "M_LIMIT_EXCEEDED", "error": "Slow down", "retry_after_ms": 1000}, 429
                )
            case Fault.ERROR:
                return respond({"errcode": "M_UNKNOWN", "error": "Internal server error"}, 500)
            case Fault.CREDENTIALS:
                return respond({"errcode": "M_UNKNOWN_TOKEN", "error": "Invalid access token"}, 401)
            case Fault.REFUSED if _SENDING.match(request.path):
                return respond({"errcode": "M_FORBIDDEN", "error": "You are not in this room"}, 403)
            case _:
                return None

    async def _sync(self, request: Request) -> Response:
        """Forward a sync, which may wait for long, until something interrupts it."""
        query = dict(parse_qsl(request.query))
        since = query.get("since")
        self._first = self._first or since
        if self._again and self._first and since:
            self._again = False
            request = request._replace(query=urlencode({**query, "since": self._first, "timeout": "0"}))
        self._interrupted.clear()
        forwarding = asyncio.ensure_future(self._forward(request))
        interrupting = asyncio.ensure_future(self._interrupted.wait())
        await asyncio.wait([forwarding, interrupting], return_when=asyncio.FIRST_COMPLETED)
        interrupting.cancel()
        if forwarding.done():
            return forwarding.result()
        forwarding.cancel()
        return self._find_fault(request) or respond({"next_batch": since})

    async def _forward(self, request: Request) -> Response:
        async with httpx2.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
            headers = {name: value for name, value in request.headers.items() if name != "host"}
            try:
                answer = await client.request(
                    request.method,
                    f"{self._synapse.url}{request.path}?{request.query}",
                    headers=headers,
                    content=request.body,
                )
            except httpx2.HTTPError:
                return respond({"errcode": "M_UNKNOWN", "error": "Bad gateway"}, 502)
        kind = answer.headers.get("content-type", "application/octet-stream")
        return Response(answer.status_code, answer.content, {"content-type": kind})


class MatrixStage:
    """One bot on the homeserver. A thread begins with a notice, which bots leave alone."""

    connector = "matrix"
    faults = frozenset(Fault)

    def __init__(self, synapse: Synapse) -> None:
        number = next(_numbers)
        self._synapse = synapse
        self._proxy = MatrixProxy(synapse)
        self._proxy.server.start()
        self._suffix = f"s{number}"
        self._bot = Phone(synapse.url, *synapse.register(f"scout-{self._suffix}"))
        self._phones: dict[str, Phone] = {}
        self._names: dict[str, str] = {}
        self._rooms: dict[str, str] = {}
        self._owners: dict[str, Phone] = {}
        token = self._bot.token
        self.values: dict[str, str] = {
            "baseUrl": self._proxy.server.url,
            "accessToken": token,
            "groupInvites": "*",
        }

    def close(self) -> None:
        self._proxy.server.close()
        for one in (self._bot, *self._phones.values()):
            one.close()

    # -- what people do ----------------------------------------------------------------------------

    def person(self, name: str) -> str:
        if name not in self._names:
            account = self._synapse.register(f"{name.lower()}-{self._suffix}")
            self._names[name] = account[0]
            self._phones[account[0]] = Phone(self._synapse.url, *account)
        return self._names[name]

    def private(self, person: str) -> str:
        if person not in self._rooms:
            phone = self._phones[person]
            self._rooms[person] = phone.create_room(self._bot.user_id, direct=True)
            self._owners[self._rooms[person]] = phone
        return self._rooms[person]

    def group(self, name: str, *people: str) -> str:
        if name not in self._rooms:
            silent = self.person("silent")  # two members would be a private chat
            first, *others = (self._phones[one] for one in (*people, silent))
            room = first.create_room(self._bot.user_id, *(one.user_id for one in others))
            for one in others:
                one.join(room)
            self._rooms[name], self._owners[room] = room, first
        return self._rooms[name]

    def thread(self, chat: str, name: str) -> str:
        return self._owners[chat].say(chat, name, msgtype="m.notice")

    def say(
        self,
        person: str,
        chat: str,
        text: str,
        *,
        thread: str | None = None,
        reply_to: str | None = None,
        mention: bool = False,
        file: tuple[str, bytes] | None = None,
    ) -> str:
        phone = self._phones[person]
        more: dict[str, Any] = {}
        if mention:
            text = f"{self._bot.user_id}: {text}"
            more["m.mentions"] = {"user_ids": [self._bot.user_id]}
        if relation := _relate(thread, reply_to):
            more["m.relates_to"] = relation
        if file is not None:
            return phone.send_file(chat, *file, **({"body": text, **more} if text else more))
        return phone.say(chat, text, **more)

    def edit(self, person: str, chat: str, message_id: str, text: str) -> None:
        self._phones[person].edit(chat, message_id, text)

    def press(self, person: str, chat: str, message_id: str, label: str) -> None:
        self._phones[person].react(chat, message_id, self._find_reaction(chat, message_id, label))

    def press_as_bot(self, chat: str, message_id: str, label: str) -> None:
        """The bot gives each reaction that it offers itself; the same once more is refused."""
        reaction = self._find_reaction(chat, message_id, label)
        try:
            self._bot.react(chat, message_id, reaction)
        except AssertionError as refused:
            assert "M_DUPLICATE_ANNOTATION" in str(refused)

    def repeat(self) -> None:
        self._proxy.repeat()

    # -- what people see ---------------------------------------------------------------------------

    def shown(self, chat: str) -> list[Shown]:
        messages = self._list_messages(chat)
        edits = {_get_relation(one).get("event_id"): one for one in messages if _is_edit(one)}
        return [
            self._show(one, edits.get(one["event_id"]))
            for one in messages
            if not _is_edit(one) and not _is_note(one)
        ]

    def notes(self, person: str) -> list[str]:
        rooms = [room for room, owner in self._owners.items() if self._is_in(person, room, owner)]
        notes = [one["content"] for room in rooms for one in self._list_messages(room) if _is_note(one)]
        return [
            one["body"].partition(": ")[2] or one["body"]
            for one in notes
            if person in one["m.mentions"]["user_ids"]
        ]

    def typed(self, chat: str) -> int:
        return self._proxy.typing.count(chat)

    # -- what goes wrong ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def fault(self, fault: Fault) -> Generator[None]:
        if fault is Fault.DOWN:
            self._proxy.server.stop()
            yield
            self._proxy.server.resume()
            return
        self._proxy.play(fault)
        yield
        self._proxy.stop_playing(fault)

    def restart(self) -> None:
        self._synapse.stop()
        self._synapse.start()

    def problems(self) -> list[str]:
        return []  # Synapse itself answers

    # -- details -----------------------------------------------------------------------------------

    def _list_messages(self, chat: str) -> list[dict[str, Any]]:
        return self._owners[chat].list_messages(chat, self._bot.user_id)

    def _is_in(self, person: str, room: str, owner: Phone) -> bool:
        return owner.get_members(room).get(person) == "join"

    def _find_reaction(self, chat: str, message_id: str, label: str) -> str:
        (found,) = (one for one in self.shown(chat) if one.message_id == message_id)
        return {words: sign for sign, words in _read_choices(found.text)}[label]

    def _show(self, message: dict[str, Any], edit: dict[str, Any] | None) -> Shown:
        content = edit["content"]["m.new_content"] if edit is not None else message["content"]
        relation = _get_relation(message)
        in_thread = relation.get("rel_type") == "m.thread"
        is_reply = not relation.get("is_falling_back", False)
        url = content.get("url")
        return Shown(
            message_id=message["event_id"],
            text=content["body"],
            markup=content.get("formatted_body", ""),
            buttons=tuple(label for _, label in _read_choices(content["body"])),
            file=content.get("filename"),
            data=self._owners[message["room_id"]].download(url) if url else b"",
            thread=relation["event_id"] if in_thread else None,
            reply_to=relation.get("m.in_reply_to", {}).get("event_id") if is_reply else None,
            edited=edit is not None,
        )


def _relate(thread: str | None, reply_to: str | None) -> dict[str, Any]:
    if thread is None:
        return {"m.in_reply_to": {"event_id": reply_to}} if reply_to else {}
    told = {"rel_type": "m.thread", "event_id": thread, "is_falling_back": reply_to is None}
    return {**told, "m.in_reply_to": {"event_id": reply_to or thread}}


def _read_choices(text: str) -> list[tuple[str, str]]:
    """The lines that offer a reaction: the sign, and what it stands for."""
    return _CHOICE.findall(text)


def _get_relation(message: dict[str, Any]) -> dict[str, Any]:
    return message["content"].get("m.relates_to", {})


def _is_edit(message: dict[str, Any]) -> bool:
    return _get_relation(message).get("rel_type") == "m.replace"


def _is_note(message: dict[str, Any]) -> bool:
    """An answer to a press names the person; nothing else does."""
    return bool(message["content"].get("m.mentions", {}).get("user_ids"))


@contextlib.contextmanager
def matrix_stage(synapse: Synapse) -> Generator[MatrixStage]:
    stage = MatrixStage(synapse)
    try:
        yield stage
    finally:
        stage.close()
