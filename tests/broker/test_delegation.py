"""Delegation: whom a message, a question or a move of work wakes, and where it is said."""

from pathlib import Path
from typing import Any

import pytest

from scout.base.codec import decode
from scout.broker.local import LocalScout
from scout.model.conversation import MessageKind, SoftMentions, derive_dm_id
from scout.model.delivery import Delivery
from scout.model.endpoint import EndpointState, Transport
from scout.model.events.asks import DeliveryRequested
from scout.model.events.envelope import Event, WakeFact
from scout.model.events.talk import MessagePosted, read_message
from scout.model.flight import FlightState
from scout.model.waiting import WaitingKind
from scout.policy.limits import Limits
from scout.policy.wake import WakeFacts, decide_wake
from scout.protocol.agents import RetireAgent
from scout.protocol.asks import CompleteFlight, GetFlight, MakeAsk, StartFlight
from scout.protocol.attention import ListAttention
from scout.protocol.channels import CreateChannel, GetConversation
from scout.protocol.endpoints import RegisterEndpoint
from scout.protocol.inbox import GetDelivery
from scout.protocol.questions import AnswerQuestion, CreateQuestion
from scout.protocol.talk import GetMessage, ListMessages, Send
from scout.protocol.work import CreateWork, HandOverWork, StartWork, SubmitWork, WaitWork
from tests.broker.neighbours import draw_requests, stranger
from tests.broker.rig import (
    Rig,
    advance_clock,
    as_test,
    expect_refusal,
    inbox_bodies,
    online_agent,
    read_log,
    run_scene,
    wait_for_end,
)


def ident(seat: LocalScout) -> str:
    assert seat.who.actor.agent_id is not None
    return seat.who.actor.agent_id


async def programs(rig: Rig, *names: str) -> list[LocalScout]:
    """Agents that can be started."""
    return [await rig.agent(name, harness="echo") for name in names]


async def list_routed(rig: Rig, message_id: str) -> list[tuple[Delivery, WakeFact | None]]:
    """The deliveries that were requested for a message, each with the decision that stands beside it."""
    events = [one for one in await read_log(rig) if isinstance(one, DeliveryRequested)]
    found = [(one.payload.record, one.metadata.wake) for one in events]
    return [(record, wake) for record, wake in found if record.message_id == message_id]


async def woken(rig: Rig, message_id: str) -> list[str]:
    return [one.target for one, _ in await list_routed(rig, message_id) if one.wake]


async def find_post(rig: Rig, message_id: str) -> Event:
    events = [one for one in await read_log(rig) if isinstance(one, MessagePosted)]
    return next(one for one in events if read_message(one).id == message_id)


# -- mentions ------------------------------------------------------------------------------------------


@pytest.mark.rows("R1.3-54", "R3.1-7", "R3.3-1")
@as_test
async def test_a_leading_mention_wakes_its_target_and_nobody_else(rig: Rig) -> None:
    arc, hal, _ = await programs(rig, "arc", "hal", "eve")
    sent = await arc.call(Send(body="@hal please look, perhaps with @eve"))
    assert await woken(rig, sent.message_id) == [ident(hal)]
    [(delivery, wake)] = await list_routed(rig, sent.message_id)
    assert (delivery.sender, delivery.rule, delivery.delegates) == (ident(arc), "leading mention", True)
    assert wake is not None
    assert (wake.agent_id, wake.action) == (ident(hal), "wake")


@pytest.mark.rows("R3.1-5")
@as_test
async def test_a_plain_send_starts_nothing(rig: Rig) -> None:
    arc, hal = await programs(rig, "arc", "hal")
    plain = await arc.call(Send(to="@hal", body="for later"))
    assert await woken(rig, plain.message_id) == []
    assert await inbox_bodies(rig, "hal") == ["for later"]
    aloud = await arc.call(Send(to="@hal", body="now", wake=True))
    assert await woken(rig, aloud.message_id) == [ident(hal)]
    asking = await arc.call(Send(to="@hal", body="which?", kind=MessageKind.QUESTION))
    assert await woken(rig, asking.message_id) == [ident(hal)]


