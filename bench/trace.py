"""`python -m bench.trace [--calls]`: the files and rooms that one warm `scout ask` to a command agent passes.

A room is a top-level package of `scout`. A change of room is two successive calls of one thread in different
rooms. The command and the daemon are counted together.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.daemon import Daemon, running

FILES = 80
CHANGES = 400
CALLS = 2000
_WAIT = 30.0
_TRIES = 30
_BESIDE = (
    "broker/upkeep/housekeeping.py",
    "broker/past/feed.py",
    "broker/people/schedule_runner.py",
    "tree/",  # the caller's folder is looked at again after two seconds, which a busy machine may take
)  # rounds that may fall into an ask
_CHECKPOINTER = ("store/database.py", "Database.__init__.<locals>.<lambda>")  # called only in its thread


class Call(NamedTuple):
    """A call of one function, in one thread of the command or of the daemon."""

    thread: str
    file: str
    function: str

    @property
    def room(self) -> str:
        return self.file.partition("/")[0]


class Walk(NamedTuple):
    """The calls of one ask: those of the command, then those of the daemon."""

    calls: list[Call]

    @property
    def files(self) -> list[str]:
        return sorted({call.file for call in self.calls})

    @property
    def changes(self) -> int:
        by_thread = itertools.groupby(
            sorted(self.calls, key=lambda call: call.thread), lambda call: call.thread
        )
        return sum(
            before.room != after.room for _, calls in by_thread for before, after in itertools.pairwise(calls)
        )


def record_walk() -> Walk:
    """Ask twice to warm up, then again until an ask is recorded with nothing else beside it."""
    with tempfile.TemporaryDirectory(prefix="scout-trace-") as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        marked = Path(folder) / "daemon.marked"
        with running(home, [sys.executable, "-m", "bench.traced", str(marked), "scout.daemon"]) as daemon:
            program = {"harness": "command", "command": ["tr", "a-z", "A-Z"]}
            daemon.call("POST", "/v1/agents", {"definitionId": "upper", **program})
            for _ in range(2):  # the first one starts a session, the second one resolves the name with it
                _ask(home, Path(folder) / "warm")
            for _ in range(_TRIES):
                walk = _record_ask(daemon, marked)
                if not any(call.file.startswith(_BESIDE) for call in walk.calls):
                    return walk
            raise RuntimeError("no ask without a round of other work beside it")


def _record_ask(daemon: Daemon, marked: Path) -> Walk:
    os.kill(daemon.pid, signal.SIGUSR1)
    command = _ask(daemon.home, marked.with_name("command"))
    os.kill(daemon.pid, signal.SIGUSR1)
    until = time.monotonic() + _WAIT
    while not marked.exists() and time.monotonic() < until:
        daemon.call("GET", "/health")  # a loop that waits for the network sees no signal
    served = _read_calls(marked, "daemon")
    marked.unlink()
    checkpoints = {call.thread for call in served if (call.file, call.function) == _CHECKPOINTER}
    return Walk([*command, *(call for call in served if call.thread not in checkpoints)])


def _ask(home: Path, stored: Path) -> list[Call]:
    """Run `scout ask @upper hi` and return its own calls."""
    words = [sys.executable, "-m", "bench.traced", str(stored), "scout", "ask", "@upper", "hi"]
    environ = {**os.environ, "SCOUT_HOME": str(home)}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=_WAIT, check=True)
    assert done.stdout.strip() == "HI", done
    return _read_calls(stored, "command")


def _read_calls(file: Path, process: str) -> list[Call]:
    return [Call(f"{process} {thread}", *rest) for thread, *rest in json.loads(file.read_text())]


def main() -> int:
    walk = record_walk()
    if "--calls" in sys.argv:
        print("\n".join(f"{call.thread} {call.file} {call.function}" for call in walk.calls))
    print("\n".join(walk.files))
    print(f"\nfiles: {len(walk.files)} (goal at most {FILES})")
    print(f"changes of room: {walk.changes} (goal at most {CHANGES})")
    print(f"calls: {len(walk.calls)} (goal at most {CALLS})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
