"""The session that a program runs in: its file under SCOUT_HOME, found by session id or parent processes.

It imports only small parts of the standard library, because hooks run at every prompt of their host.
"""
# ruff: noqa: PTH115, PTH119, PTH123, PTH208 (pathlib costs more than all of this)

from __future__ import annotations

import contextlib
import os

from scout.client.http import decode_json, to_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "env", "timeout"})
_MOST_SHELLS = 6
_MOST_PARENTS = 16
_OF_SESSION = ("SCOUT_AGENT", "SCOUT_SESSION", "SCOUT_URL", "SCOUT_SOCKET", "SCOUT_TOKEN")
_NATIVE_IDS = ("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID")  # variables in which hosts give their session ids


def find_session_token(runtime: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the token of the enrolled session that this program runs in, if any."""
    folder = f"{runtime}/hosts"
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return None
    kept: list[tuple[float, dict[str, Any]]] = []
    for name in names:
        with contextlib.suppress(OSError), open(f"{folder}/{name}", "rb") as file:
            kept.append((os.fstat(file.fileno()).st_mtime, to_object(decode_json(file.read()))))
    named = {environ[mark] for mark in _NATIVE_IDS if environ.get(mark)}
    above = set(_list_parents(os.getppid()))
    by_name = [one for one in kept if one[1].get("native") in named]
    by_process = [one for one in kept if (one[1].get("pid"), one[1].get("started")) in above]
    found = sorted(by_name or by_process, key=lambda one: one[0])
    return found[-1][1].get("token") if found else None


def _list_parents(pid: int) -> Iterator[tuple[int, str]]:
    """Yield a process and its ancestors, each with its start time."""
    for _ in range(_MOST_PARENTS):
        _, parent, started = _read_process(pid)
        yield pid, started
        if parent <= 1:
            return
        pid = parent


def find_host_process(environ: Mapping[str, str] = os.environ) -> tuple[int, str]:
    """Return the pid and start time of the host: the nearest ancestor process that is not a shell."""
    told = environ.get("CLAUDE_PID", "")
    pid = int(told) if told.isdecimal() else os.getppid()
    for _ in range(_MOST_SHELLS):
        name, above, started = _read_process(pid)
        if name not in _SHELLS or above <= 1:
            return pid, started
        pid = above
    return pid, _read_process(pid)[2]


def restore_session(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with what Scout gave to the host of a terminal session.

    Codex withholds its environment from its MCP servers. A server that several sessions share is left out:
    its environment is that of the session that started it.
    """
    if environ.get("SCOUT_SESSION"):
        return environ
    pid, _ = find_host_process(environ)
    given = _read_environment(pid)
    if "SCOUT_HOOK_FILE" not in given or is_shared_host(pid):
        return environ
    return {**environ, **{name: given[name] for name in _OF_SESSION if name in given}}


def is_shared_host(pid: int) -> bool:
    """Whether a host is a server that outlives windows, as Codex's app server."""
    return b"--managed-daemon" in _read_command_line(pid).split(b"\0")


def _read_environment(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with; empty if the system does not show it."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = file.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return {}
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def find_window(pid: int, cwd: str) -> tuple[int, str] | None:
    """Return the window of a session whose host is a server that outlives windows; None for other hosts.

    Codex runs the sessions of all windows in one server. The window is the youngest program of the same
    name that has a terminal and runs in the session's folder.
    """
    if not is_shared_host(pid):
        return None
    name, _, _ = _read_process(pid)
    found = [one for one in _list_pids() if _is_window(one, name, cwd)]
    starts = [(int(_read_process(one)[2] or 0), one) for one in found]
    return (max(starts)[1], str(max(starts)[0])) if starts else None


def _is_window(pid: int, name: str, cwd: str) -> bool:
    try:
        found, fields = _read_stat(pid)
        return fields[4] != "0" and found == name and os.readlink(f"/proc/{pid}/cwd") == cwd
    except (OSError, IndexError):
        return False


def _list_pids() -> list[int]:
    try:
        return [int(one) for one in os.listdir("/proc") if one.isdecimal()]
    except OSError:
        return []


def _read_command_line(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _read_stat(pid: int) -> tuple[str, list[str]]:
    """Return the name of a process and the fields that follow it in /proc."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        name, _, rest = file.read().decode("utf-8", "replace").partition("(")[2].rpartition(")")
    return name, rest.split()


def read_process_start(pid: int) -> str:
    """Return the start time of a process, in the system's units."""
    return _read_process(pid)[2]


def _read_process(pid: int) -> tuple[str, int, str]:
    """Return the name, parent and start time of a process."""
    try:
        name, fields = _read_stat(pid)
    except OSError:
        return _ask_ps(pid)
    return name, int(fields[1]), fields[19]


def _ask_ps(pid: int) -> tuple[str, int, str]:
    """Return the same from `ps`, for systems without /proc."""
    import subprocess  # noqa: PLC0415 (slow to load)

    ask = ["ps", "-o", "ppid=,lstart=,comm=", "-p", str(pid)]
    try:
        words = subprocess.run(ask, capture_output=True, text=True, timeout=2, check=False).stdout.split()
    except (OSError, subprocess.SubprocessError):
        words = []
    if len(words) < 7:
        return "", 0, ""
    return os.path.basename(" ".join(words[6:])).lstrip("-"), int(words[0]), " ".join(words[1:6])
