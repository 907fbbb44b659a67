"""What the port promises, for every connector on its stage. The broker is not part of it."""

import contextlib
import html
import importlib
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import pytest

from scout.policy.people.text_parts import format_text
from scout.ports.connector import (
    Button,
    ChatPlace,
    Connector,
    ConnectorError,
    ConnectorSetup,
    FailureKind,
    OutboundFile,
)
from tests.connectors.matrix_stage import matrix_stage
from tests.connectors.running import KeepingInlet, Running, failing, text_to
from tests.connectors.slack_stage import slack_stage
from tests.connectors.stage import Fault, Stage
from tests.connectors.telegram_stage import telegram_stage
from tests.connectors.whatsapp_stage import whatsapp_stage

_WITHOUT_GROUPS = ("whatsapp",)
_KINDS = {
    Fault.RATE: FailureKind.RETRY,
    Fault.DOWN: FailureKind.RETRY,
    Fault.ERROR: FailureKind.RETRY,
    Fault.CREDENTIALS: FailureKind.CREDENTIALS,
    Fault.REFUSED: FailureKind.REFUSED,
}


@pytest.fixture(params=["slack", "telegram", "whatsapp", pytest.param("matrix", marks=pytest.mark.slow)])
def stage(request: pytest.FixtureRequest) -> Generator[Stage]:
    stages: dict[str, Any] = {"slack": slack_stage, "telegram": telegram_stage, "whatsapp": whatsapp_stage}
    if request.param == "matrix":
        making = matrix_stage(request.getfixturevalue("synapse"))
    else:
        making = stages[request.param]()
    with making as made:
        yield made
        assert made.problems() == []


@pytest.fixture
def inlet() -> KeepingInlet:
    return KeepingInlet()


def connect(stage: Stage) -> Connector:
    module = importlib.import_module(f"scout.connectors.{stage.connector}.connector")
    return module.build(ConnectorSetup(connector=stage.connector, values=dict(stage.values)))


@contextlib.contextmanager
def ready(stage: Stage, inlet: KeepingInlet) -> Generator[tuple[Running, str, str]]:
    """The connector at work, a person, and their chat with the bot, in which one text was taken."""
    person = stage.person("Ada")
    with Running(connect(stage), inlet) as running:
        chat = stage.private(person)
        greeting = stage.say(person, chat, "hello")
        inlet.wait_until(lambda: any(getattr(one, "message_id", "") == greeting for one in inlet.taken))
        inlet.taken = [one for one in inlet.taken if getattr(one, "message_id", "") == greeting]
        yield running, person, chat


def test_the_fields_name_every_value(stage: Stage) -> None:
    fields = importlib.import_module(f"scout.connectors.{stage.connector}.fields").FIELDS
    assert {field.name for field in fields} >= set(stage.values)
    assert any(field.secret for field in fields)


@pytest.mark.parametrize("connector", ["matrix", "slack", "telegram", "whatsapp"])
def test_nothing_of_a_library_is_loaded_to_know_the_fields(connector: str) -> None:
    words = f"import sys, scout.connectors.{connector}.fields; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert {"asyncio", "h11", "httpx2", "websockets"}.isdisjoint(loaded.stdout.split())


def test_the_account_is_proved(stage: Stage) -> None:
    with Running(connect(stage), receiving=False) as running:
        assert running.do(running.connector.check()).id
        assert running.connector.name == stage.connector


def test_a_text_of_a_person_and_the_answer(stage: Stage, inlet: KeepingInlet) -> None:
    with ready(stage, inlet) as (running, person, chat):
        said = stage.say(person, chat, "What is 1 < 2 & 3 > 2?")
        text = inlet.texts(2)[1]
        assert (text.text, text.message_id, text.addressed) == ("What is 1 < 2 & 3 > 2?", said, True)
        assert text.place == ChatPlace(chat_id=chat)
        assert (text.sender.id, text.sender.program) == (person, False)
        sent = running.send(text_to(chat, "true", reply_to=said))
        (shown,) = (one for one in stage.shown(chat) if one.message_id == sent)
        assert shown.text == "true"


