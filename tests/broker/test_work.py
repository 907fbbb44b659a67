"""Work items through a real broker: always owned, always somebody's move, every step in the log."""

import random
from pathlib import Path
from typing import Any

import pytest

from scout.base.refusal import Refused
from scout.broker.local import LocalScout
from scout.model.agent import Lifecycle
from scout.model.ask import ReplyMode
from scout.model.events.envelope import get_record
from scout.model.events.talk import WorkItemEvent, WorkItemUpdated
from scout.model.waiting import WaitingKind
from scout.model.work_item import WORK_ITEM, Acceptance, Priority, RelationKind, WorkItem, WorkState
from scout.protocol.agents import RetireAgent, ShowAgent
from scout.protocol.asks import CancelFlight, CompleteFlight, FailFlight, MakeAsk, StartFlight
from scout.protocol.channels import CreateChannel
from scout.protocol.request import Request
from scout.protocol.work import (
    AcceptWork,
    CancelWork,
    CreateWork,
    GetWork,
    HandOverWork,
    ListWork,
    ProgressWork,
    RelateWork,
    ReopenWork,
    ResumeWork,
    StartWork,
    SubmitWork,
    UpdateWork,
    WaitWork,
    WorkView,
)
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
)


async def _create_work(
    seat: LocalScout, owner: str | None = "@hal", title: str = "Fix the build", **more: Any
) -> WorkView:
    return await seat.call(CreateWork(title=title, owner_id=owner, **more))


async def _pair(rig: Rig) -> tuple[LocalScout, LocalScout]:
    return await online_agent(rig, "arc"), await online_agent(rig, "hal")


async def _last(rig: Rig) -> int:
    return (await read_log(rig))[-1].seq


async def _get_work(rig: Rig, ident: str) -> WorkView:
    return await rig.operator(GetWork(work_item_id=ident))


