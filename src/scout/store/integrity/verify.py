"""Verification: the log is replayed into a new file and compared with the tables, row by row."""

import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import msgspec

from scout.base.codec import encode_for_store
from scout.base.record import Record
from scout.model.noun import NOUNS
from scout.store.database import connect
from scout.store.derived import DERIVED_TABLES
from scout.store.history.feed import HISTORY_TABLES, build_batch, read_mark, store_batch
from scout.store.integrity.damage import build_damage_refusal
from scout.store.log import read_rows, read_stored_rows
from scout.store.migrate import migrate
from scout.store.table import TABLES, Table
from scout.store.touched import list_entries, outline, read_touched_mark, store_entries
from scout.store.unit_of_work import project

_SHOWN = 100
_STEP = 1000

# Tables that change without an event: not compared; they can be lost or rebuilt.
VOLATILE_TABLES: Mapping[str, str] = {
    "search": "the words of messages and work; rebuilt from the log",
    "indexed": "how far the search index has followed the log",
    "indexed_work": "which event stands in the search index for a work item",
    "indexed_events": "which row of the log has the words of an event in the search index",
    "history_mark": "how far the history has followed the log",
    "receipts": "responses by idempotency key, kept for a day",
    "chat_cursors": "how far each connector has read",
    "remote_agents": "agents of other nodes, as their nodes list them",
    "remote_words": "the harnesses and models of agents of other nodes",
    "remote_names": "names of agents of other nodes",
    "remote_name_keys": "keys under which similar names of other nodes are found",
    "link_attempts": "wrong link codes, kept while they count",
    "looks": "when a person last looked, and the sweeper's position",
}
# Heartbeats and last use: volatile fields, which the model names with each noun.
VOLATILE_FIELDS = {noun.record: noun.volatile for noun in NOUNS.values() if noun.volatile}


class Difference(Record):
    """A row that the log does not explain: `stored` as it is, `replayed` as it should be."""

    table: str
    id: str
    stored: dict[str, Any] | None
    replayed: dict[str, Any] | None


class Report(Record):
    """What was checked and what is wrong. Verifying changes nothing."""

    events: int
    rows: int
    damage: tuple[str, ...]
    gaps: tuple[int, ...]
    differences: tuple[Difference, ...]

    @property
    def clean(self) -> bool:
        return not (self.damage or self.gaps or self.differences)


def verify(path: Path) -> Report:
    """Check the file, that the log has no gaps, and that a replay gives the same rows.

    A file that cannot be read completely is refused with the reason.
    """
    try:
        return _verify(path)
    except sqlite3.DatabaseError as error:
        raise build_damage_refusal(path, str(error)) from None


def _verify(path: Path) -> Report:
    with tempfile.TemporaryDirectory(prefix="scout-verify-") as folder:
        store, copy = connect(path, readonly=True), connect(Path(folder) / "replayed.db")
        try:
            copy.execute("PRAGMA synchronous = OFF")  # a temporary file
            migrate(copy)
            store.execute("BEGIN")  # one snapshot of a store that may be in use
            damage = _find_damage(store)
            events, gaps = _replay(store, copy)
            _replay_history(store, copy)
            rows, differences = _compare(store, copy)
        finally:
            store.close()
            copy.close()
    return Report(events=events, rows=rows, damage=damage, gaps=gaps, differences=differences)


def _find_damage(store: sqlite3.Connection) -> tuple[str, ...]:
    found = [str(row[0]) for row in store.execute(f"PRAGMA integrity_check({_SHOWN})")]
    return () if found == ["ok"] else tuple(found)


def _replay(store: sqlite3.Connection, copy: sqlite3.Connection) -> tuple[int, tuple[int, ...]]:
    """Project every event; return their count and the numbers before each gap."""
    copy.execute("BEGIN")
    count, expected = 0, 1
    gaps: list[int] = []
    for row in read_rows(store, 0):
        if row.events[0].seq != expected:
            gaps.append(expected - 1)
        count, expected = count + len(row.events), row.seq + 1
        for event in row.events:
            project(copy, event)
    copy.execute("COMMIT")
    return count, tuple(gaps[:_SHOWN])


