"""One daemon per data folder: a lock on a file that also says, for whoever looks, where the daemon is.

The kernel lets the lock go with the process, however it ends, so there is nothing stale to clean up.
"""
# ruff: noqa: PTH123 (this is read on the command line's way to the daemon, where pathlib is too slow)

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

_PATIENCE = 0.3  # somebody who only looks holds it for an instant


class Lock:
    """The lock, held."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def say(self, told: Mapping[str, object]) -> None:
        """Write down where the daemon is."""
        text = json.dumps(told).encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text, 0)

    def release(self) -> None:
        """Let the next one in; the file stays, for a removed file could be locked twice."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def take(home: str) -> Lock | None:
    """The lock of the folder, or None when another process holds it."""
    descriptor = os.open(_file(home), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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


def held(home: str) -> bool:
    """Whether a daemon has the folder."""
    try:
        descriptor = os.open(_file(home), os.O_RDONLY | os.O_CLOEXEC)
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


def facts(home: str) -> dict[str, Any]:
    """What the holder wrote; empty while it starts."""
    with contextlib.suppress(OSError, ValueError), open(_file(home), encoding="utf-8") as file:
        told: Any = json.load(file)
        return {**told} if isinstance(told, dict) else {}
    return {}


def _file(home: str) -> str:
    return f"{home}/lock"
