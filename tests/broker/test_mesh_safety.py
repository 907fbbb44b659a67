"""Envelopes that lie: each is refused and recorded, and the node that gets it is unharmed."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.base.codec import decode, encode
from scout.broker.mesh.envelopes import MeshIdentity
from scout.mesh.identity_key import IdentityKey
from scout.model.agent import Agent
from scout.model.conversation import Message, derive_dm_id
from scout.model.events.mesh import EnvelopeReceived, ReceivedEnvelope
from scout.model.flight import Flight, FlightState
from scout.model.mesh.entry import AgentEntry
from scout.model.mesh.envelope import (
    ENVELOPE_LIMIT,
    VERSION,
    CancelPayload,
    Envelope,
    FlightPayload,
    MessagePayload,
    ReceiptPayload,
    ReceiptState,
    SignedEnvelope,
)
from scout.model.mesh_receipt import OutboxState
from scout.model.node import NodeMove
from scout.model.status import AgentStatus
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.overview import ShowStatus
from scout.protocol.talk import GetMessage, Send
from scout.store.ledger import LAST
from tests.broker.mesh_pair import MESH, Pair, run_pair
from tests.broker.rig import inbox_bodies, online_agent, read_log, wait_until


class Forger:
    """Writes envelopes to node two, in the name of node one or of anybody else."""

    def __init__(self, pair: Pair, arc: Agent, hudson: str) -> None:
        self.pair, self.hudson = pair, hudson
        self.identity = MeshIdentity(MESH, pair.one.node_id, pair.one.key)
        self._number = 0
        self.sender = AgentEntry(
            id=arc.id,
            node_id=pair.one.node_id,
            path=arc.path,
            definition_id="arc",
            status=AgentStatus.ONLINE,
            updated_at=arc.created_at,
        )

    def write(self, body: str = "trust me", **changes: Any) -> Envelope:
        self._number += 1
        now = self.pair.one.clock.now()
        sender = changes.get("sender", self.sender)
        message = Message(
            id=f"msg_{self._number:026d}",
            conversation_id=derive_dm_id(sender.id if sender else "", self.hudson),
            sender=sender.id if sender else "",
            body=body,
            created_at=now,
        )
        fields: dict[str, Any] = {
            "id": f"env_{self._number:026d}",
            "mesh": MESH,
            "from_node": self.pair.one.node_id,
            "to_node": self.pair.two.node_id,
            "sent_at": now,
            "lives": 60.0,
            "sender": self.sender,
            "payload": MessagePayload(message=message, to=self.hudson),
            **changes,
        }
        return Envelope(**fields)

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
        signed = decode(true, SignedEnvelope)
        if lie == "removed":
            await pair.two.move(pair.one, NodeMove.REMOVE)
            node = pair.two.rig.broker.glance()
            assert node is not None
            await _remove(pair)
        forged = {
            "signature": lambda: other.sign(envelope),
            "altered": lambda: encode(replace(signed, body=signed.body.replace("trust me", "trust us"))),
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


def test_a_repeated_envelope_is_applied_once_and_answered_again(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        forger = await open_forger(pair)
        envelope = forger.write("once")
        for _ in range(3):
            assert await forger.post(envelope)
        assert await inbox_bodies(pair.two.rig, "hudson") == ["once"]
        assert len(await forger.received()) == 1

    run_pair(scene, tmp_path)


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
            body = decode(data, SignedEnvelope).body.replace('"kind":"message"', '"kind":"song"')
            signature = pair.one.key.sign(SignedEnvelope(body=body, signature="").signed_bytes)
            data = encode(SignedEnvelope(body=body, signature=signature))
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
