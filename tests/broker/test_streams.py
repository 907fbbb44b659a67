"""Following the log: filters, resuming without gap or repeat, who may read what, and slow readers."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from scout.broker.local import LocalScout
from scout.broker.transaction.transaction import Transaction
from scout.model.events.envelope import Event
from scout.model.events.talk import WorkItemCreated
from scout.model.work_item import WorkItem
from scout.policy.limits import Limits
from scout.protocol.access import RevokeToken
from scout.protocol.agents import ShowAgent
from scout.protocol.asks import MakeAsk
from scout.protocol.log import Watch
from scout.protocol.talk import Send
from tests.broker.rig import (
    Rig,
    as_test,
    event_name,
    expect_refusal,
    online_agent,
    read_log,
    run_scene,
    wait_for_end,
    wait_until,
)


async def first(seat: LocalScout, request: Watch, count: int) -> list[Event]:
    """The first so many facts of a stream."""
    found: list[Event] = []
    async with asyncio.timeout(20), aclosing(seat.watch(request)) as events:
        async for event in events:
            found.append(event)
            if len(found) == count:
                break
    return found


@as_test
async def test_a_stream_begins_now_unless_it_is_told_where(rig: Rig) -> None:
    await rig.register("arc")
    seat = await rig.scout()
    watching = asyncio.create_task(first(seat, Watch(family="collab.message"), 2))
    await wait_until(lambda: len(rig.broker.hub))
    for text in ("one", "two"):
        await rig.operator(Send(to="@arc", body=text))
    assert [one.payload.text for one in await watching] == ["one", "two"]
    assert len(rig.broker.hub) == 0
    everything = await read_log(rig)
    again = await first(seat, Watch(after=0), len(everything))
    assert [one.seq for one in again] == [one.seq for one in everything]
    assert (await expect_refusal(first(seat, Watch(after=-1), 1))).code == "bad_request"


@pytest.mark.rows("R0-48")
@as_test
async def test_filters(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    arc = await online_agent(rig, "arc")
    seat = await rig.scout()
    asked = await rig.operator(MakeAsk(to="@parrot", body="x", wait=20))
    sent = await rig.operator(Send(to="@arc", body="y"))
    events = await read_log(rig)

    async def by(count: int, **filters: str) -> list[Event]:
        return await first(seat, Watch(after=0, **filters), count)

    flights = [one for one in events if event_name(one).startswith("flight.")]
    assert await by(len(flights), family="collab.flight") == flights
    talk = await by(3, conversation=sent.conversation_id)
    assert all(sent.conversation_id in str(one) for one in talk)
    about = await by(4, agent="@parrot", family="collab.flight")
    assert [one.target.id for one in about] == [asked.flight_id] * 4
    path = (await rig.operator(ShowAgent(address="@parrot"))).path
    below = await by(3, subtree=str(path), family="collab.delivery")
    assert {one.payload.record.target for one in below} == {asked.target}
    assert [one.seq for one in events] == sorted(one.seq for one in events)
    assert arc is not None


@as_test
async def test_a_work_item_is_a_filter(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    operator = rig.broker.services.operator_agent

    def make(tx: Transaction) -> WorkItem:
        item = WorkItem(
            id=tx.mint("wrk"),
            created_at=tx.now,
            updated_at=tx.now,
            title="a thing",
            owner_id=operator,
            next_move_owner_id=operator,
            requester_id=operator,
        )
        return tx.record(WorkItemCreated, item, move="create")

    item = await rig.broker.as_system(make)
    await rig.operator(MakeAsk(to="@parrot", body="other", wait=20))
    asked = await rig.operator(MakeAsk(to="@parrot", body="x", work_item_id=item.id))
    await wait_for_end(rig, asked.flight_id)
    seat = await rig.scout()
    found = await first(seat, Watch(after=0, work=item.id), 4)
    assert [event_name(one) for one in found] == [
        "work_item.created",
        "message.posted",
        "ask.created",
        "flight.queued",
    ]


@as_test
async def test_nothing_is_missed_and_nothing_comes_twice(rig: Rig) -> None:
    await rig.register("arc")
    seat = await rig.scout()
    ids: list[int] = []

    async def write() -> None:
        for n in range(60):
            await rig.operator(Send(to="@arc", body=str(n)))

    async def read() -> None:
        after = 0
        while len(ids) < 60:
            some = min(7 - len(ids) % 5, 60 - len(ids))
            for event in await first(seat, Watch(after=after, family="collab.message"), some):
                ids.append(event.seq)
                after = event.seq

    await asyncio.gather(write(), read())
    posted = [one.seq for one in await read_log(rig, "collab.message")]
    assert ids == posted


@as_test
async def test_an_agent_sees_only_what_it_may_read(rig: Rig) -> None:
    a, _b = await rig.agent("a"), await rig.agent("b")
    await rig.register("c")
    await rig.operator(Send(to="@b", body="a secret"))
    await rig.operator(Send(to="@a", body="for you"))
    stranger = await rig.agent("c")
    await stranger.call(Send(to="@b", body="another"))
    last = await rig.operator(Send(to="@a", body="the last"))
    mine = a.who.actor.agent_id or ""
    seen: list[Event] = []
    async with asyncio.timeout(20), aclosing(a.watch(Watch(after=0))) as events:
        async for event in events:
            seen.append(event)
            if last.message_id in str(event):
                break
    texts = [one.payload.text for one in seen if event_name(one) == "message.posted"]
    assert texts == ["for you", "the last"]
    assert all(mine in str(one) or event_name(one).startswith("conversation") for one in seen)


@pytest.mark.rows("R0-50")
def test_a_slow_reader_is_dropped_with_a_reason_and_can_go_on(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc")
        seat = await rig.scout()
        events = seat.watch(Watch(family="collab.message"))
        waiting = asyncio.ensure_future(anext(events))
        await wait_until(lambda: len(rig.broker.hub))
        await rig.operator(Send(to="@arc", body="0"))
        got = await waiting
        for n in range(1, 8):
            await rig.operator(Send(to="@arc", body=str(n)))
        told = await expect_refusal(anext(events))
        assert (told.code, told.limit) == ("rate_limited", 5)
        assert told.remedies[0].operation == "watch"
        after = told.remedies[0].parameters["after"]
        assert after == got.seq
        rest = await first(seat, Watch(family="collab.message", after=after), 7)
        assert [one.payload.text for one in rest] == [str(n) for n in range(1, 8)]
        assert rig.broker.counters()["streams_dropped_total"] == 1
        assert len(rig.broker.hub) == 0

    run_scene(scene, tmp_path, limits=Limits(stream_buffer=5))


def test_who_has_read_nothing_goes_on_from_where_it_began(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc")
        await rig.operator(Send(to="@arc", body="long ago"))
        seat, began = await rig.scout(), rig.broker.glance().last_seq()
        events = seat.watch(Watch())
        waiting = asyncio.ensure_future(anext(events))
        await wait_until(lambda: len(rig.broker.hub))
        await rig.operator(Send(to="@arc", body="several facts at once"))
        told = await expect_refusal(waiting)
        assert told.remedies[0].parameters["after"] == began

    run_scene(scene, tmp_path, limits=Limits(stream_buffer=1))


def test_who_begins_in_the_past_needs_no_room_for_it(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc")
        for n in range(20):
            await rig.operator(Send(to="@arc", body=str(n)))
        seat = await rig.scout()
        found: list[str] = []
        async with (
            asyncio.timeout(20),
            aclosing(seat.watch(Watch(after=0, family="collab.message"))) as events,
        ):
            async for event in events:
                found.append(event.payload.text)
                if len(found) == 3:  # more than there is room for comes while it reads
                    await asyncio.gather(*(rig.operator(Send(to="@arc", body=str(n))) for n in range(20, 40)))
                if len(found) == 40:
                    break
        assert found[:20] == [str(n) for n in range(20)]
        assert sorted(map(int, found)) == list(range(40))

    run_scene(scene, tmp_path, limits=Limits(stream_buffer=3))


@as_test
async def test_a_credential_that_is_over_ends_its_streams(rig: Rig) -> None:
    arc = await rig.agent("arc")
    mine = asyncio.create_task(first(arc, Watch(family="collab.work_item"), 1))
    others = asyncio.create_task(first(await rig.scout(), Watch(family="collab.work_item"), 1))
    await wait_until(lambda: len(rig.broker.hub) == 2)
    await rig.operator(RevokeToken(token_id=arc.who.actor.token_id))
    assert await mine == []
    assert not others.done()
    others.cancel()
    await asyncio.gather(others, return_exceptions=True)


def test_a_client_has_only_so_many_streams(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc")
        seat = await rig.scout()
        open_ = [asyncio.create_task(first(seat, Watch(), 1)) for _ in range(2)]
        await wait_until(lambda: len(rig.broker.hub) == 2)
        told = await expect_refusal(first(seat, Watch(), 1))
        assert (told.code, told.limit) == ("rate_limited", 2)
        other = asyncio.create_task(first(await rig.agent("arc"), Watch(), 1))
        await wait_until(lambda: len(rig.broker.hub) == 3)
        open_[0].cancel()
        await wait_until(lambda: len(rig.broker.hub) == 2)
        third = asyncio.create_task(first(seat, Watch(), 1))
        await wait_until(lambda: len(rig.broker.hub) == 3)
        rig.broker.hub.close()
        assert await third == []
        assert await other == []
        await asyncio.gather(*open_, return_exceptions=True)

    run_scene(scene, tmp_path, limits=Limits(streams=2))
