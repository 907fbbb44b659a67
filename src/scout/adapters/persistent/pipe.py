"""Speaking in lines with a program that goes on between turns: see `keeper` for who holds it.

What it was told and what it said are two files that only grow, so a turn can be read again from its
beginning by whoever comes later: a broker after a restart reads the same as the one before.
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
from scout.adapters.process.run import Run, RunLimits, RunState, clear, last_line, stop
from scout.adapters.process.run_folders import read_removed
from scout.adapters.process.spawn import Launch, reap

_CHUNK = 1 << 20
_LINES = 200  # at a stretch
_BEGIN_WAIT = 10.0
_ANSWER_WAIT = 10.0
_LONGEST_PATH = 100
_ANSWER = 16  # bytes; a keeper says a word


class PipeLimits(NamedTuple):
    """Seconds without a broker, seconds of a turn, megabytes of memory, bytes of all that it may say."""

    deserted: float = 600.0
    turn: float = 3600.0
    memory: int = 8192
    output: int = 512 << 20
    grace: float = 3.0


class PipeLine(NamedTuple):
    """What the program said, and where the next line begins."""

    text: bytes
    after: int


class PipeEntry(NamedTuple):
    """What the program was told, under which tag, and how much it had said by then."""

    tag: str
    text: bytes
    at: int


def list_pipes(folder: Path) -> list["Pipe"]:
    """The programs that a session has had, the newest last."""
    numbers = sorted(int(one.name) for one in folder.glob("*") if one.name.isdecimal())
    return [Pipe(folder / str(number)) for number in numbers]


def next_number(folder: Path) -> int:
    """The number of a session's next program: higher than that of any it has had, removed ones included."""
    known = [int(pipe.run.folder.name) for pipe in list_pipes(folder)]
    return max([read_removed(folder).last, *known]) + 1


async def clear_last(folder: Path) -> None:
    """End what is left of the last program of a session, so that the next one is alone."""
    for pipe in list_pipes(folder)[-1:]:
        if not pipe.is_running:
            await pipe.clear()


