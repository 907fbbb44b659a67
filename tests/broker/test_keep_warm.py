"""Wake policies: started by hand, on demand, or kept warm without a restart loop."""

import asyncio
from pathlib import Path

import pytest

from scout.adapters.command import Command
from scout.adapters.echo import Echo
from scout.base.refusal import Refused
from scout.model.agent import WakePolicy
from scout.model.ask import SessionPolicy
from scout.model.endpoint import Endpoint, EndpointState, Transport
from scout.model.flight import FlightState
from scout.model.problems.session import HarnessUnavailable, Missing
from scout.policy.limits import Limits
from scout.ports import SessionSpec, Started
from scout.protocol.agents import ConfigureAgent, RetireAgent, ShowAgent
from scout.protocol.asks import CompleteFlight, GetFlight, MakeAsk, StartFlight
from scout.protocol.attention import ListAttention
from scout.protocol.endpoints import Heartbeat, RegisterEndpoint, RemoveEndpoint, UpdateEndpoint
from scout.protocol.inbox import ClaimInbox
from scout.protocol.sessions import ListSessions
from tests.broker.rig import (
    Rig,
    advance_clock,
    as_test,
    list_events,
    open_rig,
    run_scene,
    wait_for_end,
    wait_until,
    write_program,
)


class Weak(Echo):
    """It cannot be started so many times, then it can."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures
        self.starts: list[str] = []

    async def start(self, spec: SessionSpec) -> Started:
        self.starts.append(spec.session_id)
        if len(self.starts) <= self.failures:
            raise Refused(HarnessUnavailable(harness="echo", missing=Missing.LOGIN, hint="log in first"))
        return await super().start(spec)


async def ways(rig: Rig, name: str) -> list[Endpoint]:
    """The endpoints of an agent that are in use."""
    shown = await rig.operator(ShowAgent(address=f"@{name}"))
    return [one for one in shown.endpoints if one.state in (EndpointState.IDLE, EndpointState.WORKING)]


async def warm(rig: Rig, name: str) -> Endpoint:
    """The endpoint of an agent once it is up; nothing is asked of it."""

    async def is_up() -> Endpoint | None:
        found = await ways(rig, name)
        return found[0] if found else None

    await rig.broker.warm_keeper.check()
    return await wait_until(is_up)


async def wait_for_tries(rig: Rig, harness: Weak, count: int) -> None:
    """The so-manieth start was made, and what came of it is stored."""
    await wait_until(lambda: len(harness.starts) == count)
    await wait_until(lambda: not rig.broker.dispatcher.lanes)


# -- kept warm -----------------------------------------------------------------------------------------


@pytest.mark.rows("R3.3-14", "R3.3-15")
@pytest.mark.parametrize("harness", ["echo", "command"])
def test_an_agent_that_is_kept_warm_has_a_session_before_anybody_asks(tmp_path: Path, harness: str) -> None:
    async def scene(rig: Rig) -> None:
        command = write_program(tmp_path, "parrot", "cat") if harness == "command" else None
        made = await rig.register("parrot", harness=harness, command=command, wake_policy="keep_warm")
        up = await warm(rig, "parrot")
        assert (up.state, up.held, up.harness) == (EndpointState.IDLE, True, harness)
        assert up.session_id is not None
        assert (await list_events(rig, up.id)) == ["endpoint.registered", "endpoint.waking", "endpoint.ready"]
        assert (await list_events(rig, up.session_id)) == ["session.started", "session.ready"]
        asked = await rig.operator(MakeAsk(to="@parrot", body="hello", wait=20))
        assert (asked.output, asked.session_id) == ("hello", up.session_id)
        assert [one.id for one in await ways(rig, "parrot")] == [up.id]
        assert made.agent.config.wake_policy is WakePolicy.KEEP_WARM

    run_scene(scene, tmp_path)


@pytest.mark.rows("R3.3-13")
@as_test
async def test_on_demand_starts_nothing_before_there_is_something(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    await advance_clock(rig, 600)
    assert (await rig.operator(ShowAgent(address="@parrot"))).endpoints == ()
    assert (await rig.operator(MakeAsk(to="@parrot", body="x", wait=20))).output == "x"
    assert len(await ways(rig, "parrot")) == 1


@as_test
async def test_it_comes_back_after_its_session_ended(rig: Rig) -> None:
    await rig.register("parrot", harness="echo", wake_policy="keep_warm")
    first = await warm(rig, "parrot")
    await advance_clock(rig, 400)  # it has lasted
    await rig.operator(RemoveEndpoint(endpoint_id=first.id))
    second = await warm(rig, "parrot")
    assert second.id != first.id
    assert second.session_id != first.session_id


@as_test
async def test_a_change_of_its_config_counts_at_once(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    await rig.operator(ConfigureAgent(address="@parrot", config={"wakePolicy": "keep_warm"}))
    up = await warm(rig, "parrot")
    await rig.operator(ConfigureAgent(address="@parrot", config={"wakePolicy": "on_demand"}))
    await rig.operator(RemoveEndpoint(endpoint_id=up.id))
    await advance_clock(rig, 600)
    assert await ways(rig, "parrot") == []


def test_it_is_there_again_when_the_broker_starts(tmp_path: Path) -> None:
    async def play() -> None:
        async with open_rig(tmp_path) as one:
            await one.register("parrot", harness="echo", wake_policy="keep_warm")
            up = await warm(one, "parrot")
            await one.operator(RemoveEndpoint(endpoint_id=up.id))
        async with open_rig(tmp_path) as two:
            found = await wait_until(lambda: ways(two, "parrot"))
            assert [one.state for one in found] == [EndpointState.IDLE]
        async with open_rig(tmp_path) as three:
            assert [one.id for one in await ways(three, "parrot")] == [one.id for one in found]

    asyncio.run(play())


@as_test
async def test_an_endpoint_may_say_so_for_its_agent(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    parrot = await rig.agent("parrot")
    own = await parrot.call(
        RegisterEndpoint(transport=Transport.PULL, state=EndpointState.IDLE, wake_policy=WakePolicy.KEEP_WARM)
    )
    await rig.broker.warm_keeper.check()
    assert [one.id for one in await ways(rig, "parrot")] == [own.id]
    await advance_clock(rig, 400)  # nobody has heard of it since
    up = await warm(rig, "parrot")
    assert (up.held, up.wake_policy) == (True, WakePolicy.KEEP_WARM)
    await parrot.call(RemoveEndpoint(endpoint_id=own.id))
    await advance_clock(rig, 400)
    await rig.operator(UpdateEndpoint(endpoint_id=up.id, state=EndpointState.FAILED, reason="it broke"))
    again = await warm(rig, "parrot")
    assert (again.id != up.id, again.wake_policy) == (True, WakePolicy.KEEP_WARM)


@as_test
async def test_what_was_made_for_one_ask_does_not_count_as_warm(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    await rig.operator(MakeAsk(to="@parrot", body="x", session_policy=SessionPolicy.NEW, wait=20))
    assert [one.isolated_for is None for one in await ways(rig, "parrot")] == [False]
    await rig.operator(ConfigureAgent(address="@parrot", config={"wakePolicy": "keep_warm"}))
    await rig.broker.warm_keeper.check()
    assert await wait_until(lambda: _list_shared(rig))


async def _list_shared(rig: Rig) -> list[Endpoint]:
    return [one for one in await ways(rig, "parrot") if one.isolated_for is None]


@as_test
async def test_neither_a_person_nor_a_retired_agent_is_started(rig: Rig) -> None:
    await rig.register("gone", harness="echo", wake_policy="keep_warm")
    await rig.operator(RetireAgent(address="@gone"))
    config = {"harness": "echo", "wakePolicy": "keep_warm"}
    await rig.operator(ConfigureAgent(address="/ada/direct", config=config))
    await advance_clock(rig, 10)
    assert rig.broker.dispatcher.lanes == 0
    assert (await rig.operator(ShowAgent(address="/ada/direct"))).endpoints == ()
    assert await ways(rig, "gone") == []


# -- not for ever ----------------------------------------------------------------------------------------


def test_a_start_that_fails_is_tried_again_after_growing_pauses(tmp_path: Path) -> None:
    weak = Weak(failures=3)

    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo", wake_policy="keep_warm")
        await rig.broker.warm_keeper.check()
        await wait_for_tries(rig, weak, 1)
        for number, pause in enumerate((2, 4, 8), start=2):
            await advance_clock(rig, pause - 1.8)
            assert len(weak.starts) == number - 1
            await advance_clock(rig, 1.9)
            await wait_for_tries(rig, weak, number)
        assert [one.state for one in await ways(rig, "parrot")] == [EndpointState.IDLE]
        states = [one.state for one in (await rig.operator(ListSessions())).items]
        assert states == ["live", "ended", "ended", "ended"]  # none is left as starting
        assert (await rig.operator(ListAttention())).items == ()

    run_scene(scene, tmp_path, harnesses={"echo": weak})


@pytest.mark.rows("R3.3-18")
def test_when_the_tries_are_used_up_the_operator_is_told_once_and_it_rests(tmp_path: Path) -> None:
    weak = Weak(failures=100)

    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo", wake_policy="keep_warm")
        await rig.broker.warm_keeper.check()
        await wait_for_tries(rig, weak, 1)
        for _ in range(20):
            await advance_clock(rig, 301)
            await wait_until(lambda: not rig.broker.dispatcher.lanes)
        assert len(weak.starts) == 4
        needs = (await rig.operator(ListAttention())).items
        assert [(one.kind, one.title) for one in needs] == [("failure", "@parrot cannot be kept warm")]
        assert "failed 4 times, last in the harness: echo is not available" in needs[0].body
        assert "scout doctor" in needs[0].body
        assert "--set wakePolicy=on_demand" in needs[0].body
        config = {"description": "it is mended"}
        weak.failures = 0
        await rig.operator(ConfigureAgent(address="@parrot", config=config))
        assert (await warm(rig, "parrot")).state is EndpointState.IDLE

    run_scene(scene, tmp_path, harnesses={"echo": weak}, limits=Limits(attempts=4))


@pytest.mark.rows("R3.3-18")
def test_a_session_that_ends_at_once_every_time_is_no_reason_for_endless_starts(tmp_path: Path) -> None:
    weak = Weak(failures=0)

    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo", wake_policy="keep_warm")
        await rig.broker.warm_keeper.check()
        for _ in range(20):
            await wait_until(lambda: not rig.broker.dispatcher.lanes)
            for one in await ways(rig, "parrot"):
                await rig.operator(RemoveEndpoint(endpoint_id=one.id))
            await advance_clock(rig, 1)  # it is seen to be gone
            await advance_clock(rig, 298)
        assert len(weak.starts) == 4
        needs = (await rig.operator(ListAttention())).items
        assert ["ended soon after it began" in one.body for one in needs] == [True]

    run_scene(scene, tmp_path, harnesses={"echo": weak}, limits=Limits(attempts=4))


def test_that_nothing_can_run_it_is_said_and_not_hidden(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("parrot", wake_policy="keep_warm")
        for _ in range(3):
            await advance_clock(rig, 301)
            await wait_until(lambda: not rig.broker.dispatcher.lanes)
        needs = (await rig.operator(ListAttention())).items
        assert ["no harness is set for it" in one.body for one in needs] == [True]

    run_scene(scene, tmp_path, limits=Limits(attempts=2))


@pytest.mark.rows("R3.3-18")
def test_another_harness_is_used_once_it_is_set(tmp_path: Path) -> None:
    weak = Weak(failures=100)

    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo", wake_policy="keep_warm")
        await rig.broker.warm_keeper.check()
        await wait_for_tries(rig, weak, 1)
        cat = list(write_program(tmp_path, "parrot", "cat"))
        await rig.operator(ConfigureAgent(address="@parrot", config={"harness": "command", "command": cat}))
        up = await warm(rig, "parrot")
        assert up.harness == "command"

    run_scene(scene, tmp_path, harnesses={"echo": weak, "command": Command(tmp_path / "sessions")})


class Stuck(Echo):
    """Its start takes for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def start(self, spec: SessionSpec) -> Started:
        self.reached.set()
        await asyncio.Event().wait()
        return await super().start(spec)


