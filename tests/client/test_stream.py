"""The log is followed through lost connections: each event once, in order."""

import asyncio
import json
from pathlib import Path

import pytest

from scout import Scout
from scout.base.codec import encode
from scout.base.refusal import Refused
from scout.model.conversation import MessageKind
from scout.model.events.talk import MessagePosted, Posted
from scout.model.problems.request import Busy, Forbidden
from scout.protocol.log import Watch
from tests.cli.sockets import answer, events, listening
from tests.store.facts import NOW, SYSTEM


def frame(seq: int) -> bytes:
    posted = Posted(message_id="msg_1", text="hi", kind=MessageKind.CHAT)
    event = MessagePosted(id=f"evt_{seq}", seq=seq, time=NOW, source=SYSTEM, target=SYSTEM, payload=posted)
    return b"id: %d\ndata: %b\n\n" % (seq, encode(event))


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path_factory.mktemp("s") / "s"
    monkeypatch.setenv("SCOUT_SOCKET", str(path))
    monkeypatch.delenv("SCOUT_URL", raising=False)
    return path


async def follow(count: int) -> list[int]:
    async with Scout(token="t") as scout:
        seen: list[int] = []
        async for event in scout.watch(Watch(after=4)):
            seen.append(event.seq)
            if len(seen) == count:
                break
        return seen


def test_a_stream_is_taken_up_where_it_broke(path: Path) -> None:
    dropped = events(b'event: dropped\ndata: {"code": "busy", "reason": "slow", "message": "slow"}\n\n')
    with listening(path, events(frame(5), frame(6)), dropped, events(b": hello\n\n", frame(7))) as got:
        assert asyncio.run(follow(3)) == [5, 6, 7]
    asked = [
        line
        for request in got
        for line in request.split(b"\r\n")
        if line.lower().startswith(b"last-event-id")
    ]
    assert [line.partition(b": ")[2] for line in asked] == [b"4", b"6", b"6"]


def test_a_refused_stream_is_raised(path: Path) -> None:
    told = {"code": "forbidden", "action": "read", "subject": "the log", "message": "no"}
    with listening(path, answer(json.dumps(told).encode(), 403)), pytest.raises(Refused) as refused:
        asyncio.run(follow(1))
    assert isinstance(refused.value.diagnostic, Forbidden)


@pytest.mark.slow
def test_a_daemon_that_stays_away_is_said(path: Path) -> None:
    with pytest.raises(Refused) as refused:
        asyncio.run(follow(1))
    assert isinstance(refused.value.diagnostic, Busy)
