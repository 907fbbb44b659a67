"""The store as the broker meets it: records by id and by named query, facts appended. No SQL outside."""

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

from scout.base.record import Record
from scout.base.time import Time
from scout.model.endpoint import Endpoint
from scout.model.events.envelope import Event
from scout.model.events.event_types import read_event
from scout.store import log
from scout.store.directory import StoredDirectory, View
from scout.store.query import QUERIES
from scout.store.signs import as_heard
from scout.store.table import table_of

T = TypeVar("T", bound=Record)
LAST = "~"  # after every id: where a list that begins with the newest begins


class Ledger:
    """What is remembered, through one connection inside one transaction.

    `recent` are records as the log last left them, by id: they need not be read again. `signs` are endpoints
    that were heard from since their rows were written: whoever reads an endpoint gets its last sign of life.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        recent: Mapping[str, Record] = {},
        signs: Mapping[str, Endpoint] = {},
    ) -> None:
        self._connection = connection
        self._recent = recent
        self._signs = signs

    @property
    def connection(self) -> sqlite3.Connection:
        """For the store's own functions."""
        return self._connection

    def get(self, kind: type[T], ident: str | None) -> T | None:
        """The record with this id."""
        if ident is None:
            return None
        known = self._recent.get(ident)
        found = known if isinstance(known, kind) else table_of(kind).get(self._connection, ident)
        return self._as_heard(found) if found is not None else None

    def beginning(self, kind: type[Record], start: str, limit: int) -> list[str]:
        """The first ids that begin with this text."""
        return table_of(kind).beginning(self._connection, start, limit)

    def one(self, kind: type[T], query: str, **values: Any) -> T | None:
        """The first record that a named query finds."""
        found = self._connection.execute(QUERIES[query], values).fetchone()
        return self._as_heard(table_of(kind).read(found[0])) if found else None

    def many(self, kind: type[T], query: str, **values: Any) -> list[T]:
        """The records that a named query finds."""
        read = table_of(kind).read
        found = [read(data) for (data,) in self._connection.execute(QUERIES[query], values)]
        return [self._as_heard(one) for one in found] if kind is Endpoint and self._signs else found

    def _as_heard(self, record: T) -> T:
        return cast("T", as_heard(record, self._signs)) if isinstance(record, Endpoint) else record

    def value(self, query: str, **values: Any) -> Any:
        """The one number that a named query gives."""
        return self._connection.execute(QUERIES[query], values).fetchone()[0]

    def times(self, query: str, **values: Any) -> list[Time]:
        """The moments that a named query gives."""
        return [Time(moment) for (moment,) in self._connection.execute(QUERIES[query], values)]

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows of a named query that gives no records."""
        return self._connection.execute(QUERIES[query], values).fetchall()

    def facts(self, query: str, **values: Any) -> Iterator[Event]:
        """The events that a named query finds."""
        for (data,) in self._connection.execute(QUERIES[query], values):
            yield read_event(data)

    def directory(self, view: View, now: Time, online_within: float) -> StoredDirectory:
        """The directory as one caller sees it."""
        return StoredDirectory(self._connection, view, now, online_within, self._signs)

    def last_seq(self) -> int:
        """The number of the newest fact."""
        return log.last_seq(self._connection)

    def append(self, event: Event) -> None:
        """Store one fact and the rows that follow from it."""
        log.append(self._connection, event)

    def refresh(self, record: Record) -> None:
        """Write a row without a fact: only for what is volatile, such as a sign of life."""
        table = table_of(type(record))
        self._connection.execute(table.upsert, table.row(record))
