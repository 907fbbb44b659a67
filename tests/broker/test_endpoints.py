"""Endpoints: their states, what never changes, and signs of life."""

import pytest

from scout.broker.transaction.transaction import Transaction
from scout.broker.upkeep.housekeeping import flush, tidy
from scout.model.endpoint import Endpoint, EndpointState
from scout.model.events.event_types import get_event_type
from scout.model.events.presence import SessionStarted
from scout.model.session import Session
from scout.model.status import AgentStatus
from scout.protocol.access import SetAlias
from scout.protocol.agents import Resolve, ShowAgent
from scout.protocol.endpoints import Heartbeat, RegisterEndpoint, RemoveEndpoint, UpdateEndpoint
from scout.protocol.log import ReadLog
from scout.protocol.sessions import GetSession, ListSessions
from scout.protocol.talk import Send
from scout.store.ledger import Ledger
from tests.broker.neighbours import draw_requests
from tests.broker.rig import Rig, as_test, expect_refusal


async def _types(rig: Rig) -> list[str]:
    """What was told of agents and endpoints, without their registration."""
    events = (await rig.operator(ReadLog(limit=200))).items
    told = [get_event_type(type(event)).removeprefix("collab.") for event in events]
    return [one for one in told if one.startswith(("agent.o", "agent.heart", "endpoint."))]


@as_test
async def test_an_endpoint_moves_only_as_its_table_allows(rig: Rig) -> None:
    arc = await rig.agent("arc")
    endpoint = await arc.call(RegisterEndpoint(harness="codex", state=EndpointState.WORKING))
    assert endpoint.state is EndpointState.WORKING
    idle = await arc.call(UpdateEndpoint(endpoint_id=endpoint.id, state=EndpointState.IDLE))
    assert (idle.state, idle.revision > endpoint.revision) == (EndpointState.IDLE, True)
    problem = await expect_refusal(
        arc.call(UpdateEndpoint(endpoint_id=endpoint.id, state=EndpointState.REGISTERED))
    )
    assert problem.code == "wrong_state"
    failed = await arc.call(
        UpdateEndpoint(endpoint_id=endpoint.id, state=EndpointState.FAILED, reason="crashed")
    )
    assert failed.failure is not None
    assert (failed.failure.reason, failed.failure.was) == ("crashed", EndpointState.IDLE)
    stopped = await arc.call(RemoveEndpoint(endpoint_id=endpoint.id))
    assert stopped.state is EndpointState.STOPPED
    assert await arc.call(RemoveEndpoint(endpoint_id=endpoint.id)) == stopped
    again = UpdateEndpoint(endpoint_id=endpoint.id, state=EndpointState.IDLE)
    assert (await expect_refusal(arc.call(again))).code == "wrong_state"
    broken = RegisterEndpoint(state=EndpointState.FAILED)
    assert (await expect_refusal(arc.call(broken))).code == "bad_request"


@as_test
async def test_a_revision_that_was_overtaken_is_refused(rig: Rig) -> None:
    arc = await rig.agent("arc")
    endpoint = await arc.call(RegisterEndpoint())
    await arc.call(UpdateEndpoint(endpoint_id=endpoint.id, preferred=True, revision=endpoint.revision))
    stale = UpdateEndpoint(endpoint_id=endpoint.id, state=EndpointState.WORKING, revision=endpoint.revision)
    assert (await expect_refusal(arc.call(stale))).code == "wrong_revision"
    before = await _types(rig)
    seen = UpdateEndpoint(endpoint_id=endpoint.id, revision=endpoint.revision + 1)
    assert (await arc.call(seen)).revision == endpoint.revision + 1
    assert await _types(rig) == before


async def _session(rig: Rig, agent_id: str) -> Session:
    def begin(tx: Transaction) -> Session:
        session = Session(
            id=tx.mint("ses"),
            created_at=tx.now,
            updated_at=tx.now,
            agent_id=agent_id,
            harness="codex",
            node="mini",
            created_by=tx.sender,
        )
        return tx.record(SessionStarted, session, move="start")

    return await rig.broker.as_system(begin)


