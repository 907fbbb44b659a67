"""Calls to a daemon that misbehaves: asked again where that is safe, and said where it is over."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from scout import __version__
from scout.base.refusal import Family
from scout.cli.connection.call import DaemonCall
from scout.cli.connection.refusal import OPEN, RefusalError
from scout.cli.main import scout
from tests.cli.sockets import answer, events, listening


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A socket that the command line takes for the daemon's."""
    path = tmp_path_factory.mktemp("s") / "s"
    monkeypatch.setenv("SCOUT_SOCKET", str(path))
    monkeypatch.setenv("SCOUT_TOKEN", "sct_test")
    return path


def run(*words: str) -> Result:
    return CliRunner().invoke(scout, words)


def header(request: bytes, name: bytes) -> bytes:
    (value,) = [
        line.partition(b": ")[2] for line in request.split(b"\r\n") if line.lower().startswith(name.lower())
    ]
    return value


RECEIPT = json.dumps(
    {"conversationId": "c", "messageId": "m", "deliveries": [], "notes": ["it sleeps"]}
).encode()


def test_a_broken_write_is_made_again_under_one_key(path: Path) -> None:
    with listening(path, b"", answer(RECEIPT)[:-4], answer(RECEIPT, 201)) as got:
        result = run("send", "@arc", "hi")
    assert (result.exit_code, result.stdout) == (0, "sent m to @arc (stored)\n")
    assert result.stderr == "note: it sleeps\n"
    assert len({header(request, b"Idempotency-Key") for request in got}) == 1
    assert header(got[0], b"Authorization") == b"Bearer sct_test"
    assert header(got[0], b"Scout-Directory")


@pytest.mark.slow
def test_a_daemon_that_only_breaks_is_said(path: Path) -> None:
    with listening(path, b"", b"", b"", b""):
        result = run("send", "@arc", "hi")
    assert result.exit_code == Family.LIMIT.exit_code
    assert result.stderr.splitlines()[-1] == "try: scout doctor"


def test_a_key_of_ones_own_is_used(path: Path) -> None:
    with listening(path, answer(RECEIPT, 201)) as got:
        run("send", "@arc", "hi", "--idempotency-key", "my key")
    assert header(got[0], b"Idempotency-Key") == b"my%20key"


def test_an_ask_made_inside_a_flight_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCOUT_FLIGHT", "flt_9")
    receipt = {"flightId": "flt_10", "state": "queued", "phase": "accepted", "target": "agt_1"}
    with listening(path, answer(json.dumps(receipt).encode(), 201)) as got:
        result = run("ask", "@arc", "hi", "--no-wait", "--as", "@b c")
    assert result.exit_code == 0
    assert json.loads(got[0].partition(b"\r\n\r\n")[2]) == {"to": "@arc", "body": "hi", "within": "flt_9"}
    assert header(got[0], b"Scout-As") == b"%40b%20c"


HELD = {"flightId": "flt_1", "state": "queued", "phase": "held", "target": "agt_1", "reason": "it is manual"}


def test_what_cannot_begin_yet_is_not_waited_for(path: Path) -> None:
    flight = {**FLIGHT, **HELD}
    with listening(path, answer(json.dumps(HELD).encode(), 201), answer(json.dumps(flight).encode())) as got:
        result = run("ask", "@arc", "hi")
    assert result.exit_code == OPEN
    assert result.stderr.splitlines() == [
        "still queued (held · it is manual); the work continues",
        "try: scout wait flt_1",
    ]
    assert got[1].startswith(b"GET /v1/flights/flt_1?wait=0 HTTP")


def test_what_is_queued_for_a_day_is_not_waited_for(path: Path) -> None:
    with listening(path, answer(json.dumps(HELD).encode(), 201)):
        result = run("ask", "@arc", "hi", "--if-unreachable", "queue")
    assert (result.exit_code, result.stdout) == (0, "asked agt_1: flt_1 (queued, held)\n")
    assert result.stderr.splitlines() == ["because: it is manual", "the answer: scout wait flt_1"]


