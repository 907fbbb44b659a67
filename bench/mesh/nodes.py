"""Nodes of a mesh for one figure: real daemons with their own homes, a real nats-server, and a relay to cut."""

import asyncio
import contextlib
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from bench.daemon import Daemon, daemon
from scout.mesh.invitation import read_line, write_line
from tests.mesh.relay import Relay, relaying

PATIENCE = 300.0  # seconds: a busy machine is no failure
_LOOK = 0.005  # seconds between two looks


def wait_for(check: Callable[[], Any], patience: float = PATIENCE) -> float:
    """Wait until a check is true, and return the seconds that it took."""
    began = time.perf_counter()
    while not check():
        assert time.perf_counter() - began < patience, "it did not happen in time"
        time.sleep(_LOOK)
    return time.perf_counter() - began


def knows(node: Daemon, address: str) -> bool:
    """Whether an address resolves at a node."""
    with contextlib.suppress(AssertionError):
        node.call("GET", f"/v1/resolve?address={address}")
        return True
    return False


def sees(node: Daemon, other: str, state: str) -> bool:
    """Whether a node sees another one in a state."""
    nodes = node.call("GET", "/v1/mesh/nodes")["items"]
    return any((one["name"], one["state"]) == (other, state) for one in nodes)


@contextlib.contextmanager
def founded() -> Generator[Daemon]:
    """A node that founded a mesh; its server is stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder, daemon(Path(folder)) as one:
        one.call("POST", "/v1/mesh/up", {"host": "127.0.0.1"})
        try:
            yield one
        finally:
            one.call("POST", "/v1/mesh/down", {})


@contextlib.contextmanager
def joined(founder: Daemon, name: str, port: int | None = None) -> Generator[Daemon]:
    """Another node of the mesh; `port`: of a relay before the server."""
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder, daemon(Path(folder)) as two:
        line = founder.call("POST", "/v1/mesh/invitations", {"name": name})["line"]
        if port is not None:
            line = write_line(replace(read_line(line), urls=(f"tls://127.0.0.1:{port}",)))
        two.call("POST", "/v1/mesh/join", {"line": line})
        wait_for(lambda: sees(founder, name, "online"))
        yield two


@contextlib.contextmanager
def two_nodes() -> Generator[tuple[Daemon, Daemon]]:
    """The node that founded the mesh, and the node `two`."""
    with founded() as one, joined(one, "two") as two:
        yield one, two


def find_port(founder: Daemon) -> int:
    """Return the port of the server that a node runs."""
    url: str = founder.call("GET", "/v1/mesh")["url"]
    return urlsplit(url).port or 0


def find_server(founder: Daemon) -> int:
    """Return the process id of the server that a node runs."""
    return int(founder.call("GET", "/v1/mesh")["server"]["pid"])


class Cable:
    """A relay between a node and the server, in a thread: what it carries can be stopped in silence."""

    def __init__(self, loop: asyncio.AbstractEventLoop, relay: Relay) -> None:
        self._loop = loop
        self._relay = relay
        self.port = relay.port

    @property
    def carried(self) -> int:
        """Bytes up to now, both ways."""
        return self._relay.carried

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._relay.cut)

    def heal(self) -> None:
        self._loop.call_soon_threadsafe(self._relay.heal)


@contextlib.contextmanager
def cable(port: int) -> Generator[Cable]:
    """A relay before a port of this machine."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    relay = relaying(port)
    try:
        yield Cable(loop, asyncio.run_coroutine_threadsafe(relay.__aenter__(), loop).result(10))
    finally:
        asyncio.run_coroutine_threadsafe(relay.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@contextlib.contextmanager
def reading(node: Daemon) -> Generator[sqlite3.Connection]:
    """The store of a node, to count what no surface counts."""
    connection = sqlite3.connect(f"file:{node.home / 'scout.db'}?mode=ro", uri=True, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def count(store: sqlite3.Connection, query: str) -> int:
    return int(store.execute(query).fetchone()[0])