def test_a_start_in_the_middle_of_which_the_broker_ended_is_no_endpoint_that_wakes_for_ever(
    tmp_path: Path,
) -> None:
    stuck = Stuck()

    async def dies(rig: Rig) -> None:
        await rig.register("parrot", harness="echo", wake_policy="keep_warm")
        await rig.broker.warm_keeper.check()
        await stuck.reached.wait()
        shown = await rig.operator(ShowAgent(address="@parrot"))
        assert [one.state for one in shown.endpoints] == [EndpointState.WAKING]

    async def lives(rig: Rig) -> None:
        await warm(rig, "parrot")
        shown = await rig.operator(ShowAgent(address="@parrot"))
        assert [one.state for one in shown.endpoints] == [EndpointState.STOPPED, EndpointState.IDLE]
        live, gone = (await rig.operator(ListSessions())).items
        assert (live.state, gone.state) == ("live", "ended")
        assert gone.reason == "it did not start: the broker was restarted"

    run_scene(dies, tmp_path, harnesses={"echo": stuck})
    run_scene(lives, tmp_path)


# -- by hand -------------------------------------------------------------------------------------------


@pytest.mark.rows("R3.3-12")
@as_test
async def test_what_is_held_for_a_start_by_hand_drains_once_its_session_is_there(rig: Rig) -> None:
    await rig.register("byhand", harness="echo", wake_policy="manual")
    asks = [await rig.operator(MakeAsk(to="@byhand", body=text)) for text in ("one", "two")]
    for asked in asks:
        view = await rig.operator(GetFlight(flight_id=asked.flight_id))
        assert (view.state, view.phase) == (FlightState.QUEUED, "held")
        assert "scout session start --agent @byhand --harness echo" in view.reason
        assert view.next_move_owner_id == rig.broker.services.operator_agent
    byhand = await rig.agent("byhand")
    endpoint = await byhand.call(RegisterEndpoint(transport=Transport.PULL, state=EndpointState.IDLE))

    async def is_free() -> bool:
        views = [await rig.operator(GetFlight(flight_id=one.flight_id)) for one in asks]
        return all(
            (one.phase, one.waiting_on, one.next_move_owner_id) == ("accepted", None, one.target)
            for one in views
        )

    assert await wait_until(is_free)
    claimed = await byhand.call(ClaimInbox(limit=10))
    assert [one.message and one.message.body for one in claimed.items] == ["one", "two"]
    for asked in asks:
        await byhand.call(StartFlight(flight_id=asked.flight_id))
        await byhand.call(CompleteFlight(flight_id=asked.flight_id, output="done"))
        assert (await wait_for_end(rig, asked.flight_id)).output == "done"
    await byhand.call(Heartbeat(endpoint_id=endpoint.id))
    third = await rig.operator(MakeAsk(to="@byhand", body="three"))
    assert third.phase == "accepted"  # it is there: nobody has to start it


@pytest.mark.rows("R3.3-12")
@as_test
async def test_what_is_held_goes_on_when_it_need_not_be_started_by_hand_any_more(rig: Rig) -> None:
    await rig.register("byhand", harness="echo", wake_policy="manual")
    asks = [await rig.operator(MakeAsk(to="@byhand", body=text)) for text in ("one", "two")]
    await advance_clock(rig, 3700)
    assert (await rig.operator(GetFlight(flight_id=asks[0].flight_id))).phase == "held"
    await rig.operator(ConfigureAgent(address="@byhand", config={"wakePolicy": "on_demand"}))
    assert [(await wait_for_end(rig, one.flight_id)).output for one in asks] == ["one", "two"]


@as_test
async def test_a_session_of_another_asker_does_not_start_what_is_started_by_hand(rig: Rig) -> None:
    await rig.register("byhand", harness="echo")
    await rig.operator(MakeAsk(to="@byhand", body="x", session_policy=SessionPolicy.NEW, wait=20))
    await rig.operator(ConfigureAgent(address="@byhand", config={"wakePolicy": "manual"}))
    asked = await rig.operator(MakeAsk(to="@byhand", body="y"))
    assert asked.phase == "held"
