"""Cards: return addresses with an end."""

from scout.broker.upkeep.housekeeping import tidy
from scout.model.card import CardState
from scout.protocol.access import CreateCard, ListCards, RevokeCard, ShowCard
from scout.protocol.inbox import ListInbox
from scout.protocol.talk import Send
from tests.broker.neighbours import open_seat, stranger
from tests.broker.rig import Rig, as_test, expect_refusal


@as_test
async def test_an_agents_card_is_for_one_use(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    card = await arc.call(CreateCard(name="call me"))
    assert (card.max_uses, card.uses) == (1, 0)
    sent = await hal.call(Send(to=card.id, body="you called"))
    assert sent.deliveries[0].target == card.agent_id
    used = await arc.call(ShowCard(card_id=card.id))
    assert (used.state, used.uses, used.cleanup_reason) == (CardState.USED, 1, "used up")
    problem = await expect_refusal(hal.call(Send(to=card.id, body="again")))
    assert problem.code == "expired_card"
    assert problem.remedies[0].parameters["to"] == "@arc"
    assert len((await arc.call(ListInbox())).items) == 1


@as_test
async def test_a_persons_card_is_not_limited_unless_said(rig: Rig) -> None:
    hal = await rig.agent("hal")
    card = await rig.operator(CreateCard())
    for _ in range(3):
        await hal.call(Send(to=card.id, body="hello"))
    assert (await rig.operator(ShowCard(card_id=card.id))).uses == 3
    twice = await rig.operator(CreateCard(max_uses=2))
    for _ in range(2):
        await hal.call(Send(to=twice.id, body="hello"))
    assert (await expect_refusal(hal.call(Send(to=twice.id, body="hello")))).code == "expired_card"
    for wrong in (0, -1):
        assert (await expect_refusal(rig.operator(CreateCard(max_uses=wrong)))).code == "bad_request"


@as_test
async def test_a_card_runs_out(rig: Rig) -> None:
    hal = await rig.agent("hal")
    card = await rig.operator(CreateCard(expires_in=60))
    await hal.call(Send(to=card.id, body="in time"))
    rig.clock.ahead += 61
    assert (await expect_refusal(hal.call(Send(to=card.id, body="late")))).code == "expired_card"
    await tidy(rig.broker)
    over = await rig.operator(ShowCard(card_id=card.id))
    assert (over.state, over.cleanup_reason) == (CardState.EXPIRED, "expired")


@as_test
async def test_who_made_a_card_takes_it_back(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    card = await arc.call(CreateCard())
    assert (await expect_refusal(hal.call(RevokeCard(card_id=card.id)))).code == "forbidden"
    revoked = await arc.call(RevokeCard(card_id=card.id, reason="done"))
    assert (revoked.state, revoked.cleanup_reason) == (CardState.REVOKED, "done")
    assert await rig.operator(RevokeCard(card_id=card.id)) == revoked
    assert (await expect_refusal(hal.call(Send(to=card.id, body="late")))).code == "expired_card"
    assert (await arc.call(ListCards())).items == (revoked,)
    assert (await hal.call(ListCards())).items == ()
    assert (await expect_refusal(hal.call(ShowCard(card_id="crd_nothing")))).code == "not_found"


@as_test
async def test_a_card_is_for_oneself_or_whom_one_controls(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.register("hal")
    assert (await expect_refusal(arc.call(CreateCard(agent="@hal")))).code == "forbidden"
    assert (await rig.operator(CreateCard(agent="@hal"))).agent_id


@as_test
async def test_a_card_reaches_whom_its_holder_may_not_see(rig: Rig) -> None:
    arc = await rig.agent("arc")
    bob = await stranger(rig)
    zed = await open_seat(rig, bob)
    card = await zed.call(CreateCard())
    sent = await arc.call(Send(to=card.id, body="you called"))
    assert sent.deliveries[0].target == bob.id
    got = (await zed.call(ListInbox())).items
    assert [item.message.body for item in got if item.message] == ["you called"]
    assert (await expect_refusal(arc.call(Send(to="@zed", body="again")))).code == "unknown_target"
