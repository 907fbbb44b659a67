"""A strict Bot API on loopback: it accepts what the documentation allows, and nothing else.

Every request is also read by the types of python-telegram-bot, and every update is built by them, so that this
fake does not only confirm what its writer believes.
"""

import contextlib
import inspect
import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import telegram

__all__ = ["BOT", "TOKEN", "BotMessage", "TelegramFake"]

TOKEN = "110201543:" + "SCOUTtest" * 4
BOT = telegram.User(id=110201543, first_name="Scout", is_bot=True, username="scout_test_bot")
_TAGS = {"b", "strong", "i", "em", "u", "s", "del", "code", "pre", "a", "blockquote", "tg-spoiler", "span"}
_CHOICES = "inline_keyboard"
NOW = datetime(2026, 11, 17, tzinfo=UTC)

# Parameters by method, as the documentation lists them: the type, and whether it is required.
_TEXT, _INT, _BOOL, _OBJECT, _LIST = str, int, bool, dict, list
METHODS: dict[str, dict[str, tuple[type, bool]]] = {
    "getMe": {},
    "deleteWebhook": {"drop_pending_updates": (_BOOL, False)},
    "getUpdates": {
        "offset": (_INT, False),
        "limit": (_INT, False),
        "timeout": (_INT, False),
        "allowed_updates": (_LIST, False),
    },
    "sendMessage": {
        "chat_id": (_INT, True),
        "text": (_TEXT, True),
        "parse_mode": (_TEXT, False),
        "message_thread_id": (_INT, False),
        "reply_parameters": (_OBJECT, False),
        "reply_markup": (_OBJECT, False),
        "link_preview_options": (_OBJECT, False),
    },
    "sendDocument": {
        "chat_id": (_INT, True),
        "document": (bytes, True),
        "caption": (_TEXT, False),
        "parse_mode": (_TEXT, False),
        "message_thread_id": (_INT, False),
        "reply_parameters": (_OBJECT, False),
        "reply_markup": (_OBJECT, False),
    },
    "editMessageText": {
        "chat_id": (_INT, True),
        "message_id": (_INT, True),
        "text": (_TEXT, True),
        "parse_mode": (_TEXT, False),
        "reply_markup": (_OBJECT, False),
        "link_preview_options": (_OBJECT, False),
    },
    "answerCallbackQuery": {
        "callback_query_id": (_TEXT, True),
        "text": (_TEXT, False),
        "show_alert": (_BOOL, False),
    },
    "sendChatAction": {
        "chat_id": (_INT, True),
        "message_thread_id": (_INT, False),
        "action": (_TEXT, True),
    },
    "getFile": {"file_id": (_TEXT, True)},
}
_TYPES: dict[str, Any] = {
    "reply_markup": telegram.InlineKeyboardMarkup,
    "reply_parameters": telegram.ReplyParameters,
    "link_preview_options": telegram.LinkPreviewOptions,
}
_SPELLED = {
    name: re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in METHODS
}  # sendMessage → send_message


