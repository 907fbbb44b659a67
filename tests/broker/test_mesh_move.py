"""Agents move between nodes, through two real brokers and a wire in this process."""

from pathlib import Path
from typing import Any

from scout.model.agent import Lifecycle, WakePolicy
from scout.model.flight import FlightState
from scout.model.mesh.member import MemberRelation
from scout.model.node import NodeMove
from scout.model.work_item import WorkState
from scout.protocol.access import SetAlias
from scout.protocol.agents import MoveAgent, Resolve, ShowAgent, Who
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.questions import AnswerQuestion, CreateQuestion, GetQuestion
from scout.protocol.talk import GetMessage, Send
from scout.protocol.work import AcceptWork, CreateWork, GetWork, ListWork, SubmitWork
from tests.broker.mesh_pair import Pair, Side, run_pair
from tests.broker.rig import expect_refusal, inbox_bodies, online_agent, wait_until
from tests.broker.test_mesh_exchange import wait_for_mail

MOVE = MoveAgent(address="@arc", to="two")
AT_ONCE = MoveAgent(address="@arc", to="two", wait=0)


async def settle(pair: Pair) -> None:
    """Wait until neither node has an open envelope."""
    for side in pair.sides:
        side.exchange.wake_all()
    looks = [side.rig.broker.glance for side in pair.sides]
    await wait_until(lambda: not any(look().rows("outbox_nodes", after="") for look in looks))


def count_homes(pair: Pair, agent_id: str) -> list[str]:
    """The nodes on which the agent lives."""
    found = [(side, side.rig.broker.glance().own_agent(agent_id)) for side in pair.sides]
    return [side.name for side, one in found if one is not None and one.moved_to is None]


async def register(side: Side, wakes: WakePolicy = WakePolicy.ON_DEMAND) -> str:
    return (await side.rig.register("arc", harness="echo", wake_policy=wakes)).agent.id


