"""Two or more brokers in one mesh, joined by a server in memory: a test's implementation of the port.

The keys are real Ed25519 keys, and what is published is what a real server would carry. Time is real; a test
waits for what it expects, and never sleeps.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec.structs import replace

from scout.base.codec import decode, encode
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.model.mesh.join import JoinAnswer, JoinRequest
from scout.model.mesh.member import LOGIN_SIGNED_AS, MemberEntry
from scout.model.problems.diagnostics import AnyDiagnostic
from scout.model.problems.mesh import InvitationInvalid
from scout.policy.mesh.join_proof import hash_secret, is_founder_proved, prove_joiner
from scout.ports.mesh import (
    JoinDesk,
    LinkStatus,
    MeshConfig,
    MeshDown,
    MeshInlet,
    NodeKeys,
    ServerStatus,
)
from scout.protocol.mesh import InviteNode, JoinMesh, ListMeshNodes, NodeView, StartMesh
from tests.broker.rig import Rig, open_rig
from tests.guard import loop_guard

T = TypeVar("T")
_START = Time(1_700_000_000_000_000)
_PATIENCE = 30.0


class TestKeys:
    """An Ed25519 key."""

    __test__ = False

    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()

    @property
    def public_key(self) -> str:
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, data: bytes) -> str:
        return self._key.sign(data).hex()

    def verify(self, public_key: str, data: bytes, signature: str) -> bool:
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
            key.verify(bytes.fromhex(signature), data)
        except (InvalidSignature, ValueError):
            return False
        return True


class SharedServer:
    """What a NATS server would hold: members, heartbeats, entries and a stream for each node."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}
        self.beats: dict[str, bytes] = {}
        self.entries: dict[tuple[str, str], bytes] = {}
        self.streams: dict[str, dict[str, bytes]] = {}
        self.logins: dict[str, str] = {}
        self.invitations: dict[str, str] = {}
        self.links: dict[str, SharedLink] = {}
        self.desk: JoinDesk | None = None
        self.running = False
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def tell(self, change: Callable[[MeshInlet], Awaitable[object]]) -> None:
        """Hand a change to every connected node."""
        for link in self.links.values():
            link.hand_over(change)

    def beat(self, node_id: str, data: bytes, lives: float) -> None:
        self.beats[node_id] = data
        if node_id in self._timers:
            self._timers[node_id].cancel()
        loop = asyncio.get_running_loop()
        self._timers[node_id] = loop.call_later(lives, self._expire, node_id)
        self.tell(lambda inlet: inlet.take_heartbeat(node_id, data))

    def _expire(self, node_id: str) -> None:
        self.beats.pop(node_id, None)
        self.tell(lambda inlet: inlet.take_heartbeat(node_id, None))

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()


