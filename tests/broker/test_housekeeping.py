"""What is done from time to time: leases that ran out, checks that are due, a machine that slept."""

from pathlib import Path

from scout.broker.upkeep import housekeeping
from scout.model.flight import FlightState
from scout.policy.limits import Gap, Periods
from scout.protocol.access import CreateCard, ShowCard
from scout.protocol.agents import ShowAgent
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.endpoints import Heartbeat
from scout.protocol.inbox import ClaimInbox, GetDelivery
from scout.protocol.talk import Search, Send
from tests.broker.rig import Rig, advance_clock, as_test, online_agent, read_log, run_scene


@as_test
async def test_a_lease_that_ran_out_makes_it_claimable_again(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.operator(Send(to="@arc", body="x"))
    ident = (await arc.call(ClaimInbox())).items[0].delivered.id
    await advance_clock(rig, 59)
    assert (await rig.operator(GetDelivery(delivery_id=ident))).state == "leased"
    await advance_clock(rig, 2)
    delivery = await rig.operator(GetDelivery(delivery_id=ident))
    assert (delivery.state, delivery.may_repeat) == ("pending", True)
    await advance_clock(rig, 3)
    again = (await arc.call(ClaimInbox())).items[0].delivered
    assert (again.id, again.attempts, again.may_repeat) == (ident, 2, True)


@as_test
async def test_after_a_sleep_everybody_has_one_grace_period(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.operator(Send(to="@arc", body="x"))
    ident = (await arc.call(ClaimInbox())).items[0].delivered.id
    rig.clock.ahead += 3600
    gap = Gap(seconds=3600, ended=rig.clock.now())
    await housekeeping.tidy(rig.broker, gap)
    assert (await rig.operator(GetDelivery(delivery_id=ident))).state == "leased"
    rig.clock.ahead += 91
    await housekeeping.tidy(rig.broker, gap)
    assert (await rig.operator(GetDelivery(delivery_id=ident))).state == "pending"


@as_test
async def test_a_silent_endpoint_is_stale_and_comes_back(rig: Rig) -> None:
    seat = await online_agent(rig)
    endpoint = (await rig.operator(ShowAgent(address="@live"))).endpoints[0]
    await advance_clock(rig, 301)
    assert (await rig.operator(ShowAgent(address="@live"))).endpoints[0].state == "stale"
    await seat.call(Heartbeat(endpoint_id=endpoint.id))
    assert (await rig.operator(ShowAgent(address="@live"))).endpoints[0].state == "idle"


@as_test
async def test_a_card_whose_time_is_over_is_expired(rig: Rig) -> None:
    card = await rig.operator(CreateCard(expires_in=60))
    await advance_clock(rig, 61)
    assert (await rig.operator(ShowCard(card_id=card.id))).state == "expired"


@as_test
async def test_an_open_flight_always_has_a_next_check_ever_later(rig: Rig) -> None:
    seat = await online_agent(rig)
    (endpoint,) = (await rig.operator(ShowAgent(address="@live"))).endpoints
    asked = await rig.operator(MakeAsk(to="@live", body="x"))
    pauses: list[int] = []
    for _ in range(9):
        view = await rig.operator(GetFlight(flight_id=asked.flight_id))
        assert view.state is FlightState.QUEUED
        assert view.next_check_at is not None
        pauses.append(round(view.next_check_at.since(rig.clock.now())))
        rig.clock.ahead += pauses[-1] + 1
        await seat.call(Heartbeat(endpoint_id=endpoint.id))
        await advance_clock(rig, 0)
    assert pauses == sorted(pauses)
    assert pauses[-1] == 3600
    assert len(await read_log(rig, "collab.flight")) == 10


def test_a_round_with_nothing_to_do_writes_nothing(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await online_agent(rig)
        await rig.operator(MakeAsk(to="@live", body="findable words"))
        await housekeeping.tidy(rig.broker)
        before = rig.broker.glance().last_seq()
        await housekeeping.tidy(rig.broker)
        await housekeeping.flush(rig.broker)
        assert rig.broker.glance().last_seq() == before
        found = await rig.operator(Search(query="findable"))
        assert len(found.items) == 1

    run_scene(scene, tmp_path, periods=Periods(wall_clock_gap=30))
