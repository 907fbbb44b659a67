"""A strict WhatsApp Cloud API on loopback: requests and notifications are checked by the documentation and by pywa.

It keeps what was sent, and posts what people do to the webhook of the connector until it is acknowledged, as Meta
does. `problems` lists what the documentation does not allow.
"""

import hashlib
import hmac
import itertools
import json
import re
import threading
from collections.abc import Callable
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qs

import httpx2

from tests.connectors import pywa_types
from tests.connectors.loopback import Loopback, Receive, Request, Response, Send, respond

__all__ = ["APP_SECRET", "PHONE", "TOKEN", "VERIFY", "FakeWhatsApp"]

TOKEN, APP_SECRET, VERIFY, PHONE = "EAAsecret", "app-secret-1", "verify-me", "100"
_VERSION = "/v25.0/"
_AGAIN = 0.05  # seconds between two tries to post a notification
_MESSAGE = {"messaging_product", "recipient_type", "to", "recipient", "type", "context"}
_TYPES = ("text", "image", "document", "interactive")
_OFFICE = "application/vnd.openxmlformats-officedocument"
_MEDIA_TYPES = (
    "application/msword",
    "application/pdf",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    f"{_OFFICE}.presentationml.presentation",
    f"{_OFFICE}.spreadsheetml.sheet",
    f"{_OFFICE}.wordprocessingml.document",
    "audio/aac",
    "audio/amr",
    "audio/mp4",
    "audio/mpeg",
    "audio/ogg",
    "image/jpeg",
    "image/png",
    "image/webp",
    "text/plain",
    "video/3gpp",
    "video/mp4",
)


