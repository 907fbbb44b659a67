"""The WhatsApp connector against a strict fake, which pywa checks."""

import asyncio
import contextlib
import hashlib
import hmac
import socket
import time
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import pytest

from scout.connectors.whatsapp import listener
from scout.connectors.whatsapp.connector import build
from scout.ports.connector import (
    Button,
    ChatPlace,
    ConnectorError,
    ConnectorSetup,
    ExternalSender,
    FailureKind,
    InboundFailure,
    OutboundFile,
    RemoteFile,
)
from tests.connectors.fake_whatsapp import (
    APP_SECRET,
    PHONE,
    TOKEN,
    VERIFY,
    FakeWhatsApp,
    build_notification,
)
from tests.connectors.loopback import Response, find_port, respond
from tests.connectors.running import KeepingInlet, Running, failing, text_to

ADA = "US.130001"


class Scene(NamedTuple):
    meta: FakeWhatsApp
    port: int
    inlet: KeepingInlet

    def running(self, *, receiving: bool = True, **values: str) -> Running:
        told = {
            "accessToken": TOKEN,
            "phoneNumberId": PHONE,
            "appSecret": APP_SECRET,
            "verifyToken": VERIFY,
            "publicHost": "hook.example.org",
            "port": str(self.port),
            "baseUrl": f"{self.meta.server.url}/v25.0",
        }
        connector = build(ConnectorSetup(connector="whatsapp", values={**told, **values}))
        return Running(connector, self.inlet, receiving=receiving)

    @contextlib.contextmanager
    def listening(self) -> Generator[Running]:
        """The connector, once its webhook answers."""
        with self.running() as running:
            until = time.monotonic() + 60
            while not _answers(self.port):
                assert time.monotonic() < until
                time.sleep(0.01)
            yield running


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def scene() -> Iterator[Scene]:
    port = find_port()
    meta = FakeWhatsApp(port)
    meta.start()
    yield Scene(meta, port, KeepingInlet())
    meta.close()
    assert meta.problems == []


# -- credentials ---------------------------------------------------------------------------------------


def test_check_names_the_number(scene: Scene) -> None:
    with scene.running(receiving=False) as running:
        account = running.do(running.connector.check())
    assert (account.id, account.name) == (PHONE, "Scout +1 555 0000")


def test_an_expired_token_is_a_matter_of_credentials(scene: Scene) -> None:
    with scene.running(accessToken="EAAold") as running:
        failure = failing(lambda: running.send(text_to(ADA)))
        assert failure.kind is FailureKind.CREDENTIALS
        assert "Session has expired" in failure.reason
        error = running.wait_for_failure()
    assert isinstance(error, ConnectorError)
    assert error.kind is FailureKind.CREDENTIALS


@pytest.mark.parametrize(
    "values", [{"port": "0"}, {"port": "70000"}, {"port": "x"}, {"appSecret": ""}, {"accessToken": "a b"}]
)
def test_a_set_up_that_cannot_work_is_refused(scene: Scene, values: dict[str, str]) -> None:
    assert failing(lambda: scene.running(receiving=False, **values)).kind is FailureKind.CREDENTIALS


def test_a_port_that_is_taken_is_worth_another_try(scene: Scene) -> None:
    with scene.listening(), scene.running() as second:
        error = second.wait_for_failure()
    assert isinstance(error, ConnectorError)
    assert error.kind is FailureKind.RETRY
    assert f"127.0.0.1:{scene.port}" in error.reason


# -- in ------------------------------------------------------------------------------------------------


def test_a_text(scene: Scene) -> None:
    with scene.listening():
        message_id = scene.meta.say(ADA, "hello 👋")
        (text,) = scene.inlet.texts(1)
    assert (text.id, text.message_id, text.text, text.addressed) == (message_id, message_id, "hello 👋", True)
    assert text.place == ChatPlace(chat_id=ADA)
    assert text.sender == ExternalSender(id=ADA, name=f"Name of {ADA}")