@pytest.mark.rows("R2.1-52")
@as_test
async def test_a_new_process_node_or_session_is_a_new_endpoint(rig: Rig) -> None:
    made = await rig.register("arc")
    arc, hal = await rig.agent("arc"), await rig.register("hal")
    one, two = await _session(rig, made.agent.id), await _session(rig, made.agent.id)
    first = await arc.call(RegisterEndpoint(harness="codex", session_id=one.id))
    change = UpdateEndpoint(endpoint_id=first.id, session_id=two.id)
    assert (await expect_refusal(arc.call(change))).code == "bad_request"
    second = await arc.call(RegisterEndpoint(harness="codex", session_id=two.id))
    third = await arc.call(RegisterEndpoint(session_id=two.id))
    assert len({first.id, second.id, third.id}) == 3
    assert third.harness == "codex"  # as its session
    bare = await arc.call(RegisterEndpoint(harness="codex"))
    learnt = await arc.call(UpdateEndpoint(endpoint_id=bare.id, session_id=one.id))
    assert learnt.session_id == one.id
    nameless = await arc.call(RegisterEndpoint())
    claude = await arc.call(RegisterEndpoint(harness="claude"))
    for wish in draw_requests(
        RegisterEndpoint(harness="claude", session_id=two.id),
        RegisterEndpoint(harness="codex", session_id=two.id, node="Studio.local"),
        UpdateEndpoint(endpoint_id=claude.id, session_id=two.id),
        UpdateEndpoint(endpoint_id=nameless.id, session_id=two.id),
    ):
        assert (await expect_refusal(arc.call(wish))).code == "harness_mismatch"
    foreign = await _session(rig, hal.agent.id)
    for wish in draw_requests(
        RegisterEndpoint(session_id=foreign.id),
        UpdateEndpoint(endpoint_id=(await arc.call(RegisterEndpoint())).id, session_id=foreign.id),
    ):
        assert (await expect_refusal(arc.call(wish))).code == "not_found"
    assert "harness" not in UpdateEndpoint.__struct_fields__
    assert "node" not in UpdateEndpoint.__struct_fields__
    listed = await arc.call(ListSessions(agent="@arc"))
    assert {one.id for one in listed.items} == {one.id, two.id}
    assert (await arc.call(GetSession(session_id=foreign.id))).agent_id == hal.agent.id


@pytest.mark.rows("R2.3-17")
@as_test
async def test_a_sign_of_life_alone_writes_no_event_and_is_flushed(rig: Rig) -> None:
    made = await rig.register("arc")
    arc = await rig.agent("arc")
    endpoint = await arc.call(RegisterEndpoint(harness="codex"))
    before = await _types(rig)
    beat = endpoint
    for _ in range(5):
        rig.clock.ahead += 30
        beat = await arc.call(Heartbeat(endpoint_id=endpoint.id))
    assert await _types(rig) == before
    assert await _row(rig, endpoint.id) == endpoint
    assert await rig.broker.read(lambda ledger: ledger.get(Endpoint, endpoint.id)) == beat
    await flush(rig.broker)
    assert not rig.broker.signs_of_life
    stored = await _row(rig, endpoint.id)
    assert stored is not None
    assert (stored.last_seen, stored.revision) == (beat.last_seen, endpoint.revision)
    assert await _types(rig) == before
    shown = await rig.operator(ShowAgent(address=made.agent.id))
    assert shown.status is AgentStatus.ONLINE


async def _row(rig: Rig, ident: str) -> Endpoint | None:
    """What is stored, without what is kept in memory."""
    return await rig.broker.read(lambda ledger: Ledger(ledger.connection).get(Endpoint, ident))


