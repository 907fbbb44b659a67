from typing import Any

import pytest

from scout.api.guard import Guard, read_headers
from scout.base.refusal import BadRequest, Refused
from scout.model.problems.request import Forbidden

TCP = ("127.0.0.1", 7432)
UNIX = ("/tmp/scout.sock", None)


def check(headers: dict[str, str], server: tuple[str, int | None] = TCP, hosts: tuple[str, ...] = ()) -> None:
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope: dict[str, Any] = {"headers": pairs, "server": server}
    Guard(hosts).check(scope, read_headers(scope))


@pytest.mark.parametrize(
    "host", ["127.0.0.1:7432", "localhost:7432", "localhost", "LOCALHOST:1", "[::1]:7432", "[::1]"]
)
def test_this_machine_is_reached_by_its_own_names(host: str) -> None:
    check({"host": host})


@pytest.mark.rows("R7-4")
@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:7432",
        "127.0.0.1.evil.example",
        "127.0.0.1:7432.evil.example",
        "localhost:x",
        "me@localhost",
        "localhost#x",
        "localhost@evil.example",
        "evil/localhost",
        "[::1",
        "\xff",
        "192.168.0.1",
    ],
)
def test_another_name_for_this_machine_is_refused(host: str) -> None:
    with pytest.raises(Refused) as refused:
        check({"host": host})
    assert isinstance(refused.value.diagnostic, Forbidden)


def test_no_host_is_refused_on_the_port_and_fine_on_the_socket() -> None:
    with pytest.raises(Refused):
        check({})
    check({}, UNIX)
    check({"host": "anything"}, UNIX)


def test_a_configured_host_is_one_of_our_names() -> None:
    check({"host": "box.lan:7432"}, hosts=("Box.lan",))


@pytest.mark.parametrize("origin", ["http://127.0.0.1:7432", "http://localhost:7432"])
def test_our_own_pages_may_call(origin: str) -> None:
    check({"host": "127.0.0.1:7432", "origin": origin, "sec-fetch-site": "same-origin"})


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://127.0.0.1:7432",
        "http://127.0.0.1:8080",
        "http://localhost",
        "null",
        "",
        "http://127.0.0.1:7432.evil.example",
        "http://127.0.0.1:x",
        "\xff",
    ],
)
def test_other_pages_may_not(origin: str) -> None:
    with pytest.raises(Refused) as refused:
        check({"host": "127.0.0.1:7432", "origin": origin})
    assert isinstance(refused.value.diagnostic, Forbidden)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_browser_that_says_another_site_calls_is_believed(site: str) -> None:
    with pytest.raises(Refused):
        check({"host": "127.0.0.1:7432", "sec-fetch-site": site})


def test_over_the_socket_an_origin_must_be_the_host() -> None:
    check({"host": "scout", "origin": "http://scout"}, UNIX)
    with pytest.raises(Refused):
        check({"host": "scout", "origin": "http://evil.example"}, UNIX)


def test_what_was_let_through_is_not_let_through_elsewhere() -> None:
    guard = Guard()
    headers = {b"host": b"anything"}
    guard.check({"server": UNIX}, headers)
    with pytest.raises(Refused):
        guard.check({"server": TCP}, headers)


def test_a_header_that_decides_is_given_once() -> None:
    twice = [(b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")]
    with pytest.raises(Refused) as refused:
        read_headers({"headers": twice})
    assert isinstance(refused.value.diagnostic, BadRequest)
    assert read_headers({"headers": [(b"accept", b"a"), (b"accept", b"b")]}) == {b"accept": b"b"}
