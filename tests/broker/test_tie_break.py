"""The tie-break: a router is asked only where no rule names anybody, and what it says is recorded as that."""

import json
import logging
import shlex
import sys
from pathlib import Path

import pytest

from scout.adapters.router import ProgramRouter
from scout.base.codec import decode
from scout.broker.local import LocalScout
from scout.model.conversation import MessageKind
from scout.model.events.asks import DeliveryRequested
from scout.policy.limits import Limits, Routing
from scout.policy.wake import WakeFacts, decide_wake
from scout.protocol.channels import ChannelPolicy, CreateChannel
from scout.protocol.talk import Send
from tests.broker.rig import Rig, advance_clock, read_log, run_scene, wait_until

ON = Routing(model_assisted=True)
NAMES = ("arc", "hal", "eve")


def router(home: Path, text: str, seconds: float = 20.0) -> ProgramRouter:
    """A small program as router; what it was asked is kept beside it."""
    path = home / "router.py"
    path.write_text(
        f"import json, sys, pathlib\nasked = json.load(sys.stdin)\n"
        f"with pathlib.Path({str(home / 'asked')!r}).open('a') as kept:\n"
        f"    kept.write(json.dumps(asked) + chr(10))\n{text}\n"
    )
    return ProgramRouter(shlex.join((sys.executable, str(path))), seconds)


def list_asked(home: Path) -> list[dict[str, object]]:
    file = home / "asked"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def room(rig: Rig) -> list[LocalScout]:
    """A channel of the operator with three agents that can be started."""
    for name in NAMES:
        await rig.register(name, harness="echo")
    await rig.operator(CreateChannel(name="ops", members=tuple(f"@{name}" for name in NAMES)))
    return [await rig.agent(name) for name in NAMES]


async def deliveries(rig: Rig, message_id: str) -> list[DeliveryRequested]:
    events = [one for one in await read_log(rig) if isinstance(one, DeliveryRequested)]
    return [one for one in events if one.payload.record.message_id == message_id]


def test_its_choice_is_delivered_and_recorded_as_a_suggestion(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await room(rig)
        sent = await rig.operator(Send(channel="ops", body="who takes the build?", wake=True))
        assert sent.deliveries == ()

        async def came() -> list[DeliveryRequested]:
            return await deliveries(rig, sent.message_id)

        [event] = await wait_until(came)
        record, wake = event.payload.record, event.metadata.wake
        hal = (await rig.agent("hal")).who.actor.agent_id
        assert (record.target, record.rule, record.wake) == (hal, "model suggestion", True)
        assert record.sender == rig.broker.services.operator_agent
        assert wake is not None
        assert (wake.agent_id, wake.rule, wake.action) == (hal, "model suggestion", "wake")
        facts = decode(wake.facts, WakeFacts)
        assert facts.occasion.suggestion is not None
        again = decide_wake(facts.occasion, {one.agent_id: one for one in facts.reaches}, facts.routing)
        assert again.stored == wake
        assert list_asked(tmp_path) == [
            {"text": "who takes the build?", "candidates": [f"@{name}.node:mini" for name in NAMES]}
        ]

    run_scene(scene, tmp_path, routing=ON, router=router(tmp_path, "print(sorted(asked['candidates'])[-1])"))


@pytest.mark.rows("R3.7-14")
def test_by_default_nobody_is_asked(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await room(rig)
        await rig.operator(Send(channel="ops", body="who takes it?", wake=True))
        await advance_clock(rig, 1)
        assert list_asked(tmp_path) == []

    run_scene(scene, tmp_path, router=router(tmp_path, "print(asked['candidates'][0])"))


def test_without_a_router_there_is_nobody_to_ask(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await room(rig)
        sent = await rig.operator(Send(channel="ops", body="who takes it?", wake=True))
        await advance_clock(rig, 1)
        assert await deliveries(rig, sent.message_id) == []

    run_scene(scene, tmp_path, routing=ON)


def test_where_a_rule_decides_it_is_not_asked(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        arc, *_ = await room(rig)
        wishes = (
            Send(channel="ops", body="@arc look", wake=True),
            Send(channel="ops", body="a plain word"),
            Send(channel="ops", body="done", kind=MessageKind.FINAL, wake=True),
            Send(to="@arc", body="for you", wake=True),
            Send(broadcast=True, body="to all", wake=True),
        )
        for wish in wishes:
            await rig.operator(wish)
        await arc.call(Send(channel="ops", body="the channel has an owner", wake=True))
        await rig.operator(ChannelPolicy(name="ops", master="@hal"))
        await rig.operator(Send(channel="ops", body="and a master now", wake=True))
        await rig.operator(ChannelPolicy(name="ops", no_master=True, quiet=True))
        await rig.operator(Send(channel="ops", body="and is quiet", wake=True))
        await rig.operator(CreateChannel(name="two", members=("@arc",)))
        await rig.operator(Send(channel="two", body="one alone needs no router", wake=True))
        await advance_clock(rig, 1)
        assert list_asked(tmp_path) == []
        await rig.operator(ChannelPolicy(name="ops", quiet=False))
        await rig.operator(Send(channel="ops", body="who?", kind=MessageKind.QUESTION))
        assert await wait_until(lambda: len(list_asked(tmp_path)) == 1)

    run_scene(scene, tmp_path, routing=ON, router=router(tmp_path, "print(asked['candidates'][0])"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("print('@nobody')", "'@nobody'"),
        ("print(sorted(asked['candidates'])[0] + 'x')", "@arc"),
        ("print()", "None"),
        ("print('@operator')", "named no agent"),
        ("sys.exit(3)", "exited with 3"),
        ("print('x' * 100_000)", "longer than 4096 bytes"),
        ("import time; time.sleep(60)", "it took too long"),
    ],
)
def test_an_answer_that_is_none_wakes_nobody_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, told: str
) -> None:
    async def scene(rig: Rig) -> None:
        await room(rig)
        sent = await rig.operator(Send(channel="ops", body="who?", wake=True))
        assert await wait_until(lambda: told in caplog.text)
        assert await deliveries(rig, sent.message_id) == []

    with caplog.at_level(logging.WARNING, "scout.tie_break"):
        seconds = 0.5 if "sleep" in text else 20.0
        run_scene(scene, tmp_path, routing=ON, router=router(tmp_path, text, seconds))


def test_a_router_that_is_not_there_wakes_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(rig: Rig) -> None:
        await room(rig)
        await rig.operator(Send(channel="ops", body="who?", wake=True))
        assert await wait_until(lambda: "gave no answer" in caplog.text)

    with caplog.at_level(logging.WARNING, "scout.tie_break"):
        run_scene(scene, tmp_path, routing=ON, router=ProgramRouter(str(tmp_path / "none")))


def test_it_is_within_the_budget_of_the_conversation(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        for name in NAMES:
            await rig.register(name, harness="echo")
        boss = await rig.agent("boss")
        await boss.call(CreateChannel(name="ops", members=tuple(f"@{name}" for name in NAMES)))
        sent = [await boss.call(Send(channel="ops", body=text, wake=True)) for text in ("one", "two")]

        async def came() -> list[DeliveryRequested]:
            found = [event for one in sent for event in await deliveries(rig, one.message_id)]
            return found if len(found) == 2 else []

        found = await wait_until(came)
        assert sorted((one.payload.record.rule, one.payload.record.wake) for one in found) == [
            ("model suggestion", True),
            ("wake_budget", False),
        ]

    limits = Limits(wakes_per_hour=1)
    say = "print(asked['candidates'][0])"
    run_scene(scene, tmp_path, routing=ON, limits=limits, router=router(tmp_path, say))
