"""The whole at a glance: what is new since the last look, the log, the feed, the search."""

from typing import Any, cast

import pytest

from scout.broker.operations.inbox import list_inbox
from scout.broker.operations.overview import read_feed
from scout.broker.transaction.transaction import Transaction
from scout.broker.upkeep.housekeeping import tidy
from scout.model.events.envelope import Event
from scout.model.events.event_types import get_event_type
from scout.model.events.talk import MessagePosted
from scout.protocol.agents import RetireAgent, Who
from scout.protocol.asks import FailFlight, GetFlight, IfUnreachable, MakeAsk
from scout.protocol.attention import ListAttention
from scout.protocol.channels import CreateChannel, LeaveChannel, ShowChannel
from scout.protocol.endpoints import RegisterEndpoint
from scout.protocol.inbox import AckInbox, ClaimInbox, ListInbox
from scout.protocol.log import ReadFeed, ReadLog
from scout.protocol.overview import MarkLooked, ShowNow
from scout.protocol.talk import Search, Send
from tests.broker.neighbours import stranger
from tests.broker.rig import Rig, as_test, expect_refusal


@as_test
async def test_after_a_look_only_what_came_later_is_shown(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    first = await rig.operator(MakeAsk(to="@parrot", body="one", wait=10))
    seen = await rig.operator(ShowNow())
    assert (seen.since, [one.id for one in seen.finished]) == (None, [first.flight_id])
    assert (await rig.operator(ShowNow())).finished_count == 1
    looked = await rig.operator(MarkLooked(at=seen.at))
    nothing = await rig.operator(ShowNow())
    assert (nothing.since, nothing.finished, nothing.finished_count) == (looked.at, (), 0)
    second = await rig.operator(MakeAsk(to="@parrot", body="two", wait=10))
    later = await rig.operator(ShowNow())
    assert [one.id for one in later.finished] == [second.flight_id]
    all_of_it = await rig.operator(ShowNow(since=rig.clock.now().plus(-3600)))
    assert all_of_it.finished_count == 2
    await rig.operator(MarkLooked(at=rig.clock.now().plus(-60)))
    assert (await rig.operator(ShowNow())).since == looked.at
    ahead = await rig.operator(MarkLooked(at=rig.clock.now().plus(3600)))
    assert ahead.at <= rig.clock.now()


@as_test
async def test_now_counts_what_one_sees(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.register("gone")
    await rig.operator(RetireAgent(address="@gone"))
    await stranger(rig)
    assert (await arc.call(ShowNow())).agents == 1
    assert (await rig.operator(ShowNow())).agents == len((await rig.operator(Who())).items) == 2
    await arc.call(RegisterEndpoint())
    await rig.operator(Send(to="@arc", body="hello"))
    now = await arc.call(ShowNow())
    assert (now.unread, [one.definition_id for one in now.online]) == (1, ["arc"])
    assert (await rig.operator(ListAttention())).items == ()


@pytest.mark.rows("R0-46")
@as_test
async def test_the_log_is_read_oldest_first_and_from_its_end(rig: Rig) -> None:
    await rig.register("arc")
    for number in range(30):
        await rig.operator(Send(to="@arc", body=f"{number}"))
    first = await rig.operator(ReadLog(limit=20))
    assert [event.seq for event in first.items] == list(range(1, 21))
    assert first.next is not None
    rest = await rig.operator(ReadLog(after=int(first.next), limit=200))
    assert rest.items[0].seq == 21
    newest = await rig.operator(ReadLog(newest=True, limit=5))
    assert newest.items == rest.items[-5:]
    created = await rig.operator(ReadLog(newest=True, limit=2, family="collab.conversation.created"))
    assert [get_event_type(type(event)) for event in created.items] == ["collab.conversation.created"]
    for after in (-1, 1 << 70):
        assert (await expect_refusal(rig.operator(ReadLog(after=after)))).code == "bad_request"
        assert (
            await expect_refusal(rig.operator(ReadFeed(address="@arc", after=after)))
        ).code == "bad_request"


@as_test
async def test_an_agent_reads_of_the_log_what_concerns_it(rig: Rig) -> None:
    arc, hal, eve = await rig.agent("arc"), await rig.agent("hal"), await rig.agent("eve")
    await arc.call(Send(to="@hal", body="between us"))
    assert "between us" in repr(await hal.call(ReadLog()))
    assert "between us" in repr(await hal.call(ReadLog(agent="@arc")))
    assert "between us" not in repr(await eve.call(ReadLog(limit=200)))
    talk = (await rig.operator(ReadLog(family="collab.message"))).items
    assert [get_event_type(type(event)) for event in talk] == ["collab.message.posted"]
    one = ReadLog(conversation=talk[0].target.id)
    assert (await expect_refusal(eve.call(one))).code == "forbidden"
    assert len((await hal.call(one)).items) > 1


@as_test
async def test_a_feed_is_what_an_agent_did_and_what_was_done_to_it(rig: Rig) -> None:
    await rig.register("arc")
    arc = await rig.agent("arc")
    await arc.call(Send(to="operator", body="hello"))
    first = await arc.call(ReadFeed(address="@arc", limit=2))
    assert first.next is not None
    rest = await arc.call(ReadFeed(address="@arc", after=int(first.next)))
    told = [get_event_type(type(event)) for event in (*first.items, *rest.items)]
    assert told[0] == "collab.agent.registered"
    assert "collab.message.posted" in told
    await rig.operator(RetireAgent(address="@arc"))
    gone = await rig.operator(ReadFeed(address="/ada/agent/arc"))
    assert "collab.agent.retired" in [get_event_type(type(one)) for one in gone.items]


@as_test
async def test_a_feed_has_every_fact_that_concerns_an_agent_and_is_what_the_log_has_of_it(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    await rig.agent("eve")
    await rig.operator(CreateChannel(name="ops", members=("@hal", "@eve")))
    await rig.operator(Send(channel="ops", body="not for arc"))
    await rig.operator(Send(to="@arc", body="a message"))
    await rig.operator(Send(broadcast=True, body="to all"))
    asked = await hal.call(MakeAsk(to="@arc", body="work", if_unreachable=IfUnreachable.QUEUE))
    claimed = (await arc.call(ClaimInbox(limit=20))).items
    await arc.call(AckInbox(delivery_ids=tuple(one.delivery_id for one in claimed if one.delivery_id)))
    await arc.call(FailFlight(flight_id=asked.flight_id, reason="cannot"))
    seen: list[Event] = []
    after = 0
    while True:
        page = await arc.call(ReadFeed(address="self", after=after, limit=4))
        seen += page.items
        if page.next is None:
            break
        after = int(page.next)
    logged = (await rig.operator(ReadLog(agent="@arc", limit=200))).items
    assert [one.seq for one in seen] == [one.seq for one in logged]
    newest = (await rig.operator(ReadLog(agent="@arc", limit=5, newest=True))).items
    assert newest == logged[-5:]
    types = {get_event_type(type(one)) for one in seen}
    assert {
        "collab.agent.registered",
        "collab.message.posted",
        "collab.delivery.requested",
        "collab.delivery.leased",
        "collab.delivery.acked",
        "collab.ask.created",
        "collab.flight.queued",
        "collab.flight.started",
        "collab.flight.failed",
    } <= types
    said = [one.payload.text for one in seen if isinstance(one, MessagePosted)]
    assert said[:3] == ["a message", "to all", "work"]
    others = await expect_refusal(hal.call(ReadFeed(address="@arc")))
    assert others.code == "forbidden"


@as_test
async def test_a_feed_costs_what_it_shows(rig: Rig) -> None:
    """However much others say, and in however many channels they do, a page reads as many events."""
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    await rig.register("hal2")
    for number in range(5):
        await rig.operator(CreateChannel(name=f"c{number}", members=("@arc",)))

    async def steps() -> int:
        counted = 0

        def count() -> int:
            nonlocal counted
            counted += 1
            return 0

        ledger = rig.broker.glance()
        ledger.connection.set_progress_handler(count, 10)
        try:
            tx = Transaction(rig.broker.services, ledger, arc.who.actor, arc.who.caller)
            for request, read in ((ReadFeed(address="self"), read_feed), (ListInbox(), list_inbox)):
                read(tx, cast("Any", request))
        finally:
            ledger.connection.set_progress_handler(None, 0)
        return counted

    await rig.operator(Send(channel="c0", body="for arc"))
    before = await steps()
    for number in range(150):
        await hal.call(Send(to="@hal2", body=f"{number}"))
        await arc.call(Send(channel=f"c{number % 5}", body=f"{number}"))
    last = (await rig.operator(ReadLog(agent="@arc", newest=True, limit=1))).items[0].seq
    await arc.call(AckInbox(conversation_id=(await rig.operator(ShowChannel(name="c0"))).id, seq=last))
    await rig.operator(Send(channel="c0", body="for arc again"))
    assert await steps() <= 4 * before


@as_test
async def test_words_are_found_at_once_by_those_who_may_read_them(rig: Rig) -> None:
    arc, hal, eve = await rig.agent("arc"), await rig.agent("hal"), await rig.agent("eve")
    sent = await arc.call(Send(to="@hal", body="the Zeppelin has landed"))
    for _ in range(2):
        for seat in (arc, hal, await rig.scout()):
            hits = (await seat.call(Search(query="zeppelin"))).items
            assert [hit.id for hit in hits] == [sent.message_id]
            assert "«Zeppelin»" in hits[0].snippet
        assert (await eve.call(Search(query="zeppelin"))).items == ()
        await tidy(rig.broker)  # from now on it is in the index
    await arc.call(CreateChannel(name="ops", members=("@hal",)))
    await arc.call(Send(channel="ops", body="another zeppelin"))
    assert len((await hal.call(Search(query="zeppelin"))).items) == 2
    await hal.call(LeaveChannel(name="ops"))
    assert len((await hal.call(Search(query="zeppelin"))).items) == 1
    assert (await arc.call(Search(query='"'))).items == ()


@as_test
async def test_what_is_found_comes_in_pages_newest_first(rig: Rig) -> None:
    arc = await rig.agent("arc")
    sent = [await arc.call(Send(to="operator", body=f"apple {number}")) for number in range(5)]
    first = await arc.call(Search(query="apple", limit=3))
    rest = await arc.call(Search(query="apple", limit=3, cursor=first.next))
    found = [hit.id for hit in (*first.items, *rest.items)]
    assert found == [one.message_id for one in reversed(sent)]
    assert (await expect_refusal(arc.call(Search(query="apple", cursor="!")))).code == "bad_request"
    flight = GetFlight(flight_id="flt_none")
    assert (await expect_refusal(arc.call(flight))).code == "not_found"