@pytest.mark.rows("R3.1-7", "R1.3-59")
@as_test
async def test_a_named_target_wins_over_a_mention_and_a_mention_of_it_wakes_it(rig: Rig) -> None:
    arc, hal, _ = await programs(rig, "arc", "hal", "eve")
    other = await arc.call(Send(to="@hal", body="@eve was here"))
    assert await woken(rig, other.message_id) == []
    assert [one.target for one, _ in await list_routed(rig, other.message_id)] == [ident(hal)]
    shown = await rig.operator(GetMessage(message_id=other.message_id))
    assert shown.mentions == ("@eve.node:mini",)  # it was said, and stays
    both = await arc.call(Send(to="@hal", body="@hal please"))
    assert await woken(rig, both.message_id) == [ident(hal)]


@pytest.mark.rows("R1.3-55", "R1.3-56")
@as_test
async def test_a_soft_mention_is_a_hint_unless_the_channel_says_that_it_wakes(rig: Rig) -> None:
    arc, hal, eve = await programs(rig, "arc", "hal", "eve")
    members = ("@hal", "@eve")
    await arc.call(CreateChannel(name="calm", members=members))
    await arc.call(CreateChannel(name="loud", members=members, soft_mentions=SoftMentions.WAKE))
    calm = await arc.call(Send(channel="calm", body="ask @hal or @eve"))
    assert await list_routed(rig, calm.message_id) == []
    shown = await rig.operator(GetMessage(message_id=calm.message_id))
    assert shown.mentions == ("@hal", "@eve")
    loud = await arc.call(Send(channel="loud", body="ask @hal or @eve"))
    assert await woken(rig, loud.message_id) == [ident(hal)]  # the first, never both
    [(delivery, _)] = await list_routed(rig, loud.message_id)
    assert delivery.rule == "soft mention"
    own = await hal.call(Send(channel="loud", body="I, @hal, and @eve"))
    assert await woken(rig, own.message_id) == [ident(eve)]
    await rig.operator(RetireAgent(address="@eve"))
    gone = await arc.call(Send(channel="loud", body="ask @eve"))
    assert await woken(rig, gone.message_id) == []


@as_test
async def test_a_soft_mention_wakes_nobody_whom_the_sender_may_not_speak_to(rig: Rig) -> None:
    arc, *_ = await programs(rig, "arc")
    bob = await stranger(rig)
    await arc.call(CreateChannel(name="loud", soft_mentions=SoftMentions.WAKE))
    sent = await arc.call(Send(channel="loud", body=f"ask {bob.path}, @zed or @nobody"))
    assert await list_routed(rig, sent.message_id) == []


@as_test
async def test_a_thread_is_ruled_by_the_channel_it_hangs_on(rig: Rig) -> None:
    arc, hal, eve = await programs(rig, "arc", "hal", "eve")
    members = ("@hal", "@eve")
    await arc.call(
        CreateChannel(name="loud", members=members, soft_mentions=SoftMentions.WAKE, master="@eve")
    )
    root = await arc.call(Send(channel="loud", body="the build is red"))
    mentioned = await arc.call(Send(thread=root.message_id, body="so @hal knows"))
    assert await woken(rig, mentioned.message_id) == [ident(hal)]
    unnamed = await arc.call(Send(thread=root.message_id, body="and who else?"))
    assert [one.target for one, _ in await list_routed(rig, unnamed.message_id)] == [ident(eve)]
    await arc.call(CreateChannel(name="calm", members=members, quiet=True))
    silent = await arc.call(Send(channel="calm", body="hush"))
    told = await hal.call(Send(thread=silent.message_id, body="@eve hush", wake=True))
    assert await woken(rig, told.message_id) == []


# -- nobody ----------------------------------------------------------------------------------------------


@pytest.mark.rows("R3.3-4")
@pytest.mark.parametrize("kind", [MessageKind.STATUS, MessageKind.FINAL])
def test_status_and_final_wake_nobody(tmp_path: Path, kind: MessageKind) -> None:
    async def scene(rig: Rig) -> None:
        arc, *_ = await programs(rig, "arc", "hal", "eve")
        await arc.call(CreateChannel(name="ops", members=("@hal",), master="@hal"))
        for wish in draw_requests(
            Send(body="@hal done", kind=kind, wake=True),
            Send(channel="ops", body="@hal done", kind=kind, wake=True),
            Send(channel="ops", body="done", kind=kind, wake=True),
        ):
            sent = await arc.call(wish)
            assert await woken(rig, sent.message_id) == []
            event = await find_post(rig, sent.message_id)
            assert event.metadata.wake is not None
            assert (event.metadata.wake.action, event.metadata.wake.rule) == (
                "nobody",
                f"a {kind} message wakes no agent",
            )
        assert (await inbox_bodies(rig, "hal")) == [
            "@hal done",
            "@hal done",
            "done",
        ]  # it is unread, and woke nobody

    run_scene(scene, tmp_path)


