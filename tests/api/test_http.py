"""The HTTP surface of a real daemon: who is let in, what is refused, and that nothing breaks it."""

import contextlib
import json
import re
import socket
from pathlib import Path

import pytest

from scout.policy.limits import Periods
from tests.daemon.daemons import Daemon, Reply, daemon, eventually

PROBLEM = "application/problem+json"


def head(line: str, *headers: str) -> bytes:
    return "\r\n".join((line, "Host: localhost", *headers, "Connection: close", "", "")).encode("latin-1")


@pytest.mark.rows("R4.2-6")
def test_health_needs_no_credential(live: Daemon) -> None:
    reply = live.call("GET", "/health", token=None)
    assert (reply.status, reply.json["status"]) == (200, "ok")
    assert set(reply.headers) == {"content-type", "content-length"}  # not which server it is, not the time


def test_a_result_names_the_version_of_the_daemon(live: Daemon) -> None:
    version = live.call("GET", "/health", token=None).json["version"]
    assert live.call("GET", "/v1/whoami").headers["scout-version"] == version
    assert "scout-version" not in live.call("GET", "/v1/whoami", token="sct_nothing").headers


@pytest.mark.rows("R4.2-6")
def test_metrics_are_numbers_without_names(live: Daemon) -> None:
    live.register("metered")
    reply = live.call("GET", "/metrics", token=None)
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = reply.body.decode().splitlines()
    assert any(line.startswith("scout_http_requests_total ") for line in lines)
    assert "metered" not in reply.body.decode()
    for line in lines:
        assert line.startswith("# TYPE scout_") or float(line.split(" ")[1]) >= 0


def test_the_page_of_operations_stands_alone(live: Daemon) -> None:
    reply = live.call("GET", "/docs", token=None)
    text = reply.body.decode()
    assert "/v1/messages" in text
    assert "<script" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert reply.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.rows("R0-32")
def test_the_text_of_the_token_file_is_the_operators_credential(live: Daemon) -> None:
    reply = live.call("GET", "/v1/whoami")
    assert (reply.status, reply.json["kind"]) == (200, "operator")
    assert (live.home / "token").read_text().strip() == live.token


@pytest.mark.rows("R3.5-4")
@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic dTpw",
        "bearer sct_x",
        "Bearer \xff",
        "Bearer " + "a" * 9000,
    ],
)
def test_without_a_credential_nothing_is_told(live: Daemon, authorization: str) -> None:
    reply = live.call("GET", "/v1/agents", headers={"Authorization": authorization}, token=None)
    assert (reply.status, reply.json["code"]) == (401, "unauthenticated")
    assert reply.headers["content-type"] == PROBLEM
    assert reply.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.rows("R7-1", "R7-2")
def test_an_agents_token_is_that_agent_and_may_not_act_as_another(live: Daemon) -> None:
    token = live.register("bound")["token"]
    live.register("unbound")
    me = live.call("GET", "/v1/whoami", token=token).json
    assert "bound" in me["canonical"]
    reply = live.call("GET", "/v1/whoami", headers={"Scout-As": "unbound"}, token=token)
    assert (reply.status, reply.json["code"]) == (403, "forbidden")


def test_the_operator_may_act_as_an_agent(live: Daemon) -> None:
    live.register("acted")
    reply = live.call("GET", "/v1/whoami", headers={"Scout-As": "%61cted"})
    assert reply.status == 200
    assert "acted" in reply.json["canonical"]


@pytest.mark.parametrize("header", ["Scout-As", "Scout-Directory"])
@pytest.mark.parametrize("value", ["", "%", "%ff", "a%00b", "a" * 5000])
def test_a_header_that_says_nothing_readable_is_refused(live: Daemon, header: str, value: str) -> None:
    _is_problem(live.call("GET", "/v1/whoami", headers={header: value}), 400, "bad_request")


@pytest.mark.rows("R7-4")
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_pages_of_others_and_names_of_others_are_refused(live: Daemon, headers: dict[str, str]) -> None:
    for path in ("/v1/whoami", "/health", "/metrics", "/docs"):
        reply = live.call("GET", path, headers=headers)
        assert (reply.status, reply.json["code"]) == (403, "forbidden"), path


def test_our_own_origin_is_let_in(live: Daemon) -> None:
    reply = live.call("GET", "/v1/whoami", headers={"Origin": live.running.url})
    assert reply.status == 200


@pytest.mark.rows("R0-27")
def test_the_socket_takes_any_host(live: Daemon) -> None:
    assert live.call("GET", "/v1/whoami", headers={"Host": "whatever"}, unix=True).status == 200


def _is_problem(reply: Reply, status: int, code: str) -> None:
    assert (reply.status, reply.headers["content-type"], reply.json["code"]) == (status, PROBLEM, code)


