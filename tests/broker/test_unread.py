"""What is said to many is unread for every member, by a cursor: no row for each member, no delivery."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from scout.broker.routing import unread
from scout.model.events.envelope import get_record
from scout.model.events.event_types import get_event_type
from scout.protocol.agents import RetireAgent, ReviveAgent, ShowAgent
from scout.protocol.asks import CancelFlight, FailFlight, IfUnreachable, MakeAsk
from scout.protocol.channels import (
    CreateChannel,
    JoinChannel,
    LeaveChannel,
    ListChannels,
    ListConversations,
    MarkRead,
)
from scout.protocol.inbox import AckInbox, ClaimInbox, InboxItem, ListInbox, NackInbox, build_acknowledgements
from scout.protocol.insight import ShowBrief
from scout.protocol.log import ReadLog
from scout.protocol.overview import ShowNow
from scout.protocol.talk import Latest, Reply, Send
from scout.store.integrity.verify import verify
from tests.broker.rig import Rig, as_test, expect_refusal, run_scene, wait_until

PLACES: tuple[dict[str, Any], ...] = (
    {"channel": "ops"},
    {"to": "@arc"},
    {"channel": "dev"},
    {"broadcast": True},
)


def bodies(items: tuple[InboxItem, ...]) -> list[str]:
    return [item.message.body for item in items if item.message]


@as_test
async def test_a_broadcast_is_unread_for_every_agent_on_every_surface(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    sent = await rig.operator(Send(broadcast=True, body="main is frozen"))
    assert sent.deliveries == ()
    for seat in (arc, hal):
        (item,) = (await seat.call(ListInbox())).items
        assert (item.delivery_id, item.delivery) == (None, None)
        assert (item.conversation_id, item.broadcast, bodies((item,))) == (
            sent.conversation_id,
            True,
            ["main is frozen"],
        )
        assert (await seat.call(ShowBrief())).unread == 1
        assert (await seat.call(ShowNow())).unread == 1
        assert [one.unread for one in (await seat.call(Latest())).items] == [1]
        assert [one.unread for one in (await seat.call(ListConversations())).items] == [1]
    assert (await rig.operator(ShowAgent(address="@arc"))).unread == 1
    assert (await rig.operator(ShowNow())).unread == 0  # the sender has it read
    assert (await rig.operator(ListInbox())).items == ()
    log = (await rig.operator(ReadLog(newest=True, limit=3))).items
    assert [get_event_type(type(one)) for one in log] == [
        "collab.conversation.created",
        "collab.conversation.member",
        "collab.message.posted",
    ]


@as_test
async def test_an_agent_that_came_later_or_was_retired_does_not_have_it(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.operator(Send(broadcast=True, body="one"))
    await rig.operator(RetireAgent(address="@arc"))
    await rig.operator(Send(broadcast=True, body="two"))
    late = await rig.agent("late")
    await rig.operator(ReviveAgent(address="@arc"))
    await rig.operator(Send(broadcast=True, body="three"))
    assert bodies((await late.call(ListInbox())).items) == ["three"]
    assert bodies((await arc.call(ListInbox())).items) == ["three"]


@as_test
async def test_a_claim_gives_both_kinds_and_an_ack_moves_the_cursor(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    await rig.operator(CreateChannel(name="ops", members=("@arc", "@hal")))
    await rig.operator(Send(channel="ops", body="one"))
    await rig.operator(Send(to="@arc", body="two"))
    await hal.call(Send(channel="ops", body="three"))
    claimed = (await arc.call(ClaimInbox())).items
    assert bodies(claimed) == ["one", "two", "three"]
    assert [(one.delivery_id is None, one.seq is None, one.channel) for one in claimed] == [
        (True, False, "ops"),
        (False, True, None),
        (True, False, "ops"),
    ]
    assert bodies((await arc.call(ClaimInbox())).items) == ["one", "three"]  # these are not leased
    first, mail, last = claimed
    settled = await arc.call(AckInbox(conversation_id=first.conversation_id, seq=first.seq))
    assert [(one.conversation_id, one.seq) for one in settled.cursors] == [(first.conversation_id, first.seq)]
    assert bodies((await arc.call(ListInbox())).items) == ["two", "three"]
    both = await arc.call(
        AckInbox(delivery_ids=(str(mail.delivery_id),), conversation_id=last.conversation_id, seq=last.seq)
    )
    assert (len(both.items), both.cursors[0].seq) == (1, last.seq)
    assert (await arc.call(ListInbox())).items == ()
    assert bodies((await hal.call(ListInbox())).items) == ["one"]
    everything = (await arc.call(ListInbox(all=True))).items
    assert [(one.message.body, one.read) for one in everything if one.message] == [
        ("three", True),
        ("two", True),
        ("one", True),
    ]


@as_test
async def test_a_cursor_is_moved_only_by_who_takes_part_and_never_past_what_was_said(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    channel = await rig.operator(CreateChannel(name="ops", members=("@arc",)))
    await rig.operator(Send(channel="ops", body="one"))
    mine = AckInbox(conversation_id=channel.id, seq=1_000_000)
    assert (await expect_refusal(hal.call(mine))).code == "forbidden"
    await arc.call(mine)
    await rig.operator(Send(channel="ops", body="two"))
    assert bodies((await arc.call(ListInbox())).items) == ["two"]
    for wrong in (
        AckInbox(),
        AckInbox(conversation_id=channel.id),
        AckInbox(seq=3),
        AckInbox(conversation_id=channel.id, seq=0),
    ):
        assert (await expect_refusal(arc.call(wrong))).code == "bad_request", wrong


@as_test
async def test_a_message_that_is_delivered_as_well_is_there_once(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.agent("hal")
    await rig.operator(CreateChannel(name="ops", members=("@arc", "@hal")))
    await rig.operator(Send(channel="ops", body="@arc look at this"))
    (item,) = (await arc.call(ListInbox())).items
    assert item.delivery_id is not None
    assert (await arc.call(ShowBrief())).unread == 1
    await arc.call(AckInbox(delivery_ids=(item.delivery_id,)))
    assert (await arc.call(ShowBrief())).unread == 0
    await rig.operator(Send(channel="ops", body="all of you"))
    (after,) = (await arc.call(ListInbox())).items
    assert (after.delivery_id, bodies((after,))) == (None, ["all of you"])


@as_test
async def test_pages_of_both_kinds_leave_nothing_out(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.operator(CreateChannel(name="ops", members=("@arc",)))
    await rig.operator(CreateChannel(name="dev", members=("@arc",)))
    sent: list[str] = []
    for number in range(12):
        place = PLACES[number % 4]
        sent.append(f"{number}")
        await rig.operator(Send(body=f"{number}", **place))
        rig.clock.ahead += 1
    for order, everything in ((sent, False), (sent[::-1], True)):
        seen: list[str] = []
        cursor = None
        while True:
            page = await arc.call(ListInbox(limit=5, cursor=cursor, all=everything))
            seen += bodies(page.items)
            cursor = page.next
            if cursor is None:
                break
        assert seen == order
    assert (await arc.call(ShowBrief())).unread == 12
    claimed = (await arc.call(ClaimInbox(limit=12))).items
    for taken in build_acknowledgements(claimed):
        await arc.call(taken)
    assert (await arc.call(ShowBrief())).unread == 0


@as_test
async def test_who_waits_hears_of_a_channel_and_of_one_it_is_let_into_meanwhile(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.operator(CreateChannel(name="ops", members=("@arc",)))
    places: tuple[dict[str, Any], ...] = ({"channel": "ops"}, {"broadcast": True}, {"channel": "new"})
    for place in places:
        waiting = asyncio.create_task(arc.call(ClaimInbox(wait=30)))
        await asyncio.sleep(0)
        if place.get("channel") == "new":
            await rig.operator(CreateChannel(name="new", members=("@arc",)))
        await rig.operator(Send(body="hello", **place))
        claimed = (await asyncio.wait_for(waiting, 20)).items
        assert bodies(claimed) == ["hello"], place
        for taken in build_acknowledgements(claimed):
            await arc.call(taken)


def test_who_waits_hears_of_a_channel_that_is_made_as_the_wait_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of channels is read on another thread; here that takes until the new one is made."""
    has_read, is_made = threading.Event(), threading.Event()
    list_followed_ids = unread.list_followed_ids

    def list_slowly(tx: Any, agent: str) -> Any:
        found = list_followed_ids(tx, agent)
        has_read.set()
        assert is_made.wait(20)
        return found

    async def scene(rig: Rig) -> None:
        arc = await rig.agent("arc")
        monkeypatch.setattr(unread, "list_followed_ids", list_slowly)
        waiting = asyncio.create_task(arc.call(ClaimInbox(wait=30)))
        await asyncio.to_thread(has_read.wait)
        await rig.operator(CreateChannel(name="new", members=("@arc",)))
        is_made.set()
        inbox = f"inbox {arc.who.actor.agent_id}"
        # It waits for the first change: private, because from outside nothing tells that.
        await wait_until(lambda: any(one._woken for one in rig.broker.waiters._waiting.get(inbox, ())))
        await rig.operator(Send(body="hello", channel="new"))
        assert bodies((await asyncio.wait_for(waiting, 20)).items) == ["hello"]

    run_scene(scene, tmp_path)


