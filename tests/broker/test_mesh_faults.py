"""A wire that loses, repeats and reorders, and nodes that are killed: nothing is lost, doubled or out of order.

A checker reads the logs of both nodes at the end. The seeds are fixed, and a failed test names its own.
"""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from scout.model.events.asks import FlightCompleted, FlightStarted
from scout.model.events.envelope import Event
from scout.model.events.mesh import EnvelopeReceived
from scout.model.events.talk import MessagePosted
from scout.policy.limits import Limits, Periods
from scout.protocol.asks import MakeAsk
from scout.protocol.talk import Send
from tests.broker.mesh_pair import Faults, Pair, Side, run_pair
from tests.broker.rig import online_agent, read_log, wait_until

QUICK = Periods(back_off_first=0.05, back_off_most=0.4)


class Acknowledged:
    """What the nodes have confirmed to their callers."""

    def __init__(self) -> None:
        self.messages: dict[str, list[str]] = {"one": [], "two": []}
        self.flights: list[str] = []


async def _send(side: Side, to: str, body: str, known: Acknowledged) -> None:
    scout = await side.rig.agent("arc" if side.name == "one" else "hudson")
    receipt = await scout.call(Send(to=to, body=body))
    known.messages[side.name].append(receipt.message_id)


async def _ask(pair: Pair, body: str, known: Acknowledged) -> None:
    receipt = await (await pair.one.rig.agent("arc")).call(MakeAsk(to="@parrot", body=body))
    known.flights.append(receipt.flight_id)


async def _settle(pair: Pair) -> None:
    """Wait until no envelope is open on either side."""
    pair.wire.cut = False
    for side in pair.sides:
        side.exchange.wake_all()
    await wait_until(lambda: all(not _list_open(side) for side in pair.sides), 60)


def _list_open(side: Side) -> list[tuple[str]]:
    return side.rig.broker.glance().rows("outbox_nodes", after="")


async def _check(pair: Pair, known: Acknowledged) -> None:
    logs = {side.name: await read_log(side.rig) for side in pair.sides}
    for sender, receiver in (("one", "two"), ("two", "one")):
        posted = _list_posted(logs[receiver])
        arrived = [one for one in posted if one in set(known.messages[sender])]
        assert arrived == known.messages[sender], "lost, doubled or out of order"
    for name, log in logs.items():
        taken = Counter(one.payload.envelope_id for one in log if isinstance(one, EnvelopeReceived))
        assert not [ident for ident, count in taken.items() if count > 1], f"taken twice on {name}"
        for kind in (FlightStarted, FlightCompleted):
            moved = Counter(one.payload.record.id for one in log if isinstance(one, kind))
            assert {ident: moved[ident] for ident in known.flights} == dict.fromkeys(known.flights, 1), name


def _list_posted(log: list[Event]) -> list[str]:
    return [one.payload.message_id for one in log if isinstance(one, MessagePosted)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_bad_wire_loses_doubles_and_reorders_nothing(tmp_path: Path, seed: int) -> None:
    async def scene(pair: Pair) -> None:
        await _meet(pair)
        known = Acknowledged()
        pair.wire.faults = Faults(seed, lost=0.2, repeated=0.3, late=0.4)
        for number in range(12):
            await _send(pair.one, "@hudson", f"one {number}", known)
            await _send(pair.two, "@arc", f"two {number}", known)
            if number % 4 == 0:
                await _ask(pair, f"ask {number}", known)
        await _settle(pair)
        await _check(pair, known)

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
        known, chance = Acknowledged(), random.Random(seed)
        pair.wire.faults = Faults(seed, lost=0.1, repeated=0.2, late=0.2)
        for number in range(24):
            step = chance.random()
            if step < 0.35:
                await _send(pair.one, "@hudson", f"one {number}", known)
            elif step < 0.6:
                await _send(pair.two, "@arc", f"two {number}", known)
            elif step < 0.75:
                await _ask(pair, f"ask {number}", known)
            elif step < 0.9:
                await chance.choice(pair.sides).crash(pair.wire)
            else:
                pair.wire.cut = not pair.wire.cut
            for _ in range(chance.randrange(20)):
                await asyncio.sleep(0)
        await _settle(pair)
        await _check(pair, known)

    run_pair(scene, tmp_path, periods=QUICK, limits=Limits(asks_per_minute=100))
