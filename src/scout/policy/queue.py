"""Which turn runs next when more wait than may run at once, and what is said to those that wait."""

from collections.abc import Iterable

from scout.base.record import Record

PATIENCE = 60.0  # seconds after which an agent's turn has waited long enough to rank with a person's


class Queued(Record):
    """A turn that waits for a slot. `since` is a reading of the monotonic clock, in seconds."""

    id: str
    since: float
    person: bool = False
    flight_id: str | None = None


def order_queue(waiting: Iterable[Queued], now: float) -> list[Queued]:
    """A person's turns first, then the longest wait first; nobody is passed over for more than a minute."""
    return sorted(waiting, key=lambda one: (not one.person and now - one.since < PATIENCE, one.since))


def place_in_line(place: int, limit: int) -> str:
    """What a flight says that waits for a slot of the machine."""
    return f"{ordinal(place)} in line: {limit} turns run at once (limits.runningTurns)"


def place_behind_target(place: int) -> str:
    """What a flight says whose target is at another turn."""
    return f"{ordinal(place)} in line: its target works on another turn"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    teens = 10 < number % 100 < 14
    ending = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
