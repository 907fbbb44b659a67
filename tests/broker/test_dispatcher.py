"""Dispatch: counted before it is tried, tried a bounded number of times, one turn after the other."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scout.adapters.echo import Echo
from scout.model.delivery import InspectResult
from scout.model.events.asks import DeliveryRequested
from scout.model.events.envelope import get_record
from scout.model.flight import FlightState
from scout.model.problems.session import Layer
from scout.policy.limits import Limits, Periods
from scout.ports import Accepted, Capabilities, Completed, Failed, HarnessEvent, Prompt, SessionSpec, Started
from scout.protocol.agents import ShowAgent
from scout.protocol.asks import CancelFlight, GetFlight, MakeAsk
from scout.protocol.inbox import GetDelivery, ListDeliveries
from tests.broker.rig import (
    Rig,
    advance_clock,
    as_test,
    event_name,
    inbox_bodies,
    list_events,
    read_log,
    run_scene,
    wait_for_end,
    wait_until,
    write_program,
)


class Slow(Echo):
    """It begins when it is told to, and keeps what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.starts: list[str] = []
        self.prompts: list[str] = []
        self.interrupts: list[str] = []

    async def start(self, spec: SessionSpec) -> Started:
        self.starts.append(spec.session_id)
        await self.go.wait()
        return await super().start(spec)

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        self.prompts.append(prompt.delivery_id)
        async for event in super().deliver(spec, prompt):
            yield event

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        self.interrupts.append(delivery_id)
        return await super().interrupt(session_id, delivery_id)


class Odd(Echo):
    """An adapter with faults of its own."""

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        if prompt.body == "raise at once":
            raise OSError("no such thing")
        yield Accepted()
        if prompt.body == "raise":
            raise ValueError("an odd adapter")
        if prompt.body == "silence":
            return
        yield Failed(layer=Layer.PROVIDER, reason="overloaded")

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        raise OSError("cannot look")


def get_flight(rig: Rig, flight_id: str):
    return rig.operator(GetFlight(flight_id=flight_id))


@pytest.mark.rows("R2.2-51", "R3.3-19")
def test_an_attempt_is_counted_on_disk_before_the_adapter_hears_of_it(tmp_path: Path) -> None:
    seen: list[tuple[str, int, str]] = []

    class Looking(Echo):
        async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
            delivery = made[0].broker.glance()
            rows = delivery.connection.execute(
                "SELECT state, json_extract(data, '$.attempts'), flight_id FROM deliveries WHERE id = ?",
                (prompt.delivery_id.partition(".")[0],),
            ).fetchone()
            seen.append(rows)
            async for event in super().deliver(spec, prompt):
                yield event

    made: list[Rig] = []

    async def scene(rig: Rig) -> None:
        made.append(rig)
        await rig.register("parrot", harness="echo")
        asked = await rig.operator(MakeAsk(to="@parrot", body="x", wait=20))
        assert asked.output == "x"
        assert seen == [("leased", 1, asked.flight_id)]
        asked = await rig.operator(MakeAsk(to="@parrot", body="!refuse"))
        await wait_until(lambda: len(seen) == 2)
        await advance_clock(rig, 3)
        await wait_until(lambda: len(seen) == 3)
        assert [attempts for _, attempts, _ in seen] == [1, 1, 2]

    run_scene(scene, tmp_path, harnesses={"echo": Looking()})


