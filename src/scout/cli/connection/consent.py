"""What a person at a terminal is asked instead of refused; a script gets the refusal."""

from __future__ import annotations

import sys

from scout.cli.connection.call import ROUTES, on_terminal
from scout.cli.connection.text import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from scout.cli.connection.call import DaemonCall
    from scout.cli.connection.refusal import RefusalError


def confirm(question: str) -> bool:
    """Yes or no; no is the default, also when nobody types anything."""
    note(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def with_consent(work: Callable[[], int]) -> int:
    """Do it; when only an allowed folder is missing, ask for it and do it again."""
    from scout.cli.connection.refusal import RefusalError

    try:
        return work()
    except RefusalError as problem:
        if not allow_directory(problem):
            raise
    return work()


def allow_directory(problem: RefusalError) -> bool:
    """Whether the person allowed, just now, the folder that was refused."""
    directory = str(problem.told.get("directory") or "")
    if problem.code != "directory_not_allowed" or not directory or not on_terminal():
        return False
    if not confirm(f"Scout may not start programs in {directory} yet. Allow it?"):
        return False
    from scout.settings.edit import add_root
    from scout.settings.load import load

    add_root(load().settings, directory)
    return True


def confirm_retirement(line: DaemonCall, address: str) -> bool:
    """Whether an agent may be retired although sessions of it are live; without a terminal, it may."""
    if not on_terminal():
        return True
    live = line.call(ROUTES["session.list"], {"agent": address, "live": True})["items"]
    count = f"{len(live)} live session{'' if len(live) == 1 else 's'}"
    return not live or confirm(f"{address} has {count}, whose flights will fail. Retire it?")