@pytest.mark.rows("R3.3-6")
@as_test
async def test_a_broadcast_and_a_quiet_channel_wake_nobody(rig: Rig) -> None:
    arc, _ = await programs(rig, "arc", "hal")
    await arc.call(CreateChannel(name="calm", members=("@hal",), quiet=True, soft_mentions=SoftMentions.WAKE))
    for wish in draw_requests(
        Send(broadcast=True, body="@hal and all", wake=True),
        Send(channel="calm", body="@hal and @hal", wake=True),
        Send(channel="calm", body="so, @hal?", kind=MessageKind.QUESTION),
    ):
        sent = await arc.call(wish)
        assert await woken(rig, sent.message_id) == []
        assert (await find_post(rig, sent.message_id)).metadata.wake is not None


@pytest.mark.rows("R3.3-5")
@as_test
async def test_the_sender_is_woken_by_its_own_message_only_as_a_follow_up(rig: Rig) -> None:
    arc, *_ = await programs(rig, "arc")
    alone = await arc.call(Send(to="@arc", body="note to self", wake=True))
    assert await list_routed(rig, alone.message_id) == []
    again = await arc.call(Send(to="@arc", body="!say go on", wake=True, follow_up=True))
    assert await woken(rig, again.message_id) == [ident(arc)]
    await arc.call(CreateChannel(name="ops", master="@arc"))
    mine = await arc.call(Send(channel="ops", body="who takes it?", wake=True))
    assert await list_routed(rig, mine.message_id) == []
    follow = await arc.call(Send(channel="ops", body="!say I do", wake=True, follow_up=True))
    assert await woken(rig, follow.message_id) == [ident(arc)]


# -- where it is said --------------------------------------------------------------------------------------


@pytest.mark.rows("R3.3-9")
@as_test
async def test_one_to_one_delegation_stays_in_its_dm_with_the_acting_agent_as_sender(rig: Rig) -> None:
    arc, hal, eve = await programs(rig, "arc", "hal", "eve")
    sent = await arc.call(Send(body="@hal please"))
    asked = await arc.call(MakeAsk(to="@hal", body="!say done", wait=20))
    question = await arc.call(CreateQuestion(to="@hal", body="!say which?"))
    item = await arc.call(CreateWork(title="!say the build", owner_id="@hal"))
    place = derive_dm_id(ident(arc), ident(hal))
    assert {sent.conversation_id, asked.conversation_id} == {place}
    assert (question.conversation_id, item.owner_id) == (place, ident(hal))
    conversation = await arc.call(GetConversation(conversation_id=place))
    assert {one.agent_id for one in conversation.members} == {ident(arc), ident(hal)}
    said = (await arc.call(ListMessages(conversation=place, limit=50))).items
    assert {one.sender for one in said} <= {ident(arc), ident(hal)}
    assert [one.sender for one in said if one.id == sent.message_id] == [ident(arc)]
    for wish in draw_requests(
        Send(conversation_id=place, body="@eve look"), Send(thread=sent.message_id, body="@eve look")
    ):
        told = await expect_refusal(arc.call(wish))
        assert (told.code, told.remedies[0].parameters["to"]) == ("bad_request", "@eve")
    told = await expect_refusal(arc.call(MakeAsk(to="@eve", body="x", conversation_id=place)))
    assert told.code == "bad_request"
    assert len((await arc.call(GetConversation(conversation_id=place))).members) == 2
    other = await hal.call(Send(body="@eve please"))  # the next in the chain speaks for itself
    assert other.conversation_id == derive_dm_id(ident(hal), ident(eve))