def test_an_agent_moves_with_its_work_and_its_mail_and_its_address_keeps_working(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        one, two = pair.one.rig, pair.two.rig
        arc = await register(pair.one, WakePolicy.MANUAL)  # so that no turn takes the mail along
        bow = await online_agent(one, "bow")
        hudson = await online_agent(two, "hudson")
        await pair.two.show(pair.one, "hudson")
        await pair.one.show(pair.two, "arc")
        await one.operator(SetAlias(name="boss", target="@arc"))
        work = await bow.call(CreateWork(title="write it", owner_id="@arc"))
        question = await bow.call(CreateQuestion(to="@arc", body="which port?"))
        sent = await bow.call(Send(to="@arc", body="unread mail"))
        await hudson.call(Send(to="@arc", body="from the new node"))
        await wait_for_mail(pair.one, "arc", "from the new node")

        moved = await one.operator(MOVE)
        assert (moved.agent_id, moved.node, moved.arrived) == (arc, "two", True)
        assert (moved.aliases, moved.work_items, moved.questions) == (("boss",), 1, 1)
        await settle(pair)
        assert count_homes(pair, arc) == ["two"]
        bodies = await inbox_bodies(two, "arc")
        assert sorted(one for one in bodies if "mail" in one or "node" in one) == [
            "from the new node",
            "unread mail",
        ]
        assert (await two.operator(Resolve(address="@boss"))).agent_id == arc
        assert [item.id for item in (await two.operator(ListWork())).items] == [work.id]
        assert (await two.operator(GetQuestion(question_id=question.id))).body == "which port?"

        shown = await one.operator(ShowAgent(address="@arc"))
        assert (shown.id, shown.node, shown.moved_to) == (arc, "two", pair.two.node_id)
        assert any("moved to node two" in note for note in shown.notes)
        for address in ("@boss", "/ada/agent/arc", "@arc.node:one", arc):
            assert (await one.operator(Resolve(address=address))).agent_id == arc
        listed = await one.operator(Who())
        assert [item.node for item in listed.items if item.id == arc] == ["two"]
        again = await bow.call(Send(to="@arc", body="after the move"))
        assert any("moved to node two" in note for note in again.notes)
        await wait_for_mail(pair.two, "arc", "after the move")
        view = await bow.call(GetMessage(message_id=sent.message_id))
        assert view.deliveries[0].mesh is not None

    run_pair(scene, tmp_path)


async def _wait_for_end(side: Side, flight_id: str) -> Any:
    async def look() -> Any:
        view = await side.rig.operator(GetFlight(flight_id=flight_id))
        return view if view.state in (FlightState.COMPLETED, FlightState.FAILED) else None

    return await wait_until(look)


def test_work_and_questions_of_a_moved_agent_continue_on_both_nodes(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        one, two = pair.one.rig, pair.two.rig
        await register(pair.one, WakePolicy.MANUAL)
        bow = await online_agent(one, "bow")
        work = await bow.call(CreateWork(title="write it", owner_id="@arc", accepted=False))
        question = await bow.call(CreateQuestion(to="@arc", body="which port?"))
        await one.operator(MOVE)
        await two.operator(SubmitWork(work_item_id=work.id, summary="written"))
        await two.operator(AnswerQuestion(question_id=question.id, answer="81"))

        async def done() -> bool:
            item = await bow.call(GetWork(work_item_id=work.id))
            asked = await bow.call(GetQuestion(question_id=question.id))
            return item.state is WorkState.DONE and asked.answer == "81"

        await wait_until(done)
        hudson = await online_agent(two, "hudson")
        await pair.two.show(pair.one, "hudson")
        given = await bow.call(CreateWork(title="read it", owner_id="@hudson"))

        async def owned() -> bool:
            found = await hudson.call(ListWork())
            return [item.id for item in found.items] == [given.id]

        await wait_until(owned)
        await hudson.call(SubmitWork(work_item_id=given.id, summary="read"))

        async def submitted() -> bool:
            return (await bow.call(GetWork(work_item_id=given.id))).state is WorkState.REVIEW

        await wait_until(submitted)
        await bow.call(AcceptWork(work_item_id=given.id))

        async def accepted() -> bool:
            return (await hudson.call(GetWork(work_item_id=given.id))).state is WorkState.DONE

        await wait_until(accepted)

    run_pair(scene, tmp_path)


def test_an_agent_with_an_open_flight_does_not_move(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await online_agent(pair.one.rig, "arc")
        asked = await pair.one.rig.operator(MakeAsk(to="@arc", body="take your time"))
        refused = await expect_refusal(pair.one.rig.operator(MOVE))
        assert (refused.code, asked.flight_id in refused.message) == ("agent_busy", True)
        assert [one.operation for one in refused.remedies] == ["flight.get", "flight.cancel", "agent.move"]

    run_pair(scene, tmp_path)


def test_a_move_needs_a_node_of_the_operator_that_answers(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await register(pair.one)
        unknown = await expect_refusal(pair.one.rig.operator(MoveAgent(address="@arc", to="tow")))
        assert (unknown.code, unknown.candidates[0].address) == ("not_found", "two")
        here = await expect_refusal(pair.one.rig.operator(MoveAgent(address="@arc", to="one")))
        assert "lives on one already" in here.message
        person = await expect_refusal(
            pair.one.rig.operator(MoveAgent(address=pair.one.rig.broker.services.operator_agent, to="two"))
        )
        assert person.code == "bad_request"
        await pair.one.move(pair.two, NodeMove.LOSE)
        away = await expect_refusal(pair.one.rig.operator(MOVE))
        assert away.code == "peer_unreachable"

    run_pair(scene, tmp_path)


def test_an_agent_does_not_move_to_a_guest(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await register(pair.one)
        refused = await expect_refusal(pair.one.rig.operator(MOVE))
        assert (refused.code, refused.needs) == ("forbidden", ("a node of the same operator",))

    run_pair(scene, tmp_path, relation=MemberRelation.GUEST)


def test_an_agent_that_the_other_node_refuses_is_back_with_its_mail(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        arc = await register(pair.one)
        await register(pair.two)  # another agent of this name, which node one has not heard of
        bow = await online_agent(pair.one.rig, "bow")
        await bow.call(Send(to="@arc", body="before"))
        refused = await expect_refusal(pair.one.rig.operator(MOVE))
        assert (refused.code, refused.code_there) == ("move_refused", "name_taken")
        assert count_homes(pair, arc) == ["one"]
        assert "before" in await inbox_bodies(pair.one.rig, "arc")
        asked = await bow.call(MakeAsk(to="@arc", body="still here?"))
        assert (await _wait_for_end(pair.one, asked.flight_id)).output.startswith("still here?")

    run_pair(scene, tmp_path)


def test_what_comes_for_an_agent_on_its_way_follows_it(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        one, two = pair.one.rig, pair.two.rig
        arc = await register(pair.one)
        bow, hudson = await online_agent(one, "bow"), await online_agent(two, "hudson")
        await pair.one.show(pair.two, "arc")
        pair.wire.cut = True
        moved = await one.operator(AT_ONCE)
        assert not moved.arrived
        assert "has not answered yet" in moved.notes[0]
        repeated = await one.operator(AT_ONCE)
        assert repeated.agent_id == arc
        here = await bow.call(Send(to="@arc", body="from the old node"))
        asked = await bow.call(MakeAsk(to="@arc", body="on your way?"))
        assert "@arc moved to node two" in asked.notes
        there = await hudson.call(Send(to="@arc", body="from the new node"))
        ask = await hudson.call(MakeAsk(to="@arc", body="nearly here?"))
        pair.wire.cut = False
        await settle(pair)
        assert count_homes(pair, arc) == ["two"]
        assert (await _wait_for_end(pair.one, asked.flight_id)).output.startswith("on your way?")
        assert (await _wait_for_end(pair.two, ask.flight_id)).output.startswith("nearly here?")
        for message in (here, there):  # a turn takes the mail along
            view = await two.operator(GetMessage(message_id=message.message_id))
            assert [one.target for one in view.deliveries] == [arc]

    run_pair(scene, tmp_path)


def test_an_agent_moves_back(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        arc = await register(pair.one)
        bow = await online_agent(pair.one.rig, "bow")
        await pair.one.rig.operator(MOVE)
        await bow.call(Send(to="@arc", body="read it at home"))
        await wait_for_mail(pair.two, "arc", "read it at home")
        back = await pair.two.rig.operator(MoveAgent(address="@arc", to="one"))
        assert back.arrived
        await settle(pair)
        assert count_homes(pair, arc) == ["one"]
        assert await inbox_bodies(pair.one.rig, "arc") == ["read it at home"]
        for side in pair.sides:
            shown = await side.rig.operator(ShowAgent(address="@arc"))
            assert (shown.id, shown.node, shown.lifecycle) == (arc, "one", Lifecycle.ACTIVE)
        asked = await bow.call(MakeAsk(to="@arc", body="home?"))
        assert (await _wait_for_end(pair.one, asked.flight_id)).output.startswith("home?")
        third = await pair.one.rig.operator(MOVE)
        assert third.arrived
        assert count_homes(pair, arc) == ["two"]

    run_pair(scene, tmp_path)


def test_a_crash_of_either_node_leaves_the_agent_on_exactly_one(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        arc = await register(pair.one)
        bow = await online_agent(pair.one.rig, "bow")
        await bow.call(Send(to="@arc", body="keep this"))
        pair.wire.cut = True
        await pair.one.rig.operator(AT_ONCE)
        await pair.one.crash(pair.wire)  # the move is stored, and was not sent
        pair.wire.passing.clear()
        pair.wire.cut = False
        pair.one.exchange.wake_all()
        await wait_until(lambda: pair.wire.begun > 0)
        await pair.two.crash(pair.wire)  # it was being sent
        pair.wire.passing.set()
        await wait_until(lambda: count_homes(pair, arc) == ["two"])
        await pair.two.crash(pair.wire)  # it has the agent; its receipt may be lost
        await pair.one.crash(pair.wire)
        await settle(pair)
        assert count_homes(pair, arc) == ["two"]
        assert await inbox_bodies(pair.two.rig, "arc") == ["keep this"]

    run_pair(scene, tmp_path)
