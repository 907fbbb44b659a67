"""Start, find and stop the daemon from another process, by the standard library alone."""
# ruff: noqa: PLC0415 (a command line that finds its daemon running pays for none of these imports)

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time

from scout.daemon import lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO, Any

_PAUSE = 0.02
_BLOCKED_FOR = 1.0  # seconds: a daemon that stops removes its socket a moment before it is gone


class Running:
    """Where a daemon is. The fields are empty while it starts."""

    __slots__ = ("home", "node", "pid", "socket", "url", "version")

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.url = str(told.get("url", ""))
        self.socket = str(told.get("socket", ""))
        self.pid = int(told.get("pid", 0))
        self.version = str(told.get("version", ""))
        self.node = str(told.get("node", ""))
        self.home = str(told.get("home", ""))

    def facts(self) -> dict[str, str | int]:
        """Return the fields that `scout status --json` shows."""
        names = ("url", "socket", "pid", "version", "node", "home")
        return {name: getattr(self, name) for name in names}


class NotStarted(Exception):  # noqa: N818 (an answer, not a fault)
    """The daemon refused to start or failed; `problem` is its problem document, or its last output."""

    def __init__(self, problem: Mapping[str, Any], exit_code: int) -> None:
        super().__init__(problem.get("message", ""))
        self.problem = dict(problem)
        self.exit_code = exit_code


class NotAnswering(NotStarted):
    """A daemon is running and does not answer."""

    def __init__(self, found: Running) -> None:
        super().__init__(
            {"message": f"the daemon (pid {found.pid}) is running, but {explain_silence(found)}"}, 9
        )


def find_running(home: str) -> Running | None:
    """Return the daemon of a data folder; None if there is none."""
    return Running(lock.read_facts(home)) if lock.is_held(home) else None


def start(
    home: str,
    *,
    arguments: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    timeout: float = 15.0,
    tether: int | None = None,
    on_upgrade: Callable[[int], None] = lambda _: None,
) -> tuple[Running, bool]:
    """Start a daemon that outlives this process, unless one is running; whether this call started it.

    `on_upgrade` is called with the size of a store that is upgraded first. There is no timeout then.

    With `tether`, the daemon and its sessions end when the other end of that pipe is closed. The daemon
    reports on a pipe that it is ready, or why it does not start.
    """
    import subprocess

    process = subprocess.Popen(
        [sys.executable, "-m", "scout.daemon", "--announce", *arguments, *_list_tether_flags(tether)],
        stdin=subprocess.DEVNULL if tether is None else tether,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_build_environment(os.environ if environ is None else environ),
        cwd="/",
        start_new_session=True,
    )
    told = _read_announcement(process, timeout, on_upgrade)
    if "refused" in told:
        raise NotStarted(told["refused"], process.wait(timeout))
    if "already" in told:
        process.wait(timeout)
        ready = wait_ready(home, timeout)
        if ready is None:
            raise NotAnswering(find_running(home) or Running(told["already"]))
        return ready, False
    process.returncode = 0  # it outlives this process, which does not wait for it
    return Running(told["ready"]), True


def wait_ready(home: str, timeout: float) -> Running | None:
    """Wait until the daemon of a data folder answers; None if it does not in time, or cannot."""
    until, fine_at = time.monotonic() + timeout, time.monotonic()
    while time.monotonic() < until:
        found = find_running(home)
        if found is None or not is_blocked(found):
            fine_at = time.monotonic()
            if found is not None and found.socket and _is_answering(found.socket):
                return found
        elif time.monotonic() - fine_at > _BLOCKED_FOR:
            return None
        time.sleep(_PAUSE)
    return None


def explain_silence(found: Running) -> str:
    """Return why a running daemon does not answer, as the end of a sentence."""
    if _is_suspended(found.pid):
        return f"it is suspended: `kill -CONT {found.pid}` resumes it"
    if found.socket and not os.path.exists(found.socket):  # noqa: PTH110 (as in lock)
        return f"its socket {found.socket} is gone"
    return f"it does not answer at {found.socket}" if found.socket else "it is still starting"


def is_blocked(found: Running) -> bool:
    """Whether the daemon cannot answer, so that waiting is pointless."""
    return bool(found.socket) and (_is_suspended(found.pid) or not os.path.exists(found.socket))  # noqa: PTH110 (as in lock)


def _is_suspended(pid: int) -> bool:
    """Whether the process was stopped by a signal; unknown without /proc."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (as in lock)
        return file.read().rpartition(b") ")[2][:1] in (b"T", b"t")
    return False


def stop(home: str, timeout: float = 15.0) -> bool:
    """Stop the daemon of a data folder gracefully; whether it has ended."""
    import signal

    found = find_running(home)
    if found is None:
        return True
    if found.pid:
        os.kill(found.pid, signal.SIGTERM)
        os.kill(found.pid, signal.SIGCONT)  # a suspended process does not handle signals
    return wait_ended(found, timeout)


def wait_ended(found: Running, timeout: float) -> bool:
    """Wait until a daemon has ended; whether it has."""
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        if not lock.is_held(found.home):
            _wait_gone(found.pid, until)
            return True
        time.sleep(_PAUSE)
    return False


def _list_tether_flags(tether: int | None) -> list[str]:
    return [] if tether is None else ["--tethered"]


def _build_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without SCOUT_RUN: a daemon started inside a run must not end with that run."""
    return {name: value for name, value in environ.items() if name != "SCOUT_RUN"}


def _read_announcement(
    process: subprocess.Popen[bytes], timeout: float, on_upgrade: Callable[[int], None]
) -> dict[str, Any]:
    """Read what the daemon prints when it is ready. If it ends before, its last output is the refusal."""
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        line = _read_line(process.stdout, timeout)
        if line and "upgrading" in (told := json.loads(line)):
            on_upgrade(told["upgrading"]["bytes"])
            line = _read_line(process.stdout, None)
        if line:
            return json.loads(line)
        if line is None:
            process.kill()
            message = f"the daemon did not answer within {timeout:g} s"
        else:
            message = process.stderr.read().decode(errors="replace").strip()[-2000:]
        return {"refused": {"message": message or "the daemon ended without a message"}}


def _read_line(pipe: IO[bytes], timeout: float | None) -> bytes | None:
    """Read one line and nothing after it; None if none comes in time, empty if the pipe is closed."""
    import select

    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([pipe], [], [], timeout)
        if not ready:
            return None
        byte = os.read(pipe.fileno(), 1)
        if not byte:
            return b""
        line += byte
    return line


def _wait_gone(pid: int, until: float) -> None:
    """Wait for the process itself: it releases the lock shortly before it exits."""
    if not pid:
        return
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)  # this process started it
    while _is_running(pid) and time.monotonic() < until:
        time.sleep(_PAUSE)


def _is_running(pid: int) -> bool:
    """Whether a process runs; one that has exited and waits for its parent does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123 (pathlib is not loaded here)
            return file.read().rpartition(") ")[2][:1] != "Z"
    except OSError:
        return False


def _is_answering(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        try:
            client.connect(path)
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return client.recv(32).startswith(b"HTTP/1.1 200")
        except OSError:
            return False