class Pipe:
    """One program of a session. Its folder is all there is to know; see `Run`."""

    def __init__(self, folder: Path) -> None:
        self.run = Run(folder)
        self._connection: socket.socket | None = None  # no stream, for it may outlive a loop
        self._is_clear = False
        self._speaking = asyncio.Lock()

    def __del__(self) -> None:
        self.disconnect()

    async def begin(self, launch: Launch, limits: PipeLimits) -> bool:
        """Start the program; whether it began. OSError and ValueError say that it cannot be started."""
        kept = keeper.command(self.run.folder, launch.command, grace=limits.deserted, memory=limits.memory)
        self.run.begin(launch._replace(command=kept, prompt=""))
        return await self.run.taken(_BEGIN_WAIT) is not None

    @property
    def is_running(self) -> bool:
        if self.run.state() is RunState.RUNNING:
            return True
        reap()
        return False

    async def send(self, line: bytes, tag: str = "-") -> bool:
        """Say a line; whether the program is there to read it. It is on disk first."""
        return await self._say(b"tell %s %d\n%s" % (tag.encode(), len(line), line))

    async def stop_when_idle(self, seconds: float) -> bool:
        """Nothing is to do: the program ends after that time unless it is told something."""
        return await self._say(b"rest %g\n" % seconds)

    def sent_lines(self) -> list[PipeEntry]:
        """All that the program was told."""
        with suppress(FileNotFoundError):
            lines = (self.run.folder / keeper.JOURNAL).read_bytes().split(b"\n")[:-1]
            parts = (line.split(b" ", 2) for line in lines)
            return [PipeEntry(tag.decode(), text, int(at)) for at, tag, text in parts]
        return []

    def sent_at(self, tag: str) -> int | None:
        """How much the program had said when it was told the line of this tag; none if it was not."""
        return next((one.at for one in self.sent_lines() if one.tag == tag), None)

    def read_lines(self, after: int = 0) -> list[PipeLine]:
        """What the program has said by now, in whole lines."""
        data, lines = self._read(after), list[PipeLine]()
        for text in data.split(b"\n")[:-1]:
            after += len(text) + 1
            lines.append(PipeLine(text, after))
        return lines

    async def follow_lines(self, after: int = 0) -> AsyncIterator[PipeLine]:
        """What the program says from there on, until it has ended."""
        pause = 0.002
        while True:
            going_on = self.is_running
            lines = await asyncio.to_thread(self.read_lines, after) if self._has_said_more(after) else []
            for number, line in enumerate(lines):
                after = line.after
                yield line
                if number % _LINES == _LINES - 1:
                    await asyncio.sleep(0)  # others have something to do, too
            if not lines and not going_on:
                await self.clear()
                return
            pause = 0.002 if lines else min(pause * 1.5, 0.05)
            await asyncio.sleep(pause)

    async def stop(self, why: str, limits: PipeLimits) -> bool:
        """End it and all it started; whether it ran."""
        self.disconnect()
        ran = await stop(self.run, why, limits.grace)
        if ran:  # a keeper that had to be killed leaves its socket
            (self.run.folder / keeper.SOCKET).unlink(missing_ok=True)
        return ran

    async def clear(self) -> None:
        """End what is left of a program that has ended: once is enough."""
        if not self._is_clear:
            self.disconnect()
            await clear(self.run, RunLimits().grace)
            self._is_clear = True

    def disconnect(self) -> None:
        """Be no longer connected: its keeper waits a while for another broker."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def wait_for_end(self, seconds: float = 2.0) -> str:
        """How it ended, for somebody whom it no longer hears: those who hold it need a moment to go."""
        deadline = time.monotonic() + seconds
        while self.is_running and time.monotonic() < deadline:  # noqa: ASYNC110 (a file gives no event)
            await asyncio.sleep(0.01)
        return self.end_reason or "it does not answer"

    @property
    def end_reason(self) -> str:
        """How it ended, in words; empty while it runs."""
        run = self.run
        if self.is_running:
            return ""
        how = run.stopped or (f"exit {run.exit_code}" if run.exit_code is not None else "it was killed")
        complaint = last_line(run.stderr) if run.stderr.exists() else ""
        return f"{how}: {complaint}" if complaint else how

    # -- its keeper ------------------------------------------------------------------------------

    async def connect(self) -> bool:
        """Be known to its keeper as the broker that is there; whether it answers."""
        if self._connection is not None and _is_open(self._connection):
            return True
        self.disconnect()
        deadline = asyncio.get_running_loop().time() + _BEGIN_WAIT
        while self.is_running and asyncio.get_running_loop().time() < deadline:
            with suppress(OSError), _short(self.run.folder / keeper.SOCKET) as path:
                self._connection = await _connected(path)
                return True
            await asyncio.sleep(0.01)
        return False

    async def _say(self, frame: bytes) -> bool:
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

    def _has_said_more(self, after: int) -> bool:
        """Whether there is something to read; asking costs no reading."""
        with suppress(FileNotFoundError):
            return self.run.stdout.stat().st_size > after
        return False

    def _read(self, after: int) -> bytes:
        """What is there now: a program may write faster than it is read."""
        parts = list[bytes]()
        with suppress(FileNotFoundError), self.run.stdout.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            while data := os.pread(file.fileno(), min(_CHUNK, size - after) if after < size else 0, after):
                parts.append(data)
                after += len(data)
        return b"".join(parts)


async def _connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_open(connection: socket.socket) -> bool:
    """Whether the keeper is still at its other end; it says nothing without being asked."""
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@contextmanager
def _short(path: Path) -> Generator[str]:
    """A name that fits into a socket's address."""
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="scout-") as folder:
        link = Path(folder) / "d"
        link.symlink_to(path.parent)
        yield str(link / path.name)