class FakeWhatsApp:
    """One business phone number, and the people who write to it. `hook`: the port of the connector's webhook."""

    def __init__(self, hook: int, path: str = "/whatsapp", host: str = "hook.example.org") -> None:
        self.hook = f"http://127.0.0.1:{hook}{path}"
        self.host = host
        self.problems: list[str] = []
        self.answer: Callable[[Request], Response | None] = lambda _: None
        """What a request is answered in place of the usual."""
        self.token = TOKEN
        self.sent: list[dict[str, Any]] = []
        self.typing: list[str] = []
        self.media: dict[str, tuple[str, str, bytes]] = {}
        self.closed = set[str]()
        """The people whose last message is more than 24 hours old."""
        self.posted: list[int] = []
        """How the webhook answered."""
        self._waiting: list[bytes] = []
        self._notified: list[bytes] = []
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._ends = False
        self._thread = threading.Thread(target=self._post_all)
        self._http = httpx2.Client(trust_env=False, verify=False, timeout=60)
        self.server = Loopback(self)

    def start(self) -> None:
        self.server.start()
        self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        self._thread.join(60)
        self._http.close()
        self.server.close()

    # -- what people do ------------------------------------------------------------------------------

    def say(self, person: str, text: str, **more: Any) -> str:
        """A person types; the id of the message."""
        return self.tell(person, "text", {"text": {"body": text}, **more})

    def tell(self, person: str, kind: str, content: dict[str, Any], reader: str = "") -> str:
        """A person sends a message of any kind."""
        self.closed.discard(person)
        message_id = self.make_id()
        told = {"from": "1555" + person[-4:], "from_user_id": person, "id": message_id, "type": kind}
        message = {**told, "timestamp": "1794900000", **content}
        value = {"contacts": [_contact(person)], "messages": [message]}
        self.notify(value, reader or kind)
        return message_id

    def reply(self, person: str, message_id: str, text: str) -> str:
        """A person answers a message."""
        return self.say(person, text, context={"from": "15550000", "id": message_id})

    def edit(self, person: str, message_id: str, text: str) -> str:
        """A person changes a message of theirs."""
        edit = {"original_message_id": message_id, "message": {"type": "text", "text": {"body": text}}}
        return self.tell(person, "edit", {"edit": edit})

    def press(self, person: str, message_id: str, label: str) -> str:
        """A person presses a button, or chooses from a list."""
        (message,) = (one for one in self.sent if one["id"] == message_id)
        kind, chosen = _find_choice(message["interactive"], label)
        content = {
            "interactive": {"type": kind, kind: chosen},
            "context": {"from": "15550000", "id": message_id},
        }
        return self.tell(person, "interactive", content, kind)

    def send_file(self, person: str, name: str, media_type: str, data: bytes, caption: str = "") -> str:
        """A person sends a document."""
        media_id = self.keep(name, media_type, data)
        document = {
            "id": media_id,
            "filename": name,
            "mime_type": media_type,
            "sha256": "x",
            "caption": caption,
        }
        return self.tell(person, "document", {"document": document})

    def report_failure(self, message_id: str, person: str, code: int, title: str) -> None:
        """Meta did not deliver a message that it had accepted."""
        error = {
            "code": code,
            "title": title,
            "message": title,
            "error_data": {"details": f"Details of {code}."},
        }
        status = {"id": message_id, "status": "failed", "timestamp": "1794900000", "errors": [error]}
        recipient = {"recipient_id": "1555" + person[-4:], "recipient_user_id": person}
        self.notify({"contacts": [_contact(person)], "statuses": [{**status, **recipient}]}, "status")

    def keep(self, name: str, media_type: str, data: bytes) -> str:
        """A file at Meta; its id."""
        media_id = str(9000 + next(self._numbers))
        self.media[media_id] = (name, media_type, data)
        return media_id

    def make_id(self) -> str:
        return f"wamid.{next(self._numbers)}=="

    # -- the webhook ---------------------------------------------------------------------------------

    def notify(self, value: dict[str, Any], reader: str = "") -> None:
        """Post a notification until it is acknowledged; pywa must be able to read it."""
        body = build_notification(value)
        if reader:
            assert pywa_types.read(body, reader) is not None
        with self._changed:
            self._notified.append(body)
            self._waiting.append(body)
            self._changed.notify_all()

    def repeat(self) -> None:
        """Post everything once more."""
        with self._changed:
            self._waiting += self._notified
            self._changed.notify_all()

    def post(self, body: bytes, signature: str | None = None, **headers: str) -> httpx2.Response:
        """Post once, with this signature or the right one."""
        right = f"sha256={hmac.new(APP_SECRET.encode(), body, hashlib.sha256).hexdigest()}"
        assert pywa_types.is_signed(APP_SECRET, body, right)
        told = {
            "X-Hub-Signature-256": right if signature is None else signature,
            "Host": self.host,
            **headers,
        }
        return self._http.post(self.hook, content=body, headers={"Content-Type": "application/json", **told})

    def get(self, **query: str) -> httpx2.Response:
        """The challenge of Meta."""
        params = {f"hub.{name}": value for name, value in query.items()}
        return self._http.get(self.hook, params=params, headers={"Host": self.host})

    def _post_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ends)
                if self._ends:
                    return
                body = self._waiting[0]
            try:
                status = self.post(body).status_code
            except httpx2.HTTPError:
                status = 0
            with self._changed:
                self.posted.append(status)
                if status == 200:
                    self._waiting.pop(0)
                else:
                    self._changed.wait(_AGAIN)

    # -- the Graph API -------------------------------------------------------------------------------

    async def handle_socket(self, path: str, query: str, receive: Receive, send: Send) -> None:
        raise AssertionError("the Graph API has no sockets")

    async def handle(self, request: Request) -> Response:
        if (instead := self.answer(request)) is not None:
            return instead
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _fail(401, 190, "Error validating access token: Session has expired")
        if request.path.startswith("/lookaside/"):
            _, media_type, data = self.media[request.path.removeprefix("/lookaside/")]
            return Response(200, data, {"content-type": media_type})
        match request.method, request.path.removeprefix(_VERSION).split("/"):
            case "GET", [one] if one == PHONE:
                return self._show_phone(request)
            case "GET", [media_id]:
                return self._show_media(media_id)
            case "POST", [one, "messages"] if one == PHONE:
                return self._take_message(request)
            case "POST", [one, "media"] if one == PHONE:
                return self._take_media(request)
            case _:
                return self._refuse(f"{request.method} {request.path}")

    def _show_phone(self, request: Request) -> Response:
        if parse_qs(request.query).get("fields") != ["display_phone_number,verified_name"]:
            return self._refuse(request.query)
        return respond({"display_phone_number": "+1 555 0000", "verified_name": "Scout", "id": PHONE})

    def _show_media(self, media_id: str) -> Response:
        if media_id not in self.media:
            return _fail(400, 100, "Unsupported get request. Object does not exist")
        _, media_type, data = self.media[media_id]
        url = f"{self.server.url}/lookaside/{media_id}"
        told = {"url": url, "mime_type": media_type, "sha256": "x", "file_size": len(data)}
        return respond({**told, "id": media_id, "messaging_product": "whatsapp"})

    def _take_message(self, request: Request) -> Response:
        if request.content_type != "application/json":
            return self._refuse(request.content_type)
        message = json.loads(request.body)
        if problem := _check(message):
            return self._refuse(problem)
        if "status" in message:
            self.typing.append(message["message_id"])
            return respond({"success": True})
        if message["type"] in ("image", "document") and message[message["type"]]["id"] not in self.media:
            return _fail(400, 131053, "Media upload error")
        person, message_id = message.get("recipient") or message["to"], self.make_id()
        if person in self.closed:  # accepted at first, as by Meta
            self.report_failure(message_id, person, 131047, "Re-engagement message")
        else:
            with self._changed:
                self.sent.append({**message, "id": message_id})
        contact = {"input": person, "user_id": person}
        return respond(
            {"messaging_product": "whatsapp", "contacts": [contact], "messages": [{"id": message_id}]}
        )

    def _take_media(self, request: Request) -> Response:
        head = f"Content-Type: {request.content_type}\r\n\r\n".encode()
        parts = {
            str(part.get_param("name", header="content-disposition")): part
            for part in BytesParser(policy=HTTP).parsebytes(head + request.body).iter_parts()
        }
        fields = {name: part.get_payload(decode=True) for name, part in parts.items()}
        if set(parts) != {"messaging_product", "type", "file"} or fields["messaging_product"] != b"whatsapp":
            return self._refuse(f"an upload with {sorted(parts)}")
        file = parts["file"]
        data = fields["file"]
        assert isinstance(data, bytes)
        if file.get_content_type().encode() != fields["type"]:
            return self._refuse("an upload whose type is not that of its file")
        if file.get_content_type() not in _MEDIA_TYPES:
            return _fail(
                400, 100, f"Param file must be a file with one of the following types: {_MEDIA_TYPES}"
            )
        return respond({"id": self.keep(file.get_filename() or "", file.get_content_type(), data)})

    def _refuse(self, problem: str) -> Response:
        self.problems.append(problem)
        return _fail(400, 100, f"Invalid parameter: {problem}")


