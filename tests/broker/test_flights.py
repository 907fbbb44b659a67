"""Flights: who moves them, in which order, and what the first result does to the later ones."""

from itertools import pairwise
from typing import Any

import pytest

from scout.model.flight import FlightState
from scout.model.waiting import WaitingKind
from scout.protocol.agents import RetireAgent
from scout.protocol.asks import (
    BlockFlight,
    CancelFlight,
    CompleteFlight,
    FailFlight,
    GetFlight,
    ListFlights,
    MakeAsk,
    ResumeFlight,
    StartFlight,
)
from scout.protocol.inbox import AckInbox, ClaimInbox, ListDeliveries
from scout.protocol.log import ReadLog
from scout.protocol.talk import ListMessages, Reply, Send
from tests.broker.rig import (
    Rig,
    as_test,
    expect_refusal,
    inbox_bodies,
    inbox_items,
    list_events,
    online_agent,
    processes_with,
    read_log,
    wait_for_end,
    wait_until,
    write_program,
)


@as_test
async def test_a_flight_moves_by_its_table(rig: Rig) -> None:
    seat = await online_agent(rig)
    asked = await rig.operator(MakeAsk(to="@live", body="x"))
    told = await expect_refusal(seat.call(ResumeFlight(flight_id=asked.flight_id)))
    assert (told.code, told.state, set(told.accepts)) == (
        "wrong_state",
        "queued",
        {"start", "fail", "cancel"},
    )
    told = await expect_refusal(seat.call(StartFlight(flight_id=asked.flight_id, revision=99)))
    assert (told.code, told.seen, told.current) == ("wrong_revision", 99, 1)
    started = await seat.call(StartFlight(flight_id=asked.flight_id, revision=1))
    assert (started.state, started.attempts) == (FlightState.RUNNING, 1)
    told = await expect_refusal(seat.call(StartFlight(flight_id=asked.flight_id)))
    assert told.code == "wrong_state"
    blocked = await seat.call(
        BlockFlight(flight_id=asked.flight_id, on=WaitingKind.ACTOR, ref="operator", reason="a word?")
    )
    assert (blocked.state, blocked.reason) == (FlightState.WAITING, "a word?")
    assert blocked.next_move_owner_id == rig.broker.services.operator_agent
    assert (
        await expect_refusal(seat.call(BlockFlight(flight_id=asked.flight_id, on=WaitingKind.ACTOR)))
    ).code == ("bad_request")
    resumed = await seat.call(ResumeFlight(flight_id=asked.flight_id))
    assert resumed.state is FlightState.RUNNING
    told = await expect_refusal(
        seat.call(CompleteFlight(flight_id=asked.flight_id, output="y", revision=resumed.revision + 1))
    )
    assert told.code == "wrong_revision"
    done = await seat.call(CompleteFlight(flight_id=asked.flight_id, output="y", revision=resumed.revision))
    assert (done.state, done.output, done.completed_by) == (FlightState.COMPLETED, "y", "complete")
    for request in (
        CompleteFlight(flight_id=asked.flight_id, output="z"),
        FailFlight(flight_id=asked.flight_id, reason="z"),
        CancelFlight(flight_id=asked.flight_id),
    ):
        told = await expect_refusal(seat.call(request))
        assert (told.code, told.terminal) == ("wrong_state", True)


@pytest.mark.rows("R2.2-58")
@as_test
async def test_only_the_targets_token_finishes_a_flight(rig: Rig) -> None:
    await online_agent(rig)
    other = await online_agent(rig, "other")
    asked = await rig.operator(MakeAsk(to="@live", body="x"))
    operator = await rig.scout()
    for seat in (other, operator):
        for request in (
            CompleteFlight(flight_id=asked.flight_id, output="mine"),
            StartFlight(flight_id=asked.flight_id),
            FailFlight(flight_id=asked.flight_id, reason="no"),
        ):
            told = await expect_refusal(seat.call(request))
            assert (told.code, told.owner_id) == ("not_owner", asked.target)
    assert (await expect_refusal(other.call(CancelFlight(flight_id=asked.flight_id)))).code == "forbidden"
    assert (await expect_refusal(other.call(GetFlight(flight_id=asked.flight_id)))).code == "forbidden"
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).state is FlightState.QUEUED


