"""Agents: finding, changing, retiring and reviving them."""

from pathlib import Path

import pytest

from scout.model.agent import Lifecycle, PermissionProfile, ToolRole, WakePolicy
from scout.model.endpoint import EndpointState
from scout.model.flight import FlightState
from scout.protocol.access import SetAlias
from scout.protocol.agents import (
    ConfigureAgent,
    MoveProject,
    RegisterAgent,
    Resolve,
    RetireAgent,
    ReviveAgent,
    ShowAgent,
    Who,
    WhoAmI,
)
from scout.protocol.asks import GetFlight, IfUnreachable, MakeAsk
from scout.protocol.endpoints import RegisterEndpoint, UpdateEndpoint
from scout.protocol.inbox import ListInbox
from scout.protocol.talk import ListMessages, Send
from tests.broker.neighbours import draw_requests, stranger
from tests.broker.rig import Rig, as_test, expect_refusal, run_scene


@as_test
async def test_who_am_i(rig: Rig) -> None:
    me = await rig.operator(WhoAmI())
    assert (me.kind, me.user, me.path, me.node) == ("operator", "ada", "/ada/direct", "mini")
    made = await rig.register("arc")
    arc = await (await rig.agent("arc")).call(WhoAmI())
    assert (arc.kind, arc.agent_id, arc.canonical) == ("agent", made.agent.id, "@arc.node:mini")


