"""A fleet of any size at a real server: signed members, heartbeats and directory entries of nodes that do not run."""

import asyncio
import contextlib
import tempfile
import threading
import time
from collections.abc import Coroutine, Generator, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from bench.daemon import Daemon, daemon
from bench.mesh.nodes import Cable, cable, reading, wait_for
from bench.names import name_of
from scout.base.codec import encode
from scout.base.ids import derive_id
from scout.base.time import Time
from scout.broker.mesh.signatures import sign_record
from scout.broker.mesh.supervisor import BEAT, LIVES
from scout.daemon.secret_file import read_node_key
from scout.identity.path import AgentPath
from scout.mesh.buckets import put_key, put_keys
from scout.mesh.connection import Connection, ServerLogin, connect
from scout.mesh.identity_key import IdentityKey
from scout.mesh.names import MeshNames, get_inbox, get_key
from scout.mesh.streams import make_buckets
from scout.model.mesh.entry import SIGNED_AS, AgentEntry, RemoteInstance
from scout.model.mesh.member import HEARTBEAT_SIGNED_AS, MEMBER_SIGNED_AS, MemberEntry, NodeHeartbeat
from scout.model.status import AgentStatus
from scout.ports.mesh import MeshConfig
from tests.mesh.existing import Existing, existing

MESH = "msh_bench"
_BATCH = 1000
_MIRRORED = "SELECT count(*) FROM remote_agents"
T = TypeVar("T")


class FleetNode(NamedTuple):
    """A node of the fleet: what it signs with."""

    id: str
    name: str
    key: IdentityKey


