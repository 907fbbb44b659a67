"""HTTP calls to a platform: bounded in time and size, and without secrets in what they report."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from scout.connectors.calls import Answer, PlatformCalls, explain_status, limit_wait
from scout.connectors.setup_values import SetupValues
from scout.connectors.wire import WireRecord
from scout.ports.connector import ConnectorError, ConnectorSetup, FailureKind, SetupField
from tests.connectors.loopback import Loopback, Receive, Request, Response, Send, respond
from tests.connectors.running import failing

SECRET = "hush-hush"


class Named(WireRecord):
    name: str


class Platform:
    """Answers with what it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.response = respond({"name": "x", "unknown": 1})
        self.asked: list[Request] = []
        self.waits = False
        self.server = Loopback(self)

    async def handle(self, request: Request) -> Response:
        self.asked.append(request)
        if self.waits:
            await asyncio.sleep(3600)  # until the connection is given up
        return self.response

    async def handle_socket(self, path: str, query: str, receive: Receive, send: Send) -> None:
        raise AssertionError

    def call(self, path: str = "me", **options: Any) -> Named:
        async def work() -> Named:
            calls = PlatformCalls("example", f"{self.server.url}/base/", secrets=(SECRET,))
            try:
                return await calls.call("GET", path, Named, **options)
            finally:
                await calls.close()

        return asyncio.run(work())

    def download(self, limit: int) -> bytes:
        async def work() -> bytes:
            calls = PlatformCalls("example", self.server.url, secrets=(SECRET,))
            try:
                return (await calls.download(f"{self.server.url}/file", limit)).body
            finally:
                await calls.close()

        return asyncio.run(work())


@pytest.fixture
def platform() -> Iterator[Platform]:
    made = Platform()
    made.server.start()
    yield made
    made.server.close()


def test_a_call_is_decoded_and_says_who_calls(platform: Platform) -> None:
    assert platform.call() == Named(name="x")
    (asked,) = platform.asked
    assert asked.path == "/base/me"
    assert asked.headers["user-agent"] == "scout"
    assert asked.headers["accept-encoding"] == "identity"


def test_a_large_answer_is_decoded_in_a_thread(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    from scout.connectors import calls

    threads = list[str]()
    decode = calls.decode_body

    def noted(body: bytes, kind: Any) -> Any:
        threads.append(threading.current_thread().name)
        return decode(body, kind)

    monkeypatch.setattr(calls, "decode_body", noted)
    platform.response = respond({"name": "x" * 100_000})
    assert len(platform.call().name) == 100_000
    assert threads != [threading.current_thread().name]


def test_a_secret_is_never_in_a_reason(platform: Platform) -> None:
    platform.response = Response(400, f"bad token {SECRET}\n{SECRET}".encode())
    failure = failing(platform.call)
    assert failure.reason == "example: answered 400 bad token *** ***"
    platform.response = respond({"name": 7, SECRET: SECRET})
    assert SECRET not in failing(platform.call).reason


def test_a_redirect_is_not_followed(platform: Platform) -> None:
    platform.response = Response(307, b"", {"location": f"{platform.server.url}/elsewhere"})
    assert failing(platform.call).kind is FailureKind.REFUSED
    assert len(platform.asked) == 1


def test_a_call_has_its_time(platform: Platform) -> None:
    platform.waits = True
    failure = failing(lambda: platform.call(patience=0.2))
    assert (failure.kind, failure.uncertain) == (FailureKind.RETRY, True)


def test_a_request_that_cannot_be_sent(platform: Platform) -> None:
    failure = failing(lambda: platform.call(json={"text": "\ud800"}))
    assert (failure.kind, failure.uncertain) == (FailureKind.REFUSED, False)
    for url in ("http://127.0.0.1:9/", "http://[", "gopher://127.0.0.1/x"):
        failure = failing(lambda url=url: platform.call(url))
        assert (failure.kind, failure.uncertain) == (FailureKind.RETRY, False)


def test_a_file_has_its_limit(platform: Platform) -> None:
    platform.response = Response(200, bytes(1000))
    assert platform.download(1000) == bytes(1000)
    failure = failing(lambda: platform.download(999))
    assert (failure.kind, failure.reason) == (
        FailureKind.REFUSED,
        "example: the file has more than 999 bytes",
    )
    platform.response = Response(404, b"gone")
    assert failing(lambda: platform.download(10)).kind is FailureKind.REFUSED


@pytest.mark.parametrize(
    ("status", "headers", "kind", "wait", "uncertain"),
    [
        (400, {}, FailureKind.REFUSED, None, False),
        (401, {}, FailureKind.CREDENTIALS, None, False),
        (403, {}, FailureKind.REFUSED, None, False),
        (408, {}, FailureKind.RETRY, None, False),
        (429, {"retry-after": "12"}, FailureKind.RETRY, 12.0, False),
        (429, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, FailureKind.RETRY, None, False),
        (500, {}, FailureKind.RETRY, None, True),
        (503, {"retry-after": "2"}, FailureKind.RETRY, 2.0, False),
    ],
)
def test_what_a_status_means(
    status: int, headers: dict[str, str], kind: FailureKind, wait: float | None, uncertain: bool
) -> None:
    failure = explain_status(Answer(status, headers, b""))
    assert isinstance(failure, ConnectorError)
    assert (failure.kind, failure.retry_after, failure.uncertain) == (kind, wait, uncertain)
    assert explain_status(Answer(204, {}, b"")) is None


@pytest.mark.parametrize(
    ("given", "wait"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("-3", 0.0),
        ("1e9", 86_400.0),
        ("inf", 86_400.0),
        (2, 2.0),
    ],
)
def test_a_wait_is_bounded(given: str | float | None, wait: float | None) -> None:
    assert limit_wait(given) == wait


FIELDS = (
    SetupField(name="url", question="?", default="https://example.org/"),
    SetupField(name="token", question="?", secret=True),
    SetupField(name="port", question="?"),
)


def values(**given: str) -> SetupValues:
    return SetupValues(ConnectorSetup(connector="example", values=given), FIELDS)


def test_values_of_a_set_up() -> None:
    assert values().get_url("url") == "https://example.org"
    assert values(token="  abc ").get_token("token") == "abc"
    assert values(port="80").get_number("port", 1, 100) == 80


@pytest.mark.parametrize(
    "url",
    [
        "example.org",
        "ftp://example.org",
        "http://",
        "http://a:0",
        "http://a:x",
        "http://é",
        "https://u:p@a",
        "http://a?b=c",
    ],
)
def test_a_url_that_is_none(url: str) -> None:
    assert "'url' is not an http or https URL" in failing(lambda: values(url=url).get_url("url")).reason


@pytest.mark.parametrize("port", ["", "x", "-1", "0", "101", "１"])
def test_a_number_that_is_none(port: str) -> None:
    assert failing(lambda: values(port=port).get_number("port", 1, 100)).kind is FailureKind.CREDENTIALS