class SharedLink:
    """The connection of one node. `cut` is a partition: nothing passes, and nobody is told."""

    def __init__(self, server: SharedServer, node_id: str) -> None:
        self._server = server
        self._node_id = node_id
        self._changes: asyncio.Queue[Callable[[MeshInlet], Awaitable[object]]] = asyncio.Queue()
        self._envelopes = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()
        self._lost = asyncio.Event()
        self.status = LinkStatus(connected=False, since=_START)

    def cut(self) -> None:
        self._open.clear()
        self._lost.set()
        self._server.links.pop(self._node_id, None)

    def heal(self) -> None:
        self._lost.clear()
        self._open.set()

    def hand_over(self, change: Callable[[MeshInlet], Awaitable[object]]) -> None:
        self._changes.put_nowait(change)

    async def run(self, inlet: MeshInlet) -> None:
        while True:
            await self._open.wait()
            await self._serve(inlet)
            self.status = LinkStatus(connected=False, since=_START, problem="cut")
            await inlet.take_state(self.status)

    async def _serve(self, inlet: MeshInlet) -> None:
        server = self._server
        self._changes = asyncio.Queue()
        server.links[self._node_id] = self
        self.status = LinkStatus(connected=True, since=_START, server_version="2.15.1")
        await inlet.take_state(self.status)
        for node_id, data in list(server.members.items()):
            await inlet.take_member(node_id, data)
        for node_id, data in list(server.beats.items()):
            await inlet.take_heartbeat(node_id, data)
        await inlet.take_entries([(*key, data) for key, data in server.entries.items()])
        work = (self._pass_on(inlet), self._receive(inlet), self._wait_for_loss())
        tasks = [asyncio.create_task(one) for one in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            server.links.pop(self._node_id, None)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait_for_loss(self) -> None:
        await self._lost.wait()

    async def _pass_on(self, inlet: MeshInlet) -> None:
        while True:
            await (await self._changes.get())(inlet)

    async def _receive(self, inlet: MeshInlet) -> None:
        """Offer the envelopes of the stream until each is taken; one that is held back does not hold up others."""
        while True:
            self._envelopes.clear()
            stream = self._server.streams.setdefault(self._node_id, {})
            taken = [ident for ident, data in list(stream.items()) if await inlet.take_envelope(data)]
            for ident in taken:
                stream.pop(ident, None)
            if not taken:
                try:
                    async with asyncio.timeout(0.2):
                        await self._envelopes.wait()
                except TimeoutError:
                    continue

    def _require(self) -> SharedServer:
        if self._server.links.get(self._node_id) is not self or not self._server.running:
            raise MeshDown("not connected")
        return self._server

    async def publish(self, node_id: str, envelope_id: str, data: bytes) -> None:
        server = self._require()
        server.streams.setdefault(node_id, {})[envelope_id] = data
        other = server.links.get(node_id)
        if other is not None:
            other._envelopes.set()

    async def beat(self, data: bytes, lives: float) -> None:
        self._require().beat(self._node_id, data, lives)

    async def put_entries(self, entries: Mapping[str, bytes | None]) -> None:
        server = self._require()
        for agent_id, data in entries.items():
            key = (self._node_id, agent_id)
            server.entries.pop(key, None)
            if data is not None:
                server.entries[key] = data
        changed = [(self._node_id, agent_id, data) for agent_id, data in entries.items()]
        server.tell(lambda inlet: inlet.take_entries(changed))

    async def put_member(self, node_id: str, data: bytes) -> None:
        server = self._require()
        server.members[node_id] = data
        server.streams.setdefault(node_id, {})
        server.tell(lambda inlet: inlet.take_member(node_id, data))

    async def tell_member(self, node_id: str, data: bytes) -> None:
        server = self._require()
        server.members[node_id] = data
        server.tell(lambda inlet: inlet.take_member(node_id, data))

    async def close(self) -> None:
        self._server.links.pop(self._node_id, None)


class SharedKit:
    """The kit of one node: what a daemon keeps in files is kept here, and outlives a restarted broker."""

    installed = True

    def __init__(self, server: SharedServer) -> None:
        self.server = server
        self._keys = TestKeys()
        self._config: MeshConfig | None = None
        self._logins = itertools.count(1)
        self._runs = itertools.count(1)
        self._login = f"UL{id(self)}-0"
        self.link: SharedLink | None = None

    async def prepare(self) -> None: ...

    def read(self) -> MeshConfig | None:
        return self._config

    def store(self, config: MeshConfig) -> None:
        self._config = config

    def forget(self) -> None:
        self._config = None

    def keys(self) -> NodeKeys:
        return self._keys

    def begin_numbers(self) -> int:
        return next(self._runs) << 32

    def login_key(self, *, renew: bool = False) -> tuple[str, str]:
        if renew:
            self._login = f"UL{id(self)}-{next(self._logins)}"
        return self._login, self._keys.sign(LOGIN_SIGNED_AS + self._login.encode())

    def build_link(self, config: MeshConfig, node_id: str) -> SharedLink:
        self.link = SharedLink(self.server, node_id)
        return self.link

    def build_server(self, config: MeshConfig) -> "SharedServerControl":
        return SharedServerControl(self.server)

    async def found(self, mesh_id: str, *, host: str, port: int) -> MeshConfig:
        url = f"tls://{host or '127.0.0.1'}:{port}"
        key = self._keys.public_key
        return MeshConfig(mesh_id=mesh_id, url=url, founder_key=key, founder=True, serves=True)

    async def found_at(self, mesh_id: str, url: str, *, credentials: str | None) -> MeshConfig:
        return MeshConfig(mesh_id=mesh_id, url=url, founder_key=self._keys.public_key, founder=True)

    def build_invitation(self, config: MeshConfig, invitation_id: str, secret: str) -> tuple[str, str]:
        line = f"scout-mesh {invitation_id} {secret} {config.mesh_id} {config.url} {config.founder_key}"
        return line, f"UL-{invitation_id}"

    def read_invitation(self, line: str, *, credentials: str | None) -> tuple[str, MeshConfig]:
        words = line.split()
        if len(words) != 6:
            raise Refused(InvitationInvalid(problem="the line is not complete"))
        _, invitation_id, _, mesh_id, url, key = words
        return invitation_id, MeshConfig(mesh_id=mesh_id, url=url, founder_key=key)

    async def join(self, line: str, request: JoinRequest, *, credentials: str | None) -> JoinAnswer:
        invitation_id, config = self.read_invitation(line, credentials=credentials)
        hashed = hash_secret(line.split()[2])
        request = replace(request, invitation_id=invitation_id, nonce="n")
        proof = prove_joiner(hashed, config.mesh_id, config.founder_key, request)
        request = replace(request, proof=proof)
        assert self.server.desk is not None
        answer = await self.server.desk.admit(request)
        if answer.refusal is not None:
            raise Refused(decode(answer.refusal, AnyDiagnostic))
        assert is_founder_proved(hashed, config.mesh_id, config.founder_key, request, answer)
        return answer

    async def answer_joins(self, config: MeshConfig, desk: JoinDesk) -> None:
        self.server.desk = desk
        await asyncio.Event().wait()


class SharedServerControl:
    """Starts and stops the server in memory."""

    def __init__(self, server: SharedServer) -> None:
        self._server = server

    async def start(self) -> ServerStatus:
        self._server.running = True
        return await self.check()

    async def stop(self) -> None:
        self._server.running = False

    async def check(self) -> ServerStatus:
        others = max(len(self._server.links) - 1, 0)
        return ServerStatus(
            running=self._server.running, url="tls://memory", version="2.15.1", connections=others
        )

    async def set_logins(self, logins: Mapping[str, str], invitations: Mapping[str, str]) -> None:
        self._server.logins, self._server.invitations = dict(logins), dict(invitations)
        for node_id, link in list(self._server.links.items()):
            if node_id not in logins:
                link.cut()


# -- scenes ------------------------------------------------------------------------------------------


class MeshRig:
    """Brokers by node name. The first one founded the mesh."""

    def __init__(self, server: SharedServer) -> None:
        self.server = server
        self.nodes: dict[str, Rig] = {}
        self.kits: dict[str, SharedKit] = {}

    def __getitem__(self, name: str) -> Rig:
        return self.nodes[name]

    def link(self, name: str) -> SharedLink:
        link = self.kits[name].link
        assert link is not None
        return link


@asynccontextmanager
async def open_mesh(
    home: Path, *names: str, guests: tuple[str, ...] = (), options: Mapping[str, Any] = {}
) -> AsyncGenerator[MeshRig]:
    """Brokers with these names, joined; the first founds the mesh, and `guests` belong to others."""
    server = SharedServer()
    rig = MeshRig(server)
    async with AsyncExitStack() as stack:
        stack.callback(server.close)
        for name in names:
            folder = home / name
            folder.mkdir(parents=True, exist_ok=True)
            kit = rig.kits[name] = SharedKit(server)
            opened = open_rig(folder, host=name, mesh=kit, is_watched=False, **options)
            rig.nodes[name] = await stack.enter_async_context(opened)
        stack.enter_context(loop_guard.watching())
        first = rig[names[0]]
        await first.operator(StartMesh(host="127.0.0.1", port=1))
        for name in names[1:]:
            invited = await first.operator(InviteNode(guest=name in guests))
            await rig[name].operator(JoinMesh(line=invited.line))
        for one in rig.nodes.values():
            await wait_for(lambda one=one: sees_all(one, len(names)))
        yield rig


async def sees_all(rig: Rig, count: int) -> bool:
    """Whether a node knows all nodes and hears them."""
    nodes = await list_nodes(rig)
    return len(nodes) == count and all(one.state == "online" for one in nodes)


async def list_nodes(rig: Rig) -> tuple[NodeView, ...]:
    return (await rig.operator(ListMeshNodes())).items


async def wait_for(check: Callable[[], Awaitable[T]]) -> T:
    """Wait until a check gives something true, for half a minute at most."""
    async with asyncio.timeout(_PATIENCE):
        while True:
            found = await check()
            if found:
                return found
            await asyncio.sleep(0.02)


def read_member(data: bytes) -> MemberEntry:
    """The entry inside a published member."""
    return decode(decode(data, dict[str, str])["body"].encode(), MemberEntry)


def forge(data: bytes, keys: TestKeys, label: bytes, **changes: Any) -> bytes:
    """A published record with other facts, signed by another key."""
    body: dict[str, Any] = decode(decode(data, dict[str, str])["body"].encode(), dict[str, Any])
    text = encode({**body, **changes})
    return encode({"body": text.decode(), "signature": keys.sign(label + text)})
