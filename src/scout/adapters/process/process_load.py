"""How much processor and memory programs use, each with all its descendants."""

import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from scout.model.session import ProcessLoad

_PROC = sys.platform.startswith("linux")
_PS = ("ps", "-axo", "pid=,ppid=,%cpu=,rss=")
_SHORTEST = 0.1  # seconds between two samples; shorter ones say little
_OLDEST = 30.0  # an older sample says what was, not what is


class Sample(NamedTuple):
    """One process: its parent, memory in bytes, and processor seconds (or percent, from `ps`)."""

    parent: int
    memory: int
    processor: float


class LoadMeter:
    """Compares each sample with the one before. The first one waits a moment for a second."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = 0.0
        self._before = dict[int, Sample]()

    def measure(self, pids: Iterable[int]) -> dict[int, ProcessLoad]:
        """Return the load of each of these programs that is running. Blocks for up to 0.1 seconds."""
        wanted = set(pids)
        if not wanted:
            return {}
        now, shares = self._compare() if _PROC else list_with_ps()
        children = defaultdict[int, list[int]](list)
        for pid, sample in now.items():
            children[sample.parent].append(pid)
        return {pid: _sum_up(_list_family(pid, children), now, shares) for pid in wanted if pid in now}

    def _compare(self) -> tuple[dict[int, Sample], dict[int, float]]:
        """Return the newest sample, and the percent of one processor that each process used meanwhile."""
        with self._lock:
            age = time.monotonic() - self._at
            if not self._before or age > _OLDEST:
                self._before, self._at, age = _list_with_proc(), time.monotonic(), 0.0
            if age < _SHORTEST:
                time.sleep(_SHORTEST - age)
            now, at = _list_with_proc(), time.monotonic()
            seconds = at - self._at
            shares = {
                pid: 100 * max(0.0, one.processor - self._before[pid].processor) / seconds
                for pid, one in now.items()
                if pid in self._before
            }
            self._before, self._at = now, at
            return now, shares


def _list_family(pid: int, children: dict[int, list[int]]) -> list[int]:
    found, waiting = list[int](), [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += children.get(one, ())
    return found


def _sum_up(family: list[int], now: dict[int, Sample], shares: dict[int, float]) -> ProcessLoad:
    return ProcessLoad(
        processes=len(family),
        cpu_percent=round(sum(shares.get(pid, 0.0) for pid in family), 1),
        memory_bytes=sum(now[pid].memory for pid in family),
    )


def _list_with_proc() -> dict[int, Sample]:
    page, tick = os.sysconf("SC_PAGESIZE"), os.sysconf("SC_CLK_TCK")
    found = dict[int, Sample]()
    for name in os.listdir("/proc"):  # noqa: PTH208 (names only)
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 (hundreds of these in a row)
                line = file.read()
        except OSError:
            continue  # it has ended
        fields = line[line.rindex(b")") + 2 :].split()
        used = (int(fields[11]) + int(fields[12])) / tick
        found[int(name)] = Sample(int(fields[1]), int(fields[21]) * page, used)
    return found


def list_with_ps() -> tuple[dict[int, Sample], dict[int, float]]:
    """List processes with `ps`, without /proc. It knows the percent, and memory in kilobytes."""
    environment = {**os.environ, "LC_ALL": "C"}
    listing = subprocess.run(
        _PS, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=10
    )
    rows = [line.split() for line in listing.stdout.decode("ascii", "replace").splitlines()]
    found = {int(pid): Sample(int(parent), int(size) * 1024, float(cpu)) for pid, parent, cpu, size in rows}
    return found, {pid: one.processor for pid, one in found.items()}
