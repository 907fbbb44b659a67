"""Nodes of a mesh without a broker: the real kit and server, and an inlet that remembers what it was given."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import uvloop

from scout.base.codec import encode
from scout.base.time import Time
from scout.daemon.mesh import StoredMesh
from scout.mesh.connection import Connection, connect
from scout.mesh.server import NatsServer, ServerProcess
from scout.model.mesh.entry import SignedEntry
from scout.model.mesh.member import MEMBER_SIGNED_AS, MemberEntry, MemberRelation
from scout.ports.mesh import LinkStatus, MeshConfig, MeshLink, MeshServer
from tests.guard import loop_guard

MESH = "msh_01test"
PATIENCE = 30.0  # seconds: a busy machine is no failure


def play(story: Coroutine[Any, Any, None]) -> None:
    """Run a story on the loop of the daemon; a file that Scout reads on that loop fails the test."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, loop_guard.watching():
        runner.run(story)


def now() -> Time:
    return Time(time.time_ns() // 1000)


async def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> float:
    """Wait for a condition, and return the seconds that it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "it did not happen in time"
        await asyncio.sleep(0.005)
    return time.monotonic() - began


class Inlet:
    """A store that remembers ids: what arrives twice is counted, and takes effect once."""

    def __init__(self) -> None:
        self.taken = list[bytes]()
        self.offered = list[bytes]()
        self.members = dict[str, bytes | None]()
        self.beats = dict[str, bytes | None]()
        self.entries = dict[tuple[str, str], bytes | None]()
        self.batches = list[int]()
        self.states = list[LinkStatus]()
        self.order = list[str]()
        self.wait_for: Callable[[bytes], bool] = lambda _: True
        self.hang = False
        self.fails = 0

    async def take_envelope(self, data: bytes) -> bool:
        self.order.append("envelope")
        self.offered.append(data)
        if self.fails:
            self.fails -= 1
            raise OSError("no space left on device")
        if self.hang:
            await asyncio.Event().wait()
        if not self.wait_for(data):
            return False
        if data not in self.taken:
            self.taken.append(data)
        return True

    async def take_member(self, node_id: str, data: bytes | None) -> None:
        self.order.append("member")
        self.members[node_id] = data

    async def take_heartbeat(self, node_id: str, data: bytes | None) -> None:
        self.order.append("heartbeat")
        self.beats[node_id] = data

    async def take_entries(self, entries: Sequence[tuple[str, str, bytes | None]]) -> None:
        self.order.append("entries")
        self.batches.append(len(entries))
        self.entries.update({(node, agent): data for node, agent, data in entries})

    async def take_state(self, status: LinkStatus) -> None:
        self.order.append("connected" if status.connected else "lost")
        self.states.append(status)

    @property
    def connected(self) -> bool:
        return bool(self.states) and self.states[-1].connected


class Node:
    """One machine: its folder, its kit, and its link while it is linked."""

    def __init__(self, folder: Path, node_id: str) -> None:
        folder.mkdir(mode=0o700, parents=True)
        self.id = node_id
        self.kit = StoredMesh(folder / "mesh", folder / "node.key", now)
        self.inlet = Inlet()

    @asynccontextmanager
    async def logged_in(self, config: MeshConfig) -> AsyncGenerator[Connection]:
        """A bare connection with the login of this node, for what a link never does."""
        connection = await connect(await asyncio.to_thread(self.kit._build_login, config, self.id))
        try:
            yield connection
        finally:
            await connection.close()

    @asynccontextmanager
    async def linked(self, config: MeshConfig) -> AsyncGenerator[MeshLink]:
        """Run the link, connected; it is closed at the end."""
        link = self.kit.build_link(config, self.id)
        running = asyncio.create_task(link.run(self.inlet))
        try:
            await until(lambda: link.status.connected)
            yield link
        finally:
            await link.close()
            await asyncio.wait({running})

    def sign_member(self, other: "Node", *, removed: bool = False) -> bytes:
        """Sign that another node is a member, as the founder does."""
        login, proof = other.kit.login_key()
        entry = MemberEntry(
            node_id=other.id,
            name=other.id,
            public_key=other.kit.keys().public_key,
            login_key=login,
            login_proof=proof,
            relation=MemberRelation.OWN,
            operator_key=self.kit.keys().public_key,
            removed=removed,
            admitted_at=now(),
            updated_at=now(),
        )
        body = encode(entry).decode()
        signature = self.kit.keys().sign(MEMBER_SIGNED_AS + body.encode())
        return encode(SignedEntry(body=body, signature=signature))


class Stage:
    """A founder with a running server, and nodes that it admitted."""

    def __init__(self, folder: Path, founder: Node, config: MeshConfig, server: MeshServer) -> None:
        self.folder = folder
        self.founder = founder
        self.config = config
        self.server = server
        self.logins = dict[str, str]()

    async def add(self, node_id: str) -> Node:
        """Make a node whose login the server knows."""
        node = Node(self.folder / node_id, node_id)
        await node.kit.prepare()
        self.logins[node_id] = (await asyncio.to_thread(node.kit.login_key))[0]
        await self.server.set_logins(self.logins, {})
        return node

    async def admit(self, link: MeshLink, node_id: str) -> Node:
        """Make a node, with its stream."""
        node = await self.add(node_id)
        await link.put_member(node_id, await asyncio.to_thread(self.founder.sign_member, node))
        return node

    async def kill(self) -> None:
        """Kill the server, as a crash of the machine's memory would."""
        pid = (await self.server.check()).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        process = cast("NatsServer", self.server)._process
        await asyncio.to_thread(_wait_for_end, process)

    def see(self, *, port: int | None = None) -> MeshConfig:
        """The configuration of a node that joined; `port`: of a relay before the server."""
        url = f"tls://127.0.0.1:{port}" if port else self.config.url
        return MeshConfig(
            mesh_id=MESH, url=url, founder_key=self.config.founder_key, certificate=self.config.certificate
        )


@asynccontextmanager
async def founded(folder: Path) -> AsyncGenerator[Stage]:
    """Found a mesh with a server on this machine, which is stopped at the end."""
    founder = Node(folder / "founder", "nod_founder")
    config = await founder.kit.found(MESH, host="127.0.0.1", port=0)
    server = founder.kit.build_server(config)
    try:
        await server.start()
        yield Stage(folder, founder, config, server)
    finally:
        await server.stop()


def _wait_for_end(process: ServerProcess) -> None:
    until_when = time.monotonic() + PATIENCE
    while process.find() is not None:
        assert time.monotonic() < until_when
