"""Envelopes that lie: each is refused and recorded, and the node that gets it is unharmed."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.base.codec import encode
from scout.broker.mesh.envelopes import MeshIdentity
from scout.mesh.identity_key import IdentityKey
from scout.model.agent import Agent
from scout.model.events.mesh import EnvelopeReceived, ReceivedEnvelope
from scout.model.flight import Flight, FlightState
from scout.model.mesh.envelope import (
    ENVELOPE_LIMIT,
    VERSION,
    CancelPayload,
    Envelope,
    FlightPayload,
    MessagePayload,
    ReceiptPayload,
    ReceiptState,
    SignedBundle,
)
from scout.model.mesh_receipt import OutboxState
from scout.model.node import NodeMove
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.overview import ShowStatus
from scout.protocol.talk import GetMessage, Send
from scout.store.ledger import LAST
from tests.broker.mesh_pair import MESH, Pair, run_pair
from tests.broker.rig import inbox_bodies, online_agent, read_log, wait_until
from tests.mesh.forging import EnvelopeWriter, change_body


class Forger:
    """Writes envelopes to node two, in the name of node one or of anybody else."""

    def __init__(self, pair: Pair, arc: Agent, hudson: str) -> None:
        self.pair, self.hudson = pair, hudson
        self.identity = MeshIdentity(MESH, pair.one.node_id, pair.one.key)
        to = pair.two.node_id, hudson
        self._writer = EnvelopeWriter(MESH, arc, pair.one.node_id, to)
        self.sender = self._writer.sender
        self.write = self._writer.write

    async def post(self, envelope: Envelope | bytes) -> bool:
        data = envelope if isinstance(envelope, bytes) else self.identity.sign(envelope)
        return await self.pair.two.exchange.take(data)

    async def received(self) -> list[ReceivedEnvelope]:
        log = await read_log(self.pair.two.rig)
        return [one.payload for one in log if isinstance(one, EnvelopeReceived)]


async def open_forger(pair: Pair) -> Forger:
    await online_agent(pair.one.rig, "arc")
    await online_agent(pair.two.rig, "hudson")
    await pair.one.show(pair.two, "arc")
    hudson = await pair.two.show(pair.one, "hudson")
    agents = pair.one.rig.broker.glance().many(Agent, "agents_all", before=LAST, limit=50)
    return Forger(pair, next(one for one in agents if one.definition_id == "arc"), hudson)


@pytest.mark.rows("R8.t-1")
@pytest.mark.parametrize(
    "lie",
    ["signature", "altered", "stranger", "other node", "other mesh", "no envelope", "too large", "removed"],
)
def test_a_forged_envelope_has_no_effect_and_spends_no_id(tmp_path: Path, lie: str) -> None:
    async def scene(pair: Pair) -> None:
        forger = await open_forger(pair)
        envelope = forger.write()
        true = forger.identity.sign(envelope)
        other = MeshIdentity(MESH, pair.one.node_id, IdentityKey(b"9" * 32))
        if lie == "removed":
            await pair.two.move(pair.one, NodeMove.REMOVE)
            node = pair.two.rig.broker.glance()
            assert node is not None
            await _remove(pair)
        forged = {
            "signature": lambda: other.sign(envelope),
            "altered": lambda: change_body(true, "trust me", "trust us"),
            "stranger": lambda: forger.identity.sign(replace(envelope, from_node="nod_" + "7" * 26)),
            "other node": lambda: forger.identity.sign(replace(envelope, to_node=pair.one.node_id)),
            "other mesh": lambda: forger.identity.sign(replace(envelope, mesh="another")),
            "no envelope": lambda: b"\x00 not even JSON",
            "too large": lambda: b"x" * (ENVELOPE_LIMIT + 1),
            "removed": lambda: true,
        }[lie]()
        assert await forger.post(forged)
        assert await inbox_bodies(pair.two.rig, "hudson") == []
        found = await forger.received()
        assert [one.authentic for one in found] == [False]
        assert found[0].problem is not None
        if lie != "removed":
            assert await forger.post(true), "the true one still arrives"
            assert await inbox_bodies(pair.two.rig, "hudson") == ["trust me"]
        for _ in range(20):  # nobody fills the log
            await forger.post(forged)
        assert len([one for one in await forger.received() if not one.authentic]) == 1

    run_pair(scene, tmp_path)


async def _remove(pair: Pair) -> None:
    from scout.model.events.directory import NodeUpdated
    from scout.model.node import Node

    def record(tx: Any) -> None:
        node = tx.need(Node, "node", pair.one.node_id)
        member = replace(node.member, removed=True)
        tx.record(NodeUpdated, replace(node, member=member, revision=node.revision + 1), move="update")

    await pair.two.rig.broker.as_system(record)


@pytest.mark.rows("R8.t-1")
@pytest.mark.parametrize("lie", ["signature", "altered", "nothing", "another node"])
def test_a_forged_bundle_has_no_effect(tmp_path: Path, lie: str) -> None:
    """One signature speaks for one node: an envelope of another node beside true ones is forged."""

    async def scene(pair: Pair) -> None:
        forger = await open_forger(pair)
        first, second = forger.write("first"), forger.write("second")
        stranger = replace(second, from_node="nod_" + "7" * 26)
        other = MeshIdentity(MESH, pair.one.node_id, IdentityKey(b"9" * 32))
        true = forger.identity.sign_bodies([encode(first), encode(second)])
        forged = {
            "signature": lambda: other.sign_bodies([encode(first), encode(second)]),
            "altered": lambda: true.replace(b"second", b"sec0nd"),
            "nothing": lambda: encode(SignedBundle(bundle="[]", signature="")),
            "another node": lambda: forger.identity.sign_bodies([encode(first), encode(stranger)]),
        }[lie]()
        assert await forger.post(forged)
        expected = ["first"] if lie == "another node" else []
        assert await inbox_bodies(pair.two.rig, "hudson") == expected
        assert {one.authentic for one in await forger.received()} == {False, *([True] if expected else [])}
        assert await forger.post(true), "the true ones still arrive"
        assert await inbox_bodies(pair.two.rig, "hudson") == ["first", "second"]

    run_pair(scene, tmp_path)


@pytest.mark.rows("R8.e-2")
def test_a_bundle_waits_for_what_must_come_before_it(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        forger = await open_forger(pair)
        first, second, third = (forger.write(text) for text in ("first", "second", "third"))
        second, third = replace(second, after=first.id), replace(third, after=second.id)
        late = forger.identity.sign_bodies([encode(third), encode(second)])
        assert not await forger.post(late)
        assert await forger.post(first)
        assert not await forger.post(late), "the second is taken, the third waits for it"
        assert await forger.post(late)
        assert await inbox_bodies(pair.two.rig, "hudson") == ["first", "second", "third"]

    run_pair(scene, tmp_path)


@pytest.mark.rows("R8.t-1")
def test_a_repeated_envelope_is_applied_once_and_answered_again(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        forger = await open_forger(pair)
        envelope = forger.write("once")
        for _ in range(3):
            assert await forger.post(envelope)
        assert await inbox_bodies(pair.two.rig, "hudson") == ["once"]
        assert len(await forger.received()) == 1

    run_pair(scene, tmp_path)


@pytest.mark.rows("R8.t-2")
@pytest.mark.parametrize(
    "lie", ["foreign sender", "own agent", "other speaker", "newer version", "unknown kind"]
)
def test_a_member_that_oversteps_is_refused_and_told(tmp_path: Path, lie: str) -> None:
    async def scene(pair: Pair) -> None:
        forger = await open_forger(pair)
        plain = forger.write()
        assert isinstance(plain.payload, MessagePayload)
        spoken = replace(plain.payload, message=replace(plain.payload.message, sender=forger.hudson))
        envelope = {
            "foreign sender": lambda: forger.write(sender=replace(forger.sender, node_id="nod_" + "8" * 26)),
            "own agent": lambda: forger.write(sender=replace(forger.sender, id=forger.hudson)),
            "other speaker": lambda: replace(plain, payload=spoken),
            "newer version": lambda: forger.write(v=VERSION + 1),
            "unknown kind": lambda: plain,
        }[lie]()
        data = forger.identity.sign(envelope)
        if lie == "unknown kind":
            data = change_body(data, '"kind":"message"', '"kind":"song"', pair.one.key)
        assert await forger.post(data)
        assert await inbox_bodies(pair.two.rig, "hudson") == []
        found = await forger.received()
        assert [(one.outcome, one.authentic) for one in found] == [(ReceiptState.REFUSED, True)]

    run_pair(scene, tmp_path)


def test_a_node_ends_only_flights_that_it_runs_or_asked_for(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        forger = await open_forger(pair)
        own = await pair.two.rig.operator(MakeAsk(to="@hudson", body="mine"))
        flight = pair.two.rig.broker.glance().get(Flight, own.flight_id)
        assert flight is not None
        done = replace(flight, state=FlightState.COMPLETED, output="forged", finished_at=flight.created_at)
        assert await forger.post(forger.write(payload=FlightPayload(flight=done)))
        assert await forger.post(forger.write(payload=CancelPayload(flight_id=flight.id)))
        view = await pair.two.rig.operator(GetFlight(flight_id=flight.id))
        assert view.state is FlightState.QUEUED
        assert [one.outcome for one in await forger.received()] == [ReceiptState.REFUSED] * 2
        await pair.two.rig.operator(ShowStatus())

    run_pair(scene, tmp_path)


def test_only_the_node_that_got_an_envelope_can_confirm_it(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        forger = await open_forger(pair)
        pair.wire.cut = True
        sent = await pair.two.rig.operator(Send(to="@arc", body="waiting"))
        view = await pair.two.rig.operator(GetMessage(message_id=sent.message_id))
        assert view.deliveries[0].mesh is not None
        envelope_id = view.deliveries[0].mesh.envelope_id
        assert envelope_id is not None
        third = ReceiptPayload(of="env_" + "1" * 26, state=ReceiptState.ACCEPTED)
        assert await forger.post(forger.write(payload=third, sender=None))
        own = ReceiptPayload(of=envelope_id, state=ReceiptState.ACCEPTED)
        assert await forger.post(forger.write(payload=own, sender=None))
        view = await pair.two.rig.operator(GetMessage(message_id=sent.message_id))
        assert view.deliveries[0].mesh is not None
        assert view.deliveries[0].mesh.state is OutboxState.ACCEPTED
        assert await wait_until(lambda: True)

    run_pair(scene, tmp_path)
