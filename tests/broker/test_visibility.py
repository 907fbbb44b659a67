"""Whom an agent sees, what it may do to whom, and what a grant adds."""

import os
from typing import Any

import pytest

from scout.base.codec import decode
from scout.model.access.grant import Action
from scout.protocol.access import AddGrant, ListGrants, RevokeGrant
from scout.protocol.agents import ConfigureAgent, Resolve, RetireAgent, ShowAgent, Who
from scout.protocol.asks import MakeAsk
from scout.protocol.channels import GetConversation
from scout.protocol.inbox import ListDeliveries
from scout.protocol.log import ReadFeed
from scout.protocol.sessions import ListSessions
from scout.protocol.talk import GetMessage, ListMessages, Send
from tests.broker.neighbours import draw_requests, open_seat, stranger
from tests.broker.rig import Rig, as_test, expect_refusal


def _build_request(problem: Any) -> AddGrant:
    """The first remedy as a request."""
    remedy = problem.remedies[0]
    assert remedy.operation == "grant.add"
    return decode(remedy.parameters, AddGrant)


@pytest.mark.rows("R1.3-2")
@as_test
async def test_whom_one_may_not_see_is_neither_matched_nor_offered(rig: Rig) -> None:
    arc = await rig.agent("arc")
    zed = await stranger(rig, "zed")
    await stranger(rig, "archie")
    for address in ("@zed", "zed", zed.id, "/bob/agent/zed", "@archi", "@ze"):
        problem = await expect_refusal(arc.call(Resolve(address=address)))
        assert problem.code == "unknown_target"
        told = repr(problem).replace(address, "")
        assert "zed" not in told
        assert "archie" not in told
    assert [one.definition_id for one in (await arc.call(Who())).items if one.owner != "ada"] == []
    assert (await arc.call(Who(query="zed"))).items == ()
    assert (await expect_refusal(arc.call(ShowAgent(address="@zed")))).code == "unknown_target"
    assert (await expect_refusal(arc.call(ListSessions(agent="@zed")))).code == "unknown_target"
    assert (await rig.operator(Resolve(address="@zed"))).agent_id == zed.id


