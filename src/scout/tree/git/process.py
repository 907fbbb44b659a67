"""Running git: bounded in time and in output, with an environment that is Scout's and not the caller's."""

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from typing import BinaryIO, NamedTuple

from scout.ports import GitFailed

# No system or user configuration, no attributes, no questions, nothing fetched, objects as they are.
ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ADVICE": "0",
}
_LARGEST = 64 << 20  # maximum bytes of one file that git writes for Scout
_BLOCK = 512  # bytes, the unit of `ulimit -f`
_LIMITED = ("/bin/sh", "-c", f'ulimit -f {_LARGEST // _BLOCK}; exec "$@"', "sh")
_ANSWER = 1 << 20
_CHUNK = 1 << 16
_PRIVATE = 0o077
_INHERITED = -1
_LATE = "git did not finish in time"


class Output(NamedTuple):
    """The output of git; `cut` if there was more."""

    text: str
    cut: bool


class GitProcess:
    """Git in one directory. `end`: deadline on the monotonic clock.

    With `private`, files that git writes are for their owner only; otherwise they have the user's modes. With
    `limited`, they cannot be large.
    """

    def __init__(
        self,
        directory: str,
        environment: dict[str, str],
        end: float,
        *,
        private: bool = False,
        limited: bool = False,
        late: str = _LATE,
    ) -> None:
        self._directory = directory
        self._environment = environment
        self._end = end
        self._umask = _PRIVATE if private else _INHERITED
        self._before = _LIMITED if limited else ()
        self._late = late

    def run(self, *words: str, fine: tuple[int, ...] = (0,), given: bytes = b"") -> str:
        """Run a command and return its output."""
        return self.call(words, most=_ANSWER, fine=fine, given=given)[:_ANSWER].decode("utf-8", "replace")

    def read(self, *words: str, most: int) -> Output:
        """Run a command and return its output, up to `most` bytes in whole lines."""
        printed = self.call(words, most=most)
        text, cut = printed[:most].decode("utf-8", "replace"), len(printed) > most
        return Output(text.rpartition("\n")[0] + "\n" if cut else text, cut)

    def succeeds(self, *words: str) -> bool:
        """Run a command that answers yes with 0 and no with 1."""
        return self.call_with_code(words, most=_ANSWER, fine=(0, 1))[1] == 0

    def call(
        self, words: tuple[str, ...], *, most: int, fine: tuple[int, ...] = (0,), given: bytes = b""
    ) -> bytes:
        """Run a command and return its output, up to one byte more than `most`."""
        return self.call_with_code(words, most=most, fine=fine, given=given)[0]

    def call_with_code(
        self, words: tuple[str, ...], *, most: int, fine: tuple[int, ...] = (0,), given: bytes = b""
    ) -> tuple[bytes, int]:
        """Run a command and return its output, up to one byte more than `most`, and its exit code."""
        with tempfile.TemporaryFile() as complaints, _open_input(given) as said:
            try:
                process = subprocess.Popen(
                    [*self._before, "git", *words],
                    cwd=self._directory,
                    env=self._environment,
                    stdin=said,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    start_new_session=True,
                    umask=self._umask,
                )
            except OSError as error:
                raise GitFailed(f"git cannot be run in {self._directory}: {error.strerror}") from None
            told, late = _read(process, most, self._end)
            if late:
                raise GitFailed(self._late)
            if process.returncode not in fine and len(told) <= most:
                complaints.seek(0)
                words_of_git = " ".join(complaints.read(2000).decode("utf-8", "replace").split())
                problem = f"git exited with {process.returncode} in {self._directory}"
                raise GitFailed(words_of_git[:500] or problem)
        return told, process.returncode


def _open_input(given: bytes) -> BinaryIO:
    """Open what git reads: a file with these bytes, or nothing."""
    if not given:
        return open(os.devnull, "rb")  # noqa: PTH123 (a hot path), SIM115 (the caller closes it)
    said = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    said.write(given)
    said.seek(0)
    return said


def build_passed_environment() -> dict[str, str]:
    """Return the variables of the daemon that git gets, and its PATH without relative folders.

    The working directory is a work tree, which is not trusted.
    """
    names = ("HOME", "XDG_CONFIG_HOME")
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if folder.startswith("/")) or os.defpath
    return {**{name: value for name in names if (value := os.environ.get(name))}, "PATH": path}


def read_global_config(folder: str, end: float, *words: str) -> str:
    """Return what `git config --global` prints; empty if the user has no such value."""
    environment = {**build_passed_environment(), **ENVIRONMENT, "GIT_DIR": folder}
    del environment["GIT_CONFIG_GLOBAL"]
    with contextlib.suppress(GitFailed):
        return GitProcess(folder, environment, end).run("config", "--global", *words, fine=(0, 1))
    return ""


def _read(process: "subprocess.Popen[bytes]", most: int, end: float) -> tuple[bytes, bool]:
    """Read up to `most` bytes of a process's output, plus one; whether it was killed at the deadline."""
    with process:
        assert process.stdout is not None
        told, late = _read_until(process.stdout.fileno(), most, end)
        if len(told) <= most and not late:
            late = not _wait_for_end(process, end)  # it may close its output and run on
        if len(told) > most or late:
            _kill(process)
    return told, late


def _wait_for_end(process: "subprocess.Popen[bytes]", end: float) -> bool:
    """Wait for the end of a process; whether it ended before the deadline."""
    left = max(0.0, end - time.monotonic())
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not on this system
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(left)
        return process.returncode is not None
    try:
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        return bool(waiting.poll(left * 1000))
    finally:
        os.close(descriptor)


def _read_until(descriptor: int, most: int, end: float) -> tuple[bytes, bool]:
    """Read until the output ends, has more than `most` bytes, or the deadline has passed."""
    told = bytearray()
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    while len(told) <= most:
        if not waiting.poll(max(0.0, end - time.monotonic()) * 1000):
            return bytes(told), True
        data = os.read(descriptor, min(_CHUNK, most + 1 - len(told)))
        if not data:
            break
        told += data
    return bytes(told), False


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
