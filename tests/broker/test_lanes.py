"""Lanes: the turns of a session follow each other, and isolated sessions wait for nobody."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from scout.adapters.echo import Echo
from scout.model.ask import SessionPolicy
from scout.policy.limits import Limits
from scout.ports import Accepted, Completed, HarnessEvent, Prompt, SessionSpec
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.talk import Send
from tests.broker.rig import Rig, run_scene, wait_for_end, wait_until


class Gated(Echo):
    """Each turn ends when its text is let through. `seen`: the texts of the turns that began, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.seen: list[str] = []

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        text = prompt.body
        self.seen.append(text)
        yield Accepted()
        await self.gates[text].wait()
        yield Completed(text=text)


def play(tmp_path: Path, scene: Any) -> None:
    gated = Gated()
    run_scene(
        lambda rig: scene(rig, gated), tmp_path, harnesses={"echo": gated}, limits=Limits(running_turns=8)
    )


def test_isolated_sessions_of_one_agent_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async def scene(rig: Rig, gated: Gated) -> None:
        await rig.register("parrot", harness="echo")
        new = SessionPolicy.NEW
        asked = {
            text: (await rig.operator(MakeAsk(to="@parrot", body=text, session_policy=policy))).flight_id
            for text, policy in [("shared", None), ("one", new), ("two", new), ("behind", None)]
        }
        await wait_until(lambda: len(gated.seen) == 3)
        assert set(gated.seen) == {"shared", "one", "two"}
        for text in ("two", "one", "shared"):
            gated.gates[text].set()
            assert (await wait_for_end(rig, asked[text])).output == text
        await wait_until(lambda: "behind" in gated.seen)
        gated.gates["behind"].set()
        views = [await wait_for_end(rig, flight) for flight in asked.values()]
        assert views[0].session_id == views[3].session_id
        assert len({one.session_id for one in views}) == 3

    play(tmp_path, scene)


async def _find_session(rig: Rig, flight_id: str) -> str | None:
    return (await rig.operator(GetFlight(flight_id=flight_id))).session_id


def test_the_turns_of_an_isolated_session_follow_each_other(tmp_path: Path) -> None:
    async def scene(rig: Rig, gated: Gated) -> None:
        await rig.register("parrot", harness="echo")
        asked = await rig.operator(MakeAsk(to="@parrot", body="first", session_policy=SessionPolicy.NEW))
        session = await wait_until(lambda: _find_session(rig, asked.flight_id))
        after = await rig.operator(MakeAsk(target_session_id=session, body="second"))
        other = await rig.operator(MakeAsk(to="@parrot", body="other", wait=0))
        await wait_until(lambda: "other" in gated.seen)
        assert "second" not in gated.seen
        gated.gates["first"].set()
        await wait_until(lambda: "second" in gated.seen)
        for text in ("second", "other"):
            gated.gates[text].set()
        assert (await wait_for_end(rig, after.flight_id)).session_id == session
        assert (await wait_for_end(rig, other.flight_id)).session_id != session

    play(tmp_path, scene)


def test_a_message_to_the_agent_wakes_its_own_session_while_an_isolated_one_works(tmp_path: Path) -> None:
    async def scene(rig: Rig, gated: Gated) -> None:
        await rig.register("parrot", harness="echo")
        asked = await rig.operator(MakeAsk(to="@parrot", body="alone", session_policy=SessionPolicy.NEW))
        await wait_until(lambda: gated.seen)
        await rig.operator(Send(to="@parrot", body="hello", wake=True))
        await wait_until(lambda: len(gated.seen) == 2)
        for text in gated.seen:
            gated.gates[text].set()
        assert (await wait_for_end(rig, asked.flight_id)).output == "alone"
        await wait_until(lambda: not rig.broker.dispatcher.lanes)

    play(tmp_path, scene)
