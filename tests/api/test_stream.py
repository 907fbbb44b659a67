"""The event stream of a real daemon."""

from pathlib import Path

import pytest

from tests.api.streams import Stream
from tests.daemon.daemons import Daemon, daemon, eventually


def post(live: Daemon, to: str, body: str) -> str:
    reply = live.call("POST", "/v1/messages", {"to": to, "body": body})
    assert reply.status == 201, reply.body
    return reply.json["messageId"]


@pytest.mark.rows("R0-48")
def test_an_event_is_sent_with_its_number_and_type(live: Daemon) -> None:
    live.register("streamed")
    with Stream(live, "?family=collab.message").begun() as stream:
        post(live, "streamed", "hello")
        sent = stream.next()
    assert sent.event == sent.data["type"]
    assert sent.event.startswith("collab.message")
    assert sent.id == sent.data["seq"]


def test_a_stream_is_not_kept_back_on_its_way(live: Daemon) -> None:
    with Stream(live) as stream:
        assert "text/event-stream" in stream.head
        assert "cache-control: no-store" in stream.head
        assert "x-accel-buffering: no" in stream.head


@pytest.mark.rows("R4.2-3")
def test_a_stream_goes_on_after_the_last_event_seen(live: Daemon) -> None:
    live.register("resumed")
    query = "?family=collab.message"
    with Stream(live, query).begun() as stream:
        post(live, "resumed", "one")
        seen = stream.next().id
    assert seen is not None
    missed = [post(live, "resumed", text) for text in ("two", "three")]
    with Stream(live, f"{query}&after=0", last=seen) as stream:
        found = [stream.next() for _ in missed]
    assert all(sent.id is not None and sent.id > seen for sent in found)
    assert [missed_id in str(sent.data) for missed_id, sent in zip(missed, found, strict=True)] == [
        True,
        True,
    ]


def test_a_stream_shows_what_its_credential_may_read(live: Daemon) -> None:
    one = live.register("curious")["token"]
    live.register("private")
    with Stream(live, token=one).begun() as stream:
        post(live, "private", "not for the curious")
        post(live, "curious", "for the curious")
        found = stream.next()
        while "for the curious" not in str(found.data):
            found = stream.next()
    assert "not for the curious" not in str(found.data)


def test_a_bad_stream_is_refused_as_any_request(live: Daemon) -> None:
    assert live.call("GET", "/v1/events?after=x").json["field"] == "after"
    assert live.call("GET", "/v1/events?flavour=x").status == 400
    assert live.call("GET", "/v1/events", headers={"Last-Event-ID": "x"}).status == 400
    assert live.call("GET", "/v1/events", token=None).status == 401


def test_a_reader_that_goes_away_is_let_go(live: Daemon) -> None:
    def streams() -> int:
        lines = live.call("GET", "/metrics").body.decode().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("scout_http_streams "))

    before = streams()
    with Stream(live).begun():
        assert streams() == before + 1
    assert eventually(lambda: streams() == before)


@pytest.mark.rows("R0-49")
@pytest.mark.slow
def test_a_silent_stream_still_says_that_it_is_there(tmp_path: Path) -> None:
    with daemon(tmp_path / "home", SCOUT_PERIODS_STREAM_COMMENT="0.2") as one, Stream(one).begun() as stream:
        assert [stream.comment() for _ in range(3)] == ["still here"] * 3


@pytest.mark.rows("R0-50")
@pytest.mark.slow
def test_a_slow_reader_is_dropped_with_a_reason_and_can_resume(tmp_path: Path) -> None:
    with daemon(tmp_path / "home", SCOUT_LIMITS_STREAM_BUFFER="20") as one:
        one.register("flooded")
        with Stream(one, "?family=collab.message").begun() as stream:
            sent = [post(one, "flooded", f"{number} " + "x" * 50_000) for number in range(150)]
            seen = [stream.next()]
            while seen[-1].event != "dropped":
                seen.append(stream.next())
            reason = seen.pop().data
            with pytest.raises(EOFError):
                stream.next()
        assert reason["code"] == "rate_limited"
        assert 0 < len(seen) < len(sent)
        with Stream(one, "?family=collab.message", last=seen[-1].id) as stream:
            rest = [stream.next() for _ in range(len(sent) - len(seen))]
    assert [identity in str(event.data) for identity, event in zip(sent, [*seen, *rest], strict=True)] == [
        True
    ] * len(sent)


@pytest.mark.slow
def test_a_stream_is_told_when_the_daemon_stops(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as one:
        stream = Stream(one).begun()
    with stream:
        last = stream.next()
        while last.event != "dropped":
            last = stream.next()
    assert last.data["code"] == "busy"


@pytest.mark.rows("R7-21")
@pytest.mark.slow
def test_a_client_may_open_only_so_many_streams(tmp_path: Path) -> None:
    with daemon(tmp_path / "home", SCOUT_LIMITS_STREAMS="1") as one, Stream(one).begun():
        reply = one.call("GET", "/v1/events")
        assert (reply.status, reply.json["code"]) == (429, "rate_limited")
