"""The stage of the connector `slack`: people in the channels of our fake Slack."""

import contextlib
from collections.abc import Generator
from typing import Any

from tests.connectors.fake_slack import APP_TOKEN, BOT_TOKEN, FakeSlack
from tests.connectors.loopback import Response, respond
from tests.connectors.stage import Fault, Shown

__all__ = ["SlackStage", "slack_stage"]

_MENTION = "<@U0BOT>"


class SlackStage:
    """Ids are made of names. A reply is a message in the thread below what it answers: Slack has no other."""

    connector = "slack"
    faults = frozenset(Fault)

    def __init__(self, fake: FakeSlack) -> None:
        self.fake = fake
        self.values: dict[str, str] = {
            "botToken": BOT_TOKEN,
            "appToken": APP_TOKEN,
            "baseUrl": f"{fake.server.url}/api",
        }

    # -- what people do ----------------------------------------------------------------------------

    def person(self, name: str) -> str:
        return f"U0{_fold(name)}"

    def private(self, person: str) -> str:
        return self._open(f"D{person}", person)

    def group(self, name: str, *people: str) -> str:
        return self._open(f"C0{_fold(name)}", *people)

    def thread(self, chat: str, name: str) -> str:
        """Below a message that the app does not hear of."""
        return self.fake.keep_message(chat, "U0NOBODY", name)

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
        words = _escape(text)
        words = f"{_MENTION} {words}" if mention else words
        root = thread or (self.fake.find_root(chat, reply_to) if reply_to else None)
        more = {"thread_ts": root} if root else {}
        if file is not None:
            return self.fake.share(person, chat, *file, words, **more)
        return self.fake.say(person, chat, words, **more)

    def edit(self, person: str, chat: str, message_id: str, text: str) -> None:
        self.fake.edit(chat, message_id, _escape(text))

    def press(self, person: str, chat: str, message_id: str, label: str) -> None:
        self.fake.press(person, chat, message_id, label)

    def press_as_bot(self, chat: str, message_id: str, label: str) -> None:
        """An app cannot press a button."""

    def repeat(self) -> None:
        self.fake.repeat()

    # -- what people see ---------------------------------------------------------------------------

    def shown(self, chat: str) -> list[Shown]:
        return [self._show(one) for one in self.fake.shown(chat)]

    def notes(self, person: str) -> list[str]:
        return [_unescape(one["text"]) for one in list(self.fake.ephemerals) if one["user"] == person]

    def typed(self, chat: str) -> int:
        return 0

    # -- what goes wrong ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def fault(self, fault: Fault) -> Generator[None]:
        if fault is Fault.DOWN:
            self.fake.server.stop()
            yield
            self.fake.server.resume()
            return
        if fault is Fault.CREDENTIALS:
            self.fake.bot_token, before = "xoxb-another", self.fake.bot_token
            self.fake.disconnect("refresh_requested")
            yield
            self.fake.bot_token = before
            return
        before_answer, self.fake.answer = self.fake.answer, _Answers(fault, self.fake)
        yield
        self.fake.answer = before_answer

    def restart(self) -> None:
        self.fake.server.restart()

    def problems(self) -> list[str]:
        return list(self.fake.problems)

    def _open(self, channel: str, *people: str) -> str:
        return channel if channel in self.fake.channels else self.fake.open_channel(channel, *people)

    def _show(self, message: dict[str, Any]) -> Shown:
        blocks = {block["type"]: block for block in message.get("blocks", [])}
        files = message.get("files", [])
        return Shown(
            message_id=message["ts"],
            text=_unescape(message["text"]),
            markup=blocks["section"]["text"]["text"] if "section" in blocks else "",
            buttons=tuple(one["text"]["text"] for one in blocks.get("actions", {}).get("elements", [])),
            file=files[0]["name"] if files else None,
            data=self.fake.files[files[0]["id"]][1] if files else b"",
            thread=message.get("thread_ts"),
            edited="edited" in message,
        )


class _Answers:
    """What Slack answers while it has a fault."""

    def __init__(self, fault: Fault, fake: FakeSlack) -> None:
        self._fault = fault
        self._fake = fake

    def __call__(self, method: str) -> Response | None:
        match self._fault:
            case Fault.RATE:
                self._fake.answer = lambda _: None
                return respond({"ok": False, "error": "ratelimited"}, 429, retry_after="1")
            case Fault.ERROR:
                return respond({"ok": False, "error": "service_unavailable"}, 503)
            case _:
                is_message = method.startswith(("chat.", "files."))
                return respond({"ok": False, "error": "is_archived"}) if is_message else None


def _fold(name: str) -> str:
    return "".join(one for one in name.upper() if one.isalnum())


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _unescape(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


@contextlib.contextmanager
def slack_stage() -> Generator[SlackStage]:
    fake = FakeSlack()
    fake.server.start()
    try:
        yield SlackStage(fake)
    finally:
        fake.server.close()
