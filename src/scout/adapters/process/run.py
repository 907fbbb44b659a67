"""Runs a program so that no output is lost and no process is left behind.

A run is a folder with everything that a restarted broker needs to continue it. A small shell runs the
program in its own session, with files as input and output. The program keeps running when the broker is
killed, and its result is on disk for the next broker. The shell creates the file `pid` before it starts the
program and exits if the file exists, so a run never happens twice.
"""

import asyncio
import codecs
import os
import signal
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from scout.adapters.process.process_table import ProcessId, is_alive, list_family, read_boot_id, send_signal

_CHUNK = 1 << 16
_LINES = 50  # lines kept of one chunk: they only show progress, and the file has them all
_WIDTH = 2000
_KILL_WAIT = 5.0  # a process that cannot be killed must not block the broker


MARK = "SCOUT_RUN"  # in the environment of everything that a run starts: the folder of the run

# A trap is not inherited: these signals end the program, and the shell stays to write its exit code.
_SHELL = r"""
run=$1 where=$2; shift 2
mask=$(umask); umask 077
since() { shift 19; began=$1; }
if read -r stat </proc/$$/stat; then since ${stat##*) }; read -r boot </proc/sys/kernel/random/boot_id
else began=$(LC_ALL=C ps -o lstart= -p $$); began=$(echo $began); fi 2>/dev/null
trap : HUP INT TERM
set -C; printf '%s\n' "$$" "$began" "$boot" >"$run/pid" || exit; set +C
umask "$mask"
(cd -- "$where" && exec "$@") <"$run/prompt" >>"$run/stdout" 2>>"$run/stderr"
code=$?
umask 077; echo "$code" >"$run/exit"
"""
# Signals that the broker ignores would be ignored by programs too.
_HEARD = {"SIGCHLD", "SIGHUP", "SIGINT", "SIGPIPE", "SIGQUIT", "SIGTERM", "SIGXFSZ"}
_DEFAULT_SIGNALS = [one for one in signal.Signals if one.name in _HEARD]
_CHILDREN: set[int] = set()


class RunLimits(NamedTuple):
    """How much a program may write, and how long it may run.

    `output`: bytes of the answer that are kept. The program is stopped at `flood` bytes of output, at `log`
    bytes of stderr, or after `seconds`. `grace`: seconds that it has to end by itself.
    """

    output: int = 10 << 20
    flood: int = 64 << 20
    log: int = 16 << 20
    seconds: float = 1800.0
    grace: float = 2.0


class RunState(Enum):
    """The state of a run as its folder shows it, also to a broker that did not start it."""

    ABSENT = "nothing was started"
    RUNNING = "its process is running"
    ENDED = "it has an exit code, or was stopped"
    LOST = "its process is gone, without an exit code"


class Launch(NamedTuple):
    """The command to run. Its first word is a path: a shell may resolve a bare word differently."""

    command: tuple[str, ...]
    directory: str
    prompt: str
    environment: Mapping[str, str]


