"""Questions through a real broker: asked, answered once, declined, put away, asked again."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from scout.broker.local import LocalScout
from scout.model.agent import WakePolicy
from scout.model.conversation import MessageKind
from scout.model.events.envelope import get_record
from scout.model.events.talk import QuestionAnswered, QuestionCreated, WorkItemCreated
from scout.model.flight import FlightState
from scout.model.question import QuestionState
from scout.model.waiting import WaitingKind
from scout.model.work_item import RelationKind, WorkState
from scout.protocol.agents import RetireAgent
from scout.protocol.asks import CompleteFlight, GetFlight, MakeAsk, StartFlight
from scout.protocol.channels import CreateChannel
from scout.protocol.inbox import ListInbox
from scout.protocol.questions import (
    AnswerQuestion,
    CloseQuestion,
    CreateQuestion,
    DeclineQuestion,
    GetQuestion,
    ListQuestions,
    QuestionView,
    ReopenQuestion,
    Spawn,
)
from scout.protocol.talk import GetMessage, Reply
from scout.protocol.work import CreateWork, GetWork
from tests.broker.rig import (
    Rig,
    as_test,
    expect_refusal,
    inbox_bodies,
    inbox_items,
    list_ids,
    online_agent,
    read_log,
    run_scene,
    wait_for_end,
    wait_until,
    write_program,
)


async def _pair(rig: Rig) -> tuple[LocalScout, LocalScout]:
    return await online_agent(rig, "arc"), await online_agent(rig, "hal")


async def _create_question(
    seat: LocalScout, to: str = "@hal", body: str = "Which port?", **more: Any
) -> QuestionView:
    return await seat.call(CreateQuestion(to=to, body=body, **more))


async def _last(rig: Rig) -> int:
    return (await read_log(rig))[-1].seq


@as_test
async def test_a_question_reaches_its_responder_and_the_answer_its_asker(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    asked = await _create_question(arc, options=("8080", "9090"))
    assert (asked.state, asked.next_move_owner_id) == (QuestionState.OPEN, asked.responder_id)
    (item,) = await inbox_items(rig, "hal")
    assert item.message is not None
    assert (item.message.kind, item.message.id) == (MessageKind.QUESTION, asked.message_id)
    assert item.message.body == "Which port?\n\n- 8080\n- 9090"
    assert item.message.sender == asked.asker_id
    assert item.message.conversation_id == asked.conversation_id
    done = await hal.call(AnswerQuestion(question_id=asked.id, answer="9090"))
    assert (done.state, done.answer, done.next_move_owner_id) == ("answered", "9090", asked.asker_id)
    (told,) = await inbox_items(rig, "arc")
    assert told.message is not None
    assert (told.message.kind, told.message.body) == (MessageKind.ANSWER, "9090")
    assert told.message.in_reply_to == asked.message_id
    assert done.answer_message_id == told.message.id
    closed = await arc.call(CloseQuestion(question_id=asked.id))
    assert (closed.state, closed.next_move_owner_id) == (QuestionState.CLOSED, None)


@as_test
async def test_the_first_answer_wins_and_later_ones_change_nothing(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    asked = await _create_question(arc)
    await rig.operator(AnswerQuestion(question_id=asked.id, answer="80"))
    before = await _last(rig)
    for late in (
        AnswerQuestion(question_id=asked.id, answer="81"),
        DeclineQuestion(question_id=asked.id, reason="no"),
    ):
        problem = await expect_refusal(hal.call(late))
        assert problem.code == "wrong_state"
        assert set(problem.accepts) == {"close", "reopen"}
    assert await _last(rig) == before
    assert (await arc.call(GetQuestion(question_id=asked.id))).answer == "80"


@as_test
async def test_refused_nothing_is_written(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    eve = await online_agent(rig, "eve")
    asked = await _create_question(arc)
    item = await eve.call(CreateWork(title="of eve"))
    before = await _last(rig)
    cases = (
        (eve.call(AnswerQuestion(question_id=asked.id, answer="x")), "not_owner"),
        (eve.call(DeclineQuestion(question_id=asked.id)), "not_owner"),
        (eve.call(CloseQuestion(question_id=asked.id)), "not_owner"),
        (hal.call(CloseQuestion(question_id=asked.id)), "not_owner"),
        (arc.call(AnswerQuestion(question_id=asked.id, answer="x")), "not_owner"),
        (arc.call(ReopenQuestion(question_id=asked.id)), "wrong_state"),
        (hal.call(AnswerQuestion(question_id=asked.id, answer="x", revision=7)), "wrong_revision"),
        (hal.call(AnswerQuestion(question_id=asked.id, answer="  ")), "bad_request"),
        (hal.call(AnswerQuestion(question_id="qst_nobody", answer="x")), "not_found"),
        (hal.call(AnswerQuestion(question_id=asked.id, answer="x", spawn_work=_spawn("@gone"))), None),
        (arc.call(CreateQuestion(to="@arc", body="me?")), "bad_request"),
        (arc.call(CreateQuestion(to="@hal", body=" ")), "bad_request"),
        (arc.call(CreateQuestion(to="@hal", body="x", work_item_id="wrk_nobody")), "not_found"),
        (arc.call(CreateQuestion(to="@hal", body="x", work_item_id=item.id)), "forbidden"),
        (arc.call(CreateQuestion(to="@hal", body="x", flight_id="flt_nobody")), "not_found"),
        (eve.call(GetQuestion(question_id=asked.id)), "forbidden"),
    )
    for work, code in cases:
        problem = await expect_refusal(work)
        assert problem.code == (code or "unknown_target"), problem
    assert await _last(rig) == before
    foreign = await expect_refusal(eve.call(AnswerQuestion(question_id=asked.id, answer="x")))
    assert foreign.owner_id == asked.responder_id
    assert foreign.needs[-1] == "the operator's token"


def _spawn(owner: str) -> Spawn:
    return Spawn(title="Open the port", owner_id=owner)


@pytest.mark.rows("R2.1-18")
@as_test
async def test_an_answer_and_its_work_are_one_transaction(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    await online_agent(rig, "ops")
    about = await arc.call(CreateWork(title="Deploy"))
    asked = await _create_question(arc, work_item_id=about.id)
    done = await hal.call(AnswerQuestion(question_id=asked.id, answer="9090", spawn_work=_spawn("@ops")))
    item = done.work_item
    assert item is not None
    assert (item.question_id, item.requester_id, item.state) == (asked.id, asked.asker_id, WorkState.OPEN)
    assert item.owner_id == item.next_move_owner_id
    events = await read_log(rig)
    answered = next(one for one in events if isinstance(one, QuestionAnswered))
    created = next(one for one in events if isinstance(one, WorkItemCreated) and one.target.id == item.id)
    assert answered.time == created.time  # one transaction has one moment
    assert answered.payload.record.work_item_id == item.id
    assert [one for one in await inbox_bodies(rig, "ops") if one.startswith("Open the port")]
    assert [one for one in await inbox_bodies(rig, "arc") if item.id in one]
    parent = await arc.call(GetWork(work_item_id=about.id))
    assert [(one.kind, one.work_item_id) for one in parent.relations] == [(RelationKind.SPAWNS, item.id)]
    child = await arc.call(GetWork(work_item_id=item.id))
    assert [(one.kind, one.work_item_id) for one in child.related_by] == [(RelationKind.SPAWNS, about.id)]


@as_test
async def test_an_asker_who_gets_the_work_is_told_once(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    asked = await _create_question(arc)
    await hal.call(AnswerQuestion(question_id=asked.id, answer="yours", spawn_work=_spawn("@arc")))
    assert len(await inbox_bodies(rig, "arc")) == 1


@pytest.mark.rows("R2.1-18")
@as_test
async def test_an_answer_whose_work_is_refused_is_no_answer(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    asked = await _create_question(arc)
    before = await _last(rig)
    spawn = Spawn(title=" ", owner_id="@arc")
    await expect_refusal(hal.call(AnswerQuestion(question_id=asked.id, answer="x", spawn_work=spawn)))
    assert await _last(rig) == before
    assert (await arc.call(GetQuestion(question_id=asked.id))).state is QuestionState.OPEN


@as_test
async def test_a_declined_question_is_told_with_its_reason_and_can_go_to_another(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    await online_agent(rig, "ops")
    asked = await _create_question(arc)
    declined = await hal.call(DeclineQuestion(question_id=asked.id, reason="ask ops"))
    assert (declined.state, declined.next_move_owner_id) == (QuestionState.DECLINED, None)
    (told,) = await inbox_bodies(rig, "arc")
    assert "ask ops" in told
    again = await arc.call(ReopenQuestion(question_id=asked.id, to="@ops", reason="hal does not know"))
    assert again.state is QuestionState.OPEN
    assert again.next_move_owner_id == again.responder_id != asked.responder_id
    assert again.conversation_id != asked.conversation_id
    (said,) = await inbox_bodies(rig, "ops")
    assert said == "hal does not know\n\nWhich port?"
    await arc.call(CloseQuestion(question_id=asked.id, reason="found it"))
    assert [one for one in await inbox_bodies(rig, "ops") if "no answer is needed" in one]


@as_test
async def test_a_question_in_a_channel_stays_there(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    channel = await rig.operator(CreateChannel(name="dev", members=("@arc",)))
    asked = await _create_question(arc, conversation_id=channel.id)
    assert asked.conversation_id == channel.id
    done = await hal.call(AnswerQuestion(question_id=asked.id, answer="80"))
    said = await arc.call(GetMessage(message_id=done.answer_message_id or ""))
    assert said.conversation_id == channel.id


@as_test
async def test_what_is_replied_to_a_question_is_its_answer(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    asked = await _create_question(arc)
    receipt = await hal.call(Reply(body="443", in_reply_to=asked.message_id))
    view = await arc.call(GetQuestion(question_id=asked.id))
    assert (view.state, view.answer, view.answer_message_id) == ("answered", "443", receipt.message_id)
    late = await hal.call(Reply(body="or 80", in_reply_to=asked.message_id))
    assert late.message_id != receipt.message_id
    assert (await arc.call(GetQuestion(question_id=asked.id))).answer == "443"


@as_test
async def test_lists_show_what_is_owed_and_what_was_asked(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    eve = await online_agent(rig, "eve")
    made = [await _create_question(arc, body=f"{number}?") for number in range(5)]
    back = await _create_question(hal, to="@arc", body="back?")
    await hal.call(AnswerQuestion(question_id=made[0].id, answer="0"))

    async def ids(seat: LocalScout, **more: Any) -> list[str]:
        return await list_ids(seat, ListQuestions, **more)

    newest = [one.id for one in reversed(made)]
    assert await ids(arc) == await ids(hal) == [back.id, *newest]
    assert await ids(await rig.scout()) == [back.id, *newest]
    assert await ids(hal, owed=True) == newest[:-1]
    assert await ids(arc, owed=True) == [back.id, made[0].id]
    assert await ids(arc, asked=True) == newest
    assert await ids(hal, state=QuestionState.ANSWERED) == [made[0].id]
    assert await ids(eve) == []


@as_test
async def test_who_waits_for_an_answer_gets_it_and_is_not_told_again(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    waiting = asyncio.ensure_future(_create_question(arc, wait=20))
    (item,) = await wait_until(lambda: inbox_items(rig, "hal"))
    ident = item.message.id
    owed = await hal.call(ListQuestions(owed=True))
    await wait_until(lambda: rig.broker.waiters.is_awaited(f"{owed.items[0].id} {owed.items[0].asker_id}"))
    await hal.call(Reply(body="80", in_reply_to=ident))
    view = await waiting
    assert (view.state, view.answer) == (QuestionState.ANSWERED, "80")
    assert await inbox_bodies(rig, "arc") == []
    assert (await arc.call(GetQuestion(question_id=view.id, wait=20))).answer == "80"


@as_test
async def test_whom_nobody_can_wake_finds_the_question_later(rig: Rig) -> None:
    arc = await online_agent(rig, "arc")
    await rig.register("cold")
    asked = await _create_question(arc, to="@cold")
    assert asked.notes
    assert "no live session" in asked.notes[0]
    assert await inbox_bodies(rig, "cold") == ["Which port?"]
    (created,) = [one for one in await read_log(rig) if isinstance(one, QuestionCreated)]
    assert created.metadata.wake is not None
    assert created.metadata.wake.instead_of == asked.responder_id


@as_test
async def test_the_questions_of_a_retired_agent_leave_nobody_waiting(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    asked = await _create_question(arc)
    own = await _create_question(hal, to="@arc", body="mine?")
    answered = await _create_question(hal, to="@arc", body="old?")
    await arc.call(AnswerQuestion(question_id=answered.id, answer="yes"))
    await rig.operator(RetireAgent(address="@hal", reason="merged"))
    gone = await arc.call(GetQuestion(question_id=asked.id))
    assert (gone.state, gone.next_move_owner_id) == (QuestionState.DECLINED, None)
    assert "retired" in gone.reason
    assert [one for one in await inbox_bodies(rig, "arc") if "retired" in one]
    for one in (own, answered):
        view = await arc.call(GetQuestion(question_id=one.id))
        assert (view.state, view.next_move_owner_id) == (QuestionState.CLOSED, None)


# -- inside a flight ---------------------------------------------------------------------------------


@as_test
async def test_a_flight_waits_for_the_answer_of_its_asker_and_goes_on(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    asked = await arc.call(MakeAsk(to="@hal", body="deploy"))
    question = await _create_question(hal, to="@arc", body="which port?", flight_id=asked.flight_id)
    flight = await arc.call(GetFlight(flight_id=asked.flight_id))
    assert flight.state is FlightState.WAITING
    assert flight.waiting_on is not None
    assert (flight.waiting_on.kind, flight.waiting_on.ref) == (WaitingKind.QUESTION, question.id)
    assert flight.next_move_owner_id == question.responder_id
    second = await expect_refusal(
        _create_question(hal, to="@arc", body="and which host?", flight_id=asked.flight_id)
    )
    assert second.code == "wrong_state"
    await arc.call(AnswerQuestion(question_id=question.id, answer="80"))
    assert (await arc.call(GetFlight(flight_id=asked.flight_id))).state is FlightState.RUNNING
    assert "80" in await inbox_bodies(rig, "hal")
    await hal.call(CompleteFlight(flight_id=asked.flight_id, output="done"))
    assert (await wait_for_end(rig, asked.flight_id)).output == "done"


@as_test
async def test_a_refusal_and_a_withdrawal_let_the_flight_go_on_too(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    for end in (DeclineQuestion, CloseQuestion):
        asked = await arc.call(MakeAsk(to="@hal", body=f"deploy {end.__name__}"))
        await hal.call(StartFlight(flight_id=asked.flight_id))
        question = await _create_question(hal, to="@arc", body="which?", flight_id=asked.flight_id)
        who = arc if end is DeclineQuestion else hal
        await who.call(end(question_id=question.id, reason="look it up"))
        assert (await arc.call(GetFlight(flight_id=asked.flight_id))).state is FlightState.RUNNING
        await hal.call(CompleteFlight(flight_id=asked.flight_id, output="done"))


@as_test
async def test_a_flight_that_ends_needs_no_answer_any_more(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    asked = await arc.call(MakeAsk(to="@hal", body="deploy"))
    question = await _create_question(hal, to="@arc", body="which?", flight_id=asked.flight_id)
    await hal.call(CompleteFlight(flight_id=asked.flight_id, output="found it"))
    view = await arc.call(GetQuestion(question_id=question.id))
    assert (view.state, view.reason) == (QuestionState.CLOSED, f"flight {asked.flight_id} is completed")


@as_test
async def test_only_who_works_on_a_flight_asks_in_it(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    asked = await arc.call(MakeAsk(to="@hal", body="deploy"))
    problem = await expect_refusal(_create_question(arc, flight_id=asked.flight_id))
    assert problem.code == "not_owner"
    assert [item.message.body for item in (await hal.call(ListInbox())).items if item.message] == ["deploy"]


# -- programs ----------------------------------------------------------------------------------------


def test_the_final_text_of_a_program_answers_the_question_that_woke_it(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        arc = await online_agent(rig, "arc")
        command = write_program(tmp_path, "oracle", "echo 42")
        await rig.register("oracle", harness="command", command=command, wake_policy=WakePolicy.ON_DEMAND)
        asked = await _create_question(arc, to="@oracle", body="how many?", wait=20)
        assert (asked.state, asked.answer) == (QuestionState.ANSWERED, "42")
        deliveries = [get_record(one) for one in await read_log(rig, "collab.delivery")]
        assert [one.rule for one in deliveries if one.wake][:1] == ["next-move owner"]

    run_scene(scene, tmp_path)


_SHIP = """read -r line
if [ "$line" = deploy ]; then
  touch "$WORK/began"
  while [ ! -e "$WORK/asked" ]; do sleep 0.01; done
  echo "waiting for an answer"
