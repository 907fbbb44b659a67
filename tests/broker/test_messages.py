"""Messages: whom they are for, what is refused, what a receipt and a view say."""

import asyncio
from typing import Any

import msgspec
import pytest

from scout.base.codec import decode
from scout.base.refusal import Refused
from scout.model.conversation import BODY_LIMIT, MessageKind
from scout.protocol.agents import RetireAgent, ShowAgent, Who
from scout.protocol.asks import GetFlight, ListFlights, MakeAsk
from scout.protocol.channels import CreateChannel, GetConversation, ListConversations, MarkRead
from scout.protocol.endpoints import RegisterEndpoint
from scout.protocol.inbox import AckInbox, ClaimInbox, ListInbox
from scout.protocol.log import ReadLog
from scout.protocol.operations import REQUESTS
from scout.protocol.request import Write
from scout.protocol.talk import GetMessage, ListMessages, RedactMessage, Reply, Search, Send
from tests.broker.neighbours import draw_requests, stranger
from tests.broker.rig import Rig, as_test, expect_refusal


@pytest.mark.rows("R3.1-1", "R3.1-2")
@as_test
async def test_a_send_is_a_message_in_the_one_dm_and_no_flight(rig: Rig) -> None:
    made = await rig.register("arc")
    arc = await rig.agent("arc")
    sent = await rig.operator(Send(to="@arc", body="hello"))
    back = await arc.call(Send(to="operator", body="hello yourself"))
    assert sent.conversation_id == back.conversation_id
    assert [one.target for one in sent.deliveries] == [made.agent.id]
    conversation = await arc.call(GetConversation(conversation_id=sent.conversation_id))
    assert (conversation.kind, len(conversation.members)) == ("dm", 2)
    assert (await rig.operator(ListFlights())).items == ()


