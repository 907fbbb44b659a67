"""Lines to and from a program that keeps running between turns; `keeper` holds the program.

The lines sent and the program's output are two files that only grow. So a turn can be read again from its
beginning: a restarted broker reads the same as the broker before it.
"""

import asyncio
import os
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from scout.adapters.persistent import keeper
from scout.adapters.process.run import Launch, Run, RunLimits, RunState, clear, read_last_line, reap, stop
from scout.adapters.process.run_folders import read_removed

_CHUNK = 1 << 20
_LINES = 200  # yielded in a row
_BEGIN_WAIT = 10.0
_ANSWER_WAIT = 10.0
_LONGEST_PATH = 100
_ANSWER = 16  # bytes; a keeper answers with one word


class PipeLimits(NamedTuple):
    """Maximum seconds without a broker, seconds of a turn, megabytes of memory, bytes of output."""

    deserted: float = 600.0
    turn: float = 3600.0
    memory: int = 8192
    output: int = 512 << 20
    grace: float = 3.0


class PipeLine(NamedTuple):
    """A line that the program printed, and where the next line begins."""

    text: bytes
    after: int


class PipeEntry(NamedTuple):
    """A line that was sent to the program, its tag, and the size of the output at that time."""

    tag: str
    text: bytes
    at: int


def list_pipes(folder: Path) -> list["Pipe"]:
    """List the programs that a session has had, the newest last."""
    numbers = sorted(int(one.name) for one in folder.glob("*") if one.name.isdecimal())
    return [Pipe(folder / str(number)) for number in numbers]


def choose_next_number(folder: Path) -> int:
    """Return the number of a session's next program: higher than any before, removed ones included."""
    known = [int(pipe.run.folder.name) for pipe in list_pipes(folder)]
    return max([read_removed(folder).last, *known]) + 1


async def clear_last(folder: Path) -> None:
    """Stop leftover processes of a session's last program, before the next one starts."""
    for pipe in list_pipes(folder)[-1:]:
        if not pipe.is_running:
            await pipe.clear()