@pytest.mark.rows("R0-38")
def test_another_version_is_said_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DaemonCall, "_has_checked_version", False)
    page = answer(b'{"items": [], "next": null}', 200, b"Scout-Version: 0.0.9")
    with listening(path, page, page):
        first, second = run("who"), run("who")
    assert first.stderr == (
        f"scout: the daemon is version 0.0.9, this command is {__version__}; try: scout restart\n"
    )
    assert second.stderr == ""


def test_a_refusal_is_shown_with_what_this_version_can_do(path: Path) -> None:
    told: dict[str, Any] = {
        "code": "ambiguous_target",
        "message": "which?",
        "candidates": [{"address": "@a.x"}, {"address": "@a.y"}],
        "remedies": [
            {"operation": "send", "parameters": {}, "command": "scout send @a.x hi"},
            {"operation": "moon.status", "parameters": {}, "command": "scout moon status"},
        ],
    }
    with listening(path, *[answer(json.dumps(told).encode(), 409)] * 2):
        result, data = run("send", "@a", "hi"), run("send", "@a", "hi", "--json")
    assert result.exit_code == data.exit_code == Family.AMBIGUOUS.exit_code
    assert result.stderr.splitlines() == [
        "ambiguous_target: which?",
        "  candidates: @a.x, @a.y",
        "try: scout send @a.x hi",
    ]
    assert json.loads(data.stdout) == {"error": told}


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}"])
def test_an_answer_without_a_reason_is_still_an_answer(path: Path, body: bytes) -> None:
    with listening(path, answer(body, 502)), pytest.raises(RefusalError, match="answered 502"):
        DaemonCall().call("GET /v1/status", {})


def test_a_stream_is_taken_up_where_it_broke(path: Path) -> None:
    first = events(b'id: 7\nevent: x\ndata: {"seq": 7, "type": "x"}\n\n', b": still here\n\n")
    dropped = events(b'event: dropped\ndata: {"message": "too slow"}\n\n')
    second = events(b'id: 8\nevent: x\ndata: {"seq": 8,\ndata: "type": "x"}\n\n')
    with listening(path, first, dropped, second) as got:
        result = run("watch", "--json", "--count", "2", "--family", "x y")
    assert [json.loads(line)["seq"] for line in result.stdout.splitlines()] == [7, 8]
    assert "too slow" in result.stderr
    assert b"Last-Event-ID" not in got[0]
    assert header(got[1], b"Last-Event-ID") == header(got[2], b"Last-Event-ID") == b"7"
    assert got[0].startswith(b"GET /v1/events?family=x%20y HTTP/1.1\r\n")


def test_a_refused_stream_is_said(path: Path) -> None:
    told = json.dumps({"code": "forbidden", "message": "no", "remedies": []}).encode()
    with listening(path, answer(told, 403)):
        result = run("watch")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (6, "try: scout explain forbidden")


FLIGHT = {"id": "flt_1", "state": "running", "phase": "working", "reason": "busy", "revision": 2}


@pytest.mark.parametrize(
    ("flight", "code", "stdout", "last"),
    [
        ({"state": "completed", "output": "42\n"}, 0, "42\n", ""),
        ({"state": "cancelled", "reason": "enough"}, 7, "", "try: scout flight retry flt_1"),
        ({}, 10, "", "try: scout wait flt_1"),
        (
            {"state": "failed", "error": {"code": "wake_failed", "message": "no"}},
            5,
            "",
            "try: scout flight retry flt_1",
        ),
        (
            {"state": "failed", "error": {"code": "odd", "message": "no"}},
            9,
            "",
            "try: scout flight retry flt_1",
        ),
    ],
)
def test_how_a_flight_ends_is_how_the_wait_ends(
    path: Path, flight: dict[str, object], code: int, stdout: str, last: str
) -> None:
    with listening(path, answer(json.dumps({**FLIGHT, **flight}).encode())):
        result = run("wait", "flt_1", "--timeout", "0")
    assert (result.exit_code, result.stdout) == (code, stdout)
    assert (result.stderr.splitlines() or [""])[-1] == last