def test_requests_that_fit_nothing_are_refused_in_full(live: Daemon) -> None:
    _is_problem(live.call("GET", "/v1/nothing"), 404, "not_found")
    _is_problem(live.call("GET", "/"), 404, "not_found")
    wrong = live.call("PUT", "/v1/messages", {})
    _is_problem(wrong, 405, "bad_request")
    assert wrong.headers["allow"] == "GET, HEAD, POST"
    assert live.call("POST", "/health", {}).headers["allow"] == "GET, HEAD"
    text = live.call("POST", "/v1/messages", b"to=arc", {"Content-Type": "application/x-www-form-urlencoded"})
    _is_problem(text, 415, "bad_request")
    for method in ("TRACE", "OPTIONS", "BREW"):
        assert live.call(method, "/v1/messages").status in {400, 405}
    assert b" 400 " in live.raw(b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n")


def test_a_head_request_has_no_body(live: Daemon) -> None:
    reply = live.call("HEAD", "/v1/whoami")
    assert (reply.status, reply.body) == (200, b"")
    assert live.call("HEAD", "/v1/events").status == 405


@pytest.mark.rows("R7-21")
def test_a_body_that_is_too_large_is_refused_before_it_is_read(live: Daemon) -> None:
    declared = head(
        "POST /v1/messages HTTP/1.1", f"Authorization: Bearer {live.token}", "Content-Length: 2000000"
    )
    answer = live.raw(declared)
    assert b" 413 " in answer
    assert b"too_large" in answer


def test_an_endless_body_is_refused_on_the_way(live: Daemon) -> None:
    start = head(
        "POST /v1/messages HTTP/1.1", f"Authorization: Bearer {live.token}", "Transfer-Encoding: chunked"
    )
    chunk = b"10000\r\n" + b"a" * 65536 + b"\r\n"
    with socket.create_connection(("127.0.0.1", live.port), timeout=60) as client:
        client.sendall(start)
        with contextlib.suppress(OSError):  # it is closed while we are still sending
            for _ in range(40):
                client.sendall(chunk)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while more := client.recv(65536):
                answer += more
    assert not answer or b"too_large" in answer
    assert live.call("GET", "/health", token=None).status == 200


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/agents HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /v1/agents HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"GET /v1/agents HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-Y: " + b"z" * 100_000 + b"\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_and_the_daemon_lives_on(live: Daemon, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", live.port), timeout=60) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        try:
            answer = client.recv(65536)
        except ConnectionResetError:
            answer = b""  # it hung up before it had taken everything
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer
    assert b" 500 " not in answer
    assert live.call("GET", "/health", token=None).status == 200


def test_two_credentials_are_none(live: Daemon) -> None:
    line = f"Authorization: Bearer {live.token}"
    assert b" 400 " in live.raw(head("GET /v1/whoami HTTP/1.1", line, line))


def test_space_around_a_header_is_no_part_of_it(live: Daemon) -> None:
    padded = f"Authorization: \t Bearer {live.token} \t "
    assert live.raw(head("GET /v1/whoami HTTP/1.1", padded)).startswith(b"HTTP/1.1 200 ")


def test_pipelined_requests_are_answered_in_order(live: Daemon) -> None:
    ask = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = live.raw(ask * 2 + head("GET /v1/nothing HTTP/1.1"))
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"200", b"404"]


@pytest.mark.rows("R3.1-36", "R3.1-37")
def test_a_message_goes_in_and_comes_out(live: Daemon) -> None:
    live.register("reader")
    sent = live.call(
        "POST", "/v1/messages", {"to": "reader", "body": "hello"}, {"Idempotency-Key": "in-and-out"}
    )
    assert sent.status == 201
    again = live.call(
        "POST", "/v1/messages", {"to": "reader", "body": "hello"}, {"Idempotency-Key": "in-and-out"}
    )
    assert again.json["messageId"] == sent.json["messageId"]
    other = live.call(
        "POST", "/v1/messages", {"to": "reader", "body": "other"}, {"Idempotency-Key": "in-and-out"}
    )
    _is_problem(other, 409, "key_reused")
    message = live.call("GET", f"/v1/messages/{sent.json['messageId']}").json
    assert (message["body"], message["messageId"]) == ("hello", sent.json["messageId"])


@pytest.mark.rows("R3.5-10")
def test_an_unknown_target_is_a_problem_with_what_to_do(live: Daemon) -> None:
    live.register("teapot")
    reply = live.call("POST", "/v1/messages", {"to": "teapto", "body": "x"})
    _is_problem(reply, 404, "unknown_target")
    assert any("teapot" in candidate["address"] for candidate in reply.json["candidates"])