@pytest.mark.rows("R3.1-33")
@as_test
async def test_work_is_owned_told_reviewed_reopened_and_accepted(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    item = await _create_work(
        arc, description="It is red since noon.", priority=Priority.HIGH, labels=("ci",)
    )
    assert (item.state, item.next_move_owner_id) == (WorkState.OPEN, item.owner_id)
    (told,) = await inbox_items(rig, "hal")
    assert told.message is not None
    assert told.message.sender == item.requester_id
    assert told.message.work_item_id == item.id
    assert told.message.body == (
        f"Fix the build (high)\n\nIt is red since noon.\n\nbegin: scout work start {item.id}"
    )
    ident = item.id
    await hal.call(StartWork(work_item_id=ident))
    await hal.call(ProgressWork(work_item_id=ident, summary="two of four", done=2, total=4))
    await hal.call(ProgressWork(work_item_id=ident, done=3))
    done = await hal.call(SubmitWork(work_item_id=ident, summary="all green"))
    assert (done.state, done.next_move_owner_id) == (WorkState.REVIEW, item.requester_id)
    assert (done.progress.percent, done.progress.summary) == (75.0, "all green")
    assert [one for one in await inbox_bodies(rig, "arc") if "all green" in one]
    again = await arc.call(ReopenWork(work_item_id=ident, reason="the docs are missing"))
    assert (again.state, again.acceptance) == (WorkState.WORKING, Acceptance.REOPENED)
    assert again.next_move_owner_id == item.owner_id
    assert [one for one in await inbox_bodies(rig, "hal") if "the docs are missing" in one]
    await hal.call(SubmitWork(work_item_id=ident))
    settled = await arc.call(AcceptWork(work_item_id=ident, reason="thanks"))
    assert (settled.state, settled.acceptance) == (WorkState.DONE, Acceptance.ACCEPTED)
    assert settled.next_move_owner_id is None
    assert [one for one in await inbox_bodies(rig, "hal") if "accepted" in one]
    shown = await arc.call(GetWork(work_item_id=ident))
    moves = ["create", "start", "progress", "progress", "submit", "reopen", "submit", "accept"]
    assert [one.move for one in shown.steps] == moves
    assert [one.revision for one in shown.steps] == list(range(1, 9))
    assert [one.by.partition(".")[0] for one in shown.steps][:6] == ["@arc", *["@hal"] * 4, "@arc"]
    assert shown.steps[5].reason == "the docs are missing"


@as_test
async def test_the_direct_talk_of_two_holds_their_work_and_the_acting_agent_speaks(rig: Rig) -> None:
    arc, _ = await _pair(rig)
    item = await _create_work(arc)
    (told,) = await inbox_items(rig, "hal")
    assert told.message is not None
    events = [one for one in await read_log(rig) if get_record(one) == told.delivery]
    assert {one.source.id for one in events} == {item.requester_id}
    wake = events[0].metadata.wake
    assert wake is not None
    assert (wake.agent_id, wake.rule) == (item.owner_id, "next-move owner")
    operator = await rig.operator(CreateWork(title="other", owner_id="@hal"))
    other = (await inbox_items(rig, "hal"))[-1]
    assert other.message is not None
    assert other.message.conversation_id != told.message.conversation_id
    assert other.message.sender == operator.requester_id


@as_test
async def test_refused_nothing_is_written(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    eve = await online_agent(rig, "eve")
    item = await _create_work(arc)
    waits = await _create_work(hal, None, "waits")
    ended = await _create_work(hal, None, "over")
    await hal.call(CancelWork(work_item_id=ended.id))
    await hal.call(WaitWork(work_item_id=waits.id, on=WaitingKind.WORK_ITEM, ref=item.id))
    before, ident = await _last(rig), item.id
    on = WaitingKind
    cases: list[tuple[LocalScout, Request[Any], str]] = [
        (eve, StartWork(work_item_id=ident), "not_owner"),
        (arc, StartWork(work_item_id=ident), "not_owner"),
        (eve, ProgressWork(work_item_id=ident), "not_owner"),
        (eve, CancelWork(work_item_id=ident), "not_owner"),
        (eve, HandOverWork(work_item_id=ident, to="@eve"), "not_owner"),
        (eve, UpdateWork(work_item_id=ident, title="mine"), "not_owner"),
        (eve, GetWork(work_item_id=ident), "forbidden"),
        (eve, MakeAsk(to="@hal", body="mine now", work_item_id=ident), "not_owner"),
        (arc, MakeAsk(to="@hal", body="x", work_item_id=ident, work_item="and new"), "bad_request"),
        (hal, AcceptWork(work_item_id=ident), "not_owner"),
        (arc, AcceptWork(work_item_id=ident), "wrong_state"),
        (hal, ProgressWork(work_item_id=ident, done=1), "wrong_state"),
        (hal, ResumeWork(work_item_id=ident), "wrong_state"),
        (hal, StartWork(work_item_id=ident, revision=9), "wrong_revision"),
        (arc, UpdateWork(work_item_id=ident, title="x", revision=9), "wrong_revision"),
        (hal, StartWork(work_item_id="wrk_nobody"), "not_found"),
        (arc, CreateWork(title="x", blocks=("wrk_nobody",)), "not_found"),
        (arc, CreateWork(title="x", owner_id="@gone"), "unknown_target"),
        (arc, CreateWork(title=" "), "bad_request"),
        (arc, UpdateWork(work_item_id=ident, title=" "), "bad_request"),
        (arc, RelateWork(work_item_id=ident, kind=RelationKind.BLOCKS, other=ident), "bad_request"),
        (hal, WaitWork(work_item_id=ident, on=on.ACTOR), "bad_request"),
        (hal, WaitWork(work_item_id=ident, on=on.QUOTA), "bad_request"),
        (hal, WaitWork(work_item_id=ident, on=on.WORK_ITEM, ref=ended.id), "bad_request"),
        (hal, WaitWork(work_item_id=ident, on=on.WORK_ITEM, ref=ident), "bad_request"),
        (hal, WaitWork(work_item_id=ident, on=on.WORK_ITEM, ref=waits.id), "bad_request"),
        (hal, StartWork(work_item_id=ended.id), "wrong_state"),
    ]
    for seat, request, code in cases:
        problem = await expect_refusal(seat.call(request))
        assert problem.code == code, (request, problem)
    assert await _last(rig) == before
    illegal = await expect_refusal(hal.call(ResumeWork(work_item_id=ident)))
    assert set(illegal.accepts) == {"start", "wait", "submit", "hand_over", "cancel"}
    foreign = await expect_refusal(eve.call(StartWork(work_item_id=ident)))
    assert foreign.owner_id == item.owner_id
    assert foreign.needs == (f"the token of {item.owner_address}", "the operator's token")


# -- waiting -----------------------------------------------------------------------------------------


@as_test
async def test_whoever_is_waited_for_holds_the_next_move(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    ops = await online_agent(rig, "ops")
    item = await _create_work(arc)
    people = {name: (await rig.operator(ShowAgent(address=f"@{name}"))).id for name in ("arc", "hal", "ops")}
    operator = rig.broker.services.operator_agent
    cases: tuple[tuple[WaitingKind, str | None, str | None, str], ...] = (
        (WaitingKind.ACTOR, "@ops", None, people["ops"]),
        (WaitingKind.APPROVAL, "the deploy", None, operator),
        (WaitingKind.ARTIFACT, "dist.tar", None, people["arc"]),
        (WaitingKind.CONDITION, "the build is green", "@ops", people["ops"]),
    )
    for kind, ref, named, holder in cases:
        request = WaitWork(work_item_id=item.id, on=kind, ref=ref, next_move_owner_id=named, reason="stuck")
        waiting = await hal.call(request)
        assert (waiting.state, waiting.next_move_owner_id) == (WorkState.WAITING, holder)
        assert waiting.waiting_on is not None
        assert waiting.waiting_on.kind is kind
        back = await hal.call(ResumeWork(work_item_id=item.id, reason="it is there"))
        assert (back.state, back.next_move_owner_id) == (WorkState.WORKING, people["hal"])
    assert len([one for one in await inbox_bodies(rig, "ops") if "stuck" in one]) == 2
    await hal.call(WaitWork(work_item_id=item.id, on=WaitingKind.ACTOR, ref="@ops"))
    resumed = await ops.call(ResumeWork(work_item_id=item.id, reason="I am done"))
    assert resumed.next_move_owner_id == people["hal"]
    assert [one for one in await inbox_bodies(rig, "hal") if "I am done" in one]


@as_test
async def test_what_waits_for_an_item_goes_on_when_that_is_settled(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    first = await _create_work(hal, "@arc", "the schema", accepted=False)
    second = await _create_work(arc, "@hal", "the page")
    waiting = await hal.call(WaitWork(work_item_id=second.id, on=WaitingKind.WORK_ITEM, ref=first.id))
    assert waiting.next_move_owner_id == first.owner_id
    done = await arc.call(SubmitWork(work_item_id=first.id, summary="in main"))
    assert (done.state, done.acceptance) == (WorkState.DONE, Acceptance.NONE)
    again = await _get_work(rig, second.id)
    assert (again.state, again.next_move_owner_id) == (WorkState.WORKING, second.owner_id)
    assert again.steps[-1].reason == f"{first.id} is done"
    moment = {
        one.time for one in await read_log(rig) if isinstance(one, WorkItemUpdated) and _is(one, "accept")
    }
    assert again.steps[-1].at in moment  # the same transaction
    assert [one for one in await inbox_bodies(rig, "hal") if first.id in one and second.id in one]
    assert [one for one in await inbox_bodies(rig, "hal") if one.startswith("done: the schema")]


def _is(event: Any, move: str) -> bool:
    return event.payload.move == move


@as_test
async def test_who_waits_for_an_item_waits_for_its_new_owner(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    await online_agent(rig, "ops")
    first = await _create_work(hal, "@arc", "the schema")
    second = await _create_work(arc, "@hal", "the page")
    await hal.call(WaitWork(work_item_id=second.id, on=WaitingKind.WORK_ITEM, ref=first.id))
    handed = await arc.call(HandOverWork(work_item_id=first.id, to="@ops", reason="on leave"))
    assert handed.owner_address.startswith("@ops")
    assert (await _get_work(rig, second.id)).next_move_owner_id == handed.owner_id
    assert [one for one in await inbox_bodies(rig, "ops") if "the schema" in one]


@as_test
async def test_a_waiting_item_is_handed_over_without_moving_whose_move_it_is(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    await online_agent(rig, "ops")
    item = await _create_work(arc)
    await hal.call(WaitWork(work_item_id=item.id, on=WaitingKind.ACTOR, ref="@arc"))
    handed = await hal.call(HandOverWork(work_item_id=item.id, to="@ops"))
    assert (handed.state, handed.next_move_owner_id) == (WorkState.WAITING, item.requester_id)
    (told,) = await inbox_items(rig, "ops")
    assert told.delivered.rule == "notice"
    assert not told.delivered.wake


@as_test
async def test_cancelled_work_is_told_to_its_owner_without_waking(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    item = await _create_work(arc)
    gone = await arc.call(CancelWork(work_item_id=item.id, reason="not needed"))
    assert (gone.state, gone.next_move_owner_id) == (WorkState.CANCELLED, None)
    assert [one for one in await inbox_bodies(rig, "hal") if "not needed" in one]
    own = await _create_work(arc)
    await hal.call(CancelWork(work_item_id=own.id, reason="no time"))
    assert [one for one in await inbox_bodies(rig, "arc") if "no time" in one]


# -- edits, relations, lists -------------------------------------------------------------------------


@as_test
async def test_edits_and_relations_are_steps_of_both_sides(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    await online_agent(rig, "ops")
    page = await _create_work(arc, "@hal", "the page")
    schema = await _create_work(arc, "@hal", "the schema", blocks=(page.id,), reviewer_id="@ops")
    await arc.call(RelateWork(work_item_id=schema.id, kind=RelationKind.RELATES, other=page.id))
    twice = await arc.call(RelateWork(work_item_id=schema.id, kind=RelationKind.RELATES, other=page.id))
    assert [one.kind for one in twice.relations] == [RelationKind.BLOCKS, RelationKind.RELATES]
    shown = await _get_work(rig, page.id)
    assert {(one.kind, one.work_item_id) for one in shown.related_by} == {
        (RelationKind.BLOCKS, schema.id),
        (RelationKind.RELATES, schema.id),
    }
    edited = await arc.call(
        UpdateWork(work_item_id=schema.id, title="the schema v2", priority=Priority.URGENT, labels=("db",))
    )
    assert (edited.title, edited.priority, edited.labels) == ("the schema v2", Priority.URGENT, ("db",))
    submitted = await hal.call(SubmitWork(work_item_id=schema.id, summary="ready"))
    assert submitted.next_move_address is not None
    assert submitted.next_move_address.startswith("@ops")
    moved = await arc.call(UpdateWork(work_item_id=schema.id, reviewer_id="@arc"))
    assert moved.next_move_owner_id == schema.requester_id
    moves = [one.move for one in (await _get_work(rig, schema.id)).steps]
    assert moves == ["create", "relate", "update", "submit", "update"]


@as_test
async def test_lists_are_of_the_caller_newest_first_and_by_page(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    eve = await online_agent(rig, "eve")
    made = [await _create_work(arc, "@hal", f"{number}", labels=(f"l{number % 2}",)) for number in range(5)]
    own = await _create_work(eve, None, "of eve")
    await arc.call(CancelWork(work_item_id=made[0].id))
    await hal.call(SubmitWork(work_item_id=made[1].id))

    async def ids(seat: LocalScout, **more: Any) -> list[str]:
        return await list_ids(seat, ListWork, **more)

    newest = [one.id for one in reversed(made)]
    assert await ids(arc) == await ids(hal) == newest[:-1]
    assert await ids(hal, all=True) == newest
    assert await ids(await rig.scout(), all=True) == [own.id, *newest]
    assert await ids(await rig.scout()) == [own.id, *newest[:-1]]
    assert await ids(await rig.scout(), owner_id="@hal") == newest[:-1]
    assert await ids(hal, owed=True) == newest[:3]
    assert await ids(arc, owed=True) == [made[1].id]
    assert await ids(arc, state=WorkState.CANCELLED) == [made[0].id]
    assert await ids(arc, label="l1") == [made[3].id, made[1].id]
    assert await ids(eve) == [own.id]
    assert (await expect_refusal(eve.call(ListWork(owner_id="@hal")))).code == "forbidden"


# -- with asks ---------------------------------------------------------------------------------------


@as_test
async def test_an_ask_may_begin_a_work_item_that_follows_its_flight(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    asked = await arc.call(MakeAsk(to="@hal", body="deploy", work_item="The deploy"))
    ident = asked.work_item_id or ""
    item = await _get_work(rig, ident)
    assert (item.title, item.owner_id, item.requester_id) == ("The deploy", asked.target, item.requester_id)
    assert item.ask_id == asked.ask_id
    assert len(await inbox_bodies(rig, "hal")) == 1  # the ask tells it
    await hal.call(StartFlight(flight_id=asked.flight_id))
    assert (await _get_work(rig, ident)).state is WorkState.WORKING
    await hal.call(CompleteFlight(flight_id=asked.flight_id, output="done"))
    review = await _get_work(rig, ident)
    assert (review.state, review.next_move_owner_id) == (WorkState.REVIEW, item.requester_id)
    assert await inbox_bodies(rig, "arc") == []  # the answer is the ask's, and was asked inline
    assert [one.move for one in review.steps] == ["create", "start", "submit"]
    assert {one.by.partition(".")[0] for one in review.steps[1:]} == {"@hal"}


@as_test
async def test_a_flight_tells_a_reviewer_who_did_not_ask(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    await online_agent(rig, "ops")
    item = await _create_work(arc, "@hal", "The deploy", reviewer_id="@ops")
    asked = await arc.call(
        MakeAsk(to="@hal", body="deploy", work_item_id=item.id, reply_mode=ReplyMode.NOTIFY)
    )
    await hal.call(CompleteFlight(flight_id=asked.flight_id, output="done"))
    (told,) = await inbox_items(rig, "ops")
    assert told.message is not None
    assert told.message.body.startswith("for review: The deploy")
    assert told.message.sender == item.owner_id
    assert await inbox_bodies(rig, "arc") == ["done"]


@as_test
async def test_failed_and_cancelled_flights_move_their_items(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    failed = await arc.call(MakeAsk(to="@hal", body="one", work_item="one"))
    await hal.call(StartFlight(flight_id=failed.flight_id))
    await hal.call(FailFlight(flight_id=failed.flight_id, reason="no disk"))
    item = await _get_work(rig, failed.work_item_id or "")
    assert (item.state, item.next_move_owner_id) == (WorkState.WAITING, item.requester_id)
    assert len(await inbox_bodies(rig, "arc")) == 1  # told of the failure once
    cancelled = await arc.call(MakeAsk(to="@hal", body="two", work_item="two"))
    await arc.call(CancelFlight(flight_id=cancelled.flight_id))
    assert (await _get_work(rig, cancelled.work_item_id or "")).state is WorkState.CANCELLED


@as_test
async def test_a_flight_whose_item_was_waited_for_lets_the_others_go_on(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    first = await _create_work(arc, "@hal", "first", accepted=False)
    second = await _create_work(hal, "@arc", "second")
    await arc.call(WaitWork(work_item_id=second.id, on=WaitingKind.WORK_ITEM, ref=first.id))
    asked = await arc.call(MakeAsk(to="@hal", body="do it", work_item_id=first.id))
    await hal.call(CompleteFlight(flight_id=asked.flight_id, output="done"))
    assert (await _get_work(rig, first.id)).state is WorkState.DONE
    assert (await _get_work(rig, second.id)).state is WorkState.WORKING


@as_test
async def test_work_in_a_channel_is_told_there(rig: Rig) -> None:
    arc, _ = await _pair(rig)
    channel = await rig.operator(CreateChannel(name="dev", members=("@arc", "@hal")))
    await _create_work(arc, conversation_id=channel.id)
    (told,) = await inbox_items(rig, "hal")
    assert told.message is not None
    assert told.message.conversation_id == channel.id


# -- retirement --------------------------------------------------------------------------------------


@as_test
async def test_what_a_retired_agent_owned_or_owed_is_somebody_elses(rig: Rig) -> None:
    arc, hal = await _pair(rig)
    operator = rig.broker.services.operator_agent
    owned = await _create_work(arc)
    own = await _create_work(hal, None, "for itself")
    waits = await _create_work(hal, "@arc", "needs hal")
    await arc.call(WaitWork(work_item_id=waits.id, on=WaitingKind.ACTOR, ref="@hal"))
    reviewed = await _create_work(arc, "@arc", "hal looks", reviewer_id="@hal")
    await arc.call(SubmitWork(work_item_id=reviewed.id))
    later = await _create_work(hal, "@arc", "of hal")
    await rig.operator(RetireAgent(address="@hal", reason="merged"))
    back = await _get_work(rig, owned.id)
    assert back.owner_id == back.next_move_owner_id == owned.requester_id
    assert back.steps[-1].move == "hand_over"
    assert "retired" in back.steps[-1].reason
    assert (await _get_work(rig, own.id)).owner_id == operator
    freed = await _get_work(rig, waits.id)
    assert (freed.state, freed.next_move_owner_id) == (WorkState.WAITING, waits.owner_id)
    review = await _get_work(rig, reviewed.id)
    assert review.reviewer_id == review.next_move_owner_id == reviewed.requester_id
    done = await arc.call(SubmitWork(work_item_id=later.id))
    assert done.reviewer_id == done.next_move_owner_id == operator
    assert [one for one in await inbox_bodies(rig, "arc") if "retired" in one]


@pytest.mark.rows("R2.3-24")
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_unsettled_work_has_an_owner_and_a_holder_in_service(
    tmp_path: Path, seed: int
) -> None:
    async def scene(rig: Rig) -> None:
        chance = random.Random(seed)
        names = ["one", "two", "six"]
        for name in names:
            await online_agent(rig, name)
        for number in range(60):
            if number in (25, 45):
                await rig.operator(RetireAgent(address=f"@{names.pop()}"))
            await _some_move(rig, chance, names)
            await _check(rig)

    run_scene(scene, tmp_path)


async def _some_move(rig: Rig, chance: random.Random, names: list[str]) -> None:
    items = (await rig.operator(ListWork(all=True, limit=50))).items
    if not items or chance.random() < 0.2:
        seat = await rig.agent(chance.choice(names))
        await seat.call(CreateWork(title="x", owner_id=f"@{chance.choice(names)}"))
        return
    item, other, to = chance.choice(items), chance.choice(items), f"@{chance.choice(names)}"
    ident = item.id
    request = chance.choice(
        (
            StartWork(work_item_id=ident),
            WaitWork(work_item_id=ident, on=WaitingKind.ACTOR, ref=to),
            WaitWork(work_item_id=ident, on=WaitingKind.WORK_ITEM, ref=other.id),
            WaitWork(work_item_id=ident, on=WaitingKind.APPROVAL),
            WaitWork(work_item_id=ident, on=WaitingKind.CONDITION),
            ResumeWork(work_item_id=ident),
            SubmitWork(work_item_id=ident, reviewer_id=to),
            SubmitWork(work_item_id=ident),
            AcceptWork(work_item_id=ident),
            ReopenWork(work_item_id=ident, reason="again"),
            HandOverWork(work_item_id=ident, to=to),
            CancelWork(work_item_id=ident) if chance.random() < 0.3 else StartWork(work_item_id=ident),
        )
    )
    try:
        await rig.operator(request)
    except Refused as refusal:
        assert refusal.diagnostic.code in ("wrong_state", "bad_request", "unknown_target"), refusal


async def _check(rig: Rig) -> None:
    """In the rows, and in the last fact of each item."""
    newest: dict[str, WorkItem] = {}
    for event in await read_log(rig, "collab.work_item"):
        assert isinstance(event, WorkItemEvent)
        newest[event.target.id] = event.payload.record
    for item in newest.values():
        holders = (item.owner_id, item.next_move_owner_id)
        if item.state in WORK_ITEM.settled:
            assert item.next_move_owner_id is None
            continue
        for holder in holders:
            agent = rig.broker.cache.agents.get(holder or "") or await _agent(rig, holder or "")
            assert agent.lifecycle is not Lifecycle.RETIRED, item


async def _agent(rig: Rig, ident: str) -> Any:
    return await rig.operator(ShowAgent(address=ident))
