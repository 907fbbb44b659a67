"""Locks that other git processes hold, and work trees that they are making: Scout waits for both."""

import re
import time
from collections.abc import Callable
from typing import TypeVar

from scout.ports import GitFailed

T = TypeVar("T")

_HELD = re.compile(
    r"'(?P<lock>[^']+\.lock)': File exists|could not lock config file (?P<file>.+?): File exists"
)
_HALF_MADE = re.compile(r"failed to read (?P<entry>.+/worktrees/.+)/commondir")
_HALF_MADE_FOR = 2.0  # seconds; git writes the files of an entry in one go
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


def wait_for_locks(change: Callable[[], T], patience: float) -> T:
    """Make a change; while another git process holds a lock that it needs, try again."""
    began, pause = time.monotonic(), _FIRST_PAUSE
    while True:
        try:
            return change()
        except GitFailed as problem:
            _check(str(problem), time.monotonic() - began, patience)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _check(problem: str, waited: float, patience: float) -> None:
    """Raise the problem again, unless it can pass and has not lasted too long."""
    if (held := _HELD.search(problem)) is not None:
        if waited > patience:
            lock = held["lock"] or f"{held['file']}.lock"
            raise GitFailed(
                f"{lock} has been held by another git process for {patience:.0f} seconds;"
                " if no git process is running, remove that file"
            )
    elif (half := _HALF_MADE.search(problem)) is None:
        raise GitFailed(problem)
    elif waited > min(patience, _HALF_MADE_FOR):
        raise GitFailed(f"{half['entry']} is incomplete; if no git process is running, remove that folder")
