"""The sweeper through a real broker: hours pass by moving the clock, one holder at a time is reminded."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.adapters.echo import Echo
from scout.broker.local import LocalScout
from scout.broker.transaction.transaction import Transaction
from scout.broker.upkeep import housekeeping
from scout.broker.upkeep import sweeper as upkeep_sweeper
from scout.broker.upkeep.sweeper import find_due
from scout.model.access.grant import Action
from scout.model.alias import Alias, AliasTarget
from scout.model.ask import IfUnreachable
from scout.model.conversation import Message
from scout.model.delivery import Delivery, InspectResult
from scout.model.events.asks import (
    DeliveryNacked,
    DeliveryRequested,
    FlightWaiting,
    SweepNudged,
    SweepSettled,
)
from scout.model.events.directory import AliasCreated
from scout.model.events.presence import SessionEnded
from scout.model.events.talk import WorkItemCreated
from scout.model.flight import Flight, FlightState, wait_flight
from scout.model.session import Session, end_session
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import create_work
from scout.policy.limits import Limits
from scout.policy.sweep_actions import Round
from scout.ports import Accepted, HarnessEvent, Prompt, SessionSpec
from scout.protocol.access import AddGrant, CreateToken, ListAliases, ListGrants, ListTokens
from scout.protocol.agents import RetireAgent, ShowAgent
from scout.protocol.asks import BlockFlight, GetFlight, MakeAsk, StartFlight
from scout.protocol.attention import AnswerAttention, Consult, GetAttention, ListAttention
from scout.protocol.endpoints import Heartbeat
from scout.protocol.inbox import ClaimInbox, GetDelivery
from scout.protocol.people.users import AddUser
from scout.protocol.questions import AnswerQuestion, CloseQuestion, CreateQuestion
from scout.protocol.sessions import ListSessions
from scout.protocol.talk import GetMessage, RedactMessage, Reply, Send
from scout.protocol.work import (
    CreateWork,
    GetWork,
    ProgressWork,
    ResumeWork,
    StartWork,
    SubmitWork,
    WaitWork,
)
from scout.store.integrity.verify import verify
from scout.store.migrate import load_scripts
from tests.broker.rig import (
    MovedClock,
    Rig,
    advance_clock,
    as_test,
    inbox_bodies,
    inbox_items,
    list_events,
    online_agent,
    poll_until_finished,
    read_log,
    run_scene,
    wait_until,
)

HALF_HOUR, HOUR, DAY = 1800.0, 3600.0, 86_400.0
ENDS_WAITS = load_scripts()[14]  # the script that makes waits end at their time


async def nudges(rig: Rig, about: str | None = None) -> list[SweepNudged]:
    found = [one for one in await read_log(rig, "collab.sweep") if isinstance(one, SweepNudged)]
    return [one for one in found if about in (None, one.payload.about.id)]


async def holders(rig: Rig, about: str) -> list[tuple[str, int]]:
    return [(one.payload.holder_id, one.payload.count) for one in await nudges(rig, about)]


async def needs(rig: Rig) -> list[str]:
    return [one.title for one in (await rig.operator(ListAttention())).items]


async def ident(rig: Rig, name: str) -> str:
    return (await rig.operator(ShowAgent(address=f"@{name}"))).id


# -- who owes a move ---------------------------------------------------------------------------------


@as_test
@pytest.mark.rows("R3.4-1", "R3.4-2", "R3.4-10", "R3.4-11", "R3.4-12")
async def test_a_question_goes_up_the_ladder_one_period_at_a_time(rig: Rig) -> None:
    ann, bob = await rig.agent("ann"), await rig.agent("bob")
    asked = await ann.call(CreateQuestion(to="@bob", body="which port is it?"))
    told = len(await inbox_bodies(rig, "bob"))
    await advance_clock(rig, HALF_HOUR - 5)
    assert await nudges(rig) == []
    await advance_clock(rig, 6)
    for _ in range(3):
        await housekeeping.tidy(rig.broker)
    (first,) = await nudges(rig, asked.id)
    assert (first.payload.holder_id, first.payload.count) == (asked.responder_id, 1)
    assert first.source.id == rig.broker.services.sweeper_agent
    text = (await inbox_bodies(rig, "bob"))[told:]
    assert len(text) == 1
    assert "open question: which port is it?" in text[0]
    assert f"no progress since {asked.updated_at}" in text[0]
    assert f"try: scout question answer {asked.id} '…'" in text[0]
    assert f"try: scout why {asked.id}" in text[0]
    await advance_clock(rig, HALF_HOUR - 5)
    assert len(await nudges(rig)) == 1
    await advance_clock(rig, 6)
    asker = (await inbox_bodies(rig, "ann"))[-1]
    assert "was reminded and has not moved" in asker
    assert f"try: scout question close {asked.id}" in asker
    assert "question answer" not in asker  # its own question is not the asker's to answer
    await advance_clock(rig, HALF_HOUR + 1)
    expected = [(asked.responder_id, 1), (asked.asker_id, 2), (rig.broker.services.operator_agent, 3)]
    assert await holders(rig, asked.id) == expected
    assert await needs(rig) == ["open question: which port is it?"]
    for _ in range(4):
        await advance_clock(rig, HALF_HOUR + 1)
    assert await holders(rig, asked.id) == expected
    # Answered, it is the asker's: the ladder starts anew, and what the operator was told is put away.
    await bob.call(AnswerQuestion(question_id=asked.id, answer="8080"))
    assert await needs(rig) == []
    await advance_clock(rig, 4 * HOUR + 1)
    assert (await holders(rig, asked.id))[3:] == [(asked.asker_id, 1)]
    assert f"scout question close {asked.id}" in (await inbox_bodies(rig, "ann"))[-1]
    await ann.call(CloseQuestion(question_id=asked.id))
    await advance_clock(rig, DAY)
    assert len(await nudges(rig)) == 4


@as_test
async def test_work_that_waits_until_a_time_is_resumed_then_and_its_owner_is_told(rig: Rig) -> None:
    bob = await rig.agent("bob")
    made = await rig.operator(CreateWork(title="deploy", owner_id="@bob"))
    await bob.call(StartWork(work_item_id=made.id))
    until = rig.broker.services.clock.now().plus(HOUR)
    waits = WaitWork(work_item_id=made.id, on=WaitingKind.CONDITION, ref="the freeze is over", until=until)
    assert (await bob.call(waits)).state == "waiting"
    told = len(await inbox_bodies(rig, "bob"))
    await advance_clock(rig, HOUR - 5)
    assert (await bob.call(GetWork(work_item_id=made.id))).state == "waiting"
    await advance_clock(rig, 6)
    after = await bob.call(GetWork(work_item_id=made.id))
    assert (after.state, after.waiting_on, after.next_move_owner_id) == ("working", None, made.owner_id)
    (text,) = (await inbox_bodies(rig, "bob"))[told:]
    assert text.startswith("continue with deploy: the time it waited for has come")
    assert await nudges(rig, made.id) == []


@as_test
async def test_a_wait_of_an_earlier_schema_ends_at_its_time_too(rig: Rig) -> None:
    bob = await rig.agent("bob")
    made = await rig.operator(CreateWork(title="deploy", owner_id="@bob"))
    await bob.call(StartWork(work_item_id=made.id))
    until = rig.broker.services.clock.now().plus(HOUR)
    waits = WaitWork(work_item_id=made.id, on=WaitingKind.CONDITION, ref="the freeze is over", until=until)
    await bob.call(waits)

    def upgrade(unit: Any) -> list[Any]:
        query = "SELECT period, since FROM sweeps"
        found = unit.connection.execute(query).fetchall()
        unit.connection.execute("UPDATE sweeps SET period = 'work_waiting'")
        unit.connection.execute(ENDS_WAITS)
        return [found, unit.connection.execute(query).fetchall()]

    new, upgraded = await rig.broker._database.write(upgrade)
    assert new == upgraded == [("wait_ends", int(until))]


@as_test
@pytest.mark.rows("R3.4-3", "R3.4-12")
async def test_work_in_every_state_reminds_who_holds_its_next_move(rig: Rig) -> None:
    ann, bob, carol = [await rig.agent(name) for name in ("ann", "bob", "carol")]
    item = await ann.call(CreateWork(title="tidy the shed", owner_id="@bob"))
    about, a, b, c = item.id, item.requester_id, item.owner_id, await ident(rig, "carol")
    await advance_clock(rig, 4 * HOUR + 1)
    assert await holders(rig, about) == [(b, 1)]
    assert f"scout work start {about}" in (await inbox_bodies(rig, "bob"))[-1]
    await bob.call(StartWork(work_item_id=about))
    await advance_clock(rig, 2 * HOUR + 1)
    assert await holders(rig, about) == [(b, 1)] * 2
    await bob.call(ProgressWork(work_item_id=about, summary="half of it"))
    await advance_clock(rig, HOUR)
    assert len(await nudges(rig)) == 2
    await bob.call(WaitWork(work_item_id=about, on=WaitingKind.ACTOR, ref="@carol"))
    await advance_clock(rig, 4 * HOUR + 1)
    await advance_clock(rig, 4 * HOUR + 1)
    assert (await holders(rig, about))[2:] == [(c, 1), (b, 2)]
    assert f"scout work resume {about}" in (await inbox_bodies(rig, "carol"))[-1]
    assert f"scout work hand-over {about}" in (await inbox_bodies(rig, "bob"))[-1]
    assert (await inbox_items(rig, "carol"))[-1].delivered.work_item_id == about
    await carol.call(ResumeWork(work_item_id=about, reason="here you are"))
    await bob.call(SubmitWork(work_item_id=about))
    await advance_clock(rig, 4 * HOUR + 1)
    assert (await holders(rig, about))[4:] == [(a, 1)]
    assert f"scout work accept {about}" in (await inbox_bodies(rig, "ann"))[-1]


@as_test
async def test_a_nudge_starts_the_program_of_its_holder_by_a_stored_decision(rig: Rig) -> None:
    ann = await rig.agent("ann")
    await rig.register("parrot", harness="echo")
    item = await ann.call(CreateWork(title="say hello", owner_id="@parrot"))
    await wait_until(lambda: rig.broker.dispatcher.runner.turns == 1)
    await advance_clock(rig, 4 * HOUR + 1)
    await wait_until(lambda: rig.broker.dispatcher.runner.turns == 2)
    requested = [one for one in await read_log(rig, "collab.delivery") if isinstance(one, DeliveryRequested)]
    mine = [one for one in requested if one.source.id == rig.broker.services.sweeper_agent]
    assert [one.payload.record.target for one in mine] == [item.owner_id]
    wake = mine[0].metadata.wake
    assert wake is not None
    assert (wake.agent_id, wake.action, wake.facts["occasion"]["cause"]) == (item.owner_id, "wake", "nudge")
    # What a program says to the sweeper is kept in their conversation and delivered to nobody.
    assert not [one for one in requested if one.payload.record.target == rig.broker.services.sweeper_agent]


@as_test
async def test_a_person_finds_it_in_the_inbox_and_nothing_is_started(rig: Rig) -> None:
    ann = await rig.agent("ann")
    asked = await ann.call(CreateQuestion(to=f"/{rig.broker.services.operator}/direct", body="may I?"))
    before = await needs(rig)
    await advance_clock(rig, HALF_HOUR + 1)
    assert await holders(rig, asked.id) == [(rig.broker.services.operator_agent, 1)]
    assert await needs(rig) == before == ["may I?"]


@as_test
async def test_what_nobody_known_holds_is_the_operators(rig: Rig) -> None:
    made: list[str] = []

    def orphaned(tx: Transaction) -> None:
        gone = tx.mint("agt")
        item = create_work(tx.mint("wrk"), "of nobody", tx.now, requester_id=gone, owner_id=gone)
        made.append(tx.record(WorkItemCreated, item, move="create").id)

    await rig.broker.as_system(orphaned)
    await advance_clock(rig, 4 * HOUR + 1)
    assert await needs(rig) == ["work item in open: of nobody"]


def test_wakes_by_the_sweeper_have_the_budget_of_every_conversation(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        ann = await rig.agent("ann")
        await rig.register("parrot", harness="echo")
        for number in range(3):
            await ann.call(CreateWork(title=f"number {number}", owner_id="@parrot"))
        await advance_clock(rig, 4 * HOUR + 1)
        assert len(await nudges(rig)) == 3
        requested = [
            one for one in await read_log(rig, "collab.delivery") if isinstance(one, DeliveryRequested)
        ]
        mine = [one for one in requested if one.source.id == rig.broker.services.sweeper_agent]
        assert sorted(one.payload.record.wake for one in mine) == [False, True, True]

    run_scene(scene, tmp_path, limits=Limits(wakes_per_hour=2))


# -- delegations -------------------------------------------------------------------------------------


async def delegate(rig: Rig) -> tuple[LocalScout, LocalScout, str]:
    """Somebody is asked to look at something, in a plain message."""
    ann, bob = await rig.agent("ann"), await online_agent(rig, "bob")
    said = await ann.call(Send(body="@bob please look at the build"))
    return ann, bob, said.message_id


@as_test
@pytest.mark.rows("R3.4-4", "R3.4-5", "R3.4-10")
async def test_a_mention_without_an_answer_goes_to_its_target_then_to_the_sender(rig: Rig) -> None:
    _, _, said = await delegate(rig)
    await advance_clock(rig, HALF_HOUR - 5)
    assert await nudges(rig) == []
    await advance_clock(rig, 6)
    assert "mention without an answer: @bob please look" in (await inbox_bodies(rig, "bob"))[-1]
    assert f"try: scout reply --to {said} '…'" in (await inbox_bodies(rig, "bob"))[-1]
    await advance_clock(rig, HALF_HOUR + 1)
    await advance_clock(rig, HALF_HOUR + 1)
    bob, ann = await ident(rig, "bob"), await ident(rig, "ann")
    assert await holders(rig, said) == [(bob, 1), (ann, 2), (rig.broker.services.operator_agent, 3)]
    (item,) = (await rig.operator(ListAttention())).items
    assert item.title == "mention without an answer: @bob please look at the build"
    await rig.operator(AnswerAttention(attention_id=item.id, answer="ask carol instead"))
    assert (await inbox_bodies(rig, "ann"))[-1].startswith("ask carol instead")
    await advance_clock(rig, DAY)
    assert len(await nudges(rig)) == 3


@as_test
async def test_whoever_answers_asks_or_begins_work_is_not_reminded(rig: Rig) -> None:
    ann, bob, said = await delegate(rig)
    await bob.call(Reply(body="it is green", in_reply_to=said))
    await ann.call(Send(to="@bob", body="and this?", wake=True))
    await bob.call(MakeAsk(to="@ann", body="which one?", if_unreachable=IfUnreachable.QUEUE))
    await ann.call(Send(to="@bob", body="and that?", wake=True))
    await bob.call(CreateWork(title="that", owner_id="@ann"))
    await advance_clock(rig, HALF_HOUR + 1)
    assert await nudges(rig) == []


@as_test
async def test_what_is_said_elsewhere_is_no_answer(rig: Rig) -> None:
    _, bob, said = await delegate(rig)
    await rig.agent("carol")
    await bob.call(Send(to="@carol", body="nice weather"))
    await advance_clock(rig, HALF_HOUR + 1)
    assert len(await nudges(rig, said)) == 1


ANSWERS: dict[str, Callable[[LocalScout, Message], Awaitable[object]]] = {
    "it was answered": lambda bob, said: bob.call(Reply(body="it is green", in_reply_to=said.id)),
    "its target asked another agent": lambda bob, _: bob.call(CreateQuestion(to="@carol", body="which one?")),
    "there is work on it": lambda bob, said: bob.call(
        CreateWork(title="look", conversation_id=said.conversation_id)
    ),
    "the message was redacted": lambda bob, said: bob.call(RedactMessage(message_id=said.id)),
}


@pytest.mark.parametrize("reason", ANSWERS)
def test_an_answer_after_the_first_reminder_ends_the_matter(tmp_path: Path, reason: str) -> None:
    async def scene(rig: Rig) -> None:
        ann, bob, said = await delegate(rig)
        await rig.agent("carol")
        await advance_clock(rig, HALF_HOUR + 1)
        message = await ann.call(GetMessage(message_id=said))
        await ANSWERS[reason](await rig.scout() if "redacted" in reason else bob, message)
        await advance_clock(rig, HALF_HOUR + 1)
        await advance_clock(rig, HALF_HOUR + 1)
        assert [one[1] for one in await holders(rig, said)] == [1]
        settled = [one for one in await read_log(rig, "collab.sweep") if isinstance(one, SweepSettled)]
        assert [(one.payload.about.id, one.payload.reason) for one in settled] == [(said, reason)]

    run_scene(scene, tmp_path)


@as_test
async def test_what_is_a_record_is_not_watched_twice(rig: Rig) -> None:
    ann, bob = await rig.agent("ann"), await online_agent(rig, "bob")
    asked = await ann.call(CreateQuestion(to="@bob", body="which port?"))
    item = await ann.call(CreateWork(title="open it", owner_id="@bob"))
    await ann.call(MakeAsk(to="@bob", body="do it"))
    await advance_clock(rig, HALF_HOUR + 1)
    await advance_clock(rig, 4 * HOUR)
    assert {one.payload.about.id for one in await nudges(rig)} == {asked.id, item.id}
    assert bob


@as_test
async def test_what_came_back_is_nobodys_to_answer(rig: Rig) -> None:
    _, _, said = await delegate(rig)
    await rig.operator(RetireAgent(address="@bob"))
    await advance_clock(rig, HALF_HOUR + 1)
    assert await nudges(rig, said) == []


@as_test
async def test_somebody_who_is_retired_is_passed_over(rig: Rig) -> None:
    _, _, said = await delegate(rig)
    ann, bob = await ident(rig, "ann"), await ident(rig, "bob")
    await rig.operator(RetireAgent(address="@ann"))
    for _ in range(3):
        await advance_clock(rig, HALF_HOUR + 1)
    assert await holders(rig, said) == [(bob, 1), (ann, 2), (rig.broker.services.operator_agent, 3)]
    sweeper = rig.broker.services.sweeper_agent
    told = [one.payload.record for one in await read_log(rig, "collab.delivery") if one.source.id == sweeper]
    assert {one.target for one in told} == {bob}
    wake = (await nudges(rig, said))[1].metadata.wake
    assert wake is not None
    assert wake.rule == "no agent can be reached"


# -- flights -----------------------------------------------------------------------------------------


async def waits(rig: Rig, flight_id: str, kind: WaitingKind, seconds: float) -> None:
    """As a harness reports it that has used up its quota."""

    def held(tx: Transaction) -> None:
        flight = tx.need(Flight, "flight", flight_id)
        waiting = wait_flight(flight, WaitingOn(kind=kind, until=tx.now.plus(seconds)), tx.now)
        tx.record(FlightWaiting, waiting, move="wait", reason=waiting.reason)

    await rig.broker.as_system(held)


@as_test
@pytest.mark.rows("R3.4-6")
async def test_a_silent_flight_is_checked_waits_and_goes_on_when_its_agent_is_heard_from(rig: Rig) -> None:
    bob = await online_agent(rig, "bob")
    endpoint = (await rig.operator(ShowAgent(address="@bob"))).endpoints[0]
    asked = await rig.operator(MakeAsk(to="@bob", body="x"))
    await bob.call(StartFlight(flight_id=asked.flight_id))

    async def seen() -> tuple[str, str]:
        view = await rig.operator(GetFlight(flight_id=asked.flight_id))
        assert view.next_check_at is not None
        assert view.next_check_at > rig.clock.now()
        return view.state, view.phase

    await advance_clock(rig, 61)
    assert await seen() == ("running", "working")
    await advance_clock(rig, 301)
    assert await seen() == ("running", "checking")
    await advance_clock(rig, 61)
    assert await seen() == ("waiting", "waiting")
    view = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert view.reason.startswith("no sign of life since ")
    assert view.next_move_owner_id == view.target  # the one who fell silent holds the next move
    await advance_clock(rig, 301)
    assert await seen() == ("waiting", "waiting")
    rig.clock.ahead += 605
    await bob.call(Heartbeat(endpoint_id=endpoint.id))
    await advance_clock(rig, 0)
    assert await seen() == ("running", "working")
    assert (await list_events(rig, asked.flight_id))[-2:] == ["flight.updated", "flight.resumed"]


@as_test
async def test_a_flight_that_was_only_slow_to_be_heard_from_goes_on_after_its_check(rig: Rig) -> None:
    bob = await online_agent(rig, "bob")
    endpoint = (await rig.operator(ShowAgent(address="@bob"))).endpoints[0]
    asked = await rig.operator(MakeAsk(to="@bob", body="x"))
    await bob.call(StartFlight(flight_id=asked.flight_id))
    await advance_clock(rig, 301)
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).phase == "checking"
    rig.clock.ahead += 61
    await bob.call(Heartbeat(endpoint_id=endpoint.id))
    await advance_clock(rig, 0)
    view = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert (view.state, view.phase) == ("running", "working")


@as_test
async def test_a_heartbeat_is_a_sign_of_life(rig: Rig) -> None:
    bob = await online_agent(rig, "bob")
    endpoint = (await rig.operator(ShowAgent(address="@bob"))).endpoints[0]
    asked = await rig.operator(MakeAsk(to="@bob", body="x"))
    await bob.call(StartFlight(flight_id=asked.flight_id))
    for _ in range(12):
        await advance_clock(rig, 60)
        await bob.call(Heartbeat(endpoint_id=endpoint.id))
        await housekeeping.flush(rig.broker)
        assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).phase == "working"
    assert await list_events(rig, asked.flight_id, "collab.flight") == [
        *("flight.queued", "flight.updated", "flight.started"),
        *["flight.updated"] * 3,
    ]


@as_test
@pytest.mark.rows("R3.4-6")
async def test_a_flight_that_is_never_heard_of_again_has_failed_with_a_reason(rig: Rig) -> None:
    bob = await rig.agent("bob")
    await bob.call(Send(to="@bob", body="to be there"))
    await online_agent(rig, "bob")
    asked = await rig.operator(MakeAsk(to="@bob", body="x"))
    await bob.call(StartFlight(flight_id=asked.flight_id))
    for _ in range(40):
        await advance_clock(rig, HOUR)
    view = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert (view.state, view.error and view.error.code) == ("failed", "session_failed")
    assert "no sign of life since" in view.reason
    assert f"try: scout flight retry {asked.flight_id}" in (await inbox_bodies(rig))[-1]
    assert len(await list_events(rig, asked.flight_id)) < 50


class Lost(Echo):
    """A harness whose first turn is lost by the broker; `find_due` is what can be seen of it afterwards."""

    def __init__(self, found: InspectResult) -> None:
        super().__init__()
        self._found = found
        self.begun = 0

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        self.begun += 1
        if self.begun == 1:
            yield Accepted()
            await asyncio.sleep(0.01)
            raise asyncio.CancelledError
        async for event in super().deliver(spec, prompt):
            yield event

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        return self._found


@pytest.mark.rows("R3.4-6")
@pytest.mark.parametrize(
    ("found", "state", "reason"),
    [
        (InspectResult.TAKEN, FlightState.COMPLETED, "completed"),
        (InspectResult.NOT_TAKEN, FlightState.FAILED, "nothing is working on it"),
        (InspectResult.UNKNOWN, FlightState.WAITING, "no sign of life since"),
    ],
)
def test_a_program_that_nobody_follows_is_looked_for(
    tmp_path: Path, found: InspectResult, state: FlightState, reason: str
) -> None:
    harness = Lost(found)

    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo")
        asked = await rig.operator(MakeAsk(to="@parrot", body="hello"))

        async def begun() -> bool:
            view = await rig.operator(GetFlight(flight_id=asked.flight_id))
            return view.state is FlightState.RUNNING and not rig.broker.dispatcher.lanes

        await wait_until(begun)
        for _ in range(3):
            await advance_clock(rig, 301)
            await wait_until(lambda: not rig.broker.dispatcher.lanes)
        view = await rig.operator(GetFlight(flight_id=asked.flight_id))
        assert view.state is state
        assert reason in view.reason
        endpoint = (await rig.operator(ShowAgent(address="@parrot"))).endpoints[0]
        assert (endpoint.state == "working") is (state is FlightState.WAITING)

    run_scene(scene, tmp_path, harnesses={"echo": harness})
    assert verify(tmp_path / "scout.db").clean


@as_test
async def test_a_program_that_works_for_hours_is_left_alone(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    asked = await rig.operator(MakeAsk(to="@parrot", body="!hang"))

    async def begun() -> bool:
        return (await rig.operator(GetFlight(flight_id=asked.flight_id))).state is FlightState.RUNNING

    await wait_until(begun)
    for _ in range(10):
        await advance_clock(rig, HOUR)
        view = await rig.operator(GetFlight(flight_id=asked.flight_id))
        assert (view.state, view.phase) == ("running", "working")
    assert await nudges(rig) == []


@as_test
@pytest.mark.rows("R2.2-64")
async def test_a_flight_that_waits_for_its_quota_goes_on_by_itself(rig: Rig) -> None:
    bob = await online_agent(rig, "bob")
    asked = await rig.operator(MakeAsk(to="@bob", body="x"))
    await bob.call(StartFlight(flight_id=asked.flight_id))
    await waits(rig, asked.flight_id, WaitingKind.QUOTA, 5 * HOUR)
    await advance_clock(rig, 5 * HOUR - 5)
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).state is FlightState.WAITING
    await advance_clock(rig, 6)
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).state is FlightState.RUNNING
    assert (await list_events(rig, asked.flight_id))[-1] == "flight.resumed"


def test_a_program_is_started_again_when_its_quota_is_there(tmp_path: Path) -> None:
    harness = Lost(InspectResult.NOT_TAKEN)

    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo")
        asked = await rig.operator(MakeAsk(to="@parrot", body="hello"))
        await wait_until(lambda: harness.begun == 1 and not rig.broker.dispatcher.lanes)
        await waits(rig, asked.flight_id, WaitingKind.QUOTA, HOUR)
        await advance_clock(rig, HOUR + 1)
        view = await poll_until_finished(rig, asked.flight_id)
        assert (view.state, view.output, harness.begun) == (FlightState.COMPLETED, "hello", 2)

    run_scene(scene, tmp_path, harnesses={"echo": harness})
    assert verify(tmp_path / "scout.db").clean


@as_test
async def test_a_flight_that_waits_for_somebody_reminds_that_one_then_who_asked(rig: Rig) -> None:
    ann, bob = await rig.agent("ann"), await online_agent(rig, "bob")
    await rig.agent("carol")
    asked = await ann.call(MakeAsk(to="@bob", body="x"))
    await bob.call(StartFlight(flight_id=asked.flight_id))
    await bob.call(BlockFlight(flight_id=asked.flight_id, on=WaitingKind.ACTOR, ref="@carol"))
    for _ in range(12):
        await advance_clock(rig, HOUR + 1)
    names = [await ident(rig, name) for name in ("carol", "ann")]
    assert await holders(rig, asked.flight_id) == [
        (names[0], 1),
        (names[1], 2),
        (rig.broker.services.operator_agent, 3),
    ]
    assert await needs(rig) == ["flight waiting on actor: x"]
    await bob.call(Reply(body="never mind", in_reply_to=asked.ask_id))
    assert await needs(rig) == []


# -- what ends at its time ---------------------------------------------------------------------------


@as_test
@pytest.mark.rows("R3.4-1", "R3.4-7", "R3.4-8")
async def test_what_ends_at_its_time_is_ended_by_the_sweeper(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.operator(Send(to="@arc", body="x"))
    leased = (await arc.call(ClaimInbox())).items[0].delivered.id
    asked = await arc.call(Consult(question="shall I?", default_action="yes", expires_in=100))
    token = await rig.operator(CreateToken(agent="@arc", expires_in=100))
    await rig.operator(AddUser(user="zoe"))
    await rig.operator(AddGrant(action=Action.ASK, agent="@arc", user="zoe", expires_in=100))
    await advance_clock(rig, 101)
    assert (await rig.operator(GetDelivery(delivery_id=leased))).state == "pending"
    assert (await rig.operator(GetAttention(attention_id=asked.id))).state == "expired"
    tokens = {one.id: one.state for one in (await rig.operator(ListTokens())).items}
    assert tokens[token.token.id] == "expired"
    assert [one.state for one in (await rig.operator(ListGrants())).items] == ["expired"]
    ended = ("expired", "failed")
    facts = [one for one in await read_log(rig) if str(one.__struct_config__.tag).endswith(ended)]
    assert len(facts) == 4
    assert {one.source.id for one in facts} == {rig.broker.services.sweeper_agent}


@as_test
async def test_what_nobody_took_in_time_comes_back(rig: Rig) -> None:
    ann = await rig.agent("ann")
    await rig.agent("bob")
    said = await ann.call(Send(to="@bob", body="good for a minute"))
    sent = said.deliveries[0].delivery_id

    def dated(tx: Transaction) -> None:
        delivery = tx.need(Delivery, "delivery", sent)
        changed = replace(delivery, revision=2, expires_at=tx.now.plus(60))
        tx.record(DeliveryNacked, changed, move="postpone")

    await rig.broker.as_system(dated)
    await advance_clock(rig, 59)
    assert (await rig.operator(GetDelivery(delivery_id=sent))).state == "pending"
    await advance_clock(rig, 2)
    assert (await rig.operator(GetDelivery(delivery_id=sent))).state == "dead_lettered"
    assert "it expired" in (await inbox_bodies(rig, "ann"))[-1]


@as_test
@pytest.mark.rows("R3.4-8", "R1.1-52")
async def test_the_name_of_a_session_ends_with_it(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    await rig.operator(MakeAsk(to="@parrot", body="x", wait=20))
    session = (await rig.operator(ListSessions(agent="@parrot"))).items[0]

    def named(tx: Transaction) -> None:
        alias = Alias(
            id=tx.mint("als"),
            created_at=tx.now,
            updated_at=tx.now,
            owner=tx.services.operator,
            name="second",
            target=AliasTarget(session_id=session.id),
            until_session_ends=True,
            created_by=tx.sender,
        )
        tx.record(AliasCreated, alias, move="create")

    await rig.broker.as_system(named)
    await advance_clock(rig, 200)
    assert [one.name for one in (await rig.operator(ListAliases())).items] == ["second"]

    def ended(tx: Transaction) -> None:
        over = end_session(tx.need(Session, "session", session.id), "over", tx.now)
        tx.record(SessionEnded, over, move="end")

    await rig.broker.as_system(ended)
    await advance_clock(rig, 1)
    assert (await rig.operator(ListAliases())).items == ()


# -- the durable clock -------------------------------------------------------------------------------


def test_a_restart_in_between_reminds_nobody_twice_and_forgets_nobody(tmp_path: Path) -> None:
    clock = MovedClock()
    about: list[str] = []

    async def begun(rig: Rig) -> None:
        ann, _, said = await delegate(rig)
        asked = await ann.call(CreateQuestion(to="@bob", body="well?"))
        about.extend((said, asked.id))
        await advance_clock(rig, HALF_HOUR + 1)
        assert [len(await nudges(rig, one)) for one in about] == [1, 1]
        await ann.call(CreateQuestion(to="@bob", body="and this?"))

    async def again(rig: Rig) -> None:
        for _ in range(3):
            await housekeeping.tidy(rig.broker)
        assert len(await nudges(rig)) == 2
        await advance_clock(rig, HALF_HOUR + 1)
        assert len(await nudges(rig)) == 5
        counts = [[one.payload.count for one in await nudges(rig, each)] for each in about]
        assert counts == [[1, 2], [1, 2]]

    run_scene(begun, tmp_path, clock=clock)
    run_scene(again, tmp_path, clock=clock)


@as_test
@pytest.mark.rows("R0-14")
async def test_the_running_keeper_notices_a_sleep_and_gives_one_grace_period(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.operator(Send(to="@arc", body="x"))
    leased = (await arc.call(ClaimInbox())).items[0].delivered.id
    rounds = 0

    def counted() -> None:
        nonlocal rounds
        rounds += 1

    async def state_after_two_rounds() -> str:
        enough = rounds + 2
        await wait_until(lambda: rounds >= enough)
        return (await rig.operator(GetDelivery(delivery_id=leased))).state

    keeper = asyncio.get_running_loop().create_task(housekeeping.keep(rig.broker, counted, every=0.002))
    try:
        assert await state_after_two_rounds() == "leased"
        rig.clock.ahead += 8 * HOUR  # the machine sleeps: its running clock stands still
        assert await state_after_two_rounds() == "leased"
        rig.clock.ahead += 50  # awake
        assert await state_after_two_rounds() == "leased"
        rig.clock.ahead += 50
        assert await state_after_two_rounds() == "pending"
    finally:
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)


# -- ten thousand open items -------------------------------------------------------------------------


def seed_work(tx: Transaction, count: int) -> None:
    """Open work that is not due."""
    agent = tx.services.operator_agent
    for number in range(count):
        item = create_work(tx.mint("wrk"), f"item {number}", tx.now, requester_id=agent, owner_id=agent)
        tx.record(WorkItemCreated, item, move="create")


def test_the_cost_of_a_round_follows_what_is_due_and_not_what_there_is(tmp_path: Path) -> None:
    def steps(home: Path, count: int) -> int:
        """The steps of SQLite's machine that it takes to find ten due items among so many."""

        async def scene(rig: Rig) -> int:
            await rig.broker.as_system(lambda tx: seed_work(tx, 10))
            rig.clock.ahead += 4 * HOUR - 60
            for _ in range(count // 30):
                await rig.broker.as_system(lambda tx: seed_work(tx, 30))
            services, taken = rig.broker.services, 0
            rig.clock.ahead += 61
            this = Round(
                now=rig.clock.now(), operator_id=services.operator_agent, periods=services.rules.periods
            )
            ledger = rig.broker.glance()

            def step() -> int:
                nonlocal taken
                taken += 1
                return 0

            ledger.connection.set_progress_handler(step, 1)
            assert len(find_due(ledger, this).ids) == 10
            ledger.connection.set_progress_handler(None, 0)
            return taken

        return run_scene(scene, home)

    few, many = tmp_path / "few", tmp_path / "many"
    few.mkdir()
    many.mkdir()
    assert steps(many, 3000) <= 1.05 * steps(few, 30)


@as_test
async def test_a_mention_of_somebody_who_could_not_be_reached_is_reminded_of_too(rig: Rig) -> None:
    ann = await rig.agent("ann")
    await rig.register("away")
    said = await ann.call(Send(body="@away please look at the build"))
    await advance_clock(rig, HALF_HOUR + 1)
    (first,) = await nudges(rig, said.message_id)
    assert first.payload.rule == "delegation without an answer"
    await advance_clock(rig, HALF_HOUR + 1)
    assert "try: scout ask @away" in (await inbox_bodies(rig, "ann"))[-1]


@as_test
async def test_a_clock_that_was_a_day_ahead_and_is_put_right_leaves_nothing_unlooked_at(rig: Rig) -> None:
    rig.clock.ahead += 86_400
    ann = await online_agent(rig, "ann")
    asked = await rig.operator(MakeAsk(to="@ann", body="x"))
    await ann.call(StartFlight(flight_id=asked.flight_id))
    await housekeeping.tidy(rig.broker)
    rig.clock.ahead -= 86_400
    now = rig.broker.services.clock.now()
    before = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert before.next_check_at is not None
    assert before.next_check_at > now.plus(80_000)
    await upkeep_sweeper.reschedule_after_clock_step(rig.broker)
    after = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert after.next_check_at is not None
    assert after.next_check_at < now.plus(120)
