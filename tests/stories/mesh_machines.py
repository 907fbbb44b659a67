"""Two machines on one: two real daemons with their own homes, joined by a real nats-server."""

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scout.daemon.start import find_running, start, stop
from tests.cli.running import Shell
from tests.daemon.daemons import Daemon, eventually


class Machine(Shell):
    """One machine, whose daemon can be killed and started again."""

    def start(self) -> None:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        start(str(self.home), environ=self.environ, timeout=60)

    def stop(self) -> None:
        stop(str(self.home), timeout=60)

    @property
    def pid(self) -> int:
        return int(self.data("status")["pid"])

    def kill(self) -> None:
        """End the daemon without a chance to do anything."""
        kill_process(self.pid)

    def configure(self, text: str) -> None:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.home / "config.toml").write_text(text)

    def find_flight(self, flight_id: str, *states: str) -> Any:
        """The flight once it is in one of these states."""
        return eventually(lambda: self._look(flight_id, states))

    def _look(self, flight_id: str, states: tuple[str, ...]) -> Any:
        found = self._get(f"/v1/flights/{flight_id}")
        return found if found.get("state") in states else None

    def _get(self, path: str) -> dict[str, Any]:
        """What the daemon answers; a wait that types commands would keep the machine busy."""
        running = find_running(str(self.home))
        if running is None or not running.url:
            return {}
        reply = Daemon(self.home, running).call("GET", path, unix=True)
        return reply.json if reply.status == 200 else {}

    def sees(self, node: str, state: str) -> None:
        """Wait until a node is in a state, as this machine sees it."""
        eventually(lambda: self._sees(node, state))

    def _sees(self, node: str, state: str) -> bool:
        nodes = self._get("/v1/mesh/nodes").get("items", [])
        return any((one["name"], one["state"]) == (node, state) for one in nodes)

    def knows(self, address: str) -> None:
        """Wait until an address of the other machine resolves here."""
        eventually(lambda: self._get(f"/v1/resolve?address={quote(address, safe='')}"))


def kill_process(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: _is_dead(pid))


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@contextlib.contextmanager
def two_machines(
    folder: Path, config: str = "", *, guest: bool = False
) -> Generator[tuple[Machine, Machine]]:
    """The machines `one`, which founded the mesh, and `two`; the server listens on loopback."""
    homes = Path(tempfile.mkdtemp(prefix="sct-")).resolve()  # short: a socket's path is
    one, two = Machine(homes / "one"), Machine(homes / "two")
    for machine in (one, two):
        machine.folder.mkdir()
        machine.configure(f"roots = ['{folder}', '{homes}']\n{config}")
        machine.start()
    try:
        one.say("mesh", "up", "--host", "127.0.0.1")
        line = one.data("mesh", "invite", "--name", "two", *(("--guest",) if guest else ()))["line"]
        assert "2 machines" in two.say("mesh", "join", line)
        one.sees("two", "online")
        yield one, two
    finally:
        for machine in (one, two):
            machine.type("mesh", "down")
            machine.stop()
        shutil.rmtree(homes)
