"""What somebody owes a move in, and who was reminded of it: it follows from records and nudges alone."""

import sqlite3

from scout.model.events.asks import SweepNudged, SweepSettled
from scout.model.events.envelope import Event
from scout.model.flight import Flight
from scout.model.question import Question
from scout.model.work_item import WorkItem
from scout.policy.sweep import owed

# Another moment is another move that is owed: the reminders of the last one are over.
_OWED = """
INSERT INTO sweeps VALUES (?, ?, ?, 0, NULL, NULL) ON CONFLICT (id) DO UPDATE
SET period = excluded.period, since = excluded.since, nudges = 0, nudged_at = NULL, next_at = NULL
WHERE period <> excluded.period OR since <> excluded.since
"""
# What has no row yet is a message: a record whose move is owed has had one since then.
_NUDGED = """
INSERT INTO sweeps VALUES (?, 'delegation', ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
SET nudges = excluded.nudges, nudged_at = excluded.nudged_at, next_at = excluded.next_at
"""
_OVER = "DELETE FROM sweeps WHERE id = ?"


def follow(connection: sqlite3.Connection, record: Question | WorkItem | Flight) -> None:
    """A record has changed: its next move is owed from now on, or no more."""
    late = owed(record)
    if late is None:
        if record.revision > 1:  # before that there was nothing to owe
            connection.execute(_OVER, (record.id,))
    else:
        connection.execute(_OWED, (record.id, late.period, int(late.since)))


def heard(connection: sqlite3.Connection, event: Event) -> None:
    """Somebody was reminded, or need not be any more."""
    if isinstance(event, SweepNudged):
        nudge, moment = event.payload, int(event.time)
        next_at = None if nudge.next_at is None else int(nudge.next_at)
        connection.execute(_NUDGED, (nudge.about.id, moment, nudge.count, moment, next_at))
    elif isinstance(event, SweepSettled):
        connection.execute(_OVER, (event.payload.about.id,))