def _replay_history(store: sqlite3.Connection, copy: sqlite3.Connection) -> None:
    """Repeat the history as far as it has followed the log, and the index of touched records after it."""
    mark, touched, done = read_mark(store) or 0, read_touched_mark(store), 0
    copy.execute("BEGIN")
    while rows := list(islice(read_stored_rows(store, done), _STEP)):
        known = [row for row in rows if row.seq <= mark]
        if known:
            store_batch(copy, build_batch(copy, done, known))
        store_entries(copy, list_entries(outline(row) for row in rows if mark < row.seq <= touched))
        done = rows[-1].seq
    copy.execute("COMMIT")


def _compare(store: sqlite3.Connection, copy: sqlite3.Connection) -> tuple[int, tuple[Difference, ...]]:
    rows = 0
    differences: list[Difference] = []
    for table in TABLES.values():
        for ident, ours, theirs in _pair_rows(table, store, copy):
            rows += 1
            if ours != theirs and len(differences) < _SHOWN:
                differences.append(Difference(table=table.name, id=ident, stored=ours, replayed=theirs))
    for name, columns in {**DERIVED_TABLES, **HISTORY_TABLES}.items():
        query = f"SELECT {', '.join(columns)} FROM {name} ORDER BY {', '.join(columns)}"
        for one, other in zip_longest(store.execute(query), copy.execute(query)):
            rows += 1
            if one != other:
                ours, theirs = (row and dict(zip(columns, row, strict=True)) for row in (one, other))
                differences.append(Difference(table=name, id="", stored=ours, replayed=theirs))
                break  # the rows after the first difference would all be shifted
    return rows, tuple(differences)


def _pair_rows(
    table: Table, store: sqlite3.Connection, copy: sqlite3.Connection
) -> Iterator[tuple[str, dict[str, Any] | None, dict[str, Any] | None]]:
    """Yield both versions of every row, by id."""
    ours, theirs = _read_rows(table, store), _read_rows(table, copy)
    for one, other in _merge_rows(ours, theirs):
        present = one or other
        assert present is not None  # a pair has at least one side
        yield present[0], one and one[1], other and other[1]


_Row = tuple[str, dict[str, Any]]


def _merge_rows(ours: Iterator[_Row], theirs: Iterator[_Row]) -> Iterator[tuple[_Row | None, _Row | None]]:
    one, other = next(ours, None), next(theirs, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            yield one, None
            one = next(ours, None)
        elif one is None or other[0] < one[0]:
            yield None, other
            other = next(theirs, None)
        else:
            yield one, other
            one, other = next(ours, None), next(theirs, None)


def _list_defaults(record: type[Record]) -> dict[str, Any]:
    """Return the fields that a row may lack, as it would hold them."""
    known = {field.encode_name: field.default for field in msgspec.structs.fields(record)}
    made = {
        field.encode_name: field.default_factory()
        for field in msgspec.structs.fields(record)
        if field.default_factory is not msgspec.NODEFAULT
    }
    given = {name: value for name, value in known.items() if value is not msgspec.NODEFAULT}
    return msgspec.json.decode(encode_for_store({**given, **made}))


def _read_rows(table: Table, connection: sqlite3.Connection) -> Iterator[_Row]:
    volatile = VOLATILE_FIELDS.get(table.record, frozenset())
    left_out = {field.encode_name for field in msgspec.structs.fields(table.record) if field.name in volatile}
    columns = tuple(name for name in table.columns if name not in volatile)
    defaults = _list_defaults(table.record)
    query = f"SELECT id, data{''.join(f', {name}' for name in columns)} FROM {table.name} ORDER BY id"
    for ident, data, *values in connection.execute(query):
        fields: dict[str, Any] = {**defaults, **msgspec.json.decode(data)}
        kept = {name: value for name, value in fields.items() if name not in left_out}
        yield ident, {**kept, "columns": dict(zip_longest(columns, values))}
