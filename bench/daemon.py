"""A daemon of its own for one figure: a folder, a port of its choice, limits out of the way."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.seed import seed

_FREE = {
    "SCOUT_LIMITS_OPEN_FLIGHTS": "1000000000",
    "SCOUT_LIMITS_ASKS_PER_MINUTE": "1000000000",
    "SCOUT_LIMITS_WAKES_PER_HOUR": "1000000000",
    "SCOUT_LIMITS_RUNNING_TURNS": "1000",
}
_QUIET = 20.0  # milliseconds of processor time in a second
_LONGEST = 300.0  # seconds


@dataclass
class Daemon:
    """A running daemon; `started` is how long it took to its first answer, in seconds."""

    home: Path
    pid: int
    socket: str
    token: str
    started: float

    def call(self, method: str, path: str, body: object = None, token: str | None = None) -> Any:
        """One request, answered as JSON."""
        data = json.dumps(body).encode() if body is not None else b""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.socket)
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            head += f"Authorization: Bearer {token or self.token}\r\nContent-Length: {len(data)}\r\n"
            connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + data)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        top, _, text = answer.partition(b"\r\n\r\n")
        assert top.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")), answer[:500]
        return json.loads(text)

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        kilobytes = next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
        return int(kilobytes) / 1024

    def read_processor_time(self) -> float:
        """Milliseconds of processor time up to now, in all threads."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(one.read_text().split()[0]) for one in threads) / 1e6

    def wait_until_quiet(self) -> None:
        """Wait until it does next to nothing by itself."""
        until = time.monotonic() + _LONGEST
        while time.monotonic() < until:
            before = self.read_processor_time()
            time.sleep(1)
            if self.read_processor_time() - before < _QUIET:
                return
        raise TimeoutError("the daemon is busy")


@contextlib.contextmanager
def daemon(home: Path, **more: str) -> Generator[Daemon]:
    """Start in a folder, which may hold a store already; stop at the end."""
    with running(home, [sys.executable, "-m", "scout.daemon"], **more) as started:
        yield started


@contextlib.contextmanager
def running(home: Path, words: list[str], **more: str) -> Generator[Daemon]:
    """A daemon that these words start; `more`: variables of its environment."""
    environ = {**os.environ, **_FREE, "SCOUT_HOME": str(home), "SCOUT_PORT": "0", **more}
    began = time.perf_counter()
    process = subprocess.Popen(
        [*words, "--announce"],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert "ready" in told, told
        started = Daemon(home, process.pid, told["ready"]["socket"], (home / "token").read_text().strip(), 0)
        started.call("GET", "/v1/status")
        started.started = time.perf_counter() - began
        yield started
    finally:
        process.terminate()
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()


@contextlib.contextmanager
def seeded(*, messages: int = 0, agents: int = 0) -> Generator[Path]:
    """The folder of a daemon that has run once and was filled since."""
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder:
        home = Path(folder)
        with daemon(home):
            pass
        seed(home, messages=messages, agents=agents)
        yield home


@contextlib.contextmanager
def fresh(**more: str) -> Generator[Daemon]:
    """A daemon on an empty store; `more`: variables of its environment."""
    with (
        tempfile.TemporaryDirectory(prefix="scout-bench-") as folder,
        daemon(Path(folder), **more) as started,
    ):
        yield started