def test_every_markup_is_shown_as_it_reads(stage: Stage, inlet: KeepingInlet) -> None:
    words = "**Bold**, *it*, `a<b>&c`, [link](https://example.org/a?b=1&c=2)\n\n```\nif a < b & c:\n```\n\n- one\n- two"
    with ready(stage, inlet) as (running, _, chat):
        capabilities = running.connector.capabilities
        (part,) = format_text(words, capabilities.markup, capabilities.text_limit)
        sent = running.send(text_to(chat, part.text, plain=part.plain))
        (shown,) = (one for one in stage.shown(chat) if one.message_id == sent)
        read = html.unescape(f"{shown.text} {shown.markup}")
        assert all(some in shown.text for some in ("Bold", "a<b>&c", "if a < b & c:"))
        assert "https://example.org/a?b=1&c=2" in read
        assert shown.markup == part.text


def test_a_group_and_its_threads(stage: Stage, inlet: KeepingInlet) -> None:
    if stage.connector in _WITHOUT_GROUPS:
        return  # its chats are of one person each
    with ready(stage, inlet) as (running, person, _):
        bob = stage.person("Bob")
        chat = stage.group("Team", person, bob)
        stage.say(bob, chat, "to nobody")
        stage.say(bob, chat, "to the bot", mention=True)
        thread = stage.thread(chat, "topic")
        said = stage.say(person, chat, "in the thread", thread=thread, mention=True)
        texts = [one for one in inlet.texts(4) if not one.sender.program][1:]
        inlet.wait_until(lambda: any(getattr(one, "message_id", "") == said for one in inlet.taken))
        texts = [one for one in inlet.texts(4) if not one.sender.program][1:]
        assert [(one.text, one.addressed) for one in texts] == [
            ("to nobody", False),
            ("to the bot", True),
            ("in the thread", True),
        ]
        assert all(one.place.group and one.place.chat_id == chat for one in texts)
        assert texts[2].place.thread_id == thread
        sent = running.send(text_to(chat, "an answer", thread=thread, group=True, reply_to=said))
        (shown,) = (one for one in stage.shown(chat) if one.message_id == sent)
        assert shown.thread == thread


def test_choices_are_made(stage: Stage, inlet: KeepingInlet) -> None:
    with ready(stage, inlet) as (running, person, chat):
        capabilities = running.connector.capabilities
        buttons = (Button(label="Once", value="pst_1:0"), Button(label="Deny", value="pst_1:1"))
        words = "May I?" if capabilities.buttons else "May I?\n👍 Once\n👎 Deny"
        sent = running.send(text_to(chat, words, buttons=buttons if capabilities.buttons else ()))
        (shown,) = (one for one in stage.shown(chat) if one.message_id == sent)
        assert shown.buttons == ("Once", "Deny")
        stage.press_as_bot(chat, sent, "Once")
        stage.press(person, chat, sent, "Deny")
        inlet.wait_until(lambda: [one for one in inlet.presses(1) if not one.sender.program])
        (press,) = (one for one in inlet.presses(1) if not one.sender.program)
        assert press.message_id == sent
        assert press.sender.id == person
        assert press.value == ("pst_1:1" if capabilities.buttons else "👎")
        running.do(running.connector.answer_press(press, "Denied."))
        assert "Denied." in stage.notes(person)


def test_as_much_as_the_capabilities_say(stage: Stage, inlet: KeepingInlet) -> None:
    with ready(stage, inlet) as (running, _, chat):
        capabilities = running.connector.capabilities
        label, value = "x" * (capabilities.label_limit - 2), "v" * 61
        buttons = tuple(
            Button(label=f"{one:02}{label}", value=f"{one:03}{value}") for one in range(capabilities.buttons)
        )
        longest = "x" * capabilities.text_limit
        running.send(text_to(chat, longest))
        sent = running.send(text_to(chat, longest, buttons=buttons))
        (shown,) = (one for one in stage.shown(chat) if one.message_id == sent)
        assert len(shown.buttons) == capabilities.buttons


def test_edits_both_ways(stage: Stage, inlet: KeepingInlet) -> None:
    with ready(stage, inlet) as (running, person, chat):
        said = stage.say(person, chat, "teh")
        inlet.texts(2)
        stage.edit(person, chat, said, "the")
        edit = inlet.texts(3)[2]
        assert (edit.text, edit.edits, edit.message_id) == ("the", said, said)
        sent = running.send(text_to(chat, "waiting"))
        change = running.connector.edit(sent, text_to(chat, "decided"))
        if not running.connector.capabilities.edits:
            assert failing(lambda: running.do(change)).kind is FailureKind.REFUSED
            return
        running.do(change)
        (shown,) = (one for one in stage.shown(chat) if one.message_id == sent)
        assert (shown.text, shown.buttons, shown.edited) == ("decided", (), True)
        gone = running.connector.edit("123456", text_to(chat, "x"))
        with contextlib.suppress(ConnectorError):  # nothing else may leave it
            running.do(gone)


