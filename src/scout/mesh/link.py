"""The connection of this node to its mesh: it connects again for ever, and reads the directory each time."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from msgspec.structs import replace

from scout.base.codec import decode
from scout.base.record import Record
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.mesh.buckets import BucketPosition, KeyChange, Take, put_key, put_keys, watch_bucket
from scout.mesh.connection import Connection, ServerLogin, connect
from scout.mesh.envelopes import receive_envelopes
from scout.mesh.names import MeshNames, get_key
from scout.mesh.streams import make_buckets, make_node_stream, remove_node
from scout.model.mesh.entry import SignedEntry
from scout.model.mesh.envelope import ENVELOPE_LIMIT
from scout.model.mesh.member import MemberEntry
from scout.model.problems.request import TooLarge
from scout.ports.mesh import LinkStatus, MeshDown, MeshInlet

_LOG = logging.getLogger("scout.mesh")
_CLOSE = 1.0  # seconds until it is cancelled again
_STABLE = 5.0  # seconds: a connection that ends earlier is like one that failed
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 1.5  # seconds between two attempts to connect


class LinkPlace(Record):
    """Which node of which mesh this is.

    `founder`: it makes the streams of all nodes. `shared`: on an existing server every node may do so.
    """

    mesh_id: str
    node_id: str
    founder: bool = False
    shared: bool = False


class NatsLink:
    """`read_login` is called for each attempt, in a thread: a renewed login key is used at once."""

    def __init__(
        self, place: LinkPlace, read_login: Callable[[], ServerLogin], now: Callable[[], Time]
    ) -> None:
        self._place = place
        self._names = MeshNames(place.mesh_id)
        self._read_login = read_login
        self._now = now
        self._status = LinkStatus(connected=False, since=now(), problem="not connected yet")
        self._connection: Connection | None = None
        self._running: asyncio.Task[None] | None = None
        self._cluster: tuple[str, ...] = ()
        self._entries = BucketPosition()
        self._members = set[str]()
        self._beating = set[str]()
        self._streams = set[str]()

    @property
    def status(self) -> LinkStatus:
        """The state of the connection, with the last round trip."""
        if self._connection is None:
            return self._status
        return replace(self._status, round_trip=self._connection.round_trip)

    # -- receiving -----------------------------------------------------------------------------------

    async def run(self, inlet: MeshInlet) -> None:
        """Connect and receive until cancelled or closed."""
        self._running = asyncio.current_task()
        pause, clock = _FIRST_PAUSE, asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                connection = await self._connect()
            except MeshDown as down:
                await self._report(inlet, down)
            else:
                await self._serve(connection, inlet)
                if clock() - began > _STABLE:
                    pause = _FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _connect(self) -> Connection:
        login = await asyncio.to_thread(self._read_login)
        more = tuple(url for url in self._cluster if url not in login.urls)
        connection = await connect(replace(login, urls=(*login.urls, *more)))
        try:
            await self._prepare(connection)
        except BaseException:
            await connection.close()
            raise
        self._cluster = connection.known_urls
        return connection

    async def _prepare(self, connection: Connection) -> None:
        """Make the streams, where this node may."""
        self._streams.clear()
        if self._place.founder or self._place.shared:
            await make_buckets(connection, self._names)
            await self._make_stream(connection, self._place.node_id)

    async def _serve(self, connection: Connection, inlet: MeshInlet) -> None:
        """Receive until the connection is lost."""
        self._connection = connection
        await self._report(inlet, None)
        # Two tasks and no group: a group that is cancelled while one of them fails loses the cancellation.
        both = [asyncio.create_task(one) for one in (connection.watch(), self._receive(connection, inlet))]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._connection = None
            for one in both:
                one.cancel()
            ended = await asyncio.gather(*both, return_exceptions=True)
            await connection.close()
        await self._report(inlet, _find_cause(ended))

    async def _receive(self, connection: Connection, inlet: MeshInlet) -> None:
        """Read members, heartbeats and the directory, each whole; then envelopes as well."""
        self._members.clear()
        self._beating.clear()
        async with asyncio.TaskGroup() as tasks:

            async def begin(bucket: str, take: Take, position: BucketPosition) -> None:
                synced, node = asyncio.Event(), self._place.node_id
                tasks.create_task(
                    watch_bucket(connection, bucket, node, take, position=position, synced=synced)
                )
                await synced.wait()

            async def take_members(changes: Sequence[KeyChange]) -> None:
                for node, data in changes:
                    await self._take_member(connection, inlet, node, data)

            async def take_heartbeats(changes: Sequence[KeyChange]) -> None:
                for node, data in changes:
                    self._beating.add(node)
                    await inlet.take_heartbeat(node, data)

            async def take_entries(changes: Sequence[KeyChange]) -> None:
                await inlet.take_entries([(*_split_key(key), data) for key, data in changes])

            await begin(self._names.members, take_members, BucketPosition())
            await begin(self._names.heartbeats, take_heartbeats, BucketPosition())
            for node in sorted(self._members - self._beating - {self._place.node_id}):
                await inlet.take_heartbeat(node, None)  # it expired while nobody looked
            await begin(self._names.entries, take_entries, self._entries)
            stream = self._names.get_stream(self._place.node_id)
            tasks.create_task(receive_envelopes(connection, stream, inlet))

    async def _take_member(
        self, connection: Connection, inlet: MeshInlet, node: str, data: bytes | None
    ) -> None:
        removed = data is None or _is_removed(data)
        (self._members.discard if removed else self._members.add)(node)
        if self._place.founder and not removed:
            await self._make_stream(connection, node)
        await inlet.take_member(node, data)

    async def _make_stream(self, connection: Connection, node: str) -> None:
        if node not in self._streams:
            await make_node_stream(connection, self._names, node)
            self._streams.add(node)

    async def _report(self, inlet: MeshInlet, down: MeshDown | None) -> None:
        """Tell the broker about a new state; a repeated attempt with the same result is none."""
        version = self._connection.version if self._connection else None
        connected, problem = down is None, down.reason if down else ""
        if (connected, problem) == (self._status.connected, self._status.problem):
            return
        same = connected == self._status.connected
        since = self._status.since if same else self._now()
        refused = down is not None and down.refused is not None
        self._status = LinkStatus(
            connected=connected, since=since, server_version=version, problem=problem, refused=refused
        )
        await inlet.take_state(self._status)

    # -- sending -------------------------------------------------------------------------------------

    async def publish(self, node_id: str, envelope_id: str, data: bytes) -> None:
        """Store an envelope in the stream of a node."""
        if len(data) > ENVELOPE_LIMIT:
            raise Refused(TooLarge(what="envelope", size=len(data), limit=ENVELOPE_LIMIT))
        subject = self._names.get_envelopes(node_id, self._place.node_id)
        await self._get_connection().store(subject, data, {"Nats-Msg-Id": envelope_id})

    async def beat(self, data: bytes, lives: float) -> None:
        """Publish the heartbeat of this node."""
        key = get_key(self._names.heartbeats, self._place.node_id)
        await put_key(self._get_connection(), key, data, lives=lives)

    async def put_entries(self, entries: Mapping[str, bytes | None]) -> None:
        """Publish entries of own agents."""
        keys = (
            (get_key(self._names.entries, self._place.node_id, agent), data)
            for agent, data in entries.items()
        )
        await put_keys(self._get_connection(), keys)

    async def put_member(self, node_id: str, data: bytes) -> None:
        """Publish a member entry; the stream of the node is made before, or removed with it."""
        connection = self._get_connection()
        removed = _is_removed(data)
        if not removed:
            await self._make_stream(connection, node_id)
        await put_key(connection, get_key(self._names.members, node_id), data)
        if removed:
            self._streams.discard(node_id)
            await remove_node(connection, self._names, node_id)

    async def tell_member(self, node_id: str, data: bytes) -> None:
        """Publish a member entry and leave the streams alone."""
        await put_key(self._get_connection(), get_key(self._names.members, node_id), data)

    def _get_connection(self) -> Connection:
        if self._connection is None:
            raise MeshDown(self._status.problem or "not connected")
        return self._connection

    async def close(self) -> None:
        """Stop receiving, and close the connection."""
        running = self._running
        if running is not None and not running.done() and running is not asyncio.current_task():
            while not running.done():
                running.cancel()
                await asyncio.wait({running}, timeout=_CLOSE)


def _is_removed(data: bytes) -> bool:
    """Whether a member entry says that the node was removed. Only the broker checks who signed it."""
    try:
        return decode(decode(data, SignedEntry).body.encode(), MemberEntry).removed
    except Refused:
        return False


def _split_key(key: str) -> tuple[str, str]:
    node, _, agent = key.partition(".")
    return node, agent


def _find_cause(ended: Sequence[object]) -> MeshDown:
    """Return why two tasks ended; what is no loss of the connection is a fault, and logged."""
    causes = [one for found in ended for one in _list_causes(found)]
    for one in causes:
        if not isinstance(one, MeshDown):
            _LOG.error("the mesh link failed and connects again", exc_info=one)
    lost = [one for one in causes if isinstance(one, MeshDown)]
    return lost[0] if lost else MeshDown(f"internal error: {causes[0]!r}" if causes else "the link ended")


def _list_causes(found: object) -> list[BaseException]:
    if isinstance(found, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", found)
        return [one for inner in group.exceptions for one in _list_causes(inner)]
    if isinstance(found, BaseException) and not isinstance(found, asyncio.CancelledError):
        return [found]
    return []