class Run:
    """One run. Its folder holds its whole state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stdout = folder / "stdout"
        self.stderr = folder / "stderr"
        self._begun: tuple[ProcessId, str] | None = None

    def prepare(self) -> None:
        """Make the folder, readable only by its owner."""
        self.folder.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.parent.mkdir(mode=0o700, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)

    def begin(self, launch: Launch) -> None:
        """Start the program in the prepared folder. OSError or ValueError if it cannot be started."""
        reap()
        for file in (self.stdout, self.stderr):
            file.touch(mode=0o600)
        self._write("prompt", launch.prompt)
        spawn(launch, self.folder)

    @property
    def process(self) -> ProcessId | None:
        """The shell that runs the program, once it has started."""
        begun = self._begun or self._read_pid()
        return begun and begun[0]

    @property
    def exit_code(self) -> int | None:
        """The exit code that the shell wrote; 128 plus the number of a signal."""
        text = self._read("exit")
        return int(text) if text.endswith("\n") else None

    @property
    def stopped(self) -> str:
        """Why the run was stopped; empty if it was not."""
        return self._read("stopped")

    @property
    def age(self) -> float:
        """Seconds since the start by the wall clock, the only clock that survives a restart."""
        return max(0.0, time.time() - (self.folder / "pid").stat().st_mtime)

    def state(self) -> RunState:
        """Check the process before reading the exit code again: a run may end in between."""
        if not (self.folder / "pid").exists():
            return RunState.ABSENT
        if self._has_ended():
            return RunState.ENDED
        if self.is_running():
            return RunState.RUNNING
        return RunState.ENDED if self._has_ended() else RunState.LOST

    def is_running(self) -> bool:
        """Whether its process exists, whatever its files say."""
        begun = self._begun or self._read_pid()
        return begun is not None and begun[1] == read_boot_id() and is_alive(begun[0])

    def members(self, known: set[ProcessId] | None = None) -> set[ProcessId]:
        """Find all processes of the run; a run of an earlier boot has none."""
        begun = self._begun or self._read_pid()
        mark = f"{MARK}={self.folder}"
        return list_family(begun[0], known or (), mark) if begun and begun[1] == read_boot_id() else set()

    async def wait_for_process(self, seconds: float) -> ProcessId | None:
        """Wait for the process of the run."""
        await _wait_until(lambda: self.process is not None, seconds)
        return self.process

    def mark_stopped(self, why: str) -> None:
        """Write the reason before stopping the run, so that its end is always explained."""
        if not self.stopped:
            self._write("stopped", why)

    def _has_ended(self) -> bool:
        """Whether the run has ended. A stopped run has ended when its process is gone."""
        if self.stopped:
            return not self.is_running()
        return self.exit_code is not None

    def _read_pid(self) -> tuple[ProcessId, str] | None:
        """Read the process and its boot. They never change, so they are read once."""
        lines = self._read("pid").split("\n")
        if len(lines) == 4:
            self._begun = ProcessId(int(lines[0]), lines[1]), lines[2]
        return self._begun

    def _read(self, name: str) -> str:
        with suppress(FileNotFoundError):
            return (self.folder / name).read_text("utf-8", "replace")
        return ""

    def _write(self, name: str, text: str) -> None:
        """Write a file atomically."""
        draft = self.folder / f".{name}"
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123 (a descriptor)
            file.write(text.encode("utf-8", "replace"))
        draft.rename(self.folder / name)


# -- starting ----------------------------------------------------------------------------------------


def spawn(launch: Launch, folder: Path) -> None:
    """Start a run in its folder. The shell outlives the broker."""
    words = ("sh", "-c", _SHELL, "sh", str(folder), launch.directory, *launch.command)
    pid = os.posix_spawn(
        "/bin/sh",
        words,
        {**launch.environment, MARK: str(folder)},
        file_actions=_list_file_actions(),
        setsid=True,
        setsigmask=(),
        setsigdef=_DEFAULT_SIGNALS,
    )
    _CHILDREN.add(pid)


def reap() -> None:
    """Reap children that have ended, so that no zombies are left."""
    for pid in list(_CHILDREN):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                continue
        _CHILDREN.discard(pid)


def _list_file_actions() -> list[tuple[Any, ...]]:
    """Open /dev/null as standard streams, and close all descriptors that would be inherited."""
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    return [*null, *((os.POSIX_SPAWN_CLOSE, number) for number in _list_inheritable())]


def _list_inheritable() -> Iterator[int]:
    for number in map(int, os.listdir("/dev/fd")):  # noqa: PTH208 (names only)
        with suppress(OSError):  # the one that listed the others is closed by now
            if number > 2 and os.get_inheritable(number):
                yield number


# -- following and stopping --------------------------------------------------------------------------


async def follow(run: Run, limits: RunLimits) -> AsyncIterator[str]:
    """Yield lines of stderr until the run has ended and none of its processes is left."""
    tail, pause = FileTail(run.stderr), _list_pauses()
    began = time.monotonic() - run.age
    while run.state() is RunState.RUNNING:
        lines = await asyncio.to_thread(tail.lines) if tail.has_grown else []
        for line in lines:
            yield line
        if excess := _find_excess(run, limits, time.monotonic() - began):
            await stop(run, excess, limits.grace)
        else:
            pause = _list_pauses() if lines else pause
            await asyncio.sleep(next(pause))
    for line in await asyncio.to_thread(tail.rest):
        yield line
    await clear(run, limits.grace)


async def stop(run: Run, why: str, grace: float = RunLimits().grace) -> bool:
    """Stop a run and its child processes: SIGTERM, wait, SIGKILL. Whether any was running.

    A caller that is cancelled meanwhile still waits for the end.
    """
    if run.state() is not RunState.RUNNING:
        return await clear(run, grace)
    run.mark_stopped(why)
    await _shield(_terminate(run, grace))
    reap()
    return True


def _find_excess(run: Run, limits: RunLimits, seconds: float) -> str:
    """Return which limit is exceeded, in words."""
    if seconds > limits.seconds:
        return f"it took longer than {limits.seconds:g} s"
    for file, most in ((run.stdout, limits.flood), (run.stderr, limits.log)):
        if file.stat().st_size > most:
            return f"it wrote more than {most} bytes to {file.name}"
    return ""


async def clear(run: Run, grace: float) -> bool:
    """Stop leftover processes of an ended run; whether there were any.

    The shell needs a moment to exit. If only the shell was killed, its program is still running.
    """
    await _wait_until(lambda: not run.is_running(), 1.0)
    reap()
    if not await asyncio.to_thread(run.members):
        return False
    await _shield(_terminate(run, grace))
    return True


async def _terminate(run: Run, grace: float) -> None:
    """Send SIGTERM, wait, send SIGKILL, wait. Waits are bounded; new processes are included."""
    members = run.members()
    leader = run.process
    if leader is None or not members:
        return
    outside = {one for one in members if _is_outside(one, leader)}
    if members - outside:  # while one of them is in the group, its number is not reused
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader.pid, signal.SIGTERM)
    for one in outside:
        send_signal(one, signal.SIGTERM)
    members = await _wait_for_end(run, members, grace)
    deadline = time.monotonic() + _KILL_WAIT
    while members and time.monotonic() < deadline:
        for one in members:
            send_signal(one, signal.SIGKILL)
        members = await _wait_for_end(run, members, 0.1)


def _is_outside(one: ProcessId, leader: ProcessId) -> bool:
    with suppress(ProcessLookupError):
        return os.getpgid(one.pid) != leader.pid
    return False


async def _wait_for_end(run: Run, members: set[ProcessId], seconds: float) -> set[ProcessId]:
    """Wait until all have ended or the time is up; return those that are left."""
    deadline, pause = time.monotonic() + seconds, _list_pauses()
    reap()
    while (members := run.members(members)) and time.monotonic() < deadline:
        await asyncio.sleep(next(pause))
        reap()
    return members


def _list_pauses() -> Iterator[float]:
    """Polling intervals: short at first, then longer."""
    seconds = 0.002
    while True:
        yield seconds
        seconds = min(seconds * 1.5, 0.1)


async def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline, pause = time.monotonic() + seconds, _list_pauses()
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(next(pause))
    return True


async def _shield(work: Coroutine[Any, Any, None]) -> None:
    """Finish bounded work even if the caller is cancelled, then raise the cancellation."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


