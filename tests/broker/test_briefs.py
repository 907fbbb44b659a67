"""One call after a lost context: who am I, what do I owe, who waits for me, what next."""

from scout.model.access.token import TokenKind
from scout.protocol.access import CreateToken
from scout.protocol.asks import MakeAsk
from scout.protocol.attention import Need
from scout.protocol.insight import Brief, ShowBrief
from scout.protocol.operations import build_command_line, check_remedy
from scout.protocol.questions import AnswerQuestion, CreateQuestion
from scout.protocol.talk import Send
from scout.protocol.work import CreateWork, StartWork
from tests.broker.rig import Rig, as_test, expect_refusal, online_agent


def steps(told: Brief) -> list[str]:
    assert [problem for one in told.next for problem in check_remedy(one)] == []
    return [one.operation for one in told.next]


@as_test
async def test_a_newcomer_owes_nothing(rig: Rig) -> None:
    arc = await rig.agent("arc")
    told = await arc.call(ShowBrief())
    assert (told.me.minimal, told.me.path, told.me.role) == ("@arc", "/ada/agent/arc", "dev")
    lists = (
        told.flights,
        told.questions,
        told.work,
        told.answered,
        told.asked,
        told.needs,
        told.waiting_for_me,
    )
    assert not any(lists)
    assert (told.unread, steps(told)) == (0, [])


@as_test
async def test_what_is_owed_who_waits_and_the_next_steps(rig: Rig) -> None:
    arc, bow = await online_agent(rig, "arc"), await online_agent(rig, "bow")
    asked = await bow.call(MakeAsk(to="@arc", body="Review this.\n" + "x" * 5000))
    question = await bow.call(CreateQuestion(to="@arc", body="Which port?"))
    mine = await arc.call(CreateQuestion(to="@bow", body="Which branch?"))
    await bow.call(AnswerQuestion(question_id=mine.id, answer="main"))
    item = await bow.call(CreateWork(title="Fix it", owner_id="@arc"))
    await arc.call(StartWork(work_item_id=item.id))
    other = await arc.call(MakeAsk(to="@bow", body="and you this"))
    need = await arc.call(Need(question="May I?"))
    told = await arc.call(ShowBrief())
    assert [one.id for one in told.flights] == [asked.flight_id]
    assert len(told.flights[0].body) < 2100
    assert [one.id for one in told.questions] == [question.id]
    assert [one.id for one in told.work] == [item.id]
    assert [(one.id, one.answer) for one in told.answered] == [(mine.id, "main")]
    assert [one.id for one in told.asked] == [other.flight_id]
    assert [one.id for one in told.needs] == [need.id]
    assert told.waiting_for_me == ("@bow",)
    assert told.unread >= 3
    assert steps(told) == ["flight.complete", "question.answer", "work.submit", "question.close", "inbox"]
    assert build_command_line(told.next[2]) == f"scout work submit {item.id}"


@as_test
async def test_the_next_steps_are_few_and_the_oldest_come_first(rig: Rig) -> None:
    arc, bow = await online_agent(rig, "arc"), await online_agent(rig, "bow")
    asked = [await bow.call(MakeAsk(to="@arc", body=f"number {number}")) for number in range(25)]
    told = await arc.call(ShowBrief())
    assert len(told.flights) == 20
    assert len(told.next) == 5
    await bow.call(Send(to="@arc", body="and this"))
    assert told.next[0].parameters["flightId"] == asked[5].flight_id
    assert told.next[0].why == "@bow waits for the result"


@as_test
async def test_who_is_nobody_has_no_brief(rig: Rig) -> None:
    guest = await rig.operator(CreateToken(kind=TokenKind.GUEST))
    seat = await rig.scout(guest.secret)
    assert (await expect_refusal(seat.call(ShowBrief()))).code == "forbidden"
