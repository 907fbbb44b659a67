"""A day in the life: three agents and a person, one log. Hours pass by moving the clock."""

import asyncio
import itertools
import shutil
from pathlib import Path
from typing import Any

from scout.broker.local import LocalScout
from scout.broker.upkeep import housekeeping
from scout.model.agent import Agent
from scout.model.attention import AttentionKind
from scout.model.events.envelope import Event, get_record
from scout.model.flight import FlightState
from scout.model.waiting import WaitingKind
from scout.model.work_item import WorkState
from scout.protocol.asks import AskView, GetAsk, GetFlight, MakeAsk
from scout.protocol.attention import AnswerAttention, ApproveAttention, AttentionView, ListAttention
from scout.protocol.inbox import AckInbox, ClaimInbox
from scout.protocol.questions import AnswerQuestion, CloseQuestion, CreateQuestion
from scout.protocol.talk import Reply
from scout.protocol.work import (
    AcceptWork,
    CreateWork,
    GetWork,
    ProgressWork,
    ReopenWork,
    StartWork,
    SubmitWork,
    WaitWork,
)
from scout.store.integrity.verify import verify
from tests.broker.rig import MovedClock, Rig, online_agent, open_rig, read_log

HOUR = 3600.0
NAMES = ("arc", "bea", "cyr")

# What the log tells of each record: who made which move, and the state after it.
FORM = [
    "arc: create -> open",
    "bea: start -> working",
    "bea: progress -> working",
    "bea: wait -> waiting",
    "/ada/direct: resume -> working",
    "bea: submit -> review",
    "arc: reopen -> working",
    "bea: submit -> review",
    "arc: accept -> done",
]
QUESTION = ["bea: create -> open", "cyr: answer -> answered", "bea: close -> closed"]
DOCS = [
    "arc: create -> open",
    "/system/sweeper: nudged cyr",
    "/system/sweeper: nudged /ada/direct",
    "cyr: start -> working",
    "cyr: submit -> review",
    "arc: accept -> done",
]
LOGIN = [
    "/ada/direct: create -> open",
    "arc: start -> working",
    "/system/sweeper: nudged arc",
    "/system/sweeper: nudged /ada/direct",
    "arc: submit -> review",
    "/ada/direct: accept -> done",
]
FLIGHT = [
    "/ada/direct: queue -> queued",
    "arc: waking -> queued",
    "arc: start -> running",
    "/system/sweeper: checking -> running",
    "/system/sweeper: wait -> waiting",
    "/system/sweeper: waiting -> waiting",
    "arc: complete -> completed",
]


async def take_inbox(seat: LocalScout) -> list[str]:
    """What an agent finds in its inbox and takes: the first line of each."""
    claimed = await seat.call(ClaimInbox())
    if claimed.items:
        await seat.call(AckInbox(delivery_ids=tuple(one.delivered.id for one in claimed.items)))
    return [one.message.body.splitlines()[0] for one in claimed.items if one.message]


async def hours(rig: Rig, count: int) -> None:
    """Time passes, and the sweeper looks once in every hour."""
    for _ in range(count):
        rig.clock.ahead += HOUR
        await housekeeping.tidy(rig.broker)


async def needs(rig: Rig) -> list[AttentionView]:
    return list((await rig.operator(ListAttention())).items)


def tell_story(rig: Rig, events: list[Event], *idents: str) -> list[str]:
    """What happened to these records, by whom, in order: from the log alone. The same again counts once."""
    ledger = rig.broker.glance()

    def name(ident: str) -> str:
        agent = ledger.get(Agent, ident)
        return (agent.definition_id or str(agent.path)) if agent else ident

    def line(event: Event) -> str:
        record, move = get_record(event), getattr(event.payload, "move", None)
        done = f"{move} -> {record.state}" if move else f"nudged {name(record.holder_id)}"
        return f"{name(event.source.id)}: {done}"

    def about(event: Event) -> set[str]:
        subject = getattr(get_record(event), "about", "")
        return {event.target.id, str(subject).partition(":")[2]}

    lines = [line(event) for event in events if about(event) & set(idents)]
    return [one for one, _ in itertools.groupby(lines)]