@as_test
async def test_the_way_of_an_ask(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    asked = await rig.operator(MakeAsk(to="@parrot", body="!hang"))
    delivery = (await rig.operator(ListDeliveries(target="@parrot"))).items[0]
    await wait_until(lambda: running(rig, asked.flight_id))
    assert await list_events(rig, asked.flight_id) == ["flight.queued", "flight.updated", "flight.started"]
    assert await list_events(rig, delivery.id) == [
        "delivery.requested",
        "delivery.leased",
        "delivery.woken",
        "delivery.acked",
    ]
    waking = await read_log(rig, "collab.flight.updated")
    assert get_record(waking[0]).phase == "waking"
    view = await get_flight(rig, asked.flight_id)
    assert (view.attempts, view.may_repeat) == (1, False)
    assert view.session_id
    assert view.endpoint_id
    detail = await rig.operator(ShowAgent(address="@parrot"))
    assert [(one.state, one.id) for one in detail.endpoints] == [("working", view.endpoint_id)]


async def running(rig: Rig, flight_id: str) -> bool:
    return (await get_flight(rig, flight_id)).state is FlightState.RUNNING


def test_a_refusing_harness_is_tried_again_and_then_given_up(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo")
        asked = await rig.operator(MakeAsk(to="@parrot", body="!refuse the line is busy"))
        for attempt, pause in ((1, 2.0), (2, 4.0)):
            await wait_until(lambda: retrying(rig, asked.flight_id, attempt))  # noqa: B023 (awaited at once)
            view = await get_flight(rig, asked.flight_id)
            assert view.state is FlightState.QUEUED
            assert "the line is busy" in view.reason
            assert view.next_check_at is not None
            assert round(view.next_check_at.since(view.updated_at)) == pause
            await advance_clock(rig, pause - 1)
            assert (await get_flight(rig, asked.flight_id)).attempts == attempt
            await advance_clock(rig, 1.5)
        view = await wait_for_end(rig, asked.flight_id)
        assert (view.state, view.error and view.error.code) == (FlightState.FAILED, "wake_failed")
        assert view.error is not None
        assert "harness" in view.error.message
        assert "failed 3 times" in view.error.message
        assert "the line is busy" in view.error.message
        delivery = (await rig.operator(ListDeliveries(target="@parrot"))).items[0]
        assert (delivery.state, delivery.attempts) == ("dead_lettered", 3)
        assert len((await rig.operator(ShowAgent(address="@parrot"))).endpoints) == 1

    run_scene(scene, tmp_path, limits=Limits(attempts=3))


async def retrying(rig: Rig, flight_id: str, attempt: int) -> bool:
    view = await get_flight(rig, flight_id)
    return view.phase == "retrying" and view.attempts == attempt


@as_test
async def test_turns_of_an_agent_follow_each_other(rig: Rig) -> None:
    command = write_program(
        rig.home, "lines", 'cat >/dev/null; echo in >>"$WORK/l"; sleep 0.05; echo out >>"$WORK/l"; echo k'
    )
    await rig.register("serial", command=command)
    asks = [await rig.operator(MakeAsk(to="@serial", body=str(one))) for one in range(4)]
    for asked in asks:
        assert (await wait_for_end(rig, asked.flight_id)).output == "k"
    assert (rig.home / "l").read_text().split() == ["in", "out"] * 4
    assert len((await rig.operator(ShowAgent(address="@serial"))).sessions) == 1


@as_test
async def test_agents_do_not_wait_for_each_other(rig: Rig) -> None:
    text = 'cat >/dev/null; touch "$WORK/{0}"; until [ -e "$WORK/{1}" ]; do sleep 0.01; done; echo met'
    for me, other in (("left", "right"), ("right", "left")):
        await rig.register(me, command=write_program(rig.home, f"go-{me}", text.format(me, other)))
    asks = [await rig.operator(MakeAsk(to=f"@{name}", body="x")) for name in ("left", "right")]
    assert [(await wait_for_end(rig, one.flight_id)).output for one in asks] == ["met", "met"]


@pytest.mark.rows("R0-80", "R2.1-14")
def test_a_lease_is_renewed_while_a_program_begins(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        slow = rig.broker.services.harnesses["echo"]
        assert isinstance(slow, Slow)
        await rig.register("lazy", harness="echo")
        asked = await rig.operator(MakeAsk(to="@lazy", body="x"))
        await wait_until(lambda: slow.starts)
        delivery = (await rig.operator(ListDeliveries(target="@lazy"))).items[0]
        first = delivery.leased_until
        assert first is not None
        assert delivery.leased_by == "dispatcher"
        await wait_until(lambda: is_renewed(rig, delivery.id, first))
        slow.go.set()
        assert (await wait_for_end(rig, asked.flight_id)).output == "x"
        assert (await rig.operator(GetDelivery(delivery_id=delivery.id))).attempts == 1

    run_scene(scene, tmp_path, periods=Periods(lease=0.3), harnesses={"echo": Slow()})


async def is_renewed(rig: Rig, ident: str, first: int) -> bool:
    until_ = (await rig.operator(GetDelivery(delivery_id=ident))).leased_until
    return until_ is not None and until_ > first


def test_who_cancels_while_it_begins_has_nothing_delivered(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        slow = rig.broker.services.harnesses["echo"]
        assert isinstance(slow, Slow)
        await rig.register("lazy", harness="echo")
        asked = await rig.operator(MakeAsk(to="@lazy", body="x"))
        await wait_until(lambda: slow.starts)
        await rig.operator(CancelFlight(flight_id=asked.flight_id))
        slow.go.set()
        assert (await rig.operator(MakeAsk(to="@lazy", body="y", wait=20))).output == "y"
        assert len(slow.prompts) == 1

    run_scene(scene, tmp_path, harnesses={"echo": Slow()})


@pytest.mark.rows("R0-89", "R0-90")
@as_test
async def test_everything_after_the_commit_may_happen_twice(rig: Rig) -> None:
    command = write_program(rig.home, "counts", 'cat >/dev/null; echo run >>"$WORK/runs"; echo done')
    await rig.register("counts", command=command)
    asked = await rig.operator(MakeAsk(to="@counts", body="x"))
    request = next(one for one in await read_log(rig) if isinstance(one, DeliveryRequested))
    for _ in range(3):
        rig.broker.call_listeners([request])
    view = await wait_for_end(rig, asked.flight_id)
    rig.broker.call_listeners(await read_log(rig))
    await rig.operator(MakeAsk(to="@counts", body="y", wait=20))
    assert (rig.home / "runs").read_text().split() == ["run", "run"]
    assert (await get_flight(rig, asked.flight_id)).revision == view.revision
    # The same delivery once more at the port: the harness finds the turn, and starts nothing.
    harness = rig.broker.services.harnesses["command"]
    delivery = get_record(request)
    spec = SessionSpec(
        session_id=view.session_id or "", agent_id=delivery.target, address="@counts", command=command
    )
    again = Prompt(delivery_id=delivery.id, text="x", body="x")
    told = [event async for event in harness.deliver(spec, again)]
    assert isinstance(told[-1], Completed)
    assert (rig.home / "runs").read_text().split() == ["run", "run"]


def test_faults_of_an_adapter_end_the_turn_and_not_the_lane(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("strange", harness="echo")
        for body, code, words in (
            ("raise", "session_failed", "ValueError: an odd adapter"),
            ("silence", "session_failed", "stopped responding"),
            ("else", "session_failed", "overloaded"),
            ("raise at once", "wake_failed", "OSError: no such thing"),
        ):
            asked = await rig.operator(MakeAsk(to="@strange", body=body, wait=20))
            view = await wait_for_end(rig, asked.flight_id)
            assert view.error is not None
            assert (view.error.code, words in view.error.message) == (code, True), view.error
        detail = await rig.operator(ShowAgent(address="@strange"))
        assert [one.state for one in detail.endpoints] == ["idle"]
        assert len(await inbox_bodies(rig)) == 0

    run_scene(scene, tmp_path, harnesses={"echo": Odd()})


def test_what_cannot_even_be_prepared_is_given_up_with_a_reason(tmp_path: Path) -> None:
    class Foreign(Echo):
        capabilities = Capabilities(calls_back=True, starts_programs=False)

    async def scene(rig: Rig) -> None:
        await rig.register("foreign", harness="nobodys")  # there is no contract for such a harness
        asked = await rig.operator(MakeAsk(to="@foreign", body="x"))
        view = await wait_for_end(rig, asked.flight_id)
        assert view.error is not None
        assert (view.error.code, "nobodys" in view.error.message) == ("wake_failed", True)

    run_scene(scene, tmp_path, limits=Limits(attempts=1), harnesses={"nobodys": Foreign()})


@as_test
async def test_what_is_read_off_the_log_is_in_order(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    await asyncio.gather(*(rig.operator(MakeAsk(to="@parrot", body=str(n), wait=20)) for n in range(8)))
    events = await read_log(rig)
    assert [one.seq for one in events] == list(range(1, len(events) + 1))
    assert [event_name(one) for one in events].count("flight.completed") == 8
