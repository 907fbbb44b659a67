"""The stage of the connector `telegram`: people in the chats of our fake Bot API."""

import contextlib
from collections.abc import Generator

import telegram

from tests.connectors.stage import Fault, Shown
from tests.connectors.telegram_fake import BOT, ApiError, BotMessage, TelegramFake

__all__ = ["TelegramStage", "telegram_stage"]

_USERNAME = f"@{BOT.username}"
_CODES: dict[Fault, tuple[int, str, dict[str, int]]] = {
    Fault.RATE: (429, "Too Many Requests: retry after 1", {"retry_after": 1}),
    Fault.ERROR: (502, "Bad Gateway", {}),
    Fault.REFUSED: (403, "Forbidden: bot was blocked by the user", {}),
}


class TelegramStage:
    """People and chats are numbered by their names; a group is a forum, so it has threads."""

    connector = "telegram"
    faults = frozenset(Fault)

    def __init__(self, fake: TelegramFake) -> None:
        self.fake = fake
        self.values = {"token": fake.token, "baseUrl": fake.url}
        self._people: dict[str, telegram.User] = {}
        self._topics = 7000

    # -- what people do ----------------------------------------------------------------------------

    def person(self, name: str) -> str:
        ident = str(900 + len(self._people))
        known = {user.first_name: user for user in self._people.values()}
        if name in known:
            return str(known[name].id)
        self._people[ident] = telegram.User(id=int(ident), first_name=name, is_bot=False)
        return ident

    def private(self, person: str) -> str:
        self.fake.chats.setdefault(int(person), telegram.Chat(id=int(person), type="private", first_name="x"))
        return person

    def group(self, name: str, *people: str) -> str:
        ident = -(1_000_000 + sum(map(ord, name)))
        self.fake.chats[ident] = telegram.Chat(id=ident, type="supergroup", title=name, is_forum=True)
        return str(ident)

    def thread(self, chat: str, name: str) -> str:
        self._topics += 1
        self.fake.topics.add((int(chat), self._topics))
        return str(self._topics)

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
        words = f"{_USERNAME} {text}" if mention else text
        entities = _mark_commands(words)
        replied = self._find(chat, reply_to)
        document = self.fake.make_file(*file) if file else None
        message = self.fake.make_message(
            int(chat),
            self._people[person],
            "" if document else words,
            entities=() if document else entities,
            caption=words if document else None,
            caption_entities=entities if document else (),
            document=document,
            message_thread_id=int(thread) if thread else None,
            is_topic_message=True if thread else None,
            reply_to_message=replied,
        )
        self.fake.push(message=message)
        return str(message.message_id)

    def edit(self, person: str, chat: str, message_id: str, text: str) -> None:
        said = self.fake.said[int(chat), int(message_id)].to_dict()
        changed = telegram.Message.de_json({**said, "text": text, "edit_date": said["date"] + 60}, None)
        self.fake.push(edited_message=changed)

    def press(self, person: str, chat: str, message_id: str, label: str) -> None:
        self._press(self._people[person], chat, message_id, label)

    def press_as_bot(self, chat: str, message_id: str, label: str) -> None:
        self._press(BOT, chat, message_id, label)

    def _press(self, person: telegram.User, chat: str, message_id: str, label: str) -> None:
        message = self._message(chat, message_id)
        data = dict(message.buttons)[label]
        self.fake.push(callback_query=self.fake.make_query(person, message, data))

    def repeat(self) -> None:
        self.fake.repeat()

    # -- what people see ---------------------------------------------------------------------------

    def shown(self, chat: str) -> list[Shown]:
        return [_show(one) for one in list(self.fake.messages) if one.chat == int(chat)]

    def notes(self, person: str) -> list[str]:
        return [text for whom, text in list(self.fake.notes) if whom == int(person) and text]

    def typed(self, chat: str) -> int:
        return self.fake.actions.count(int(chat))

    # -- what goes wrong ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def fault(self, fault: Fault) -> Generator[None]:
        if fault is Fault.DOWN:
            self.fake.stop()
            yield
            self.fake.start()
            return
        if fault is Fault.CREDENTIALS:
            self.fake.token = f"{self.fake.token}x"
            yield
            self.fake.token = self.fake.token.removesuffix("x")
            return

        def refuse(method: str) -> None:
            if fault is not Fault.REFUSED or method.startswith(("send", "edit")):
                code, reason, more = _CODES[fault]
                raise ApiError(code, reason, **more)

        if fault is Fault.RATE:
            self.fake.script.append(refuse)
            yield
            return
        before, self.fake.refuses = self.fake.refuses, refuse
        yield
        self.fake.refuses = before

    def restart(self) -> None:
        self.fake.stop()
        self.fake.start()

    def problems(self) -> list[str]:
        return list(self.fake.problems)

    def _find(self, chat: str, ident: str | None) -> telegram.Message | None:
        if ident is None:
            return None
        said = self.fake.said.get((int(chat), int(ident)))
        if said is not None:
            return said
        return self.fake.make_query(BOT, self._message(chat, ident), "x").message  # pyright: ignore[reportReturnType] (always a message)

    def _message(self, chat: str, ident: str) -> BotMessage:
        return next(one for one in self.fake.messages if (one.chat, one.id) == (int(chat), int(ident)))


def _mark_commands(text: str) -> list[telegram.MessageEntity]:
    """The entities that a client would mark: the bot's name, and a command."""
    if text.startswith(_USERNAME):
        return [telegram.MessageEntity("mention", 0, len(_USERNAME))]
    if text.startswith("/"):
        return [telegram.MessageEntity("bot_command", 0, len(text.split(maxsplit=1)[0]))]
    return []


def _show(message: BotMessage) -> Shown:
    return Shown(
        message_id=str(message.id),
        text=message.text,
        markup=message.markup,
        buttons=tuple(label for label, _ in message.buttons),
        file=message.file,
        data=message.data,
        thread=str(message.thread) if message.thread is not None else None,
        reply_to=str(message.reply_to) if message.reply_to is not None else None,
        edited=message.edited,
    )


@contextlib.contextmanager
def telegram_stage() -> Generator[TelegramStage]:
    with TelegramFake().running() as fake:
        yield TelegramStage(fake)
