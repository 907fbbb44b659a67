"""The Slack connector against a strict fake, which slack-sdk checks and uses too."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from slack_sdk import WebClient
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.client import BaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from scout.connectors.slack import socket
from scout.connectors.slack.connector import build
from scout.connectors.slack.text import read_text
from scout.ports.connector import (
    Button,
    ChatPlace,
    ConnectorError,
    ConnectorSetup,
    ExternalSender,
    FailureKind,
    OutboundFile,
    RemoteFile,
)
from tests.connectors.fake_slack import APP_TOKEN, BOT_TOKEN, FakeSlack
from tests.connectors.loopback import Response, respond
from tests.connectors.running import KeepingInlet, Running, failing, text_to

ADA, BOB = "U0ADA", "U0BOB"


class Scene(NamedTuple):
    slack: FakeSlack
    inlet: KeepingInlet

    def running(self, *, receiving: bool = True, **values: str) -> Running:
        told = {"botToken": BOT_TOKEN, "appToken": APP_TOKEN, "baseUrl": f"{self.slack.server.url}/api"}
        connector = build(ConnectorSetup(connector="slack", values={**told, **values}))
        return Running(connector, self.inlet, receiving=receiving)


@pytest.fixture
def scene() -> Iterator[Scene]:
    slack = FakeSlack()
    slack.server.start()
    slack.open_channel("D1", ADA)
    slack.open_channel("C1", ADA, BOB)
    yield Scene(slack, KeepingInlet())
    slack.server.close()
    assert slack.problems == []


# -- the fake itself -----------------------------------------------------------------------------------


def test_the_client_of_slack_understands_the_fake(scene: Scene) -> None:
    """So that the fake does not only confirm the connector."""
    got, event = list[Any](), threading.Event()

    def take(client: BaseSocketModeClient, request: SocketModeRequest) -> None:
        client.send_socket_mode_response(SocketModeResponse(request.envelope_id))
        got.append(request)
        event.set()

    web: Any = WebClient(BOT_TOKEN, base_url=f"{scene.slack.server.url}/api/")
    client = SocketModeClient(APP_TOKEN, web_client=web)
    client.socket_mode_request_listeners.append(take)
    client.connect()
    try:
        assert web.auth_test()["user_id"] == "U0BOT"
        web.files_upload_v2(channel="C1", filename="a.txt", content="text")
        scene.slack.say(ADA, "D1", "hello")
        assert event.wait(60)
    finally:
        client.close()
    assert got[0].payload["event"]["text"] == "hello"
    assert scene.slack.shown("C1")[0]["files"][0]["name"] == "a.txt"


# -- credentials ---------------------------------------------------------------------------------------


def test_check_proves_both_tokens(scene: Scene) -> None:
    with scene.running(receiving=False) as running:
        account = running.do(running.connector.check())
        assert (account.id, account.name) == ("U0BOT", "scout")
    for name in ("botToken", "appToken"):
        with scene.running(receiving=False, **{name: "xox-wrong"}) as running:
            failure = failing(lambda running=running: running.do(running.connector.check()))
            assert failure.kind is FailureKind.CREDENTIALS
            assert "invalid_auth" in failure.reason
            assert "xox-wrong" not in failure.reason


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"botToken": ""}, "'botToken' is not set"),
        ({"appToken": "xapp-\n1"}, "'appToken' has a character"),
        ({"baseUrl": "ftp://slack.com"}, "'baseUrl' is not"),
        ({"baseUrl": "http://[::1"}, "'baseUrl' is not"),
    ],
)
def test_a_set_up_that_cannot_work_is_refused(values: dict[str, str], problem: str) -> None:
    told = {"botToken": BOT_TOKEN, "appToken": APP_TOKEN, **values}
    failure = failing(lambda: build(ConnectorSetup(connector="slack", values=told)))
    assert failure.kind is FailureKind.CREDENTIALS
    assert problem in failure.reason


# -- in ------------------------------------------------------------------------------------------------


def test_a_text_of_one_person(scene: Scene) -> None:
    with scene.running():
        ts = scene.slack.say(ADA, "D1", "a &lt; b &amp;&amp; <https://example.com/x|here>")
        (text,) = scene.inlet.texts(1)
    assert text.id == f"D1:{ts}"
    assert text.message_id == ts
    assert text.place == ChatPlace(chat_id="D1")
    assert text.sender == ExternalSender(id=ADA)
    assert text.text == "a < b && here (https://example.com/x)"
    assert text.addressed


def test_in_a_channel_the_mention_of_the_bot_counts(scene: Scene) -> None:
    with scene.running() as running:
        scene.slack.say(ADA, "C1", "to nobody")
        ts = scene.slack.say(BOB, "C1", "<@U0BOT>, what do you think?")
        told = {"type": "app_mention", "user": BOB, "ts": ts, "channel": "C1", "event_ts": ts}
        scene.slack.report({**told, "text": "<@U0BOT>, what do you think?"})  # the same once more
        sent = running.send(text_to("C1", "May I?", group=True))
        scene.slack.say(ADA, "C1", "yes", thread_ts=sent)
        scene.slack.say(ADA, "C1", "psst", thread_ts=ts)
        texts = scene.inlet.texts(4)
    assert [(one.text, one.addressed) for one in texts] == [
        ("to nobody", False),
        ("what do you think?", True),
        ("yes", True),
        ("psst", False),
    ]
    assert all(one.place.group for one in texts)
    assert (texts[2].place.thread_id, texts[2].reply_to) == (sent, sent)
    assert (texts[3].place.thread_id, texts[3].reply_to) == (ts, None)


def test_edits_of_people_count_and_previews_of_slack_do_not(scene: Scene) -> None:
    with scene.running():
        ts = scene.slack.say(ADA, "D1", "teh")
        (message,) = scene.slack.messages["D1"]
        scene.slack.report_change("D1", {**message, "attachments": [{"text": "a preview"}]}, message)
        scene.slack.edit("D1", ts, "the")
        scene.slack.edit("D1", ts, "that")
        texts = scene.inlet.texts(3)
    assert [(one.text, one.edits, one.message_id) for one in texts] == [
        ("teh", None, ts),
        ("the", ts, ts),
        ("that", ts, ts),
    ]
    assert len({one.id for one in texts}) == 3


def test_the_bot_itself_says_nothing_new_and_other_bots_are_programs(scene: Scene) -> None:
    with scene.running() as running:
        sent = running.send(text_to("C1", "from Scout"))
        running.do(running.connector.edit(sent, text_to("C1", "from Scout, changed")))
        scene.slack.say("U0OTHER", "C1", "beep", bot_id="B0OTHER")
        scene.slack.say("", "C1", "beep", bot_id="B0OTHER", subtype="bot_message")
        scene.slack.say(ADA, "C1", "joined", subtype="channel_join")
        scene.slack.say(ADA, "C1", "last")
        texts = scene.inlet.texts(3)
    assert [(one.sender.id, one.sender.program) for one in texts] == [
        ("U0OTHER", True),
        ("B0OTHER", True),
        (ADA, False),
    ]


def test_a_pressed_button_and_what_only_that_person_reads(scene: Scene) -> None:
    buttons = (Button(label="Once", value="v-1"), Button(label="x" * 75, value="v" * 64))
    with scene.running() as running:
        ts = scene.slack.say(BOB, "C1", "<@U0BOT> go")
        sent = running.send(text_to("C1", "May I?", group=True, reply_to=ts, buttons=buttons))
        scene.slack.press(ADA, "C1", sent, "Once")
        (press,) = scene.inlet.presses(1)
        assert (press.message_id, press.value, press.sender.id) == (sent, "v-1", ADA)
        assert press.place == ChatPlace(chat_id="C1", thread_id=ts, group=True)
        running.do(running.connector.answer_press(press, "Only Bob may decide this."))
        running.do(running.connector.edit(sent, text_to("C1", "Bob allowed it.")))
    (note,) = scene.slack.ephemerals
    assert (note["user"], note["thread_ts"]) == (ADA, ts)
    (shown,) = scene.slack.shown("C1")
    assert shown["text"] == "Bob allowed it."
    assert [block["type"] for block in shown["blocks"]] == ["section"]


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
def test_a_new_connection_is_opened_when_slack_asks_for_one(scene: Scene, reason: str) -> None:
    with scene.running():
        scene.slack.say(ADA, "D1", "one")
        scene.inlet.texts(1)
        scene.slack.disconnect(reason)
        scene.slack.say(ADA, "D1", "two")
        scene.inlet.texts(2)


def test_a_switched_off_socket_mode_is_a_matter_of_credentials(scene: Scene) -> None:
    with scene.running() as running:
        scene.slack.say(ADA, "D1", "one")
        scene.inlet.texts(1)
        scene.slack.disconnect("link_disabled")
        error = running.wait_for_failure()
    assert isinstance(error, ConnectorError)
    assert error.kind is FailureKind.CREDENTIALS


def test_an_envelope_is_acknowledged_after_it_was_taken(scene: Scene) -> None:
    with scene.running() as running:
        scene.inlet.refuses = 1
        scene.slack.say(ADA, "D1", "kept")
        assert isinstance(running.wait_for_failure(), OSError)
        assert scene.slack.acknowledged == []
    with scene.running():
        assert [one.text for one in scene.inlet.texts(1)] == ["kept"]
        scene.slack.say(ADA, "D1", "next")
        scene.inlet.texts(2)
        scene.slack.repeat()
        scene.inlet.wait_until(lambda: len(scene.inlet.offered) == 5)
        assert len(scene.inlet.taken) == 2


_FRAMES: list[str] = [
    "",
    "nonsense",
    "[1]",
    '{"type": 7}',
    '{"type": "events_api", "envelope_id": "e", "payload": 3}',
]
_EVENTS: list[Any] = [
    {},
    {"type": "message"},
    {"type": "message", "ts": 1, "text": "x"},
    {"type": "message", "ts": "1.1", "user": ADA, "text": None, "channel": "D1"},
    {"type": "message", "subtype": "message_changed", "ts": "1.1", "channel": "D1", "message": {"ts": 1}},
    {"type": "message", "subtype": "message_deleted", "ts": "1.1", "channel": "D1", "deleted_ts": "1.0"},
    {"type": "reaction_added", "user": ADA, "reaction": "+1", "item": {}, "event_ts": "1.1"},
]


def test_frames_and_events_of_any_form_do_no_harm(scene: Scene) -> None:
    with scene.running():
        scene.slack.say(ADA, "D1", "before")
        scene.inlet.texts(1)
        for frame in _FRAMES:
            scene.slack.send_frame(frame)
        for event in _EVENTS:
            scene.slack.report(event)
        scene.slack.say(ADA, "D1", "after")
        assert [one.text for one in scene.inlet.texts(2)] == ["before", "after"]


def test_a_lost_connection_is_worth_another_try(scene: Scene) -> None:
    with scene.running() as running:
        scene.slack.say(ADA, "D1", "one")
        scene.inlet.texts(1)
        scene.slack.server.stop()
        error = running.wait_for_failure()
    assert isinstance(error, ConnectorError)
    assert error.kind is FailureKind.RETRY
    assert "ticket" not in error.reason
    scene.slack.server.resume()
    with scene.running():
        scene.slack.say(ADA, "D1", "two")
        scene.inlet.texts(2)


# -- out -----------------------------------------------------------------------------------------------


def test_a_message_as_slack_gets_it(scene: Scene) -> None:
    with scene.running(receiving=False) as running:
        ts = scene.slack.say(ADA, "D1", "question")
        running.send(text_to("D1", "*done*", plain="done", reply_to=ts))
        running.send(text_to("D1", "in the thread", thread=ts))
        first, second = scene.slack.shown("D1")
        longest = running.connector.capabilities.text_limit
        running.send(text_to("D1", "x" * longest))
        limit = running.connector.capabilities.buttons
        many = tuple(Button(label=str(one), value=str(one)) for one in range(limit))
        running.send(text_to("D1", "choose", buttons=many))
    assert first["text"] == "done"
    assert first["blocks"][0]["text"] == {"type": "mrkdwn", "text": "*done*", "verbatim": True}
    assert "thread_ts" not in first
    assert second["thread_ts"] == ts


def test_the_text_of_others_calls_nobody(scene: Scene) -> None:
    with scene.running(receiving=False) as running:
        running.send(text_to("C1", "&lt;!channel&gt;", plain="<!channel> <@U0ADA> & more", group=True))
    (shown,) = scene.slack.shown("C1")
    assert shown["text"] == "&lt;!channel&gt; &lt;@U0ADA&gt; &amp; more"


def test_a_note_for_one_member(scene: Scene) -> None:
    with scene.running(receiving=False) as running:
        running.send(text_to("C1", "for Ada", group=True, only_for=ADA))
        (note,) = scene.slack.ephemerals
        assert (note["user"], note["text"]) == (ADA, "for Ada")
        stranger = text_to("C1", "for nobody", group=True, only_for="U0GONE")
        failure = failing(lambda: running.send(stranger))
    assert (failure.kind, failure.reason) == (FailureKind.REFUSED, "slack: user_not_in_channel")


def test_files_both_ways(scene: Scene) -> None:
    data = bytes(range(256)) * 300
    with scene.running() as running:
        scene.slack.share(ADA, "D1", "notes.txt", data, "look")
        (text,) = scene.inlet.texts(1)
        (file,) = text.files
        assert (text.text, file.name, file.media_type, file.size) == (
            "look",
            "notes.txt",
            "text/plain",
            len(data),
        )
        assert running.do(running.connector.fetch(file, len(data))) == data
        refused = failing(lambda: running.do(running.connector.fetch(file, 100)))
        assert refused.kind is FailureKind.REFUSED
        ts = scene.slack.say(ADA, "D1", "question")
        out = OutboundFile(name="answer ✓.bin", media_type="application/octet-stream", data=data)
        running.send(text_to("D1", "", files=(out,), thread=ts))
    (shown,) = scene.slack.shown("D1")
    assert shown["thread_ts"] == ts
    assert scene.slack.files[shown["files"][0]["id"]][1] == data
    assert shown["files"][0]["name"] == "answer ✓.bin"


def test_the_token_goes_to_slack_only(scene: Scene) -> None:
    elsewhere = scene.slack.keep_file("a.txt", b"x", url_private_download="https://slack.com.example/a.txt")
    hidden: dict[str, Any] = {"mode": "external", "is_external": True}
    with scene.running() as running:
        scene.slack.share(ADA, "D1", "b.txt", b"x", **hidden)
        assert scene.inlet.texts(1)[0].files == ()
        file = RemoteFile(reference=elsewhere["id"], name="a.txt")
        failure = failing(lambda: running.do(running.connector.fetch(file, 10)))
        assert "the token is not sent to slack.com.example" in failure.reason
        assert failing(lambda: running.do(running.connector.fetch(RemoteFile(reference="F0", name=""), 1)))


def test_words_that_look_like_mentions_are_words(scene: Scene) -> None:
    with scene.running(receiving=False) as running:
        sent = running.send(text_to("C1", "@channel @here #general", group=True))
        running.do(running.connector.edit(sent, text_to("C1", "@everyone", group=True)))
    sections = [
        one.arguments["blocks"][0]["text"]
        for one in scene.slack.calls
        if one.method in ("chat.postMessage", "chat.update")
    ]
    assert [one["verbatim"] for one in sections] == [True, True]


def test_a_socket_that_says_nothing_is_given_up(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "_OPENING", 0.3)
    scene.slack.silent = True
    with scene.running() as running:
        error = running.wait_for_failure()
    assert getattr(error, "kind", None) is FailureKind.RETRY


def test_without_the_scope_a_file_is_no_page(scene: Scene) -> None:
    scene.slack.scopes_files = False
    kept = scene.slack.keep_file("a.txt", b"x")
    with scene.running(receiving=False) as running:
        file = RemoteFile(reference=kept["id"], name="a.txt")
        failure = failing(lambda: running.do(running.connector.fetch(file, 1000)))
    assert failure.kind is FailureKind.REFUSED
    assert "files:read" in failure.reason


_PROBLEMS = [
    (respond({"ok": False, "error": "ratelimited"}, 429, retry_after="7"), FailureKind.RETRY, 7.0, False),
    (respond({"ok": False, "error": "internal_error"}), FailureKind.RETRY, None, True),
    (respond({"ok": False, "error": "token_revoked"}), FailureKind.CREDENTIALS, None, False),
    (
        respond({"ok": False, "error": "missing_scope", "needed": "chat:write"}),
        FailureKind.CREDENTIALS,
        None,
        False,
    ),
    (respond({"ok": False, "error": "is_archived"}), FailureKind.REFUSED, None, False),
    (Response(503, b"<html>down</html>"), FailureKind.RETRY, None, False),
    (Response(302, b"", {"location": "https://elsewhere.example/"}), FailureKind.REFUSED, None, False),
    (Response(200, b"<html>not JSON</html>"), FailureKind.RETRY, None, True),
    (Response(200, b'{"ok": true}'), FailureKind.RETRY, None, True),
    (Response(200, b'{"ok": true, "ts": "1', cut=True), FailureKind.RETRY, None, True),
    (Response(200, b'{"ok": true, "ts": "1"}' + bytes(17 * 1024 * 1024)), FailureKind.RETRY, None, True),
]


@pytest.mark.parametrize(("answer", "kind", "wait", "uncertain"), _PROBLEMS)
def test_what_goes_wrong_is_of_one_of_three_kinds(
    scene: Scene, answer: Response, kind: FailureKind, wait: float | None, uncertain: bool
) -> None:
    scene.slack.answer = lambda method: answer if method == "chat.postMessage" else None
    with scene.running(receiving=False) as running:
        failure = failing(lambda: running.send(text_to("D1")))
    assert (failure.kind, failure.retry_after, failure.uncertain) == (kind, wait, uncertain)
    assert failure.reason.startswith("slack: ")


def test_nobody_is_there(scene: Scene) -> None:
    scene.slack.server.stop()
    with scene.running(receiving=False) as running:
        failure = failing(lambda: running.send(text_to("D1")))
    assert (failure.kind, failure.uncertain) == (FailureKind.RETRY, False)


def test_a_call_that_is_cancelled_leaves_nothing_open(scene: Scene) -> None:
    scene.slack.hold = asyncio.Event()

    async def give_up(running: Running) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await running.connector.send(text_to("D1"))

    with scene.running(receiving=False) as running:
        running.do(give_up(running))
        scene.slack.server.call(scene.slack.hold.set)


# -- texts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "typed"),
    [
        ("<@U0BOT> hello", "hello"),
        ("<@U0BOT>: @arc review this", "@arc review this"),
        ("ask <@U2|bob> and <@U3>", "ask @bob and @U3"),
        ("see <#C2|general> <#C3>", "see #general #C3"),
        ("<!here> <!subteam^S1|@team> <!channel>", "@here @team @channel"),
        ("<mailto:a@b.c|a@b.c>", "a@b.c"),
        ("<http://example.com|example.com>", "http://example.com"),
        ("1 &lt; 2 &amp;lt; 3", "1 < 2 &lt; 3"),
        ("<@U0BOT>", ""),
        ("a <b", "a <b"),
    ],
)
def test_a_text_is_read_as_it_was_typed(raw: str, typed: str) -> None:
    assert read_text(raw, "U0BOT") == typed
