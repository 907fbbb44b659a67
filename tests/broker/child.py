"""A broker in a process of its own, for tests that kill it: it does one thing, says so, and waits."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from scout.adapters.command import Command
from scout.adapters.echo import Echo
from scout.model.agent import Agent
from scout.model.delivery import Delivery, DeliveryState
from scout.ports import HarnessEvent, Prompt, SessionSpec
from scout.protocol.asks import MakeAsk
from scout.protocol.talk import Send
from scout.store.ledger import LAST
from tests.broker.rig import Rig, inbox_bodies, open_rig, wait_until, write_program

WAITS = 'printf %s "$SCOUT_CONTRACT" >"$WORK/prompt"; echo run >>"$WORK/runs"; until [ -e "$WORK/go" ]; do sleep 0.01; done; echo done'


class Hesitant(Command):
    """It dies with the broker just before its program begins, or just after."""

    def __init__(self, sessions: Path, home: Path, what: str) -> None:
        super().__init__(sessions)
        self.home = home
        self.after = what == "after"
        self.lets = 1 if what == "second" else 0

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        if self.lets:
            self.lets -= 1
            async for event in super().deliver(spec, prompt):
                yield event
            return
        if self.after:
            async for _ in super().deliver(spec, prompt):
                break
        (self.home / "reached").touch()
        await asyncio.Event().wait()
        yield  # type: ignore[misc] (it never gets here)


class Deaf(Echo):
    """It takes nothing and says nothing."""

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        self.reached.touch()
        await asyncio.Event().wait()
        yield  # type: ignore[misc] (it never gets here)

    reached = Path()


async def play(home: Path, what: str) -> None:
    command: Command = Command(home / "sessions")
    if what in ("before", "after", "second"):
        command = Hesitant(home / "sessions", home, what)
    deaf = Deaf()
    deaf.reached = home / "reached"
    async with open_rig(
        home, harnesses={"echo": deaf if what == "unknown" else Echo(), "command": command}
    ) as rig:
        await rig.register("waits", command=write_program(home, "waits", WAITS))
        await rig.register("parrot", harness="echo")
        target = "@parrot" if what == "unknown" else "@waits"
        if what == "second":
            (home / "go").touch()
            await rig.operator(Send(to=target, body="hello", wake=True))
            await wait_until(lambda: inbox_bodies(rig))
        if what == "message":
            await rig.operator(Send(to=target, body="hello", wake=True))
        else:
            asked = await rig.operator(MakeAsk(to=target, body="first"))
            (home / "flight").write_text(asked.flight_id)
        await wait_until((home / ("runs" if what in ("running", "message", "pending") else "reached")).exists)
        if what == "pending":
            second = await rig.operator(MakeAsk(to=target, body="second"))
            (home / "second").write_text(second.flight_id)
        if what in ("running", "message", "pending"):
            held = home / "sessions"
            await wait_until(lambda: list(held.glob("*/*/pid")))
            await wait_until(lambda: is_acked(rig))
        print("ready", flush=True)
        await asyncio.Event().wait()


def is_acked(rig: Rig) -> bool:
    found = rig.broker.glance().many(Delivery, "deliveries_to", agent=find_target(rig), before=LAST, limit=9)
    return any(one.state is DeliveryState.ACKED for one in found)


def find_target(rig: Rig) -> str:
    agents = rig.broker.glance().many(Agent, "agents_named", name="waits", before=LAST, limit=1)
    return agents[0].id


if __name__ == "__main__":
    asyncio.run(play(Path(sys.argv[1]), sys.argv[2]))