class Pipe:
    """One program of a session. Its folder holds its whole state; see `Run`."""

    def __init__(self, folder: Path) -> None:
        self.run = Run(folder)
        self._connection: socket.socket | None = None  # not a stream, because it may outlive an event loop
        self._is_clear = False
        self._speaking = asyncio.Lock()

    def __del__(self) -> None:
        self.disconnect()

    async def begin(self, launch: Launch, limits: PipeLimits) -> bool:
        """Start the program; whether it started. OSError or ValueError if it cannot be started."""
        kept = keeper.build_command(
            self.run.folder, launch.command, grace=limits.deserted, memory=limits.memory
        )
        self.run.prepare()
        self.run.begin(launch._replace(command=kept, prompt=""))
        return await self.run.wait_for_process(_BEGIN_WAIT) is not None

    @property
    def is_running(self) -> bool:
        if self.run.state() is RunState.RUNNING:
            return True
        reap()
        return False

    async def send(self, line: bytes, tag: str = "-") -> bool:
        """Send a line; whether the program is running. The line is written to disk first."""
        return await self._exchange(b"tell %s %d\n%s" % (tag.encode(), len(line), line))

    async def stop_when_idle(self, seconds: float) -> bool:
        """Stop the program after this time, unless a line is sent before."""
        return await self._exchange(b"rest %g\n" % seconds)

    def read_sent_lines(self) -> list[PipeEntry]:
        """Return all lines that were sent to the program."""
        with suppress(FileNotFoundError):
            lines = (self.run.folder / keeper.JOURNAL).read_bytes().split(b"\n")[:-1]
            parts = (line.split(b" ", 2) for line in lines)
            return [PipeEntry(tag.decode(), text, int(at)) for at, tag, text in parts]
        return []

    def find_position(self, tag: str) -> int | None:
        """Return the size of the output when the line of this tag was sent; none if it was not sent."""
        return next((one.at for one in self.read_sent_lines() if one.tag == tag), None)

    def read_lines(self, after: int = 0) -> list[PipeLine]:
        """Return the complete lines that the program has printed so far."""
        data, lines = self._read(after), list[PipeLine]()
        for text in data.split(b"\n")[:-1]:
            after += len(text) + 1
            lines.append(PipeLine(text, after))
        return lines

    async def follow_lines(self, after: int = 0) -> AsyncIterator[PipeLine]:
        """Yield the lines that the program prints, until it has ended."""
        pause = 0.002
        while True:
            running = self.is_running
            lines = await asyncio.to_thread(self.read_lines, after) if self._has_grown(after) else []
            for number, line in enumerate(lines):
                after = line.after
                yield line
                if number % _LINES == _LINES - 1:
                    await asyncio.sleep(0)  # let other tasks run
            if not lines and not running:
                await self.clear()
                return
            pause = 0.002 if lines else min(pause * 1.5, 0.05)
            await asyncio.sleep(pause)

    async def stop(self, why: str, limits: PipeLimits) -> bool:
        """Stop the program and its child processes; whether it was running."""
        self.disconnect()
        ran = await stop(self.run, why, limits.grace)
        if ran:  # a killed keeper leaves its socket
            (self.run.folder / keeper.SOCKET).unlink(missing_ok=True)
        return ran

    async def clear(self) -> None:
        """Stop leftover processes of an ended program. Done once."""
        if not self._is_clear:
            self.disconnect()
            await clear(self.run, RunLimits().grace)
            self._is_clear = True

    def disconnect(self) -> None:
        """Close the connection. The keeper waits for another broker for a while."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def wait_for_end(self, seconds: float = 2.0) -> str:
        """Wait until the program has ended, and return the reason; its keeper needs a moment to exit."""
        deadline = time.monotonic() + seconds
        while self.is_running and time.monotonic() < deadline:  # noqa: ASYNC110 (a file gives no event)
            await asyncio.sleep(0.01)
        return self.end_reason or "it does not answer"

    @property
    def end_reason(self) -> str:
        """Why the program ended; empty while it is running."""
        run = self.run
        if self.is_running:
            return ""
        how = run.stopped or (f"exit {run.exit_code}" if run.exit_code is not None else "it was killed")
        complaint = read_last_line(run.stderr) if run.stderr.exists() else ""
        return f"{how}: {complaint}" if complaint else how

    # -- its keeper ------------------------------------------------------------------------------

    async def connect(self) -> bool:
        """Connect to the keeper, which then knows that a broker is there; whether it answers."""
        if self._connection is not None and _is_open(self._connection):
            return True
        self.disconnect()
        deadline = asyncio.get_running_loop().time() + _BEGIN_WAIT
        while self.is_running and asyncio.get_running_loop().time() < deadline:
            with suppress(OSError), _shorten(self.run.folder / keeper.SOCKET) as path:
                self._connection = await _open_socket(path)
                return True
            await asyncio.sleep(0.01)
        return False

    async def _exchange(self, frame: bytes) -> bool:
        async with self._speaking:
            if not await self.connect() or self._connection is None:
                return False
            loop = asyncio.get_running_loop()
            try:
                async with asyncio.timeout(_ANSWER_WAIT):
                    await loop.sock_sendall(self._connection, frame)
                    answer = await loop.sock_recv(self._connection, _ANSWER)
            except (OSError, TimeoutError):
                answer = b""
            if answer != b"ok\n":
                self.disconnect()
            return answer == b"ok\n"

    def _has_grown(self, after: int) -> bool:
        """Whether the output has grown; the file is not read."""
        with suppress(FileNotFoundError):
            return self.run.stdout.stat().st_size > after
        return False

    def _read(self, after: int) -> bytes:
        """Read up to the current end of the file: a program may write faster than it is read."""
        parts = list[bytes]()
        with suppress(FileNotFoundError), self.run.stdout.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            while data := os.pread(file.fileno(), min(_CHUNK, size - after) if after < size else 0, after):
                parts.append(data)
                after += len(data)
        return b"".join(parts)


async def _open_socket(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_open(connection: socket.socket) -> bool:
    """Whether the keeper is still connected; it sends nothing unasked."""
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@contextmanager
def _shorten(path: Path) -> Generator[str]:
    """Return a path that is short enough for a socket's address."""
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="scout-") as folder:
        link = Path(folder) / "d"
        link.symlink_to(path.parent)
        yield str(link / path.name)