class ApiError(Exception):
    """An answer of the API that is no result."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.parameters = parameters


class _Html(HTMLParser):
    """HTML as Telegram parses it: known tags that match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self._open: list[str] = []
        if re.search(r"&(?!(lt|gt|amp|quot|#\d+|#x[0-9a-f]+);)", text):
            raise ApiError(400, "Bad Request: can't parse entities: unsupported entity")
        self.feed(text)
        self.close()
        if self._open:
            raise ApiError(400, f"Bad Request: can't parse entities: can't find end tag for {self._open[-1]}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            raise ApiError(400, f'Bad Request: can\'t parse entities: unsupported start tag "{tag}"')
        if "code" in self._open[:-1] or (self._open[-1:] == ["code"]):
            raise ApiError(400, "Bad Request: can't parse entities: nested in code")
        if tag == "a" and not (dict(attrs).get("href") or "").startswith("http"):
            raise ApiError(400, "Bad Request: can't parse entities: link without a URL")
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            raise ApiError(400, f'Bad Request: can\'t parse entities: unexpected end tag "{tag}"')

    def handle_data(self, data: str) -> None:
        self.text += data


@dataclass
class BotMessage:
    """A message that the bot sent."""

    chat: int
    id: int
    text: str
    markup: str
    thread: int | None = None
    reply_to: int | None = None
    buttons: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    file: str | None = None
    data: bytes = b""
    edited: bool = False


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    fake: "TelegramFake"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is killed is no error of the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride] (it is only made here)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, answer = self.server.fake.answer(self.path, self.headers.get("Content-Type") or "", body)
        self._write(status, json.dumps(answer).encode(), "application/json")

    def do_GET(self) -> None:
        found = self.server.fake.find_file(self.path)
        self._write(200 if found is not None else 404, found or b"", "application/octet-stream")

    def _write(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def setup(self) -> None:
        super().setup()
        self.server.fake.connections.add(self.connection)

    def finish(self) -> None:
        self.server.fake.connections.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
        """Say nothing."""


class TelegramFake:
    """The server. Its state survives `stop` and `start`, and so does its address."""

    _numbers: ClassVar = itertools.count(1000)

    def __init__(self) -> None:
        self.news = threading.Condition()
        self.token = TOKEN
        self.connections: set[socket.socket] = set()
        self.chats: dict[int, telegram.Chat] = {}
        self.topics: set[tuple[int, int]] = set()
        self.messages: list[BotMessage] = []
        self.said: dict[tuple[int, int], telegram.Message] = {}
        self.notes: list[tuple[int, str]] = []
        self.actions: list[int] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.problems: list[str] = []
        self.script: list[Callable[[str], None]] = []  # called in turn before a method; may raise ApiError
        self.refuses: Callable[[str], None] = lambda _: None
        self.polls = 0
        self._queue: list[dict[str, Any]] = []
        self._past: list[dict[str, Any]] = []
        self._queries: dict[str, int] = {}
        self._files: dict[str, bytes] = {}
        self._ids = itertools.count(1)
        self._updates = itertools.count(500)
        self._server: _Server | None = None
        self._port = 0

    # -- the server --------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._server = _Server(("127.0.0.1", self._port), _Handler)
        self._server.fake = self
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Nobody answers, and open connections are cut."""
        server, self._server = self._server, None
        if server is None:
            return
        server.shutdown()
        server.server_close()
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        with self.news:
            self.news.notify_all()

    @contextlib.contextmanager
    def running(self) -> Generator["TelegramFake"]:
        self.start()
        try:
            yield self
        finally:
            self.stop()

    # -- requests ----------------------------------------------------------------------------------

    def answer(self, path: str, kind: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """The status and the answer of one call."""
        try:
            found = re.fullmatch(r"/bot([^/]+)/(\w+)", path)
            if found is None or not re.fullmatch(r"\d+:[\w-]{35,}", found[1]):
                raise ApiError(404, "Not Found")
            if found[1] != self.token:
                raise ApiError(401, "Unauthorized")
            return 200, {"ok": True, "result": self._perform(found[2], kind, body)}
        except ApiError as error:
            answer = {"ok": False, "error_code": error.code, "description": str(error)}
            return error.code, {**answer, "parameters": error.parameters} if error.parameters else answer

    def _perform(self, method: str, kind: str, body: bytes) -> Any:
        if method not in METHODS:
            raise ApiError(404, f"Not Found: method {method} not found")
        given = _read_form(kind, body) if kind.startswith("multipart/") else self._read_json(kind, body)
        problems = list(_check_shape(method, given))
        with self.news:
            self.problems += problems
            if method != "getUpdates":
                self.requests.append((method, given))
            (self.script.pop(0) if self.script and method != "getUpdates" else self.refuses)(method)
            if problems:
                raise ApiError(400, f"Bad Request: {problems[0]}")
            return getattr(self, f"_{_SPELLED[method]}")(given)

    def _read_json(self, kind: str, body: bytes) -> dict[str, Any]:
        if kind != "application/json":
            self.problems.append(f"content type {kind}")
        return json.loads(body or b"{}")

    def _get_me(self, _: Mapping[str, Any]) -> Any:
        return {**BOT.to_dict(), "can_join_groups": True, "can_read_all_group_messages": False}

    def _delete_webhook(self, _: Mapping[str, Any]) -> bool:
        return True

    def _get_updates(self, given: Mapping[str, Any]) -> list[Any]:
        offset = given.get("offset")
        if offset is not None:
            self._queue = [one for one in self._queue if one["update_id"] >= offset]
        self.polls += 1
        mine, until = self.polls, time.monotonic() + given.get("timeout", 0)
        self.news.notify_all()
        while not self._queue and self._server is not None:
            if self.polls != mine:
                reason = "Conflict: terminated by other getUpdates request"
                raise ApiError(409, reason)
            if not self.news.wait(until - time.monotonic()):
                break
        return self._queue[: given.get("limit", 100)]

    def _send_message(self, given: Mapping[str, Any]) -> Any:
        return self._show(given, *_read_text(given, "text", 4096))

    def _send_document(self, given: Mapping[str, Any]) -> Any:
        name, data = given["document"]
        return self._show(given, "", "", file=name, data=data)

    def _show(self, given: Mapping[str, Any], text: str, markup: str, **more: Any) -> Any:
        chat, thread = self._find_place(given)
        replied = given.get("reply_parameters", {}).get("message_id")
        lenient = given.get("reply_parameters", {}).get("allow_sending_without_reply")
        known = (chat.id, replied) in self.said or any(one.id == replied for one in self.messages)
        if replied is not None and not known and not lenient:
            raise ApiError(400, "Bad Request: message to be replied not found")
        shown = BotMessage(
            chat=chat.id,
            id=next(self._ids),
            text=text,
            markup=markup,
            thread=thread,
            reply_to=replied if known else None,
            buttons=_read_buttons(given),
            **more,
        )
        self.messages.append(shown)
        self.news.notify_all()
        return self._describe(shown)

    def _find_place(self, given: Mapping[str, Any]) -> tuple[telegram.Chat, int | None]:
        chat, thread = self.chats.get(given["chat_id"]), given.get("message_thread_id")
        if chat is None:
            raise ApiError(400, "Bad Request: chat not found")
        if thread is not None and (chat.id, thread) not in self.topics:
            raise ApiError(400, "Bad Request: message thread not found")
        return chat, thread

    def _describe(self, shown: BotMessage) -> Any:
        message = telegram.Message(
            message_id=shown.id,
            date=NOW,
            chat=self.chats[shown.chat],
            from_user=BOT,
            text=shown.text or None,
            message_thread_id=shown.thread,
            is_topic_message=True if shown.thread is not None else None,
        )
        return message.to_dict()

    def _edit_message_text(self, given: Mapping[str, Any]) -> Any:
        wanted = (given["chat_id"], given["message_id"])
        shown = next((one for one in self.messages if (one.chat, one.id) == wanted), None)
        if shown is None:
            raise ApiError(400, "Bad Request: message to edit not found")
        text, markup = _read_text(given, "text", 4096)
        buttons = _read_buttons(given)
        if (shown.text, shown.buttons) == (text, buttons):
            raise ApiError(
                400, "Bad Request: message is not modified: specified new message content is the same"
            )
        shown.text, shown.markup, shown.buttons, shown.edited = text, markup, buttons, True
        self.news.notify_all()
        return self._describe(shown)

    def _answer_callback_query(self, given: Mapping[str, Any]) -> bool:
        person = self._queries.pop(given["callback_query_id"], None)
        if person is None:
            raise ApiError(
                400, "Bad Request: query is too old and response timeout expired or query ID is invalid"
            )
        if len(given.get("text", "")) > 200:
            raise ApiError(400, "Bad Request: MESSAGE_TOO_LONG")
        self.notes.append((person, given.get("text", "")))
        self.news.notify_all()
        return True

    def _send_chat_action(self, given: Mapping[str, Any]) -> bool:
        chat, _ = self._find_place(given)
        if given["action"] not in ("typing", "upload_document"):
            raise ApiError(400, "Bad Request: wrong parameter action in request")
        self.actions.append(chat.id)
        return True

    def _get_file(self, given: Mapping[str, Any]) -> Any:
        data = self._files.get(given["file_id"])
        if data is None:
            raise ApiError(400, "Bad Request: invalid file_id")
        if len(data) > 20 * 1024 * 1024:
            raise ApiError(400, "Bad Request: file is too big")
        path = f"documents/{given['file_id']}"
        return telegram.File(
            file_id=given["file_id"], file_unique_id="u", file_size=len(data), file_path=path
        ).to_dict()

    def find_file(self, path: str) -> bytes | None:
        found = re.fullmatch(rf"/file/bot{re.escape(self.token)}/documents/(\w+)", path)
        return self._files.get(found[1]) if found else None

    # -- people ------------------------------------------------------------------------------------

    def push(self, **of: Any) -> dict[str, Any]:
        """Something happened: it is reported until it is acknowledged."""
        update = telegram.Update(update_id=next(self._updates), **of).to_dict()
        return self.push_raw(update)

    def push_raw(self, update: dict[str, Any]) -> dict[str, Any]:
        with self.news:
            self._queue.append(update)
            self._past.append(update)
            self.news.notify_all()
        return update

    def repeat(self) -> None:
        """Everything is reported again, under new numbers."""
        with self.news:
            self._queue += [{**one, "update_id": next(self._updates)} for one in self._past]
            self.news.notify_all()

    def make_message(self, chat: int, person: telegram.User, text: str, **more: Any) -> telegram.Message:
        with self.news:
            number = next(self._ids)
        message = telegram.Message(
            message_id=number, date=NOW, chat=self.chats[chat], from_user=person, text=text or None, **more
        )
        self.said[chat, number] = message
        return message

    def make_file(self, name: str, data: bytes) -> telegram.Document:
        ident = f"file{next(self._numbers)}"
        self._files[ident] = data
        return telegram.Document(
            file_id=ident, file_unique_id=ident, file_name=name, file_size=len(data), mime_type="text/plain"
        )

    def make_query(self, person: telegram.User, message: BotMessage, data: str) -> telegram.CallbackQuery:
        ident = str(next(self._numbers))
        self._queries[ident] = person.id
        on = telegram.Message(
            message_id=message.id,
            date=NOW,
            chat=self.chats[message.chat],
            from_user=BOT,
            text=message.text or None,
            message_thread_id=message.thread,
            is_topic_message=True if message.thread is not None else None,
        )
        return telegram.CallbackQuery(id=ident, from_user=person, chat_instance="1", message=on, data=data)


# -- the shape of a request --------------------------------------------------------------------------


def _check_shape(method: str, given: Mapping[str, Any]) -> Generator[str]:
    """What the documentation, and the types of another library, do not allow."""
    known = METHODS[method]
    for name, value in given.items():
        if name not in known:
            yield f"{method} has no parameter {name}"
        elif name != "document" and type(value) is not known[name][0]:
            yield f"{method}: {name} is {type(value).__name__}"
    yield from (
        f"{method} needs {name}" for name, (_, needed) in known.items() if needed and name not in given
    )
    signature = inspect.signature(getattr(telegram.Bot, _SPELLED[method]))
    yield from (
        f"{method}: unknown to the library: {name}" for name in given if name not in signature.parameters
    )
    for name, kind in _TYPES.items():
        if name in given and kind.de_json(given[name], None).to_dict() != given[name]:
            yield f"{method}: {name} reads as {kind.de_json(given[name], None).to_dict()}"


def _read_form(kind: str, body: bytes) -> dict[str, Any]:
    form: Any = message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body)
    found: dict[str, Any] = {}
    for part in form.get_payload():
        name = str(part.get_param("name", header="content-disposition"))
        data: bytes = part.get_payload(decode=True)
        found[name] = (part.get_filename(), data) if name == "document" else _read_field(data.decode())
    return found


def _read_field(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _read_text(given: Mapping[str, Any], name: str, most: int) -> tuple[str, str]:
    """The text as it is read, and as it was sent."""
    markup = given[name]
    if given.get("parse_mode") not in (None, "HTML"):
        raise ApiError(400, "Bad Request: unsupported parse_mode")
    text = _Html(markup).text if given.get("parse_mode") else markup
    if not text.strip():
        raise ApiError(400, "Bad Request: message text is empty")
    if len(text.encode("utf-16-le")) // 2 > most:
        raise ApiError(400, "Bad Request: message is too long")
    return text, markup


def _read_buttons(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = given.get("reply_markup", {}).get(_CHOICES, [])
    buttons = [(one["text"], one["callback_data"]) for row in rows for one in row]
    if any(not 1 <= len(data.encode()) <= 64 for _, data in buttons):
        raise ApiError(400, "Bad Request: BUTTON_DATA_INVALID")
    if any(not text.strip() for text, _ in buttons):
        raise ApiError(400, "Bad Request: inline keyboard button text must be non-empty")
    return buttons
