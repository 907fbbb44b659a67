"""Why somebody was woken: answered from the log alone, with who was considered and why not."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from scout.base.codec import decode
from scout.broker.local import LocalScout
from scout.broker.routing import posts
from scout.broker.transaction.transaction import Transaction
from scout.model.access.grant import Action
from scout.model.conversation import Message
from scout.model.events.asks import DeliveryRequested
from scout.policy.limits import Limits
from scout.policy.wake import WakeFacts
from scout.protocol.access import AddGrant
from scout.protocol.asks import MakeAsk
from scout.protocol.attention import AnswerAttention, Need
from scout.protocol.channels import CreateChannel
from scout.protocol.insight import Explanation, Why
from scout.protocol.questions import AnswerQuestion, CreateQuestion
from scout.protocol.talk import Send
from scout.protocol.work import CreateWork, StartWork, SubmitWork
from scout.store.integrity.review import review
from tests.broker.rig import (
    Rig,
    as_test,
    expect_refusal,
    online_agent,
    read_log,
    run_scene,
    wait_for_end,
    wait_until,
)


async def why(rig: Rig, ident: str, seat: LocalScout | None = None) -> Explanation:
    return await (seat or await rig.scout()).call(Why(id=ident))


def types(told: Explanation) -> list[str]:
    return [one.type.removeprefix("collab.") for one in told.steps]


@pytest.mark.rows("R2.3-21")
@as_test
async def test_a_message_says_who_was_woken_and_who_was_passed_over(rig: Rig) -> None:
    await rig.register("bow", harness="echo")
    arc = await rig.agent("arc")
    sent = await arc.call(Send(body="@bow please look", idempotency_key="k"))
    told = await why(rig, sent.message_id, arc)
    assert (told.noun, told.id) == ("message", sent.message_id)
    (decision,) = told.decisions
    assert decision.outcome in ("queued", "woken")

    async def is_woken() -> bool:
        says = (await why(rig, sent.message_id, arc)).says
        return says.startswith("@bow was woken: it is the leading mention.")

    assert await wait_until(is_woken)
    assert (decision.action, decision.rule, decision.holder) == ("wake", "leading mention", "@bow")
    assert decision.differs == ""
    facts = decode(decision.facts, WakeFacts)
    assert facts.occasion.leading is not None
    assert [one.address for one in facts.reaches] == ["@bow"]
    assert types(told)[:2] == ["message.posted", "delivery.requested"]
    assert told.steps[0].by == "@arc"
    assert [one.seq for one in told.steps] == sorted(one.seq for one in told.steps)


@as_test
async def test_nobody_is_explained_as_well(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.register("bow", harness="echo")
    await arc.call(CreateChannel(name="dev", members=("@bow",), quiet=True, master="@bow"))
    sent = await arc.call(Send(channel="dev", body="hello all", wake=True))
    told = await why(rig, sent.message_id, arc)
    assert told.says == (
        "No agent was woken: a quiet conversation wakes no agent; "
        "@bow was passed over: a quiet conversation wakes no agent; "
        "@arc was passed over: a quiet conversation wakes no agent."
    )
    (decision,) = told.decisions
    assert (decision.action, decision.holder) == ("nobody", None)
    assert [one.role for one in decision.passed_over] == ["conversation master", "channel owner"]


@as_test
async def test_a_flight_its_ask_and_its_delivery_tell_one_story(rig: Rig) -> None:
    await rig.register("bow", harness="echo")
    arc = await rig.agent("arc")
    asked = await arc.call(MakeAsk(to="@bow", body="x", wait=20))
    flight = await why(rig, asked.flight_id, arc)
    assert flight.says == ("@bow was woken: it is the explicit target. The flight is completed.")
    assert types(flight)[:2] == ["flight.queued", "delivery.requested"]
    assert types(flight)[-1] == "flight.completed"
    ask = await why(rig, asked.ask_id, arc)
    assert types(ask)[:2] == ["message.posted", "ask.created"]
    assert ask.decisions == flight.decisions
    requested = next(one for one in await read_log(rig) if isinstance(one, DeliveryRequested))
    delivery = await why(rig, requested.target.id, arc)
    assert delivery.decisions == flight.decisions
    assert types(delivery) == [
        "delivery.requested",
        "delivery.leased",
        "delivery.woken",
        "delivery.acked",
    ]
    bow = await rig.agent("bow")
    assert (await why(rig, asked.flight_id, bow)).steps == flight.steps


@as_test
async def test_a_question_and_a_work_item_say_who_held_the_next_move(rig: Rig) -> None:
    bow, arc = await online_agent(rig, "bow"), await online_agent(rig, "arc")
    question = await arc.call(CreateQuestion(to="@bow", body="Which port?"))
    told = await why(rig, question.id, bow)
    assert told.says == ("@bow was notified, not woken: it is the next-move owner. The question is open.")
    assert [one.outcome for one in told.decisions] == ["told"]
    await bow.call(AnswerQuestion(question_id=question.id, answer="7432"))
    told = await why(rig, question.id, arc)
    assert [one.type for one in told.steps] == ["collab.question.created", "collab.question.answered"]
    assert len(told.decisions) == 2
    item = await arc.call(CreateWork(title="Fix it", owner_id="@bow"))
    await bow.call(StartWork(work_item_id=item.id))
    await bow.call(SubmitWork(work_item_id=item.id))
    told = await why(rig, item.id, arc)
    assert told.steps[0].move == "create"
    assert told.decisions[0].holder == "@bow"
    assert told.decisions[-1].rule == "next-move owner"
    assert told.says.endswith("The work item is review.")
    assert all(one.differs == "" for one in told.decisions)


@as_test
async def test_an_attention_item_and_a_single_event(rig: Rig) -> None:
    arc = await online_agent(rig, "arc")
    item = await arc.call(Need(question="May I?"))
    await rig.operator(AnswerAttention(attention_id=item.id, answer="yes"))
    told = await why(rig, item.id, arc)
    assert types(told)[0] == "attention.created"
    assert types(told)[-1] == "attention.answered"
    assert "The attention item is answered" in told.says
    sent = await arc.call(Send(body="@arc talk to yourself", to="@arc"))
    event = next(
        one for one in await read_log(rig) if getattr(one.payload, "message_id", None) == sent.message_id
    )
    alone = await why(rig, event.id, arc)
    assert (alone.noun, types(alone)) == ("event", ["message.posted"])
    assert alone.decisions == (await why(rig, sent.message_id, arc)).decisions
    created = next(one for one in await read_log(rig) if one.target.id == item.id)
    assert (await why(rig, created.id, arc)).says == "It is open."


@as_test
async def test_only_who_may_read_the_record_is_told(rig: Rig) -> None:
    await rig.register("bow", harness="echo")
    arc, eve = await rig.agent("arc"), await rig.agent("eve")
    asked = await arc.call(MakeAsk(to="@bow", body="secret", wait=20))
    event = (await read_log(rig, "collab.flight"))[0]
    question = await arc.call(CreateQuestion(to="@bow", body="secret?"))
    item = await arc.call(CreateWork(title="secret", owner_id="@bow"))
    for ident in (asked.message_id, asked.ask_id, asked.flight_id, event.id, question.id, item.id):
        assert (await expect_refusal(why(rig, ident, eve))).code == "forbidden", ident
    await rig.operator(AddGrant(action=Action.READ, agent="@eve", path="/ada/agent/bow"))
    eve = await rig.scout(rig.tokens["eve"])
    assert (await why(rig, asked.flight_id, eve)).decisions
    for ident, code in (("flt_none", "not_found"), ("evt_none", "not_found"), ("agt_none", "bad_request")):
        assert (await expect_refusal(why(rig, ident))).code == code


def test_what_the_budget_held_is_said_and_does_not_differ(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("bow", harness="echo")
        arc = await rig.agent("arc")
        first = await arc.call(MakeAsk(to="@bow", body="x", wait=20))
        await wait_for_end(rig, first.flight_id)
        asked = await arc.call(MakeAsk(to="@bow", body="again"))
        told = await why(rig, asked.flight_id)
        assert told.says.startswith("@bow was not woken: agents used 1 of 1 wakes per hour")
        assert [(one.action, one.rule, one.differs) for one in told.decisions] == [
            ("hold", "wake_budget", "")
        ]

    run_scene(scene, tmp_path, limits=Limits(wakes_per_hour=1))


@as_test
async def test_a_decision_that_would_be_another_today_is_shown_as_it_would_be(rig: Rig) -> None:
    await rig.register("bow", harness="echo")
    arc = await rig.agent("arc")
    sent = await arc.call(Send(body="@bow please look"))
    clean = review(rig.home / "scout.db")
    assert (clean.clean, clean.decisions) == (True, 1)
    await rig.broker.as_system(lambda tx: _decided_long_ago(tx, sent.message_id))
    found = review(rig.home / "scout.db")
    (other,) = found.differences
    assert (found.clean, found.decisions, found.differing) == (False, 2, 1)
    assert other.stored.endswith("(owner)")
    assert other.today.endswith("(leading mention)")
    told = await why(rig, sent.message_id, arc)
    assert [one.differs for one in told.decisions] == ["", "wake @bow (leading mention)"]
    assert (await why(rig, other.event_id)).decisions == told.decisions[1:]


def _decided_long_ago(tx: Transaction, message_id: str) -> None:
    """The same facts, decided as another version of the policy might have."""
    (event,) = tx.ledger.log.list_routed(0, 1 << 62)
    assert event.metadata.wake is not None
    message = tx.need(Message, "message", message_id)
    decision = replace(event.metadata.wake, rule="owner")
    posts.create_delivery(tx, message, message.sender, decision=decision)
