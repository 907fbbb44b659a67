"""A daemon that dies at a given step: before a git command, or before one of its own writes to the disk."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from scout.daemon.start import start
from tests.cli.running import Shell
from tests.daemon.daemons import eventually
from tests.stories.spawning import PausedGit

__all__ = [
    "LEAST_KILLS",
    "TracedWrites",
    "choose_steps",
    "is_dead",
    "kill",
    "replace_missed_step",
    "start_with",
]

# What makes a change durable or visible: pages of a transaction, its commit, a file that takes its place or leaves it.
_WRITES = "pwrite64,fdatasync,fsync,rename,renameat,renameat2,unlink"


def start_with(me: Shell, paused: PausedGit) -> int:
    """The daemon, which meets the git that stops; its process."""
    return start(str(me.home), environ={**me.environ, "PATH": paused.path}, timeout=60)[0].pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: is_dead(pid))


def is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def choose_steps(count: int, some: int, *, all_of_them: bool) -> list[int]:
    """The steps to try: all, or some from the first to the last."""
    if all_of_them:
        return list(range(count))
    return sorted({count * part // some for part in range(some)} | {count - 1})


LEAST_KILLS = 3


def replace_missed_step(steps: list[int], number: int, kills: int) -> None:
    """Add an earlier step for one that was not reached: the count may include writes of something else."""
    left = len(steps) - number - 1
    if kills + left < LEAST_KILLS:
        steps.append(steps[number] // 2)


class TracedWrites:
    """The writes of a daemon to some files, in their order: counted, or one of them never made.

    strace kills the daemon on its way into the system call, so everything before it is there and nothing after.
    """

    def __init__(self, folder: Path, files: Sequence[Path]) -> None:
        program = shutil.which("strace")
        if program is None:
            pytest.skip("NOT PROVED HERE: strace is missing, so nothing can be killed at a given write")
        folder.mkdir(exist_ok=True)
        self._program = program
        self._trace = folder / "trace"
        self._files = files
        self._process: subprocess.Popen[str] | None = None
        self._pid = 0

    def begin(self, pid: int, kill_at: int | None = None) -> None:
        """Look at a running daemon. `kill_at`: the number of the write that it does not survive."""
        self._pid = pid
        words = [self._program, "-f", "-y", "-s", "0", "-o", str(self._trace), "-e", f"trace={_WRITES}"]
        for file in self._files:
            words += ["-P", str(file)]
        if kill_at is not None:
            words += ["-e", f"inject={_WRITES}:signal=SIGKILL:when={kill_at + 1}"]
        self._process = subprocess.Popen([*words, "-p", str(pid)], stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        told = self._process.stderr.readline()
        if "attached" not in told:
            pytest.skip(f"NOT PROVED HERE: tracing needs root or the right to trace: {told.strip()}")

    def end(self) -> int:
        """Stop looking; how many writes there were."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.communicate(timeout=0.5 if is_dead(self._pid) else 10)
        except subprocess.TimeoutExpired:
            self._process.kill()  # a daemon that died under its eyes keeps it waiting
            self._process.communicate(timeout=30)
        lines = self._trace.read_text().splitlines()
        calls = [line.split(maxsplit=1)[1] for line in lines if "resumed>" not in line]
        return sum(line.partition("(")[0] in _WRITES.split(",") for line in calls)
