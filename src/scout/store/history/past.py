"""Records as they were after an event: by id, by state, and the newest first."""

import heapq
import json
import sqlite3
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, TypeVar

from scout.base.intervals import list_forks
from scout.base.record import Record
from scout.model.events.envelope import get_record
from scout.model.history import FOLLOWED
from scout.store.history.feed import read_mark
from scout.store.log import read_events
from scout.store.table import QUERIES

T = TypeVar("T", bound=Record)
LAST_RECORD = (1 << 63) - 1


class PastRecord(NamedTuple):
    """A record at a moment: the number of its first event, its id, and the state it was in."""

    record: int
    id: str
    state: str


class Past:
    """The followed records after the event `seq`. The history must have followed the log that far."""

    def __init__(self, connection: sqlite3.Connection, seq: int) -> None:
        self._connection = connection
        self.seq = seq
        self._highest = read_mark(connection) or 0

    def get(self, kind: type[T], ident: str | None) -> T | None:
        """Return the record with this id, as it was."""
        found = self._run("history_record", id=ident).fetchone()
        return self.load(kind, found[0]) if found else None

    def load(self, kind: type[T], record: int) -> T | None:
        """Return the record that began with this event, as it was; None if it began later."""
        seq = self._run("history_version", record=record, seq=self.seq).fetchone()[0]
        found = [get_record(event) for event in read_events(self._connection, seq - 1, 1)] if seq else []
        return found[0] if found and isinstance(found[0], kind) else None

    def list_newest(
        self, kind: type[Record], *, party: str | None = None, before: int = LAST_RECORD, limit: int
    ) -> list[PastRecord]:
        """Return the newest records that existed, begun before the event `before`."""
        query = "history_newest" if party is None else "history_newest_of"
        values = {"kind": FOLLOWED[kind].name, "party": party, "seq": self.seq}
        found = self._run(query, **values, before=min(before, self.seq + 1), limit=limit)
        return [*map(PastRecord._make, found)]

    def list_in(
        self,
        kind: type[Record],
        states: Collection[str],
        *,
        party: str | None = None,
        before: int = LAST_RECORD,
        limit: int,
    ) -> list[PastRecord]:
        """Return the records that were in one of these states, the newest first.

        All of them are looked at, so it is meant for states that records leave again.
        """
        forks, name = list_forks(self.seq, self._highest), FOLLOWED[kind].name
        found = self._run(
            "history_in",
            kind=name,
            states=json.dumps([*map(str, states)]),
            below=json.dumps(forks.below),
            above=json.dumps(forks.above),
            seq=self.seq,
        )
        mine = (one for one in map(PastRecord._make, found) if one.record < before)
        if party is not None:
            mine = (one for one in mine if self._concerns(name, one.record, party))
        return heapq.nlargest(limit, mine)

    def _concerns(self, kind: str, record: int, party: str) -> bool:
        found = self._run("history_concerns", kind=kind, record=record, party=party)
        return bool(found.fetchone()[0])

    def load_all(self, kind: type[T], found: Iterable[PastRecord]) -> list[T]:
        """Return these records, as they were."""
        loaded = (self.load(kind, one.record) for one in found)
        return [one for one in loaded if one is not None]

    def _run(self, query: str, **values: Any) -> sqlite3.Cursor:
        return self._connection.execute(QUERIES[query], values)
