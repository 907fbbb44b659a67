"""A unit of work: its changes are read before they are written, taken back, and written as one by one."""

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.base.ids import derive_id
from scout.model.agent import Agent
from scout.model.conversation import Message
from scout.model.events.envelope import Event
from scout.model.events.event_types import read_event
from scout.model.events.mesh import EnvelopeReceived, ReceivedEnvelope
from scout.model.mesh.envelope import ReceiptState
from scout.store.database import connect
from scout.store.derived import DERIVED_TABLES
from scout.store.ledger import Ledger
from scout.store.log import read_events
from scout.store.migrate import migrate
from scout.store.table import QUERIES, QUERY_TABLES, TABLES
from scout.store.unit_of_work import UnitOfWork
from tests import seeds
from tests.broker.old_log import logs
from tests.policy.fleets import agent
from tests.store.facts import append_records, fact, post_message

ARC = agent("arc", id=derive_id("agt", "arc"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = connect(tmp_path / "scout.db")
    migrate(connection)
    connection.execute("BEGIN")
    yield connection
    connection.close()


def open_ledger(store: sqlite3.Connection) -> tuple[UnitOfWork, Ledger]:
    unit = UnitOfWork(store)
    return unit, Ledger(store, unit=unit)


def count_rows(store: sqlite3.Connection, table: str) -> int:
    return int(store.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_record_is_read_before_it_is_written(store: sqlite3.Connection) -> None:
    unit, ledger = open_ledger(store)
    append_records(unit, ARC)
    assert ledger.get(Agent, ARC.id) == ARC
    assert ledger.get(Message, ARC.id) is None  # another kind of record
    assert count_rows(store, "agents") == 0


def test_a_query_sees_every_change(store: sqlite3.Connection) -> None:
    unit, ledger = open_ledger(store)
    append_records(unit, ARC)
    assert ledger.one(Agent, "agent_at_path", path=str(ARC.path)) == ARC
    assert not unit


def test_a_query_on_other_tables_writes_nothing(store: sqlite3.Connection) -> None:
    unit, ledger = open_ledger(store)
    append_records(unit, ARC)
    ledger.many(Message, "messages_after", conversation="cnv", after=0, limit=1)
    assert count_rows(store, "agents") == 0
    assert ledger.last_seq() == 1


def test_a_record_that_changed_twice_is_written_once(store: sqlite3.Connection) -> None:
    unit, _ = open_ledger(store)
    written: list[str] = []
    store.set_trace_callback(written.append)
    append_records(unit, ARC, replace(ARC, workspace="two"))
    message = derive_id("msg", "one")
    for text in ("a", "b"):
        post_message(text, message=message)(unit)
    unit.flush()
    store.set_trace_callback(None)
    assert sum(statement.startswith("INSERT INTO messages") for statement in written) == 1
    # Another agent may have taken the name in between, so each version of an agent is written.
    assert sum(statement.startswith("INSERT INTO agents") for statement in written) == 2
    assert count_rows(store, "events") == 1  # a row holds all events of a request
    assert [event.seq for event in read_events(store, 0, 9)] == [1, 2, 3, 4]


def test_a_refused_request_takes_back_its_own_changes_only(store: sqlite3.Connection) -> None:
    unit, ledger = open_ledger(store)
    unit.begin_request()
    append_records(unit, ARC)
    unit.begin_request()
    append_records(unit, replace(ARC, workspace="two"), agent("bee", id=derive_id("agt", "bee")))
    assert unit.take_back()
    assert (ledger.get(Agent, ARC.id), ledger.get(Agent, derive_id("agt", "bee"))) == (ARC, None)
    assert ledger.last_seq() == 1


def test_an_envelope_counts_as_taken_before_it_is_written(store: sqlite3.Connection) -> None:
    unit, ledger = open_ledger(store)
    first, second = (derive_id("env", name) for name in ("first", "second"))
    _take_envelope(unit, first)
    unit.begin_request()
    _take_envelope(unit, second)
    assert (ledger.has_received(first), ledger.has_received(second)) == (True, True)
    assert count_rows(store, "envelopes_received") == 0
    assert unit.take_back()
    assert (ledger.has_received(first), ledger.has_received(second)) == (True, False)
    unit.flush()
    assert ledger.has_received(first)
    assert Ledger(store).has_received(first)


def _take_envelope(unit: UnitOfWork, ident: str) -> None:
    taken = ReceivedEnvelope(
        envelope_id=ident, node_id=derive_id("nod", "two"), kind="message", outcome=ReceiptState.ACCEPTED
    )
    fact(unit, EnvelopeReceived, ident, taken)


def test_written_changes_cannot_be_taken_back(store: sqlite3.Connection) -> None:
    unit, _ = open_ledger(store)
    unit.begin_request()
    append_records(unit, ARC)
    unit.begin_request()
    unit.flush()  # those of the request before it
    assert unit.take_back()
    append_records(unit, agent("bee", id=derive_id("agt", "bee")))
    unit.flush()
    assert not unit.take_back()
    unit.begin_request()
    store.execute("INSERT INTO looks VALUES ('me', 1)")
    assert not unit.take_back()


def test_each_query_names_the_tables_that_it_reads(store: sqlite3.Connection) -> None:
    read: set[str] = set()

    def note(action: int, table: str | None, *_: Any) -> int:
        if action == sqlite3.SQLITE_READ and table is not None:
            read.add(table)
        return sqlite3.SQLITE_OK

    projected = {*TABLES, *DERIVED_TABLES, "events"}
    store.set_authorizer(note)
    for name, statement in QUERIES.items():
        read.clear()
        store.execute(f"EXPLAIN {statement}", _Anything())
        assert read & projected <= QUERY_TABLES[name], name
    store.set_authorizer(None)


class _Anything(dict[str, int]):
    def __missing__(self, key: str) -> int:
        return 1


def test_each_table_with_another_unique_column_says_so(store: sqlite3.Connection) -> None:
    for table in TABLES.values():
        unique = [
            row for row in store.execute(f"PRAGMA index_list({table.name})") if row[2] and row[3] != "pk"
        ]
        assert table.has_unique_columns == bool(unique), table.name


# -- together as one by one ------------------------------------------------------------------------


def read_tables(store: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    tables = {
        name: sorted(store.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
        for name in (*TABLES, *DERIVED_TABLES)
    }
    return {**tables, "events": [(event,) for event in read_events(store, 0, 1 << 30)]}


def replay(path: Path, events: list[Event], sizes: Iterator[int]) -> dict[str, list[tuple[Any, ...]]]:
    connection = connect(path)
    migrate(connection)
    unit, rest = UnitOfWork(connection), list(events)
    connection.execute("BEGIN")
    while rest:
        size = next(sizes)
        unit.events.extend(rest[:size])
        unit.flush()
        del rest[:size]
    found = read_tables(connection)
    connection.close()
    return found


@pytest.mark.parametrize("log", logs(), ids=lambda one: one.name)
def test_events_that_are_written_together_leave_the_rows_of_one_by_one(log: Path, tmp_path: Path) -> None:
    events = [read_event(line.encode()) for line in log.read_text().splitlines()]
    alone = replay(tmp_path / "alone.db", events, iter(lambda: 1, 0))
    for number in range(5):
        chance = random.Random(seeds.run_seed() + number)
        sizes = iter(lambda chance=chance: chance.choice((1, 2, 5, 20, 100)), 0)
        assert replay(tmp_path / f"{number}.db", events, sizes) == alone
    assert replay(tmp_path / "all.db", events, iter(lambda: len(events), 0)) == alone
