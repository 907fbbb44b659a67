"""The inbox: looked at, claimed for a while, acknowledged, given back, returned to its sender."""

import asyncio
from pathlib import Path

import pytest

from scout.broker.upkeep.housekeeping import tidy
from scout.model.delivery import DeliveryState
from scout.model.flight import FlightState
from scout.policy.limits import Limits
from scout.protocol.access import CreateToken
from scout.protocol.asks import GetFlight, IfUnreachable, MakeAsk
from scout.protocol.inbox import (
    AckInbox,
    ClaimInbox,
    GetDelivery,
    ListDeliveries,
    ListInbox,
    NackInbox,
    RenewInbox,
)
from scout.protocol.talk import GetMessage, Reply, Send
from tests.broker.neighbours import draw_requests
from tests.broker.rig import Rig, as_test, expect_refusal, run_scene


@pytest.mark.rows("R2.1-15")
@as_test
async def test_a_pulling_agent_holds_the_lease_itself(rig: Rig) -> None:
    made = await rig.register("arc")
    arc = await rig.agent("arc")
    for body in ("one", "two"):
        await rig.operator(Send(to="@arc", body=body))
    looked = await arc.call(ListInbox())
    assert [item.message.body for item in looked.items if item.message] == ["one", "two"]
    assert {item.delivered.state for item in looked.items} == {DeliveryState.PENDING}
    assert await arc.call(ListInbox()) == looked
    claimed = await arc.call(ClaimInbox())
    assert [item.delivered.leased_by for item in claimed.items] == [made.agent.id] * 2
    assert {item.delivered.attempts for item in claimed.items} == {1}
    assert (await arc.call(ClaimInbox())).items == ()
    ids = tuple(item.delivered.id for item in claimed.items)
    acked = await arc.call(AckInbox(delivery_ids=ids))
    assert {one.state for one in acked.items} == {DeliveryState.ACKED}
    assert (await arc.call(AckInbox(delivery_ids=ids))).items == acked.items
    assert (await arc.call(ListInbox())).items == ()
    everything = (await arc.call(ListInbox(all=True))).items
    assert [item.message.body for item in everything if item.message] == ["two", "one"]


@as_test
async def test_a_claim_takes_as_many_as_it_says(rig: Rig) -> None:
    arc = await rig.agent("arc")
    for number in range(5):
        await rig.operator(Send(to="@arc", body=f"{number}"))
    first = await arc.call(ClaimInbox(limit=2))
    rest = await arc.call(ClaimInbox())
    bodies = [item.message.body for item in (*first.items, *rest.items) if item.message]
    assert (len(first.items), bodies) == (2, ["0", "1", "2", "3", "4"])
    page = await arc.call(ListInbox(limit=2))
    after = await arc.call(ListInbox(limit=2, cursor=page.next))
    assert [item.message.body for item in after.items if item.message] == ["2", "3"]


@as_test
async def test_two_claims_at_once_never_get_the_same(rig: Rig) -> None:
    arc = await rig.agent("arc")
    for number in range(20):
        await rig.operator(Send(to="@arc", body=f"{number}"))
    claims = await asyncio.gather(*(arc.call(ClaimInbox(limit=3)) for _ in range(10)))
    got = [item.delivered.id for claim in claims for item in claim.items]
    assert len(got) == len(set(got)) == 20


@as_test
async def test_a_lease_that_ran_out_comes_back_as_a_possible_repeat(rig: Rig) -> None:
    arc = await rig.agent("arc")
    sent = await rig.operator(Send(to="@arc", body="hello"))
    first = (await arc.call(ClaimInbox())).items[0].delivered
    rig.clock.ahead += 59
    renewed = (await arc.call(RenewInbox(delivery_ids=(first.id,)))).items[0]
    assert (renewed.state, renewed.attempts) == (DeliveryState.LEASED, 1)
    rig.clock.ahead += 59
    await tidy(rig.broker)
    assert (await arc.call(ClaimInbox())).items == ()
    rig.clock.ahead += 2
    await tidy(rig.broker)
    again = await rig.operator(GetDelivery(delivery_id=first.id))
    assert (again.state, again.may_repeat) == (DeliveryState.PENDING, True)
    rig.clock.ahead += 3
    second = (await arc.call(ClaimInbox())).items[0].delivered
    assert (second.id, second.attempts, second.may_repeat) == (first.id, 2, True)
    receipt = (await rig.operator(GetMessage(message_id=sent.message_id))).deliveries[0]
    assert (receipt.attempts, receipt.may_repeat) == (2, True)