# -- a file that another process still writes ----------------------------------------------------------


class FileTail:
    """Reads lines of a growing file. A character or line that is split between two reads is kept whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._open = ""

    @property
    def has_grown(self) -> bool:
        """Whether the file has grown; it is not read."""
        return self._path.stat().st_size > self._at

    def lines(self) -> list[str]:
        """Return new complete lines of at most one chunk, without blank ones."""
        return self._split(self._decode(self._read()))

    def rest(self) -> list[str]:
        """Return the remaining lines once the file is complete, including an unfinished line."""
        last: deque[str] = deque(maxlen=_LINES)
        while data := self._read():
            last += self._split(self._decode(data))
        last += self._split(self._decode(b"", final=True) + "\n")
        return list(last)

    def _read(self) -> bytes:
        with self._path.open("rb") as file:
            data = os.pread(file.fileno(), _CHUNK, self._at)
        self._at += len(data)
        return data

    def _split(self, text: str) -> list[str]:
        *whole, self._open = (self._open + text).split("\n")
        self._open = self._open[: _WIDTH + 1]
        return [line for line in (one.strip()[:_WIDTH] for one in whole) if line][-_LINES:]


def read_last_line(path: Path) -> str:
    """Return the last line that is not blank; empty if there is none."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 4096))
        lines = file.read().decode("utf-8", "replace").split("\n")
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")
