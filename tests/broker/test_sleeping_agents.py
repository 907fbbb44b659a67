"""Agents that sleep: they let their sessions go, and whatever needs them finds them where they were."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.upkeep import housekeeping
from scout.model.agent import Lifecycle, WakePolicy
from scout.model.attention import AttentionKind
from scout.model.endpoint import EndpointState, Transport
from scout.model.events.presence import AgentEvent
from scout.model.session import SessionState
from scout.model.status import AgentStatus
from scout.protocol.agents import AgentDetail, ConfigureAgent, RetireAgent, ShowAgent, Who
from scout.protocol.asks import CompleteFlight, GetFlight, MakeAsk
from scout.protocol.attention import RaiseAttention
from scout.protocol.endpoints import Heartbeat, RegisterEndpoint
from scout.protocol.enrolment import Enrol
from scout.protocol.inbox import AckInbox, ClaimInbox
from scout.protocol.sessions import GetSession, ListSessions, OpenSession, StartSession, Wake
from scout.protocol.talk import Send
from tests.broker.kept import ABLE
from tests.broker.rig import (
    Rig,
    advance_clock,
    as_test,
    event_name,
    online_agent,
    read_log,
    run_scene,
    wait_for_end,
    wait_until,
)
from tests.broker.test_records import Cast

IDLE = 301.0


async def show_agent(rig: Rig, name: str = "ken") -> AgentDetail:
    return await rig.operator(ShowAgent(address=f"@{name}"))


async def asleep(rig: Rig, name: str = "ken") -> bool:
    return (await show_agent(rig, name)).lifecycle is Lifecycle.SLEEPING


async def answer(rig: Rig, body: str, name: str = "ken", **more: Any) -> str | None:
    asked = await rig.operator(MakeAsk(to=f"@{name}", body=body, **more))
    told = (await wait_for_end(rig, asked.flight_id)).output
    await wait_until(lambda: not rig.broker.dispatcher.lanes)
    return told


async def story(rig: Rig, name: str = "ken") -> list[tuple[str, str]]:
    """The moves of an agent, with their reasons."""
    ident = (await show_agent(rig, name)).id
    facts = [one for one in await read_log(rig, "collab.agent") if isinstance(one, AgentEvent)]
    return [(event_name(one), one.payload.reason) for one in facts if one.target.id == ident]


# -- falling asleep and waking ---------------------------------------------------------------------------


@as_test
@pytest.mark.rows("R2.2-9")
async def test_an_idle_agent_sleeps_offline_with_its_session_let_go_and_the_next_ask_wakes_it(
    rig: Rig,
) -> None:
    await rig.register("ken", harness="echo")
    await answer(rig, "one")
    await advance_clock(rig, IDLE - 10)
    assert (await show_agent(rig)).status is AgentStatus.ONLINE
    await advance_clock(rig, 10)
    await advance_clock(rig, 1)
    view = await show_agent(rig)
    assert (view.lifecycle, view.status) == (Lifecycle.SLEEPING, AgentStatus.OFFLINE)
    assert view.sleeping_since == view.updated_at
    (session,) = view.sessions
    assert (session.state, session.reason) == (SessionState.ENDED, "its agent sleeps")
    assert view.endpoints[0].state is EndpointState.STALE
    assert (await rig.operator(Who(online=True))).items == ()
    moves = await story(rig)
    assert moves[-1][0] == "agent.sleeping"
    assert moves[-1][1].startswith("idle since ")

    assert await answer(rig, "two") == "two"
    view = await show_agent(rig)
    assert (view.lifecycle, view.sleeping_since, view.status) == (Lifecycle.ACTIVE, None, AgentStatus.ONLINE)
    assert [one.id for one in view.sessions] == [session.id]
    assert [one.id for one in view.endpoints] == [view.endpoints[0].id]
    assert (await story(rig))[-1][0] == "agent.woken"


@as_test
async def test_who_sleeps_writes_nothing_more_and_unread_mail_keeps_nobody_awake(rig: Rig) -> None:
    await rig.register("ken")
    await rig.operator(Send(to="@ken", body="for later"))
    await advance_clock(rig, IDLE)
    assert await asleep(rig)
    seen = rig.broker.cache.last_seq
    for _ in range(3):
        await advance_clock(rig, IDLE)
    assert rig.broker.cache.last_seq == seen
    await rig.operator(Send(to="@ken", body="and this"))
    assert await asleep(rig)
    assert (await show_agent(rig)).unread == 2


@as_test
async def test_registering_again_a_deed_of_its_own_and_a_sign_of_life_wake_it(rig: Rig) -> None:
    ken = await rig.agent("ken")
    way = await ken.call(RegisterEndpoint(transport=Transport.PULL, state=EndpointState.IDLE))
    await advance_clock(rig, IDLE)
    assert await asleep(rig)
    await rig.operator(ConfigureAgent(address="@ken", config={"description": "sleeps"}))
    assert await asleep(rig)
    for wake in (
        lambda: rig.register("ken"),
        lambda: ken.call(Send(to="@ken", body="to myself")),
        lambda: ken.call(Heartbeat(endpoint_id=way.id)),
    ):
        await wake()
        assert not await asleep(rig)
        await advance_clock(rig, IDLE)
        await advance_clock(rig, IDLE)
        assert await asleep(rig)


@as_test
async def test_wake_and_a_message_that_starts_a_program_wake_it(rig: Rig) -> None:
    await rig.register("ken", harness="echo")
    session = (await rig.operator(StartSession(agent="@ken"))).id
    await advance_clock(rig, IDLE)
    assert await asleep(rig)
    woken = await rig.operator(Wake(address="@ken"))
    assert (woken.outcome, woken.session_id) == ("started", session)
    assert not await asleep(rig)
    await advance_clock(rig, IDLE)
    await rig.operator(Send(to="@ken", body="now", wake=True))
    await wait_until(lambda: not rig.broker.dispatcher.lanes)
    assert not await asleep(rig)
    assert [one.id for one in (await show_agent(rig)).sessions] == [session]


# -- what keeps it awake -----------------------------------------------------------------------------------


@as_test
async def test_a_heartbeat_a_flight_a_lease_and_attention_keep_it_awake(rig: Rig) -> None:
    ken = await online_agent(rig, "ken")
    (way,) = (await show_agent(rig)).endpoints
    for _ in range(6):
        await advance_clock(rig, 80)
        await ken.call(Heartbeat(endpoint_id=way.id))
        await housekeeping.flush(rig.broker)
    assert not await asleep(rig)

    asked = await rig.operator(MakeAsk(to="@ken", body="do it"))
    await advance_clock(rig, IDLE)
    assert not await asleep(rig)
    (taken,) = (await ken.call(ClaimInbox())).items
    await ken.call(AckInbox(delivery_ids=(taken.delivery_id or "",)))
    await advance_clock(rig, IDLE)
    assert not await asleep(rig)
    await ken.call(CompleteFlight(flight_id=asked.flight_id, output="done"))

    item = await ken.call(RaiseAttention(title="may I?", kind=AttentionKind.QUESTION))
    await advance_clock(rig, 3 * IDLE)
    assert not await asleep(rig), item
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).output == "done"


@as_test
async def test_who_is_kept_warm_or_was_started_by_hand_does_not_sleep(rig: Rig) -> None:
    await rig.register("warm", harness="echo", wake_policy=WakePolicy.KEEP_WARM)
    await rig.register("hand", harness="echo", wake_policy=WakePolicy.MANUAL)
    await rig.operator(StartSession(agent="@hand"))
    await housekeeping.tidy(rig.broker)
    for _ in range(3):
        await advance_clock(rig, IDLE)
    assert not await asleep(rig, "warm")
    assert not await asleep(rig, "hand")
    assert await answer(rig, "at once", "hand") == "at once"


def test_an_open_terminal_keeps_its_agent_awake(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        await answer(rig, "one")
        session = (await rig.operator(ListSessions(agent="@ken"))).items[0]
        await rig.operator(OpenSession(session_id=session.id, pid=1, pid_started="now"))
        await advance_clock(rig, IDLE)
        assert not await asleep(rig)

    run_scene(scene, tmp_path, **Cast(tmp_path).options)


# -- sessions ------------------------------------------------------------------------------------------------


def test_a_program_is_stopped_and_the_same_session_goes_on_after_a_sleep(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        first = await answer(rig, "one")
        session = (await rig.operator(ListSessions(agent="@ken"))).items[0]
        assert await cast.kept.is_warm(session.id)
        await advance_clock(rig, IDLE)
        assert await asleep(rig)

        async def cold() -> bool:
            return not await cast.kept.is_warm(session.id)

        await wait_until(cold)
        asked = await rig.operator(MakeAsk(target_session_id=session.id, body="two"))
        second = (await wait_for_end(rig, asked.flight_id)).output
        assert (first or "?") in (second or "")  # it knows what it was told before
        assert (await rig.operator(GetSession(session_id=session.id))).state is SessionState.LIVE

    run_scene(scene, tmp_path, **cast.options)


def test_a_program_that_cannot_be_resumed_keeps_its_agent_awake(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        await answer(rig, "one")
        await advance_clock(rig, IDLE)
        assert not await asleep(rig)

    run_scene(scene, tmp_path, **Cast(tmp_path, replace(ABLE, resume=False)).options)


@as_test
async def test_an_agent_without_a_harness_of_its_own_wakes_in_the_one_it_had(rig: Rig) -> None:
    await rig.register("ken")
    await answer(rig, "one", harness="echo")
    await advance_clock(rig, IDLE)
    assert await asleep(rig)
    await rig.operator(Send(to="@ken", body="again", wake=True))
    await wait_until(lambda: not rig.broker.dispatcher.lanes)
    assert (await show_agent(rig)).status is AgentStatus.ONLINE


@as_test
async def test_of_two_namesakes_a_sleeping_one_is_not_the_one_that_is_online(rig: Rig) -> None:
    await rig.register("ken", workspace="east", harness="echo")
    await rig.register("ken", workspace="west", harness="echo")
    await answer(rig, "one", "ken.east")
    await answer(rig, "to whoever is there")
    await advance_clock(rig, IDLE)
    with pytest.raises(Refused, match="ambiguous_target"):
        await rig.operator(MakeAsk(to="@ken", body="who?"))


# -- an end --------------------------------------------------------------------------------------------------


def test_a_retired_agents_sessions_end_with_it_and_their_programs_too(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        await answer(rig, "one")
        (session,) = (await rig.operator(ListSessions(agent="@ken"))).items
        retired = await rig.operator(RetireAgent(address="@ken"))
        assert {one.state for one in retired.sessions} == {SessionState.ENDED}

        async def cold() -> bool:
            return not await cast.kept.is_warm(session.id)

        await wait_until(cold)

    run_scene(scene, tmp_path, **cast.options)


def test_a_task_agent_is_retired_when_its_ask_is_done_and_its_answer_is_kept(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        path = "/ada/task/7"
        await rig.operator(Send(to=path, body="hello", create={"harness": "echo"}))
        asked = await rig.operator(MakeAsk(to=path, body="do this"))
        told = (await wait_for_end(rig, asked.flight_id)).output
        assert (told or "").startswith("do this")
        await wait_until(lambda: not rig.broker.dispatcher.lanes)
        await housekeeping.tidy(rig.broker)
        view = await rig.operator(ShowAgent(address=path))
        assert view.lifecycle is Lifecycle.RETIRED
        assert {one.state for one in view.sessions} == {SessionState.ENDED}
        assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).output == told

    run_scene(scene, tmp_path)


@as_test
async def test_an_enrolled_session_wakes_its_agent(rig: Rig) -> None:
    folder = rig.home / "home" / "ken"
    (folder / ".git").mkdir(parents=True)
    await rig.operator(MakeAsk(project_path=str(folder), harness="echo", body="one"))
    await wait_until(lambda: not rig.broker.dispatcher.lanes)
    await advance_clock(rig, IDLE)
    assert await asleep(rig)
    await rig.operator(Enrol(harness="claude", cwd=str(folder)))
    assert not await asleep(rig)