def test_a_person_whom_only_a_phone_number_names(scene: Scene) -> None:
    message = {"from": "15551234", "id": "wamid.old", "type": "text", "text": {"body": "hi"}}
    with scene.listening() as running:
        scene.meta.notify({"contacts": [{"wa_id": "15551234"}], "messages": [message]})
        (text,) = scene.inlet.texts(1)
        assert text.sender.id == "15551234"
        running.send(text_to("15551234", "hello"))
    assert scene.meta.sent[0]["to"] == "15551234"


def test_replies_edits_and_presses(scene: Scene) -> None:
    buttons = tuple(Button(label=f"Choice {one}", value=f"pst_1:{one}") for one in range(4))
    with scene.listening() as running:
        few = running.send(text_to(ADA, "May I?", buttons=buttons[:3]))
        many = running.send(text_to(ADA, "Which one?", buttons=buttons))
        scene.meta.press(ADA, few, "Choice 2")
        scene.meta.press(ADA, many, "Choice 3")
        first, second = scene.inlet.presses(2)
        assert (first.message_id, first.value, first.sender.id) == (few, "pst_1:2", ADA)
        assert (second.message_id, second.value) == (many, "pst_1:3")
        answered = scene.meta.reply(ADA, few, "no")
        scene.meta.edit(ADA, answered, "yes")
        reply, edit = scene.inlet.texts(2)
        assert (reply.text, reply.reply_to) == ("no", few)
        assert (edit.text, edit.edits, edit.message_id) == ("yes", answered, answered)
        assert edit.id != reply.id
        running.do(running.connector.answer_press(first, "Denied."))
    assert scene.meta.sent[-1]["context"] == {"message_id": few}


def test_several_things_in_one_notification(scene: Scene) -> None:
    messages = [
        {
            "from": "15551",
            "from_user_id": ADA,
            "id": f"wamid.{one}",
            "type": "text",
            "text": {"body": str(one)},
        }
        for one in range(5)
    ]
    with scene.listening():
        scene.meta.notify({"messages": messages})
        assert [one.text for one in scene.inlet.texts(5)] == list("01234")


_OTHERS: list[dict[str, Any]] = [
    {},
    {"messages": [{}]},
    {"messages": [7, None, "x"]},
    {"messages": [{"from": "1555", "id": 7, "type": "text", "text": {"body": "x"}}]},
    {"messages": [{"from": "1555", "id": "a", "type": "text", "text": "x"}]},
    {"messages": [{"from": "1555", "id": "a", "type": "text", "text": {"body": "x"}, "group_id": "g1"}]},
    {"messages": [{"from": "1555", "id": "a", "type": "location", "location": {"latitude": 1}}]},
    {"messages": [{"from": "1555", "id": "a", "type": "unsupported", "errors": [{"code": 131051}]}]},
    {
        "messages": [
            {"from": "1555", "id": "a", "type": "reaction", "reaction": {"message_id": "b", "emoji": "👍"}}
        ]
    },
    {"messages": [{"from": "1555", "id": "a", "type": "interactive", "interactive": {"type": "nfm_reply"}}]},
    {
        "messages": [
            {"from": "1555", "id": "a", "type": "edit", "edit": {"original_message_id": "b", "message": {}}}
        ]
    },
    {"statuses": [{"id": "a", "status": "delivered", "recipient_id": "1555"}, {"id": "b"}, 7]},
]


def test_notifications_of_any_form_do_no_harm(scene: Scene) -> None:
    with scene.listening():
        for value in _OTHERS:
            assert scene.meta.post(build_notification(value)).status_code == 200
        text = {
            "messages": [{"from": "1555", "id": "a", "type": "text", "text": {"body": "to another number"}}]
        }
        for body in (
            b"",
            b"nonsense",
            b"[]",
            b'{"object": 3}',
            b'{"object": "page", "entry": [{"changes": [{"field": "feed", "value": {}}]}]}',
            build_notification(text, phone="999"),
            build_notification(text, field="account_update"),
        ):
            assert scene.meta.post(body).status_code == 200
        scene.meta.say(ADA, "after")
        assert [one.text for one in scene.inlet.texts(1)] == ["after"]