class Fleet:
    """The nodes of a mesh at a server. Everything is published from one thread, the heartbeats steadily."""

    def __init__(self, loop: asyncio.AbstractEventLoop, server: Existing, wire: Cable, nodes: int) -> None:
        self._loop = loop
        self.wire = wire  # between the daemon and the server
        self._names = MeshNames(MESH)
        self._founder = _make_key(0)
        self._server = server
        self._connection: Connection | None = None
        self._beating: Future[None] | None = None
        self.beats = 0
        self.nodes = [_make_node(number) for number in range(nodes)]

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the thread of the fleet."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # -- the daemon that is measured ---------------------------------------------------------------------

    def admit(self, home: Path) -> None:
        """Make the daemon with this home a member: its configuration, and its entry signed by the founder."""
        with daemon(home) as first, reading(first) as store:
            (node_id,) = store.execute("SELECT id FROM nodes").fetchone()
        key = IdentityKey(read_node_key(home / "node.key"))
        self.run(self._put_members([FleetNode(node_id, "measured", key), *self.nodes]))
        config = MeshConfig(
            mesh_id=MESH,
            url=f"nats://127.0.0.1:{self.wire.port}",
            founder_key=self._founder.public_key,
            credentials=self._server.make_credentials("measured"),
        )
        (home / "mesh").mkdir(mode=0o700)
        file = home / "mesh" / "mesh.json"
        file.touch(mode=0o600)
        file.write_bytes(encode(config))

    # -- what the nodes publish --------------------------------------------------------------------------

    async def open(self) -> None:
        login = ServerLogin(
            urls=(self._server.url,),
            name="fleet",
            inbox=get_inbox("fleet"),
            credentials=self._server.make_credentials("fleet"),
        )
        self._connection = await connect(login)
        await make_buckets(self._connection, self._names)

    async def close(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
        if self._connection is not None:
            await self._connection.close()

    async def _put_members(self, nodes: list[FleetNode]) -> None:
        keys = (
            (
                get_key(self._names.members, one.id),
                sign_record(self._founder, MEMBER_SIGNED_AS, self._describe(one)),
            )
            for one in nodes
        )
        assert self._connection is not None
        await put_keys(self._connection, keys)

    def _describe(self, node: FleetNode) -> MemberEntry:
        return MemberEntry(
            node_id=node.id,
            name=node.name,
            public_key=node.key.public_key,
            login_key="",
            login_proof="",
            operator_key=self._founder.public_key,
            admitted_at=_now(),
            updated_at=_now(),
        )

    def publish_agents(self, count: int) -> None:
        """Publish the entries of so many agents, spread over the nodes."""
        for start in range(0, count, _BATCH):
            self.run(self._put_entries(range(start, min(start + _BATCH, count))))

    async def _put_entries(self, numbers: range) -> None:
        assert self._connection is not None
        await put_keys(self._connection, self._sign_entries(numbers))

    def _sign_entries(self, numbers: range) -> Iterator[tuple[str, bytes]]:
        for number in numbers:
            node = self.nodes[number % len(self.nodes)]
            entry = build_agent(node, number)
            yield get_key(self._names.entries, node.id, entry.id), sign_record(node.key, SIGNED_AS, entry)

    def begin_beating(self) -> None:
        """Publish a heartbeat of every node each second, spread over it."""
        self._beating = asyncio.run_coroutine_threadsafe(self._beat(), self._loop)

    async def _beat(self) -> None:
        clock = self._loop.time
        began, pause = clock(), BEAT / len(self.nodes)
        for number in range(2**62):
            await asyncio.sleep(max(0.0, began + number * pause - clock()))
            await self._beat_once(self.nodes[number % len(self.nodes)])
            self.beats += 1

    async def _beat_once(self, node: FleetNode) -> None:
        assert self._connection is not None
        beat = NodeHeartbeat(
            node_id=node.id, name=node.name, version="0", number=int(_now()), login_key="", login_proof=""
        )
        data = sign_record(node.key, HEARTBEAT_SIGNED_AS, beat)
        await put_key(self._connection, get_key(self._names.heartbeats, node.id), data, lives=LIVES)


def build_agent(node: FleetNode, number: int) -> AgentEntry:
    """Return the entry of an agent as a node publishes it."""
    name = name_of(number)
    return AgentEntry(
        id=derive_id("agt", f"fleet{number}"),
        node_id=node.id,
        path=AgentPath(f"/me/agent/{name}"),
        definition_id=name,
        workspace="main",
        description="keeps the tests of this project green",
        status=AgentStatus.ONLINE,
        instances=(RemoteInstance(endpoint_id=derive_id("ept", str(number)), harness="codex", online=True),),
        revision=int(_now()),
        updated_at=_now(),
    )


@contextlib.contextmanager
def fleet(nodes: int) -> Generator[tuple[Fleet, Path]]:
    """A fleet, and the home of a daemon that is a member of its mesh."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder:
        serving = existing(Path(folder) / "server")
        server = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(30)
        with cable(urlsplit(server.url).port or 0) as wire:
            made = Fleet(loop, server, wire, nodes)
            try:
                made.run(made.open())
                home = Path(folder) / "home"
                home.mkdir(mode=0o700)
                made.admit(home)
                yield made, home
            finally:
                made.run(made.close())
                made.run(serving.__aexit__(None, None, None))
                loop.call_soon_threadsafe(loop.stop)
                thread.join(10)
                loop.close()


def find_server() -> Daemon:
    """Return the process of the server, to read what it uses."""
    children = (
        one for file in Path("/proc/self/task").glob("*/children") for one in file.read_text().split()
    )
    (found,) = (one for one in children if "nats-server" in Path(f"/proc/{one}/comm").read_text())
    return Daemon(Path(), int(found), "", "", 0)


def wait_for_mirror(node: Daemon, count: int) -> float:
    """Wait until a daemon has so many agents of other nodes; return the seconds that it took."""
    with reading(node) as store:
        return wait_for(lambda: store.execute(_MIRRORED).fetchone()[0] >= count, 3600)


def _make_node(number: int) -> FleetNode:
    return FleetNode(derive_id("nod", f"fleet{number}"), f"n{number}", _make_key(number + 1))


def _make_key(number: int) -> IdentityKey:
    return IdentityKey(number.to_bytes(32, "big"))


def _now() -> Time:
    return Time(time.time_ns() // 1000)
