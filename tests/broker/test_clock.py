"""A clock that was ahead and is put right: what was leased or put off at that time is bounded all the same."""

from collections.abc import AsyncIterator
from pathlib import Path

from scout.adapters.echo import Echo
from scout.broker.upkeep import housekeeping
from scout.model.delivery import DeliveryState
from scout.model.flight import FlightPhase, FlightState
from scout.model.problems.session import Layer
from scout.policy.limits import Periods
from scout.ports import Failed, HarnessEvent, Prompt, SessionSpec
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.inbox import ClaimInbox, GetDelivery, NackInbox
from scout.protocol.talk import Send
from tests.broker.rig import Rig, as_test, online_agent, run_scene, wait_for_end, wait_until

DAY = 86_400.0


@as_test
async def test_a_lease_of_a_clock_that_was_ahead_is_over(rig: Rig) -> None:
    seat = await online_agent(rig)
    await rig.operator(Send(to="@live", body="hi"))
    rig.clock.ahead = 3 * DAY
    assert len((await seat.call(ClaimInbox())).items) == 1
    rig.clock.ahead = 0
    await housekeeping.tidy(rig.broker)
    again = await seat.call(ClaimInbox(wait=10))
    assert [one.delivered.attempts for one in again.items] == [2]


@as_test
async def test_what_a_clock_that_was_ahead_has_put_off_is_due(rig: Rig) -> None:
    seat = await online_agent(rig)
    await rig.operator(Send(to="@live", body="hi"))
    rig.clock.ahead = DAY
    (item,) = (await seat.call(ClaimInbox())).items
    await seat.call(NackInbox(delivery_ids=(item.delivered.id,), problem="busy", retry_after=60))
    assert (await seat.call(ClaimInbox())).items == ()
    rig.clock.ahead = 0
    assert len((await seat.call(ClaimInbox())).items) == 1


class Flaky(Echo):
    """Takes nothing the first time."""

    tried = False

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        if not self.tried:
            self.tried = True
            yield Failed(layer=Layer.PROCESS, reason="not yet", again=True)
            return
        async for event in super().deliver(spec, prompt):
            yield event


def test_an_attempt_that_was_put_off_is_made_when_the_clock_is_put_right(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.clock.ahead = 3 * DAY
        await rig.register("late", harness="echo")
        asked = await rig.operator(MakeAsk(to="@late", body="go"))

        async def is_put_off() -> bool:
            view = await rig.operator(GetFlight(flight_id=asked.flight_id))
            return view.phase is FlightPhase.RETRYING

        await wait_until(is_put_off)
        rig.clock.ahead = 0
        rig.broker.dispatcher.check()
        assert (await wait_for_end(rig, asked.flight_id)).state is FlightState.COMPLETED

    run_scene(
        scene, tmp_path, harnesses={"echo": Flaky()}, periods=Periods(back_off_first=3000, back_off_most=3000)
    )


def test_a_delivery_that_is_given_back_waits_as_long_as_the_settings_say(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        seat = await online_agent(rig)
        await rig.operator(Send(to="@live", body="hi"))
        (item,) = (await seat.call(ClaimInbox())).items
        await seat.call(NackInbox(delivery_ids=(item.delivered.id,), problem="busy"))
        given_back = await rig.operator(GetDelivery(delivery_id=item.delivered.id))
        assert 59 < given_back.next_attempt_at.since(given_back.updated_at) <= 60
        rig.clock.ahead = 61
        await seat.call(ClaimInbox())
        rig.clock.ahead = 200
        await housekeeping.tidy(rig.broker)
        expired = await rig.operator(GetDelivery(delivery_id=item.delivered.id))
        assert expired.state is DeliveryState.PENDING
        assert 119 < expired.next_attempt_at.since(expired.updated_at) <= 120

    run_scene(scene, tmp_path, periods=Periods(back_off_first=60, back_off_most=600))
