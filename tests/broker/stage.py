"""Parts for scenes about asks: programs, a stage with other harnesses, the whole log, bounded waiting."""

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from scout.adapters.command import Command
from scout.adapters.echo import Echo
from scout.broker.broker import Broker
from scout.broker.local import LocalScout
from scout.broker.upkeep import housekeeping
from scout.model.endpoint import EndpointState, Transport
from scout.model.events.envelope import Event, record_of
from scout.policy.limits import Limits, Periods, Routing, Rules
from scout.ports import Harness, Router, Sink, Snapshots
from scout.protocol.asks import FlightView, GetFlight
from scout.protocol.endpoints import RegisterEndpoint
from scout.protocol.inbox import InboxItem, ListInbox
from scout.protocol.overview import ReadLog
from scout.store.blobs import FolderBlobs
from scout.store.database import Database
from scout.tree.place import Disk
from tests.broker.rig import SECRET, STATUS, MovedClock, RandomIds, Rig
from tests.guard import loop_guard


@asynccontextmanager
async def stage(
    home: Path,
    *,
    limits: Limits = Limits(),
    periods: Periods = Periods(),
    roots: tuple[str, ...] | None = None,
    harnesses: Mapping[str, Harness] | None = None,
    allow_root: Callable[[str], None] = lambda _: None,
    routing: Routing = Routing(),
    router: Router | None = None,
    sinks: Sequence[Sink] = (),
    snapshots: Snapshots | None = None,
) -> AsyncGenerator[Rig]:
    """A rig with other harnesses or roots."""
    clock = MovedClock()
    database = Database(home / "scout.db")
    broker = Broker(
        database,
        rules=Rules(limits=limits, periods=periods, routing=routing),
        roots=(str(home),) if roots is None else roots,
        default_harness=None,
        clock=clock,
        ids=RandomIds(),
        places=Disk(home=str(home / "home"), temporary=()),
        blobs=FolderBlobs(home / "blobs", limits.attachment),
        harnesses=harnesses or {"echo": Echo(), "command": Command(home / "sessions")},
        version="0",
        allow_root=allow_root,
        router=router,
        sinks=sinks,
        snapshots=snapshots,
    )
    try:
        await broker.start(SECRET, "ada", "mini", STATUS)
        with loop_guard.watching():
            yield Rig(broker, clock, home)
    finally:
        await broker.close()
        await database.close()


def set_up(scene: Callable[[Rig], Awaitable[None]], home: Path, **options: Any) -> None:
    async def play() -> None:
        async with stage(home, **options) as made:
            await scene(made)

    asyncio.run(play())


async def live(rig: Rig, name: str = "live") -> LocalScout:
    """An agent that is there in person and takes what comes from its inbox."""
    seat = await rig.agent(name)
    await seat.call(RegisterEndpoint(transport=Transport.PULL, state=EndpointState.IDLE))
    return seat


def program(home: Path, name: str, text: str) -> tuple[str, ...]:
    """A small program; `$WORK` in it is a folder for what it leaves behind."""
    path = home / f"{name}.sh"
    path.write_text(f"#!/bin/sh\nWORK='{home}'\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return (str(path),)


async def until(check: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What a condition gives as soon as it holds; a test that waits too long has failed."""
    end = asyncio.get_running_loop().time() + seconds
    while True:
        found = check()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        assert asyncio.get_running_loop().time() < end, "it did not happen in time"
        await asyncio.sleep(0.005)


async def log(rig: Rig, family: str | None = None) -> list[Event]:
    """The whole log."""
    found: list[Event] = []
    after = 0
    while True:
        page = await rig.operator(ReadLog(after=after, family=family, limit=200))
        found += page.items
        if page.next is None:
            return found
        after = int(page.next)


def tag(event: Event) -> str:
    return str(event.__struct_config__.tag).removeprefix("collab.")


async def story(rig: Rig, ident: str, family: str | None = None) -> list[str]:
    """What happened to one record, in order."""
    return [tag(one) for one in await log(rig, family) if getattr(record_of(one), "id", None) == ident]


async def ended(rig: Rig, flight_id: str) -> FlightView:
    """A flight once it is over; it has to be. Who waits for it like this is not told of a failure by notice."""
    view = await rig.operator(GetFlight(flight_id=flight_id, wait=20))
    assert view.finished_at is not None, view
    return view


async def over(rig: Rig, flight_id: str) -> FlightView:
    """The same for somebody who does not wait, only looks."""

    async def is_over() -> FlightView | None:
        view = await rig.operator(GetFlight(flight_id=flight_id))
        return view if view.finished_at is not None else None

    return await until(is_over)


async def said_to(rig: Rig, name: str | None = None) -> list[InboxItem]:
    seat = await rig.seat() if name is None else await rig.agent(name)
    return list((await seat.call(ListInbox())).items)


async def bodies(rig: Rig, name: str | None = None) -> list[str]:
    """What waits in an inbox."""
    return [item.message.body for item in await said_to(rig, name) if item.message]


async def later(rig: Rig, seconds: float) -> None:
    """The clock goes on, and whoever looks at it from time to time looks."""
    rig.clock.ahead += seconds
    rig.broker.dispatcher.check()
    await housekeeping.tidy(rig.broker)


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
