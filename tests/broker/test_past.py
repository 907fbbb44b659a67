"""What was shown at a moment is shown again for that moment, to whom it may be shown now."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.model.access.grant import Action
from scout.model.flight import FlightState
from scout.model.moment import Moment
from scout.model.problems.request import HistoryBehind, NoSuchMoment
from scout.model.waiting import WaitingKind
from scout.model.work_item import WorkState
from scout.protocol.access import AddGrant, RevokeGrant
from scout.protocol.agents import RetireAgent, ShowAgent, Who
from scout.protocol.asks import (
    BlockFlight,
    CancelFlight,
    GetFlight,
    ListFlights,
    MakeAsk,
    ResumeFlight,
    StartFlight,
)
from scout.protocol.attention import AnswerAttention, GetAttention, ListAttention, Need
from scout.protocol.operations import OPERATIONS
from scout.protocol.overview import PauseScout, ResumeScout, ShowActivity, ShowNow, ShowStatus
from scout.protocol.questions import AnswerQuestion, CreateQuestion, GetQuestion, ListQuestions
from scout.protocol.request import Request
from scout.protocol.sessions import ListSessions
from scout.protocol.talk import RedactMessage, Reply
from scout.protocol.work import (
    AcceptWork,
    CreateWork,
    GetWork,
    HandOverWork,
    ListWork,
    ProgressWork,
    StartWork,
    SubmitWork,
)
from scout.store.database import connect
from scout.store.migrate import migrate
from tests.broker.rig import Rig, as_test, expect_refusal, online_agent, open_rig, run_scene, wait_for_end
from tests.store.facts import post_message

# What each list is compared by.
SHOWN: dict[type[Request[Any]], Callable[[Any], Any]] = {
    ListFlights: lambda one: (one.id, one.state, one.phase, one.revision, one.body, one.output),
    ListWork: lambda one: (one.id, one.state, one.revision, one.next_move_address, one.progress),
    ListAttention: lambda one: (one.id, one.state, one.revision, one.title),
    ListQuestions: lambda one: (one.id, one.state, one.revision),
    ListSessions: lambda one: (one.id, one.state, one.revision, one.address),
    # A person is online while they ask.
    Who: lambda one: (one.id, one.address.endswith("/direct") or one.status, one.lifecycle, one.address),
}
ASKED: tuple[Request[Any], ...] = (
    ListFlights(),
    ListFlights(open=True),
    ListFlights(state=FlightState.COMPLETED),
    ListFlights(agent="@live"),
    ListFlights(agent="@live", open=True, limit=1),
    ListWork(),
    ListWork(all=True),
    ListWork(state=WorkState.DONE),
    ListAttention(),
    ListAttention(all=True),
    ListQuestions(),
    ListSessions(),
    ListSessions(live=True),
    Who(),
    Who(online=True),
    Who(query="parr"),
    Who(retired=True, all=True, limit=3),
)


async def show(rig: Rig, at: str | None = None) -> list[Any]:
    """Every list, as the operator sees it."""
    told: list[Any] = []
    for request in ASKED:
        page: Any = await rig.operator(replace(request, at=at) if at else request)
        assert hasattr(page, "moment")
        told.append((request, [SHOWN[type(request)](one) for one in page.items], page.next is None))
    return told


def last_seq(rig: Rig) -> int:
    return rig.broker.glance().last_seq()


@pytest.mark.rows("R6.h-1", "R6.h-2")
@as_test
async def test_each_moment_of_a_day_is_shown_again_as_it_was(rig: Rig) -> None:
    live = await online_agent(rig)
    await rig.register("parrot", harness="echo")
    told: dict[int, list[Any]] = {}

    async def step(work: Awaitable[Any]) -> Any:
        result = await work
        while True:
            seq, shown = last_seq(rig), await show(rig)
            if last_seq(rig) == seq:  # nothing happened in the background while it was listed
                told[seq] = shown
                return result

    flight = (await step(rig.operator(MakeAsk(to="@live", body="one")))).flight_id
    other = (await step(rig.operator(MakeAsk(to="@live", body="two")))).flight_id
    need = await step(live.call(Need(question="May I?", flight_id=flight)))
    item = (await step(rig.operator(CreateWork(title="A page", owner_id="@live")))).id
    await step(live.call(StartWork(work_item_id=item)))
    await step(live.call(ProgressWork(work_item_id=item, summary="half", percent=50)))
    await step(rig.operator(AnswerAttention(attention_id=need.id, answer="yes")))
    await step(rig.operator(CancelFlight(flight_id=other)))
    await step(live.call(Reply(in_reply_to=flight, body="done one")))
    question = (await step(live.call(CreateQuestion(to="@parrot", body="Which?")))).id
    await step(live.call(SubmitWork(work_item_id=item)))
    await step(rig.operator(AcceptWork(work_item_id=item)))
    asked = await step(rig.operator(MakeAsk(to="@parrot", body="three", wait=20)))
    await wait_for_end(rig, asked.flight_id)
    await step(rig.operator(RetireAgent(address="@parrot")))
    assert question
    for seq, then in told.items():
        for (request, wanted, whole), (_, shown, again) in zip(then, await show(rig, str(seq)), strict=True):
            assert (shown, again) == (wanted, whole), (seq, request)


@pytest.mark.rows("R6.h-1")
@as_test
async def test_single_records_and_the_summary_as_they_were(rig: Rig) -> None:
    live = await online_agent(rig)
    flight = (await rig.operator(MakeAsk(to="@live", body="one"))).flight_id
    item = (await live.call(Need(question="May I?"))).id
    work = (await rig.operator(CreateWork(title="A page", owner_id="@live"))).id
    question = (await rig.operator(CreateQuestion(to="@live", body="Which?"))).id
    await rig.operator(PauseScout(reason="lunch"))
    seq = str(last_seq(rig))
    then = await rig.operator(ShowNow())
    await rig.operator(ResumeScout())
    await rig.operator(AnswerAttention(attention_id=item, answer="yes"))
    await live.call(Reply(in_reply_to=flight, body="done"))
    await live.call(StartWork(work_item_id=work))
    await live.call(AnswerQuestion(question_id=question, answer="that one"))
    now = await rig.operator(ShowNow(at=seq))
    assert [one.id for one in now.open] == [one.id for one in then.open] == [flight]
    assert [one.id for one in now.needs_me] == [item]
    assert [one.may_decide for one in now.needs_me] == [False]
    assert now.needs_by_agent == then.needs_by_agent
    assert (now.agents, len(now.online), now.unread) == (then.agents, len(then.online), None)
    assert now.paused == then.paused
    assert isinstance(now.moment, Moment)
    assert now.moment.seq == int(seq)
    assert (await rig.operator(GetFlight(flight_id=flight, at=seq))).state == "queued"
    assert (await rig.operator(GetAttention(attention_id=item, at=seq))).state == "open"
    assert (await rig.operator(GetQuestion(question_id=question, at=seq))).state == "open"
    shown = await rig.operator(GetWork(work_item_id=work, at=seq))
    assert (shown.state, [step.move for step in shown.steps]) == ("open", ["create"])
    agent = await rig.operator(ShowAgent(address="@live", at=seq))
    assert (agent.status, agent.open_flights, agent.unread) == ("needs_attention", 1, None)
    latest = await rig.operator(ShowNow(at="now"))
    assert [one.id for one in latest.finished] == [flight]
    assert (latest.finished_count, latest.paused) == (1, None)
    refused = await expect_refusal(rig.operator(GetFlight(flight_id=flight, at="5")))
    assert refused.code == "not_found"


@pytest.mark.rows("R6.h-3")
@as_test
async def test_present_rights_apply_to_the_past(rig: Rig) -> None:
    one, other = await online_agent(rig, "one"), await online_agent(rig, "other")
    me = (await rig.operator(ShowAgent(address="@other"))).id
    await rig.operator(MakeAsk(to="@one", body="for one"))
    item = (await one.call(Need(question="May I?"))).id
    work = (await rig.operator(CreateWork(title="A page", owner_id="@other"))).id
    seq = str(last_seq(rig))
    # Attention is private, and a flight is read by those who take part.
    assert (await one.call(ListAttention(at=seq))).items[0].id == item
    assert (await other.call(ListAttention(at=seq))).items == ()
    assert (await other.call(ShowNow(at=seq))).needs_me == ()
    assert (await expect_refusal(other.call(GetAttention(attention_id=item, at=seq)))).code == "not_found"
    assert (await expect_refusal(other.call(ListFlights(agent="@one", at=seq)))).code == "forbidden"
    assert (await other.call(ListFlights(at=seq))).items == ()
    # A grant that is gone opens no past; one that came later does.
    grant = await rig.operator(AddGrant(action=Action.READ, agent="@other", path="/ada/agent/one"))
    assert len((await other.call(ListFlights(agent="@one", at=seq))).items) == 1
    await rig.operator(RevokeGrant(grant_id=grant.id))
    assert (await expect_refusal(other.call(ListFlights(agent="@one", at=seq)))).code == "forbidden"
    # Work that was handed over to somebody else is read by its new owner, in the past too.
    assert [shown.id for shown in (await other.call(ListWork(at=seq))).items] == [work]
    await rig.operator(HandOverWork(work_item_id=work, to="@one"))
    assert (await other.call(ListWork(at=seq))).items == ()
    assert (await one.call(GetWork(work_item_id=work, at=seq))).owner_id == me
    assert (await expect_refusal(other.call(ShowActivity()))).code == "forbidden"


@pytest.mark.rows("R6.h-3")
@as_test
async def test_what_was_redacted_is_redacted_in_the_past(rig: Rig) -> None:
    live = await online_agent(rig)
    asked = await rig.operator(MakeAsk(to="@live", body="the secret is swordfish"))
    before = str(last_seq(rig))
    answer = await live.call(Reply(in_reply_to=asked.flight_id, body="swordfish it is"))
    after = str(last_seq(rig))
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id, at=before))).body.endswith("swordfish")
    for message in (asked.message_id, answer.message_id):
        await rig.operator(RedactMessage(message_id=message))
    for at in (before, after, None):
        shown = await rig.operator(GetFlight(flight_id=asked.flight_id, at=at))
        assert "swordfish" not in f"{shown.body}{shown.output}"
    listed = await rig.operator(ListFlights(at=after))
    assert "swordfish" not in str(listed)


@pytest.mark.rows("R6.h-4")
@pytest.mark.parametrize("at", ["0", "100000", "2999-01-01T00:00:00Z", "1980-01-01T00:00:00Z"])
def test_a_moment_without_history_is_refused_with_one_that_works(tmp_path: Path, at: str) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("one")
        problem = await expect_refusal(rig.operator(ListFlights(agent="@one", at=at)))
        assert isinstance(problem, NoSuchMoment)
        assert problem.first is not None
        (remedy,) = problem.remedies
        assert remedy.parameters["agent"] == "@one"
        request: Any = OPERATIONS[remedy.operation].request
        await rig.operator(request(**remedy.parameters))

    run_scene(scene, tmp_path)


@as_test
async def test_a_page_of_the_past_continues(rig: Rig) -> None:
    await online_agent(rig, "one")
    flights = [(await rig.operator(MakeAsk(to="@one", body=str(n)))).flight_id for n in range(7)]
    seq = str(last_seq(rig))
    for flight in flights:
        await rig.operator(CancelFlight(flight_id=flight))
    lists = (ListFlights(at=seq, limit=3), ListFlights(at=seq, limit=3, open=True))
    for request in (*lists, ListFlights(at=seq, limit=3, agent="@one")):
        found: list[str] = []
        cursor = None
        while True:
            page = await rig.operator(replace(request, cursor=cursor))
            found += [one.id for one in page.items]
            cursor = page.next
            if cursor is None:
                break
        assert found == flights[::-1]


@pytest.mark.rows("R6.h-4", "R6.h-5")
def test_a_long_log_is_followed_in_steps_and_the_rest_is_refused_with_how_far_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    count = 20_000

    async def scene() -> None:
        async with open_rig(home) as rig:
            await rig.register("one")
        _fill(home / "scout.db", count)
        async with open_rig(home) as rig:
            await rig.broker.history.close()
            problem = await expect_refusal(rig.operator(Who(at="now")))
            assert isinstance(problem, HistoryBehind)
            assert 8 <= problem.indexed < problem.events
            status = await rig.operator(ShowStatus())
            assert status.history is not None
            assert [one.address for one in (await rig.operator(Who(at="9"))).items] == ["@one"]
            while (await rig.operator(ShowStatus())).history is not None:
                await rig.broker.history.catch_up()  # each request for a later moment does so
            assert [one.address for one in (await rig.operator(Who(at="now"))).items] == ["@one"]
            told = await rig.operator(ShowActivity(buckets=10))
            assert sum(told.counts) >= count

    asyncio.run(scene())


def _fill(path: Path, count: int) -> None:
    store: sqlite3.Connection = connect(path)
    migrate(store)
    store.execute("BEGIN")
    for _ in range(count):
        post_message("hello")(store)
    store.execute("COMMIT")
    store.close()


@as_test
async def test_waiting_flights_show_what_they_waited_for(rig: Rig) -> None:
    live = await online_agent(rig)
    flight = (await rig.operator(MakeAsk(to="@live", body="one", work_item="A page"))).flight_id
    await live.call(StartFlight(flight_id=flight))
    await live.call(BlockFlight(flight_id=flight, on=WaitingKind.CONDITION, ref="the build", reason="red"))
    seq = str(last_seq(rig))
    await live.call(ResumeFlight(flight_id=flight))
    (shown,) = (await rig.operator(ListFlights(at=seq, state=FlightState.WAITING))).items
    assert (shown.id, shown.reason) == (flight, "red")
    assert (await rig.operator(ListFlights(at="now", state=FlightState.WAITING))).items == ()
    (agent,) = (await rig.operator(Who(at=seq, online=True))).items
    assert agent.status in ("waiting", "online")
