"""Two real brokers joined by a wire in this process, which can lose, repeat, reorder and delay envelopes."""

import asyncio
import random
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from scout.base.time import Time
from scout.broker.mesh.envelopes import MeshIdentity
from scout.broker.mesh.exchange import EnvelopeExchange
from scout.broker.transaction.transaction import Transaction
from scout.mesh.identity_key import IdentityKey
from scout.model.agent import Agent
from scout.model.endpoint import Endpoint
from scout.model.events.directory import NODE_EVENTS, NodeCreated
from scout.model.mesh.envelope import FORMAT
from scout.model.mesh.member import MemberEntry, MemberRelation
from scout.model.node import Node, NodeMove, move_node
from scout.model.remote_agent import build_entry, find_node_owner
from scout.model.status import get_status
from scout.ports.mesh import LinkStatus, MeshDown, MeshInlet
from scout.store.integrity.verify import verify
from scout.store.ledger import LAST
from tests.broker.rig import MovedClock, Rig, open_rig, wait_until

MESH = "mesh-of-tests"


class Faults:
    """What goes wrong on a wire: each is the share of envelopes that it happens to."""

    def __init__(self, seed: int = 1, *, lost: float = 0.0, repeated: float = 0.0, late: float = 0.0) -> None:
        self.random = random.Random(seed)
        self.lost, self.repeated, self.late = lost, repeated, late


class Wire:
    """The streams of both nodes. What is not taken is offered again, as the server does."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.cut = False
        self.passing = asyncio.Event()  # while it is not set, what is being published hangs
        self.passing.set()
        self.begun = 0  # how many were to be published
        self.inlets: dict[str, EnvelopeExchange] = {}
        self.streams: dict[str, list[bytes]] = {}
        self.published: list[tuple[str, str]] = []
        self._stored: set[tuple[str, str]] = set()
        self._news = asyncio.Event()

    def store(self, node_id: str, envelope_id: str, data: bytes) -> None:
        """Keep an envelope for a node, each id once, as the server does; a faulty one says so and loses it."""
        if self.cut:
            raise MeshDown("the wire is cut")
        self.published.append((node_id, envelope_id))
        chance = self.faults.random.random
        if chance() < self.faults.lost or (node_id, envelope_id) in self._stored:
            return
        self._stored.add((node_id, envelope_id))
        stream = self.streams.setdefault(node_id, [])
        for _ in range(2 if chance() < self.faults.repeated else 1):
            at = self.faults.random.randrange(len(stream) + 1) if chance() < self.faults.late else len(stream)
            stream.insert(at, data)
        self._news.set()

    def connect(self, node_id: str, exchange: EnvelopeExchange) -> None:
        self.inlets[node_id] = exchange
        self._news.set()

    def disconnect(self, node_id: str) -> None:
        self.inlets.pop(node_id, None)

    async def run(self) -> None:
        """Hand over what is stored, until cancelled."""
        while True:
            self._news.clear()
            moved = False
            for node_id, exchange in list(self.inlets.items()):
                stream = [] if self.cut else self.streams.pop(node_id, [])
                taken = [
                    one is True  # a node that is killed meanwhile has not taken it
                    for one in await asyncio.gather(*map(exchange.take, stream), return_exceptions=True)
                ]
                held = [data for data, is_taken in zip(stream, taken, strict=True) if not is_taken]
                if held:
                    self.streams[node_id] = [*held, *self.streams.get(node_id, [])]
                moved = moved or any(taken)
            if not moved:
                try:
                    async with asyncio.timeout(0.02):
                        await self._news.wait()
                except TimeoutError:
                    continue


class WireLink:
    """The link of one node."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.dead = False
        self.status = LinkStatus(connected=True, since=Time(0))

    async def run(self, inlet: MeshInlet) -> None:
        await asyncio.Event().wait()

    async def publish(self, node_id: str, envelope_id: str, data: bytes) -> None:
        await asyncio.sleep(0)
        self._wire.begun += 1
        await self._wire.passing.wait()
        if self.dead:
            raise MeshDown("the process has ended")
        self._wire.store(node_id, envelope_id, data)

    async def beat(self, data: bytes, lives: float) -> None: ...
    async def put_entries(self, entries: Mapping[str, bytes | None]) -> None: ...
    async def put_member(self, node_id: str, data: bytes) -> None: ...
    async def tell_member(self, node_id: str, data: bytes) -> None: ...
    async def close(self) -> None: ...


class CountingKey(IdentityKey):
    """A real key that counts what it signs and verifies."""

    def __init__(self, private: bytes) -> None:
        super().__init__(private)
        self.signed = self.verified = 0

    def sign(self, data: bytes) -> str:
        self.signed += 1
        return super().sign(data)

    def verify(self, public_key: str, data: bytes, signature: str) -> bool:
        self.verified += 1
        return super().verify(public_key, data, signature)


