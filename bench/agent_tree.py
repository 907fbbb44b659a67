"""A tree of a thousand agents, each with a work tree: found again on disk, shown, scanned and compared."""

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.figure import Figure
from scout.adapters.echo import Echo
from scout.base.time import Time
from scout.broker.broker import Broker
from scout.daemon.clock import SystemClock, SystemIds
from scout.daemon.time_zones import SystemZones
from scout.policy.limits import Rules
from scout.policy.tree.projects import ProjectRules
from scout.ports import IdentityFile, TreePorts
from scout.protocol.overview import Status
from scout.protocol.request import Request
from scout.protocol.scout import Credential
from scout.protocol.tree.view import ReconcileTree, ScanTree, ShowTree
from scout.store.blobs import FolderBlobs
from scout.store.database import Database
from scout.tree.place import Disk
from scout.tree.tree_ports import build_tree_ports

AGENTS = 1000
SECRET = "sct_bench"
STATUS = Status(url="", socket="", pid=0, version="0", node="", home="")


def figures(scale: float) -> Iterator[Figure]:
    count = max(1, round(AGENTS * scale))
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder:
        home, root = Path(folder, "home"), Path(folder, "work", "hudson")
        home.mkdir()
        trees = build_tree_ports(home, b"k" * 32)
        _plant(root, trees, count)
        yield from asyncio.run(_measure(home, root, trees, count))


def _plant(root: Path, trees: TreePorts, count: int) -> None:
    """A repository with this many work trees, each with a signed identity."""
    root.mkdir(parents=True)
    git = ("git", "-C", str(root), "-c", "user.name=b", "-c", "user.email=b@b")
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    (root / "read.me").write_text("hello\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    commit = trees.work_trees.find_commit(str(root), "HEAD")
    assert commit is not None
    ids, now = SystemIds().series(), Time(time.time_ns() // 1000)
    parent = _identity(f"agt_{next(ids)}", root, now, path="/me/agent/hudson", birth_branch="main", role="tl")
    trees.folders.prepare(str(root))
    trees.folders.write_identity(str(root), parent)

    def add(number: int, ident: str) -> None:
        name = f"a{number}"
        path = trees.work_trees.add(str(root), f"main.{name}", name, commit).path
        facts = {"path": f"/me/agent/hudson/sub/{number}", "workspace": name, "parent": parent.id}
        child = _identity(ident, root, now, birth_branch=f"main.{name}", **facts)
        trees.folders.write_identity(path, child)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(count), [f"agt_{next(ids)}" for _ in range(count)]))


def _identity(ident: str, root: Path, now: Time, **facts: Any) -> IdentityFile:
    return IdentityFile(id=ident, definition="hudson", project_root=str(root), created_at=now, **facts)


async def _measure(home: Path, root: Path, trees: TreePorts, count: int) -> list[Figure]:
    found: list[Figure] = []
    named = f"{count:,} work trees"

    def show(name: str, seconds: float, goal: float | None = None) -> None:
        found.append(Figure(name=f"{name}, {named}", result=seconds, unit="s", goal=goal))

    broker, database = _open(home, root, trees)
    show("first start without a database", await _time_start(broker))
    tree, seconds = await _time(broker, ShowTree(project_root=str(root)))
    assert len(tree.agents) == count + 1, len(tree.agents)
    show("tree", seconds, goal=15)  # five for the facts, the rest for a busy machine
    read = Figure(name=f"work trees read in that time, of {named}", result=count - tree.unread, unit="trees")
    found.append(read)
    _, seconds = await _time(broker, ScanTree())
    show("scan, all known", seconds)
    compared, seconds = await _time(broker, ReconcileTree())
    assert compared.clean, compared
    show("reconcile, no differences", seconds)
    await broker.close()
    await database.close()
    broker, database = _open(home, root, trees)
    show("start with a database", await _time_start(broker))
    await broker.close()
    await database.close()
    return found


def _open(home: Path, root: Path, trees: TreePorts) -> tuple[Broker, Database]:
    database = Database(home / "scout.db")
    broker = Broker(
        database,
        rules=Rules(),
        roots=(str(root.parent),),
        default_harness=None,
        clock=SystemClock(),
        ids=SystemIds(),
        places=Disk(home=str(home), temporary=()),
        blobs=FolderBlobs(home / "blobs", 1),
        zones=SystemZones(),
        harnesses={"echo": Echo()},
        version="0",
        trees=trees,
        projects={str(root): ProjectRules()},
    )
    return broker, database


async def _time_start(broker: Broker) -> float:
    begun = time.monotonic()
    await broker.start(SECRET, "me", "bench", STATUS)
    return time.monotonic() - begun


async def _time(broker: Broker, request: Request[Any]) -> tuple[Any, float]:
    scout = await broker.admit(Credential(secret=SECRET))
    begun = time.monotonic()
    answer = await scout.call(request)
    return answer, time.monotonic() - begun
