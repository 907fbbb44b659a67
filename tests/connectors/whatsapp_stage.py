"""The stage of the connector `whatsapp`: people who write to the number of our fake Cloud API."""

import contextlib
import re
from collections.abc import Generator
from typing import Any

import pytest

from tests.connectors.fake_whatsapp import APP_SECRET, PHONE, TOKEN, VERIFY, FakeWhatsApp
from tests.connectors.loopback import Request, Response, find_port, respond
from tests.connectors.stage import Fault, Shown

__all__ = ["WhatsAppStage", "whatsapp_stage"]


_MARKS = re.compile(r"(?<!\w)([*_~])(\S(?:.*?\S)?)\1(?!\w)")


class WhatsAppStage:
    """A chat is a person: there are neither groups nor threads, and a note for one person is a message."""

    connector = "whatsapp"
    faults = frozenset(Fault)

    def __init__(self, fake: FakeWhatsApp, port: int) -> None:
        self.fake = fake
        self.values: dict[str, str] = {
            "accessToken": TOKEN,
            "phoneNumberId": PHONE,
            "appSecret": APP_SECRET,
            "verifyToken": VERIFY,
            "publicHost": fake.host,
            "port": str(port),
            "baseUrl": f"{fake.server.url}/v25.0",
        }
        self._people: dict[str, str] = {}

    # -- what people do ----------------------------------------------------------------------------

    def person(self, name: str) -> str:
        return self._people.setdefault(name, f"US.{130_000 + len(self._people)}")

    def private(self, person: str) -> str:
        return person

    def group(self, name: str, *people: str) -> str:
        pytest.skip("the platform has no groups")

    def thread(self, chat: str, name: str) -> None:
        return None

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
        if file is not None:
            return self.fake.send_file(person, file[0], "text/plain", file[1], text)
        return self.fake.reply(person, reply_to, text) if reply_to else self.fake.say(person, text)

    def edit(self, person: str, chat: str, message_id: str, text: str) -> None:
        self.fake.edit(person, message_id, text)

    def press(self, person: str, chat: str, message_id: str, label: str) -> None:
        self.fake.press(person, message_id, label)

    def press_as_bot(self, chat: str, message_id: str, label: str) -> None:
        """A number cannot press its own buttons."""

    def repeat(self) -> None:
        self.fake.repeat()

    # -- what people see ---------------------------------------------------------------------------

    def shown(self, chat: str) -> list[Shown]:
        return [self._show(one) for one in list(self.fake.sent) if one.get("recipient") == chat]

    def notes(self, person: str) -> list[str]:
        return [one.text for one in self.shown(person)]

    def typed(self, chat: str) -> int:
        return len(self.fake.typing)

    # -- what goes wrong ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def fault(self, fault: Fault) -> Generator[None]:
        if fault is Fault.DOWN:
            self.fake.server.stop()
            yield
            self.fake.server.resume()
            return
        if fault is Fault.CREDENTIALS:
            self.fake.token, before = "EAAanother", self.fake.token
            yield
            self.fake.token = before
            return
        before_answer, self.fake.answer = self.fake.answer, _Answers(fault, self.fake)
        yield
        self.fake.answer = before_answer

    def restart(self) -> None:
        self.fake.server.restart()

    def problems(self) -> list[str]:
        return list(self.fake.problems)

    def _show(self, message: dict[str, Any]) -> Shown:
        content = message[message["type"]]
        name, _, data = self.fake.media[content["id"]] if "id" in content else (None, "", b"")
        body: Any = content.get("body", "")
        markup = body if isinstance(body, str) else str(body["text"])
        return Shown(
            message_id=message["id"],
            text=_read(markup),
            markup=markup,
            buttons=tuple(_list_labels(content)),
            file=name,
            data=data,
            reply_to=message.get("context", {}).get("message_id"),
        )


class _Answers:
    """What the Graph API answers while it has a fault."""

    def __init__(self, fault: Fault, fake: FakeWhatsApp) -> None:
        self._fault = fault
        self._fake = fake

    def __call__(self, request: Request) -> Response | None:
        match self._fault:
            case Fault.RATE:
                self._fake.answer = lambda _: None
                return respond({"error": {"code": 130429, "message": "Rate limit hit"}}, 429, retry_after="1")
            case Fault.ERROR:
                return respond({"error": {"code": 131016, "message": "Service unavailable"}}, 503)
            case _:
                error = {"code": 131026, "message": "Message undeliverable"}
                return respond({"error": error}, 400) if request.method == "POST" else None


def _list_labels(content: dict[str, Any]) -> list[str]:
    action = content.get("action", {})
    rows = [row for section in action.get("sections", []) for row in section["rows"]]
    return [one["title"] for one in (*(one["reply"] for one in action.get("buttons", [])), *rows)]


def _read(markup: str) -> str:
    """The text as it is read: WhatsApp hides its marks, and leaves alone what is in a code block."""
    parts = markup.split("```")
    return "".join(part if number % 2 else _read_inline(part) for number, part in enumerate(parts))


def _read_inline(markup: str) -> str:
    parts = markup.split("`")
    return "".join(part if number % 2 else _MARKS.sub(r"\2", part) for number, part in enumerate(parts))


@contextlib.contextmanager
def whatsapp_stage() -> Generator[WhatsAppStage]:
    port = find_port()
    fake = FakeWhatsApp(port)
    fake.start()
    try:
        yield WhatsAppStage(fake, port)
    finally:
        fake.close()