def test_a_message_that_meta_did_not_deliver(scene: Scene) -> None:
    with scene.listening() as running:
        scene.meta.closed.add(ADA)
        sent = running.send(text_to(ADA, "too late"))
        (failure,) = scene.inlet.failures(1)
    assert failure == InboundFailure(
        id=f"{sent}:failed",
        place=ChatPlace(chat_id=ADA),
        sender=ExternalSender(id=ADA),
        message_id=sent,
        reason=failure.reason,
    )
    assert "more than 24 hours" in failure.reason
    assert scene.meta.sent == []


# -- the webhook ---------------------------------------------------------------------------------------


def test_the_challenge_of_meta(scene: Scene) -> None:
    with scene.listening():
        right = scene.meta.get(mode="subscribe", verify_token=VERIFY, challenge="12345")
        assert (right.status_code, right.text) == (200, "12345")
        assert right.headers["content-type"] == "text/plain; charset=utf-8"
        for query in (
            {"mode": "subscribe", "verify_token": "guessed", "challenge": "12345"},
            {"mode": "unsubscribe", "verify_token": VERIFY, "challenge": "12345"},
            {"mode": "subscribe", "challenge": "12345"},
            {"mode": "subscribe", "verify_token": VERIFY, "challenge": "1" * 600},
            {},
        ):
            refused = scene.meta.get(**query)
            assert (refused.status_code, refused.text) == (403, "")


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "sha256=",
        "sha256=" + "0" * 64,
        hmac.new(b"app-secret-1", b"x", hashlib.sha1).hexdigest(),
        "sha256=é",
    ],
)
def test_a_wrong_signature_is_refused(scene: Scene, signature: str) -> None:
    message = {"from": "1555", "id": "a", "type": "text", "text": {"body": "forged"}}
    with scene.listening():
        body = build_notification({"messages": [message]})
        given = signature.encode("latin-1").decode("latin-1")
        assert _post_raw(scene.port, body, given) == 403
        changed = body.replace(b"forged", b"forgee")
        right = f"sha256={hmac.new(APP_SECRET.encode(), body, hashlib.sha256).hexdigest()}"
        assert _post_raw(scene.port, changed, right) == 403
        assert _post_raw(scene.port, body + b" ", right) == 403
        scene.meta.say(ADA, "real")
        assert [one.text for one in scene.inlet.texts(1)] == ["real"]


def test_a_repeated_notification_has_no_effect(scene: Scene) -> None:
    with scene.listening():
        scene.meta.say(ADA, "once")
        scene.inlet.texts(1)
        scene.meta.repeat()
        scene.inlet.wait_until(lambda: len(scene.inlet.offered) == 2)
        assert len(scene.inlet.taken) == 1


def test_a_notification_is_acknowledged_after_it_was_taken(scene: Scene) -> None:
    with scene.listening():
        scene.inlet.refuses = 2
        scene.meta.say(ADA, "kept")
        assert [one.text for one in scene.inlet.texts(1)] == ["kept"]
        assert scene.meta.posted[:2] == [503, 503]


def test_only_one_path_of_one_host_is_served(scene: Scene) -> None:
    with scene.listening():
        told = {"Host": "hook.example.org", "Content-Length": "0"}
        for line, headers, status in (
            ("GET / HTTP/1.1", told, 404),
            ("GET /whatsapp/ HTTP/1.1", told, 404),
            ("GET /v1/status HTTP/1.1", told, 404),
            ("PUT /whatsapp HTTP/1.1", told, 405),
            ("POST /whatsapp HTTP/1.1", {**told, "Host": "evil.example"}, 421),
            ("POST /whatsapp HTTP/1.1", {"Content-Length": "0"}, 400),
            ("POST /whatsapp HTTP/1.1", {**told, "Content-Length": str(4 * 1024 * 1024)}, 413),
            ("POST /whatsapp HTTP/1.1", {**told, "Content-Length": "-1"}, 400),
            ("POST /whatsapp HTTP/1.1", {**told, "X": "y" * 100_000}, 431),
            ("nonsense", {}, 400),
        ):
            head = "\r\n".join([line, *(f"{name}: {value}" for name, value in headers.items()), "", ""])
            got = _exchange(scene.port, head.encode())
            assert got == status, (line, got)
        endless = b"POST /whatsapp HTTP/1.1\r\nHost: hook.example.org\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
        assert _exchange(scene.port, endless + chunk * 49) == 413


