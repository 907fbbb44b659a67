"""Machines of a mesh with a network between them that can be cut, lossy or slow: real daemons in namespaces."""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from scout import BlockingScout
from scout.base.refusal import Refused
from scout.daemon.start import find_running
from scout.model.ask import IfUnreachable
from scout.model.events.envelope import Event
from scout.protocol.asks import MakeAsk
from scout.protocol.insight import Why
from scout.protocol.log import ReadLog
from scout.protocol.mesh import ListMeshNodes, ShowMesh
from scout.protocol.request import Request
from scout.protocol.talk import Send
from tests.daemon.daemons import eventually
from tests.mesh.existing import Cluster, cluster
from tests.mesh.history import Told, check_logs, find_missing, find_open, find_unfinished
from tests.mesh.namespaces import Host, network
from tests.stories.mesh_machines import Machine, kill_process

T = TypeVar("T")
_ROOT = Path(__file__).parents[2]
_START = "import sys; from scout.daemon.start import start; start(sys.argv[1], timeout=60)"
_AWAY = ("daemon_unreachable", "busy", "unavailable")
_NAMES = ("one", "two", "three")
_PATIENCE = 90.0  # seconds: a busy machine is no failure
_CONFIG = "[limits]\nasksPerMinute = 10000\nopenFlights = 1000\nmessagesToPersonPerMinute = 10000\n"


@dataclass(frozen=True)
class NetworkMachine(Machine):
    """A machine in a network namespace, whose clock can be wrong. It has the agent `worker-NAME`."""

    name: str = field(kw_only=True)
    host: Host = field(kw_only=True)

    @property
    def environ(self) -> dict[str, str]:
        return {**super().environ, "SCOUT_TEST_CLOCK_FILE": str(self.folder / "clock")}

    def start(self) -> None:
        command = (*self.runner, sys.executable, "-c", _START, str(self.home))
        subprocess.run(command, env=self.environ, capture_output=True, timeout=90, check=True)

    @property
    def pid(self) -> int:
        running = find_running(str(self.home))
        assert running is not None, f"{self.name} has no daemon"
        return running.pid

    def set_clock(self, hours: float) -> None:
        """Let the clock of this machine be ahead, or behind."""
        fresh = self.folder / "clock.new"
        fresh.write_text(str(int(hours * 3600)))
        fresh.replace(self.folder / "clock")

    # -- over HTTP ---------------------------------------------------------------------------------

    @cached_property
    def client(self) -> BlockingScout:
        return BlockingScout(home=self.home, directory=self.folder)

    def insist(self, request: Request[T]) -> T:
        """Make a request until it is answered, also by a daemon that starts meanwhile. Its key makes it one."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return self.client.call(request)
            except Refused as refused:
                if refused.diagnostic.code not in _AWAY or time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def read_log(self) -> list[Event]:
        after, found = 0, list[Event]()
        while True:
            page = self.insist(ReadLog(after=after, limit=200))
            found += page.items
            if page.next is None:
                return found
            after = int(page.next)

    def get_state(self, node: str) -> str:
        """The state of another machine as this one sees it."""
        found = self.insist(ListMeshNodes()).items
        return next((str(one.state) for one in found if one.name == node), "unknown")

    def time_until(self, node: str, state: str) -> float:
        """The seconds until another machine is in a state, as this one sees it."""
        began = time.monotonic()
        eventually(lambda: self.get_state(node) == state, _PATIENCE)
        return time.monotonic() - began

    def time_of_loss(self, node: str) -> float:
        """When this machine recorded that another one is unreachable, in seconds since 1970."""
        eventually(lambda: self.get_state(node) == "unreachable", _PATIENCE)
        found = self.insist(ListMeshNodes()).items
        (since,) = (one.since for one in found if one.name == node)
        assert since is not None
        return since / 1_000_000

    def kill_server(self) -> None:
        """End the server of the mesh without a chance to do anything; one that just ended is started again first."""
        kill_process(eventually(self._find_server, _PATIENCE))

    def _find_server(self) -> int | None:
        server = self.insist(ShowMesh()).server
        return server.pid if server is not None else None

    @property
    def work(self) -> Path:
        """What the program of this machine's agent was given, all of it."""
        return self.folder / "work.txt"


