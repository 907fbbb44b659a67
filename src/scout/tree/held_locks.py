"""Locks that other git processes hold: waited for, for a limited time."""

import re
import time
from collections.abc import Callable
from typing import TypeVar

from scout.ports import GitFailed

T = TypeVar("T")

_HELD = re.compile(
    r"'(?P<lock>[^']+\.lock)': File exists|could not lock config file (?P<file>.+?): File exists"
)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


def wait_for_locks(change: Callable[[], T], patience: float) -> T:
    """Make a change; while another git process holds a lock that it needs, try again."""
    end, pause = time.monotonic() + patience, _FIRST_PAUSE
    while True:
        try:
            return change()
        except GitFailed as problem:
            held = _HELD.search(str(problem))
            if held is None:
                raise
            if time.monotonic() > end:
                lock = held["lock"] or f"{held['file']}.lock"
                raise GitFailed(
                    f"{lock} has been held by another git process for {patience:.0f} seconds;"
                    " if no git process is running, remove that file"
                ) from None
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
