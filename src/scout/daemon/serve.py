"""The composition root: every part is made and wired here."""

import asyncio
import gc
import getpass
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from uvicorn.loops.auto import auto_loop_factory

from scout import __version__
from scout.adapters.process.run_folders import RunFolders
from scout.adapters.router import ProgramRouter
from scout.adapters.sinks.desktop import Desktop, find_program
from scout.api.app import Application
from scout.base.refusal import Refused
from scout.broker.broker import Broker
from scout.broker.local import LocalScout
from scout.broker.operations.publication import find_publication
from scout.broker.transaction.services import LiveSettings
from scout.daemon.clock import SystemClock, SystemIds
from scout.daemon.connectors import StoredConnectors
from scout.daemon.harnesses import build_harnesses
from scout.daemon.installation import SystemInstallation
from scout.daemon.lazy_a2a import AgentCards, LazyA2a
from scout.daemon.lazy_mcp import LazyMcp
from scout.daemon.mesh import StoredMesh
from scout.daemon.secret_file import (
    read_identity_key,
    read_node_key,
    read_operator_token,
    read_or_make,
    read_page_key,
)
from scout.daemon.server import Server, Tether
from scout.daemon.telemetry import LazyTelemetry, build_telemetry
from scout.daemon.time_zones import SystemZones
from scout.daemon.trial import play_check, remove_trials
from scout.identity.path import AgentPath
from scout.ports import Sink
from scout.protocol.agents import Publication
from scout.protocol.overview import ShowStatus, Status
from scout.protocol.scout import Credential
from scout.settings.edit import add_project, add_root, set_project
from scout.settings.load import load
from scout.settings.record import SETTINGS, Settings, list_values
from scout.store.blobs import FolderBlobs
from scout.store.database import Database
from scout.store.integrity.backup import finish_restore
from scout.store.integrity.damage import check_start
from scout.tree.place import Disk
from scout.tree.snapshots import GitSnapshots
from scout.tree.tree_ports import build_tree_ports
from scout.web.access import PageAccess
from scout.web.app import WebPage

_LOG = logging.getLogger("scout.daemon")


def serve(
    settings: Settings,
    sockets: list[socket.socket],
    url: str,
    ready: Callable[[Status], None],
    *,
    tethered: bool = False,
) -> None:
    """Serve on the open sockets until a signal arrives. `ready` is called once the daemon answers."""
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        runner.run(_serve(settings, sockets, url, ready, tethered))


async def _serve(
    settings: Settings,
    sockets: list[socket.socket],
    url: str,
    ready: Callable[[Status], None],
    tethered: bool,
) -> None:
    ids = SystemIds()
    token = read_operator_token(Path(settings.token), ids.secret)
    read_node_key(Path(settings.node_key))
    store = Path(settings.database)
    finish_restore(store)
    remove_trials(settings)
    check_start(store)
    database = Database(store)
    try:
        access = PageAccess(read_page_key(Path(settings.page_key)), url)
        telemetry = build_telemetry(os.environ, settings.telemetry)
        broker = _build_broker(settings, database, ids, telemetry)
        broker.services.page_url = access.url
        try:
            await broker.start(token, getpass.getuser(), socket.gethostname(), _build_status(settings, url))
            scout = await broker.admit(Credential(secret=token))
            status = await scout.call(ShowStatus())
            tether = scout if tethered else None
            await _listen(
                settings, broker, access, sockets, telemetry, ready=lambda: ready(status), tethered=tether
            )
        finally:
            await broker.close()
    finally:
        await database.close()


async def _listen(
    settings: Settings,
    broker: Broker,
    access: PageAccess,
    sockets: list[socket.socket],
    telemetry: LazyTelemetry | None,
    *,
    ready: Callable[[], None],
    tethered: LocalScout | None,
) -> None:
    """Listen until stopped. `tethered`: stops the sessions when the tether is cut."""
    mcp, a2a = LazyMcp(__version__), LazyA2a()
    application = Application(
        broker,
        version=__version__,
        comment=settings.rules.periods.stream_comment,
        counters=broker.counters,
        hosts=(settings.host, access.host),
        mounts=(mcp, a2a),
        open_surfaces=(_build_cards(broker),),
        page=WebPage(broker, access, settings.rules.periods.browser_session),
    )
    server = Server(application, ready)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, server.stop)
    gc.collect()
    gc.freeze()  # these objects live as long as the daemon: the collector can skip them
    gc.set_threshold(5_000, 50, 50)  # small steps; records have no cycles and are not looked at
    if settings.mcp.preload:
        mcp.begin_when_idle(application.count_requests)
    if telemetry is not None:
        telemetry.begin(application.list_counters)
    tether = Tether(server.stop) if tethered is not None else None
    try:
        await server.serve(sockets)
    finally:
        if tether is not None and tethered is not None:
            await tether.close(tethered, broker.dispatcher.wait_until_idle)
        await mcp.close()
        await a2a.close()
    _LOG.info("stopped")


