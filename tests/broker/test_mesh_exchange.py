"""What else two nodes exchange: questions, files, answers that notify, retries, chains of asks, guests."""

from pathlib import Path
from typing import Any

import pytest

from scout.broker.mesh.outbox_rows import queue_entry
from scout.model.access.grant import Action
from scout.model.ask import ReplyMode
from scout.model.flight import FlightState
from scout.model.mesh.envelope import EnvelopeKind
from scout.model.mesh.member import MemberRelation
from scout.model.question import QuestionState
from scout.protocol.access import AddGrant
from scout.protocol.asks import CompleteFlight, FailFlight, MakeAsk, RetryFlight, StartFlight
from scout.protocol.attention import AnswerAttention, GetAttention, ListAttention, Need
from scout.protocol.insight import Why
from scout.protocol.questions import AnswerQuestion, CreateQuestion, GetQuestion
from scout.protocol.talk import GetBlob, GetMessage, PutBlob, Reply, Send
from tests.broker.mesh_pair import Pair, Side, run_pair
from tests.broker.rig import expect_refusal, inbox_bodies, inbox_items, online_agent, read_log, wait_until
from tests.broker.test_mesh_talk import wait_for_flight


async def wait_for_mail(side: Side, name: str | None, text: str) -> Any:
    """The item of an inbox with a text in it."""

    async def look() -> Any:
        items = await inbox_items(side.rig, name)
        return next((one for one in items if one.message and text in one.message.body), None)

    return await wait_until(look)