@pytest.mark.rows("R0-44", "R0-45", "R0-46")
@as_test
async def test_a_page_is_fifty_of_the_newest_and_at_most_two_hundred(rig: Rig) -> None:
    made = [(await rig.register(f"a{number}")).agent.id for number in range(205)]
    first = await rig.operator(Who())
    assert len(first.items) == 50
    assert [one.id for one in first.items] == sorted(made, reverse=True)[:50]
    assert first.next is not None
    assert made[-51] not in first.next
    assert len((await rig.operator(Who(limit=1000))).items) == 200
    seen: list[str] = []
    cursor = None
    while True:
        page = await rig.operator(Who(limit=100, cursor=cursor))
        seen += [one.id for one in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert [one for one in seen if one in set(made)] == sorted(made, reverse=True)
    assert (await expect_refusal(rig.operator(Who(limit=0)))).code == "bad_request"


@pytest.mark.rows("R0-44")
@pytest.mark.parametrize("cursor", ["", "!!!!", "é", "abc", "AAAA", "a b"])
def test_what_is_no_cursor_is_refused(tmp_path: Path, cursor: str) -> None:
    async def scene(rig: Rig) -> None:
        problem = await expect_refusal(rig.operator(Who(cursor=cursor)))
        assert (problem.code, problem.field) == ("bad_request", "cursor")

    run_scene(scene, tmp_path)


@as_test
async def test_who_finds_by_prefix_and_by_being_online(rig: Rig) -> None:
    for name in ("arc", "archie", "hal"):
        await rig.register(name)
    found = (await rig.operator(Who(query="arc"))).items
    assert {one.definition_id for one in found} == {"arc", "archie"}
    assert (await rig.operator(Who(online=True))).items == ()
    await (await rig.agent("hal")).call(RegisterEndpoint(harness="codex"))
    assert [one.definition_id for one in (await rig.operator(Who(online=True))).items] == ["hal"]
    await rig.operator(RetireAgent(address="@archie"))
    assert len((await rig.operator(Who(query="arc"))).items) == 1
    assert len((await rig.operator(Who(query="archie"))).items) == 0
    assert len((await rig.operator(Who(query="archie", retired=True))).items) == 1


@as_test
async def test_a_config_is_changed_key_by_key(rig: Rig) -> None:
    made = await rig.register("arc", model="large")
    changed = await rig.operator(
        ConfigureAgent(address="@arc", config={"wakePolicy": "manual"}, tool_role=ToolRole.WORKER)
    )
    assert changed.config.wake_policy is WakePolicy.MANUAL
    assert (changed.config.model, changed.tool_role) == ("large", ToolRole.WORKER)
    stale = ConfigureAgent(address="@arc", config={"model": "small"}, revision=made.agent.revision)
    problem = await expect_refusal(rig.operator(stale))
    assert (problem.code, problem.current) == ("wrong_revision", changed.revision)
    typo = await expect_refusal(rig.operator(ConfigureAgent(address="@arc", config={"modle": "x"})))
    assert typo.candidates[0].address == "model"
    assert (await expect_refusal(rig.operator(ConfigureAgent(address="@arc")))).code == "bad_request"
    arc = await rig.agent("arc")
    role = ConfigureAgent(address="@arc", tool_role=ToolRole.TL)
    assert (await expect_refusal(arc.call(role))).code == "forbidden"
    endpoint = await arc.call(RegisterEndpoint())
    for wish in draw_requests(
        ConfigureAgent(address="@arc", config={"command": ["sh"]}),
        ConfigureAgent(address="@arc", config={"permissionProfile": "trusted"}),
        RegisterEndpoint(permission_profile=PermissionProfile.TRUSTED),
        UpdateEndpoint(endpoint_id=endpoint.id, permission_profile=PermissionProfile.TRUSTED),
        Send(to="/ada/agent/arc/sub/0", body="be", create={"permissionProfile": "trusted"}),
    ):
        assert (await expect_refusal(arc.call(wish))).code == "forbidden", wish
    trust = ConfigureAgent(address="@arc", config={"permissionProfile": "trusted"})
    assert (await rig.operator(trust)).config.permission_profile is PermissionProfile.TRUSTED
    kept = await arc.call(ConfigureAgent(address="@arc", config={"model": "small"}))
    assert kept.config.permission_profile is PermissionProfile.TRUSTED


@as_test
async def test_retiring_takes_everything_down_and_tells_those_who_wait(rig: Rig) -> None:
    made = await rig.register("arc")
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    endpoint = await arc.call(RegisterEndpoint(harness="codex"))
    asked = await hal.call(MakeAsk(to="@arc", body="work", if_unreachable=IfUnreachable.QUEUE))
    sent = await hal.call(Send(to="@arc", body="hello"))
    retired = await rig.operator(RetireAgent(address="@arc", reason="enough"))
    assert retired.lifecycle is Lifecycle.RETIRED
    assert [one.state for one in retired.endpoints] == [EndpointState.STOPPED]
    assert retired.endpoints[0].id == endpoint.id
    assert (retired.open_flights, retired.unread) == (0, 0)
    assert (await expect_refusal(rig.scout(rig.tokens["arc"]))).code == "unauthenticated"
    flight = await hal.call(GetFlight(flight_id=asked.flight_id))
    assert flight.state is FlightState.FAILED
    notes = [item.message.body for item in (await hal.call(ListInbox())).items if item.message]
    assert len(notes) == 2
    assert all("@arc" in note for note in notes)
    problem = await expect_refusal(hal.call(Send(to="@arc", body="still there?")))
    assert (problem.code, problem.remedies[0].operation) == ("retired_target", "agent.revive")
    into = Send(conversation_id=sent.conversation_id, body="still there?")
    assert (await expect_refusal(hal.call(into))).code == "retired_target"
    assert (
        await expect_refusal(rig.operator(RegisterEndpoint(agent_id=made.agent.id)))
    ).code == "retired_target"
    assert (await expect_refusal(rig.operator(RetireAgent(address=made.agent.id)))).code == "wrong_state"
    assert len((await hal.call(ListMessages(to="@arc"))).items) == 4


@as_test
async def test_a_revived_agent_is_itself_again(rig: Rig) -> None:
    made = await rig.register("arc")
    await rig.operator(RetireAgent(address="@arc"))
    revived = await rig.operator(ReviveAgent(address="@arc"))
    assert (revived.id, revived.lifecycle) == (made.agent.id, Lifecycle.ACTIVE)
    again = await rig.operator(RegisterAgent(definition_id="arc"))
    assert (again.created, again.agent.id) == (False, made.agent.id)
    assert (await rig.operator(Send(to="@arc", body="welcome back"))).deliveries


@as_test
async def test_a_name_that_was_given_meanwhile(rig: Rig) -> None:
    await rig.register("hal")
    await rig.register("arc")
    await rig.operator(RetireAgent(address="@arc"))
    await rig.operator(SetAlias(name="arc", target="@hal"))
    assert (await rig.operator(Resolve(address="@arc"))).path == "/ada/agent/hal"
    await rig.operator(ReviveAgent(address="/ada/agent/arc"))
    assert (await expect_refusal(rig.operator(Resolve(address="@arc")))).code == "alias_broken"
    await rig.operator(RetireAgent(address="/ada/agent/arc"))
    taken = await stranger(rig, "arc")
    problem = await expect_refusal(rig.operator(ReviveAgent(address="/ada/agent/arc")))
    assert (problem.code, problem.holder_id) == ("name_taken", taken.id)


@as_test
async def test_scout_does_not_retire_itself_or_its_operator(rig: Rig) -> None:
    for address in ("operator", "/system/broker", "/system/sweeper"):
        assert (await expect_refusal(rig.operator(RetireAgent(address=address)))).code == "bad_request"
    assert (await rig.operator(WhoAmI())).path == "/ada/direct"


@as_test
async def test_an_address_can_be_looked_at_from_elsewhere(rig: Rig) -> None:
    arc = await rig.register("arc")
    found = await rig.operator(Resolve(address="self", from_="@arc"))
    assert found.agent_id == arc.agent.id
    folder = rig.home / "work" / "hudson"
    folder.mkdir(parents=True)
    made = await rig.register("hudson", project_root=str(folder))
    there = await rig.operator(Resolve(address="root", from_=str(folder)))
    assert there.agent_id == made.agent.id
    assert (await expect_refusal(rig.operator(Resolve(address="root")))).code == "unknown_target"


@pytest.mark.rows("R3.5-11")
@as_test
async def test_a_name_nobody_has_may_be_a_project_nearby(rig: Rig) -> None:
    one, other = rig.home / "work" / "one", rig.home / "work" / "other"
    for folder in (one, other):
        folder.mkdir(parents=True)
    person = await rig.scout(directory=str(one))
    problem = await expect_refusal(person.call(Resolve(address="@other")))
    assert problem.code == "unknown_target"
    assert f"project:{other}" in [one.address for one in problem.candidates]
    remedy = problem.remedies[0]
    assert (remedy.operation, remedy.parameters["address"]) == ("resolve", f"project:{other}")
    asked = await person.call(MakeAsk(project_path=str(other), body="hello", harness="echo", wait=10))
    assert asked.output == "hello"
    assert (await person.call(Resolve(address="@other"))).path == "/ada/agent/other"
    nothing = await expect_refusal(person.call(Resolve(address="@neither")))
    assert not [one for one in nothing.candidates if one.address.startswith("project:")]


@pytest.mark.rows("R0-55")
@as_test
async def test_a_moved_project_keeps_its_agents(rig: Rig) -> None:
    old, new = rig.home / "old", rig.home / "new"
    old.mkdir()
    made = await rig.register("old", project_root=str(old))
    old.rename(new)
    moved = await rig.operator(MoveProject(old=str(old), new=str(new)))
    assert moved.agents == (made.agent.id,)
    shown = await rig.operator(ShowAgent(address="@old"))
    assert (shown.project_root, shown.working_dir) == (str(new), str(new))
    other = rig.home / "other"
    other.mkdir()
    for folder in (new, other):
        (folder / ".git").mkdir()
        (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    await rig.register("new", project_root=str(new))
    await rig.register("other", project_root=str(other))
    taken = await expect_refusal(rig.operator(MoveProject(old=str(other), new=str(new))))
    assert taken.code == "name_taken"
    again = MoveProject(old=str(old), new=str(new))
    assert (await expect_refusal(rig.operator(again))).code == "not_found"
    assert (await expect_refusal((await rig.agent("old")).call(again))).code == "forbidden"