@pytest.mark.rows("R1.3-2")
@as_test
async def test_a_namesake_of_another_user_makes_nothing_ambiguous(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.register("hal")
    other = await stranger(rig, "zed")
    zed = await open_seat(rig, other)
    assert (await zed.call(Resolve(address="@zed"))).agent_id == other.id
    assert (await expect_refusal(zed.call(Resolve(address="@arc")))).code == "unknown_target"
    assert (await arc.call(Resolve(address="@hal"))).canonical == "@hal.node:mini"


@as_test
async def test_a_grant_lets_see_and_address_until_it_is_revoked(rig: Rig) -> None:
    arc = await rig.agent("arc")
    zed = await stranger(rig)
    problem = await expect_refusal(arc.call(Send(to="/bob/agent/zed", body="hello")))
    assert problem.code == "forbidden"
    grant = await rig.operator(_build_request(problem))
    receipt = await arc.call(Send(to="/bob/agent/zed", body="hello"))
    assert receipt.deliveries[0].target == zed.id
    assert (await arc.call(Resolve(address="@zed"))).agent_id == zed.id
    assert (await expect_refusal(arc.call(MakeAsk(to="@zed", body="work")))).code == "forbidden"
    listed = (await rig.operator(ListGrants())).items
    assert [one.id for one in listed] == [grant.id]
    await rig.operator(RevokeGrant(grant_id=grant.id))
    assert (await expect_refusal(arc.call(Send(to="/bob/agent/zed", body="again")))).code == "forbidden"
    assert (await expect_refusal(arc.call(Send(to="@zed", body="again")))).code == "unknown_target"


@as_test
async def test_a_grant_that_is_over_shows_and_allows_nothing(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await stranger(rig)
    await rig.operator(AddGrant(action=Action.ADDRESS, agent="@arc", user="bob", expires_in=60))
    await arc.call(Send(to="@zed", body="in time"))
    rig.clock.ahead += 61
    assert (await expect_refusal(arc.call(Resolve(address="@zed")))).code == "unknown_target"
    assert (await expect_refusal(arc.call(Send(to="/bob/agent/zed", body="late")))).code == "forbidden"


@as_test
async def test_a_grant_for_a_user_holds_for_each_of_their_agents(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    await stranger(rig)
    await rig.operator(AddGrant(action=Action.ADDRESS, holder="ada", path="/bob/agent/zed"))
    for seat in (arc, hal):
        assert (await seat.call(Send(to="@zed", body="hello"))).deliveries


@as_test
async def test_grants_are_the_operators_to_give(rig: Rig) -> None:
    arc = await rig.agent("arc")
    wish = AddGrant(action=Action.CONTROL, agent="@arc", user="ada")
    assert (await expect_refusal(arc.call(wish))).code == "forbidden"
    assert (await expect_refusal(arc.call(ListGrants()))).code == "forbidden"
    two = AddGrant(action=Action.READ, agent="@arc", user="ada", path="/ada/agent/arc")
    assert (await expect_refusal(rig.operator(two))).code == "bad_request"
    nobody = AddGrant(action=Action.READ, user="ada")
    assert (await expect_refusal(rig.operator(nobody))).code == "bad_request"
    gone = AddGrant(action=Action.READ, agent="@arc", channel="nothing")
    assert (await expect_refusal(rig.operator(gone))).code == "not_found"


@as_test
async def test_an_agent_controls_only_itself_and_those_below_it(rig: Rig) -> None:
    arc = await rig.agent("arc")
    hal = await rig.register("hal")
    below = await rig.operator(Send(to="/ada/agent/arc/sub/0", body="be", create={}))
    child = below.deliveries[0].target
    changed = await arc.call(ConfigureAgent(address=child, config={"description": "mine"}))
    assert changed.config.description == "mine"
    deeds = draw_requests(
        ListDeliveries(target="@hal"),
        ReadFeed(address="@hal"),
        ConfigureAgent(address="@hal", config={"description": "not mine"}),
        RetireAgent(address="@hal"),
    )
    problems = [await expect_refusal(arc.call(wish)) for wish in deeds]
    assert {problem.code for problem in problems} == {"forbidden"}
    for wish, problem in zip(deeds, problems, strict=True):
        await rig.operator(_build_request(problem))
        await arc.call(wish)
    assert (await rig.operator(ShowAgent(address=hal.agent.id))).lifecycle == "retired"
    assert (await arc.call(RetireAgent(address=child))).lifecycle == "retired"


@as_test
async def test_a_conversation_is_for_who_takes_part(rig: Rig) -> None:
    arc, hal, eve = await rig.agent("arc"), await rig.agent("hal"), await rig.agent("eve")
    sent = await arc.call(Send(to="@hal", body="between us"))
    reads = draw_requests(
        GetConversation(conversation_id=sent.conversation_id),
        ListMessages(conversation=sent.conversation_id),
        GetMessage(message_id=sent.message_id),
    )
    for read in reads:
        await hal.call(read)
        await rig.operator(read)
        assert (await expect_refusal(eve.call(read))).code == "forbidden"
    say = Send(conversation_id=sent.conversation_id, body="me too")
    assert (await expect_refusal(eve.call(say))).code == "forbidden"
    problem = await expect_refusal(eve.call(reads[0]))
    await rig.operator(_build_request(problem))
    for read in reads:
        await eve.call(read)
    assert (await expect_refusal(eve.call(say))).code == "forbidden"


FOLDER = os.path.realpath("/usr/bin")  # short enough to be read as the path of an agent


@pytest.mark.rows("R1.4-35")
@as_test
async def test_a_path_that_is_a_directory_is_offered_as_a_project(rig: Rig) -> None:
    folder = FOLDER
    there = await expect_refusal(rig.operator(Send(to=folder, body="x")))
    assert [remedy.parameters for remedy in there.remedies] == [{"to": f"project:{folder}", "body": "x"}]
    nowhere = await expect_refusal(rig.operator(Send(to="/ada/agent/nobody", body="x")))
    assert [one for one in nowhere.remedies if "project:" in str(one.parameters)] == []
    assert nowhere.remedies
