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
    from collections.abc import Mapping, Sequence
    from typing import Any

_PAUSE = 0.02
_HINDERED = 1.0  # seconds: a daemon that stops removes its socket a moment before it is gone


class Running:
    """Where a daemon is. `url` and the rest are empty while it starts."""

    __slots__ = ("home", "node", "pid", "socket", "url", "version")

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.url = str(told.get("url", ""))
        self.socket = str(told.get("socket", ""))
        self.pid = int(told.get("pid", 0))
        self.version = str(told.get("version", ""))
        self.node = str(told.get("node", ""))
        self.home = str(told.get("home", ""))

    def facts(self) -> dict[str, str | int]:
        """As `scout status --json` shows them."""
        names = ("url", "socket", "pid", "version", "node", "home")
        return {name: getattr(self, name) for name in names}


class NotStarted(Exception):  # noqa: N818 (an answer, not a fault)
    """The daemon declined or failed; `problem` is its problem document, or what it last said."""

    def __init__(self, problem: Mapping[str, Any], exit_code: int) -> None:
        super().__init__(problem.get("message", ""))
        self.problem = dict(problem)
        self.exit_code = exit_code


class NotAnswering(NotStarted):
    """There is a daemon already, and it does not answer."""

    def __init__(self, found: Running) -> None:
        super().__init__({"message": f"the daemon (pid {found.pid}) is running, but {hindrance(found)}"}, 9)


def running(home: str) -> Running | None:
    """The daemon of a data folder, or None when there is none."""
    return Running(lock.facts(home)) if lock.held(home) else None


def start(
    home: str,
    *,
    arguments: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    timeout: float = 15.0,
    tether: int | None = None,
) -> tuple[Running, bool]:
    """Start a daemon that outlives this process, unless one runs; whether it was this call that did.

    With `tether`, the daemon ends instead, and its sessions too, when the other end of that pipe is closed.
    The daemon says on a pipe that it answers, or why it will not: nothing is guessed from the outside.
    """
    import subprocess

    process = subprocess.Popen(
        [sys.executable, "-m", "scout.daemon", "--announce", *arguments, *_tethered(tether)],
        stdin=subprocess.DEVNULL if tether is None else tether,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_own_environment(os.environ if environ is None else environ),
        cwd="/",
        start_new_session=True,
    )
    told = _announced(process, timeout)
    if "refused" in told:
        raise NotStarted(told["refused"], process.wait(timeout))
    if "already" in told:
        process.wait(timeout)
        ready = wait_ready(home, timeout)
        if ready is None:
            raise NotAnswering(running(home) or Running(told["already"]))
        return ready, False
    process.returncode = 0  # it outlives this process: nobody waits for it
    return Running(told["ready"]), True


def wait_ready(home: str, timeout: float) -> Running | None:
    """The daemon of a data folder as soon as it answers; None when it does not in time, or cannot."""
    until, fine_at = time.monotonic() + timeout, time.monotonic()
    while time.monotonic() < until:
        found = running(home)
        if found is None or not is_hindered(found):
            fine_at = time.monotonic()
            if found is not None and found.socket and _answers(found.socket):
                return found
        elif time.monotonic() - fine_at > _HINDERED:
            return None
        time.sleep(_PAUSE)
    return None


def hindrance(found: Running) -> str:
    """Why a running daemon does not answer, as the end of a sentence."""
    if _is_suspended(found.pid):
        return f"it is suspended: `kill -CONT {found.pid}` resumes it"
    if found.socket and not os.path.exists(found.socket):  # noqa: PTH110 (as in lock)
        return f"its socket {found.socket} is gone"
    return f"it does not answer at {found.socket}" if found.socket else "it is still starting"


def is_hindered(found: Running) -> bool:
    """Whether waiting is of no use."""
    return bool(found.socket) and (_is_suspended(found.pid) or not os.path.exists(found.socket))  # noqa: PTH110 (as in lock)


def _is_suspended(pid: int) -> bool:
    """Whether the process was stopped by a signal; not known where there is no /proc."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (as in lock)
        return file.read().rpartition(b") ")[2][:1] in (b"T", b"t")
    return False


def stop(home: str, timeout: float = 15.0) -> bool:
    """End the daemon of a data folder gracefully; whether it has ended."""
    import signal

    found = running(home)
    if found is None:
        return True
    if found.pid:
        os.kill(found.pid, signal.SIGTERM)
        os.kill(found.pid, signal.SIGCONT)  # one that is suspended would not notice
    return wait_ended(found, timeout)


def wait_ended(found: Running, timeout: float) -> bool:
    """Wait until a daemon has ended; whether it has."""
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        if not lock.held(found.home):
            _reap(found.pid)
            return True
        time.sleep(_PAUSE)
    return False


def _tethered(tether: int | None) -> list[str]:
    return [] if tether is None else ["--tethered"]


def _own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Without the mark of the run in which the command was typed: the daemon does not end with that run."""
    return {name: value for name, value in environ.items() if name != "SCOUT_RUN"}


def _announced(process: subprocess.Popen[bytes], timeout: float) -> dict[str, Any]:
    """The one line that the daemon says; a daemon that dies without it is a refusal with its last words."""
    import select

    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        ready, _, _ = select.select([process.stdout], [], [], timeout)
        line = process.stdout.readline() if ready else b""
        if line:
            return json.loads(line)
        if not ready:
            process.kill()
            message = f"the daemon did not answer within {timeout:g} s"
        else:
            message = process.stderr.read().decode(errors="replace").strip()[-2000:]
        return {"refused": {"message": message or "the daemon ended without a word"}}


def _reap(pid: int) -> None:
    """If it was this process that started the daemon, take note of its end."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        try:
            client.connect(path)
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return client.recv(32).startswith(b"HTTP/1.1 200")
        except OSError:
            return False