else
  echo "deployed on $line"
fi"""


async def _asks_back(rig: Rig) -> tuple[str, str]:
    """A program that asked back in its flight and ended its turn: the flight, the question."""
    arc = await online_agent(rig, "arc")
    await rig.register("ship", harness="command", command=write_program(rig.home, "ship", _SHIP))
    asked = await arc.call(MakeAsk(to="@ship", body="deploy"))
    await wait_until((rig.home / "began").exists)
    await wait_until(lambda: _is_running(rig, asked.flight_id))
    ship = await rig.scout(act_as="@ship")
    question = await _create_question(ship, to="@arc", body="which port?", flight_id=asked.flight_id)
    (rig.home / "asked").touch()
    await wait_until(lambda: _notes(rig, "waiting for an answer"))
    return asked.flight_id, question.id


async def _is_running(rig: Rig, flight_id: str) -> bool:
    return (await rig.operator(GetFlight(flight_id=flight_id))).state is FlightState.RUNNING


async def _notes(rig: Rig, words: str) -> list[object]:
    return [one for one in await read_log(rig) if words in str(getattr(one.payload, "text", ""))]


def test_a_program_that_asked_back_is_woken_with_the_answer_in_its_session(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        flight_id, question_id = await _asks_back(rig)
        flight = await rig.operator(GetFlight(flight_id=flight_id))
        assert flight.state is FlightState.WAITING
        await (await rig.agent("arc")).call(AnswerQuestion(question_id=question_id, answer="9090"))
        done = await wait_for_end(rig, flight_id)
        assert (done.state, done.output) == (FlightState.COMPLETED, "deployed on 9090")
        assert done.session_id == flight.session_id

    run_scene(scene, tmp_path)


def test_a_flight_that_asks_waits_over_a_restart(tmp_path: Path) -> None:
    found: list[str] = []

    async def before(rig: Rig) -> None:
        found.extend(await _asks_back(rig))

    async def after(rig: Rig) -> None:
        flight_id, question_id = found
        assert (await rig.operator(GetFlight(flight_id=flight_id))).state is FlightState.WAITING
        await rig.operator(AnswerQuestion(question_id=question_id, answer="9090"))
        assert (await wait_for_end(rig, flight_id)).output == "deployed on 9090"
        assert len(await _notes(rig, "waiting for an answer")) == 1

    run_scene(before, tmp_path)
    run_scene(after, tmp_path)