def test_a_body_of_the_greatest_size_is_read(scene: Scene) -> None:
    message = {"from": "1555", "from_user_id": ADA, "id": "a", "type": "text", "text": {"body": "x" * 4096}}
    padding = {"padding": "y" * (3 * 1024 * 1024 - 10_000)}
    with scene.listening():
        assert scene.meta.post(build_notification({"messages": [message], **padding})).status_code == 200
        assert len(scene.inlet.texts(1)[0].text) == 4096


def test_a_client_that_asks_before_it_sends_a_body(scene: Scene) -> None:
    with scene.listening(), socket.create_connection(("127.0.0.1", scene.port), timeout=60) as client:
        head = "POST /whatsapp HTTP/1.1\r\nHost: hook.example.org\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(100).startswith(b"HTTP/1.1 100")
        client.sendall(b"{}")
        assert client.recv(100).startswith(b"HTTP/1.1 403")


def test_slow_clients_are_let_go_and_hold_up_nobody(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_PATIENCE", 0.5)
    with scene.listening(), contextlib.ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(("127.0.0.1", scene.port), timeout=60))
            for _ in range(20)
        ]
        for one in slow:
            one.sendall(b"POST /whatsapp HTTP/1.1\r\nHost: hook.exam")
        scene.meta.say(ADA, "meanwhile")
        scene.inlet.texts(1)
        assert [one.recv(1) for one in slow] == [b""] * 20  # closed without a word


def test_slow_clients_make_room_for_a_quick_one(scene: Scene) -> None:
    with scene.listening(), contextlib.ExitStack() as stack:
        for _ in range(80):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", scene.port), timeout=60))
            one.sendall(b"POST /whatsapp HTTP/1.1\r\nHost: hook.exam")
        scene.meta.say(ADA, "meanwhile")
        assert scene.inlet.texts(1)[0].text == "meanwhile"
        scene.inlet.wait_until(lambda: scene.meta.posted == [200])


def test_the_token_goes_to_meta_only(scene: Scene) -> None:
    media_id = scene.meta.keep("a.txt", "text/plain", b"x")
    thief = f"http://127.0.0.1:{find_port()}"
    with scene.running(receiving=False) as running:
        told = {"url": f"{thief}/lookaside/{media_id}", "mime_type": "text/plain", "id": media_id}
        scene.meta.answer = lambda one: respond(told) if one.path.endswith(f"/{media_id}") else None
        file = RemoteFile(reference=media_id, name="a.txt")
        failure = failing(lambda: running.do(running.connector.fetch(file, 10)))
        assert failure.kind is FailureKind.REFUSED
        assert "the token is not sent to 127.0.0.1" in failure.reason


def test_too_many_connections_are_closed_at_once(scene: Scene) -> None:
    with scene.listening(), contextlib.ExitStack() as stack:
        many = [
            stack.enter_context(socket.create_connection(("127.0.0.1", scene.port), timeout=60))
            for _ in range(70)
        ]
        ended = _count_closed(many)
        assert 0 < ended < 20


def _count_closed(clients: list[socket.socket]) -> int:
    until = time.monotonic() + 30
    closed = set[socket.socket]()
    while time.monotonic() < until and len(closed) < len(clients) - 64:
        for one in set(clients) - closed:
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                if one.recv(1) == b"":
                    closed.add(one)
        time.sleep(0.01)
    return len(closed)


