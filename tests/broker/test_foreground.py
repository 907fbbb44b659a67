"""A background agent's message to its user: in the inbox, and with the agent that the user has in front."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from scout.model.agent import Lifecycle
from scout.model.events.asks import DeliveryRequested
from scout.protocol.access import CreateToken
from scout.protocol.agents import RetireAgent, ShowAgent
from scout.protocol.asks import MakeAsk
from scout.protocol.attention import Notify
from scout.protocol.talk import Reply, Send
from tests.broker.puppet import Puppet
from tests.broker.rig import (
    Rig,
    advance_clock,
    expect_refusal,
    inbox_bodies,
    inbox_items,
    read_log,
    run_scene,
    wait_for_end,
)
from tests.broker.scheduled import StillClock, add_schedule, tick, wait_for_run


def play(scene: Callable[[Rig], Awaitable[None]], home: Path) -> None:
    run_scene(scene, home)


async def write_as(rig: Rig, path: str, to: str, body: str) -> None:
    """A message of an agent at a path, which is created first."""
    await rig.operator(Send(to=path, body="hello", create={}))
    minted = await rig.operator(CreateToken(agent=path))
    await (await rig.scout(minted.secret)).call(Send(to=to, body=body))


async def list_passed_on(rig: Rig) -> list[str]:
    """The addresses of the foreground agents that got messages, in order."""
    log = [one for one in await read_log(rig, "collab.delivery") if isinstance(one, DeliveryRequested)]
    found = [one.payload.record.target for one in log if one.payload.record.rule == "foreground"]
    return [(await rig.operator(ShowAgent(address=one))).address for one in found]


def test_a_message_of_a_background_agent_reaches_the_inbox_and_the_agent_in_front(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.agent("arc")
        talkie = await rig.agent("talkie")
        await talkie.call(Send(to="@arc", body="I was active last."))
        await write_as(rig, "/ada/task/t1", "operator", "The task is done.")
        assert "The task is done." in await inbox_bodies(rig)
        assert "The task is done." in await inbox_bodies(rig, "talkie")
        assert "The task is done." not in await inbox_bodies(rig, "arc")
        (item,) = [one for one in await inbox_items(rig, "talkie") if one.delivery]
        assert item.delivery is not None
        assert (item.delivery.rule, item.delivery.reason, item.delivery.wake) == (
            "foreground",
            "for your user: most recent foreground",
            False,
        )

    play(scene, tmp_path)


def test_a_sleeping_agent_is_in_front_only_if_none_is_awake(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        for name in ("arc", "talkie"):
            await rig.agent(name)
        await advance_clock(rig, 700)
        assert (await rig.operator(ShowAgent(address="@talkie"))).lifecycle is Lifecycle.SLEEPING
        await write_as(rig, "/ada/task/t1", "operator", "one")
        assert len(await list_passed_on(rig)) == 1
        arc = await rig.agent("arc")
        await arc.call(Send(to="@talkie", body="I am awake."))
        await write_as(rig, "/ada/task/t2", "operator", "two")
        assert (await list_passed_on(rig))[1:] == ["@arc"]
        await rig.operator(RetireAgent(address="@arc"))
        await write_as(rig, "/ada/task/t3", "operator", "three")
        assert (await list_passed_on(rig))[2:] == ["@talkie"]

    play(scene, tmp_path)


def test_what_is_not_passed_on(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        arc = await rig.agent("arc")
        await rig.agent("talkie")
        await arc.call(Send(to="operator", body="from an agent in front"))
        await rig.operator(Send(to="/ada/task/t1", body="hello", create={}))
        minted = await rig.operator(CreateToken(agent="/ada/task/t1"))
        task = await rig.scout(minted.secret)
        asked = await rig.operator(Send(to="/ada/task/t1", body="How far are you?"))
        await task.call(Reply(body="an answer to the user", in_reply_to=asked.message_id))
        await task.call(Notify(message="an attention item, which is private"))
        await task.call(Send(to="@arc", body="to another agent"))
        assert await list_passed_on(rig) == []
        assert (await expect_refusal(task.call(Send(to="@nobody", body="x")))).code == "unknown_target"

    play(scene, tmp_path)


def test_without_an_agent_in_front_the_inbox_has_it(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await write_as(rig, "/ada/task/t1", "operator", "Nobody else is here.")
        assert await inbox_bodies(rig) == ["Nobody else is here."]
        assert await list_passed_on(rig) == []

    play(scene, tmp_path)


def test_the_answer_of_a_schedule_goes_to_another_agent_than_the_one_that_gave_it(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo")
        await rig.agent("talkie")
        made = await add_schedule(rig, body="It is nine.")
        assert made.slot is not None
        await tick(rig, made.slot)
        await wait_for_run(rig, made.id)
        assert await inbox_bodies(rig) == ["It is nine."]
        assert await inbox_bodies(rig, "talkie") == ["It is nine."]
        assert await list_passed_on(rig) == ["@talkie"]

    run_scene(scene, tmp_path, clock=StillClock("2025-11-15T00:00:00Z"))


def test_the_agent_in_front_reads_it_with_its_next_turn(tmp_path: Path) -> None:
    puppet = Puppet()

    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="acp")
        await write_as(rig, "/ada/task/t1", "operator", "The task is done.")
        asked = await rig.operator(MakeAsk(to="@arc", body="What is new?"))
        await wait_for_end(rig, asked.flight_id)
        prompt = next(iter(puppet.prompts.values()))
        assert "/ada/task/t1 wrote to your user; it needs no answer from you:" in prompt.text
        assert "> The task is done." in prompt.text

    run_scene(scene, tmp_path, harnesses={"acp": puppet})
