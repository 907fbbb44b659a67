"""kill -9 in the middle of work, again and again: what was acknowledged is there, and nothing is half done."""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scout.daemon import start
from scout.store.integrity.verify import verify
from tests import seeds
from tests.daemon.daemons import Daemon, environment
from tests.soak import Soaked

# A program that says in a file that it ran, once for each time it really did.
PROGRAM = """
import os, sys
body = sys.stdin.read()
name = os.environ["SCOUT_FLIGHT"]
with open(sys.argv[1], "a") as ran:
    ran.write(name + "\\n")
print("done " + name)
"""
SENDERS = 4


class Client(threading.Thread):
    """Sends, asks, claims and acknowledges until told to stop; remembers what it was promised."""

    def __init__(self, number: int, token: str, seed: int) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.token = token
        self.chance = random.Random(seed)
        self.socket = ""
        self.running = threading.Event()
        self.over = False
        self.count = 0
        self.messages: list[str] = []
        self.flights: list[str] = []
        self.acked: list[str] = []

    def run(self) -> None:
        while not self.over:
            self.running.wait(1)
            try:
                self._step()
            except (OSError, ValueError):
                self.running.clear()  # the daemon is gone; wait for the next

    def _step(self) -> None:
        self.count += 1
        body = f"{self.number} {self.count}"
        match self.chance.randrange(8):
            case 0:
                asked = self._call("/v1/asks", {"to": "@runner", "body": body})
                self.flights.append(asked["flightId"])
            case 1:
                asked = self._call("/v1/asks", {"to": "@parrot", "body": body})
                self.flights.append(asked["flightId"])
            case 2:
                claimed = self._call("/v1/inbox/claim", {"limit": 5})
                idents = [item["delivery"]["id"] for item in claimed["items"]]
                if idents:
                    self._call("/v1/inbox/ack", {"deliveryIds": idents})
                    self.acked += idents
            case _:
                other = self.chance.randrange(SENDERS)
                sent = self._call("/v1/messages", {"to": f"@sender{other}", "body": body})
                self.messages.append(sent["messageId"])

    def _call(self, path: str, body: dict[str, Any]) -> Any:
        """One request; only a whole answer counts as an answer."""
        data = json.dumps(body).encode()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(self.socket)
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            head += f"Authorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        top, _, text = answer.partition(b"\r\n\r\n")
        told = json.loads(text)
        if not top.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise ValueError(told)
        return told


def _start(home: Path) -> Daemon:
    running, _ = start.start(str(home), environ=environment(home) | LIMITS, timeout=60)
    return Daemon(home, running)


LIMITS = {
    "SCOUT_LIMITS_OPEN_FLIGHTS": "100000",
    "SCOUT_LIMITS_ASKS_PER_MINUTE": "1000000",
    "SCOUT_LIMITS_WAKES_PER_HOUR": "1000000",
}


def _kills(home: Path, kills: int) -> list[Client]:
    chance = random.Random(seeds.run_seed())
    ran = home.parent / "ran"
    program = home.parent / "program.py"
    program.write_text(PROGRAM)
    (home / "config.toml").write_text(f'roots = ["{home.parent}"]\n')
    daemon = _start(home)
    clients: list[Client] = []
    try:
        wish = {"definitionId": "runner", "command": [sys.executable, str(program), str(ran)]}
        assert daemon.call("POST", "/v1/agents", wish).status == 201
        assert daemon.call("POST", "/v1/agents", {"definitionId": "parrot", "harness": "echo"}).status == 201
        for number in range(SENDERS):
            made = daemon.call("POST", "/v1/agents", {"definitionId": f"sender{number}"})
            clients.append(Client(number, made.json["token"], chance.randrange(1 << 30)))
        for client in clients:
            client.start()
        for _ in range(kills):
            for client in clients:
                client.socket = daemon.running.socket
                client.running.set()
            time.sleep(chance.uniform(0.02, 0.3))  # the moment of the kill is what is random here
            os.kill(daemon.running.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(daemon.running.pid, 0)
            daemon = _start(home)
    finally:
        for client in clients:
            client.over = True
            client.running.set()
        for client in clients:
            client.join(60)
        _settle(daemon, clients)
        start.stop(str(home), timeout=60)
    _check(home, clients, ran)
    return clients


def _settle(daemon: Daemon, clients: list[Client]) -> None:
    """Everything that was promised is found again, and every ask comes to an end."""
    deadline = time.monotonic() + 60
    for client in clients:
        for ident in client.messages:
            assert daemon.call("GET", f"/v1/messages/{ident}").status == 200, ident
        for ident in client.flights:
            while (flight := daemon.call("GET", f"/v1/flights/{ident}?wait=5").json)["state"] in OPEN:
                assert time.monotonic() < deadline, flight
        for ident in client.acked:
            state = daemon.call("GET", f"/v1/deliveries/{ident}").json["state"]
            assert state == "acked", (ident, state)


OPEN = {"queued", "running", "waiting"}


def _check(home: Path, clients: list[Client], ran: Path) -> None:
    report = verify(home / "scout.db")
    assert report.clean, report
    from scout.model.delivery import Delivery
    from scout.store.database import connect
    from scout.store.ledger import Ledger

    runs = Counter(ran.read_text().split()) if ran.exists() else Counter[str]()
    connection = connect(home / "scout.db", readonly=True)
    ledger = Ledger(connection)
    for flight, times in runs.items():
        said = any(one.may_repeat for one in ledger.many(Delivery, "deliveries_of_flight", flight=flight))
        assert times == 1 or said, f"{flight} ran {times} times and nobody said so"
    connection.close()
    assert sum(len(client.messages) for client in clients) > 0


@pytest.mark.rows("R3.4-15", "R3.4-16", "R6-1", "R6-2")
@pytest.mark.first
def test_eight_kills_lose_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    _kills(home, 8)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.rows("R3.4-15", "R3.4-16")
def test_two_hundred_kills_lose_nothing(tmp_path: Path, soaked: Soaked) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    clients = _kills(home, 200)
    soaked(
        kills=200,
        messages=sum(len(client.messages) for client in clients),
        asks=sum(len(client.flights) for client in clients),
        acknowledged=sum(len(client.acked) for client in clients),
    )
    shutil.rmtree(home)