class Fleet:
    """The machines of a mesh, and what their callers were told."""

    def __init__(self, machines: Sequence[NetworkMachine]) -> None:
        self.machines = machines
        self.told = Told()
        self._number = 0

    def heal(self) -> None:
        for one in self.machines:
            one.host.heal()
            one.set_clock(0)

    # -- load --------------------------------------------------------------------------------------

    def send(self, sender: NetworkMachine, receiver: NetworkMachine) -> str:
        """Send a message; it counts when the sender's machine has said so."""
        request = Send(
            to=f"@worker-{receiver.name}", body=self._write("message"), idempotency_key=self._key()
        )
        ident = sender.insist(request).message_id
        self.told.add_message(sender.name, receiver.name, ident)
        return ident

    def ask(self, sender: NetworkMachine, receiver: NetworkMachine) -> str:
        request = MakeAsk(
            to=f"@worker-{receiver.name}",
            body=self._write("ask"),
            if_unreachable=IfUnreachable.QUEUE,
            idempotency_key=self._key(),
        )
        ident = sender.insist(request).flight_id
        self.told.add_flight(sender.name, receiver.name, ident)
        return ident

    def talk(self, sender: NetworkMachine, receiver: NetworkMachine, count: int) -> None:
        """Messages, and an ask after every fifth."""
        for number in range(count):
            self.send(sender, receiver)
            if number % 5 == 0:
                self.ask(sender, receiver)

    @contextmanager
    def talking(self, count: int) -> Generator[None]:
        """All machines talk to each other meanwhile; it ends when they have said everything."""
        pairs = [(one, two) for one in self.machines for two in self.machines if one is not two]
        with ThreadPoolExecutor(len(pairs)) as pool:
            talks = [pool.submit(self.talk, *pair, count) for pair in pairs]
            yield
            for one in talks:
                one.result(_PATIENCE)

    @contextmanager
    def repeating(self) -> Generator[None]:
        """Every envelope is published twice meanwhile, and several in the wrong order."""
        founder = self.machines[0]
        command = (*founder.runner, sys.executable, "-m", "tests.mesh.repeater", str(founder.home))
        with subprocess.Popen(
            command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as running:
            try:
                assert running.stdout is not None
                assert running.stdout.readline() == b"connected\n"
                yield
            finally:
                running.kill()

    def _write(self, what: str) -> str:
        self._number += 1
        return f"{what} {self._number:06d}."

    def _key(self) -> str:
        return f"fleet-{self._number}"

    # -- the end -----------------------------------------------------------------------------------

    def settle(self) -> float:
        """Wait until everything has arrived and every envelope has ended; return the seconds."""
        began = time.monotonic()
        eventually(self._is_settled, _PATIENCE)
        return time.monotonic() - began

    def _is_settled(self) -> bool:
        logs = self._read_logs()
        messages = self.told.messages.items()
        flights = self.told.flights.items()
        return (
            not any(find_open(log) for log in logs.values())
            and not any(find_missing(logs[to], idents) for (_, to), idents in messages)
            and not any(find_unfinished(logs[one], idents) for nodes, idents in flights for one in nodes)
        )

    def _read_logs(self) -> dict[str, list[Event]]:
        return {one.name: one.read_log() for one in self.machines}

    def check(self) -> None:
        """Nothing lost, doubled or out of order, each explained on both sides, and each store is whole."""
        check_logs(self._read_logs(), self.told)
        by_name = {one.name: one for one in self.machines}
        for here, there, ident in self.told.all:
            for name, other in ((here, there), (there, here)):
                explained = by_name[name].insist(Why(id=ident))
                assert f"node {other}" in explained.says, (name, ident, explained.says)
        for one in self.machines:
            self._check_work(one)

    def _check_work(self, machine: NetworkMachine) -> None:
        """The program was given each ask once."""
        asked = sum(len(idents) for (_, to), idents in self.told.flights.items() if to == machine.name)
        given = re.findall(r"ask \d+\.", machine.work.read_text())
        assert len(given) == len({*given}) == asked, (machine.name, sorted(given))


@contextmanager
def _folder() -> Generator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sct-")).resolve()  # short: a socket's path is
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _machines(folder: Path, hosts: Sequence[Host]) -> Generator[list[NetworkMachine]]:
    """Machines with a daemon and an agent each; the daemons are gone at the end."""
    with ExitStack() as stack:
        machines = [
            NetworkMachine(folder / name, host.runner, name=name, host=host)
            for name, host in zip(_NAMES, hosts, strict=False)
        ]
        for one in machines:
            stack.enter_context(_running(one))
        yield machines


@contextmanager
def _running(machine: NetworkMachine) -> Generator[None]:
    machine.folder.mkdir()
    machine.configure(f"roots = ['{machine.folder}']\n{_CONFIG}")
    program = machine.folder / "work.sh"
    program.write_text(f"#!/bin/sh\ntee -a '{machine.work}'\n")
    program.chmod(0o755)
    machine.work.touch()
    machine.start()
    try:
        worker = ("agent", "register", f"worker-{machine.name}", "--harness", "command")
        machine.say(*worker, "--command", str(program))
        yield
    finally:
        machine.host.heal()
        if find_running(str(machine.home)) is None:
            machine.start()
        machine.type("down", "--stop")
        machine.client.close()
        machine.stop()


@contextmanager
def fleet(size: int = 2) -> Generator[Fleet]:
    """A mesh of so many machines; the first one founded it and runs its server."""
    with network(size) as hosts, _folder() as folder, _machines(folder, hosts) as machines:
        machines[0].say("mesh", "up", "--host", machines[0].host.address)
        yield _gather(machines, {})


@contextmanager
def clustered_fleet() -> Generator[tuple[Fleet, Cluster]]:
    """Two machines in a mesh on a cluster of three servers, which they are told about with credentials."""
    with (
        network(5) as hosts,
        _folder() as folder,
        cluster(folder / "cluster", hosts[2:]) as servers,
        _machines(folder, hosts[:2]) as machines,
    ):
        credentials = {one.name: servers.make_credentials(one.name) for one in machines}
        first = machines[0]
        eventually(
            lambda: first.type(*_join(servers.url, credentials[first.name])).returncode == 0, _PATIENCE
        )
        yield _gather(machines, credentials), servers


def _gather(machines: Sequence[NetworkMachine], credentials: Mapping[str, str]) -> Fleet:
    """Let the others join the mesh of the first machine."""
    founder, *others = machines
    founder.say("mesh", "rename", founder.name)
    for one in others:
        line = founder.data("mesh", "invite", "--name", one.name)["line"]
        one.say(*_join(line, credentials.get(one.name)))
    _meet(machines)
    return Fleet(machines)


def _join(line: str, credentials: str | None) -> tuple[str, ...]:
    return ("mesh", "join", line, *(("--creds", credentials) if credentials else ()))


def _meet(machines: Sequence[NetworkMachine]) -> None:
    """Wait until every machine knows every other and its agent."""
    for one in machines:
        for other in machines:
            if one is not other:
                one.time_until(other.name, "online")
                one.knows(f"@worker-{other.name}")