@pytest.mark.rows("R0-45", "R4.2-5")
@pytest.mark.slow
def test_a_page_has_fifty_items_and_never_more_than_two_hundred(live: Daemon) -> None:
    live.register("paging")
    for number in range(205):
        assert live.call("POST", "/v1/messages", {"to": "paging", "body": str(number)}).status == 201
    assert len(live.call("GET", "/v1/messages?to=paging").json["items"]) == 50
    most = live.call("GET", "/v1/messages?to=paging&limit=1000")
    assert most.status == 400 or len(most.json["items"]) == 200
    assert len(live.call("GET", "/v1/messages?to=paging&limit=200").json["items"]) == 200


@pytest.mark.rows("R0-44", "R4.2-5")
def test_a_list_is_a_page_with_an_opaque_cursor(live: Daemon) -> None:
    for number in range(3):
        live.register(f"paged{number}")
    first = live.call("GET", "/v1/agents?limit=2").json
    assert set(first) == {"items", "next"}
    assert len(first["items"]) == 2
    second = live.call("GET", f"/v1/agents?limit=2&cursor={first['next']}").json
    assert {item["id"] for item in first["items"]}.isdisjoint(item["id"] for item in second["items"])
    for limit in ("0", "-1"):
        assert live.call("GET", f"/v1/agents?limit={limit}").status == 400
    assert live.call("GET", "/v1/agents?cursor=nonsense").status == 400


@pytest.mark.rows("R0-47")
def test_a_wait_ends_with_the_state_as_it_is(live: Daemon) -> None:
    live.register("slowly", wakePolicy="manual")
    ask = live.call("POST", "/v1/asks", {"to": "slowly", "body": "x", "ifUnreachable": "queue"}).json
    reply = live.call("GET", f"/v1/flights/{ask['flightId']}?wait=0.2")
    assert (reply.status, reply.json["state"]) == (200, "queued")


@pytest.mark.rows("R0-47")
@pytest.mark.slow
def test_a_wait_is_never_longer_than_the_longest(tmp_path: Path) -> None:
    with daemon(tmp_path / "home", SCOUT_PERIODS_LONG_POLL="0.3") as one:
        token = one.register("patient")["token"]
        ask = one.call("POST", "/v1/asks", {"to": "patient", "body": "x", "ifUnreachable": "queue"}).json
        # Each of these would take longer than this client waits, if they took as long as they say.
        flight = one.call("GET", f"/v1/flights/{ask['flightId']}?wait=600")
        assert (flight.status, flight.json["state"]) == (200, "queued")
        one.call("POST", "/v1/inbox/claim", {}, token=token)
        claimed = one.call("POST", "/v1/inbox/claim", {"wait": 600}, token=token)
        assert (claimed.status, claimed.json["items"]) == (200, [])


def test_the_longest_wait_is_a_minute() -> None:
    assert Periods().long_poll == 60


def test_a_waiter_that_goes_away_is_forgotten(live: Daemon) -> None:
    token = live.register("waiter")["token"]
    body = b'{"wait": 50}'
    line = head(
        "POST /v1/inbox/claim HTTP/1.1", f"Authorization: Bearer {token}", f"Content-Length: {len(body)}"
    )
    with socket.create_connection(("127.0.0.1", live.port), timeout=60) as client:
        client.sendall(line + body)
    # Were it still waiting, it would take the lease of what comes now.
    live.call("POST", "/v1/messages", {"to": "waiter", "body": "for whoever is there"})
    claimed = live.call("POST", "/v1/inbox/claim", {"wait": 5}, token=token)
    assert [item["message"]["body"] for item in claimed.json["items"]] == ["for whoever is there"]


@pytest.mark.slow
def test_a_fault_is_logged_with_its_reference_and_without_secrets(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as one:
        (one.home / "blobs").chmod(0o700)
        for child in (one.home / "blobs").iterdir():
            child.unlink()
        (one.home / "blobs").rmdir()
        (one.home / "blobs").write_text("in the way")
        reply = one.call("POST", "/v1/attachments", {"name": "a", "data": "YQ=="})
        assert (reply.status, reply.headers["content-type"]) == (500, PROBLEM)
        assert reply.json["code"] == "internal"

        def logged() -> str:
            return (one.home / "logs" / "scout.log").read_text()

        assert eventually(lambda: reply.json["reference"] in logged())
        assert one.token not in logged()


def test_json_text_is_sent_as_it_is(live: Daemon) -> None:
    body = 'ünïcode \u2028 <b> \\u0000 "quotes" \U0001f600'
    live.register("texts")
    sent = live.call("POST", "/v1/messages", {"to": "texts", "body": body}).json
    reply = live.call("GET", f"/v1/messages/{sent['messageId']}")
    assert json.loads(reply.body)["body"] == body
