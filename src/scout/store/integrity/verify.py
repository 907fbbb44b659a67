"""Verification: the log is replayed into a new file and compared with the tables, row by row."""

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from scout.base.codec import encode_for_store
from scout.base.record import Record
from scout.base.refusal import Refused
from scout.model.noun import NOUNS
from scout.store.archive.files import check_archive, find_folder
from scout.store.database import connect
from scout.store.derived import DERIVED_TABLES
from scout.store.history.feed import HISTORY_TABLES
from scout.store.integrity.damage import build_damage_refusal
from scout.store.replay import replay_history, replay_log
from scout.store.retention.check import check_archives
from scout.store.retention.draft import list_kept, measure_reach
from scout.store.retention.snapshot import open_replay
from scout.store.table import TABLES, Table

_SHOWN = 100

# Tables that change without an event: not compared; they can be lost or rebuilt.
VOLATILE_TABLES: Mapping[str, str] = {
    "search": "the words of messages and work; rebuilt from the log",
    "indexed": "how far the search index has followed the log",
    "indexed_work": "which event stands in the search index for a work item",
    "indexed_events": "which row of the log has the words of an event in the search index",
    "archived_words": "the words of archived events; kept for the search",
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
    """What was checked and what is wrong. Verifying changes nothing.

    `snapshot`: the archived event after which the replay started; 0 without an archive. `archives`: the files
    with archived events that were checked.
    """

    events: int = 0
    rows: int = 0
    damage: tuple[str, ...] = ()
    gaps: tuple[int, ...] = ()
    differences: tuple[Difference, ...] = ()
    snapshot: int = 0
    archives: int = 0

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
    temporary = tempfile.TemporaryDirectory(prefix="scout-verify-")
    with temporary as folder, contextlib.closing(connect(path, readonly=True)) as store:
        store.execute("BEGIN")  # one snapshot of a store that may be in use
        damage = (*_find_damage(store), *check_archives(store))
        report = Report(damage=damage, archives=len(list_kept(store)))
        try:
            return _replay(store, Path(folder) / "replayed.db", report)
        except Refused:
            if not damage:
                raise
            return report  # nothing can be replayed without the damaged archive


def _replay(store: sqlite3.Connection, replayed: Path, report: Report) -> Report:
    """Replay the log from the newest snapshot, if that can be read, and compare the rows."""
    folder, snapshot = find_folder(store), measure_reach(store).snapshot
    if snapshot is not None and check_archive(folder / snapshot.file, snapshot.sha256) is not None:
        snapshot = None
    after = snapshot.last if snapshot is not None else 0
    with contextlib.closing(open_replay(folder, snapshot, replayed)) as copy:
        events, gaps = replay_log(store, copy, after)
        replay_history(store, copy, after)
        rows, differences = _compare(store, copy)
    return replace(report, events=events, rows=rows, gaps=gaps, differences=differences, snapshot=after)


def _find_damage(store: sqlite3.Connection) -> tuple[str, ...]:
    found = [str(row[0]) for row in store.execute(f"PRAGMA integrity_check({_SHOWN})")]
    return () if found == ["ok"] else tuple(found)


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


def _complete(stored: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a row with those that it lacks; a record inside it may lack some too."""
    found = {**defaults, **stored}
    for name, default in defaults.items():
        if isinstance(default, dict) and isinstance(found[name], dict):
            found[name] = {**default, **found[name]}
    return found


def _read_rows(table: Table, connection: sqlite3.Connection) -> Iterator[_Row]:
    volatile = VOLATILE_FIELDS.get(table.record, frozenset())
    left_out = {field.encode_name for field in msgspec.structs.fields(table.record) if field.name in volatile}
    columns = tuple(name for name in table.columns if name not in volatile)
    defaults = _list_defaults(table.record)
    query = f"SELECT id, data{''.join(f', {name}' for name in columns)} FROM {table.name} ORDER BY id"
    for ident, data, *values in connection.execute(query):
        fields = _complete(msgspec.json.decode(data), defaults)
        kept = {name: value for name, value in fields.items() if name not in left_out}
        yield ident, {**kept, "columns": dict(zip_longest(columns, values))}