def test_files_both_ways(stage: Stage, inlet: KeepingInlet) -> None:
    data = b"some text\n" * 1000
    with ready(stage, inlet) as (running, person, chat):
        stage.say(person, chat, "look", file=("notes.txt", data))
        text = inlet.texts(2)[1]
        (file,) = text.files
        assert (text.text, file.name) == ("look", "notes.txt")
        assert running.do(running.connector.fetch(file, len(data))) == data
        assert failing(lambda: running.do(running.connector.fetch(file, 10))).kind is FailureKind.REFUSED
        out = OutboundFile(name="answer.txt", media_type="text/plain", data=data)
        running.send(text_to(chat, "", files=(out,)))
        shown = stage.shown(chat)[-1]
        assert (shown.file, shown.data) == ("answer.txt", data)


def test_typing_is_shown_where_it_can_be(stage: Stage, inlet: KeepingInlet) -> None:
    with ready(stage, inlet) as (running, _, chat):
        before = stage.typed(chat)
        running.do(running.connector.show_typing(ChatPlace(chat_id=chat)))
        assert stage.typed(chat) - before == int(running.connector.capabilities.typing)


def test_what_is_reported_again_has_the_same_id(stage: Stage, inlet: KeepingInlet) -> None:
    with ready(stage, inlet) as (_, person, chat):
        stage.say(person, chat, "once")
        inlet.texts(2)
        known = {*inlet.offered}
        stage.repeat()
        stage.say(person, chat, "last")
        inlet.wait_until(lambda: any(getattr(one, "text", "") == "last" for one in inlet.taken))
        last = [one.id for one in inlet.taken if getattr(one, "text", "") == "last"]
        assert {*inlet.offered} == {*known, *last}


def test_an_event_that_was_not_taken_is_offered_again(stage: Stage, inlet: KeepingInlet) -> None:
    with ready(stage, inlet) as (_, person, chat):
        inlet.refuses = 1
        said = stage.say(person, chat, "kept")
        inlet.wait_until(lambda: inlet.refuses == 0)
    with Running(connect(stage), inlet):
        inlet.wait_until(lambda: any(getattr(one, "message_id", "") == said for one in inlet.taken))


@pytest.mark.parametrize("fault", list(Fault))
def test_a_fault_is_of_one_of_three_kinds(stage: Stage, inlet: KeepingInlet, fault: Fault) -> None:
    with ready(stage, inlet) as (running, _, chat):
        message = text_to(chat, "after the fault")
        with stage.fault(fault):
            failure = failing(lambda: running.send(message))
            assert failure.kind is _KINDS[fault], failure
            assert (failure.retry_after == 1.0) == (fault is Fault.RATE)
            assert not any(secret in failure.reason for secret in _list_secrets(stage))
        sent = running.send(message)
        assert sent in [one.message_id for one in stage.shown(chat)]


def _list_secrets(stage: Stage) -> list[str]:
    fields = importlib.import_module(f"scout.connectors.{stage.connector}.fields").FIELDS
    return [stage.values[field.name] for field in fields if field.secret and stage.values.get(field.name)]


def test_receiving_ends_when_the_secret_is_no_longer_valid(stage: Stage, inlet: KeepingInlet) -> None:
    with stage.fault(Fault.CREDENTIALS), Running(connect(stage), inlet) as running:
        error = running.wait_for_failure()
    assert isinstance(error, ConnectorError)
    assert error.kind is FailureKind.CREDENTIALS


def test_after_a_restart_of_the_platform_it_goes_on(stage: Stage, inlet: KeepingInlet) -> None:
    with ready(stage, inlet) as (_, person, chat):
        stage.restart()
        said = stage.say(person, chat, "after the restart")
    with Running(connect(stage), inlet):
        inlet.wait_until(lambda: any(getattr(one, "message_id", "") == said for one in inlet.taken))
