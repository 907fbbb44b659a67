"""Keeps a program running that reads lines on standard input: a script that needs only the standard library.

A program that runs for many turns must not see its standard input close when the broker is killed or
upgraded. So this process holds the pipe, not the broker. It is small, imports nothing of Scout, and never
needs a restart; a newer broker understands the keeper of an older one.

The files of a run are its whole state. The program's output goes directly to them. Input comes through a
socket beside them; each line is written to the file `in` before the program gets it, with the size that the
output had at that moment. A later broker reads both files from the beginning: what was sent, what came back,
and which output belongs to which turn. It never has to ask the program, and sends nothing twice.

A keeper stops its program if no broker is connected for a while, so that no program runs for ever after Scout
is removed. It also stops if its shell was killed, because nothing could then record the program's exit code.
Processes that the program leaves running become children of the keeper, which ends them too.
"""

import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SOCKET, JOURNAL = "s", "in"
_LOOK = 1.0  # seconds between two checks of the clock
_END = 5.0  # seconds to exit after standard input closes, and again after SIGTERM
_LEFT = 2.0  # seconds for leftover processes
_ADOPT = 36  # PR_SET_CHILD_SUBREAPER: orphaned descendants become children of this process
_FOLLOW = 1  # PR_SET_PDEATHSIG: this process gets a signal when its parent ends
_CHUNK = 1 << 16
_MEGABYTE = 1 << 20


def build_command(folder: Path, program: tuple[str, ...], *, grace: float, memory: int) -> tuple[str, ...]:
    """Return the command line of a keeper. `grace`: seconds without a broker; `memory`: total megabytes."""
    return (sys.executable, "-I", "-S", __file__, str(folder), f"{grace:g}", str(memory), *program)


