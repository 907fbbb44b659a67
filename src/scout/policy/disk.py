"""Choosing the folders to remove when runs or pictures exceed their disk limit."""

from collections.abc import Callable, Iterable

from scout.base.record import Record


class StoredFolder(Record):
    """A folder of a session: one run, or its pictures.

    `ended`: Unix time of the last write, in seconds; None while its program runs.
    """

    session_id: str
    name: str
    size: int
    ended: float | None = None


def choose_removals(
    stored: Iterable[StoredFolder], cap: int, is_needed: Callable[[StoredFolder], bool]
) -> tuple[StoredFolder, ...]:
    """Return the oldest ended folders that are not needed, enough to bring the total down to the cap."""
    folders = tuple(stored)
    excess = sum(one.size for one in folders) - cap
    chosen = list[StoredFolder]()
    ended = [one for one in folders if one.ended is not None]
    for one in sorted(ended, key=lambda one: (one.ended, one.session_id, one.name)):
        if excess <= 0:
            break
        if not is_needed(one):
            chosen.append(one)
            excess -= one.size
    return tuple(chosen)
