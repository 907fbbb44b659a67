"""The mesh at work: the connection, the heartbeats, what this node tells the others and what they tell it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

from scout.base.refusal import Refused
from scout.broker.mesh import members, mirroring
from scout.broker.mesh.announcer import Announcer
from scout.broker.mesh.founder import Founder
from scout.broker.mesh.refusals import RecordedRefusals
from scout.broker.mesh.server_keeper import ServerKeeper
from scout.broker.mesh.signatures import read_signed, sign_record
from scout.broker.transaction.call import Transactions
from scout.broker.transaction.streams import Subscriptions
from scout.broker.transaction.transaction import Transaction
from scout.model.delivery import back_off
from scout.model.mesh.entry import SIGNED_AS, AgentEntry
from scout.model.mesh.envelope import FORMAT
from scout.model.mesh.member import HEARTBEAT_SIGNED_AS, MEMBER_SIGNED_AS, MemberEntry, NodeHeartbeat
from scout.model.node import Node, NodeState
from scout.model.problems.mesh import MeshUnreachable
from scout.policy.mesh.membership import has_wish, is_member
from scout.ports.mesh import LinkStatus, MeshConfig, MeshDown, MeshKit, MeshLink, MeshServer, NodeKeys
from scout.store.ledger import LAST, Ledger

_LOG = logging.getLogger("scout.mesh")
BEAT = 1.0  # seconds between two heartbeats
LIVES = 3.0  # seconds after which a heartbeat expires
_SILENT = 3.5  # seconds without a heartbeat after which a node is unreachable
_HANDED_OVER = 3.0  # seconds in which an agent that moved is handed over by its old node
_GOODBYE = 3.0  # seconds to tell the others that this node leaves
_MANY = 10_000
_REMOVED = "the founder removed this node from the mesh"


class MeshBroker(Transactions, Protocol):
    """The broker as the mesh needs it."""

    def glance(self) -> Ledger: ...
    def renew_listeners(self) -> None: ...


class EnvelopeTaker(Protocol):
    """What takes envelopes of other nodes and sends those of this one."""

    async def run(self) -> None: ...
    async def take(self, data: bytes) -> bool: ...
    def wake_all(self) -> None: ...
    def subscriptions(self) -> Subscriptions: ...


class _Connected:
    """Everything that exists while this node takes part in a mesh."""

    def __init__(
        self,
        broker: MeshBroker,
        config: MeshConfig,
        keys: NodeKeys,
        link: MeshLink,
        server: MeshServer | None,
        *,
        number: int,
    ) -> None:
        self.config = config
        self.keys = keys
        self.link = link
        self.server = server
        self.announcer = Announcer(broker, link, keys, number)
        self.founder = Founder(broker, config, keys, link, server) if config.founder else None
        self.exchange: EnvelopeTaker | None = None
        self.task: asyncio.Task[None] | None = None


class Mesh:
    """The mesh of this node. `kit` builds its parts and keeps what is stored about it."""

    def __init__(self, broker: MeshBroker, kit: MeshKit | None) -> None:
        self._broker = broker
        self._services = broker.services
        self.kit = kit
        self.problem = ""
        self.now: _Connected | None = None
        self.leaving = False
        self._removed = False  # the founder says that this node is no member any more
        self.wished_name: str | None = None
        # Builds what exchanges envelopes; without it, envelopes wait on the server.
        self.build_exchange: Callable[[MeshConfig, NodeKeys, MeshLink], EnvelopeTaker] | None = None
        self._heard: dict[str, float] = {}  # when each node was heard, by this machine's steady clock
        self._numbers: dict[str, int] = {}
        self._agents: dict[str, int] = {}
        self._number = 0
        self._refusals = RecordedRefusals(broker)
        # Entries of agents that another node lists, and since when: it may hand them over.
        self._claims: dict[str, tuple[mirroring.CheckedEntry, float]] = {}
        self._news = asyncio.Event()  # the connection or a member changed
        self._beat_now = asyncio.Event()  # the connection was made: the others hear of this node at once

    # -- start and stop ----------------------------------------------------------------------------

    async def begin(self) -> None:
        """Start if this node belongs to a mesh. A mesh that cannot start never holds up the daemon."""
        if self.kit is None:
            return
        try:
            config = await asyncio.to_thread(self.kit.read)
            self._services.in_mesh = config is not None
            if config is not None and not config.stopped:
                await self.start(config)
        except Refused as refused:
            self.problem = refused.diagnostic.message
            _LOG.warning("%s", self.problem)

    async def start(self, config: MeshConfig) -> None:
        """Take part in the mesh: start its server if this node runs it, then the connection."""
        assert self.kit is not None
        await self.stop()
        self._removed = await self._broker.read(self._was_removed)
        await self.kit.prepare()
        server = await asyncio.to_thread(self.kit.build_server, config) if config.serves else None
        if server is not None:
            await server.start()
        link = await asyncio.to_thread(self.kit.build_link, config, self._services.node_id)
        keys = self.kit.keys()
        self._number = await asyncio.to_thread(self.kit.begin_numbers)
        self.now = now = _Connected(self._broker, config, keys, link, server, number=self._number)
        if self.build_exchange is not None:
            now.exchange = self.build_exchange(config, keys, link)
        if now.founder is not None:
            await self._renew_own_member(now.founder)
        self.problem = ""
        self._services.in_mesh = True
        self._broker.renew_listeners()
        now.task = asyncio.get_running_loop().create_task(self._run(now))

    async def _renew_own_member(self, founder: Founder) -> None:
        assert self.kit is not None
        login = await asyncio.to_thread(self.kit.login_key)

        def renew(tx: Transaction) -> None:
            members.apply_member(tx, founder.build_own_member(tx, login))

        await self._broker.as_system(renew)
        await founder.set_logins()

    async def stop(self) -> None:
        """Leave the connection; the server keeps running."""
        now, self.now = self.now, None
        if now is None:
            return
        self._broker.renew_listeners()
        if now.task is not None:
            now.task.cancel()
            await asyncio.gather(now.task, return_exceptions=True)
        await now.link.close()
        self._heard.clear()

    async def stop_all(self, config: MeshConfig) -> None:
        """Leave the connection, and stop the server if this node runs it."""
        assert self.kit is not None
        now = self.now
        server = now.server if now is not None else None
        await self.stop()
        if config.serves:
            server = server or await asyncio.to_thread(self.kit.build_server, config)
            await server.stop()

    async def close(self) -> None:
        """Leave the connection. The server keeps running while other nodes use it."""
        now = self.now
        await self.stop()
        if now is not None and now.server is not None:
            status = await now.server.check()
            if status.running and not status.connections:
                await now.server.stop()

    def change_config(self, config: MeshConfig) -> None:
        """Take over a setting that needs no new connection."""
        self._services.shares_attention = config.shares_attention
        if self.now is not None:
            self.now.config = config

    async def say_goodbye(self) -> None:
        """Tell the others that this node leaves; without a connection they notice its silence."""
        if self.now is None:
            return
        self.leaving = True
        try:
            async with asyncio.timeout(_GOODBYE):
                await self.beat_once(self.now)
        except (MeshDown, TimeoutError):
            _LOG.info("left without a goodbye: there is no connection")
        finally:
            self.leaving = False

    async def ask_for_name(self, name: str, patience: float) -> None:
        """Ask the founder for another name, and wait until it is given."""
        self.wished_name = name
        try:
            await self._wait_for(lambda: self._services.node == name, patience)
        finally:
            self.wished_name = None

    async def wait_for_login(self, key: str, patience: float) -> None:
        """Wait until the founder accepts another login key; the heartbeat offers it."""

        def is_accepted() -> bool:
            node = self._broker.glance().get(Node, self._services.node_id)
            return node is not None and node.member is not None and node.member.login_key == key

        await self._wait_for(is_accepted, patience)

    async def _wait_for(self, check: Callable[[], bool], patience: float) -> None:
        url = self.now.config.url if self.now is not None else ""
        try:
            async with asyncio.timeout(patience):
                while not check():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            reason = "the founder of the mesh does not answer"
            raise Refused(MeshUnreachable(url=url, reason=reason)) from None

    async def wait_for_connection(self, patience: float) -> None:
        """Wait for the first connection, for a few seconds at most; without one, the state says why."""
        with suppress(Refused):
            await self._wait_for(lambda: self.status is not None and self.status.connected, patience)

    async def wait_for_founder(self, patience: float) -> None:
        """Wait until the founder and the other members are known, for a few seconds at most."""

        def is_known() -> bool:
            key = self.now.config.founder_key if self.now is not None else ""
            return any(one.public_key == key for one in self._list_nodes() if not one.local)

        with suppress(Refused):
            await self._wait_for(is_known, patience)

    def count_agents(self, node_id: str, *, local: bool) -> int:
        """Return how many agents a node told the others about."""
        if local:
            return self.now.announcer.count if self.now is not None else 0
        return self._agents.get(node_id, 0)

    def subscriptions(self) -> Subscriptions:
        """Return what is listened to: nothing without a mesh."""
        now = self.now
        if now is None:
            return ()
        more = now.exchange.subscriptions() if now.exchange is not None else ()
        return (*now.announcer.subscriptions(), *more)

    def _was_removed(self, ledger: Ledger) -> bool:
        own = ledger.get(Node, self._services.node_id)
        return own is not None and own.member is not None and own.member.removed

    def describe_problem(self) -> str:
        """Return why this node is not connected, or what the mesh cannot do now; empty if all is well."""
        status = self.status
        return _REMOVED if self._removed else (status.problem if status is not None else "") or self.problem

    @property
    def status(self) -> LinkStatus | None:
        return self.now.link.status if self.now is not None else None

    async def _run(self, now: _Connected) -> None:
        work: list[Callable[[], Awaitable[None]]] = [
            lambda: now.link.run(self),
            lambda: self._beat(now),
            now.announcer.run,
            self._watch_nodes,
        ]
        if now.founder is not None:
            founder, kit = now.founder, self.kit
            assert kit is not None
            work.append(lambda: kit.answer_joins(now.config, founder))
        if now.exchange is not None:
            work.append(now.exchange.run)
        if now.server is not None:
            work.append(ServerKeeper(now.server, now.link, self._services.rules.back_off).run)
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(self._keep_trying(one))

    async def _keep_trying(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a part of the mesh again after each failure, with a growing pause."""
        failures = 0
        while True:
            try:
                await work()
                failures = 0
            except MeshDown as down:
                self.problem = down.refused.diagnostic.message if down.refused is not None else down.reason
            except Refused as refused:  # such as a full disk
                self.problem = refused.diagnostic.message
                _LOG.warning("mesh: %s", self.problem)
            except Exception:  # noqa: BLE001 (it is logged, and tried again)
                _LOG.exception("mesh")
            failures += 1
            await asyncio.sleep(min(back_off(failures, self._services.rules.back_off), BEAT))

    # -- telling the others ------------------------------------------------------------------------

    async def _beat(self, now: _Connected) -> None:
        """Publish a heartbeat every second, and one as soon as there is a connection."""
        while True:
            self._beat_now.clear()
            if now.link.status.connected:
                await self.beat_once(now)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._beat_now.wait(), BEAT)

    async def beat_once(self, now: _Connected) -> None:
        """Publish one heartbeat."""
        assert self.kit is not None
        login = await asyncio.to_thread(self.kit.login_key)
        self._number += 1
        beat = NodeHeartbeat(
            node_id=self._services.node_id,
            name=self.wished_name or self._services.node,
            version=self._services.version,
            agents=now.announcer.count,
            paused=self._services.paused is not None,
            shares_attention=now.config.shares_attention,
            login_key=login[0],
            login_proof=login[1],
            leaving=self.leaving,
            number=self._number,
            format=FORMAT,
        )
        await now.link.beat(sign_record(now.keys, HEARTBEAT_SIGNED_AS, beat), LIVES)

    # -- what the connection hands over ------------------------------------------------------------

    async def take_state(self, status: LinkStatus) -> None:
        """The connection was made: tell the others everything again."""
        now = self.now
        if now is None:
            return
        self.problem = status.problem
        self._news.set()
        if status.refused:
            await self._lose_all(status.problem)
        if status.connected:
            self._beat_now.set()
            now.announcer.announce_all()
            if now.exchange is not None:
                now.exchange.wake_all()
            if now.founder is not None:
                await now.founder.publish_members()

    async def take_envelope(self, data: bytes) -> bool:
        now = self.now
        return now is not None and now.exchange is not None and await now.exchange.take(data)

    async def take_member(self, node_id: str, data: bytes | None) -> None:
        """Record what the founder says about a node; nobody else's word counts.

        It is finished even if the connection is lost meanwhile: a node that is removed hears of it only once.
        """
        await asyncio.shield(self._take_member(node_id, data))

    async def _take_member(self, node_id: str, data: bytes | None) -> None:
        now = self.now
        if now is None or data is None:
            return
        member = read_signed(now.keys, now.config.founder_key, MEMBER_SIGNED_AS, data, MemberEntry)
        if member is None or member.node_id != node_id:
            await self._refusals.record(node_id, "its member entry is not signed by the founder of the mesh")
            return
        self._heard.setdefault(node_id, self._monotonic())
        await self._broker.as_system(lambda tx: members.apply_member(tx, member))
        if node_id == self._services.node_id:
            await self._note_own_member(member)
        self._news.set()
        if node_id == self._services.node_id and self.wished_name == member.name:
            self.wished_name = None
            now.announcer.announce_all()

    async def _note_own_member(self, member: MemberEntry) -> None:
        """Give up everything for the other nodes once the founder has removed this one."""
        self._removed = member.removed
        if member.removed:
            self.problem = _REMOVED
            await self._broker.as_system(members.lose_membership)

    async def take_heartbeat(self, node_id: str, data: bytes | None) -> None:
        """Notice that a node is there, or that it is silent."""
        now = self.now
        if now is None or node_id == self._services.node_id or self._removed:
            return
        node = self._broker.glance().get(Node, node_id)
        if data is None:
            # A node that was never heard has just been admitted: `check_nodes` gives it time to connect.
            if node is not None and node.version is not None:
                await self._lose(node_id, "its heartbeat expired")
            return
        if node is None or not is_member(node):
            await self._refusals.record(node_id, "it is no member of the mesh")
            return
        beat = read_signed(now.keys, node.public_key or "", HEARTBEAT_SIGNED_AS, data, NodeHeartbeat)
        if beat is None or beat.node_id != node_id:
            await self._refusals.record(node_id, "its heartbeat is not signed by it")
            return
        if beat.number <= self._numbers.get(node_id, 0):
            return  # a repetition
        self._numbers[node_id] = beat.number
        await self._hear(now, node, beat)

    async def _hear(self, now: _Connected, node: Node, beat: NodeHeartbeat) -> None:
        assert node.member is not None
        self._heard[node.id] = self._monotonic()
        self._services.nodes_heard[node.id] = self._services.clock.now()
        self._services.node_formats[node.id] = beat.format
        self._agents[node.id] = beat.agents
        if beat.leaving:
            await self._broker.as_system(lambda tx: members.leave_node(tx, node.id, "it left the mesh"))
        elif node.state is not NodeState.ONLINE or node.version != beat.version:
            await self._broker.as_system(lambda tx: members.hear_node(tx, node.id, beat.version))
            if now.exchange is not None:
                now.exchange.wake_all()
        if now.founder is not None and has_wish(beat, node.member):
            await now.founder.grant_wish(node, beat)

    async def take_entries(self, entries: Sequence[mirroring.PublishedEntry]) -> None:
        """Store the entries of other nodes' agents."""
        now = self.now
        if now is None:
            return
        others = [one for one in entries if one[0] != self._services.node_id]
        for _, agent_id, data in (one for one in entries if one[0] == self._services.node_id):
            own = read_signed(now.keys, now.keys.public_key, SIGNED_AS, data, AgentEntry) if data else None
            now.announcer.note_own(agent_id, own if own is not None and own.id == agent_id else None)
        if others:
            others = await self._broker.read(lambda ledger: mirroring.drop_known(ledger, others))
        if not others:
            return
        nodes = {one.id: one for one in self._list_nodes()}
        checked = await asyncio.to_thread(mirroring.check_signatures, now.keys, others, nodes)
        await self._store_entries(checked)

    async def _store_entries(self, checked: Sequence[mirroring.CheckedEntry]) -> None:
        result = await self._broker.as_system(lambda tx: mirroring.store_entries(tx, checked))
        for one in result.refused:
            await self._refusals.record(one.node_id, one.problem)
        for one in result.kept:
            self._claims[one.agent_id] = one, self._monotonic()
        claimed = [self._claims.pop(ident)[0] for ident in result.moved if ident in self._claims]
        if claimed:
            await self._store_entries([one._replace(problem="") for one in claimed])

    async def _refuse_claims(self) -> None:
        """Refuse entries of agents that no node has handed over meanwhile."""
        late = self._monotonic() - _HANDED_OVER
        for ident, (claim, since) in list(self._claims.items()):
            if since <= late:
                del self._claims[ident]
                await self._refusals.record(claim.node_id, claim.problem)

    # -- silent nodes ------------------------------------------------------------------------------

    async def _watch_nodes(self) -> None:
        """Notice nodes that are silent, also while this node itself has no connection."""
        while True:
            await self.check_nodes()
            await asyncio.sleep(BEAT / 2)

    async def check_nodes(self) -> None:
        """Record silent nodes and expired invitations, and tell the server what it has not heard."""
        late = self._monotonic() - _SILENT
        for node in self._list_nodes():
            if not node.local and node.state is NodeState.ONLINE:
                heard = self._heard.setdefault(node.id, self._monotonic())
                if heard <= late:
                    await self._lose(node.id, f"no heartbeat for {_SILENT:g} s")
        await self._refuse_claims()
        now = self.now
        if now is not None and now.founder is not None:
            await now.founder.expire_invitations()
            await now.founder.catch_up()

    async def _lose_all(self, reason: str) -> None:
        """Count every node as unreachable at once: the server does not let this one in."""
        for node in self._list_nodes():
            if not node.local:
                await self._lose(node.id, reason)

    async def _lose(self, node_id: str, reason: str) -> None:
        node = self._broker.glance().get(Node, node_id)
        if node is not None and node.state is NodeState.ONLINE:
            await self._broker.as_system(lambda tx: members.lose_node(tx, node_id, reason))

    def _list_nodes(self) -> list[Node]:
        return self._broker.glance().many(Node, "nodes_all", before=LAST, limit=_MANY)

    def _monotonic(self) -> float:
        return self._services.clock.monotonic()