@as_test
async def test_the_log_hears_of_a_quiet_endpoint_at_most_every_ten_minutes(rig: Rig) -> None:
    arc = await rig.agent("arc")
    endpoint = await arc.call(RegisterEndpoint(harness="codex"))
    for _ in range(41):
        rig.clock.ahead += 60
        await arc.call(Heartbeat(endpoint_id=endpoint.id))
    assert (await _types(rig)).count("agent.heartbeat") == 4


@as_test
async def test_who_falls_silent_is_offline_and_comes_back_by_a_sign_of_life(rig: Rig) -> None:
    made = await rig.register("arc")
    arc = await rig.agent("arc")
    endpoint = await arc.call(RegisterEndpoint(harness="codex", state=EndpointState.WORKING))
    rig.clock.ahead += 400
    await tidy(rig.broker)
    assert (await _types(rig))[-2:] == ["endpoint.stale", "agent.offline"]
    shown = await rig.operator(ShowAgent(address=made.agent.id))
    assert (shown.endpoints[0].state, shown.status) == (EndpointState.STALE, AgentStatus.OFFLINE)
    back = await arc.call(Heartbeat(endpoint_id=endpoint.id))
    assert back.state is EndpointState.WORKING
    assert (await _types(rig))[-3:] == ["endpoint.recovered", "agent.online", "agent.heartbeat"]
    shown = await rig.operator(ShowAgent(address=made.agent.id))
    assert shown.status is AgentStatus.ONLINE


@as_test
async def test_only_the_first_and_the_last_endpoint_are_news(rig: Rig) -> None:
    arc = await rig.agent("arc")
    one = await arc.call(RegisterEndpoint(harness="codex"))
    two = await arc.call(RegisterEndpoint(harness="claude"))
    await arc.call(RemoveEndpoint(endpoint_id=one.id))
    await arc.call(RemoveEndpoint(endpoint_id=two.id))
    told = [one for one in await _types(rig) if one.startswith("agent.")]
    assert told == ["agent.online", "agent.offline"]


@as_test
async def test_who_changes_its_endpoint_is_there(rig: Rig) -> None:
    arc = await rig.agent("arc")
    endpoint = await arc.call(RegisterEndpoint())
    rig.clock.ahead += 80
    await arc.call(UpdateEndpoint(endpoint_id=endpoint.id, state=EndpointState.WORKING))
    rig.clock.ahead += 80
    assert (await rig.operator(ShowAgent(address="@arc"))).status is AgentStatus.ONLINE
    await rig.operator(UpdateEndpoint(endpoint_id=endpoint.id, preferred=True))
    rig.clock.ahead += 80
    assert (await rig.operator(ShowAgent(address="@arc"))).status is not AgentStatus.ONLINE


@as_test
async def test_an_alias_may_be_for_one_session(rig: Rig) -> None:
    made = await rig.register("arc")
    arc = await rig.agent("arc")
    session = await _session(rig, made.agent.id)
    await arc.call(RegisterEndpoint(harness="codex", session_id=session.id))
    await arc.call(RegisterEndpoint(harness="codex"))
    alias = await rig.operator(SetAlias(name="this-one", target=session.id))
    assert (alias.means, alias.target.agent_id) == (session.id, None)
    found = await rig.operator(Resolve(address="@this-one"))
    assert (found.session_id, found.agent_id) == (session.id, made.agent.id)
    sent = await rig.operator(Send(to="@this-one", body="you there"))
    assert sent.deliveries[0].target == made.agent.id


@as_test
async def test_an_endpoint_is_its_agents_alone(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    endpoint = await arc.call(RegisterEndpoint())
    for wish in draw_requests(
        Heartbeat(endpoint_id=endpoint.id),
        UpdateEndpoint(endpoint_id=endpoint.id, preferred=True),
        RemoveEndpoint(endpoint_id=endpoint.id),
        RegisterEndpoint(agent_id=endpoint.agent_id),
    ):
        assert (await expect_refusal(hal.call(wish))).code == "forbidden"
    assert (await expect_refusal(arc.call(Heartbeat(endpoint_id="ept_nothing")))).code == "not_found"
