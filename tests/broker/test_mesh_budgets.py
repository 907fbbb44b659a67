"""What an envelope costs when there are many, and that nodes of both formats understand each other.

The counts do not depend on the machine. Both nodes are in one process: each is counted by its store and key.
"""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from scout.model.flight import FlightState
from scout.model.mesh.envelope import (
    FORMAT,
    ReceiptsPayload,
    SignedBundle,
    read_headers,
    read_parcel,
    read_payload,
)
from scout.model.mesh_receipt import OutboxState
from scout.protocol.asks import MakeAsk
from scout.protocol.talk import GetMessage, Send
from tests.broker.mesh_pair import Pair, Side, Wire, run_pair
from tests.broker.rig import online_agent, read_log, wait_until
from tests.mesh.history import Told, check_logs

MESSAGES, SENDERS = 320, 16


async def _send_all(pair: Pair, told: Told) -> None:
    """Send from all senders at once, and wait for every receipt."""
    senders = [await pair.one.rig.agent(f"sender{number}") for number in range(SENDERS)]

    async def send(number: int) -> None:
        sent = await senders[number % SENDERS].call(Send(to=f"@far{number % SENDERS}", body=f"{number}"))
        told.add_message("one", "two", sent.message_id)

    await asyncio.gather(*map(send, range(MESSAGES)))
    await wait_until(lambda: not any(_list_open(side) for side in pair.sides))


def _list_open(side: Side) -> list[tuple[str]]:
    return side.rig.broker.glance().rows("outbox_nodes", after="")


async def _meet(pair: Pair) -> None:
    for number in range(SENDERS):
        await pair.two.rig.register(f"far{number}")
        await pair.two.show(pair.one, f"far{number}")


@pytest.mark.rows("R8.e-1")
def test_many_envelopes_share_signatures_publishes_and_writes(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await _meet(pair)
        told = Told()
        await _send_all(pair, told)  # conversations are made
        published, keys = len(pair.wire.published), [side.key for side in pair.sides]
        signed, verified = sum(one.signed for one in keys), sum(one.verified for one in keys)
        written = [_count_rows(side) for side in pair.sides]
        await _send_all(pair, told)
        # One signature and one publish of a bundle, and of its receipts, for many messages.
        assert len(pair.wire.published) - published <= MESSAGES / 8
        assert sum(one.signed for one in keys) - signed <= MESSAGES / 8
        assert sum(one.verified for one in keys) - verified <= MESSAGES / 8
        # One row of the log for each message, and few for the receipts; what was taken is found without reading it.
        assert written[0]["INSERT INTO events"] <= MESSAGES * 1.2, written[0]
        assert written[1]["INSERT INTO events"] <= MESSAGES * 1.05, written[1]
        # The sender knows that a new delivery has no envelope yet; the receiver knows an agent that is listed.
        assert _count_selects(written[0], "outbox") <= MESSAGES * 0.1, written[0]
        assert _count_selects(written[1], "remote_agents r") <= MESSAGES * 0.1, written[1]
        assert written[1]["INSERT INTO messages"] == MESSAGES
        check_logs({side.name: await read_log(side.rig) for side in pair.sides}, told)

    run_pair(scene, tmp_path)


def _count_selects(statements: Counter[str], source: str) -> int:
    return sum(count for text, count in statements.items() if f"FROM {source}" in text)


def _count_rows(side: Side) -> Counter[str]:
    """Count the statements of the writer from now on; each row counts."""
    counted: Counter[str] = Counter()
    side.rig.broker._database.trace(
        lambda text: counted.update([text.partition(" (")[0].partition(" VALUES")[0][:80]])
    )
    return counted


# -- nodes of both formats ---------------------------------------------------------------------------


def _watch(wire: Wire) -> dict[str, list[bytes]]:
    """What is published to each node from now on."""
    seen: dict[str, list[bytes]] = {}
    store = wire.store

    def note(node_id: str, envelope_id: str, data: bytes) -> None:
        seen.setdefault(node_id, []).append(data)
        store(node_id, envelope_id, data)

    wire.store = note
    return seen


def _is_new(data: bytes) -> bool:
    """Whether only a node of the newer format can read this."""
    parcel = read_parcel(data)
    if isinstance(parcel, SignedBundle):
        return True
    return any(isinstance(read_payload(one), ReceiptsPayload) for one in read_headers(parcel))


@pytest.mark.rows("R8.t-1")
@pytest.mark.parametrize("formats", [(1, 1), (1, FORMAT), (FORMAT, 1)])
def test_a_node_of_the_older_format_gets_what_it_can_read(tmp_path: Path, formats: tuple[int, int]) -> None:
    async def scene(pair: Pair) -> None:
        await _meet(pair)
        await pair.two.rig.register("parrot", harness="echo")
        await pair.two.show(pair.one, "parrot")
        seen, told = _watch(pair.wire), Told()
        await _send_all(pair, told)
        asked = await pair.one.rig.operator(MakeAsk(to="@parrot", body="hello", wait=20))
        assert (asked.state, asked.output) == (FlightState.COMPLETED, "hello")
        for side in pair.sides:
            got = [_is_new(one) for one in seen[side.node_id]]
            assert any(got) is (side.format == FORMAT), side.name
        await wait_until(lambda: not any(_list_open(side) for side in pair.sides))
        check_logs({side.name: await read_log(side.rig) for side in pair.sides}, told)

    run_pair(scene, tmp_path, formats=formats)


# -- published, and no receipt yet -------------------------------------------------------------------


@pytest.mark.rows("R8.e-4")
def test_an_envelope_whose_receipt_is_late_is_recorded_as_forwarded(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        pair.wire.disconnect(pair.two.node_id)
        sent = await pair.one.rig.operator(Send(to="@hudson", body="later"))

        async def read_state() -> OutboxState | None:
            view = await pair.one.rig.operator(GetMessage(message_id=sent.message_id))
            return view.deliveries[0].mesh.state if view.deliveries[0].mesh else None

        async def is_forwarded() -> bool:
            return await read_state() is OutboxState.FORWARDED

        await wait_until(is_forwarded)
        await wait_until(lambda: not pair.one.rig.broker.services.published)
        pair.wire.connect(pair.two.node_id, pair.two.exchange)

        async def is_accepted() -> bool:
            return await read_state() in (OutboxState.ACCEPTED, OutboxState.DELIVERED)

        await wait_until(is_accepted)

    run_pair(scene, tmp_path)