def _build_cards(broker: Broker) -> AgentCards:
    def find(path: AgentPath) -> Awaitable[Publication | None]:
        return broker.read(lambda ledger: find_publication(ledger, broker.services, path))

    return AgentCards(find, __version__)


def _build_broker(
    settings: Settings, database: Database, ids: SystemIds, telemetry: LazyTelemetry | None
) -> Broker:
    limits, clock = settings.rules.limits, SystemClock()
    return Broker(
        database,
        rules=settings.rules,
        roots=settings.roots,
        default_harness=settings.harness,
        clock=clock,
        ids=ids,
        places=Disk(),
        blobs=FolderBlobs(Path(settings.blobs), limits.attachment, limits.attachments_total),
        zones=SystemZones(),
        harnesses=build_harnesses(settings),
        version=__version__,
        sinks=_build_sinks(settings, ids),
        allow_root=lambda root: _allow(settings, root),
        read_settings=SettingsFile().read,
        projects=settings.projects,
        set_project=lambda directory, key, value: set_project(settings.config, directory, key, value),
        add_project=lambda directory: _record_project(settings, directory),
        router=_build_router(settings),
        snapshots=GitSnapshots(Path(settings.sessions), most=limits.pictures),
        runs=RunFolders(Path(settings.sessions)),
        trees=build_tree_ports(
            Path(settings.home), read_identity_key(Path(settings.identity_key)), settings.environment
        ),
        installation=SystemInstallation(settings.home),
        play_check=lambda wish: play_check(wish, settings),
        kits=StoredConnectors(Path(settings.connectors)),
        mesh=StoredMesh(Path(settings.home) / "mesh", Path(settings.node_key), clock.now),
        telemetry=telemetry,
    )


def _build_sinks(settings: Settings, ids: SystemIds) -> list[Sink]:
    """Return the destinations of notifications. The webhook secret is made with the first webhook."""
    notify = settings.notify
    sinks: list[Sink] = [Desktop()] if notify.desktop and find_program() else []
    if notify.webhooks:
        from scout.adapters.sinks.webhook import Webhook  # noqa: PLC0415 (its library is large, and few need it)

        secret = read_or_make(Path(settings.webhook_secret), ids.secret).strip()
        sinks += [Webhook(url, secret, SystemClock()) for url in notify.webhooks]
    return sinks


def _build_router(settings: Settings) -> ProgramRouter | None:
    """Return the program that breaks ties, if one is set and its command line can be parsed."""
    try:
        return ProgramRouter(settings.router) if settings.router else None
    except ValueError as error:
        _LOG.warning("router disabled: its command line cannot be parsed: %s", error)
        return None


def _allow(settings: Settings, root: str) -> None:
    """Add a root that the operator named to the settings file, where it can be seen and removed."""
    try:
        add_root(settings, root)
    except Refused as refused:
        _LOG.warning("%s is an allowed root only until the daemon stops: %s", root, refused)
    else:
        _LOG.info("added %s to the allowed roots", root)


def _record_project(settings: Settings, directory: str) -> None:
    """Add a project to the settings file, so that its agents are found again without the database."""
    try:
        if add_project(settings.config, directory):
            _LOG.info("added %s to the known projects", directory)
    except Refused as refused:
        _LOG.warning("%s is a known project only until the daemon stops: %s", directory, refused)


def _build_status(settings: Settings, url: str) -> Status:
    return Status(
        url=url,
        socket=settings.socket,
        pid=os.getpid(),
        version=__version__,
        node="",
        home=settings.home,
    )


class SettingsFile:
    """The settings at the start of the daemon, and as they were last read."""

    def __init__(self) -> None:
        self._started = self._last = list_values(load().settings)

    def read(self) -> LiveSettings:
        """Read the settings again. A file with errors is refused and changes nothing."""
        settings = load().settings
        before, self._last = self._last, list_values(settings)
        return LiveSettings(
            rules=settings.rules,
            roots=settings.roots,
            default_harness=settings.harness,
            projects=settings.projects,
            changed=self._list_changed(before, needs_restart=False),
            needs_restart=self._list_changed(self._started, needs_restart=True),
        )

    def _list_changed(self, before: dict[str, object], *, needs_restart: bool) -> tuple[str, ...]:
        return tuple(
            key
            for key, row in SETTINGS.items()
            if row.needs_restart is needs_restart and self._last[key] != before[key]
        )