@pytest.mark.rows("R2.2-61", "R3.1-28")
@as_test
async def test_text_after_the_end_is_a_note_that_wakes_nobody(rig: Rig) -> None:
    asker = await rig.agent("asker", harness="echo")
    seat = await online_agent(rig)
    asked = await asker.call(MakeAsk(to="@live", body="x"))
    said = await seat.call(Reply(body="the answer", in_reply_to=asked.flight_id))
    assert said.conversation_id == asked.conversation_id
    deliveries = len((await rig.operator(ListDeliveries(target="@asker"))).items)
    late = await seat.call(Reply(body="one more thing", in_reply_to=asked.ask_id))
    assert late.deliveries == ()
    assert "note" in late.notes[0]
    view = await wait_for_end(rig, asked.flight_id)
    assert (view.output, view.completed_by) == ("the answer", "reply")
    listed = await asker.call(ListMessages(conversation=asked.conversation_id))
    assert [(one.kind, one.body) for one in listed.items][1:] == [
        ("final", "the answer"),
        ("status", "one more thing"),
    ]
    assert len((await rig.operator(ListDeliveries(target="@asker"))).items) == deliveries
    wakes = [one for one in await read_log(rig, "collab.delivery.requested") if one.payload.record.wake]
    assert not wakes


@as_test
async def test_an_empty_answer_is_a_failure(rig: Rig) -> None:
    seat = await online_agent(rig)
    await rig.register("parrot", harness="echo")
    asked = await rig.operator(MakeAsk(to="@live", body="x"))
    done = await seat.call(CompleteFlight(flight_id=asked.flight_id, output="  \n"))
    assert (done.state, done.error and done.error.code) == (FlightState.FAILED, "empty_reply")
    silent = await wait_for_end(rig, (await rig.operator(MakeAsk(to="@parrot", body="!say"))).flight_id)
    assert (silent.state, silent.error and silent.error.code) == (FlightState.FAILED, "empty_reply")
    assert silent.remedies[0].operation == "flight.retry"


