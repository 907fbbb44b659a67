"""Members and strangers that mean harm, at real daemons and a real server: refused, recorded, nobody harmed."""

import asyncio
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from itertools import count

import pytest
from msgspec.structs import replace

from scout import BlockingScout
from scout.base.codec import encode
from scout.base.time import Time
from scout.broker.mesh.envelopes import MeshIdentity
from scout.daemon.mesh import StoredMesh
from scout.mesh.connection import Connection, connect
from scout.mesh.identity_key import IdentityKey
from scout.mesh.names import MeshNames, get_key
from scout.model.events.directory import NodeRefused
from scout.model.events.mesh import EnvelopeReceived, ReceivedEnvelope
from scout.model.mesh.entry import SIGNED_AS, SignedEntry
from scout.model.mesh.envelope import ENVELOPE_LIMIT, VERSION, MessagePayload
from scout.ports.mesh import MeshDown
from scout.protocol.agents import ShowAgent
from scout.protocol.log import ReadLog
from scout.protocol.mesh import ListMeshNodes
from tests.daemon.daemons import eventually
from tests.mesh.forging import EnvelopeWriter, change_body
from tests.stories.mesh_machines import Machine, two_machines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
_ATTEMPTS = count(1)
_CONNECTS = 5


class Member:
    """Somebody with the keys of machine `two`, who writes to machine `one` past the daemon of `two`."""

    def __init__(self, one: Machine, two: Machine) -> None:
        self.kit = StoredMesh(two.home / "mesh", two.home / "node.key", lambda: Time(time.time_ns() // 1000))
        config = self.kit.read()
        assert config is not None
        self.config = config
        self.names = MeshNames(config.mesh_id)
        self.victim = BlockingScout(home=one.home)
        self.ids = {str(node.name): node.id for node in self.victim.call(ListMeshNodes()).items}
        self.one_id = next(node for name, node in self.ids.items() if name != "two")
        self.hudson = self.victim.call(ShowAgent(address="@hudson"))
        self.arc = self.victim.call(ShowAgent(address="@arc"))
        to = self.one_id, self.hudson.id
        self.writer = EnvelopeWriter(config.mesh_id, self.arc, self.ids["two"], to)
        self.identity = MeshIdentity(config.mesh_id, self.ids["two"], self.kit.keys())

    def send(self, *envelopes: bytes) -> None:
        self.publish({self.names.get_envelopes(self.one_id, self.ids["two"]): envelopes})

    def publish(self, data: Mapping[str, tuple[bytes, ...]]) -> None:
        """Store data under subjects, with the login of `two`. Raises `MeshDown`."""

        async def store() -> None:
            connection = await self._connect()
            try:
                for subject, some in data.items():
                    for one in some:
                        await connection.store(subject, one, {"Nats-Msg-Id": f"evil-{next(_ATTEMPTS)}"})
            finally:
                await connection.close()

        asyncio.run(store())

    async def _connect(self) -> Connection:
        """Log in as `two`; the server drops a connection that a busy machine keeps waiting."""
        for _ in range(_CONNECTS):
            with suppress(MeshDown):
                return await connect(self.kit._build_login(self.config, self.ids["two"]))
        return await connect(self.kit._build_login(self.config, self.ids["two"]))

    def find_received(self) -> list[ReceivedEnvelope]:
        log = self.victim.call(ReadLog(family="collab.envelope", limit=200)).items
        return [one.payload for one in log if isinstance(one, EnvelopeReceived)]

    def find_refused(self, ident: str = "") -> ReceivedEnvelope:
        """What `one` recorded about an envelope, or about those that it does not believe at all."""
        return eventually(lambda: self._look_for_refused(ident))

    def _look_for_refused(self, ident: str) -> ReceivedEnvelope | None:
        found = (one for one in self.find_received() if one.problem is not None)
        return next((one for one in found if one.envelope_id == ident), None)

    def list_codes(self) -> set[str]:
        """Why envelopes were not believed."""
        return {one.problem.code for one in self.find_received() if not one.authentic and one.problem}

    def list_bodies(self, one: Machine) -> list[str]:
        found = one.data("message", "list", "--conversation", self.conversation)["items"]
        return [message["body"] for message in found]

    @property
    def conversation(self) -> str:
        payload = self.writer.write().payload
        assert isinstance(payload, MessagePayload)
        return payload.message.conversation_id


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Machine, Machine]]:
    with two_machines(tmp_path_factory.mktemp("mesh")) as (one, two):
        one.say("agent", "register", "hudson", "--harness", "echo")
        two.say("agent", "register", "arc", "--harness", "echo")
        one.knows("@arc")
        two.knows("@hudson")
        yield one, two


