"""How long `scout tui` takes to start, beside an interpreter that does nothing: in a terminal of 80×24."""

import fcntl
import os
import pty
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

from bench.daemon import Daemon, fresh
from bench.figure import Figure
from bench.typed import installed_program, plain_environment, run_command

ROUNDS = 7
_SCREEN = b"\x1b[?1049h"  # the application has taken the terminal
_LIVE = b"live"  # it shows what the daemon knows, and follows the log


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """The screen is taken, and the first view is live. Each round starts a bare interpreter, too."""
    rounds = max(round(ROUNDS * scale), 3)
    with fresh() as to:
        to.call("POST", "/v1/agents", {"definitionId": "arc", "harness": "echo"})
        times = [_start(to) for _ in range(rounds + 1)][1:]  # the first reads from the disk
    for name, measured in zip(("bare interpreter", "screen", "live"), zip(*times, strict=True), strict=True):
        yield Figure(name=f"scout tui: {name}", result=statistics.median(measured), unit="ms")


def _start(to: Daemon) -> tuple[float, float, float]:
    """Milliseconds of a bare interpreter, until the screen is taken, and until it is live."""
    environ = {**plain_environment(to), "TERM": "xterm-256color"}
    bare = run_command([sys.executable, "-c", "pass"], environ).wall
    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    began = time.perf_counter()
    process = subprocess.Popen([*installed_program(), "tui"], env=environ, stdin=far, stdout=far, stderr=far)
    os.close(far)
    try:
        taken, live = _read_until(near, began, _SCREEN, _LIVE)
    finally:
        process.send_signal(signal.SIGINT)
        while _read(near):
            pass
        process.wait(30)
        os.close(near)
    return bare, taken, live


def _read_until(near: int, began: float, *marks: bytes) -> list[float]:
    """Milliseconds until each mark was shown."""
    shown, found = b"", list[float]()
    for mark in marks:
        while mark not in shown:
            data = _read(near)
            assert data, f"it ended early: {shown.decode(errors='replace')}"
            shown += data
        found.append(1000 * (time.perf_counter() - began))
    return found


def _read(near: int) -> bytes:
    try:
        return os.read(near, 65536)
    except OSError:
        return b""  # the other side is closed