async def morning(rig: Rig) -> dict[str, str]:
    """The person asks; the lead delegates; the developer needs an approval and gets it elsewhere."""
    arc, bea = await online_agent(rig, "arc"), await online_agent(rig, "bea")
    await online_agent(rig, "cyr")
    asked = await rig.operator(MakeAsk(to="@arc", body="Ship the login.", work_item="the login"))
    assert asked.work_item_id is not None
    assert await take_inbox(arc) == ["Ship the login."]
    assert (await arc.call(GetWork(work_item_id=asked.work_item_id))).state is WorkState.WORKING

    form = await arc.call(CreateWork(title="the login form", owner_id="@bea"))
    assert [line for line in await take_inbox(bea) if "the login form" in line]
    await bea.call(StartWork(work_item_id=form.id))
    await bea.call(ProgressWork(work_item_id=form.id, summary="fields", done=1, total=2))
    waiting = await bea.call(WaitWork(work_item_id=form.id, on=WaitingKind.APPROVAL, ref="a new table"))
    assert waiting.next_move_owner_id == rig.broker.services.operator_agent
    (item,) = [one for one in await needs(rig) if one.return_path.work_item_id == form.id]
    await rig.operator(ApproveAttention(attention_id=item.id, reason="go on"))
    assert (await bea.call(GetWork(work_item_id=form.id))).state is WorkState.WORKING
    await take_inbox(bea)
    return {"flight": asked.flight_id, "login": asked.work_item_id, "form": form.id}


async def noon(rig: Rig, known: dict[str, str]) -> dict[str, str]:
    """A question between two; review, not good enough, good enough."""
    arc, bea, cyr = [await rig.scout(rig.tokens[name]) for name in NAMES]
    question = await bea.call(CreateQuestion(to="@cyr", body="Which library for the hash?"))
    assert "Which library for the hash?" in await take_inbox(cyr)
    await cyr.call(AnswerQuestion(question_id=question.id, answer="the one we have"))
    assert "the one we have" in await take_inbox(bea)
    await bea.call(CloseQuestion(question_id=question.id))

    form = known["form"]
    await bea.call(SubmitWork(work_item_id=form, summary="done"))
    assert await take_inbox(arc)
    await arc.call(ReopenWork(work_item_id=form, reason="no test"))
    assert await take_inbox(bea)
    await bea.call(SubmitWork(work_item_id=form, summary="with a test"))
    await take_inbox(arc)
    done = await arc.call(AcceptWork(work_item_id=form))
    assert (done.state, done.next_move_owner_id) == (WorkState.DONE, None)
    return {**known, "question": question.id}


async def afternoon(rig: Rig, known: dict[str, str]) -> dict[str, str]:
    """After the crash everything is where it was; then an owner stalls and is reminded, and so is the person."""
    arc, _, cyr = [await rig.scout(rig.tokens[name]) for name in NAMES]
    assert (await arc.call(GetFlight(flight_id=known["flight"]))).state is FlightState.RUNNING
    docs = await arc.call(CreateWork(title="the docs", owner_id="@cyr"))
    await take_inbox(cyr)
    await hours(rig, 5)
    assert any(docs.id in line or "the docs" in line for line in await take_inbox(cyr)), (
        "the owner is reminded"
    )
    assert not [one for one in await needs(rig) if docs.id in str(one.dedupe)]
    await hours(rig, 5)
    (late,) = [one for one in await needs(rig) if docs.id in str(one.dedupe)]
    assert late.kind is AttentionKind.WAITING
    assert await take_inbox(cyr) == [], "one reminder in a period, to one"
    await rig.operator(AnswerAttention(attention_id=late.id, answer="I spoke to cyr"))
    await cyr.call(StartWork(work_item_id=docs.id))
    await cyr.call(SubmitWork(work_item_id=docs.id, summary="written"))
    await arc.call(AcceptWork(work_item_id=docs.id))
    await arc.call(Reply(body="The login is live.", in_reply_to=known["flight"]))
    view: AskView = await rig.operator(GetAsk(ask_id=(await flight(rig, known)).ask_id))
    assert view.flights[-1].output == "The login is live."
    review = await rig.operator(GetWork(work_item_id=known["login"]))
    assert (review.state, review.next_move_owner_id) == (WorkState.REVIEW, rig.broker.services.operator_agent)
    await rig.operator(AcceptWork(work_item_id=known["login"]))
    assert [one for one in await needs(rig) if one.return_path.work_item_id] == []
    return {**known, "docs": docs.id}


async def flight(rig: Rig, known: dict[str, str]) -> Any:
    return await rig.operator(GetFlight(flight_id=known["flight"]))


def test_a_day_of_three_agents_and_a_person_is_told_by_its_log(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    clock = MovedClock()

    async def play() -> None:
        before.mkdir()
        async with open_rig(before, clock=clock) as first:
            known = await noon(first, await morning(first))
            tokens = first.tokens
            shutil.copytree(before, after)  # what is on disk while it runs is what a crash leaves
        async with open_rig(after, clock=clock) as second:
            second.tokens = tokens
            known = await afternoon(second, known)
            events = await read_log(second)
            assert tell_story(second, events, known["form"]) == FORM
            assert tell_story(second, events, known["question"]) == QUESTION
            assert tell_story(second, events, known["docs"]) == DOCS
            assert tell_story(second, events, known["login"]) == LOGIN
            assert tell_story(second, events, known["flight"]) == FLIGHT

    asyncio.run(play())
    report = verify(after / "scout.db")
    assert report.clean, report
