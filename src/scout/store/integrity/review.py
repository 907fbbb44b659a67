"""Stored wake decisions that the current policy would make differently. Nothing is changed."""

from collections.abc import Iterator
from pathlib import Path

from scout.base.record import Record
from scout.model.events.envelope import Event
from scout.policy.wake import compare_decision, describe_decision
from scout.store.database import connect
from scout.store.log import read_rows

_SHOWN = 100


class Otherwise(Record):
    """A stored wake decision, and the decision that the same facts lead to today."""

    seq: int
    event_id: str
    stored: str
    today: str


class Review(Record):
    """How many decisions were repeated, how many differ, and the first that do."""

    events: int
    decisions: int
    differing: int
    differences: tuple[Otherwise, ...]

    @property
    def clean(self) -> bool:
        return not self.differing


def review(path: Path) -> Review:
    """Repeat every wake decision of the log from its stored facts."""
    store = connect(path, readonly=True)
    try:
        store.execute("BEGIN")  # one snapshot of a store that may be in use
        return _review_events(event for row in read_rows(store, 0) for event in row.events)
    finally:
        store.close()


def _review_events(facts: Iterator[Event]) -> Review:
    events = decisions = differing = 0
    shown: list[Otherwise] = []
    for event in facts:
        events += 1
        wake = event.metadata.wake
        if wake is None:
            continue
        decisions += 1
        today = compare_decision(wake)
        differing += bool(today)
        if today and len(shown) < _SHOWN:
            shown.append(
                Otherwise(seq=event.seq, event_id=event.id, stored=describe_decision(wake), today=today)
            )
    return Review(events=events, decisions=decisions, differing=differing, differences=tuple(shown))
