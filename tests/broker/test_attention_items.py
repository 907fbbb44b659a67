"""The person's inbox: raised once, decided once by somebody else, and the answer travels back."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from scout.broker.local import LocalScout
from scout.broker.routing.attention_items import open_alarm
from scout.model.ask import ReplyMode
from scout.model.attention import AttentionKind, AttentionMove, AttentionState, Risk
from scout.model.conversation import MessageKind
from scout.model.flight import FlightState
from scout.model.question import QuestionState
from scout.model.waiting import WaitingKind
from scout.model.work_item import WorkState
from scout.policy.limits import Alarm
from scout.protocol.access import CreateToken
from scout.protocol.asks import CancelFlight, GetFlight, MakeAsk, StartFlight
from scout.protocol.attention import (
    AnswerAttention,
    ApproveAttention,
    AttentionView,
    Consult,
    DenyAttention,
    DismissAttention,
    GetAttention,
    ListAttention,
    Need,
    Notify,
    RaiseAttention,
)
from scout.protocol.inbox import ListInbox
from scout.protocol.log import Watch
from scout.protocol.overview import ShowNow
from scout.protocol.questions import (
    AnswerQuestion,
    CloseQuestion,
    CreateQuestion,
    GetQuestion,
    ReopenQuestion,
)
from scout.protocol.talk import Send
from scout.protocol.work import CreateWork, GetWork, ResumeWork, StartWork, SubmitWork, UpdateWork, WaitWork
from tests.broker.rig import (
    Rig,
    advance_clock,
    as_test,
    expect_refusal,
    inbox_bodies,
    list_events,
    online_agent,
    poll_until_finished,
    read_log,
    run_scene,
    wait_until,
    write_program,
)


async def open_items(rig: Rig) -> list[AttentionView]:
    return list((await rig.operator(ListAttention())).items)


async def the_item(rig: Rig) -> AttentionView:
    (item,) = await open_items(rig)
    return item


async def working(rig: Rig, name: str = "worker", body: str = "do it") -> tuple[LocalScout, str]:
    """An agent in person that works on a flight."""
    seat = await online_agent(rig, name)
    receipt = await rig.operator(MakeAsk(to=f"@{name}", body=body, reply_mode=ReplyMode.NOTIFY))
    await seat.call(StartFlight(flight_id=receipt.flight_id))
    return seat, receipt.flight_id


# -- need, consult, notify ---------------------------------------------------------------------------


@pytest.mark.rows("R3.1-34")
@as_test
async def test_a_need_blocks_until_it_is_answered_from_another_surface(rig: Rig) -> None:
    seat, flight_id = await working(rig)
    asked = asyncio.create_task(seat.call(Need(question="Which colour?", options=("red", "blue"), wait=20)))
    (item,) = await wait_until(lambda: open_items(rig))
    assert (item.kind, item.title, item.agent_address) == (
        AttentionKind.QUESTION,
        "Which colour?",
        "@worker",
    )
    assert [one.value for one in item.actions if one.value] == ["red", "blue"]
    assert item.return_path.flight_id == flight_id

    flight = await rig.operator(GetFlight(flight_id=flight_id))
    assert flight.state is FlightState.WAITING
    assert flight.waiting_on is not None
    assert (flight.waiting_on.kind, flight.waiting_on.ref) == (WaitingKind.OPERATOR, item.id)
    assert flight.next_move_owner_id == rig.broker.services.operator_agent

    await rig.operator(AnswerAttention(attention_id=item.id, answer="blue"))
    answered = await asked
    assert (answered.state, answered.answer) == (AttentionState.ANSWERED, "blue")
    assert (await rig.operator(GetFlight(flight_id=flight_id))).state is FlightState.RUNNING
    assert (await list_events(rig, flight_id))[-3:] == ["flight.started", "flight.waiting", "flight.resumed"]
    assert await list_events(rig, item.id) == ["attention.created", "attention.answered"]
    # Who waited was told there: it is not told a second time.
    assert not [one for one in await inbox_bodies(rig, "worker") if "blue" in one]


@as_test
async def test_who_does_not_wait_finds_the_answer_in_its_inbox(rig: Rig) -> None:
    seat = await online_agent(rig, "worker")
    item = await seat.call(Need(question="Which colour?"))
    assert (await rig.operator(ShowNow())).needs_me[0].id == item.id
    await rig.operator(AnswerAttention(attention_id=item.id, answer="green", reason="it fits"))
    (found,) = (await seat.call(ListInbox())).items
    assert found.message is not None
    assert (found.message.kind, found.message.sender) == (
        MessageKind.ANSWER,
        rig.broker.services.operator_agent,
    )
    assert found.message.body.splitlines()[0] == "green: it fits"
    assert found.delivered.conversation_id == item.return_path.conversation_id


@as_test
async def test_an_agent_that_is_not_running_is_woken_by_the_answer(rig: Rig) -> None:
    await rig.register("sleeper", harness="echo")
    seat = await rig.agent("sleeper")
    item = await seat.call(RaiseAttention(title="May I?", risk=Risk.HIGH))
    await rig.operator(ApproveAttention(attention_id=item.id))
    woken = [one for one in await read_log(rig, "collab.delivery.requested") if one.payload.record.wake]
    assert [one.metadata.wake and one.metadata.wake.rule for one in woken] == ["explicit target"]


@pytest.mark.rows("R3.1-34", "R2.1-22")
@as_test
async def test_a_consult_goes_on_and_a_notice_expects_nothing(rig: Rig) -> None:
    seat, flight_id = await working(rig)
    problem = await expect_refusal(seat.call(Consult(question="Tabs?", default_action="")))
    assert problem.field == "defaultAction"
    consult = await seat.call(Consult(question="Tabs?", default_action="spaces", expires_in=60))
    notice = await seat.call(Notify(message="It is half done.\nMore comes."))
    assert (notice.title, notice.body) == ("It is half done.", "It is half done.\nMore comes.")
    assert (await rig.operator(GetFlight(flight_id=flight_id))).state is FlightState.RUNNING

    await advance_clock(rig, 61)
    over = await seat.call(GetAttention(attention_id=consult.id))
    assert (over.state, over.answer) == (AttentionState.EXPIRED, "spaces")
    (event,) = await read_log(rig, "collab.attention.expired")
    assert event.payload.reason == "no answer in time; the default applies: spaces"
    await rig.operator(DismissAttention(attention_id=notice.id))
    assert not [one for one in await inbox_bodies(rig, "worker") if "to att_" in one]


@as_test
async def test_a_need_that_nobody_answers_in_time(rig: Rig) -> None:
    seat, flight_id = await working(rig)
    item = await seat.call(Need(question="Still there?", expires_in=60))
    assert item.expires_at is not None
    await advance_clock(rig, 61)
    assert (await rig.operator(GetFlight(flight_id=flight_id))).state is FlightState.RUNNING
    assert any(one.startswith("no answer in time") for one in await inbox_bodies(rig, "worker"))
    late = await expect_refusal(rig.operator(AnswerAttention(attention_id=item.id, answer="yes")))
    assert (late.code, "it was expired at" in late.message) == ("wrong_state", True)
    assert (await expect_refusal(seat.call(Need(question="?", expires_in=0)))).field == "expiresIn"
    assert (await expect_refusal(seat.call(Need(question=" \n")))).field == "question"


@as_test
async def test_the_same_thing_is_one_item_and_frees_everything_that_waits_for_it(rig: Rig) -> None:
    seat, first = await working(rig)
    receipt = await rig.operator(MakeAsk(to="@worker", body="and this", reply_mode=ReplyMode.NOTIFY))
    await seat.call(StartFlight(flight_id=receipt.flight_id))
    flights = (first, receipt.flight_id)
    wish: dict[str, Any] = {"title": "log in again", "kind": AttentionKind.SETUP, "dedupe": "login"}
    items = {(await seat.call(RaiseAttention(**wish, flight_id=one))).id for one in flights}
    assert len(items) == 1
    states = [(await rig.operator(GetFlight(flight_id=one))).state for one in flights]
    assert states == [FlightState.WAITING, FlightState.WAITING]
    await rig.operator(ApproveAttention(attention_id=items.pop()))
    states = [(await rig.operator(GetFlight(flight_id=one))).state for one in flights]
    assert states == [FlightState.RUNNING, FlightState.RUNNING]
    # Decided, it is another thing; and another agent's is another's.
    again = await seat.call(RaiseAttention(**wish))
    other = await (await rig.agent("other")).call(RaiseAttention(**wish))
    assert len({again.id, other.id, *items}) == 2


@pytest.mark.rows("R2.2-65")
@as_test
async def test_an_expired_login_is_one_item_however_many_flights_it_blocks(rig: Rig) -> None:
    alarm = Alarm(
        kind=AttentionKind.SETUP, title="claude is logged out", body="log in", dedupe="login:claude"
    )
    for _ in range(3):
        await rig.broker.as_system(lambda tx: open_alarm(tx, alarm))
    item = await the_item(rig)
    assert (item.kind, item.title) == (AttentionKind.SETUP, "claude is logged out")
    # The broker raised it: so the operator may say that it is done.
    done = await rig.operator(ApproveAttention(attention_id=item.id, reason="logged in"))
    assert done.state is AttentionState.RESOLVED


def test_a_program_that_asked_and_ended_its_turn_goes_on_with_the_answer(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        waits = 'while [ ! -e "$WORK/go" ]; do sleep 0.01; done; cat; echo " and done"'
        await rig.register("worker", harness="command", command=write_program(tmp_path, "worker", waits))
        receipt = await rig.operator(MakeAsk(to="@worker", body="begin"))

        async def state() -> FlightState:
            return (await rig.operator(GetFlight(flight_id=receipt.flight_id))).state

        async def has_begun() -> bool:
            return await state() is FlightState.RUNNING

        await wait_until(has_begun)
        item = await (await rig.agent("worker")).call(Need(question="Which?", flight_id=receipt.flight_id))
        (tmp_path / "go").touch()
        ended = "collab.token.revoked"  # the credential of its run
        await wait_until(lambda: read_log(rig, ended))
        assert await state() is FlightState.WAITING
        await rig.operator(AnswerAttention(attention_id=item.id, answer="the second one"))
        done = await poll_until_finished(rig, receipt.flight_id)
        assert (done.state, "the second one" in (done.output or "")) == (FlightState.COMPLETED, True)

    run_scene(scene, tmp_path)


@as_test
async def test_a_flight_that_is_over_asks_nothing_any_more(rig: Rig) -> None:
    seat, flight_id = await working(rig)
    item = await seat.call(Need(question="Which?"))
    await rig.operator(CancelFlight(flight_id=flight_id))
    gone = await rig.operator(GetAttention(attention_id=item.id))
    assert (gone.state, gone.reason) == (AttentionState.DISMISSED, f"flight {flight_id} has ended")
    assert (await expect_refusal(seat.call(Need(question="?", flight_id=flight_id)))).code == "wrong_state"
    other = await rig.agent("other")
    assert (await expect_refusal(other.call(Need(question="?", flight_id=flight_id)))).code == "not_found"


# -- who decides, and once ---------------------------------------------------------------------------


@as_test
async def test_who_raised_it_does_not_decide_it(rig: Rig) -> None:
    seat = await rig.agent("worker")
    item = await seat.call(RaiseAttention(title="drop the table?", risk=Risk.HIGH))
    minted = await rig.operator(CreateToken(agent="@worker"))
    for mine in (seat, await rig.scout(minted.secret)):
        assert (await expect_refusal(mine.call(ApproveAttention(attention_id=item.id)))).code == "forbidden"
    # To another agent of the same user there is no such item.
    other = await rig.agent("other")
    assert (await expect_refusal(other.call(GetAttention(attention_id=item.id)))).code == "not_found"
    assert (await expect_refusal(other.call(DenyAttention(attention_id=item.id)))).code == "not_found"
    # The operator who speaks as the agent uses the same credential for both.
    acting = await rig.scout(act_as="@worker")
    mine = await acting.call(RaiseAttention(title="and this?"))
    assert (await expect_refusal(rig.operator(ApproveAttention(attention_id=mine.id)))).code == "forbidden"
    # What one raised, one may take back.
    assert (await seat.call(DismissAttention(attention_id=item.id))).state is AttentionState.DISMISSED
    raised = await seat.call(ListAttention(raised=True, all=True))
    assert [one.id for one in raised.items] == [mine.id, item.id]
    assert [one.id for one in (await seat.call(ListAttention(raised=True))).items] == [mine.id]


@as_test
async def test_no_ancestor_decides_for_the_person(rig: Rig) -> None:
    lead = await rig.agent("lead")
    below = await rig.operator(Send(to="/ada/agent/lead/sub/0", body="be", create={}))
    minted = await rig.operator(CreateToken(agent=below.deliveries[0].target))
    item = await (await rig.scout(minted.secret)).call(RaiseAttention(title="may I?"))
    assert (await expect_refusal(lead.call(ApproveAttention(attention_id=item.id)))).code == "not_found"
    # The person may, by whichever credential stands for them.
    person = await rig.operator(CreateToken(agent="/ada/direct"))
    decided = await (await rig.scout(person.secret)).call(ApproveAttention(attention_id=item.id))
    assert (decided.state, decided.decided_by) == (
        AttentionState.RESOLVED,
        rig.broker.services.operator_agent,
    )


@pytest.mark.rows("R2.2-3")
@as_test
async def test_of_two_answers_at_once_exactly_one_wins(rig: Rig) -> None:
    seat = await rig.agent("worker")
    item = await seat.call(Need(question="left or right?"))
    seats = [await rig.scout() for _ in range(4)]
    texts = ("left", "right", "up", "down")
    calls = [
        one.call(AnswerAttention(attention_id=item.id, answer=text))
        for one, text in zip(seats, texts, strict=True)
    ]
    ends = await asyncio.gather(*calls, return_exceptions=True)
    won = [one for one in ends if isinstance(one, AttentionView)]
    lost = [getattr(one, "diagnostic") for one in ends if not isinstance(one, AttentionView)]  # noqa: B009 (an exception's)
    assert len(won) == 1
    assert {one.code for one in lost} == {"wrong_state"}
    assert all(f"it was answered '{won[0].answer}' by /ada/direct" in one.message for one in lost), lost[
        0
    ].message
    assert await list_events(rig, item.id) == ["attention.created", "attention.answered"]


@as_test
async def test_what_an_item_does_not_take(rig: Rig) -> None:
    seat = await rig.agent("worker")
    item = await seat.call(Need(question="Which?"))
    assert (await expect_refusal(rig.operator(ApproveAttention(attention_id=item.id)))).code == "bad_request"
    assert (
        await expect_refusal(rig.operator(AnswerAttention(attention_id=item.id, answer=" ")))
    ).field == "answer"
    stale = AnswerAttention(attention_id=item.id, answer="x", revision=9)
    assert (await expect_refusal(rig.operator(stale))).code == "wrong_revision"
    assert (
        await expect_refusal(rig.operator(AnswerAttention(attention_id="att_none", answer="x")))
    ).code == "not_found"
    assert await list_events(rig, item.id) == ["attention.created"]
    found = await rig.operator(ListAttention(kind=AttentionKind.REVIEW))
    assert not found.items


# -- questions and work that a person owes -----------------------------------------------------------


@pytest.mark.rows("R3.1-33")
@as_test
async def test_a_question_for_the_person_is_one_item_and_its_answer_answers_it(rig: Rig) -> None:
    seat = await online_agent(rig, "asker")
    asked = await seat.call(CreateQuestion(to="/ada/direct", body="Which port?", options=("80", "443")))
    item = await the_item(rig)
    assert (item.kind, item.title, item.agent_address) == (
        AttentionKind.QUESTION,
        "Which port?",
        "@asker",
    )
    assert (item.return_path.question_id, item.dedupe) == (asked.id, asked.id)
    await rig.operator(AnswerAttention(attention_id=item.id, answer="443"))
    answered = await seat.call(GetQuestion(question_id=asked.id))
    assert (answered.state, answered.answer) == (QuestionState.ANSWERED, "443")
    assert not await open_items(rig)


@as_test
async def test_a_question_answered_elsewhere_needs_nobody(rig: Rig) -> None:
    seat = await online_agent(rig, "asker")
    asked = await seat.call(CreateQuestion(to="/ada/direct", body="Which port?"))
    item = await the_item(rig)
    await rig.operator(AnswerQuestion(question_id=asked.id, answer="80"))
    gone = await rig.operator(GetAttention(attention_id=item.id))
    assert (gone.state, gone.reason) == (AttentionState.DISMISSED, "settled elsewhere")
    assert gone.decided_by == rig.broker.services.system_agent
    late = await expect_refusal(rig.operator(AnswerAttention(attention_id=item.id, answer="443")))
    assert late.code == "wrong_state"


@as_test
async def test_a_question_that_is_put_away_is_declined(rig: Rig) -> None:
    seat = await online_agent(rig, "asker")
    asked = await seat.call(CreateQuestion(to="/ada/direct", body="Which port?"))
    await rig.operator(DismissAttention(attention_id=(await the_item(rig)).id, reason="ask the docs"))
    declined = await seat.call(GetQuestion(question_id=asked.id))
    assert (declined.state, declined.reason) == (QuestionState.DECLINED, "ask the docs")


@as_test
async def test_an_answer_for_the_person_is_mail_and_nothing_to_decide(rig: Rig) -> None:
    seat = await online_agent(rig, "knows")
    asked = await rig.operator(CreateQuestion(to="@knows", body="Which port?"))
    await seat.call(AnswerQuestion(question_id=asked.id, answer="80"))
    assert not await open_items(rig)
    (item,) = (await rig.operator(ListInbox())).items
    assert item.message is not None
    assert (item.message.kind, item.message.body, item.about) == (MessageKind.ANSWER, "80", "Which port?")
    await rig.operator(ReopenQuestion(question_id=asked.id, reason="with TLS, please"))
    again = await seat.call(GetQuestion(question_id=asked.id))
    assert (again.state, again.reason) == (QuestionState.OPEN, "with TLS, please")
    await seat.call(AnswerQuestion(question_id=asked.id, answer="443"))
    await rig.operator(CloseQuestion(question_id=asked.id))
    assert (await seat.call(GetQuestion(question_id=asked.id))).state is QuestionState.CLOSED
    assert not await open_items(rig)


@as_test
async def test_work_that_waits_for_an_approval_goes_on_with_it(rig: Rig) -> None:
    seat = await online_agent(rig, "owner")
    made = await rig.operator(CreateWork(title="release", owner_id="@owner"))
    await seat.call(StartWork(work_item_id=made.id))
    await seat.call(WaitWork(work_item_id=made.id, on=WaitingKind.APPROVAL))
    item = await the_item(rig)
    assert (item.kind, item.title, item.dedupe) == (AttentionKind.APPROVAL, "approve: release", made.id)
    await rig.operator(DenyAttention(attention_id=item.id, reason="not on a Friday"))
    denied = await seat.call(GetWork(work_item_id=made.id))
    assert (denied.state, denied.steps[-1].reason) == (WorkState.WORKING, "denied: not on a Friday")
    assert any("denied: not on a Friday" in one for one in await inbox_bodies(rig, "owner"))

    await seat.call(WaitWork(work_item_id=made.id, on=WaitingKind.APPROVAL))
    await seat.call(ResumeWork(work_item_id=made.id, reason="found another way"))
    assert not await open_items(rig)


@as_test
async def test_a_review_is_accepted_or_given_back(rig: Rig) -> None:
    seat = await online_agent(rig, "owner")
    made = await rig.operator(CreateWork(title="release", owner_id="@owner"))
    await seat.call(SubmitWork(work_item_id=made.id, summary="1.0 is out"))
    item = await the_item(rig)
    assert (item.kind, item.title, item.body) == (AttentionKind.REVIEW, "review: release", "1.0 is out")
    assert (await expect_refusal(seat.call(ApproveAttention(attention_id=item.id)))).code == "forbidden"
    await rig.operator(DismissAttention(attention_id=item.id))
    assert (await seat.call(GetWork(work_item_id=made.id))).state is WorkState.REVIEW
    await rig.operator(UpdateWork(work_item_id=made.id, labels=("soon",)))
    await rig.operator(DenyAttention(attention_id=(await the_item(rig)).id, reason="no notes"))
    assert (await seat.call(GetWork(work_item_id=made.id))).reason == "no notes"
    await seat.call(SubmitWork(work_item_id=made.id))
    await rig.operator(ApproveAttention(attention_id=(await the_item(rig)).id))
    assert (await seat.call(GetWork(work_item_id=made.id))).state is WorkState.DONE
    assert not await open_items(rig)


@as_test
async def test_work_of_the_persons_own_is_done_from_the_inbox(rig: Rig) -> None:
    seat = await online_agent(rig, "boss")
    made = await seat.call(CreateWork(title="buy milk", owner_id="/ada/direct"))
    item = await the_item(rig)
    assert (item.kind, item.title) == (AttentionKind.WAITING, "yours to do: buy milk")
    await rig.operator(StartWork(work_item_id=made.id))
    assert (await the_item(rig)).id == item.id
    await rig.operator(ApproveAttention(attention_id=item.id, reason="two bottles"))
    submitted = await seat.call(GetWork(work_item_id=made.id))
    assert (submitted.state, submitted.progress.summary) == (WorkState.REVIEW, "two bottles")
    assert not await open_items(rig)


@as_test
async def test_a_need_about_work_makes_it_wait_for_exactly_that(rig: Rig) -> None:
    seat = await online_agent(rig, "owner")
    made = await rig.operator(CreateWork(title="release", owner_id="@owner"))
    item = await seat.call(Need(question="Which tag?", work_item_id=made.id))
    waiting = await seat.call(GetWork(work_item_id=made.id))
    assert waiting.waiting_on is not None
    assert (waiting.state, waiting.waiting_on.ref) == (WorkState.WAITING, item.id)
    assert [one.id for one in await open_items(rig)] == [item.id]
    await rig.operator(AnswerAttention(attention_id=item.id, answer="v1"))
    resumed = await seat.call(GetWork(work_item_id=made.id))
    assert (resumed.state, resumed.next_move_owner_id) == (WorkState.WORKING, made.owner_id)
    # Another way out of the wait: then nobody is asked any more.
    again = await seat.call(Need(question="Which date?", work_item_id=made.id))
    await seat.call(ResumeWork(work_item_id=made.id))
    assert (await seat.call(GetAttention(attention_id=again.id))).state is AttentionState.DISMISSED
    other = await rig.agent("other")
    assert (await expect_refusal(other.call(Need(question="?", work_item_id=made.id)))).code == "not_owner"


@as_test
async def test_the_live_stream_shows_what_needs_somebody(rig: Rig) -> None:
    seat = await rig.agent("worker")
    watching = await rig.scout()
    stream = watching.watch(Watch(family="collab.attention", after=0))
    item = await seat.call(Need(question="Which?"))
    created = await anext(stream)
    await rig.operator(AnswerAttention(attention_id=item.id, answer="this"))
    answered = await anext(stream)
    await stream.aclose()
    assert [created.payload.move, answered.payload.move] == ["create", AttentionMove.ANSWER]
