"""The order of queued turns when more wait than may run at once, and the status text of their flights."""

from collections.abc import Iterable
from operator import attrgetter

from scout.base.record import Record

PATIENCE = 60.0  # seconds after which an agent's waiting turn ranks with a person's


class Queued(Record):
    """A turn that waits for a slot. `since` is a reading of the monotonic clock, in seconds."""

    id: str
    since: float
    person: bool = False
    flight_id: str | None = None


def order_queue(waiting: Iterable[Queued], now: float) -> list[Queued]:
    """Return a person's turns and those older than `PATIENCE` first, then by longest wait."""
    line, recent = sorted(waiting, key=attrgetter("since")), now - PATIENCE
    first = [one for one in line if one.person or one.since <= recent]
    return first + [one for one in line if not one.person and one.since > recent]


def describe_place(place: int, limit: int) -> str:
    """Return the status text of a flight that waits for a slot."""
    return f"{format_ordinal(place)} in line: {limit} turns run at once (limits.runningTurns)"


def describe_place_behind_target(place: int) -> str:
    """Return the status text of a flight whose target is busy with another turn."""
    return f"{format_ordinal(place)} in line: its target works on another turn"


def format_ordinal(number: int) -> str:
    """Return the ordinal: 1st, 2nd, 3rd, 4th, 11th, 21st."""
    teens = 10 < number % 100 < 14
    ending = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
