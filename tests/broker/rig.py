"""A broker on a real file, with a clock that a test can move. Nothing of ours is replaced but time."""

import asyncio
import os
import stat
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import pytest

from scout.adapters.command import Command
from scout.adapters.echo import Echo
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.broker.broker import Broker
from scout.broker.local import LocalScout
from scout.broker.upkeep import housekeeping
from scout.daemon.clock import SystemIds
from scout.daemon.time_zones import SystemZones
from scout.model.endpoint import EndpointState, Transport
from scout.model.events.envelope import Event, get_record
from scout.policy.limits import Chats, ExitCheck, Limits, Periods, Routing, Rules
from scout.policy.roles import Roles
from scout.policy.tree.projects import ProjectRules
from scout.ports import Harness, Router, Sink, Snapshots, TreePorts
from scout.ports.connector import ConnectorKits
from scout.ports.mesh import MeshKit
from scout.protocol.access import CreateToken
from scout.protocol.agents import RegisterAgent, Registered
from scout.protocol.asks import FlightView, GetFlight
from scout.protocol.endpoints import RegisterEndpoint
from scout.protocol.inbox import InboxItem, ListInbox
from scout.protocol.log import ReadLog
from scout.protocol.overview import Status
from scout.protocol.request import Request
from scout.protocol.scout import Credential
from scout.store.blobs import FolderBlobs
from scout.store.database import Database
from scout.store.integrity.verify import verify
from scout.tree.place import Disk
from tests.guard import loop_guard

T = TypeVar("T")
SECRET = "sct_the-operators-own"
STATUS = Status(url="http://127.0.0.1:0", socket="/nowhere", pid=1, version="0", node="", home="/nowhere")


class MovedClock:
    """The machine's clock, put forward by as much as a test says."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> Time:
        return Time(time.time_ns() // 1000 + round(self.ahead * 1_000_000))

    def monotonic(self) -> float:
        return time.monotonic()


class Rig:
    """A started broker, and Scout as the operator or an agent sees it."""

    def __init__(self, broker: Broker, clock: MovedClock, home: Path) -> None:
        self.broker = broker
        self.clock = clock
        self.home = home
        self.tokens: dict[str, str] = {}

    async def scout(
        self, secret: str = SECRET, act_as: str | None = None, directory: str | None = None
    ) -> LocalScout:
        return await self.broker.admit(Credential(secret=secret, act_as=act_as, directory=directory))

    async def operator(self, request: Request[T]) -> T:
        return await (await self.scout()).call(request)

    async def register(self, name: str, **more: Any) -> Registered:
        """Register an agent and keep its token."""
        made = await self.operator(RegisterAgent(definition_id=name, **more))
        if made.token is not None:
            self.tokens[name] = made.token
        return made

    async def agent(self, name: str, **more: Any) -> LocalScout:
        """Scout as an agent sees it; the agent is registered first if it is new."""
        if name not in self.tokens:
            made = await self.register(name, **more)
            if made.token is None:
                minted = await self.operator(CreateToken(agent=made.canonical))
                self.tokens[name] = minted.secret
        return await self.scout(self.tokens[name])


# -- running a broker --------------------------------------------------------------------------------


@asynccontextmanager
async def open_rig(
    home: Path,
    *,
    limits: Limits = Limits(),
    periods: Periods = Periods(),
    routing: Routing = Routing(),
    roles: Roles = Roles(),
    exit_check: ExitCheck = "block",
    roots: tuple[str, ...] | None = None,
    harnesses: Mapping[str, Harness] | None = None,
    allow_root: Callable[[str], None] = lambda _: None,
    router: Router | None = None,
    sinks: Sequence[Sink] = (),
    snapshots: Snapshots | None = None,
    trees: TreePorts | None = None,
    projects: Mapping[str, ProjectRules] | None = None,
    kits: ConnectorKits | None = None,
    mesh: MeshKit | None = None,
    is_watched: bool = True,
    chats: Chats = Chats(),
    clock: MovedClock | None = None,
    secret: str = SECRET,
    login: str = "ada",
    host: str = "mini",
) -> AsyncGenerator[Rig]:
    """A broker in a folder. Opened again in the same folder, it continues.

    `is_watched`: nothing may hold up the event loop from now on.
    """
    clock = clock or MovedClock()
    database = Database(home / "scout.db")
    broker = Broker(
        database,
        rules=Rules(
            limits=limits, periods=periods, routing=routing, chats=chats, roles=roles, exit_check=exit_check
        ),
        roots=(str(home),) if roots is None else roots,
        default_harness=None,
        clock=clock,
        ids=SystemIds(),
        places=Disk(home=str(home / "home"), temporary=()),
        blobs=FolderBlobs(home / "blobs", limits.attachment),
        zones=SystemZones(),
        harnesses=harnesses or {"echo": Echo(), "command": Command(home / "sessions")},
        version="0",
        allow_root=allow_root,
        router=router,
        sinks=sinks,
        snapshots=snapshots,
        trees=trees,
        projects=projects,
        kits=kits,
        mesh=mesh,
    )
    try:
        await broker.start(secret, login, host, STATUS)
        with loop_guard.watching() if is_watched else nullcontext():
            yield Rig(broker, clock, home)
    finally:
        await broker.close()
        await database.close()


def run_scene(scene: Callable[[Rig], Awaitable[T]], home: Path, **options: Any) -> T:
    """Run a scene with a broker; replaying the log it leaves must give the same rows."""

    async def play() -> T:
        async with open_rig(home, **options) as made:
            return await scene(made)

    result = asyncio.run(play())
    report = verify(home / "scout.db")
    assert report.clean, report
    return result


def as_test(scene: Callable[[Rig], Awaitable[None]]) -> Callable[[Path], None]:
    """A scene as a test."""

    def test(tmp_path: Path) -> None:
        run_scene(scene, tmp_path)

    test.__name__ = test.__qualname__ = scene.__name__
    test.__module__ = scene.__module__
    return test


async def list_ids(scout: LocalScout, kind: Callable[..., Request[Any]], **more: Any) -> list[str]:
    """The ids that a list shows, read in pages of two."""
    found: list[str] = []
    cursor = None
    while True:
        page = await scout.call(kind(cursor=cursor, limit=2, **more))
        found += [one.id for one in page.items]
        cursor = page.next
        if cursor is None:
            return found


async def expect_refusal(work: Awaitable[object]) -> Any:
    """The diagnostic of a request that must be refused."""
    with pytest.raises(Refused) as caught:
        await work
    return caught.value.diagnostic


async def advance_clock(rig: Rig, seconds: float) -> None:
    """Move the clock forward and do what is due by then."""
    rig.clock.ahead += seconds
    rig.broker.dispatcher.check()
    rig.broker.connectors.check()
    await housekeeping.tidy(rig.broker)


async def wait_until(check: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What a condition gives as soon as it holds; the test fails if it takes too long."""
    end = asyncio.get_running_loop().time() + seconds
    while True:
        found = check()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        assert asyncio.get_running_loop().time() < end, "it did not happen in time"
        await asyncio.sleep(0.005)


