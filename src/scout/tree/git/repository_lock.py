"""One change of a repository at a time: among the threads of this process, and among Scout's processes."""

import contextlib
import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Generator
from pathlib import Path

from scout.ports import GitFailed
from scout.settings.folder import make_private

_PAUSE = 0.01


class RepositoryLocks:
    """Locks of repositories, as files in a folder of Scout's. `seconds`: how long a lock is waited for."""

    def __init__(self, folder: Path, seconds: float = 120.0) -> None:
        self._folder = folder
        self._seconds = seconds
        self._threads: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def hold(self, common: str) -> Generator[None]:
        """Hold the lock of the repository with this git folder."""
        end = time.monotonic() + self._seconds
        name = hashlib.sha256(os.fsencode(common)).hexdigest()[:32]
        with self._guard:
            lock = self._threads.setdefault(name, threading.Lock())
        if not lock.acquire(timeout=self._seconds):
            raise _build_busy_error(common)
        try:
            with self._file(name, common, end):
                yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def _file(self, name: str, common: str, end: float) -> Generator[None]:
        make_private(self._folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._folder / f"{name}.lock", flags, 0o600)
        try:
            while not _try_lock(descriptor):
                if time.monotonic() > end:
                    raise _build_busy_error(common)
                time.sleep(_PAUSE)
            yield
        finally:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _build_busy_error(common: str) -> GitFailed:
    return GitFailed(f"another change of {common} takes too long; try again when it has finished")