def _exchange(port: int, data: bytes) -> int:
    """The status of the answer to these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        with contextlib.suppress(ConnectionError):  # refused before everything was sent
            client.sendall(data)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while part := client.recv(1000):
                answer += part
    return int(answer.split(maxsplit=2)[1]) if answer else 0


def _post_raw(port: int, body: bytes, signature: str) -> int:
    head = f"POST /whatsapp HTTP/1.1\r\nHost: hook.example.org\r\nContent-Length: {len(body)}\r\n"
    return _exchange(port, f"{head}X-Hub-Signature-256: {signature}\r\n\r\n".encode("latin-1") + body)


# -- out -----------------------------------------------------------------------------------------------


def test_messages_as_meta_gets_them(scene: Scene) -> None:
    buttons = tuple(Button(label=f"{one} " + "x" * 18, value=f"{one}" * 64) for one in range(10))
    with scene.running(receiving=False) as running:
        limit = running.connector.capabilities.text_limit
        running.send(text_to(ADA, "*done*", plain="done", reply_to="wamid.1"))
        running.send(text_to(ADA, "x" * limit))
        running.send(text_to(ADA, "y" * 1024, buttons=buttons[:3]))
        running.send(text_to(ADA, "z" * limit, buttons=buttons))
        last = running.send(text_to(ADA, "z" * limit, buttons=buttons[:2]))
    kinds = [one.get("interactive", one)["type"] for one in scene.meta.sent]
    assert kinds == ["text", "text", "button", "list", "text", "button"]
    assert scene.meta.sent[0]["text"] == {"body": "*done*", "preview_url": False}
    assert scene.meta.sent[0]["recipient"] == ADA
    assert scene.meta.sent[4]["text"]["body"] == "z" * limit  # too long to stand above buttons
    assert scene.meta.sent[5]["id"] == last


def test_files_both_ways(scene: Scene) -> None:
    data = bytes(range(256)) * 300
    with scene.listening() as running:
        scene.meta.send_file(ADA, "notes.pdf", "application/pdf", data, "look")
        picture = scene.meta.keep("", "image/jpeg", data)
        image = {"id": picture, "mime_type": "image/jpeg", "sha256": "x"}
        scene.meta.tell(ADA, "image", {"image": image})
        first, second = scene.inlet.texts(2)
        assert (first.text, first.files[0].name, first.files[0].media_type) == (
            "look",
            "notes.pdf",
            "application/pdf",
        )
        assert (second.text, second.files[0].name) == ("", "image.jpg")
        assert running.do(running.connector.fetch(first.files[0], len(data))) == data
        refused = failing(lambda: running.do(running.connector.fetch(first.files[0], len(data) - 1)))
        assert refused.kind is FailureKind.REFUSED
        for name, media_type in (
            ("a.png", "image/png"),
            ("b.pdf", "application/pdf"),
            ("c ✓.py", "text/x-python"),
            ("d.json", "application/json"),
        ):
            file = OutboundFile(name=name, media_type=media_type, data=data)
            running.send(text_to(ADA, "", files=(file,)))
        odd = OutboundFile(name="e.zip", media_type="application/zip", data=data)
        refused = failing(lambda: running.send(text_to(ADA, "", files=(odd,))))
    assert refused.kind is FailureKind.REFUSED
    assert [one["type"] for one in scene.meta.sent] == ["image", "document", "document", "document"]
    assert scene.meta.sent[2]["document"]["filename"] == "c ✓.py"
    assert scene.meta.media[scene.meta.sent[2]["document"]["id"]][2] == data


@pytest.mark.parametrize("reference", ["404", "../me", "", "a/b"])
def test_a_file_that_does_not_exist(scene: Scene, reference: str) -> None:
    with scene.running(receiving=False) as running:
        file = RemoteFile(reference=reference, name="x")
        assert failing(lambda: running.do(running.connector.fetch(file, 10))).kind is FailureKind.REFUSED


def test_typing_answers_the_last_message(scene: Scene) -> None:
    with scene.listening() as running:
        running.do(running.connector.show_typing(ChatPlace(chat_id=ADA)))
        scene.meta.say(ADA, "one")
        last = scene.meta.say(ADA, "two")
        scene.inlet.texts(2)
        running.do(running.connector.show_typing(ChatPlace(chat_id=ADA)))
    assert scene.meta.typing == [last]


def test_a_message_cannot_be_changed(scene: Scene) -> None:
    with scene.running(receiving=False) as running:
        failure = failing(lambda: running.do(running.connector.edit("wamid.1", text_to(ADA))))
    assert failure.kind is FailureKind.REFUSED


def _error(status: int, code: int, **headers: str) -> Response:
    return respond({"error": {"message": f"(#{code}) EAAsecret", "code": code}}, status, **headers)


_PROBLEMS = [
    (_error(400, 131047), FailureKind.REFUSED, None, False),
    (_error(400, 131026), FailureKind.REFUSED, None, False),
    (_error(400, 100), FailureKind.REFUSED, None, False),
    (_error(400, 130429, retry_after="3"), FailureKind.RETRY, None, False),
    (_error(429, 130429, retry_after="3"), FailureKind.RETRY, 3.0, False),
    (_error(400, 131056), FailureKind.RETRY, 6.0, False),
    (_error(500, 131000), FailureKind.RETRY, None, True),
    (_error(500, 424242), FailureKind.RETRY, None, True),
    (_error(401, 190), FailureKind.CREDENTIALS, None, False),
    (_error(403, 200), FailureKind.CREDENTIALS, None, False),
    (_error(403, 131031), FailureKind.CREDENTIALS, None, False),
    (Response(502, b"<html>bad gateway</html>"), FailureKind.RETRY, None, True),
    (Response(200, b"not JSON"), FailureKind.RETRY, None, True),
    (respond({"messages": []}), FailureKind.RETRY, None, True),
    (Response(200, b'{"messages": [{"id": "wam', cut=True), FailureKind.RETRY, None, True),
]


@pytest.mark.parametrize(("answer", "kind", "wait", "uncertain"), _PROBLEMS)
def test_what_goes_wrong_is_of_one_of_three_kinds(
    scene: Scene, answer: Response, kind: FailureKind, wait: float | None, uncertain: bool
) -> None:
    scene.meta.answer = lambda _: answer
    with scene.running(receiving=False) as running:
        failure = failing(lambda: running.send(text_to(ADA)))
    assert (failure.kind, failure.retry_after, failure.uncertain) == (kind, wait, uncertain)
    assert TOKEN not in failure.reason


def test_the_window_is_told_honestly(scene: Scene) -> None:
    scene.meta.answer = lambda _: _error(400, 131047)
    with scene.running(receiving=False) as running:
        assert running.connector.capabilities.window == 24 * 3600
        failure = failing(lambda: running.send(text_to(ADA)))
    assert "more than 24 hours have passed since this person last wrote" in failure.reason


def test_an_answer_that_does_not_come(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    from scout.connectors import calls

    monkeypatch.setattr(calls.PlatformCalls.call, "__kwdefaults__", {"patience": 0.3})
    release = asyncio.Event()
    handle = scene.meta.handle

    async def wait(request: Any) -> Response:
        await release.wait()
        return await handle(request)

    monkeypatch.setattr(scene.meta, "handle", wait)
    with scene.running(receiving=False) as running:
        failure = failing(lambda: running.send(text_to(ADA)))
    scene.meta.server.call(release.set)
    assert (failure.kind, failure.uncertain) == (FailureKind.RETRY, True)
    assert "did not answer within 0.3 s" in failure.reason


def test_a_connection_that_comes_as_the_webhook_stops_is_closed() -> None:
    """Its task is cancelled before it has begun."""

    async def answer(_: listener.HookRequest) -> listener.HookResponse:
        return listener.HookResponse(200)

    async def scene() -> None:
        webhook = listener.WebhookListener(listener.ListenAddress(host="", port=0, path="/"), answer)

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            webhook._accept(reader, writer)
            for task in webhook._open:
                task.cancel()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()

    asyncio.run(scene())
