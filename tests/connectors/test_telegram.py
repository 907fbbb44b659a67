"""The connector `telegram` against a strict Bot API: each request has the documented form, each update is read."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import pytest
import telegram

from scout.connectors.telegram.connector import TelegramConnector, build
from scout.ports.connector import (
    Button,
    ChatPlace,
    ConnectorError,
    ConnectorSetup,
    FailureKind,
    InboundEvent,
    InboundPress,
    InboundText,
    OutboundFile,
    OutboundText,
    RemoteFile,
)
from tests.broker.rig import wait_until
from tests.connectors.running import KeepingInlet
from tests.connectors.stage import Fault
from tests.connectors.telegram_fake import BOT, NOW, TOKEN, ApiError
from tests.connectors.telegram_stage import TelegramStage, telegram_stage


class Taken:
    """An inlet that keeps what it is given, and fails as often as told."""

    def __init__(self, failures: int = 0) -> None:
        self.found: list[InboundEvent] = []
        self.failures = failures

    async def receive(self, inbound: InboundEvent) -> None:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("not stored")
        self.found.append(inbound)

    def get_cursor(self) -> str | None:
        return None

    async def move_cursor(self, cursor: str) -> None:
        """It is not needed."""


@pytest.fixture
def stage() -> Generator[TelegramStage]:
    with telegram_stage() as made:
        yield made
        assert made.problems() == []


def run(stage: TelegramStage, work: Callable[[TelegramConnector], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        bot = build(ConnectorSetup(connector="telegram", values=dict(stage.values)))
        try:
            return await work(bot)
        finally:
            await bot.close()

    return asyncio.run(main())


def receive(stage: TelegramStage, count: int, inlet: Taken | None = None) -> list[InboundEvent]:
    """What the connector hands over, until there are so many."""
    inlet = inlet or Taken()

    async def work(bot: TelegramConnector) -> None:
        running = asyncio.create_task(bot.run(inlet))
        await wait_until(lambda: len(inlet.found) >= count or running.done())
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run(stage, work)
    return inlet.found


def a_text(stage: TelegramStage, **changes: Any) -> OutboundText:
    ada = stage.private(stage.person("ada"))
    fields: dict[str, Any] = {
        "id": "pst_1.0",
        "place": ChatPlace(chat_id=ada),
        "text": "<b>hi</b> &amp; bye",
        "plain": "hi & bye",
        **changes,
    }
    return OutboundText(**fields)


# -- out ---------------------------------------------------------------------------------------------


def test_the_credentials_are_proved(stage: TelegramStage) -> None:
    account = run(stage, lambda bot: bot.check())
    assert (account.id, account.name) == (str(BOT.id), "@scout_test_bot")


def test_a_text_is_sent_with_its_buttons_as_an_answer(stage: TelegramStage) -> None:
    ada = stage.person("ada")
    stage.private(ada)
    asked = stage.say(ada, ada, "hello")
    buttons = (
        Button(label="Once", value="pst_1:0"),
        Button(label="Always", value="pst_1:1"),
        Button(label="Deny", value="pst_1:2"),
    )
    message = a_text(stage, buttons=buttons, reply_to=asked)
    sent = run(stage, lambda bot: bot.send(message))
    (shown,) = stage.shown(ada)
    assert (shown.message_id, shown.text, shown.reply_to) == (sent.message_id, "hi & bye", asked)
    assert shown.buttons == ("Once", "Always", "Deny")
    _, given = stage.fake.requests[-1]
    assert [len(row) for row in given["reply_markup"]["inline_keyboard"]] == [2, 1]
    assert given["link_preview_options"] == {"is_disabled": True}


def test_a_long_label_has_a_row_of_its_own(stage: TelegramStage) -> None:
    buttons = (Button(label="a label that is long", value="1"), Button(label="b", value="2"))
    run(stage, lambda bot: bot.send(a_text(stage, buttons=buttons)))
    _, given = stage.fake.requests[-1]
    assert [len(row) for row in given["reply_markup"]["inline_keyboard"]] == [1, 1]


def test_a_topic_is_a_thread(stage: TelegramStage) -> None:
    chat = stage.group("crew")
    topic = stage.thread(chat, "build")
    place = ChatPlace(chat_id=chat, thread_id=topic, group=True)
    run(stage, lambda bot: bot.send(a_text(stage, place=place)))
    run(stage, lambda bot: bot.show_typing(place))
    assert stage.shown(chat)[0].thread == topic
    assert stage.typed(chat) == 1


def test_a_file_is_sent_and_fetched(stage: TelegramStage) -> None:
    file = OutboundFile(name="a b.txt", media_type="text/plain", data=b"\x00\xffbytes\r\n--x")
    run(stage, lambda bot: bot.send(a_text(stage, text="", plain="", files=(file,), reply_to="1")))
    (shown,) = stage.shown(stage.person("ada"))
    assert (shown.file, shown.data) == ("a b.txt", b"\x00\xffbytes\r\n--x")

    remote = stage.fake.make_file("in.txt", b"x" * 5000)
    known = RemoteFile(reference=remote.file_id, name="in.txt", size=5000)
    assert run(stage, lambda bot: bot.fetch(known, 5000)) == b"x" * 5000
    assert fails(stage, lambda bot: bot.fetch(known, 4999)) is FailureKind.REFUSED
    unsized = RemoteFile(reference=remote.file_id, name="in.txt")
    assert fails(stage, lambda bot: bot.fetch(unsized, 4999)) is FailureKind.REFUSED
    gone = RemoteFile(reference="nothing", name="in.txt")
    assert fails(stage, lambda bot: bot.fetch(gone, 4999)) is FailureKind.REFUSED


def test_an_edit_replaces_the_text_and_takes_the_buttons_away(stage: TelegramStage) -> None:
    first = a_text(stage, buttons=(Button(label="Once", value="pst_1:0"),))
    sent = run(stage, lambda bot: bot.send(first))
    after = a_text(stage, text="<i>approved</i>", plain="approved")
    for _ in range(2):  # the second changes nothing, which is no failure
        run(stage, lambda bot: bot.edit(sent.message_id, after))
    (shown,) = stage.shown(stage.person("ada"))
    assert (shown.text, shown.buttons, shown.edited) == ("approved", (), True)
    assert fails(stage, lambda bot: bot.edit("424242", after)) is FailureKind.REFUSED


def test_text_that_the_platform_cannot_read_is_sent_plain(stage: TelegramStage) -> None:
    run(stage, lambda bot: bot.send(a_text(stage, text="<b>open", plain="open")))
    (shown,) = stage.shown(stage.person("ada"))
    assert shown.text == "open"
    run(stage, lambda bot: bot.edit(shown.message_id, a_text(stage, text="</u>", plain="<u & more")))
    assert stage.shown(stage.person("ada"))[0].text == "<u & more"


def test_an_answer_to_a_press_is_seen_by_one_person_and_may_come_too_late(stage: TelegramStage) -> None:
    run(stage, lambda bot: bot.send(a_text(stage, buttons=(Button(label="Once", value="pst_1:0"),))))
    ada = stage.person("ada")
    (shown,) = stage.shown(ada)
    stage.press(ada, ada, shown.message_id, "Once")
    (press,) = receive(stage, 1)
    assert isinstance(press, InboundPress)
    assert (press.value, press.message_id, press.sender.id) == ("pst_1:0", shown.message_id, ada)
    run(stage, lambda bot: bot.answer_press(press, "x" * 300))
    assert [len(note) for note in stage.notes(ada)] == [200]
    run(stage, lambda bot: bot.answer_press(press, "again"))  # it was answered: nobody is told
    assert len(stage.notes(ada)) == 1


# -- in ----------------------------------------------------------------------------------------------


def test_texts_of_private_chats_and_groups(stage: TelegramStage) -> None:
    ada, crew = stage.person("ada"), stage.group("crew")
    stage.private(ada)
    topic = stage.thread(crew, "build")
    stage.say(ada, ada, "hello")
    stage.say(ada, crew, "not for you")
    stage.say(ada, crew, "review this 👍", mention=True, thread=topic)
    stage.say(ada, crew, "/stop@SCOUT_test_bot now")
    stage.say(ada, crew, "/stop@another_bot")
    found = [one for one in receive(stage, 5) if isinstance(one, InboundText)]
    assert [(one.text, one.addressed, one.place.thread_id) for one in found] == [
        ("hello", True, None),
        ("not for you", False, None),
        ("review this 👍", True, topic),
        ("/stop now", True, None),
        ("/stop@another_bot", False, None),
    ]
    assert [one.place.group for one in found] == [False, True, True, True, True]
    assert found[0].sender.name == "ada"
    assert len({one.id for one in found}) == 5


def test_a_reply_to_the_bot_is_for_the_bot(stage: TelegramStage) -> None:
    crew, ada, bob = stage.group("crew"), stage.person("ada"), stage.person("bob")
    run(stage, lambda bot: bot.send(a_text(stage, place=ChatPlace(chat_id=crew, group=True))))
    (shown,) = stage.shown(crew)
    stage.say(ada, crew, "yes", reply_to=shown.message_id)
    mine = stage.say(ada, crew, "hm")
    stage.say(bob, crew, "me too", reply_to=mine)
    found = [one for one in receive(stage, 3) if isinstance(one, InboundText)]
    assert [(one.reply_to, one.addressed) for one in found] == [
        (shown.message_id, True),
        (None, False),
        (mine, False),
    ]


def test_files_and_edits(stage: TelegramStage) -> None:
    ada = stage.person("ada")
    stage.private(ada)
    first = stage.say(ada, ada, "look", file=("a.txt", b"abc"))
    second = stage.say(ada, ada, "tpyo")
    stage.edit(ada, ada, second, "typo")
    photo = [telegram.PhotoSize(f"p{size}", f"u{size}", size, size, size) for size in (1, 2)]
    voice = telegram.Voice("v", "u", 1, file_size=3)
    animation = telegram.Animation("g", "u", 1, 1, 1)
    document = telegram.Document("g", "u", file_name="a.gif", mime_type="image/gif")
    for more in ({"photo": photo}, {"voice": voice}, {"animation": animation, "document": document}):
        stage.fake.push(
            message=stage.fake.make_message(int(ada), telegram.User(int(ada), "ada", False), "", **more)
        )
    found = [one for one in receive(stage, 6) if isinstance(one, InboundText)]
    assert (found[0].text, found[0].message_id) == ("look", first)
    assert [(one.name, one.size) for one in found[0].files] == [("a.txt", 3)]
    assert (found[2].text, found[2].edits) == ("typo", second)
    assert found[2].id != found[1].id
    named = [(one.name, one.media_type, one.reference) for more in found[3:] for one in more.files]
    assert named == [
        ("photo.jpg", "image/jpeg", "p2"),
        ("voice.ogg", "audio/ogg", "v"),
        ("a.gif", "image/gif", "g"),
    ]


def test_what_is_nothing_for_scout_is_acknowledged(stage: TelegramStage) -> None:
    ada = stage.person("ada")
    stage.private(ada)
    user = telegram.User(int(ada), "ada", False)
    fake = stage.fake
    fake.push(message=fake.make_message(int(ada), user, "", new_chat_members=[user]))
    fake.push(callback_query=telegram.CallbackQuery("1", user, "1", data="x"))
    fake.push_raw({"update_id": 899_999, "poll": {"id": "1"}})
    fake.push_raw({"update_id": 900_000, "message": {"message_id": "not a number"}})
    anonymous = {
        "update_id": 900_001,
        "message": {"message_id": 5, "date": 1, "chat": {"id": 1, "type": "channel"}},
    }
    fake.push_raw(anonymous)
    stage.say(ada, ada, "after all that")
    (found,) = receive(stage, 1)
    assert isinstance(found, InboundText)
    assert found.text == "after all that"


def test_a_bot_is_a_program(stage: TelegramStage) -> None:
    ada = stage.person("ada")
    stage.private(ada)
    stage.fake.push(message=stage.fake.make_message(int(ada), BOT, "I say"))
    (found,) = receive(stage, 1)
    assert found.sender.program


def test_an_update_is_acknowledged_after_it_was_taken(stage: TelegramStage) -> None:
    ada = stage.person("ada")
    stage.private(ada)
    stage.say(ada, ada, "one")
    stage.say(ada, ada, "two")
    inlet = Taken(failures=1)
    assert receive(stage, 2, inlet) == []  # the inlet failed, so the connector ended
    found = receive(stage, 2, inlet)
    assert [one.text for one in found if isinstance(one, InboundText)] == ["one", "two"]
    stage.say(ada, ada, "three")
    again = receive(stage, 1)
    assert {one.text for one in again if isinstance(one, InboundText)} >= {"three"}


# -- failures ----------------------------------------------------------------------------------------


def fails(stage: TelegramStage, work: Callable[[TelegramConnector], Awaitable[Any]]) -> FailureKind:
    with pytest.raises(ConnectorError) as caught:
        run(stage, work)
    assert TOKEN not in str(caught.value)
    return caught.value.kind


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.ERROR, FailureKind.RETRY),
        (Fault.DOWN, FailureKind.RETRY),
        (Fault.CREDENTIALS, FailureKind.CREDENTIALS),
        (Fault.REFUSED, FailureKind.REFUSED),
    ],
)
def test_a_failure_says_what_to_do(stage: TelegramStage, fault: Fault, kind: FailureKind) -> None:
    message = a_text(stage)
    with stage.fault(fault):
        assert fails(stage, lambda bot: bot.send(message)) is kind
        if fault is not Fault.REFUSED:
            assert fails(stage, lambda bot: bot.check()) is kind
            assert fails(stage, lambda bot: bot.run(Taken())) is kind
            assert fails(stage, lambda bot: bot.show_typing(message.place)) is kind
            assert fails(stage, lambda bot: bot.fetch(RemoteFile(reference="f", name="f"), 9)) is kind
    run(stage, lambda bot: bot.send(message))


def test_the_platform_says_how_long_to_wait(stage: TelegramStage) -> None:
    with stage.fault(Fault.RATE), pytest.raises(ConnectorError) as caught:
        run(stage, lambda bot: bot.send(a_text(stage)))
    assert (caught.value.kind, caught.value.retry_after) == (FailureKind.RETRY, 1)
    assert not caught.value.uncertain


def test_a_token_of_another_form_is_no_credential(stage: TelegramStage) -> None:
    stage.values["token"] = "hello"
    assert fails(stage, lambda bot: bot.check()) is FailureKind.CREDENTIALS


def test_an_id_that_is_no_number_is_refused(stage: TelegramStage) -> None:
    message = a_text(stage, place=ChatPlace(chat_id="@channel"))
    assert fails(stage, lambda bot: bot.send(message)) is FailureKind.REFUSED


def test_a_message_without_an_answer_may_have_been_sent(stage: TelegramStage) -> None:
    def cut(_: str) -> None:
        stage.fake.stop()

    message = a_text(stage)
    stage.fake.script.append(cut)
    with pytest.raises(ConnectorError) as caught:
        run(stage, lambda bot: bot.send(message))
    assert caught.value.uncertain
    with pytest.raises(ConnectorError) as caught:
        run(stage, lambda bot: bot.send(message))
    assert not caught.value.uncertain


def test_a_press_that_cannot_be_answered_now(stage: TelegramStage) -> None:
    press = InboundPress(
        id="1",
        place=ChatPlace(chat_id="1"),
        sender=receive_sender(),
        message_id="1",
        value="x",
        reference="7",
    )
    run(stage, lambda bot: bot.answer_press(press, "too late"))
    with stage.fault(Fault.ERROR):
        assert fails(stage, lambda bot: bot.answer_press(press, "x")) is FailureKind.RETRY


def receive_sender() -> Any:
    from scout.ports.connector import ExternalSender

    return ExternalSender(id="1")


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"ok": true, "result": 5}', b"\xff"])
def test_a_malformed_answer_is_an_error_of_the_platform(
    stage: TelegramStage, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    from tests.connectors import telegram_fake

    def write(handler: Any, status: int, data: bytes, kind: str) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    monkeypatch.setattr(telegram_fake._Handler, "_write", write)
    assert fails(stage, lambda bot: bot.check()) is FailureKind.RETRY
    assert fails(stage, lambda bot: bot.send(a_text(stage))) is FailureKind.RETRY


def test_an_update_without_a_number_is_an_error_of_the_platform(
    stage: TelegramStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.connectors import telegram_fake

    ada = stage.person("ada")
    stage.say(ada, stage.private(ada), "hello")
    write = telegram_fake._Handler._write

    def forget_numbers(handler: Any, status: int, data: bytes, kind: str) -> None:
        write(handler, status, data.replace(b'"update_id"', b'"update"'), kind)

    monkeypatch.setattr(telegram_fake._Handler, "_write", forget_numbers)
    assert fails(stage, lambda bot: bot.run(KeepingInlet())) is FailureKind.RETRY


def test_the_token_is_in_no_log(stage: TelegramStage, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        run(stage, lambda bot: bot.check())
        with stage.fault(Fault.DOWN):
            fails(stage, lambda bot: bot.check())
    assert TOKEN not in caplog.text


def test_two_readers_disturb_each_other_for_a_moment_only(stage: TelegramStage) -> None:
    def conflict(_: str) -> None:
        raise ApiError(409, "Conflict: terminated by other getUpdates request")

    stage.fake.refuses = conflict
    assert fails(stage, lambda bot: bot.run(Taken())) is FailureKind.RETRY
    assert NOW.year == 2026