def build_notification(value: dict[str, Any], phone: str = PHONE, field: str = "messages") -> bytes:
    """The body of a notification."""
    metadata = {"display_phone_number": "15550000", "phone_number_id": phone}
    change = {"field": field, "value": {"messaging_product": "whatsapp", "metadata": metadata, **value}}
    return json.dumps(
        {"object": "whatsapp_business_account", "entry": [{"id": "200", "changes": [change]}]}
    ).encode()


def _contact(person: str) -> dict[str, Any]:
    return {"profile": {"name": f"Name of {person}"}, "wa_id": "1555" + person[-4:], "user_id": person}


def _fail(status: int, code: int, message: str, **headers: str) -> Response:
    error = {"message": message, "type": "OAuthException", "code": code, "fbtrace_id": "A1"}
    return respond({"error": error}, status, **headers)


def _find_choice(interactive: dict[str, Any], label: str) -> tuple[str, dict[str, str]]:
    action = interactive["action"]
    if interactive["type"] == "button":
        found = [one["reply"] for one in action["buttons"] if one["reply"]["title"] == label]
        return "button_reply", found[0]
    found = [row for section in action["sections"] for row in section["rows"] if row["title"] == label]
    return "list_reply", found[0]


# -- what the documentation allows -----------------------------------------------------------------------


def _check(message: dict[str, Any]) -> str:
    """What is wrong with a message."""
    if message.get("messaging_product") != "whatsapp":
        return "messaging_product"
    if "status" not in message and (problem := _check_message(message)):
        return problem
    again = pywa_types.rebuild(message)
    return "" if again == message else f"pywa sends {again} for {message}"


def _check_message(message: dict[str, Any]) -> str:
    kind = message.get("type", "")
    if (
        kind not in _TYPES
        or set(message) - _MESSAGE != {kind}
        or message.get("recipient_type") != "individual"
    ):
        return f"the fields {sorted(message)}"
    has_phone = re.fullmatch(r"\d{5,15}", message.get("to", "")) is not None
    has_user = re.fullmatch(r"[A-Z]{2}\.[A-Za-z0-9]{1,128}", message.get("recipient", "")) is not None
    if has_phone == has_user:
        return "the recipient"
    if kind == "text":
        return "" if 0 < len(message["text"]["body"]) <= 4096 else "the length of the text"
    return _check_choices(message["interactive"]) if kind == "interactive" else ""


def _check_choices(interactive: dict[str, Any]) -> str:
    action, body = interactive["action"], interactive["body"]["text"]
    if interactive["type"] == "button":
        rows = [one["reply"] for one in action["buttons"]]
        fits = 0 < len(rows) <= 3 and 0 < len(body) <= 1024
        longest_title, longest_id = 20, 256
    else:
        rows = [row for section in action["sections"] for row in section["rows"]]
        fits = 0 < len(rows) <= 10 and 0 < len(body) <= 4096 and 0 < len(action["button"]) <= 20
        fits = fits and all(0 < len(section["title"]) <= 24 for section in action["sections"])
        longest_title, longest_id = 24, 200
    fits = fits and all(0 < len(one["title"]) <= longest_title for one in rows)
    fits = fits and all(0 < len(one["id"]) <= longest_id and one["id"].strip() == one["id"] for one in rows)
    differ = len({one["id"] for one in rows}) == len({one["title"] for one in rows}) == len(rows)
    return "" if fits and differ else f"the choices {interactive}"
