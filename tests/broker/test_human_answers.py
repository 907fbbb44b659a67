"""Programs that go on between turns: what they ask of people, are told meanwhile, and are held up by."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from scout.adapters.echo import Echo
from scout.model.access.token import Token, TokenState
from scout.model.attention import AttentionKind, AttentionState
from scout.model.delivery import DeliveryState
from scout.model.events.envelope import get_record
from scout.model.flight import Flight, FlightState
from scout.model.session import Session
from scout.model.usage import Usage, UsageSource
from scout.model.waiting import WaitingKind
from scout.protocol.access import CreateToken
from scout.protocol.agents import ConfigureAgent
from scout.protocol.asks import CancelFlight, GetFlight, MakeAsk, RetryFlight
from scout.protocol.attention import (
    AnswerAttention,
    ApproveAttention,
    AttentionView,
    DenyAttention,
    ListAttention,
)
from scout.protocol.inbox import GetDelivery
from scout.protocol.questions import AnswerQuestion, CreateQuestion
from scout.protocol.talk import Send
from tests.broker.puppet import Puppet
from tests.broker.rig import (
    Rig,
    advance_clock,
    list_events,
    open_rig,
    poll_until_finished,
    read_log,
    wait_for_end,
    wait_until,
)

Scene = Callable[[Rig, Puppet], Coroutine[Any, Any, None]]


def play_with_puppet(scene: Scene) -> Callable[[Path], None]:
    """A broker with an agent `bea`, who is run by a puppet."""

    @wraps(scene)
    def test(tmp_path: Path) -> None:
        async def play() -> None:
            puppet = Puppet()
            async with open_rig(tmp_path, harnesses={"echo": Echo(), "acp": puppet}) as rig:
                await rig.register("bea", harness="acp")
                await scene(rig, puppet)

        asyncio.run(play())

    del test.__dict__["__wrapped__"]  # pytest would look for the arguments of the scene
    return test


async def make_ask(rig: Rig, body: str) -> str:
    return (await rig.operator(MakeAsk(to="@bea", body=body))).flight_id


async def inbox(rig: Rig) -> list[AttentionView]:
    return list((await rig.operator(ListAttention())).items)


async def waiting(rig: Rig, flight_id: str) -> AttentionView:
    """The one item that a flight waits for."""

    async def waits() -> bool:
        return (await rig.operator(GetFlight(flight_id=flight_id))).state is FlightState.WAITING

    await wait_until(waits)
    (item,) = await inbox(rig)
    return item


@pytest.mark.rows("R2.2-79")
@play_with_puppet
async def test_a_permission_is_asked_of_the_person_and_the_yes_reaches_the_program(
    rig: Rig, puppet: Puppet
) -> None:
    flight = await make_ask(rig, "permit Remove the folder?")
    item = await waiting(rig, flight)
    assert (item.kind, item.title, item.body) == (
        AttentionKind.PERMISSION,
        "rm -r x",
        "Remove the folder?",
    )
    view = await rig.operator(GetFlight(flight_id=flight))
    assert view.waiting_on is not None
    assert view.waiting_on.ref == item.id
    assert view.next_move_owner_id == rig.broker.services.operator_agent
    await rig.operator(ApproveAttention(attention_id=item.id))
    assert (await wait_for_end(rig, flight)).output == "yes"
    steps = await list_events(rig, flight, "collab.flight")
    assert [one for one in steps if one != "flight.updated"] == [
        "flight.queued",
        "flight.started",
        "flight.waiting",
        "flight.resumed",
        "flight.completed",
    ]


@play_with_puppet
async def test_a_no_a_silence_and_a_dismissal_are_a_no(rig: Rig, puppet: Puppet) -> None:
    flight = await make_ask(rig, "permit One?\npermit Two?")
    item = await waiting(rig, flight)
    await rig.operator(DenyAttention(attention_id=item.id, reason="never"))
    second = await wait_until(lambda: _other(rig, item.id))
    assert second.body == "Two?"
    await advance_clock(rig, rig.broker.services.rules.periods.human_answer + 1)
    assert (await wait_for_end(rig, flight)).output == "no never\nno"
    states = {one.body: one.state for one in (await rig.operator(ListAttention(all=True))).items}
    assert states == {"One?": AttentionState.DENIED, "Two?": AttentionState.EXPIRED}


async def _other(rig: Rig, ident: str) -> AttentionView | None:
    return next((one for one in await inbox(rig) if one.id != ident), None)


@play_with_puppet
async def test_a_question_has_its_options_and_takes_one(rig: Rig, puppet: Puppet) -> None:
    flight = await make_ask(rig, "question Which colour? | red | blue")
    item = await waiting(rig, flight)
    assert item.kind is AttentionKind.QUESTION
    assert [one.value for one in item.actions if one.value] == ["red", "blue"]
    await rig.operator(AnswerAttention(attention_id=item.id, answer="blue"))
    assert (await wait_for_end(rig, flight)).output == "yes blue"


@play_with_puppet
async def test_what_was_answered_elsewhere_needs_nobody_any_more(rig: Rig, puppet: Puppet) -> None:
    flight = await make_ask(rig, "settle Shall I?")
    assert (await poll_until_finished(rig, flight)).output == "done"
    assert await inbox(rig) == []


@play_with_puppet
async def test_a_cancelled_ask_takes_its_question_out_of_the_inbox(rig: Rig, puppet: Puppet) -> None:
    flight = await make_ask(rig, "permit Go on?")
    await waiting(rig, flight)
    await rig.operator(CancelFlight(flight_id=flight))
    assert await inbox(rig) == []


def test_a_request_of_before_a_restart_is_the_same_item_and_its_answer_arrives(tmp_path: Path) -> None:
    async def play() -> None:
        puppet = Puppet()
        harnesses = {"echo": Echo(), "acp": puppet}
        async with open_rig(tmp_path, harnesses=harnesses) as rig:
            await rig.register("bea", harness="acp")
            flight = await make_ask(rig, "permit Go on?")
            item = await waiting(rig, flight)
        async with open_rig(tmp_path, harnesses=harnesses) as rig:
            again = await waiting(rig, flight)
            assert again.id == item.id
            await rig.operator(ApproveAttention(attention_id=item.id))
            assert (await wait_for_end(rig, flight)).output == "yes"
            assert len((await rig.operator(ListAttention(all=True))).items) == 1

    asyncio.run(play())


def test_an_answer_that_did_not_arrive_before_a_crash_arrives_after_it(tmp_path: Path) -> None:
    async def play() -> None:
        puppet = Puppet()
        deaf = Puppet()
        async with open_rig(tmp_path, harnesses={"echo": Echo(), "acp": deaf}) as rig:
            await rig.register("bea", harness="acp")
            flight = await make_ask(rig, "permit Go on?")
            item = await waiting(rig, flight)
            deaf.deaf = True
            await rig.operator(ApproveAttention(attention_id=item.id))
        puppet.prompts = deaf.prompts
        async with open_rig(tmp_path, harnesses={"echo": Echo(), "acp": puppet}) as rig:
            assert (await wait_for_end(rig, flight)).output == "yes"

    asyncio.run(play())


# -- what it is told meanwhile -------------------------------------------------------------------------


@pytest.mark.rows("R2.2-62")
@play_with_puppet
async def test_a_message_goes_into_the_turn_that_runs_and_an_ask_gets_its_own(
    rig: Rig, puppet: Puppet
) -> None:
    first = await make_ask(rig, "wait")
    await wait_until(lambda: puppet.prompts)
    second = await make_ask(rig, "tool read")
    sent = await rig.operator(Send(to="@bea", body="look at the left one"))
    assert "look at the left one" in ((await wait_for_end(rig, first)).output or "")
    assert (await wait_for_end(rig, second)).output == "done"
    (delivery,) = sent.deliveries
    seen = await rig.operator(GetDelivery(delivery_id=delivery.delivery_id))
    assert seen.state is DeliveryState.ACKED
    assert [one.body for one in puppet.prompts.values()] == ["wait", "tool read"]


@play_with_puppet
async def test_what_cannot_be_said_into_a_turn_comes_after_it(rig: Rig, puppet: Puppet) -> None:
    first = await make_ask(rig, "wait")
    await wait_until(lambda: puppet.prompts)
    puppet.deaf = True
    sent = await rig.operator(Send(to="@bea", body="tool later", wake=True))
    (delivery,) = sent.deliveries

    async def returned() -> bool:
        return (await rig.operator(GetDelivery(delivery_id=delivery.delivery_id))).attempts == 1

    await wait_until(returned)
    session = (await rig.operator(GetFlight(flight_id=first))).session_id or ""
    puppet.deaf = False
    await puppet.steer(session, "go on")
    await wait_for_end(rig, first)
    await wait_until(lambda: [one.body for one in puppet.prompts.values()] == ["wait", "tool later"])


@pytest.mark.rows("R2.2-62")
@play_with_puppet
async def test_messages_that_waited_are_told_in_one_turn(rig: Rig, puppet: Puppet) -> None:
    first = await make_ask(rig, "wait")
    await wait_until(lambda: puppet.prompts)
    puppet.deaf = True
    sent = [await rig.operator(Send(to="@bea", body=f"tool {n}", wake=True)) for n in range(3)]
    second = await make_ask(rig, "tool ask")
    idents = [one.deliveries[0].delivery_id for one in sent]

    async def returned() -> bool:
        seen = [await rig.operator(GetDelivery(delivery_id=ident)) for ident in idents]
        return all(one.state is DeliveryState.PENDING and one.attempts == 1 for one in seen)

    await wait_until(returned)
    session = (await rig.operator(GetFlight(flight_id=first))).session_id or ""
    puppet.deaf = False
    await puppet.steer(session, "go on")
    await wait_for_end(rig, second)
    told = [one.body for one in puppet.prompts.values()]
    assert sorted(told) == ["tool 0\n\ntool 1\n\ntool 2", "tool ask", "wait"]
    seen = [await rig.operator(GetDelivery(delivery_id=ident)) for ident in idents]
    assert {one.state for one in seen} == {DeliveryState.ACKED}
    assert [one.carried_with for one in seen] == [None, idents[0], idents[0]]


@play_with_puppet
async def test_interrupting_ends_the_turn(rig: Rig, puppet: Puppet) -> None:
    flight = await make_ask(rig, "wait")
    await wait_until(lambda: puppet.prompts)
    await rig.operator(CancelFlight(flight_id=flight))
    await wait_until(lambda: not rig.broker.dispatcher.runner.running)
    assert (await wait_for_end(rig, flight)).state is FlightState.CANCELLED


# -- limits and logins ---------------------------------------------------------------------------------


@play_with_puppet
async def test_a_usage_limit_is_waited_for_and_the_flight_goes_on_by_itself(rig: Rig, puppet: Puppet) -> None:
    until_then = rig.clock.now().plus(3600)
    flight = await make_ask(rig, f"limit {until_then}")

    async def limited() -> bool:
        return (await rig.operator(GetFlight(flight_id=flight))).state is FlightState.WAITING

    await wait_until(limited)
    view = await rig.operator(GetFlight(flight_id=flight))
    assert view.waiting_on is not None
    assert (view.waiting_on.kind, str(view.waiting_on.until)[:19]) == (
        WaitingKind.QUOTA,
        str(until_then)[:19],
    )
    assert "5-hour limit" in view.reason
    assert await inbox(rig) == []
    await advance_clock(rig, 1800)
    assert len(puppet.prompts) == 1
    await advance_clock(rig, 1900)
    await wait_until(lambda: len(puppet.prompts) == 2)


@play_with_puppet
async def test_a_missing_login_is_one_item_and_goes_away_once_a_turn_works(rig: Rig, puppet: Puppet) -> None:
    puppet.logged_in = False
    flights = [await make_ask(rig, "login") for _ in range(3)]
    for flight in flights:
        view = await wait_for_end(rig, flight)
        assert view.state is FlightState.FAILED
        assert view.error is not None
        assert "not logged in: run /login" in view.error.message
        assert [one.operation for one in view.error.remedies] == ["runtimes.check"]
    (item,) = await inbox(rig)
    assert (item.kind, item.title) == (AttentionKind.SETUP, "acp: its login is missing")
    puppet.logged_in = True
    again = await rig.operator(RetryFlight(flight_id=flights[0]))
    assert (await wait_for_end(rig, again.flight_id)).output == "done"
    assert await inbox(rig) == []


@play_with_puppet
async def test_a_program_that_is_kept_warm_is_started_again(rig: Rig, puppet: Puppet) -> None:
    await rig.operator(ConfigureAgent(address="@bea", config={"wakePolicy": "keep_warm"}))
    await advance_clock(rig, 1)
    await wait_until(lambda: len(puppet.specs) == 1)
    (first,) = puppet.specs
    assert first.idle is None
    await advance_clock(rig, 1000)
    assert len(puppet.specs) == 1
    puppet.warm.clear()  # it was killed
    await advance_clock(rig, 1)
    await wait_until(lambda: len(puppet.specs) == 2)
    again = puppet.specs[-1]
    assert (again.session_id, dict(again.native_ids)) == (
        first.session_id,
        {"thread": f"native-{first.session_id}"},
    )
    assert again.door is not None


# -- who it is -----------------------------------------------------------------------------------------


@play_with_puppet
async def test_a_program_gets_one_credential_for_its_session_when_it_is_started(
    rig: Rig, puppet: Puppet
) -> None:
    await wait_for_end(rig, await make_ask(rig, "tool one"))
    await wait_for_end(rig, await make_ask(rig, "tool two"))
    started, first, second = puppet.specs
    assert started.door is not None
    assert first.door == started.door
    assert second.door is None
    assert started.door.url.endswith("/agents/tl/%2Fada%2Fagent%2Fbea/mcp") or "bea/mcp" in started.door.url
    assert started.environment["SCOUT_TOKEN"] == started.door.token
    assert second.native_ids == {"thread": f"native-{second.session_id}"}
    puppet.warm.clear()  # its program ended meanwhile
    await wait_for_end(rig, await make_ask(rig, "tool three"))
    third = puppet.specs[-1]
    assert third.door is not None
    assert third.door.token != started.door.token
    tokens = [get_record(one) for one in await read_log(rig, "collab.token")]
    latest = {one.id: one for one in tokens if isinstance(one, Token) and one.session_id}
    assert sorted(one.state for one in latest.values()) == [TokenState.ACTIVE, TokenState.REVOKED]


@play_with_puppet
async def test_what_a_program_says_of_itself_is_stored(rig: Rig, puppet: Puppet) -> None:
    flight = await wait_for_end(rig, await make_ask(rig, "tool Bash"))
    session = rig.broker.glance().get(Session, flight.session_id)
    assert session is not None
    assert session.model_observed == "puppet-1"
    assert session.native_ids == {"thread": f"native-{session.id}"}
    usage = [get_record(one) for one in await read_log(rig, "collab.usage")]
    reported = [one for one in usage if isinstance(one, Usage)]
    exact = [one for one in reported if one.usage_source is UsageSource.PROVIDER_EXACT]
    assert [(one.prompt_tokens, one.completion_tokens) for one in exact] == [(7, 5)]
    flights = [get_record(one) for one in await read_log(rig, "collab.flight.updated")]
    assert "Bash: quickly" in [one.reason for one in flights if isinstance(one, Flight)]


@pytest.mark.parametrize("late", [False, True], ids=["not steered", "steered too late"])
def test_an_answer_that_comes_during_the_asking_turn_is_not_lost(tmp_path: Path, late: bool) -> None:
    """The turn that asked ends after the answer was given. Its text is not the result of the flight."""

    async def scene(rig: Rig, puppet: Puppet) -> None:
        flight = await make_ask(rig, "wait")
        await wait_until(lambda: puppet.prompts)
        rig.tokens["bea"] = (await rig.operator(CreateToken(agent="@bea"))).secret
        bea = await rig.agent("bea")
        asked = await bea.call(CreateQuestion(to=flight, body="Which colour?", flight_id=flight))
        puppet.deaf, puppet.late = not late, late
        await rig.operator(AnswerQuestion(question_id=asked.id, answer="tool brush"))
        if not late:
            await puppet.end_turn(puppet.specs[-1].session_id, "I wait.")
        assert (await wait_for_end(rig, flight)).output == "done"
        assert "tool brush" in [one.body for one in puppet.prompts.values()]

    play_with_puppet(scene)(tmp_path)
