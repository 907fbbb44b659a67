"""Waiting for a change: it ends at the change or when the time is over, and never ends the work."""

import asyncio
import time
from pathlib import Path

import pytest

from scout.model.flight import Flight, FlightState
from scout.policy.limits import Periods
from scout.protocol.asks import CompleteFlight, GetFlight, MakeAsk, StartFlight
from scout.protocol.inbox import AckInbox, ClaimInbox, NackInbox
from scout.protocol.talk import Send
from scout.store.ledger import LAST
from tests.broker.rig import Rig, as_test, expect_refusal, inbox_bodies, online_agent, run_scene, wait_until


@pytest.mark.rows("R2.2-44")
@as_test
async def test_who_stops_waiting_leaves_the_flight_running(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    seat = await rig.scout()
    waiting = asyncio.create_task(seat.call(MakeAsk(to="@parrot", body="!hang", wait=30)))
    flight = await wait_until(lambda: newest(rig))
    mine = f"{flight} {rig.broker.services.operator_agent}"
    await wait_until(lambda: rig.broker.waiters.is_awaited(mine))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert not rig.broker.waiters.is_awaited(mine)
    assert (await rig.operator(GetFlight(flight_id=flight))).state is FlightState.RUNNING
    short = await rig.operator(GetFlight(flight_id=flight, wait=0.05))
    assert short.state is FlightState.RUNNING


def newest(rig: Rig) -> str | None:
    found = rig.broker.glance().many(Flight, "flights_all", before=LAST, limit=1)
    return found[0].id if found and found[0].started_at is not None else None


@as_test
async def test_a_wait_ends_at_the_change(rig: Rig) -> None:
    seat = await online_agent(rig)
    asked = await rig.operator(MakeAsk(to="@live", body="x"))
    first = await rig.operator(GetFlight(flight_id=asked.flight_id))
    seen = GetFlight(flight_id=asked.ask_id, wait=20, seen=first.revision)
    waiting = [
        asyncio.create_task(rig.operator(one)) for one in (seen, GetFlight(flight_id=asked.ask_id, wait=20))
    ]
    await wait_until(lambda: rig.broker.waiters.is_awaited(f"flight:{asked.flight_id}"))
    await wait_until(lambda: rig.broker.waiters.is_awaited(f"end of {asked.flight_id}"))
    await seat.call(StartFlight(flight_id=asked.flight_id))
    changed = await waiting[0]
    assert changed.state is FlightState.RUNNING
    assert not waiting[1].done()
    await seat.call(CompleteFlight(flight_id=asked.flight_id, output="y"))
    assert (await waiting[1]).output == "y"
    at_once = await rig.operator(GetFlight(flight_id=asked.flight_id, wait=20, seen=first.revision))
    assert at_once.output == "y"


def test_a_wait_is_never_longer_than_the_longest(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("byhand", harness="echo", wake_policy="manual")
        asked = await rig.operator(MakeAsk(to="@byhand", body="x", wait=1000))
        assert (asked.state, asked.phase) == ("queued", "held")
        arc = await rig.agent("arc")
        assert (await arc.call(ClaimInbox(wait=1000))).items == ()

    run_scene(scene, tmp_path, periods=Periods(long_poll=0.05))


@pytest.mark.rows("R0-12")
@pytest.mark.parametrize("hours", [-5, 5])
def test_a_wait_is_not_shortened_or_stretched_by_the_wall_clock(tmp_path: Path, hours: int) -> None:
    async def scene(rig: Rig) -> None:
        arc = await rig.agent("arc")
        began = time.monotonic()
        waiting = asyncio.create_task(arc.call(ClaimInbox(wait=0.3)))
        await asyncio.sleep(0)
        rig.clock.ahead += 3600 * hours
        assert (await waiting).items == ()
        assert 0.25 <= time.monotonic() - began < 10

    run_scene(scene, tmp_path)


@as_test
async def test_a_claim_waits_for_what_comes(rig: Rig) -> None:
    arc = await rig.agent("arc")
    waiting = asyncio.create_task(arc.call(ClaimInbox(wait=20)))
    key = f"inbox {arc.who.actor.agent_id}"
    await wait_until(lambda: rig.broker.waiters.is_awaited(key))
    await rig.operator(Send(to="@arc", body="hello"))
    claimed = await waiting
    assert [item.message and item.message.body for item in claimed.items] == ["hello"]
    assert not rig.broker.waiters.is_awaited(key)
    ident = claimed.items[0].delivered.id
    await arc.call(NackInbox(delivery_ids=(ident,), retry_after=0.1))
    again = await arc.call(ClaimInbox(wait=20))  # it becomes due without any news
    assert [item.delivered.id for item in again.items] == [ident]
    await arc.call(AckInbox(delivery_ids=(ident,)))


@as_test
async def test_an_asker_whose_wait_is_over_is_told(rig: Rig) -> None:
    asker = await rig.agent("asker")
    await rig.register("parrot", harness="echo")
    waiting = asyncio.create_task(asker.call(MakeAsk(to="@parrot", body="!hang", wait=30)))
    flight = await wait_until(lambda: newest(rig))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    harness = rig.broker.services.harnesses["echo"]
    view = await rig.operator(GetFlight(flight_id=flight))
    await harness.stop(view.session_id or "")
    await wait_until(lambda: inbox_bodies(rig, "asker"))
    assert "interrupted" in (await inbox_bodies(rig, "asker"))[0]


@as_test
async def test_a_key_is_for_the_ask_and_not_for_the_wait(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    first = await rig.operator(MakeAsk(to="@parrot", body="x", idempotency_key="k", wait=20))
    again = await rig.operator(MakeAsk(to="@parrot", body="x", idempotency_key="k", wait=1))
    assert (again.flight_id, again.output) == (first.flight_id, "x")
    assert (await rig.operator(MakeAsk(to="@parrot", body="x", idempotency_key="k"))).ask_id == first.ask_id
    told = await expect_refusal(rig.operator(MakeAsk(to="@parrot", body="y", idempotency_key="k")))
    assert told.code == "key_reused"
