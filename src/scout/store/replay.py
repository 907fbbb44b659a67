"""Replay: the rows that follow from the log, written into another file."""

import sqlite3
from collections.abc import Iterator
from itertools import islice

from scout.store.archive.files import StoredRow
from scout.store.history.feed import build_batch, clear_history, read_mark, store_batch
from scout.store.log import LAST, read_stored_rows, unpack
from scout.store.touched import list_entries, outline, read_touched_mark, store_entries
from scout.store.unit_of_work import project

_STEP = 1000
_SHOWN = 100


def replay_log(
    store: sqlite3.Connection, copy: sqlite3.Connection, after: int, until: int = LAST
) -> tuple[int, tuple[int, ...]]:
    """Project the events after one and up to another; return their count and the numbers before each gap."""
    copy.execute("BEGIN")
    count, expected = 0, after + 1
    gaps: list[int] = []
    for row in _read_until(store, after, until):
        events = unpack(row.first, row.data)
        if row.first != expected:
            gaps.append(expected - 1)
        count, expected = count + len(events), row.seq + 1
        for event in events:
            project(copy, event)
    copy.execute("COMMIT")
    return count, tuple(gaps[:_SHOWN])


def replay_history(
    store: sqlite3.Connection, copy: sqlite3.Connection, after: int, until: int = LAST
) -> None:
    """Repeat the history as far as it has followed the log, and the index of touched records after it.

    A copy that is ahead of the history, because that is being built anew, starts at the beginning too.
    """
    mark, touched, done = read_mark(store) or 0, read_touched_mark(store), after
    copy.execute("BEGIN")
    if mark < after:
        clear_history(copy)
        done = 0
    rows = _read_until(store, done, until)
    while some := list(islice(rows, _STEP)):
        known = [row for row in some if row.seq <= mark]
        if known:
            store_batch(copy, build_batch(copy, done, known))
        store_entries(copy, list_entries(outline(row) for row in some if mark < row.seq <= touched))
        done = some[-1].seq
    copy.execute("COMMIT")


def _read_until(store: sqlite3.Connection, after: int, until: int) -> Iterator[StoredRow]:
    for row in read_stored_rows(store, after):
        if row.seq > until:
            return
        yield row
