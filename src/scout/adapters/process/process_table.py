"""Which processes there are. A process is known by its pid and start time, since pids are used again."""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PROC = sys.platform.startswith("linux")
_PS = ("ps", "-axo", "pid=,ppid=,pgid=,state=,lstart=")


class ProcessId(NamedTuple):
    """One process and no other. `started` is in ticks since the boot, or a date where there is no /proc."""

    pid: int
    started: str


class ProcessEntry(NamedTuple):
    """What the system says about a process."""

    identity: ProcessId
    parent: int
    group: int
    session: int
    zombie: bool


@cache
def boot() -> str:
    """The name of this boot: ticks since the last one say nothing about this one."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""


def processes() -> dict[int, ProcessEntry]:
    """All of them, by pid."""
    if not _PROC:
        return _listed()
    found = (_look(int(name)) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208 (names only)
    return {entry.identity.pid: entry for entry in found if entry is not None}


def is_alive(process: ProcessId) -> bool:
    """Whether exactly this process runs; one that only waits to be reaped does not."""
    entry = _look(process.pid) if _PROC else _listed().get(process.pid)
    return entry is not None and entry.identity == process and not entry.zombie


def family(leader: ProcessId, known: Iterable[ProcessId] = (), mark: str = "") -> set[ProcessId]:
    """Who runs in the session of `leader`, who is `known` already, and all their descendants.

    A child that left the session and lost its parent is found by the `mark` in its environment, NAME=VALUE,
    where the system shows environments.
    """
    table = processes()
    roots = {one.pid for one in known if one.pid in table and table[one.pid].identity == one}
    if _is_ours(leader, table):
        roots |= {pid for pid, one in table.items() if leader.pid in {pid, one.session, one.group}}
    if mark and _PROC:
        roots |= {pid for pid, one in table.items() if _is_later(one, leader) and _is_marked(pid, mark)}
    members = _with_descendants(roots, table)
    return {table[pid].identity for pid in members if not table[pid].zombie}


def send(process: ProcessId, signal: int) -> None:
    """Signal exactly this process, if it is still there and ours."""
    if is_alive(process):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal)


def _is_ours(leader: ProcessId, table: dict[int, ProcessEntry]) -> bool:
    """The system gives a pid away again only when no session or group bears its number any more."""
    entry = table.get(leader.pid)
    return entry is None or entry.identity == leader


def _is_later(entry: ProcessEntry, leader: ProcessId) -> bool:
    """Only who began after the leader can have its mark: few are looked at."""
    return not entry.zombie and int(entry.identity.started) >= int(leader.started)


def _is_marked(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 (as for stat)
            return mark.encode() in file.read().split(b"\0")
    except OSError:
        return False  # it is another user's, or gone


def _with_descendants(roots: set[int], table: dict[int, ProcessEntry]) -> set[int]:
    children: defaultdict[int, list[int]] = defaultdict(list)
    for pid, entry in table.items():
        children[entry.parent].append(pid)
    members, waiting = set[int](), list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in members:
            members.add(pid)
            waiting += children[pid]
    return members


def _look(pid: int) -> ProcessEntry | None:
    """One line of /proc. A name in parentheses may hold anything: what counts comes after the last one."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (hundreds of these in a row)
            line = file.read()
    except OSError:
        return None
    fields = line[line.rindex(b")") + 2 :].split()
    parent, group, session = map(int, fields[1:4])
    return ProcessEntry(
        ProcessId(pid, fields[19].decode()), parent, group, session, fields[0] in {b"Z", b"X"}
    )


def _listed() -> dict[int, ProcessEntry]:
    """Where there is no /proc. Sessions are not shown there, so a group stands for its session."""
    environment = {**os.environ, "LC_ALL": "C"}
    listing = subprocess.run(_PS, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    found: dict[int, ProcessEntry] = {}
    for line in listing.stdout.decode("ascii", "replace").splitlines():
        pid, parent, group, state, started = line.split(maxsplit=4)
        identity = ProcessId(int(pid), " ".join(started.split()))
        found[identity.pid] = ProcessEntry(identity, int(parent), int(group), int(group), state[0] == "Z")
    return found
