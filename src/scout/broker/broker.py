"""The broker: admits callers, runs their requests in transactions, and publishes what was committed."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker import first_start
from scout.broker.delivery.dispatcher import Dispatcher, PreparationFailed
from scout.broker.delivery.terminals import HostProcesses
from scout.broker.effects import family, foreground
from scout.broker.local import LocalScout
from scout.broker.mesh.envelopes import MeshIdentity
from scout.broker.mesh.exchange import EnvelopeExchange
from scout.broker.mesh.outbound import queue_envelopes
from scout.broker.mesh.supervisor import Mesh
from scout.broker.past.archiver import Archiver
from scout.broker.past.feed import HistoryFeed
from scout.broker.people.outbound import queue_chat_posts
from scout.broker.people.schedule_runner import ScheduleRunner
from scout.broker.people.supervisor import Connectors
from scout.broker.routing import attention_items
from scout.broker.routing.routes import wake_agent
from scout.broker.sessions import runtimes
from scout.broker.sessions.after_restart import RestartRecovery
from scout.broker.sessions.harness_checks import HarnessChecks, PlayCheck, play_nothing
from scout.broker.sessions.keep_warm import WarmKeeper
from scout.broker.sessions.screens import ScreenWatch
from scout.broker.transaction import admission
from scout.broker.transaction.admission import Admissions, Admitted
from scout.broker.transaction.cache import Cache
from scout.broker.transaction.call import retry_until_stored
from scout.broker.transaction.services import LiveSettings, Services
from scout.broker.transaction.streams import Hub, Waiters
from scout.broker.transaction.transaction import Transaction
from scout.broker.tree import recovery
from scout.broker.tree.finish import resume_finishes
from scout.broker.tree.merges import Merges
from scout.broker.tree.scan import TreeDiscovery
from scout.broker.tree.spawn import Spawns
from scout.broker.upkeep import housekeeping
from scout.broker.upkeep.housekeeping import DiskCaps
from scout.broker.upkeep.notifier import Notifier
from scout.broker.upkeep.tie_break import TieBreaker
from scout.broker.upkeep.traces import TraceFeed
from scout.model.endpoint import Endpoint
from scout.model.events.asks import DeliveryEvent, FlightEvent
from scout.model.events.directory import (
    AliasEvent,
    GrantEvent,
    NodeEvent,
    NodeRenamed,
    ScheduleEvent,
    TokenEvent,
    TokenExpired,
    TokenRevoked,
    UserEvent,
)
from scout.model.events.envelope import Event
from scout.model.events.event_types import ALL
from scout.model.events.presence import AgentEvent, EndpointEvent, ReachEvent, SessionEvent
from scout.model.events.talk import AttentionCreated, MemberEvent
from scout.model.problems.session import DirectoryNotAllowed
from scout.model.session import SessionOrigin
from scout.model.usage import Counters
from scout.policy.limits import Rules
from scout.policy.tree.projects import ProjectRules
from scout.policy.usage import estimate_tokens
from scout.ports import (
    Blobs,
    Clock,
    Harness,
    Ids,
    Installation,
    KeptRuns,
    Places,
    Router,
    Sink,
    Snapshots,
    Surroundings,
    Telemetry,
    TimeZones,
    TreePorts,
)
from scout.ports.connector import ConnectorKits
from scout.ports.mesh import MeshConfig, MeshKit, MeshLink, NodeKeys
from scout.protocol.agents import Identity
from scout.protocol.overview import Status
from scout.protocol.scout import Credential
from scout.store.database import Database
from scout.store.ledger import Ledger
from scout.store.unit_of_work import UnitOfWork

T = TypeVar("T")
_PROBE_AGAIN = 2.0  # seconds before a harness that could not run is checked again for a request
_NAMING_EVENTS = (AgentEvent, ReachEvent, GrantEvent, AliasEvent)


def _apply_effects(tx: Transaction) -> None:
    """Add what follows from the events of a transaction for parents, people and chats, if there are any."""
    if tx.has_any("children"):
        family.notify_parents(tx)
    if tx.mail_to_people:
        foreground.pass_on_messages(tx)
    if tx.has_any("chats"):
        queue_chat_posts(tx)
    if tx.services.meshed:
        queue_envelopes(tx)


class Broker:
    """One per machine. Construct it, `start` it, then `admit` callers."""

    def __init__(
        self,
        database: Database,
        *,
        rules: Rules,
        roots: tuple[str, ...],
        default_harness: str | None,
        clock: Clock,
        ids: Ids,
        places: Places,
        blobs: Blobs,
        zones: TimeZones,
        harnesses: Mapping[str, Harness],
        version: str,
        sinks: Sequence[Sink] = (),
        allow_root: Callable[[str], None] = lambda _: None,
        read_settings: Callable[[], LiveSettings] | None = None,
        projects: Mapping[str, ProjectRules] | None = None,
        set_project: Callable[[str, str, str], None] = lambda directory, key, value: None,
        add_project: Callable[[str], None] = lambda _: None,
        router: Router | None = None,
        snapshots: Snapshots | None = None,
        runs: KeptRuns | None = None,
        trees: TreePorts | None = None,
        installation: Installation | None = None,
        play_check: PlayCheck | None = None,
        kits: ConnectorKits | None = None,
        mesh: MeshKit | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._database = database
        self.cache = Cache()
        database.undone = self.cache.forget
        self.waiters = Waiters()
        self.services = Services(
            rules=rules,
            roots=roots,
            default_harness=default_harness,
            clock=clock,
            ids=ids,
            places=places,
            blobs=blobs,
            zones=zones,
            harnesses=harnesses,
            version=version,
            read_settings=read_settings or (lambda: LiveSettings(rules, roots, default_harness)),
            projects=projects or {},
            set_project=set_project,
            add_project=add_project,
            is_awaited=self.waiters.is_awaited,
            snapshots=snapshots,
            runs=runs,
            trees=trees,
            installation=installation,
            read_damage=lambda: database.damage,
        )
        self._allow_root = allow_root
        self.hub = Hub(rules.limits.stream_buffer)
        self.dispatcher = Dispatcher(self.services, self._record, self.read, self.glance)
        self.checks = HarnessChecks(play_check or play_nothing, self.waiters)
        self._notifier = Notifier(self.services, sinks, self.as_system, self.read)
        self.warm_keeper = WarmKeeper(self.services, self.as_system, self.read, self.dispatcher)
        self.restart_recovery = RestartRecovery(self.services, self.as_system, self.dispatcher)
        self.tree_discovery = TreeDiscovery(self)
        self.disk_caps = DiskCaps(self)
        self.history = HistoryFeed(self.services.clock, self.read, self.as_system)
        self.archiver = Archiver(database.path, self.read, self.as_system)
        self.traces = TraceFeed(self.services, telemetry, self.read, self.history.catch_up)
        self.spawns = Spawns(self.services)
        self.host_processes = HostProcesses(self)
        self.screens = ScreenWatch(self)
        self.tie_breaker = TieBreaker(self.services, self.as_system, self.read, router)
        self.merges = Merges()
        self.schedules = ScheduleRunner(self)
        self.connectors = Connectors(self, kits)
        self.mesh = Mesh(self, mesh)
        self.mesh.build_exchange = self._build_exchange
        if kits is not None:
            self.services.connectors = tuple(kits.list_known())
        self.signs_of_life: dict[str, Endpoint] = {}
        self.identities: dict[tuple[str | None, ...], Identity] = {}
        self.counts: dict[str, Counters] = {}
        self.refusal_tokens: dict[str, int] = {}
        self._admissions = Admissions()
        self._listeners = self._subscribe()
        self._keeper: asyncio.Task[None] | None = None
        self._probing: asyncio.Task[None] | None = None
        self._probed: dict[str, float] = {}
        self._tally = {"writes": 0, "reads": 0, "refused": 0, "events": 0}

    # -- start and stop -----------------------------------------------------------------------------

    async def start(self, operator_secret: str, login: str, host: str, status: Status) -> None:
        """Load or create the machine's own records, then resume what was running."""
        self.services.status = status
        last = await self.read(lambda ledger: ledger.log.get(ledger.last_seq()))
        if last is not None:
            self.services.ids.continue_after(last.id)
        await self.as_system(lambda tx: first_start.create_first_records(tx, operator_secret, login, host))
        self._probing = asyncio.get_running_loop().create_task(self.probe())  # programs are slow
        await self.tree_discovery.begin()
        await recovery.recover_spawns(self)
        await self.host_processes.begin()
        await self.screens.begin()
        await self.restart_recovery.begin()
        await resume_finishes(self, lambda who: LocalScout(self, who).open_call())
        await self.dispatcher.recover()
        self.dispatcher.runner.compare_recent_files()
        self._notifier.start()
        await self.warm_keeper.check()
        self.schedules.start()
        await self.connectors.begin()
        await self.mesh.begin()
        self.history.start()
        self.traces.start()
        self._keeper = asyncio.get_running_loop().create_task(housekeeping.keep(self, self._check_queues))

    def _check_queues(self) -> None:
        """Look for what is due."""
        for part in (self.dispatcher, self.connectors, self.schedules, self.screens):
            part.check()

    async def probe(self, *, again: bool = False) -> None:
        """Check which harnesses can run here; `again`: only those that could not at the last check."""
        known = self.services.ready
        wanted = [name for name in self.services.harnesses if not again or not known[name].ready]
        await asyncio.gather(*map(self._probe_one, wanted))

    async def _probe_one(self, name: str) -> None:
        self._probed[name] = asyncio.get_running_loop().time()
        self.services.ready[name] = await runtimes.probe_harness(self.services.harnesses[name])

    async def became_ready(self, harness: str) -> bool:
        """Check a harness again that could not run, unless that was checked just now; whether it can run."""
        known = self.services.ready.get(harness)
        if known is None or known.ready:
            return False
        if asyncio.get_running_loop().time() < self._probed.get(harness, 0.0) + _PROBE_AGAIN:
            return False
        await self._probe_one(harness)
        return self.services.ready[harness].ready

    async def wait_for_probe(self) -> None:
        """Wait until the first check of the harnesses is done."""
        if self._probing is not None and not self._probing.done():
            await asyncio.shield(self._probing)

    async def close(self) -> None:
        """End streams and start nothing more. Programs keep running; the owner of the store closes it."""
        self.hub.close()
        first = (self.schedules, self.connectors, self.mesh, self.tree_discovery, self.screens, self.checks)
        then = (self.merges, self.spawns, self._notifier, self.dispatcher, self.tie_breaker)
        for part in (*first, *then, self.traces, self.archiver, self.history):
            await part.close()
        for task in (self._keeper, self._probing):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await housekeeping.flush(self)

    def counters(self) -> dict[str, float]:
        """Return the counters for metrics."""
        return {
            **{f"{name}_total": float(count) for name, count in self._tally.items()},
            "turns_total": float(self.dispatcher.runner.turns),
            "lanes": float(self.dispatcher.lanes),
            "streams": float(len(self.hub)),
            "streams_dropped_total": float(self.hub.dropped),
        }

    # -- the store ---------------------------------------------------------------------------------

    async def read(self, work: Callable[[Ledger], T]) -> T:
        """Run `work` on a reader."""
        signs, node = self.signs_of_life, self.services.node or None
        return await self._database.read(lambda connection: work(Ledger(connection, signs, node=node)))

    def glance(self) -> Ledger:
        """Return a ledger for short reads on the event loop; it sees committed data."""
        return self._open_ledger(self._database.glance())

    def _open_ledger(self, connection: Any, unit: UnitOfWork | None = None) -> Ledger:
        return Ledger(connection, self.signs_of_life, unit, self.services.node or None)

    async def as_system(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction, as the broker itself."""
        return await self.write(admission.admit_system(self.services), work)

    async def _record(self, work: Callable[[Transaction], T]) -> T:
        """Record an outside event, as the broker; on a full disk, retry until there is room."""
        return await retry_until_stored(lambda: self.as_system(work), self.services.rules.back_off)

    async def as_sweeper(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction, as the sweeper."""
        return await self.write(admission.admit_system(self.services, self.services.sweeper_agent), work)

    async def write(
        self,
        who: Admitted,
        work: Callable[[Transaction], T],
        place: Surroundings | None = None,
        *,
        prepares: bool = True,
    ) -> T:
        """Run `work` in a transaction and publish its events once they are on disk.

        `prepares`: the turn that follows from it may be prepared in the same transaction.
        """
        last: list[Transaction] = []  # after a rollback `run` is called again: the last one counts

        def drop() -> None:
            for tx in last:
                self.dispatcher.drop_prepared(tx)

        def run(unit: UnitOfWork) -> T:
            drop()
            ledger = self._open_ledger(unit.connection, unit)
            tx = Transaction(
                self.services, ledger, who.actor, who.caller, here=who.here, place=place, cache=self.cache
            )
            last[:] = [tx]
            return self._run(tx, work, prepares=prepares)

        try:
            result = await self._database.write(run, lambda: self._publish(last[0]), drop)
        except PreparationFailed:
            return await self.write(who, work, place, prepares=False)
        except Refused as refusal:
            if isinstance(refusal.diagnostic, DirectoryNotAllowed) and await self._has_new_roots():
                return await self.write(who, work, place)
            if last and last[0].alarms:
                alarms = last[0].alarms
                await self.as_system(lambda tx: [attention_items.raise_alarm(tx, one) for one in alarms])
            raise
        for root in dict.fromkeys(last[0].new_roots):
            await asyncio.to_thread(self._allow_root, root)
        return result

    def _run(self, tx: Transaction, work: Callable[[Transaction], T], *, prepares: bool) -> T:
        """Run `work` and what follows from it. If that fails, the cache forgets what it learned from it."""
        try:
            result = work(tx)
            if tx.events and tx.actor.agent_id not in self.services.own_agents:
                wake_agent(tx, tx.actor.agent_id, "it was active")
            if tx.events and prepares:
                self.dispatcher.prepare_with_ask(tx)
            if tx.events:
                _apply_effects(tx)
        except BaseException:
            if tx.events:
                self.cache.forget()
            raise
        return result

    async def _has_new_roots(self) -> bool:
        """Whether the settings file allows more folders than when it was last read."""
        known = self.services.roots
        try:
            fresh = await asyncio.to_thread(self.services.reload)
        except Refused:  # a file that cannot be read allows nothing new
            return False
        return any(root not in known for root in fresh.roots)

    def _publish(self, tx: Transaction) -> None:
        """Publish to long polls, listeners and streams, in the order of the log, after the commit."""
        self._tally["events"] += len(tx.events)
        self.cache.make_room()
        new_roots = [root for root in dict.fromkeys(tx.new_roots) if root not in self.services.roots]
        self.services.roots = (*self.services.roots, *new_roots)  # before a program is started in one
        self.dispatcher.adopt_prepared(tx)
        self.waiters.tell(*{event.target for event in tx.events})
        self.call_listeners(tx.events)
        self.hub.publish(tx.events)

    def _build_exchange(self, config: MeshConfig, keys: NodeKeys, link: MeshLink) -> EnvelopeExchange:
        """Return what exchanges envelopes with other nodes over a connection."""
        self.services.shares_attention = config.shares_attention
        return EnvelopeExchange(self, link, MeshIdentity(config.mesh_id, self.services.node_id, keys))

    def renew_listeners(self) -> None:
        """Ask again which events are listened to, after a connector was set up or removed."""
        self._listeners = self._subscribe()

    def call_listeners(self, events: Iterable[Event]) -> None:
        """Call the listeners of each event. An event may come twice, so listeners read the store first."""
        for event in events:
            for listen in self._listeners[event.__class__]:
                listen(event)

    def _subscribe(self) -> dict[type[Event], list[Callable[[Any], None]]]:
        """Return the listeners of each event class, in the order of their calls."""
        found: dict[type[Event], list[Callable[[Any], None]]] = {kind: [] for kind in ALL}
        for listen, kinds in (
            *self.dispatcher.subscriptions(),
            *self.tie_breaker.subscriptions(),
            *self.connectors.subscriptions(),
            *self.mesh.subscriptions(),
            *self.traces.subscriptions(),
            (self._notifier.on_attention, (AttentionCreated,)),
            (self._notify_inbox_of_delivery, (DeliveryEvent,)),
            (self._notify_inbox_of_member, (MemberEvent,)),
            (self._notify_flight_end, (FlightEvent,)),
            (self._forget_acting, _NAMING_EVENTS),
            (self._forget_agent, (AgentEvent,)),
            (self._forget_admissions, (UserEvent, NodeRenamed)),
            (self._forget_identities, (*_NAMING_EVENTS, TokenEvent, EndpointEvent, NodeEvent)),
            (self._on_session, (SessionEvent,)),
            (self.schedules.on_schedule, (ScheduleEvent,)),
            (self.schedules.on_node, (NodeEvent,)),
            (self._end_credential, (TokenRevoked, TokenExpired)),
        ):
            for kind in ALL:
                if issubclass(kind, kinds):
                    found[kind].append(listen)
        return found

    def _forget_acting(self, _: Event) -> None:
        self._admissions.forget_acting()

    def _forget_agent(self, event: AgentEvent) -> None:
        self._admissions.forget(event.payload.record.id)

    def _forget_admissions(self, _: UserEvent | NodeRenamed) -> None:
        self._admissions.forget_all()

    def _forget_identities(self, _: Event) -> None:
        self.identities.clear()

    def _on_session(self, event: SessionEvent) -> None:
        session = event.payload.record
        self.screens.on_session(session)
        if event.payload.move != "observe" or session.origin is SessionOrigin.ENROLLED:
            self.host_processes.on_session(session)  # the process of a turn is none that a person started

    def _end_credential(self, event: TokenRevoked | TokenExpired) -> None:
        self._admissions.forget(event.payload.record.id)
        self.hub.close(event.payload.record.id)

    def _notify_inbox_of_delivery(self, event: DeliveryEvent) -> None:
        self.waiters.tell(f"inbox {event.payload.record.target}")

    def _notify_inbox_of_member(self, event: MemberEvent) -> None:
        self.waiters.tell(f"inbox {event.payload.record.agent_id}")

    def _notify_flight_end(self, event: FlightEvent) -> None:
        """Wake long polls for the end of a flight, also when it waits for an answer."""
        flight = event.payload.record
        if flight.finished_at is not None:
            self.waiters.tell(f"end of {flight.id}", record=flight)
        elif flight.waiting_on is not None:
            self.waiters.tell(f"end of {flight.id}")

    # -- admission ----------------------------------------------------------------------------------

    async def admit(self, credential: Credential) -> LocalScout:
        """Return Scout as the holder of a credential sees it, or refuse."""
        now = self.services.clock.now()
        known = self._admissions.get(credential, now)
        if known is None:
            here = await self._find_surroundings(credential.directory)
            known = await self.read(lambda ledger: admission.admit(self.services, ledger, credential, here))
            self._admissions.keep(credential, known, now)
        return LocalScout(self, admission.check_expiry(known, now))

    def open_chat(self, who: Admitted) -> LocalScout:
        """Return Scout as a person in a chat sees it."""
        return LocalScout(self, who)

    async def _find_surroundings(self, directory: str | None) -> Surroundings | None:
        """Return the project a person works in; None outside of every project."""
        if directory is None:
            return None
        try:
            return await asyncio.to_thread(self.services.places.locate, directory)
        except Refused:
            return None

    def tally(self, name: str) -> None:
        self._tally[name] += 1

    def count(self, agent_id: str, what: str, text: str = "") -> None:
        """Count something that costs an agent tokens; kept in memory until it is reported."""
        counters = self.counts.get(agent_id, Counters())
        self.counts[agent_id] = replace(counters, **{what: getattr(counters, what) + 1})
        self.refusal_tokens[agent_id] = self.refusal_tokens.get(agent_id, 0) + estimate_tokens(text).tokens
