"""Conversations and channels: who takes part, who is responsible, how far each has read."""

import asyncio
from typing import Any

from scout.model.access.grant import Action
from scout.model.conversation import ConversationKind, SoftMentions, derive_channel_id
from scout.protocol.access import AddGrant
from scout.protocol.agents import RetireAgent, Who
from scout.protocol.channels import (
    ArchiveChannel,
    ChannelPolicy,
    CreateChannel,
    GetConversation,
    JoinChannel,
    LeaveChannel,
    ListChannels,
    ListConversations,
    MarkRead,
    ShowChannel,
)
from scout.protocol.inbox import ListInbox
from scout.protocol.log import ReadLog
from scout.protocol.talk import Latest, ListMessages, Send
from tests.broker.neighbours import draw_requests, open_seat, stranger
from tests.broker.rig import Rig, as_test, expect_refusal


@as_test
async def test_the_same_name_of_the_same_user_is_the_same_channel(rig: Rig) -> None:
    arc = await rig.agent("arc")
    made = await asyncio.gather(*(arc.call(CreateChannel(name="Ops Team")) for _ in range(8)))
    assert {one.id for one in made} == {derive_channel_id("ada", "ops-team")}
    mine = await rig.operator(CreateChannel(name="#ops-team"))
    assert (mine.id, mine.name, mine.kind) == (made[0].id, "ops-team", ConversationKind.CHANNEL)
    assert len(mine.members) == 2
    for name in ("ops-team", "Ops Team", "#ops-team", "channel:ops-team", mine.id):
        assert (await arc.call(ShowChannel(name=name))).id == mine.id
    created = await rig.operator(ReadLog(family="collab.conversation.created"))
    assert len(created.items) == 1


