"""The small HTTP of the command line, against a real socket that behaves as told."""

from pathlib import Path

import pytest

from scout.client.http import DaemonAddress, HttpResponse, Lost, exchange, open_stream, quote
from scout.client.sse import SseEvent
from tests.cli.sockets import listening


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path that is short enough for a socket."""
    return tmp_path_factory.mktemp("s") / "s"


def test_a_request_and_its_answer(short: Path) -> None:
    with listening(
        short, b"HTTP/1.1 201 Created\r\nScout-Version: 9\r\nContent-Length: 2\r\n\r\n{}more"
    ) as got:
        answer = exchange(
            DaemonAddress(socket=str(short)), "POST", "/v1/x", {"Scout-As": "a"}, b'{"a":1}', timeout=30
        )
    assert (answer.status, answer.headers["scout-version"], answer.body) == (201, "9", b"{}")
    assert got[0].startswith(
        b"POST /v1/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nScout-As: a\r\n"
    )
    assert got[0].endswith(b'Content-Length: 7\r\n\r\n{"a":1}')


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
            b"abcde",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", b"to the end"),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", b""),
    ],
)
def test_every_way_to_end_a_body(short: Path, sent: bytes, body: bytes) -> None:
    with listening(short, sent):
        assert exchange(DaemonAddress(socket=str(short)), "GET", "/", {}, timeout=30).body == body


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ],
)
def test_half_an_answer_is_none(short: Path, sent: bytes) -> None:
    with listening(short, sent), pytest.raises(Lost):
        exchange(DaemonAddress(socket=str(short)), "GET", "/", {}, timeout=30)


def test_a_stream_gives_its_events_as_they_come(short: Path) -> None:
    sent = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"8\r\nid: 1\nda\r\n9\r\nta: {}\r\n\n\r\n0\r\n\r\n"
    )
    with listening(short, sent):
        head, *events = open_stream(DaemonAddress(socket=str(short)), "/", {}, 5)
    assert isinstance(head, HttpResponse)
    assert [(one.id, one.data) for one in events if isinstance(one, SseEvent)] == [("1", "{}")]


def test_a_refused_stream_has_its_whole_answer(short: Path) -> None:
    with listening(short, b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\n{}"):
        (head,) = open_stream(DaemonAddress(socket=str(short)), "/", {}, 5)
    assert isinstance(head, HttpResponse)
    assert (head.status, head.body) == (403, b"{}")


def test_nobody_listens(short: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        exchange(DaemonAddress(socket=str(short)), "GET", "/", {}, timeout=30)


def test_everything_that_could_mean_something_is_encoded() -> None:
    assert quote("/u1/ä b?&%\r\n~") == "%2Fu1%2F%C3%A4%20b%3F%26%25%0D%0A~"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://127.0.0.1:7432", "http://127.0.0.1:7432"),
        ("https://example:1/x", "https://example:1"),
        ("http://[::1]:5", "http://::1:5"),
    ],
)
def test_a_url_is_a_place(url: str, name: str) -> None:
    assert DaemonAddress.of_url(url).name == name


@pytest.mark.parametrize("url", ["", "7432", "ftp://a:1", "http://a", "http://:1", "http://a:b"])
def test_what_is_no_url_is_said(url: str) -> None:
    with pytest.raises(ValueError, match="http://HOST:PORT"):
        DaemonAddress.of_url(url)