# -- agents and programs -----------------------------------------------------------------------------


async def online_agent(rig: Rig, name: str = "live") -> LocalScout:
    """An agent that is online and reads its own inbox."""
    scout = await rig.agent(name)
    await scout.call(RegisterEndpoint(transport=Transport.PULL, state=EndpointState.IDLE))
    return scout


def write_program(home: Path, name: str, text: str) -> tuple[str, ...]:
    """A small program; `$WORK` in it is a folder for what it leaves behind."""
    path = home / f"{name}.sh"
    path.write_text(f"#!/bin/sh\nWORK='{home}'\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return (str(path),)


def processes_with(word: str) -> list[int]:
    """Processes whose command line has a word in it."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                found.append(int(entry.name))
    return found


# -- what happened -----------------------------------------------------------------------------------


async def read_log(rig: Rig, family: str | None = None) -> list[Event]:
    """The whole log."""
    found: list[Event] = []
    after = 0
    while True:
        page = await rig.operator(ReadLog(after=after, family=family, limit=200))
        found += page.items
        if page.next is None:
            return found
        after = int(page.next)


def event_name(event: Event) -> str:
    return str(event.__struct_config__.tag).removeprefix("collab.")


async def list_events(rig: Rig, ident: str, family: str | None = None) -> list[str]:
    """What happened to one record, in order."""
    log = await read_log(rig, family)
    return [event_name(one) for one in log if getattr(get_record(one), "id", None) == ident]


async def wait_for_end(rig: Rig, flight_id: str) -> FlightView:
    """A flight once it has ended. The operator waits for it, so a failure is not announced by a notice."""
    view = await rig.operator(GetFlight(flight_id=flight_id, wait=20))
    assert view.finished_at is not None, view
    return view


async def poll_until_finished(rig: Rig, flight_id: str) -> FlightView:
    """A flight once it has ended, for an asker who does not wait but looks from time to time."""

    async def finished() -> FlightView | None:
        view = await rig.operator(GetFlight(flight_id=flight_id))
        return view if view.finished_at is not None else None

    return await wait_until(finished)


async def inbox_items(rig: Rig, name: str | None = None) -> list[InboxItem]:
    scout = await rig.scout() if name is None else await rig.agent(name)
    return list((await scout.call(ListInbox())).items)


async def inbox_bodies(rig: Rig, name: str | None = None) -> list[str]:
    """The messages that wait in an inbox."""
    return [item.message.body for item in await inbox_items(rig, name) if item.message]
