"""Commands of the operator, such as the set-up of a new work tree or the check of a merge."""

import contextlib
import os
import signal
import subprocess
import threading
import time

from scout.ports import CommandResult, GitFailed

_KEPT = 64 << 10  # bytes of output
_BLOCK = 64 << 10
_GRACE = 2.0  # seconds between the request to end and the end, and for the last output


# The group ends with Scout: when the other end of its standard input closes, the watcher kills the group.
_TETHERED = 'exec 3<&0 </dev/null; { read -r _ <&3; kill -KILL 0; } & exec 3<&-; exec /bin/sh -c "$1"'


class Commands:
    """The commands that run. They end when Scout ends, however it does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = set[subprocess.Popen[bytes]]()

    def run(self, directory: str, command: str, seconds: float, environment: dict[str, str]) -> CommandResult:
        """Run a command by the shell. At the time limit it is ended, with all processes of its group."""
        began = time.monotonic()
        process = _start(directory, command, environment)
        with self._lock:
            self._running.add(process)
        try:
            output = _Output(process)
            late = not _wait(process, seconds)
            if late:
                _signal(process, signal.SIGTERM)
                _wait(process, _GRACE)
            _signal(process, signal.SIGKILL)  # also what the command left running in its group
            code = process.wait()
        finally:
            with self._lock:
                self._running.discard(process)
        _close_tether(process)
        return CommandResult(
            exit_code=code if code >= 0 else 128 - code,
            output=output.finish(),
            seconds=round(time.monotonic() - began, 3),
            timed_out=late,
        )

    def stop(self) -> None:
        """End all commands."""
        with self._lock:
            for process in self._running:
                _signal(process, signal.SIGKILL)


def _start(directory: str, command: str, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", _TETHERED, "sh", command],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise GitFailed(f"the command cannot be run in {directory}: {error.strerror}") from None


def _close_tether(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None  # it is a pipe
    with contextlib.suppress(OSError):
        process.stdin.close()


class _Output:
    """The last part of what a command prints, read while it runs so that it never blocks."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        self._pipe = process.stdout
        self._kept = bytearray()
        self._cut = False
        self._reader = threading.Thread(target=self._read, name="command output", daemon=True)
        self._reader.start()

    def finish(self) -> str:
        """Return the output. A process that left the group may keep the pipe open; it is not waited for."""
        self._reader.join(_GRACE)
        if not self._reader.is_alive():
            self._pipe.close()
        text = bytes(self._kept).decode("utf-8", "replace").replace("\0", "\u2400")
        return "…" + text if self._cut else text

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._pipe.fileno(), _BLOCK):
                self._kept += data
                if len(self._kept) > _KEPT:
                    del self._kept[:-_KEPT]
                    self._cut = True


def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    try:
        process.wait(max(0.0, seconds))
    except subprocess.TimeoutExpired:
        return False
    return True


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
