"""`python -m bench.trace`: the files and rooms that one warm `scout ask` to a command agent goes through.

A room is a top-level package of `scout`; a change is two successive calls of one thread in different rooms. The
command and the daemon are counted together.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

from bench.daemon import Daemon, running

FILES = 80
CHANGES = 400
_WAIT = 30.0


class Walk(NamedTuple):
    """What both processes went through."""

    files: list[str]
    changes: int


def walk() -> Walk:
    """Ask once to warm up, then once more while it is recorded."""
    with tempfile.TemporaryDirectory(prefix="scout-trace-") as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        seen = Path(folder) / "daemon.marked"
        with running(home, [sys.executable, "-m", "bench.traced", str(seen), "scout.daemon"]) as daemon:
            program = {"harness": "command", "command": ["tr", "a-z", "A-Z"]}
            daemon.call("POST", "/v1/agents", {"definitionId": "upper", **program})
            _ask(home, Path(folder) / "warm")
            with _marked(daemon, seen):
                command = _ask(home, Path(folder) / "command")
            found = json.loads(seen.read_text())
    files = {*command["files"], *found["files"]}
    return Walk(sorted(files), command["changes"] + found["changes"])


def _ask(home: Path, seen: Path) -> dict[str, Any]:
    """Type `scout ask @upper hi`; its own part of the walk."""
    words = [sys.executable, "-m", "bench.traced", str(seen), "scout", "ask", "@upper", "hi"]
    environ = {**os.environ, "SCOUT_HOME": str(home)}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=_WAIT, check=True)
    assert done.stdout.strip() == "HI", done
    return json.loads(seen.read_text())


@contextlib.contextmanager
def _marked(daemon: Daemon, seen: Path) -> Generator[None]:
    os.kill(daemon.pid, signal.SIGUSR1)
    daemon.call("GET", "/v1/status")  # the mark is set once this is answered
    yield
    os.kill(daemon.pid, signal.SIGUSR1)
    until = time.monotonic() + _WAIT
    while not seen.exists() and time.monotonic() < until:
        daemon.call("GET", "/health")


def main() -> int:
    found = walk()
    print("\n".join(found.files))
    print(f"\nfiles: {len(found.files)} (goal at most {FILES})")
    print(f"changes of room: {found.changes} (goal at most {CHANGES})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