class Keeper:
    """One program and its socket. Frames: `tell TAG LENGTH` and that many bytes, or `rest SECONDS`.

    Each frame is answered with a line: `ok`, or `gone` if the program has ended.
    """

    def __init__(
        self, folder: Path, program: list[str], grace: float, memory: int, clock: Callable[[], float]
    ) -> None:
        self._folder = folder
        self._program = program
        self._grace = grace
        self._memory = memory * _MEGABYTE
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._read: dict[socket.socket, bytes] = {}
        self._unsent = b""
        self._deserted_at: float | None = clock()  # since when no broker is connected
        self._rest_until: float | None = None
        self._asked_to_end = False
        self._ended_at: float | None = None  # when standard input was closed
        self._weighed_at = clock()
        self._child: subprocess.Popen[bytes] | None = None
        self._shell = os.getppid()

    def begin(self) -> None:
        """Listen, then start the program, so that a running program is always reachable."""
        here = Path.cwd()
        os.chdir(self._folder)  # a socket's absolute path may be too long
        try:
            listening = socket.socket(socket.AF_UNIX)
            os.umask(0o077)
            listening.bind(SOCKET)
            self._journal = os.open(JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        finally:
            os.chdir(here)
        listening.listen()
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ, self._accept)
        self._child = subprocess.Popen(
            self._program,
            stdin=subprocess.PIPE,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 (a keeper has one thread)
        )
        os.set_blocking(self._stdin, False)

    @property
    def pid(self) -> int:
        """The pid of the program."""
        assert self._child is not None
        return self._child.pid

    @property
    def _stdin(self) -> int:
        assert self._child is not None
        assert self._child.stdin is not None
        return self._child.stdin.fileno()

    def watch_descriptor(self, number: int) -> None:
        """Watch a descriptor that becomes readable on signals."""
        self._selector.register(number, selectors.EVENT_READ, lambda: os.read(number, _CHUNK) and None)

    def step(self, most: float = _LOOK) -> int | None:
        """Handle events for up to `most` seconds; return the exit code once the program has ended."""
        for key, _ in self._selector.select(most):
            key.data()
        assert self._child is not None
        if self._asked_to_end:
            self.end()
        code = self._child.poll()
        if code is None:
            self._check_state(self._clock())
        return code

    def end_soon(self, *_: object) -> None:
        """Request `end` from a signal handler, which may run at any point."""
        self._asked_to_end = True

    def end(self) -> None:
        """Close the program's standard input. Most programs exit then."""
        if self._ended_at is None:
            self._ended_at = self._clock()
            if self._unsent:
                self._selector.unregister(self._stdin)
                self._unsent = b""
            if self._child is not None and self._child.stdin is not None:
                self._child.stdin.close()

    def close(self) -> None:
        """Close the socket and all connections."""
        with suppress(FileNotFoundError):
            (self._folder / SOCKET).unlink()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()
        os.close(self._journal)

    # -- time ------------------------------------------------------------------------------------

    def _check_state(self, now: float) -> None:
        if self._ended_at is not None:
            self._escalate(now - self._ended_at)
        elif os.getppid() != self._shell:
            self._stop("its shell was killed")
        elif self._deserted_at is not None and now - self._deserted_at > self._grace:
            self._stop(f"no broker was connected for {self._grace:g} s")
        elif self._rest_until is not None and now > self._rest_until:
            self._stop("it was idle")
        elif self._memory and now - self._weighed_at >= _LOOK:
            self._weighed_at = now
            if sum(_measure_descendants().values()) > self._memory:
                self._stop(f"it used more than {self._memory // _MEGABYTE} MB of memory")

    def _escalate(self, seconds: float) -> None:
        assert self._child is not None
        if seconds > 2 * _END:
            self._child.kill()
        elif seconds > _END:
            self._child.terminate()

    def _stop(self, why: str) -> None:
        with suppress(FileExistsError), (self._folder / "stopped").open("x") as file:
            file.write(why)
        self.end()

    # -- connections -----------------------------------------------------------------------------

    def _accept(self) -> None:
        (listening,) = (one.fileobj for one in self._selector.get_map().values() if one.data == self._accept)
        assert isinstance(listening, socket.socket)
        connection, _ = listening.accept()
        connection.setblocking(False)
        self._read[connection] = b""
        self._deserted_at = None
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._hear(connection))

    def _hear(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._leave(connection)
            return
        self._read[connection] += data
        while (answer := self._frame(connection)) is not None:
            with suppress(OSError):
                connection.send(answer)

    def _leave(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        connection.close()
        del self._read[connection]
        if not self._read:
            self._deserted_at = self._clock()

    def _frame(self, connection: socket.socket) -> bytes | None:
        """Handle one complete frame and return the answer; None if the frame is incomplete."""
        head, newline, rest = self._read[connection].partition(b"\n")
        if not newline:
            return None
        word, *more = head.split(b" ")
        if word == b"rest":
            self._rest_until = self._clock() + float(more[0])
            self._read[connection] = rest
            return b"ok\n"
        tag, length = more[0], int(more[1])
        if len(rest) < length:
            return None
        self._read[connection] = rest[length:]
        return self._tell(tag, rest[:length])

    def _tell(self, tag: bytes, line: bytes) -> bytes:
        assert self._child is not None
        if self._ended_at is not None or self._child.poll() is not None:
            return b"gone\n"
        self._rest_until = None
        size = os.fstat(1).st_size
        os.write(self._journal, b"%d %s %s\n" % (size, tag, line))
        if not self._unsent:
            self._selector.register(self._stdin, selectors.EVENT_WRITE, self._pass_on)
        self._unsent += line + b"\n"
        self._pass_on()
        return b"ok\n"

    def _pass_on(self) -> None:
        if not self._unsent:
            return
        try:
            self._unsent = self._unsent[os.write(self._stdin, self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = b""
        if not self._unsent:
            self._selector.unregister(self._stdin)


def _measure_descendants() -> dict[int, int]:
    """Return the memory of each descendant in bytes, by pid; empty without /proc."""
    parents, sizes = dict[int, int](), dict[int, int]()
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc"):  # noqa: PTH208 (names only)
            if name.isdecimal():
                with suppress(OSError):
                    fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
                    parents[int(name)], sizes[int(name)] = int(fields[1]), int(fields[21])
    found, new = set[int](), {os.getpid()}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - found
        found |= new
    return {pid: sizes[pid] * os.sysconf("SC_PAGESIZE") for pid in found}


def _adopt() -> None:
    """Adopt orphaned descendants, so that no process is lost."""
    _call_prctl(_ADOPT, 1)


def _end_with_parent() -> None:
    """Get SIGTERM when the parent ends, so that a killed keeper takes its program along."""
    _call_prctl(_FOLLOW, signal.SIGTERM)


def _call_prctl(option: int, value: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _reap(kept: int | None = None) -> None:
    """Reap adopted children that have ended, but not the program itself (`kept`)."""
    with suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid == kept:
                return
            os.waitpid(found.si_pid, 0)


def _clear() -> None:
    """Stop leftover processes: SIGTERM, wait, SIGKILL."""
    deadline, number = time.monotonic() + _LEFT, signal.SIGTERM
    while left := _measure_descendants():
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        time.sleep(0.02)
        _reap()
        if time.monotonic() > deadline:
            if number == signal.SIGKILL:
                return
            deadline, number = time.monotonic() + _LEFT, signal.SIGKILL


def _ignore_signal(*_: object) -> None:
    """Do nothing: the wakeup descriptor only reports signals that have a handler."""


def main(words: list[str]) -> int:
    """Keep a program until it ends; return its exit code as a shell does."""
    folder, grace, memory, *program = words
    keeper = Keeper(Path(folder), program, float(grace), int(memory), time.monotonic)
    read, write = os.pipe()
    os.set_blocking(write, False)
    os.set_blocking(read, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _ignore_signal)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, keeper.end_soon)
    keeper.watch_descriptor(read)
    _adopt()
    keeper.begin()
    try:
        while (code := keeper.step()) is None:
            _reap(keeper.pid)
    finally:
        keeper.close()
        _clear()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
