"""The store as the broker sees it: records by id and by named query, and events to append."""

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

from scout.base.record import Record
from scout.base.time import Time
from scout.model.endpoint import Endpoint
from scout.model.events.envelope import Event
from scout.model.events.event_types import read_event
from scout.store import log
from scout.store.table import QUERIES, get_table

T = TypeVar("T", bound=Record)
LAST = "~"  # sorts after every id: where a list that starts with the newest record starts


class Ledger:
    """The records and the log, through one connection inside one transaction.

    A unit of work: appended events are collected in `unwritten` and written together, before the next query
    and at the end of the transaction. So every query sees every event, and a request that is refused before
    its first query has written nothing.

    `signs` are endpoints that showed a sign of life after their rows were written, by id.
    """

    def __init__(self, connection: sqlite3.Connection, signs: Mapping[str, Endpoint] = {}) -> None:
        self._connection = connection
        self._signs = signs
        self.unwritten: list[Event] = []

    @property
    def connection(self) -> sqlite3.Connection:
        """Return the connection for a query, after writing every appended event."""
        if self.unwritten:
            self.flush()
        return self._connection

    def flush(self) -> None:
        """Write the collected events and the rows that follow from them."""
        events, self.unwritten = self.unwritten, []
        log.append(self._connection, *events)

    def get(self, kind: type[T], ident: str | None) -> T | None:
        """Return the record with this id."""
        if ident is None:
            return None
        found = get_table(kind).get(self.connection, ident)
        return self.with_sign(found) if kind is Endpoint and found is not None else found

    def beginning(self, kind: type[Record], start: str, limit: int) -> list[str]:
        """Return the first ids that begin with this text."""
        return get_table(kind).beginning(self.connection, start, limit)

    def one(self, kind: type[T], query: str, **values: Any) -> T | None:
        """Return the first record that a named query finds."""
        found = self.connection.execute(QUERIES[query], values).fetchone()
        return self.with_sign(get_table(kind).read(found[0])) if found else None

    def many(self, kind: type[T], query: str, **values: Any) -> list[T]:
        """Return the records that a named query finds."""
        read = get_table(kind).read
        found = [read(data) for (data,) in self.connection.execute(QUERIES[query], values)]
        return [self.with_sign(one) for one in found] if kind is Endpoint and self._signs else found

    def with_sign(self, record: T) -> T:
        """Return an endpoint with its last sign of life, unless its row is newer; others unchanged."""
        if not isinstance(record, Endpoint):
            return record
        sign = self._signs.get(record.id)
        return cast("T", sign) if sign is not None and sign.revision == record.revision else record

    def value(self, query: str, **values: Any) -> Any:
        """Return the single value of a named query."""
        return self.connection.execute(QUERIES[query], values).fetchone()[0]

    def times(self, query: str, **values: Any) -> list[Time]:
        """Return the times of a named query."""
        return [Time(moment) for (moment,) in self.connection.execute(QUERIES[query], values)]

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a named query that returns no records."""
        return self.connection.execute(QUERIES[query], values).fetchall()

    def facts(self, query: str, **values: Any) -> Iterator[Event]:
        """Return the events that a named query finds."""
        for (data,) in self.connection.execute(QUERIES[query], values):
            yield read_event(data)

    def last_seq(self) -> int:
        """Return the number of the newest event."""
        return log.read_last_seq(self.connection)

    def refresh(self, record: Record) -> None:
        """Write a row without an event: only for volatile fields, such as a sign of life."""
        get_table(type(record)).write(self.connection, record)