@pytest.mark.rows("R3.5-29")
@as_test
async def test_who_does_not_wait_is_told_of_a_failure(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    asked = await rig.operator(MakeAsk(to="@parrot", body="!fail no paper", wait=20))
    view = await wait_for_end(rig, asked.flight_id)
    assert (view.state, view.error and view.error.code) == (FlightState.FAILED, "session_failed")
    assert "no paper" in view.reason
    assert [text for text in await inbox_bodies(rig) if "no paper" in text] == []
    asker = await rig.agent("asker")
    asked = await asker.call(MakeAsk(to="@parrot", body="!fail no ink"))
    await wait_for_end(rig, asked.flight_id)  # the operator looks, which is no reason not to tell the asker
    told = await inbox_items(rig, "asker")
    assert told[0].message is not None
    assert "no ink" in told[0].message.body
    assert f"try: scout flight retry {asked.flight_id}" in told[0].message.body
    assert (told[0].message.kind, told[0].message.in_reply_to) == ("status", asked.message_id)
    waited = await asker.call(MakeAsk(to="@parrot", body="!fail no glue", wait=20))
    assert waited.state == "failed"
    assert not [text for text in await inbox_bodies(rig, "asker") if "no glue" in text]


@as_test
async def test_who_cancels_anothers_ask_tells_the_asker(rig: Rig) -> None:
    seat = await online_agent(rig)
    asker = await rig.agent("asker")
    asked = await asker.call(MakeAsk(to="@live", body="x"))
    await rig.operator(CancelFlight(flight_id=asked.flight_id, reason="the plan has changed"))
    assert "the plan has changed" in (await inbox_bodies(rig, "asker"))[0]
    mine = await asker.call(MakeAsk(to="@live", body="y"))
    done = await asker.call(CancelFlight(flight_id=mine.flight_id))
    assert (done.state, done.reason) == (FlightState.CANCELLED, "cancelled by @asker")
    assert len(await inbox_bodies(rig, "asker")) == 1
    assert not (await seat.call(ClaimInbox())).items


@as_test
async def test_a_cancelled_flight_stops_its_program(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    asked = await rig.operator(MakeAsk(to="@parrot", body="!hang"))
    await wait_until(lambda: running(rig, asked.flight_id))
    view = await rig.operator(CancelFlight(flight_id=asked.flight_id))
    assert view.state is FlightState.CANCELLED
    after = await rig.operator(MakeAsk(to="@parrot", body="next", wait=20))
    assert after.output == "next"


async def running(rig: Rig, flight_id: str) -> bool:
    return (await rig.operator(GetFlight(flight_id=flight_id))).state is FlightState.RUNNING


@as_test
async def test_a_cancelled_command_leaves_no_process(rig: Rig) -> None:
    word = f"31{rig.home.name[-6:]}".encode().hex()
    command = write_program(rig.home, f"sleeper{word}", "cat >/dev/null; (sleep 60) & sleep 60")
    await rig.register("sleeper", command=command)
    asked = await rig.operator(MakeAsk(to="@sleeper", body="x"))
    await wait_until(lambda: running(rig, asked.flight_id))
    assert processes_with(word)
    await rig.operator(CancelFlight(flight_id=asked.flight_id))
    await wait_until(lambda: not processes_with(word))
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).state is FlightState.CANCELLED


@as_test
async def test_who_cancels_before_the_start_stops_it_too(rig: Rig) -> None:
    command = write_program(rig.home, "marks", 'cat >/dev/null; echo ran >>"$WORK/ran"; sleep 60')
    await rig.register("marks", command=command)
    asked = await rig.operator(MakeAsk(to="@marks", body="x"))
    await rig.operator(CancelFlight(flight_id=asked.flight_id))
    await wait_until(lambda: not rig.broker.dispatcher.runner.running)
    view = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert view.state is FlightState.CANCELLED


@as_test
async def test_who_replies_from_a_run_is_not_interrupted(rig: Rig) -> None:
    seat = await online_agent(rig, "other")
    await rig.register("parrot", harness="echo")
    asked = await rig.operator(MakeAsk(to="@parrot", body="!hang"))
    await wait_until(lambda: running(rig, asked.flight_id))
    parrot = await rig.agent("parrot")
    await parrot.call(Reply(body="early", in_reply_to=asked.flight_id))
    assert (await wait_for_end(rig, asked.flight_id)).output == "early"
    assert rig.broker.dispatcher.runner.running
    assert seat is not None


@as_test
async def test_retiring_an_agent_ends_what_it_does(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    asked = await rig.operator(MakeAsk(to="@parrot", body="!hang"))
    await wait_until(lambda: running(rig, asked.flight_id))
    await rig.operator(RetireAgent(address="@parrot"))
    view = await wait_for_end(rig, asked.flight_id)
    assert (view.state, view.error and view.error.code) == (FlightState.FAILED, "retired_target")
    await wait_until(lambda: not rig.broker.dispatcher.runner.running)


@as_test
async def test_lists_show_whose_flights_are_open(rig: Rig) -> None:
    seat = await online_agent(rig)
    asker = await rig.agent("asker")
    one = await asker.call(MakeAsk(to="@live", body="1"))
    two = await rig.operator(MakeAsk(to="@live", body="2"))
    await seat.call(CompleteFlight(flight_id=one.flight_id, output="x"))

    async def ids(who: Rig | None, **more: Any) -> list[str]:
        seat = asker if who is None else await rig.scout()
        return [item.id for item in (await seat.call(ListFlights(**more))).items]

    assert await ids(rig) == [two.flight_id, one.flight_id]
    assert await ids(rig, open=True) == [two.flight_id]
    assert await ids(None) == [one.flight_id]
    assert await ids(None, open=True) == []
    assert await ids(rig, agent="@live", state=FlightState.COMPLETED) == [one.flight_id]
    assert (await expect_refusal(asker.call(ListFlights(agent="@live")))).code == "forbidden"


@pytest.mark.rows("R2.2-50")
@as_test
async def test_a_delivery_and_its_flight_change_together(rig: Rig) -> None:
    seat = await online_agent(rig)
    asked = await rig.operator(MakeAsk(to="@live", body="x"))
    claimed = await seat.call(ClaimInbox())
    delivery = claimed.items[0].delivered.id
    await seat.call(AckInbox(delivery_ids=(delivery,)))
    assert (await list_events(rig, asked.flight_id)) == ["flight.queued", "flight.updated", "flight.started"]
    pairs = {"delivery.leased": "flight.updated", "delivery.acked": "flight.started"}
    events = (await rig.operator(ReadLog(limit=200, newest=True))).items
    for one, following in pairwise(events):
        name = str(one.__struct_config__.tag).removeprefix("collab.")
        if name in pairs:
            assert str(following.__struct_config__.tag) == f"collab.{pairs[name]}"
            assert (following.seq, following.time) == (one.seq + 1, one.time)
    await rig.operator(CancelFlight(flight_id=asked.flight_id))
    assert (await list_events(rig, delivery))[-1] == "delivery.acked"
    again = await rig.operator(MakeAsk(to="@live", body="y"))
    await rig.operator(CancelFlight(flight_id=again.flight_id))
    last = (await read_log(rig))[-2:]
    assert [str(one.__struct_config__.tag) for one in last] == [
        "collab.flight.cancelled",
        "collab.delivery.cancelled",
    ]


@pytest.mark.rows("R2.2-50")
@as_test
async def test_no_commit_has_one_of_a_pair_without_the_other(rig: Rig) -> None:
    seat = await online_agent(rig)
    statements: list[str] = []
    rig.broker._database.trace(statements.append)
    asked = await rig.operator(MakeAsk(to="@live", body="x"))
    delivery = (await seat.call(ClaimInbox())).items[0].delivered.id
    await seat.call(AckInbox(delivery_ids=(delivery,)))
    await rig.operator(CancelFlight(flight_id=asked.flight_id))
    other = await rig.operator(MakeAsk(to="@live", body="y"))
    await rig.operator(CancelFlight(flight_id=other.flight_id))
    commits = "\n".join(statements).split("COMMIT")
    for one, partner in (
        ("collab.delivery.leased", "collab.flight.updated"),
        ("collab.delivery.acked", "collab.flight.started"),
        ("collab.delivery.cancelled", "collab.flight.cancelled"),
        ("collab.delivery.requested", "collab.flight.queued"),
    ):
        # A trace shows the bytes of a row of the log.
        having = [text for text in commits if one.encode().hex() in text]
        assert having
        assert all(partner.encode().hex() in text for text in having)


@as_test
async def test_a_plain_message_wakes_and_its_answer_comes_back(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    await rig.operator(Send(to="@parrot", body="no need to hurry"))
    sent = await rig.operator(Send(to="@parrot", body="hello", wake=True))
    await wait_until(lambda: inbox_bodies(rig))
    item = (await inbox_items(rig))[0]
    assert item.message is not None
    assert item.message.body.startswith("hello\n")
    assert "> no need to hurry" in item.message.body  # mail that waited rides with the turn
    assert item.message.in_reply_to == sent.message_id
    await rig.operator(Send(to="@parrot", body="!fail out of breath", wake=True))
    await wait_until(lambda: has_heard(rig, "out of breath"))


async def has_heard(rig: Rig, words: str) -> bool:
    return any(words in text for text in await inbox_bodies(rig))