@pytest.mark.rows("R3.3-9", "R3.3-10")
@as_test
async def test_when_another_is_woken_the_message_stays_and_the_delivery_says_why(rig: Rig) -> None:
    arc, hal = await programs(rig, "arc", "hal")
    mute = await rig.register("mute")  # nothing can run it
    await arc.call(CreateChannel(name="ops", members=("@hal", "@mute"), master="@hal"))
    sent = await arc.call(Send(channel="ops", body="@mute or @hal, please", wake=True))
    shown = await rig.operator(GetMessage(message_id=sent.message_id))
    assert (shown.body, shown.mentions) == ("@mute or @hal, please", ("@mute.node:mini", "@hal"))
    assert shown.target_agents == (mute.agent.id,)
    assert await woken(rig, sent.message_id) == [ident(hal)]
    [(first, wake), (also, none)] = await list_routed(rig, sent.message_id)
    assert (first.target, first.rule) == (ident(hal), "conversation master")
    assert first.reason == "leading mention @mute: no live session, and no harness is set for it"
    assert wake is not None
    assert (wake.instead_of, wake.reason) == (mute.agent.id, first.reason)
    assert (also.target, also.wake, also.rule, none) == (mute.agent.id, False, "named", None)
    assert first.reason in sent.notes
    view = await rig.operator(GetDelivery(delivery_id=first.id))
    assert view.reason == first.reason


@pytest.mark.rows("R3.3-12")
@as_test
async def test_what_is_for_an_agent_started_by_hand_says_how(rig: Rig) -> None:
    arc, *_ = await programs(rig, "arc")
    await rig.register("byhand", harness="echo", wake_policy="manual")
    sent = await arc.call(Send(body="@byhand please"))
    assert await woken(rig, sent.message_id) == []
    told = "@byhand is started by hand: scout session start --agent @byhand --harness echo"
    assert sent.notes == (told,)
    [(delivery, wake)] = await list_routed(rig, sent.message_id)
    assert wake is not None
    assert (delivery.reason, delivery.delegates, wake.action) == (told, True, "hold")
    byhand = await rig.agent("byhand")
    await byhand.call(RegisterEndpoint(transport=Transport.PULL, state=EndpointState.IDLE))
    again = await arc.call(Send(body="@byhand please"))
    assert again.notes == ()


# -- the next move -------------------------------------------------------------------------------------------


async def list_notified(rig: Rig, item_id: str) -> list[tuple[str, str, bool]]:
    """Who was told of the moves of an item: whom, by which rule, and whether it was woken."""
    events = [one for one in await read_log(rig) if isinstance(one, DeliveryRequested)]
    found = [one.payload.record for one in events if one.payload.record.work_item_id == item_id]
    return [(one.target, one.rule, one.wake) for one in found]


@pytest.mark.rows("R3.3-2", "R3.3-7")
@as_test
async def test_the_next_move_owner_comes_before_the_owner(rig: Rig) -> None:
    arc, hal, eve = [await online_agent(rig, name) for name in ("arc", "hal", "eve")]
    item = await arc.call(CreateWork(title="the build", owner_id="@hal"))
    assert await list_notified(rig, item.id) == [(ident(hal), "next-move owner", False)]
    await hal.call(StartWork(work_item_id=item.id))
    await hal.call(WaitWork(work_item_id=item.id, on=WaitingKind.ACTOR, ref="@eve", reason="a key"))
    assert (await list_notified(rig, item.id))[-1] == (ident(eve), "dependency owner", False)
    await rig.operator(HandOverWork(work_item_id=item.id, to="@eve"))
    assert {one for one, *_ in await list_notified(rig, item.id)} == {ident(hal), ident(eve)}


@pytest.mark.rows("R3.3-11")
@as_test
async def test_if_the_next_move_owner_is_gone_the_owner_is_told_why(rig: Rig) -> None:
    arc, hal, _ = [await online_agent(rig, name) for name in ("arc", "hal", "eve")]
    item = await arc.call(CreateWork(title="the build", owner_id="@hal", reviewer_id="@eve"))
    await hal.call(StartWork(work_item_id=item.id))
    await rig.operator(RetireAgent(address="@eve"))
    before = len(await list_notified(rig, item.id))
    await hal.call(SubmitWork(work_item_id=item.id, summary="done"))
    after = (await list_notified(rig, item.id))[before:]
    assert ident(hal) not in [one for one, *_ in after]
    assert [one for one, *_ in after] == [ident(arc)]


# -- runaways --------------------------------------------------------------------------------------------------


