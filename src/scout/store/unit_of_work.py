"""What the requests of one commit group have changed and not written yet.

A statement costs more than the row it writes. So the events and records of all requests of a group collect
here and are written once, just before COMMIT: one `executemany` for each table, and each record in its last
version only. The same transaction holds the events and their rows, so a crash keeps both or neither.

Requests read through it. A record by id is looked up here first. A named query is run on the tables, so it
needs them up to date: if one of its tables has unwritten changes, everything is written before the query
runs. That is always right and rarely needed, because the hot paths ask the cache and not the tables.

A request that is refused takes its changes back (`take_back`), and the rest of the group is not touched. This
is not possible after some of them were written; then the writer rolls the group back and runs its requests
one by one.
"""

import sqlite3
from collections.abc import Collection

from scout.base.record import Record
from scout.model.events.envelope import Event
from scout.store.derived import DerivedMemory
from scout.store.projection import append, list_changed_tables, list_records

_EVENTS = frozenset({"events", "concerned"})


class UnitOfWork:
    """Unwritten events in the order of the log, and the records after them by id.

    `connection` is that of the writer: its tables lack what is unwritten.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._events: list[Event] = []
        self._records: dict[str, Record] = {}
        self._changed: set[str] = set()
        self._memory = DerivedMemory()
        # What the current request replaced, and where its events begin; None: some of them were written.
        self._replaced: list[tuple[str, Record | None]] = []
        self._first: int | None = 0
        # The rows written on this connection before the current request wrote one itself.
        self._changes = connection.total_changes

    def __bool__(self) -> bool:
        return bool(self._events)

    @property
    def last_seq(self) -> int | None:
        """Return the number of the last unwritten event."""
        return self._events[-1].seq if self._events else None

    def add(self, event: Event) -> None:
        """Append an event, and change the records that it carries."""
        self._events.append(event)
        self._changed |= _EVENTS
        for record in list_records(event):
            ident: str = getattr(record, "id")  # noqa: B009 (every stored record has one)
            self._replaced.append((ident, self._records.get(ident)))
            self._records[ident] = record
            self._changed |= list_changed_tables(type(record))
        self._changed |= list_changed_tables(type(event))

    def find(self, ident: str) -> Record | None:
        """Return the unwritten version of a record."""
        return self._records.get(ident)

    def has_changed(self, tables: Collection[str]) -> bool:
        """Whether one of these tables lacks an unwritten change."""
        return not self._changed.isdisjoint(tables)

    def flush(self) -> None:
        """Write everything, in the transaction that is open."""
        events, self._events = self._events, []
        own_written = self._first is None or self._first < len(events)
        self._first = None if own_written else 0
        self._records.clear()
        self._changed.clear()
        self._replaced.clear()
        append(self.connection, *events, memory=self._memory)
        self._changes = self.connection.total_changes

    # -- one request of the group ------------------------------------------------------------------

    def begin_request(self) -> None:
        """Remember where the changes of the next request begin."""
        self._replaced.clear()
        self._first = len(self._events)
        self._changes = self.connection.total_changes

    def take_back(self) -> bool:
        """Remove the changes of the current request; return False if some of them were written."""
        if self._first is None or self.connection.total_changes != self._changes:
            return False
        del self._events[self._first :]
        for ident, before in reversed(self._replaced):
            if before is None:
                del self._records[ident]
            else:
                self._records[ident] = before
        self._replaced.clear()
        return True

    def clear(self) -> None:
        """Forget everything, after a rollback."""
        self._events.clear()
        self._records.clear()
        self._changed.clear()
        self._memory.clear()
        self.begin_request()