@as_test
async def test_who_joins_hears_and_who_leaves_does_not(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    channel = await arc.call(CreateChannel(name="ops"))
    await arc.call(Send(channel="ops", body="hello"))
    assert (await expect_refusal(hal.call(ListMessages(channel="ops")))).code == "forbidden"
    joined = await hal.call(JoinChannel(name="ops"))
    assert (len(joined.members), joined.unread) == (2, 0)  # what was said before is not mail
    assert await hal.call(JoinChannel(name="ops")) == joined
    assert len((await hal.call(ListMessages(channel="ops"))).items) == 1
    assert [one.id for one in (await hal.call(ListConversations())).items] == [channel.id]
    left = await hal.call(LeaveChannel(name="ops"))
    assert len(left.members) == 1
    assert (await hal.call(LeaveChannel(name="ops"))).revision == left.revision
    assert (await expect_refusal(hal.call(ListMessages(channel="ops")))).code == "forbidden"
    assert (await hal.call(ListConversations())).items == ()
    back = await arc.call(JoinChannel(name="ops", members=("@hal",)))
    assert len(back.members) == 2


@as_test
async def test_who_speaks_in_a_channel_takes_part(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    await arc.call(CreateChannel(name="ops"))
    await hal.call(Send(channel="ops", body="hello"))
    assert len((await arc.call(ShowChannel(name="ops"))).members) == 2


@as_test
async def test_a_channel_is_its_users(rig: Rig) -> None:
    arc = await rig.agent("arc")
    bob = await stranger(rig)
    zed = await open_seat(rig, bob)
    ours = await arc.call(CreateChannel(name="ops"))
    theirs = await zed.call(CreateChannel(name="ops"))
    assert ours.id != theirs.id
    assert (await zed.call(ListChannels())).items == (theirs,)
    for wish in draw_requests(
        ShowChannel(name=ours.id),
        JoinChannel(name=ours.id),
        LeaveChannel(name=ours.id),
        GetConversation(conversation_id=ours.id),
        Send(channel=ours.id, body="hello"),
        Send(conversation_id=ours.id, body="hello"),
    ):
        assert (await expect_refusal(zed.call(wish))).code == "not_found", wish
    await rig.operator(AddGrant(action=Action.ADDRESS, agent=bob.id, channel="Ops"))
    assert len((await zed.call(JoinChannel(name=ours.id))).members) == 2
    assert (await zed.call(Send(channel=ours.id, body="hello"))).message_id
    let_in = JoinChannel(name="ops", members=(bob.id,))
    assert (await expect_refusal(arc.call(let_in))).code == "unknown_target"


@as_test
async def test_a_policy_is_for_who_made_the_channel(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    channel = await arc.call(CreateChannel(name="ops", master="@hal"))
    assert channel.master_id is not None
    changed = await arc.call(ChannelPolicy(name="ops", quiet=True, soft_mentions=SoftMentions.WAKE))
    assert (changed.quiet, changed.soft_mentions) == (True, SoftMentions.WAKE)
    assert changed.master_id == channel.master_id
    assert (await expect_refusal(hal.call(ChannelPolicy(name="ops", quiet=False)))).code == "forbidden"
    assert (await rig.operator(ChannelPolicy(name="ops", quiet=False))).quiet is False


@as_test
async def test_a_master_is_one_of_the_channel_and_can_be_set_and_taken_away(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    eve = await rig.agent("eve")
    await arc.call(CreateChannel(name="ops", master="@hal"))

    async def roles() -> dict[str, tuple[str, ...]]:
        shown = await rig.operator(ShowChannel(name="ops"))
        return {one.address: one.roles for one in shown.members}

    assert await roles() == {"@arc": ("owner",), "@hal": ("master",)}
    await arc.call(ChannelPolicy(name="ops", master="@eve"))
    assert await roles() == {
        "@arc": ("owner",),
        "@hal": (),
        "@eve": ("master",),
    }
    both = ChannelPolicy(name="ops", master="@hal", no_master=True)
    assert (await expect_refusal(arc.call(both))).code == "bad_request"
    assert (await arc.call(ChannelPolicy(name="ops", no_master=True))).master_id is None
    await arc.call(ChannelPolicy(name="ops", master="@arc"))
    assert (await roles())["@arc"] == ("owner", "master")
    await arc.call(ChannelPolicy(name="ops", master="@eve"))
    left = await eve.call(LeaveChannel(name="ops"))  # who is not there is not responsible
    assert (left.master_id, len(left.members)) == (None, 2)
    assert (await expect_refusal(hal.call(ChannelPolicy(name="ops", master="@hal")))).code == "forbidden"


@as_test
async def test_nobody_is_made_responsible_by_who_may_not_speak_to_it(rig: Rig) -> None:
    arc = await rig.agent("arc")
    bob = await stranger(rig)
    await arc.call(CreateChannel(name="ops"))
    for wish in draw_requests(
        CreateChannel(name="other", master=str(bob.path)), ChannelPolicy(name="ops", master=str(bob.path))
    ):
        assert (await expect_refusal(arc.call(wish))).code in ("forbidden", "unknown_target"), wish
    assert [one.name for one in (await arc.call(ListChannels())).items] == ["ops"]


@as_test
async def test_others_are_taken_out_by_who_made_the_channel_or_controls_them(rig: Rig) -> None:
    arc, hal, eve = await rig.agent("arc"), await rig.agent("hal"), await rig.agent("eve")
    await arc.call(CreateChannel(name="ops", members=("@hal", "@eve"), master="@hal"))
    told = await expect_refusal(hal.call(LeaveChannel(name="ops", members=("@eve",))))
    assert told.code == "forbidden"
    both = LeaveChannel(name="ops", members=("@hal", "@nobody"))
    assert (await expect_refusal(arc.call(both))).code == "unknown_target"
    assert len((await eve.call(ShowChannel(name="ops"))).members) == 3
    out = await arc.call(LeaveChannel(name="ops", members=("@hal",)))
    assert (len(out.members), out.master_id) == (2, None)
    assert (await expect_refusal(hal.call(ListMessages(channel="ops")))).code == "forbidden"
    await rig.operator(RetireAgent(address="@eve"))
    last = await rig.operator(LeaveChannel(name="ops", members=("@eve",)))
    assert [one.address for one in last.members] == ["@arc"]
    await hal.call(JoinChannel(name="ops"))
    own = await hal.call(LeaveChannel(name="ops", members=("@hal",)))
    assert len(own.members) == 1


@as_test
async def test_what_nobody_is_named_for_goes_to_the_master(rig: Rig) -> None:
    arc, hal, eve = await rig.agent("arc"), await rig.agent("hal"), await rig.agent("eve")
    await arc.call(CreateChannel(name="ops", master="@hal"))
    sent = await arc.call(Send(channel="ops", body="who takes it?"))
    master = (await hal.call(ListInbox())).items
    assert [one.delivery_id for one in sent.deliveries] == [item.delivered.id for item in master]
    named = await arc.call(Send(channel="ops", body="@eve see this"))
    assert len(named.deliveries) == 2
    assert len((await eve.call(ListInbox())).items) == 1
    assert len((await hal.call(ListInbox())).items) == 2


@as_test
async def test_an_archived_channel_is_out_of_the_lists(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    await arc.call(CreateChannel(name="ops"))
    await arc.call(Send(channel="ops", body="hello"))
    assert (await expect_refusal(hal.call(ArchiveChannel(name="ops")))).code == "forbidden"
    archived = await arc.call(ArchiveChannel(name="ops"))
    assert archived.archived_at is not None
    assert await arc.call(ArchiveChannel(name="ops")) == archived
    assert (await arc.call(ListChannels())).items == ()
    assert len((await arc.call(ListMessages(channel="ops"))).items) == 1


@as_test
async def test_a_channel_that_is_not_there_is_offered(rig: Rig) -> None:
    for wish in draw_requests(ShowChannel(name="ops"), JoinChannel(name="ops"), ListMessages(channel="ops")):
        problem = await expect_refusal(rig.operator(wish))
        assert problem.code == "not_found"
        assert [one.operation for one in problem.remedies] == ["channel.create", "channel.list"]
    by_id = await expect_refusal(rig.operator(ShowChannel(name="cnv_none")))
    assert [one.operation for one in by_id.remedies] == ["channel.list"]


@as_test
async def test_a_cursor_never_goes_back_and_repeating_it_is_no_news(rig: Rig) -> None:
    await rig.register("arc")
    arc = await rig.agent("arc")
    sent = [await rig.operator(Send(to="@arc", body=f"{number}")) for number in range(3)]
    place = sent[0].conversation_id
    assert (await arc.call(GetConversation(conversation_id=place))).unread == 3
    some = await arc.call(MarkRead(conversation_id=place, message_id=sent[1].message_id))
    assert some.unread == 1
    assert (await arc.call(MarkRead(conversation_id=place))).unread == 0
    before = await rig.operator(ReadLog(limit=200))
    assert (await arc.call(MarkRead(conversation_id=place))).unread == 0
    back = await arc.call(MarkRead(conversation_id=place, message_id=sent[0].message_id))
    assert back.unread == 0
    assert await rig.operator(ReadLog(limit=200)) == before
    other = await rig.operator(Send(to="operator", body="a note"))
    astray = MarkRead(conversation_id=place, message_id=other.message_id)
    assert (await expect_refusal(arc.call(astray))).code == "not_found"


@as_test
async def test_latest_shows_each_conversation_once_newest_first(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    await hal.call(CreateChannel(name="ops", members=("@arc",)))
    await hal.call(Send(to="@arc", body="one"))
    await hal.call(Send(channel="ops", body="in the channel"))
    await hal.call(Send(to="@arc", body="two"))
    items = (await arc.call(Latest())).items
    assert [item.message and item.message.body for item in items] == ["two", "in the channel"]
    assert [item.name for item in items] == ["@hal", "ops"]
    assert [item.unread for item in items] == [2, 1]


def _listings(*requests: type[Any]) -> tuple[type[Any], ...]:
    return requests


@as_test
async def test_conversations_are_listed_in_pages(rig: Rig) -> None:
    arc = await rig.agent("arc")
    for number in range(5):
        await arc.call(CreateChannel(name=f"c{number}"))
    for listing in _listings(ListChannels, ListConversations):
        first = await arc.call(listing(limit=3))
        rest = await arc.call(listing(limit=3, cursor=first.next))
        names = [one.name for one in (*first.items, *rest.items)]
        assert names == ["c4", "c3", "c2", "c1", "c0"]
        assert rest.next is None
        wrong = (await rig.operator(Who(limit=1, all=True))).next
        assert (await expect_refusal(arc.call(listing(cursor=wrong)))).code == "bad_request"


@as_test
async def test_a_thread_hangs_on_one_message(rig: Rig) -> None:
    arc, hal, other = await rig.agent("arc"), await rig.agent("hal"), await rig.agent("other")
    await rig.operator(CreateChannel(name="dev", members=("@arc", "@hal")))
    root = await arc.call(Send(channel="dev", body="the build is red"))
    first = await hal.call(Send(thread=root.message_id, body="looking"))
    again = await arc.call(Send(thread=root.message_id, body="thanks"))
    assert first.conversation_id == again.conversation_id != root.conversation_id
    assert [one.target for one in first.deliveries] == [arc.who.actor.agent_id]  # who began it hears of it
    thread = await hal.call(GetConversation(conversation_id=first.conversation_id))
    assert (thread.kind, thread.parent_id, thread.root_message_id) == (
        "thread",
        root.conversation_id,
        root.message_id,
    )
    said = await hal.call(ListMessages(conversation=first.conversation_id))
    assert [message.body for message in said.items] == ["looking", "thanks"]
    told = await expect_refusal(other.call(Send(thread=root.message_id, body="me too")))
    assert told.code == "forbidden"


@as_test
async def test_a_thread_in_a_direct_talk_is_for_its_two(rig: Rig) -> None:
    arc, other = await rig.agent("arc"), await rig.agent("other")
    root = await rig.operator(Send(to="@arc", body="two things"))
    mine = await rig.operator(Send(thread=root.message_id, body="the first"))
    assert [one.target for one in mine.deliveries] == [arc.who.actor.agent_id]
    assert (await expect_refusal(other.call(Send(thread=root.message_id, body="x")))).code == "forbidden"
    assert (await expect_refusal(arc.call(Send(thread="msg_nothing", body="x")))).code == "not_found"
    assert (
        await expect_refusal(arc.call(Send(thread=root.message_id, to="@arc", body="x")))
    ).code == "bad_request"
