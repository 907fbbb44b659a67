"""The processes of this machine. A process is identified by pid and start time, because pids are reused."""

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
_STAT_SIZE = 4096
_PS = ("ps", "-axo", "pid=,ppid=,pgid=,state=,lstart=")


class ProcessId(NamedTuple):
    """Identifies one process. `started` is in ticks since the boot, or a date without /proc."""

    pid: int
    started: str


class ProcessEntry(NamedTuple):
    """What the system knows about a process."""

    identity: ProcessId
    parent: int
    group: int
    session: int
    zombie: bool


@cache
def read_boot_id() -> str:
    """Return the id of this boot: start times in ticks are only valid within one boot."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""


def list_processes() -> dict[int, ProcessEntry]:
    """Return all processes by pid."""
    if not _PROC:
        return _list_with_ps()
    return _read_entries(name for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208 (names only)


def is_alive(process: ProcessId) -> bool:
    """Whether exactly this process is running; a zombie is not."""
    table = _read_entries((str(process.pid),)) if _PROC else _list_with_ps()
    entry = table.get(process.pid)
    return entry is not None and entry.identity == process and not entry.zombie


def list_family(leader: ProcessId, known: Iterable[ProcessId] = (), mark: str = "") -> set[ProcessId]:
    """Return the processes in the session of `leader`, those `known` already, and all their descendants.

    A child that left the session and lost its parent is found by the `mark` NAME=VALUE in its environment,
    where the system shows environments.
    """
    table = list_processes()
    roots = {one.pid for one in known if one.pid in table and table[one.pid].identity == one}
    if _is_ours(leader, table):
        roots |= {pid for pid, one in table.items() if leader.pid in {pid, one.session, one.group}}
    if mark and _PROC:
        began = int(leader.started)  # only a process that started later can have its mark
        later = [pid for pid, one in table.items() if not one.zombie and int(one.identity.started) >= began]
        roots |= {pid for pid in later if _is_marked(pid, mark)}
    members = _add_descendants(roots, table)
    return {table[pid].identity for pid in members if not table[pid].zombie}


def send_signal(process: ProcessId, signal: int) -> None:
    """Signal exactly this process, if it still exists."""
    if is_alive(process):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal)


def _is_ours(leader: ProcessId, table: dict[int, ProcessEntry]) -> bool:
    """Whether the pid is still the leader's. A pid is not reused while a session or group has its number."""
    entry = table.get(leader.pid)
    return entry is None or entry.identity == leader


def _is_marked(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 (as for stat)
            return mark.encode() in file.read().split(b"\0")
    except OSError:
        return False  # another user's process, or it has ended


def _add_descendants(roots: set[int], table: dict[int, ProcessEntry]) -> set[int]:
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


def _read_entries(pids: Iterable[str]) -> dict[int, ProcessEntry]:
    """Read processes from /proc, all of them in one loop: there are hundreds, and a turn ends with this.

    A name may hold anything: fields begin after the last parenthesis.
    """
    found: dict[int, ProcessEntry] = {}
    for pid in pids:
        try:
            file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue  # it has ended
        try:
            line = os.read(file, _STAT_SIZE)
        except OSError:
            continue
        finally:
            os.close(file)
        fields = line[line.rindex(b")") + 2 :].split()
        identity = ProcessId(int(pid), fields[19].decode())
        parent, group, session = int(fields[1]), int(fields[2]), int(fields[3])
        found[identity.pid] = ProcessEntry(identity, parent, group, session, fields[0] in {b"Z", b"X"})
    return found


def _list_with_ps() -> dict[int, ProcessEntry]:
    """List processes with `ps`, without /proc. It shows no sessions, so the group is used instead."""
    environment = {**os.environ, "LC_ALL": "C"}
    listing = subprocess.run(_PS, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    found: dict[int, ProcessEntry] = {}
    for line in listing.stdout.decode("ascii", "replace").splitlines():
        pid, parent, group, state, started = line.split(maxsplit=4)
        identity = ProcessId(int(pid), " ".join(started.split()))
        found[identity.pid] = ProcessEntry(identity, int(parent), int(group), int(group), state[0] == "Z")
    return found
