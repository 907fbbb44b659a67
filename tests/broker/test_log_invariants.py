"""A rich scene, and then the whole log: what must be true of every fact in it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scout.base.codec import decode, encode
from scout.model.ask import IfUnreachable, ReplyMode
from scout.model.events.asks import DeliveryRequested
from scout.model.events.envelope import Event, WakeFact, get_record
from scout.model.ref import Ref
from scout.policy.limits import Limits
from scout.policy.wake import WakeFacts, decide_wake
from scout.protocol.agents import RetireAgent
from scout.protocol.asks import CancelFlight, CompleteFlight, MakeAsk, RetryFlight, StartFlight
from scout.protocol.channels import CreateChannel, JoinChannel
from scout.protocol.inbox import ClaimInbox, NackInbox, build_acknowledgements
from scout.protocol.talk import Reply, Send
from scout.store.integrity.verify import verify
from tests.broker.rig import (
    Rig,
    advance_clock,
    event_name,
    expect_refusal,
    online_agent,
    read_log,
    run_scene,
    wait_for_end,
    write_program,
)


async def rich(rig: Rig) -> list[Event]:
    """Everything that can happen to a message or an ask, once."""
    a, b = await online_agent(rig, "a"), await online_agent(rig, "b")
    await rig.register("parrot", harness="echo")
    await rig.register("byhand", harness="echo", wake_policy="manual")
    await rig.register("idle")
    await rig.register("runs", command=write_program(rig.home, "runs", "cat >/dev/null; echo ran"))
    await rig.operator(Send(to="@a", body="hello, @b is around"))
    await rig.operator(Send(body="@parrot are you there?"))
    await a.call(Send(to="@parrot", body="hello", wake=True))
    await rig.operator(CreateChannel(name="team"))
    await a.call(JoinChannel(name="team"))
    await a.call(Send(channel="team", body="@b please look"))
    await rig.operator(Send(broadcast=True, body="to all"))
    claimed = await a.call(ClaimInbox())
    for taken in build_acknowledgements((claimed.items[0], *(one for one in claimed.items if one.seq))):
        await a.call(taken)
    await b.call(Send(to="@a", body="take this back"))
    for attempt in range(3):
        items = (await a.call(ClaimInbox())).items
        await a.call(NackInbox(delivery_ids=tuple(one.delivered.id for one in items), retry_after=0))
        assert attempt < 3
    for mode in ReplyMode:
        await rig.operator(MakeAsk(to="@parrot", body="x", reply_mode=mode, wait=20))
    outer = await a.call(MakeAsk(to="@b", body="outer"))
    await b.call(StartFlight(flight_id=outer.flight_id))
    await expect_refusal(b.call(MakeAsk(to="@a", body="back")))
    await b.call(MakeAsk(to="@runs", body="inner", wait=20))
    await b.call(Reply(body="answer", in_reply_to=outer.ask_id))
    await b.call(Reply(body="one more thing", in_reply_to=outer.ask_id))
    failing = await rig.operator(MakeAsk(to="@parrot", body="!fail x"))
    await wait_for_end(rig, failing.flight_id)
    await wait_for_end(rig, (await rig.operator(RetryFlight(flight_id=failing.flight_id))).flight_id)
    refusing = await rig.operator(MakeAsk(to="@parrot", body="!refuse x"))
    for _ in range(3):
        await asyncio.sleep(0)
        await advance_clock(rig, 400)
    await wait_for_end(rig, refusing.flight_id)
    held = await rig.operator(MakeAsk(to="@byhand", body="x"))
    byhand = await rig.agent("byhand")
    await byhand.call(CompleteFlight(flight_id=held.flight_id, output="y"))
    queued = await rig.operator(MakeAsk(to="@idle", body="x", if_unreachable=IfUnreachable.QUEUE))
    await rig.operator(CancelFlight(flight_id=queued.flight_id))
    await rig.operator(MakeAsk(to="@idle", body="x", if_unreachable=IfUnreachable.QUEUE))
    await rig.operator(RetireAgent(address="@idle"))
    return await read_log(rig)


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    home = tmp_path_factory.mktemp("rich")
    found: list[Event] = []

    async def scene(rig: Rig) -> None:
        found.extend(await rich(rig))

    run_scene(scene, home, limits=Limits(attempts=3))
    report = verify(home / "scout.db")
    assert report.clean, report
    return found


@pytest.mark.rows("R2.3-23")
def test_every_fact_has_one_canonical_source_and_target(events: list[Event]) -> None:
    for event in events:
        for ref in (event.source, event.target):
            assert ref == Ref.to(ref.id), event
        assert event.source.id.startswith("agt_"), event
        assert event.target.id.partition("_")[0] in {
            *("agt", "cnv", "dlv", "flt", "ask", "ept", "ses", "tok", "usg", "att", "nod", "usr", "crd"),
        }, event


def wakes(events: list[Event]) -> Iterator[tuple[Event, WakeFact]]:
    for event in events:
        if event.metadata.wake is not None:
            yield event, event.metadata.wake


@pytest.mark.rows("R2.3-25")
def test_every_wake_decision_is_explained_by_what_is_stored(events: list[Event]) -> None:
    decided = list(wakes(events))
    assert {wake.action for _, wake in decided} >= {"wake", "hold", "nobody", "deliver"}
    for event, wake in decided:
        facts = decode(encode(wake.facts), WakeFacts)
        again = decide_wake(facts.occasion, {one.agent_id: one for one in facts.reaches}, facts.routing)
        assert msgspec.to_builtins(again.stored) == msgspec.to_builtins(wake), event


@pytest.mark.rows("R2.3-25")
def test_every_program_that_is_started_was_decided_on(events: list[Event]) -> None:
    requested = [one for one in events if isinstance(one, DeliveryRequested)]
    assert any(one.payload.record.wake for one in requested)
    for event in requested:
        delivery, wake = event.payload.record, event.metadata.wake
        if delivery.wake:
            assert wake is not None
            assert (wake.agent_id, wake.action) == (delivery.target, "wake")
        if wake is not None and wake.agent_id is not None:
            assert wake.agent_id == delivery.target
        assert delivery.rule, event


@pytest.mark.rows("R2.3-25")
def test_a_wake_that_was_held_for_the_budget_says_so(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo")
        arc = await rig.agent("arc")
        await arc.call(MakeAsk(to="@parrot", body="x", wait=20))
        await arc.call(MakeAsk(to="@parrot", body="y"))
        held = [wake for _, wake in wakes(await read_log(rig)) if wake.rule == "wake_budget"]
        assert [one.action for one in held] == ["hold"]
        assert "1 of 1" in held[0].reason or " 1 " in held[0].reason
        facts = decode(encode(held[0].facts), WakeFacts)
        again = decide_wake(facts.occasion, {one.agent_id: one for one in facts.reaches}, facts.routing)
        assert (again.action, again.holder and again.holder.agent_id) == ("wake", held[0].agent_id)

    run_scene(scene, tmp_path, limits=Limits(wakes_per_hour=1))


@pytest.mark.rows("R2.3-26")
def test_every_delivery_derives_from_something(events: list[Event]) -> None:
    known: set[str] = set()
    for event in events:
        record: Any = get_record(event)
        if event_name(event) == "message.posted":
            known.add(str(getattr(record, "message_id", "") or getattr(record, "id", "")))
        if event_name(event) == "ask.created":
            known.add(record.id)
        if isinstance(event, DeliveryRequested):
            assert record.message_id in known or record.ask_id in known, event


@pytest.mark.rows("R2.3-27", "R3.3-19")
def test_nothing_is_leased_before_what_it_is_for(events: list[Event]) -> None:
    first: dict[str, int] = {}
    for event in events:
        first.setdefault(event.target.id, event.seq)
        record: Any = get_record(event)
        if event_name(event).startswith("delivery."):
            said = [
                one.seq
                for one in events
                if event_name(one) == "message.posted" and record.message_id in str(one)
            ]
            assert min(said) < event.seq
            if record.ask_id is not None and record.flight_id is not None:
                assert first[record.ask_id] < event.seq
                assert first[record.flight_id] < event.seq


def test_every_open_flight_says_why_and_until_when(events: list[Event]) -> None:
    for event in events:
        if event_name(event).startswith("flight."):
            flight: Any = get_record(event)
            if flight.finished_at is None:
                assert flight.reason
                assert flight.next_check_at is not None
                assert flight.next_move_owner_id


def test_the_log_is_without_gaps_and_without_secrets(events: list[Event], tmp_path: Path) -> None:
    assert [one.seq for one in events] == list(range(1, len(events) + 1))
    assert not [one for one in events if "sct_" in str(one)]
    assert not list(tmp_path.iterdir())