@pytest.mark.rows("R2.1-9")
@as_test
async def test_sixty_four_first_words_at_once_make_one_dm(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    sends = [arc.call(Send(to="@hal", body=f"{number}")) for number in range(32)]
    sends += [hal.call(Send(to="@arc", body=f"{number}")) for number in range(32)]
    receipts = await asyncio.gather(*sends)
    assert len({one.conversation_id for one in receipts}) == 1
    assert len({one.message_id for one in receipts}) == 64
    assert len((await arc.call(ListConversations())).items) == 1
    created = await rig.operator(ReadLog(family="collab.conversation.created"))
    assert len(created.items) == 1


@pytest.mark.rows("R3.1-3", "R3.1-4")
@as_test
async def test_nobody_is_guessed(rig: Rig) -> None:
    await rig.register("arc")
    before = await rig.operator(ReadLog(limit=200))
    problem = await expect_refusal(rig.operator(Send(body="hello?")))
    assert (problem.code, problem.field) == ("bad_request", "to")
    assert {remedy.operation for remedy in problem.remedies} == {"who"}
    for wish in draw_requests(
        Send(to="@arc", channel="ops", body="both"),
        Send(to="@arc", broadcast=True, body="both"),
        Send(channel="ops", conversation_id="cnv_1", body="both"),
    ):
        assert (await expect_refusal(rig.operator(wish))).code == "bad_request"
    assert (
        await expect_refusal(rig.operator(Send(to="@arc,@hal", body="a group")))
    ).code == "malformed_address"
    unknown = await expect_refusal(rig.operator(Send(channel="Ops Team", body="hello?")))
    assert (unknown.code, unknown.remedies[0].operation) == ("not_found", "channel.create")
    assert await rig.operator(ReadLog(limit=200)) == before
    await rig.operator(CreateChannel(**unknown.remedies[0].parameters))
    assert (await rig.operator(Send(channel="Ops Team", body="hello"))).deliveries == ()


@pytest.mark.rows("R3.1-3")
@as_test
async def test_a_broadcast_is_asked_for_by_name_and_wakes_nobody(rig: Rig) -> None:
    arc = await rig.agent("arc", harness="echo")
    assert (await expect_refusal(rig.operator(Send(to="broadcast", body="all")))).code in (
        "unknown_target",
        "reserved_name",
    )
    sent = await rig.operator(Send(broadcast=True, body="to all"))
    assert sent.deliveries == ()
    heard = await arc.call(ListMessages(conversation=sent.conversation_id))
    assert [one.body for one in heard.items] == ["to all"]


@as_test
async def test_a_leading_mention_is_a_target(rig: Rig) -> None:
    made = await rig.register("arc")
    await rig.register("hal")
    sent = await rig.operator(Send(body="@arc look at @hal"))
    assert [one.target for one in sent.deliveries] == [made.agent.id]
    shown = await rig.operator(GetMessage(message_id=sent.message_id))
    assert shown.mentions == ("@arc.node:mini", "@hal")
    assert (await expect_refusal(rig.operator(Send(body="@nobody look")))).code == "unknown_target"
    noted = await rig.operator(Send(to="@arc", body="@nobody said so"))
    assert [one.target for one in noted.deliveries] == [made.agent.id]
    assert any("@nobody" in note for note in noted.notes)
    clean = await rig.operator(Send(to="@arc", body="@hal said so"))
    assert not any("@hal" in note for note in clean.notes)


@pytest.mark.rows("R1.3-60")
@as_test
async def test_the_body_arrives_as_it_was_written(rig: Rig) -> None:
    await rig.register("arc")
    arc = await rig.agent("arc")
    body = "@arc  see `@hal` and  @eve.\r\n\t`code` \u200b\u2028 é e\u0301 \U0001f600 \x01\n\n"
    await rig.operator(Send(body=body))
    claimed = await arc.call(ClaimInbox())
    assert claimed.items[0].message is not None
    assert claimed.items[0].message.body == body


@as_test
async def test_a_body_that_cannot_be_stored_is_refused(rig: Rig) -> None:
    await rig.register("arc")
    most = "é" * (BODY_LIMIT // 2)
    assert (await rig.operator(Send(to="@arc", body=most))).message_id
    before = await rig.operator(ReadLog(newest=True))
    too_large = await expect_refusal(rig.operator(Send(to="@arc", body=most + "x")))
    assert (too_large.code, too_large.size, too_large.limit) == ("too_large", BODY_LIMIT + 1, BODY_LIMIT)
    for body in ("a\0b", "a\ud800b"):
        assert (await expect_refusal(rig.operator(Send(to="@arc", body=body)))).code == "bad_request"
    assert await rig.operator(ReadLog(newest=True)) == before


@pytest.mark.rows("R1.4-29", "R1.4-30")
@as_test
async def test_posting_to_a_path(rig: Rig) -> None:
    made = await rig.register("arc")
    sent = await rig.operator(Send(to="/ada/agent/arc", body="hello"))
    assert sent.deliveries[0].target == made.agent.id
    assert (await expect_refusal(rig.operator(Send(to="/ada/task/t1", body="be")))).code == "unknown_target"
    config = {"description": "a chore"}
    born = await rig.operator(Send(to="/ada/task/t1", body="be", create=config))
    shown = await rig.operator(ShowAgent(address="/ada/task/t1"))
    assert (shown.id, shown.config.description) == (born.deliveries[0].target, "a chore")
    assert (shown.kind, shown.owner, shown.unread) == ("task", "ada", 1)
    again = await rig.operator(Send(to="/ada/task/t1", body="again", create={"description": "other"}))
    assert again.deliveries[0].target == shown.id
    assert (await rig.operator(ShowAgent(address=shown.id))).config.description == "a chore"
    await rig.operator(RetireAgent(address="/ada/task/t1"))
    late = Send(to="/ada/task/t1", body="late", create={})
    assert (await expect_refusal(rig.operator(late))).code == "retired_target"


@as_test
async def test_posting_into_another_users_tree_is_forbidden(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await stranger(rig)
    for to in ("/bob/agent/zed", "/bob/agent/nobody", "/bob/task/t1"):
        for wish in (Send(to=to, body="hello"), Send(to=to, body="hello", create={})):
            problem = await expect_refusal(arc.call(wish))
            assert (problem.code, problem.remedies[0].operation) == ("forbidden", "grant.add")
    nobody = await expect_refusal(arc.call(Send(to="/carol/agent/x", body="hello")))
    assert nobody.code == "unknown_target"


@pytest.mark.rows("R1.1-27")
@as_test
async def test_children_are_made_in_their_order_and_run_nothing_of_their_own_choice(rig: Rig) -> None:
    arc = await rig.agent("arc")
    problem = await expect_refusal(arc.call(Send(to="/ada/agent/arc/sub/1", body="be", create={})))
    assert problem.code == "bad_request"
    assert "/ada/agent/arc/sub/0" in problem.message
    await arc.call(Send(to="/ada/agent/arc/sub/0", body="be", create={}))
    await arc.call(Send(to="./sub/0", body="still there"))
    await arc.call(Send(to="/ada/agent/arc/sub/1", body="be", create={}))
    assert (await rig.operator(ShowAgent(address="@arc"))).next_sub_index == 2
    sly = {"harness": "command", "command": ["sh", "-c", "true"]}
    wish = Send(to="/ada/agent/arc/sub/2", body="be", create=sly)
    assert (await expect_refusal(arc.call(wish))).code == "forbidden"
    typo = Send(to="/ada/agent/arc/sub/2", body="be", create={"modle": "x"})
    assert (await expect_refusal(arc.call(typo))).code == "bad_request"
    below = Send(to="/ada/agent/none/sub/0", body="be", create={})
    assert (await expect_refusal(rig.operator(below))).code == "not_found"


@as_test
async def test_a_view_says_only_what_is_true(rig: Rig) -> None:
    made = await rig.register("arc")
    arc = await rig.agent("arc")
    sent = await rig.operator(Send(to="@arc", body="hello"))

    async def shown() -> Any:
        return await rig.operator(GetMessage(message_id=sent.message_id))

    accepted = await shown()
    assert [one.state for one in accepted.deliveries] == ["pending"]
    assert (accepted.read_by, accepted.replies) == ((), ())
    claimed = await arc.call(ClaimInbox())
    assert [one.state for one in (await shown()).deliveries] == ["leased"]
    await arc.call(AckInbox(delivery_ids=(claimed.items[0].delivered.id,)))
    taken = await shown()
    assert [one.state for one in taken.deliveries] == ["acked"]
    assert (taken.read_by, taken.replies) == ((), ())
    await arc.call(MarkRead(conversation_id=sent.conversation_id))
    assert (await shown()).read_by == (made.agent.id,)
    answer = await arc.call(Reply(in_reply_to=sent.message_id, body="hello yourself"))
    assert (await shown()).replies == (answer.message_id,)
    status = Send(to="@arc", body="by the way", kind=MessageKind.STATUS)
    assert [one.state for one in (await rig.operator(status)).deliveries] == ["pending"]


@pytest.mark.rows("R0-46", "R0-45", "R0-44")
@as_test
async def test_messages_come_oldest_first(rig: Rig) -> None:
    await rig.register("arc")
    for number in range(60):
        await rig.operator(Send(to="@arc", body=f"{number}"))
    first = await rig.operator(ListMessages(to="@arc"))
    assert [one.body for one in first.items] == [f"{number}" for number in range(50)]
    rest = await rig.operator(ListMessages(conversation=first.items[0].conversation_id, cursor=first.next))
    assert [one.body for one in rest.items] == [f"{number}" for number in range(50, 60)]
    assert rest.next is None
    newest = await rig.operator(ListMessages(to="@arc", newest=True, limit=3))
    assert [one.body for one in newest.items] == ["57", "58", "59"]
    wrong = (await rig.operator(Who(limit=1, all=True))).next
    assert (await expect_refusal(rig.operator(ListMessages(to="@arc", cursor=wrong)))).code == "bad_request"
    assert (await expect_refusal(rig.operator(ListMessages()))).code == "bad_request"
    await rig.register("hal")
    assert (await rig.operator(ListMessages(to="@hal"))).items == ()


@as_test
async def test_an_answer_belongs_to_its_conversation(rig: Rig) -> None:
    await rig.register("arc")
    await rig.register("hal")
    one = await rig.operator(Send(to="@arc", body="hello"))
    astray = Send(to="@hal", body="yes", in_reply_to=one.message_id)
    assert (await expect_refusal(rig.operator(astray))).code == "not_found"
    two = await rig.operator(Send(to="@arc", body="and?", in_reply_to=one.message_id))
    assert (await rig.operator(GetMessage(message_id=two.message_id))).in_reply_to == one.message_id


@as_test
async def test_only_redaction_changes_what_was_said(rig: Rig) -> None:
    await rig.register("arc")
    arc = await rig.agent("arc")
    sent = await rig.operator(Send(to="@arc", body="the passphrase is swordfish"))
    wish = RedactMessage(message_id=sent.message_id)
    assert (await expect_refusal(arc.call(wish))).code == "forbidden"
    gone = await rig.operator(wish)
    assert (gone.body, gone.redacted_at is not None) == ("", True)
    assert await rig.operator(wish) == gone
    assert (await rig.operator(Search(query="swordfish"))).items == ()
    assert "swordfish" not in repr(await rig.operator(ReadLog(limit=200)))
    item = (await arc.call(ListInbox())).items[0]
    assert item.message is not None
    assert item.message.body == ""
    assert (await expect_refusal(rig.operator(RedactMessage(message_id="msg_none")))).code == "not_found"


@as_test
async def test_a_redacted_answer_leaves_its_flight_too(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    asked = await rig.operator(MakeAsk(to="@parrot", body="swordfish", wait=20))
    view = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert view.output == "swordfish"
    for ident in (asked.message_id, view.output_message_id):
        await rig.operator(RedactMessage(message_id=ident or ""))
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).output == ""
    assert "swordfish" not in repr(await rig.operator(ReadLog(limit=200)))
    stored = await rig.broker._database.read(
        lambda store: [*store.execute("SELECT data FROM events UNION ALL SELECT data FROM flights")]
    )
    assert not [one for (one,) in stored if b"swordfish" in one]


@pytest.mark.rows("R3.1-36", "R3.1-37")
@as_test
async def test_one_key_is_one_deed(rig: Rig) -> None:
    await rig.register("arc")
    first = await rig.operator(Send(to="@arc", body="once", idempotency_key="k1"))
    again = await rig.operator(Send(to="@arc", body="once", idempotency_key="k1"))
    assert again == first
    assert len((await rig.operator(ListMessages(to="@arc"))).items) == 1
    problem = await expect_refusal(rig.operator(Send(to="@arc", body="twice", idempotency_key="k1")))
    assert (problem.code, problem.key, problem.operation) == ("key_reused", "k1", "send")
    refusal = Send(to="@nobody", body="x", idempotency_key="k2")
    assert (await expect_refusal(rig.operator(refusal))).code == "unknown_target"
    assert (await rig.operator(Send(to="@arc", body="x", idempotency_key="k2"))).message_id


@pytest.mark.rows("R0-7")
@as_test
async def test_a_key_is_its_actors_and_its_operations(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    one = await arc.call(Send(to="operator", body="from arc", idempotency_key="k"))
    two = await hal.call(Send(to="operator", body="from hal", idempotency_key="k"))
    assert one.message_id != two.message_id
    made = await arc.call(RegisterEndpoint(idempotency_key="k"))
    assert await arc.call(RegisterEndpoint(idempotency_key="k")) == made


@as_test
async def test_sixteen_at_once_under_one_key_are_one(rig: Rig) -> None:
    await rig.register("arc")
    wish = Send(to="@arc", body="once", idempotency_key="k")
    receipts = await asyncio.gather(*(rig.operator(wish) for _ in range(16)))
    assert len({one.message_id for one in receipts}) == 1


@pytest.mark.rows("R3.1-35")
def test_every_write_takes_a_key() -> None:
    writes = [request for request in REQUESTS if request.writes]
    without = {request.operation for request in writes if not issubclass(request, Write)}
    assert len(writes) > 30
    # A sign of life twice is a sign of life: there is nothing to do only once.
    assert without == {"endpoint.heartbeat"}


@pytest.mark.rows("R0-3")
@as_test
async def test_a_request_brings_no_id_of_its_own(rig: Rig) -> None:
    made = await rig.register("arc")
    sent = await rig.operator(Send(to="@arc", body="hello"))
    assert made.agent.id.startswith("agt_")
    assert sent.message_id.startswith("msg_")
    for request in REQUESTS:
        for name in ("id", "messageId", "agentId"):
            if request.writes and name not in _names(request):
                with pytest.raises(Refused) as caught:
                    decode({name: "agt_mine", **_fill_required(request)}, request)
                assert f"unknown field `{name}`" in caught.value.diagnostic.message


def _names(request: type[Any]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(request)]


def _fill_required(request: type[Any]) -> dict[str, Any]:
    """Something for every parameter that must be given."""
    return {field.encode_name: "x" for field in msgspec.structs.fields(request) if field.required}


@as_test
async def test_answers_go_where_the_sender_said(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    sent = await rig.operator(Send(to="@arc", body="tell hal", reply_to="@hal"))
    await arc.call(Reply(body="told", in_reply_to=sent.message_id))
    got = await hal.call(ListInbox())
    assert [item.message and item.message.body for item in got.items] == ["told"]
    assert (await rig.operator(ListInbox())).items == ()


@as_test
async def test_an_answer_that_nobody_would_read_is_not_parked(rig: Rig) -> None:
    arc = await rig.agent("arc")
    sent = await arc.call(Send(to="/ada/direct", body="bye"))
    await rig.operator(RetireAgent(address="@arc"))
    gone = await expect_refusal(rig.operator(Reply(body="wait", in_reply_to=sent.message_id)))
    assert gone.code == "retired_target"