@pytest.mark.rows("R8.e-5")
def test_a_question_is_answered_from_the_other_node(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        arc, hudson = await online_agent(pair.one.rig, "arc"), await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        asked = await arc.call(CreateQuestion(to="@hudson", body="which port?", options=("80", "81")))
        item = await wait_for_mail(pair.two, "hudson", "which port?")
        there = await hudson.call(GetQuestion(question_id=asked.id))
        assert (there.state, there.options) == (QuestionState.OPEN, ("80", "81"))
        await hudson.call(AnswerQuestion(question_id=asked.id, answer="81"))
        assert item.message is not None
        answer = await wait_for_mail(pair.one, "arc", "81")
        assert answer.message.in_reply_to == item.message.id

        here = await arc.call(GetQuestion(question_id=asked.id))
        assert (here.state, here.answer) == (QuestionState.ANSWERED, "81")

    run_pair(scene, tmp_path)


def test_a_reply_to_the_message_of_a_question_answers_it_across_nodes(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        arc, hudson = await online_agent(pair.one.rig, "arc"), await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        asked = await arc.call(CreateQuestion(to="@hudson", body="red or blue?"))
        item = await wait_for_mail(pair.two, "hudson", "red or blue?")
        await hudson.call(Reply(body="blue", in_reply_to=item.message.id))
        await wait_for_mail(pair.one, "arc", "blue")
        assert (await arc.call(GetQuestion(question_id=asked.id))).answer == "blue"

    run_pair(scene, tmp_path)


@pytest.mark.rows("R8.e-6")
def test_files_follow_their_message_by_hash_and_in_pieces(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        hudson = await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        data = bytes(range(256)) * 3000  # three pieces
        stored = await pair.one.rig.operator(PutBlob(name="log.bin", data=data))
        await pair.one.rig.operator(Send(to="@hudson", body="see this", attachments=(stored.sha256,)))
        await wait_for_mail(pair.two, "hudson", "see this")
        blobs = pair.two.rig.broker.services.blobs
        await wait_until(lambda: blobs.size(stored.sha256) == len(data))
        assert (await hudson.call(GetBlob(sha256=stored.sha256))).data == data
        await wait_until(lambda: _count_open(pair.one) + _count_open(pair.two) == 0)

    run_pair(scene, tmp_path)


def _count_open(side: Side) -> int:
    return len(side.rig.broker.glance().rows("outbox_nodes", after=""))


@pytest.mark.rows("R8.e-6")
def test_a_file_that_was_not_sent_to_a_node_is_not_given_to_it(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        secret = await pair.one.rig.operator(PutBlob(name="secret", data=b"secret"))
        message = await pair.one.rig.operator(Send(to="@hudson", body="nothing attached"))
        item = await wait_for_mail(pair.two, "hudson", "nothing attached")

        def ask_for_it(tx: Any) -> None:
            queue_entry(tx, pair.one.node_id, EnvelopeKind.FETCH, secret.sha256)

        await pair.two.rig.broker.as_system(ask_for_it)

        async def refused() -> bool:
            log = await read_log(pair.one.rig)
            return any(getattr(one.payload, "outcome", "") == "refused" for one in log)

        await wait_until(refused)
        assert pair.two.rig.broker.services.blobs.size(secret.sha256) is None
        assert item.message.id == message.message_id

    run_pair(scene, tmp_path)


def test_an_answer_notifies_its_asker_and_a_failure_tells_it(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        arc, hudson = await online_agent(pair.one.rig, "arc"), await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        good = await arc.call(MakeAsk(to="@hudson", body="build", reply_mode=ReplyMode.NOTIFY))
        await wait_for_mail(pair.two, "hudson", "build")
        await hudson.call(CompleteFlight(flight_id=good.flight_id, output="built"))
        await wait_for_mail(pair.one, "arc", "built")
        bad = await arc.call(MakeAsk(to="@hudson", body="deploy"))
        await wait_for_mail(pair.two, "hudson", "deploy")
        await hudson.call(FailFlight(flight_id=bad.flight_id, reason="no key"))
        told = await wait_for_mail(pair.one, "arc", "no key")
        assert f"scout flight retry {bad.flight_id}" in told.message.body
        assert "deploy" not in await inbox_bodies(pair.one.rig)
        again = await arc.call(RetryFlight(flight_id=bad.flight_id))

        async def there() -> bool:
            found = pair.two.rig.broker.glance().rows("flights_open_ids", agent=again.target)
            return (again.flight_id,) in found

        await wait_until(there)
        await hudson.call(CompleteFlight(flight_id=again.flight_id, output="deployed"))
        done = await wait_for_flight(pair, again.flight_id, FlightState.COMPLETED)
        assert done.output == "deployed"

    run_pair(scene, tmp_path)


def test_a_loop_of_asks_across_nodes_is_stopped(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        arc, hudson = await online_agent(pair.one.rig, "arc"), await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        await pair.one.show(pair.two, "arc")
        first = await arc.call(MakeAsk(to="@hudson", body="what is next?"))
        await wait_for_mail(pair.two, "hudson", "what is next?")
        await hudson.call(StartFlight(flight_id=first.flight_id))
        again = MakeAsk(to="@arc", body="you tell me", within=first.flight_id)
        refused = await expect_refusal(hudson.call(again))
        assert refused.code == "ask_loop"

    run_pair(scene, tmp_path)


@pytest.mark.rows("R8.t-3")
def test_a_guest_may_do_nothing_until_it_is_granted(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        arc = await online_agent(pair.one.rig, "arc")
        hudson = await pair.two.rig.register("hudson", harness="echo")
        await pair.two.show(pair.one, "hudson")
        # On its own node the sender may address the guest's agent: the decision is the other node's.
        operator = await pair.one.rig.operator(MakeAsk(to="@hudson", body="please"))
        refused = await wait_for_flight(pair, operator.flight_id, FlightState.FAILED)
        assert refused.error is not None
        assert refused.error.code == "forbidden"
        asker = await pair.one.show(pair.two, "/ada/direct")
        await pair.two.rig.operator(AddGrant(action=Action.ASK, agent=asker, path=str(hudson.agent.path)))
        again = await pair.one.rig.operator(MakeAsk(to="@hudson", body="please"))
        done = await wait_for_flight(pair, again.flight_id, FlightState.COMPLETED)
        assert done.output == "please"
        assert arc is not None

    run_pair(scene, tmp_path, relation=MemberRelation.GUEST)


def test_both_nodes_explain_their_half(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await pair.two.rig.register("hudson", harness="echo")
        await pair.two.show(pair.one, "hudson")
        asked = await pair.one.rig.operator(MakeAsk(to="@hudson", body="why me?"))
        await wait_for_flight(pair, asked.flight_id, FlightState.COMPLETED)
        here = await pair.one.rig.operator(Why(id=asked.flight_id))
        there = await pair.two.rig.operator(Why(id=asked.flight_id))
        kinds = [one.type.removeprefix("collab.") for one in here.steps]
        assert {"envelope.queued", "envelope.accepted"} <= set(kinds)
        assert "envelope.received" in kinds
        assert "node two" in here.says
        assert "from node one was accepted" in there.says
        assert any(one.rule == "explicit target" for one in there.decisions)
        sent = await pair.one.rig.operator(Send(to="@hudson", body="and this?"))
        view = await pair.one.rig.operator(GetMessage(message_id=sent.message_id))
        why = await pair.one.rig.operator(Why(id=view.deliveries[0].delivery_id))
        assert any(one.type == "collab.envelope.queued" for one in why.steps)

    run_pair(scene, tmp_path)


@pytest.mark.rows("R8.t-4")
def test_the_operator_decides_items_of_another_node_that_shares_them(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        hudson = await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        await pair.one.show(pair.two, "/ada/direct")
        private = await hudson.call(Need(question="not shared yet"))
        pair.two.rig.broker.services.shares_attention = True
        item = await hudson.call(Need(question="may I deploy?"))

        async def listed() -> Any:
            found = (await pair.one.rig.operator(ListAttention())).items
            return next((one for one in found if one.id == item.id), None)

        copy = await wait_until(listed)
        assert (copy.title, copy.agent_address) == (item.title, "@hudson")
        found = (await pair.one.rig.operator(ListAttention())).items
        assert private.id not in [one.id for one in found]
        arc = await online_agent(pair.one.rig, "arc")
        unseen = await expect_refusal(arc.call(GetAttention(attention_id=item.id)))
        assert unseen.code == "not_found"
        await pair.one.rig.operator(AnswerAttention(attention_id=item.id, answer="yes, at noon"))

        async def decided() -> bool:
            there = await pair.two.rig.operator(GetAttention(attention_id=item.id))
            return (there.state, there.answer) == ("answered", "yes, at noon")

        await wait_until(decided)
        await wait_for_mail(pair.two, "hudson", "yes, at noon")

    run_pair(scene, tmp_path)


def test_a_broadcast_to_all_nodes_is_unread_for_the_agents_of_each(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await online_agent(pair.one.rig, "arc")
        await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        plain = await expect_refusal(pair.one.rig.operator(Send(to="@arc", body="x", all_nodes=True)))
        assert plain.field == "allNodes"
        sent = await pair.one.rig.operator(Send(broadcast=True, all_nodes=True, body="stop at noon"))
        assert "agents by node: one: 1, two: 1" in sent.notes
        for side, name in ((pair.one, "arc"), (pair.two, "hudson")):
            item = await wait_for_mail(side, name, "stop at noon")
            assert (item.broadcast, item.message.id) == (True, sent.message_id)
        later = await online_agent(pair.two.rig, "later")
        assert later is not None
        assert "stop at noon" not in await inbox_bodies(pair.two.rig, "later")

    run_pair(scene, tmp_path)


def test_a_broadcast_does_not_reach_a_guest(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        sent = await pair.one.rig.operator(Send(broadcast=True, all_nodes=True, body="not for guests"))
        assert not any("two" in note for note in sent.notes)
        assert _count_open(pair.one) == 0

    run_pair(scene, tmp_path, relation=MemberRelation.GUEST)
