"""A broker on a real file, with a clock that a test can move. Nothing of ours is replaced but time."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from scout.adapters.command import Command
from scout.adapters.echo import Echo
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.broker.broker import Broker
from scout.broker.local import LocalScout
from scout.daemon.clock import SystemIds
from scout.policy.limits import Limits, Periods, Rules
from scout.protocol.access import CreateToken
from scout.protocol.agents import RegisterAgent, Registered
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


class RandomIds(SystemIds):
    """The daemon's own: in order even within a millisecond."""


class Rig:
    """A started broker and whoever sits at it."""

    def __init__(self, broker: Broker, clock: MovedClock, home: Path) -> None:
        self.broker = broker
        self.clock = clock
        self.home = home
        self.tokens: dict[str, str] = {}

    async def seat(
        self, secret: str = SECRET, act_as: str | None = None, directory: str | None = None
    ) -> LocalScout:
        return await self.broker.admit(Credential(secret=secret, act_as=act_as, directory=directory))

    async def operator(self, request: Request[T]) -> T:
        return await (await self.seat()).call(request)

    async def register(self, name: str, **more: Any) -> Registered:
        """A new agent, whose token is kept."""
        made = await self.operator(RegisterAgent(definition_id=name, **more))
        if made.token is not None:
            self.tokens[name] = made.token
        return made

    async def agent(self, name: str, **more: Any) -> LocalScout:
        """The seat of an agent; entered first if it is new."""
        if name not in self.tokens:
            made = await self.register(name, **more)
            if made.token is None:
                minted = await self.operator(CreateToken(agent=made.canonical))
                self.tokens[name] = minted.secret
        return await self.seat(self.tokens[name])


@asynccontextmanager
async def rig(
    home: Path,
    *,
    limits: Limits = Limits(),
    periods: Periods = Periods(),
    clock: MovedClock | None = None,
    secret: str = SECRET,
    login: str = "ada",
    host: str = "mini",
) -> AsyncGenerator[Rig]:
    """A broker in a folder; opened again in the same folder it goes on."""
    clock = clock or MovedClock()
    database = Database(home / "scout.db")
    broker = Broker(
        database,
        rules=Rules(limits=limits, periods=periods),
        roots=(str(home),),
        default_harness=None,
        clock=clock,
        ids=RandomIds(),
        places=Disk(home=str(home / "home"), temporary=()),
        blobs=FolderBlobs(home / "blobs", limits.attachment),
        harnesses={"echo": Echo(), "command": Command(home / "sessions")},
        version="0",
    )
    try:
        await broker.start(secret, login, host, STATUS)
        with loop_guard.watching():
            yield Rig(broker, clock, home)
    finally:
        await broker.close()
        await database.close()


def played(scene: Callable[[Rig], Awaitable[T]], home: Path, **options: Any) -> T:
    """Run one scene with a broker of its own; what it leaves behind must follow from its log."""

    async def play() -> T:
        async with rig(home, **options) as made:
            return await scene(made)

    result = asyncio.run(play())
    report = verify(home / "scout.db")
    assert report.clean, report
    return result


def staged(scene: Callable[[Rig], Awaitable[None]]) -> Callable[[Path], None]:
    """A scene as a test."""

    def test(tmp_path: Path) -> None:
        played(scene, tmp_path)

    test.__name__ = test.__qualname__ = scene.__name__
    test.__module__ = scene.__module__
    return test


async def refused(work: Awaitable[object]) -> Any:
    """The diagnostic of what must be refused."""
    with pytest.raises(Refused) as caught:
        await work
    return caught.value.diagnostic
