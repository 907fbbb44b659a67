"""One daemon per data folder: a lock on a file, which also says where the daemon is.

The kernel releases the lock when the process ends, however it ends, so a lock is never stale.
"""
# ruff: noqa: PTH123 (each command of the CLI reads this file, and pathlib is slow to import)

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_PATIENCE = 0.3  # a process that only checks the lock holds it for an instant


class Lock:
    """The lock, held."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write_facts(self, facts: Mapping[str, object]) -> None:
        """Write where the daemon is."""
        text = json.dumps(facts).encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text, 0)

    def release(self) -> None:
        """Release the lock. The file stays, because a removed file could be locked twice."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def take(home: str) -> Lock | None:
    """Take the lock of a data folder; None if another process holds it."""
    descriptor = os.open(_get_path(home), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    patient_until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > patient_until:
                os.close(descriptor)
                return None
            time.sleep(0.01)
        else:
            return Lock(descriptor)


def is_held(home: str) -> bool:
    """Whether a daemon holds the lock of a data folder."""
    try:
        descriptor = os.open(_get_path(home), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def read_facts(home: str) -> dict[str, Any]:
    """Read what the daemon wrote; empty while it starts."""
    with contextlib.suppress(OSError, ValueError), open(_get_path(home), encoding="utf-8") as file:
        told: Any = json.load(file)
        return {**told} if isinstance(told, dict) else {}
    return {}


def _get_path(home: str) -> str:
    return f"{home}/lock"
