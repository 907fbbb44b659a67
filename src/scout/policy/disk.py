"""What is removed when runs or pictures take more room on the disk than they may."""

from collections.abc import Callable, Iterable

from scout.base.record import Record


class StoredFolder(Record):
    """A folder of a session: one run, or its pictures.

    `ended`: seconds since 1970 at which it was last written to; None while its program runs.
    """

    session_id: str
    name: str
    size: int
    ended: float | None = None


def choose_removals(
    stored: Iterable[StoredFolder], cap: int, is_needed: Callable[[StoredFolder], bool]
) -> tuple[StoredFolder, ...]:
    """The oldest ended folders that nobody needs, as many as bring the total down to the cap."""
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