@pytest.mark.rows("R3.3-20", "R3.3-22")
def test_a_conversation_that_has_used_up_its_wakes_is_held_and_goes_on_after_the_hour(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        arc, hal = await programs(rig, "arc", "hal")
        for text in ("@hal one", "@hal two"):
            assert await woken(rig, (await arc.call(Send(body=text))).message_id) == [ident(hal)]
        held = [await arc.call(Send(body=text)) for text in ("@hal three", "@hal four")]
        asked = await arc.call(MakeAsk(to="@hal", body="five"))
        for sent in held:
            [(delivery, wake)] = await list_routed(rig, sent.message_id)
            assert (delivery.wake, delivery.rule) == (False, "wake_budget")
            assert wake is not None
            assert (wake.action, wake.agent_id) == ("hold", ident(hal))
            assert any("2 of 2 wakes" in note for note in sent.notes)
        view = await rig.operator(GetFlight(flight_id=asked.flight_id))
        assert (view.phase, view.waiting_on and view.waiting_on.kind) == ("held", "operator")
        assert view.next_move_owner_id == rig.broker.services.operator_agent
        needs = (await rig.operator(ListAttention())).items
        assert [one.title for one in needs] == ["agents used up the wake budget of @arc and @hal"]
        elsewhere = await rig.operator(Send(body="@hal from another"))
        assert await woken(rig, elsewhere.message_id) == [ident(hal)]
        await advance_clock(rig, 3700)
        assert (await wait_for_end(rig, asked.flight_id)).output == "five"
        again = await arc.call(Send(body="@hal six"))
        assert await woken(rig, again.message_id) == [ident(hal)]

    run_scene(scene, tmp_path, limits=Limits(wakes_per_hour=2))


@pytest.mark.rows("R3.3-21", "R3.3-22", "R3.3-23", "R3.3-24")
@as_test
async def test_two_that_ask_each_other_are_stopped_and_a_question_in_the_flight_is_no_loop(rig: Rig) -> None:
    a, b = await online_agent(rig, "a"), await online_agent(rig, "b")
    asked = await a.call(MakeAsk(to="@b", body="one"))
    await b.call(StartFlight(flight_id=asked.flight_id))
    for body in ("two", "three"):
        told = await expect_refusal(b.call(MakeAsk(to="@a", body=body)))
        assert (told.code, told.chain) == ("ask_loop", ("@a", "@b", "@a"))
    needs = (await rig.operator(ListAttention())).items
    assert [one.title for one in needs] == ["ask loop: @a → @b → @a"]
    remedy = told.remedies[0]
    assert remedy.operation == "question.create"
    wish: dict[str, Any] = {**_names(remedy.parameters), "body": "which one?"}
    question = await b.call(CreateQuestion(**wish))
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).state is FlightState.WAITING
    assert (question.next_move_owner_id, question.flight_id) == (ident(a), asked.flight_id)
    await a.call(AnswerQuestion(question_id=question.id, answer="the second"))
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).state is FlightState.RUNNING
    await b.call(CompleteFlight(flight_id=asked.flight_id, output="done"))
    assert len((await rig.operator(ListAttention())).items) == 1


def _names(parameters: dict[str, Any]) -> dict[str, Any]:
    return {"flight_id" if key == "flightId" else key: value for key, value in parameters.items()}


# -- from the log alone ----------------------------------------------------------------------------------------


@as_test
async def test_every_decision_is_stored_with_its_facts_and_can_be_made_again(rig: Rig) -> None:
    arc, hal, _ = await programs(rig, "arc", "hal", "eve")
    await arc.call(CreateChannel(name="ops", members=("@hal", "@eve"), master="@eve"))
    for wish in draw_requests(
        Send(body="@hal one"),
        Send(to="@hal", body="two"),
        Send(channel="ops", body="three", wake=True),
        Send(channel="ops", body="four", kind=MessageKind.STATUS),
    ):
        await arc.call(wish)
    await hal.call(CreateQuestion(to="@eve", body="!say five"))
    stored = [event.metadata.wake for event in await read_log(rig) if event.metadata.wake is not None]
    assert len(stored) >= 5
    for wake in stored:
        facts = decode(wake.facts, WakeFacts)
        again = decide_wake(facts.occasion, {one.agent_id: one for one in facts.reaches}, facts.routing)
        assert again.stored == wake
