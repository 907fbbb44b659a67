"""A wire that loses, repeats and reorders, and nodes that are killed: nothing is lost, doubled or out of order.

`tests/mesh/history.py` checks the logs of both nodes at the end. The seeds are fixed, and a failed test names its own.
"""

import asyncio
import random
from pathlib import Path

import pytest

from scout.model.mesh_receipt import OutboxState
from scout.policy.limits import Limits, Periods
from scout.protocol.asks import MakeAsk
from scout.protocol.talk import GetMessage, Send
from tests.broker.mesh_pair import Faults, Pair, Side, run_pair
from tests.broker.rig import online_agent, read_log, wait_until
from tests.mesh.history import Told, check_logs

QUICK = Periods(back_off_first=0.05, back_off_most=0.4)


async def _send(side: Side, to: str, body: str, told: Told) -> None:
    scout = await side.rig.agent("arc" if side.name == "one" else "hudson")
    receipt = await scout.call(Send(to=to, body=body))
    told.add_message(side.name, "two" if side.name == "one" else "one", receipt.message_id)


async def _ask(pair: Pair, body: str, told: Told) -> None:
    receipt = await (await pair.one.rig.agent("arc")).call(MakeAsk(to="@parrot", body=body))
    told.add_flight("one", "two", receipt.flight_id)


async def _settle(pair: Pair) -> None:
    """Wait until no envelope is open on either side."""
    pair.wire.cut = False
    for side in pair.sides:
        side.exchange.wake_all()
    await wait_until(lambda: all(not _list_open(side) for side in pair.sides), 60)


def _list_open(side: Side) -> list[tuple[str]]:
    return side.rig.broker.glance().rows("outbox_nodes", after="")


async def _check(pair: Pair, told: Told) -> None:
    check_logs({side.name: await read_log(side.rig) for side in pair.sides}, told)


@pytest.mark.rows("R8.e-1", "R8.e-2")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_bad_wire_loses_doubles_and_reorders_nothing(tmp_path: Path, seed: int) -> None:
    async def scene(pair: Pair) -> None:
        await _meet(pair)
        told = Told()
        pair.wire.faults = Faults(seed, lost=0.2, repeated=0.3, late=0.4)
        for number in range(12):
            await _send(pair.one, "@hudson", f"one {number}", told)
            await _send(pair.two, "@arc", f"two {number}", told)
            if number % 4 == 0:
                await _ask(pair, f"ask {number}", told)
        await _settle(pair)
        await _check(pair, told)

    run_pair(scene, tmp_path, periods=QUICK, limits=Limits(asks_per_minute=100))


async def _meet(pair: Pair) -> None:
    await online_agent(pair.one.rig, "arc")
    await online_agent(pair.two.rig, "hudson")
    await pair.two.rig.register("parrot", harness="echo")
    await pair.one.show(pair.two, "arc")
    for name in ("hudson", "parrot"):
        await pair.two.show(pair.one, name)


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_killed_node_loses_and_doubles_nothing(tmp_path: Path, seed: int) -> None:
    async def scene(pair: Pair) -> None:
        await _meet(pair)
        told, chance = Told(), random.Random(seed)
        pair.wire.faults = Faults(seed, lost=0.1, repeated=0.2, late=0.2)
        for number in range(24):
            step = chance.random()
            if step < 0.35:
                await _send(pair.one, "@hudson", f"one {number}", told)
            elif step < 0.6:
                await _send(pair.two, "@arc", f"two {number}", told)
            elif step < 0.75:
                await _ask(pair, f"ask {number}", told)
            elif step < 0.9:
                await chance.choice(pair.sides).crash(pair.wire)
            else:
                pair.wire.cut = not pair.wire.cut
            for _ in range(chance.randrange(20)):
                await asyncio.sleep(0)
        await _settle(pair)
        await _check(pair, told)

    run_pair(scene, tmp_path, periods=QUICK, limits=Limits(asks_per_minute=100))


def test_an_envelope_that_was_lost_while_the_clock_was_ahead_is_sent_again_when_it_is_put_right(
    tmp_path: Path,
) -> None:
    async def scene(pair: Pair) -> None:
        await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        pair.one.clock.ahead += 7 * 3600
        pair.wire.faults = Faults(lost=1.0)
        sent = await pair.one.rig.operator(Send(to="@hudson", body="from the future"))

        async def read_state() -> OutboxState | None:
            view = await pair.one.rig.operator(GetMessage(message_id=sent.message_id))
            return view.deliveries[0].mesh.state if view.deliveries[0].mesh else None

        async def is_forwarded() -> bool:
            return await read_state() is OutboxState.FORWARDED

        async def has_arrived() -> bool:
            return await read_state() in (OutboxState.ACCEPTED, OutboxState.DELIVERED)

        await wait_until(is_forwarded)
        pair.one.clock.ahead -= 7 * 3600
        pair.wire.faults = Faults()
        await wait_until(has_arrived, 30)

    run_pair(scene, tmp_path)