class Side:
    """One node of the pair."""

    def __init__(self, name: str, home: Path, key: CountingKey) -> None:
        self.name, self.home, self.key = name, home, key
        self.clock = MovedClock()
        self.format = FORMAT
        self.rig: Rig
        self.exchange: EnvelopeExchange
        self._stop: list[Callable[[], Awaitable[None]]] = []
        self._options: dict[str, Any] = {}

    @property
    def node_id(self) -> str:
        return self.rig.broker.services.node_id

    async def open(self, wire: Wire, **options: Any) -> None:
        self._options = options
        context = open_rig(self.home, clock=self.clock, host=self.name, is_watched=False, **options)
        self.rig = await context.__aenter__()
        link, identity = WireLink(wire), MeshIdentity(MESH, self.node_id, self.key)
        broker = self.rig.broker
        self.exchange = exchange = EnvelopeExchange(broker, link, identity)
        broker.mesh.subscriptions = exchange.subscriptions  # the wire stands for the connection of a mesh
        broker.renew_listeners()
        running = asyncio.get_running_loop().create_task(exchange.run())
        wire.connect(self.node_id, exchange)

        async def close() -> None:
            link.dead = True
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await context.__aexit__(None, None, None)

        self._stop = [close]

    async def close(self) -> None:
        while self._stop:
            await self._stop.pop()()

    async def crash(self, wire: Wire) -> None:
        """Continue with what is on disk now: what only the process knew is lost, as after kill -9."""
        wire.disconnect(self.node_id)
        before = self.home
        self.home = before.with_name(f"{self.name}-{len(list(before.parent.iterdir()))}")
        await self.rig.broker.as_system(lambda _: shutil.copytree(before, self.home))
        await self.close()
        tokens, formats = self.rig.tokens, self.rig.broker.services.node_formats
        await self.open(wire, **self._options)
        self.rig.tokens = tokens
        self.rig.broker.services.node_formats.update(formats)

    def hear(self, other: "Side") -> None:
        """What a heartbeat of the other node says about its envelopes."""
        self.rig.broker.services.node_formats[other.node_id] = other.format

    def meet(
        self, other: "Side", relation: MemberRelation = MemberRelation.OWN
    ) -> Callable[[Transaction], None]:
        """What this node knows of the other: its record, and that the founder admitted it."""

        def record(tx: Transaction) -> None:
            member = MemberEntry(
                node_id=other.node_id,
                name=other.name,
                public_key=other.key.public_key,
                login_key="",
                login_proof="",
                relation=relation,
                operator_key=other.key.public_key,
                admitted_at=tx.now,
                updated_at=tx.now,
            )
            node = Node(
                id=other.node_id,
                created_at=tx.now,
                updated_at=tx.now,
                name=other.name,
                public_key=member.public_key,
                member=member,
                guest_key=member.operator_key if relation is MemberRelation.GUEST else None,
                last_seen=tx.now,
            )
            tx.record(NodeCreated, node, move="create")

        return record

    async def show(self, other: "Side", address: str) -> str:
        """Let the other node list an agent of this one; return its id."""
        agents = self.rig.broker.glance().many(Agent, "agents_all", before=LAST, limit=200)
        found = next(one for one in agents if address in (one.definition_id, str(one.path)))
        return await self.list_agent(other, found)

    async def list_agent(self, other: "Side", agent: Agent) -> str:
        endpoints = self.rig.broker.glance().many(Endpoint, "endpoints_of", agent=agent.id)
        now = self.clock.now()
        entry = build_entry(
            agent,
            endpoints,
            get_status(agent, endpoints, now),
            node_id=self.node_id,
            revision=1,
            now=now,
            within=90.0,
        )
        node = other.rig.broker.glance().get(Node, self.node_id)
        assert node is not None
        owner = find_node_owner(node, other.rig.broker.services.operator)

        def write(tx: Transaction) -> None:
            tx.ledger.list_sender(entry, owner)
            tx.services.meshed = True
            tx.cache.forget_remote([agent.id])

        await other.rig.broker.as_system(write)
        return agent.id

    async def move(self, other: "Side", step: NodeMove) -> None:
        """Record that the other node was lost or is back."""

        def record(tx: Transaction) -> None:
            node = tx.need(Node, "node", other.node_id)
            tx.record(NODE_EVENTS[step], move_node(node, step, tx.now), move=step)

        await self.rig.broker.as_system(record)


class Pair:
    """Two nodes, `one` and `two`, and the wire between them."""

    def __init__(self, home: Path) -> None:
        self.wire = Wire()
        self.one = Side("one", home / "one", CountingKey(b"1" * 32))
        self.two = Side("two", home / "two", CountingKey(b"2" * 32))

    @property
    def sides(self) -> Sequence[Side]:
        return (self.one, self.two)


@asynccontextmanager
async def open_pair(
    home: Path,
    *,
    relation: MemberRelation = MemberRelation.OWN,
    formats: tuple[int, int] = (FORMAT, FORMAT),
    **options: Any,
) -> AsyncGenerator[Pair]:
    """Open both nodes; `formats`: which envelopes `one` and `two` can read, as their heartbeats would say."""
    pair = Pair(home)
    pair.one.format, pair.two.format = formats
    for side in pair.sides:
        side.home.mkdir(exist_ok=True, parents=True)
        await side.open(pair.wire, **options)
    running = asyncio.get_running_loop().create_task(pair.wire.run())
    for side, other in (pair.sides, reversed(pair.sides)):
        await side.rig.broker.as_system(side.meet(other, relation))
        side.hear(other)
    try:
        yield pair
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for side in pair.sides:
            await side.close()


def run_pair(scene: Callable[[Pair], Awaitable[None]], home: Path, **options: Any) -> None:
    """Run a scene with two nodes; replaying each log must give the same rows."""

    async def play() -> None:
        async with open_pair(home, **options) as pair:
            await scene(pair)

    asyncio.run(play())
    for folder in home.iterdir():
        report = verify(folder / "scout.db")
        assert report.clean, report


__all__ = ["Faults", "Pair", "Side", "Wire", "open_pair", "run_pair", "wait_until"]
