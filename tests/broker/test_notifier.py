"""A person is told outside of Scout: once, also after a failure or a restart, and not of what was decided."""

import asyncio
import json
from pathlib import Path

from scout.adapters.sinks.desktop import Desktop
from scout.adapters.sinks.webhook import Webhook
from scout.daemon.clock import SystemClock
from scout.model.attention import AttentionState
from scout.policy.limits import Limits, Periods
from scout.protocol.attention import (
    AnswerAttention,
    ApproveAttention,
    AttentionView,
    GetAttention,
    Need,
    Notify,
    RaiseAttention,
)
from tests.adapters.receiving import read_arguments, receiver, stand_in
from tests.broker.rig import Rig, list_events, open_rig, run_scene, wait_until

SOON = Periods(back_off_first=0.01, back_off_most=0.02)


async def wait_for_notice(rig: Rig, ident: str) -> AttentionView:
    """An item once it is known that somebody was told."""

    async def look() -> AttentionView | None:
        item = await rig.operator(GetAttention(attention_id=ident))
        return item if item.state is AttentionState.NOTIFIED else None

    return await wait_until(look)


def test_the_desktop_shows_it_once(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        seat = await rig.agent("worker")
        item = await seat.call(RaiseAttention(title="Deploy?", body="to production"))
        await wait_for_notice(rig, item.id)
        assert read_arguments(tmp_path / "bin")[-2:] == ["Scout: Deploy?", "to production"]
        assert len(read_arguments(tmp_path / "bin")) == 5
        assert await list_events(rig, item.id) == ["attention.created", "attention.notified"]
        # Told or not, it is decided as before.
        decided = await rig.operator(ApproveAttention(attention_id=item.id))
        assert decided.state is AttentionState.RESOLVED

    run_scene(scene, tmp_path, sinks=[Desktop(stand_in(tmp_path / "bin"))])


def test_a_webhook_that_fails_twice_is_told_in_the_end(tmp_path: Path) -> None:
    with receiver(500, 503) as other:

        async def scene(rig: Rig) -> None:
            seat = await rig.agent("worker")
            item = await seat.call(Notify(message="The build is green."))
            await wait_for_notice(rig, item.id)
            assert len(other.seen) == 3
            assert other.is_signed_with("hush")
            told = [json.loads(body) for _, body in other.seen]
            assert {(one["id"], one["title"]) for one in told} == {(item.id, "The build is green.")}
            # The desktop worked at once, and was not bothered again.
            assert len(read_arguments(tmp_path / "bin")) == 5
            assert await list_events(rig, item.id) == ["attention.created", "attention.notified"]

        sinks = [Desktop(stand_in(tmp_path / "bin")), Webhook(other.url, "hush", SystemClock())]
        run_scene(scene, tmp_path, sinks=sinks, periods=SOON)


def test_several_at_once_are_one_notice(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        seat = await rig.agent("worker")
        items = [await seat.call(Notify(message=f"number {number}")) for number in range(7)]
        for item in items:
            await wait_for_notice(rig, item.id)
        words = read_arguments(tmp_path / "bin")
        assert words[-2:] == [
            "Scout: 7 things need you",
            "number 6 ⏎ number 5 ⏎ number 4 ⏎ number 3 ⏎ number 2 ⏎ and 2 more",
        ]
        assert len(words) == 5

    run_scene(scene, tmp_path, sinks=[Desktop(stand_in(tmp_path / "bin"))])


def test_what_was_answered_before_is_not_told(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        seat = await rig.agent("worker")
        first = await seat.call(Need(question="first?"))
        await rig.operator(AnswerAttention(attention_id=first.id, answer="yes"))
        second = await seat.call(Need(question="second?"))
        await wait_for_notice(rig, second.id)
        assert [one for one in read_arguments(tmp_path / "bin") if one.startswith("Scout:")] == [
            "Scout: second?"
        ]

    run_scene(scene, tmp_path, sinks=[Desktop(stand_in(tmp_path / "bin"))])


def test_after_a_restart_it_is_told_and_a_dead_sink_gives_up(tmp_path: Path) -> None:
    broken = Desktop({"PATH": str(tmp_path / "nowhere")})

    async def before() -> str:
        async with open_rig(tmp_path, sinks=[broken], periods=SOON, limits=Limits(attempts=2)) as rig:
            seat = await rig.agent("worker")
            item = await seat.call(Need(question="anybody?"))
            # Nothing waits for a sink: the answer came at once, and other work goes on.
            assert item.state is AttentionState.OPEN
            return item.id

    async def after(ident: str) -> None:
        async with open_rig(
            tmp_path, sinks=[broken, Desktop(stand_in(tmp_path / "bin"))], periods=SOON
        ) as rig:
            item = await wait_for_notice(rig, ident)
            assert read_arguments(tmp_path / "bin")[-2] == "Scout: anybody?"
            assert item.title == "anybody?"

    asyncio.run(after(asyncio.run(before())))
