"""Which parts of the log may be archived, and which archives a purge deletes."""

from collections.abc import Iterable
from itertools import takewhile

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.base.time import Time
from scout.model.retention.archive import Archive

YOUNGEST = 2 * 86_400.0  # seconds: younger events stay in the log, because running work looks at them


def check_age(before: Time, now: Time, operation: str) -> Time:
    """Return the moment before which the log is archived; refuse one that is too recent."""
    if before > now.plus(-YOUNGEST):
        again = Remedy(
            operation=operation, parameters={"before": "2 days ago"}, why="archive all that can be"
        )
        problem = "the events of the last two days stay in the log"
        raise Refused(BadRequest(problem=problem, field="before", remedies=(again,)))
    return before


def choose_purged(kept: Iterable[Archive], before: Time | None) -> tuple[Archive, ...]:
    """Return the oldest archives whose events are all older than a moment; None: all of them.

    What is left of the log has no gap, so the first younger archive ends the choice.
    """
    return tuple(takewhile(lambda one: before is None or one.until < before, kept))