@pytest.fixture
def member(machines: tuple[Machine, Machine]) -> Generator[Member]:
    found = Member(*machines)
    yield found
    found.victim.close()
    one, two = machines
    assert two.say("ask", "@hudson", "are you well?").startswith("are you well?\n")
    assert "clean" in one.say("verify")


@pytest.mark.rows("R8.t-1")
def test_envelopes_that_are_forged_altered_or_for_another_are_not_believed(member: Member) -> None:
    envelope = member.writer.write("forged")
    true = member.identity.sign(envelope)
    stranger = MeshIdentity(member.config.mesh_id, member.ids["two"], IdentityKey(b"9" * 32))
    member.send(
        stranger.sign(envelope),
        change_body(true, "forged", "altered"),
        member.identity.sign(replace(envelope, from_node="nod_" + "7" * 26)),
        member.identity.sign(replace(envelope, to_node=member.ids["two"])),
        b"\x00 not even JSON",
    )
    assert not member.find_refused().authentic
    last = member.writer.write("the true one")
    member.send(member.identity.sign(last))
    eventually(lambda: last.id in [one.envelope_id for one in member.find_received()])
    assert {"unauthenticated", "bad_request"} <= member.list_codes()
    assert envelope.id not in [one.envelope_id for one in member.find_received()]


@pytest.mark.rows("R8.t-2")
def test_a_member_speaks_only_for_its_own_agents(member: Member) -> None:
    foreign = member.writer.write(sender=replace(member.writer.sender, node_id="nod_" + "8" * 26))
    own = member.writer.write(sender=replace(member.writer.sender, id=member.hudson.id))
    member.send(member.identity.sign(foreign), member.identity.sign(own))
    for envelope in (foreign, own):
        refused = member.find_refused(envelope.id)
        assert refused.problem is not None
        assert (refused.authentic, refused.problem.code) == (True, "forbidden")
    entry = replace(member.writer.sender, id=member.hudson.id, revision=2**60)
    body = encode(entry).decode()
    signed = SignedEntry(body=body, signature=member.kit.keys().sign(SIGNED_AS + body.encode()))
    key = get_key(member.names.entries, member.ids["two"], member.hudson.id)
    member.publish({key: (encode(signed),)})

    def is_recorded() -> bool:
        log = member.victim.call(ReadLog(family="collab.node", limit=200)).items
        reasons = [one.payload.reason for one in log if isinstance(one, NodeRefused)]
        return any(f"{member.hudson.id} is an agent of this node" in one for one in reasons)

    eventually(is_recorded)
    assert member.victim.call(ShowAgent(address="@hudson")).node != "two"


@pytest.mark.rows("R8.t-1")
def test_a_replayed_envelope_takes_effect_once(machines: tuple[Machine, Machine], member: Member) -> None:
    envelope = member.writer.write("only once")
    data = member.identity.sign(envelope)
    member.send(data, data, data)
    after = member.writer.write("afterwards")
    member.send(data, member.identity.sign(after))
    eventually(lambda: after.id in [one.envelope_id for one in member.find_received()])
    assert [one.envelope_id for one in member.find_received()].count(envelope.id) == 1
    assert member.list_bodies(machines[0]).count("only once") == 1


