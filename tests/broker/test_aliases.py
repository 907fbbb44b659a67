"""Names that people give: whose they are, when they break, which revision was meant."""

import pytest

from scout.model.alias import AliasState
from scout.protocol.access import ListAliases, RemoveAlias, RepairAlias, SetAlias, ShowAlias
from scout.protocol.agents import RegisterAgent, Resolve, RetireAgent, ShowAgent
from scout.protocol.log import ReadLog
from scout.protocol.talk import GetMessage, Send
from tests.broker.neighbours import draw_requests
from tests.broker.rig import Rig, as_test, expect_refusal


@pytest.mark.rows("R1.3-7")
@as_test
async def test_people_set_aliases_and_agents_read_them(rig: Rig) -> None:
    arc = await rig.agent("arc")
    made = await rig.operator(SetAlias(name="My Friend", target="@arc"))
    assert (made.name, made.means, made.revision) == ("my-friend", "@arc", 1)
    before = await rig.operator(ReadLog(limit=200))
    for wish in draw_requests(
        SetAlias(name="other", target="@arc"),
        RemoveAlias(name="my-friend"),
        RepairAlias(name="my-friend"),
    ):
        assert (await expect_refusal(arc.call(wish))).code == "forbidden"
    assert await rig.operator(ReadLog(limit=200)) == before
    assert (await arc.call(Resolve(address="@my-friend"))).alias_id == made.id
    assert [one.name for one in (await arc.call(ListAliases())).items] == ["my-friend"]
    assert (await arc.call(ShowAlias(name="@my-friend"))).id == made.id
    assert (await rig.operator(ShowAgent(address="@arc"))).aliases == ("my-friend",)


@pytest.mark.rows("R2.1-31")
@as_test
async def test_a_receipt_pins_the_revision_it_used(rig: Rig) -> None:
    arc, hal = await rig.register("arc"), await rig.register("hal")
    first = await rig.operator(SetAlias(name="friend", target="@arc"))
    one = await rig.operator(Send(to="@friend", body="to arc"))
    moved = await rig.operator(SetAlias(name="friend", target="@hal", revision=first.revision))
    two = await rig.operator(Send(to="@friend", body="to hal"))
    assert (one.alias_id, one.alias_revision) == (first.id, first.revision)
    assert (two.alias_id, two.alias_revision) == (first.id, moved.revision)
    targets = [receipt.deliveries[0].target for receipt in (one, two)]
    assert targets == [arc.agent.id, hal.agent.id]
    plain = await rig.operator(Send(to="@arc", body="without"))
    assert (plain.alias_id, plain.alias_revision) == (None, None)
    events = (await rig.operator(ReadLog(limit=200, family="collab.message"))).items
    assert [event.metadata.alias_revision for event in events] == [1, 2, None]
    shown = await rig.operator(GetMessage(message_id=one.message_id))
    assert shown.target_agents == (arc.agent.id,)
    stale = SetAlias(name="friend", target="@arc", revision=first.revision)
    assert (await expect_refusal(rig.operator(stale))).code == "wrong_revision"


@as_test
async def test_an_alias_never_shadows_a_definition(rig: Rig) -> None:
    await rig.register("arc")
    problem = await expect_refusal(rig.operator(SetAlias(name="arc", target="@arc")))
    assert (problem.code, problem.remedies[0].operation) == ("alias_shadows", "alias.set")
    await rig.operator(SetAlias(**problem.remedies[0].parameters))
    assert (await rig.operator(Resolve(address="@my-arc"))).path == "/ada/agent/arc"


@as_test
async def test_a_definition_that_takes_its_name_breaks_an_alias_until_it_is_mended(rig: Rig) -> None:
    await rig.register("arc")
    made = await rig.operator(SetAlias(name="friend", target="@arc"))
    await rig.operator(RegisterAgent(definition_id="friend"))
    broken = await rig.operator(ShowAlias(name="friend"))
    assert (broken.id, broken.state) == (made.id, AliasState.BROKEN)
    problem = await expect_refusal(rig.operator(Send(to="@friend", body="whom?")))
    assert problem.code == "alias_broken"
    assert problem.remedies
    assert (await expect_refusal(rig.operator(RepairAlias(name="friend")))).code == "alias_shadows"
    await rig.operator(RetireAgent(address="/ada/agent/friend"))
    repaired = await rig.operator(RepairAlias(name="friend"))
    assert (repaired.state, repaired.revision) == (AliasState.ACTIVE, 3)
    sent = await rig.operator(Send(to="@friend", body="to arc"))
    assert sent.alias_revision == 3
    assert (await expect_refusal(rig.operator(RepairAlias(name="friend")))).code == "wrong_state"


@as_test
async def test_a_removed_alias_is_free_again(rig: Rig) -> None:
    await rig.register("arc")
    first = await rig.operator(SetAlias(name="friend", target="@arc"))
    assert (await rig.operator(RemoveAlias(name="friend"))).state is AliasState.REMOVED
    problem = await expect_refusal(rig.operator(ShowAlias(name="friend")))
    assert (problem.code, problem.remedies[0].operation) == ("not_found", "alias.list")
    assert (await expect_refusal(rig.operator(Resolve(address="@friend")))).code == "unknown_target"
    second = await rig.operator(SetAlias(name="friend", target="@arc"))
    assert first.id != second.id
    assert len((await rig.operator(ListAliases())).items) == 1


@as_test
async def test_an_alias_may_name_what_has_no_handle_and_insist_on_a_harness(rig: Rig) -> None:
    await rig.operator(Send(to="/ada/task/t1", body="be", create={}))
    named = await rig.operator(SetAlias(name="chore", target="/ada/task/t1"))
    assert named.means == "/ada/task/t1"
    await rig.register("arc")
    narrow = await rig.operator(SetAlias(name="fast", target="@arc#codex"))
    assert narrow.target.harness == "codex"
    assert (
        await expect_refusal(rig.operator(SetAlias(name="none", target="@nobody")))
    ).code == "unknown_target"