@as_test
async def test_who_leaves_has_nothing_unread_there(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.operator(CreateChannel(name="ops", members=("@arc",)))
    await rig.operator(Send(channel="ops", body="one"))
    assert [one.unread for one in (await arc.call(ListChannels())).items] == [1]
    await arc.call(LeaveChannel(name="ops"))
    assert (await arc.call(ShowBrief())).unread == 0
    await rig.operator(Send(channel="ops", body="two"))
    await arc.call(JoinChannel(name="ops"))
    assert (await arc.call(ListInbox())).items == ()


@as_test
async def test_a_direct_talk_is_unread_as_long_as_its_mail_is(rig: Rig) -> None:
    arc = await rig.agent("arc")
    sent = await arc.call(Send(to="/ada/direct", body="one"))
    await arc.call(Send(to="/ada/direct", body="two"))

    async def unread() -> tuple[int | None, int, int]:
        latest = (await rig.operator(Latest())).items
        listed = (await rig.operator(ListConversations())).items
        now = await rig.operator(ShowNow())
        return now.unread, sum(one.unread for one in latest), sum(one.unread for one in listed)

    assert await unread() == (2, 2, 2)
    first = (await rig.operator(ListInbox())).items[0]
    await rig.operator(AckInbox(delivery_ids=(str(first.delivery_id),)))
    assert await unread() == (1, 1, 1)
    await rig.operator(MarkRead(conversation_id=sent.conversation_id))
    assert await unread() == (0, 0, 0)


@as_test
async def test_an_answer_says_to_what(rig: Rig) -> None:
    arc = await rig.agent("arc")
    sent = await rig.operator(Send(to="@arc", body="is the parser done?\nI need it today."))
    await arc.call(Reply(in_reply_to=sent.message_id, body="yes"))
    (item,) = (await rig.operator(ListInbox())).items
    assert (item.about, bodies((item,))) == ("is the parser done?", ["yes"])


@as_test
async def test_a_reply_after_an_ask_came_to_nothing_reaches_its_asker(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    for end in ("cancel", "fail"):
        asked = await hal.call(MakeAsk(to="@arc", body="count them", if_unreachable=IfUnreachable.QUEUE))
        if end == "cancel":
            await hal.call(CancelFlight(flight_id=asked.flight_id))
        else:
            await arc.call(FailFlight(flight_id=asked.flight_id, reason="cannot"))
        for taken in build_acknowledgements((await hal.call(ClaimInbox())).items):
            await hal.call(taken)  # that it failed
        told = await arc.call(Reply(in_reply_to=asked.flight_id, body="there are 12"))
        assert [one.state for one in told.deliveries] == ["pending"]
        assert "its asker finds it in the inbox" in told.notes[0]
        (item,) = (await hal.call(ListInbox())).items
        assert (item.delivered.rule, item.delivered.wake, item.about) == ("note", False, "count them")
        assert item.delivered.reason.startswith("a note after the end")
        assert (await hal.call(ShowNow())).unread == 1
        await hal.call(AckInbox(delivery_ids=(str(item.delivery_id),)))
    done = await hal.call(MakeAsk(to="@arc", body="again", if_unreachable=IfUnreachable.QUEUE))
    await arc.call(Reply(in_reply_to=done.flight_id, body="12"))
    later = await arc.call(Reply(in_reply_to=done.flight_id, body="and one more thing"))
    assert (later.deliveries, (await hal.call(ListInbox())).items) == ((), ())


def test_the_places_follow_from_the_log(tmp_path: Path) -> None:
    """Own posts, deliveries, leaving, joining and reading, in a mixed order: replay gives the same rows."""

    async def scene(rig: Rig) -> None:
        seats = [await rig.agent(name) for name in ("arc", "hal", "eve")]
        await seats[0].call(CreateChannel(name="ops", master="@eve"))
        for number in range(30):
            seat = seats[number % 3]
            await seat.call(Send(channel="ops", body=f"{'@hal ' if number % 5 == 0 else ''}{number}"))
            if number % 7 == 3:
                claimed = (await seat.call(ClaimInbox(limit=2))).items
                for taken in build_acknowledgements(claimed):
                    await seat.call(taken)
            if number % 11 == 4:
                await seats[1].call(LeaveChannel(name="ops"))
        again = (await seats[2].call(ClaimInbox())).items
        ids = tuple(str(one.delivery_id) for one in again if one.delivery_id)
        await seats[2].call(NackInbox(delivery_ids=ids))
        events = (await rig.operator(ReadLog(family="collab.conversation.cursor"))).items
        assert {get_record(one).conversation_id for one in events} != set()

    run_scene(scene, tmp_path)
    assert verify(tmp_path / "scout.db").differences == ()