@as_test
async def test_only_the_holder_settles(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    await rig.operator(Send(to="@arc", body="hello"))
    ident = (await arc.call(ClaimInbox())).items[0].delivered.id
    settle = draw_requests(
        AckInbox(delivery_ids=(ident,)),
        NackInbox(delivery_ids=(ident,)),
        RenewInbox(delivery_ids=(ident,)),
    )
    for wish in settle:
        assert (await expect_refusal(hal.call(wish))).code == "not_owner"
        assert (await expect_refusal(rig.operator(wish))).code == "not_owner"
    await arc.call(settle[0])
    assert (await expect_refusal(arc.call(settle[1]))).code == "wrong_state"
    assert (await expect_refusal(arc.call(settle[2]))).code == "wrong_state"
    assert (await expect_refusal(arc.call(AckInbox(delivery_ids=("dlv_none",))))).code == "not_found"


@as_test
async def test_what_is_given_back_comes_again_when_its_target_says(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.operator(Send(to="@arc", body="hello"))
    ident = (await arc.call(ClaimInbox())).items[0].delivered.id
    back = await arc.call(NackInbox(delivery_ids=(ident,), retry_after=100, problem="busy"))
    assert (back.items[0].state, back.items[0].problem) == (DeliveryState.PENDING, "busy")
    assert not back.items[0].may_repeat
    rig.clock.ahead += 99
    assert (await arc.call(ClaimInbox())).items == ()
    rig.clock.ahead += 1
    assert len((await arc.call(ClaimInbox())).items) == 1
    never = NackInbox(delivery_ids=(ident,), retry_after=1e9)
    assert (await expect_refusal(arc.call(never))).code == "bad_request"


@pytest.mark.rows("R2.2-27", "R3.5-29")
@as_test
async def test_what_cannot_be_delivered_goes_back_to_its_sender(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    sent = await hal.call(Send(to="@arc", body="hello"))
    for attempt in range(1, 9):
        claimed = (await arc.call(ClaimInbox())).items
        assert [item.delivered.attempts for item in claimed] == [attempt]
        ids = tuple(item.delivered.id for item in claimed)
        await arc.call(NackInbox(delivery_ids=ids, retry_after=0, problem="cannot read"))
    notice = (await hal.call(ListInbox())).items[0]
    assert notice.message is not None
    assert (notice.message.in_reply_to, notice.sender) == (sent.message_id, "/system/broker")
    assert "@arc after 8 attempts: cannot read" in notice.message.body
    assert "try: scout send" in notice.message.body
    assert notice.message.conversation_id == sent.conversation_id
    assert (await arc.call(ClaimInbox())).items == ()
    dead = await rig.operator(ListDeliveries(target="@arc", state=DeliveryState.DEAD_LETTERED))
    assert [one.message_id for one in dead.items] == [sent.message_id]


def test_a_notice_that_bounces_is_not_noticed_again(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        arc, hal = await rig.agent("arc"), await rig.agent("hal")
        await hal.call(Send(to="@arc", body="hello"))
        for seat in (arc, hal):
            ident = (await seat.call(ClaimInbox())).items[0].delivered.id
            await seat.call(NackInbox(delivery_ids=(ident,)))
        for seat in (arc, hal, await rig.scout()):
            assert (await seat.call(ListInbox())).items == ()

    run_scene(scene, tmp_path, limits=Limits(attempts=1))


@as_test
async def test_a_claim_that_waits_wakes_up_when_something_comes(rig: Rig) -> None:
    arc = await rig.agent("arc")
    waiting = asyncio.create_task(arc.call(ClaimInbox(wait=30)))
    await asyncio.sleep(0)
    await rig.operator(Send(to="@arc", body="hello"))
    claimed = await asyncio.wait_for(waiting, 20)
    assert [item.message.body for item in claimed.items if item.message] == ["hello"]
    assert (await arc.call(ClaimInbox(wait=0.01))).items == ()


@as_test
async def test_a_claim_under_a_key_gives_the_same_again_once_it_gave_something(rig: Rig) -> None:
    arc = await rig.agent("arc")
    wish = ClaimInbox(idempotency_key="k", wait=30)
    assert (await arc.call(ClaimInbox(idempotency_key="k"))).items == ()
    waiting = asyncio.create_task(arc.call(wish))
    await asyncio.sleep(0)
    await rig.operator(Send(to="@arc", body="hello"))
    claimed = await asyncio.wait_for(waiting, 20)
    assert len(claimed.items) == 1
    assert await arc.call(wish) == claimed
    assert (await arc.call(ClaimInbox())).items == ()


@as_test
async def test_a_lease_is_held_by_the_credential_it_was_given_to(rig: Rig) -> None:
    arc = await rig.agent("arc")
    other = await rig.scout((await rig.operator(CreateToken(agent="@arc"))).secret)
    await rig.operator(Send(to="@arc", body="hello"))
    ident = (await arc.call(ClaimInbox())).items[0].delivered.id
    assert (await other.call(AckInbox(delivery_ids=(ident,)))).items[0].state is DeliveryState.ACKED


@as_test
async def test_a_delivery_is_shown_to_its_two_and_to_those_above(rig: Rig) -> None:
    arc, hal, eve = await rig.agent("arc"), await rig.agent("hal"), await rig.agent("eve")
    sent = await hal.call(Send(to="@arc", body="hello"))
    look = GetDelivery(delivery_id=sent.deliveries[0].delivery_id)
    for seat in (arc, hal, await rig.scout()):
        assert (await seat.call(look)).id == sent.deliveries[0].delivery_id
    assert (await expect_refusal(eve.call(look))).code == "forbidden"
    assert len((await arc.call(ListDeliveries())).items) == 1


@as_test
async def test_what_scout_carries_itself_is_not_for_the_taking(rig: Rig) -> None:
    arc = await rig.agent("arc")
    asked = await rig.operator(MakeAsk(to="@arc", body="work", if_unreachable=IfUnreachable.QUEUE))
    claimed = (await arc.call(ClaimInbox())).items
    assert [item.delivered.flight_id for item in claimed] == [asked.flight_id]
    await arc.call(AckInbox(delivery_ids=(claimed[0].delivered.id,)))
    running = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert running.state is FlightState.RUNNING
    await arc.call(Reply(in_reply_to=asked.flight_id, body="done"))
    done = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert (done.state, done.output) == (FlightState.COMPLETED, "done")