def test_a_newer_version_is_refused_by_name_and_unknown_fields_are_skipped(member: Member) -> None:
    keys = member.kit.keys()
    newer = member.writer.write("newer", v=VERSION + 1)
    song = member.writer.write("song")
    more = member.writer.write("more")
    member.send(
        change_body(member.identity.sign(newer), '"mesh":', '"mood":"bright","mesh":', keys),
        change_body(member.identity.sign(song), '"kind":"message"', '"kind":"song"', keys),
        change_body(member.identity.sign(more), '"mesh":', '"mood":"bright","mesh":', keys),
    )
    for envelope, unknown in (
        (newer, f"version {VERSION + 1} of envelopes"),
        (song, "the envelope kind 'song'"),
    ):
        problem = member.find_refused(envelope.id).problem
        assert problem is not None
        assert f"speaks version {VERSION} of the mesh and does not know {unknown}" in problem.message
    taken = eventually(lambda: [one for one in member.find_received() if one.envelope_id == more.id])
    assert [(one.outcome, one.problem) for one in taken] == [("accepted", None)]


@pytest.mark.rows("R8.j-7")
def test_what_is_too_large_or_in_the_name_of_another_node_is_refused(member: Member) -> None:
    with pytest.raises(MeshDown):
        member.send(b"x" * (ENVELOPE_LIMIT + 100_000))
    member.send(b"x" * (ENVELOPE_LIMIT + 1))  # with its headers, this fits
    eventually(lambda: "too_large" in member.list_codes())
    foreign = member.names.get_envelopes(member.ids["two"], member.one_id)
    with pytest.raises(MeshDown, match=r"(?i)permissions violation"):
        member.publish({foreign: (member.identity.sign(member.writer.write()),)})


@contextmanager
def another(near: Machine, name: str) -> Generator[Machine]:
    """One more machine of the same login, in no mesh yet."""
    machine = Machine(near.folder.parent / name)
    machine.folder.mkdir()
    machine.configure(f"roots = ['{machine.folder}']\n")
    machine.start()
    try:
        yield machine
    finally:
        machine.type("mesh", "leave")
        machine.stop()


@pytest.mark.rows("R8.j-2")
def test_an_expired_or_stolen_invitation_admits_nobody(machines: tuple[Machine, Machine]) -> None:
    one, _ = machines
    with another(one, "three") as three, another(one, "thief") as thief:
        line = one.data("mesh", "invite", "--name", "three", "--expires", "1s")["line"]
        eventually(lambda: "expired" in one.say("log", "--json", "--family", "collab.invitation"))
        assert "it was used, has expired or was revoked" in three.type("mesh", "join", line).stderr
        line = one.data("mesh", "invite", "--name", "three")["line"]
        three.say("mesh", "join", line)
        assert "invitation_invalid" in thief.type("mesh", "join", line).stderr
        assert not thief.data("mesh")["member"]
        one.sees("three", "online")
        one.say("mesh", "remove", "three")
        eventually(lambda: not three.data("mesh").get("connected"))
        eventually(lambda: "peer_unreachable" in three.type("ask", "@hudson", "still there?").stderr)


@pytest.mark.rows("R8.t-3")
def test_a_guest_with_the_same_login_and_channel_is_somebody_else(machines: tuple[Machine, Machine]) -> None:
    one, _ = machines
    with another(one, "guest") as guest:
        guest.say("agent", "register", "visitor", "--harness", "echo")
        for machine in (one, guest):
            machine.say("channel", "create", "plans")
            machine.say("send", "--channel", "plans", f"of {machine.folder.name}")
        guest.say("mesh", "join", one.data("mesh", "invite", "--guest", "--name", "guest")["line"])
        one.knows("@visitor")
        guest.knows("@hudson")
        owner = one.data("show", "@visitor")["owner"]
        assert owner.startswith("~")
        assert owner != one.data("show", "@hudson")["owner"] == guest.data("show", "@visitor")["owner"]
        asked = guest.type("ask", "@hudson", "open the door")
        assert asked.returncode != 0
        assert "forbidden" in asked.stderr, asked.stderr
        for machine, other in ((one, guest), (guest, one)):
            said = machine.say("message", "list", "--channel", "plans")
            assert f"of {machine.folder.name}" in said
            assert f"of {other.folder.name}" not in said
        one.say("mesh", "remove", "guest")
