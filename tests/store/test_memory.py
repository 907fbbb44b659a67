"""The memory of transactions answers as the tables would, whatever was written, refused or rolled back."""

import random
import sqlite3
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from scout.base.ids import derive_id
from scout.base.time import Time
from scout.model.access.token import Token
from scout.model.conversation import Message
from scout.model.delivery import Delivery
from scout.model.events.asks import DeliveryRequested
from scout.model.events.envelope import Changed, Event
from scout.model.events.event_types import read_event
from scout.store.database import connect
from scout.store.ledger import LAST, Ledger
from scout.store.memory import KEPT, LONGEST
from scout.store.migrate import migrate
from scout.store.unit_of_work import UnitOfWork, append, list_records
from tests import seeds
from tests.broker.old_log import logs
from tests.store.facts import NOW, fact, post_message

ARC, BEE = derive_id("agt", "arc"), derive_id("agt", "bee")
PLACE = derive_id("cnv", "place")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = open_store(tmp_path / "scout.db")
    yield connection
    connection.close()


def open_store(path: Path) -> sqlite3.Connection:
    connection = connect(path)
    migrate(connection)
    connection.execute("BEGIN")
    return connection


def open_ledger(store: sqlite3.Connection) -> tuple[UnitOfWork, Ledger]:
    unit = UnitOfWork(store)
    return unit, Ledger(store, unit=unit)


def deliver(unit: UnitOfWork, name: str, flight: str = "one", **more: Any) -> Delivery:
    delivery = Delivery(
        id=derive_id("dlv", name),
        created_at=NOW,
        updated_at=NOW,
        sender=BEE,
        target=ARC,
        flight_id=derive_id("flt", flight),
        conversation_id=PLACE,
        next_attempt_at=NOW,
        **more,
    )
    fact(unit, DeliveryRequested, delivery.id, Changed(record=delivery, move="request"))
    return delivery


def list_ids(ledger: Ledger, flight: str = "one") -> set[str]:
    found = ledger.many(Delivery, "deliveries_of_flight", flight=derive_id("flt", flight))
    return {one.id for one in found}


# -- as the tables would ----------------------------------------------------------------------------


def ask_about(records: Iterator[Any] | list[Any]) -> list[tuple[str, dict[str, Any]]]:
    """The queries that a change of these records may answer differently."""
    found: list[tuple[str, dict[str, Any]]] = []
    for record in records:
        for name, kept in KEPT.items():
            if record.__class__ is kept.kind and kept.key(record) is not None:
                found.append((name, {kept.parameter: kept.key(record)}))
            if record.__class__ is kept.starts:
                found.append((name, {kept.parameter: record.id}))
    return found


def run_query(ledger: Ledger, name: str, values: dict[str, Any]) -> list[Any]:
    bounds = {"after": "", "before": LAST, "since": 0, "limit": 50}
    kind: type[Any] = KEPT[name].kind
    found: list[Any] = ledger.many(kind, name, **values, **bounds)
    return sorted(found, key=attrgetter("id"))


@pytest.mark.parametrize("log", logs(), ids=lambda one: one.name)
def test_kept_lists_and_records_are_those_of_the_tables(log: Path, tmp_path: Path) -> None:
    events = [read_event(line.encode()) for line in log.read_text().splitlines()]
    for number in range(3):
        chance = random.Random(seeds.run_seed() + number)
        kept, plain = open_store(tmp_path / f"kept{number}.db"), open_store(tmp_path / f"plain{number}.db")
        play(events, chance, kept, plain)
        kept.close()
        plain.close()


def play(
    events: list[Event], chance: random.Random, kept: sqlite3.Connection, plain: sqlite3.Connection
) -> None:
    unit, ledger = open_ledger(kept)
    tables = Ledger(plain)
    seen: list[Any] = []
    for event in events:
        unit.begin_request()
        if chance.random() < 0.2:  # a request that does the same, reads, and is refused
            unit.events.append(event)
            compare_records(ledger, None, list(list_records(event)))
            assert unit.take_back()
        unit.begin_request()
        unit.events.append(event)
        append(plain, event)
        seen += list_records(event)
        about = list(list_records(event)) + chance.sample(seen, min(len(seen), 3))
        compare_records(ledger, tables, about)
        if chance.random() < 0.1:
            unit.flush()
        if chance.random() < 0.05:
            unit.flush()
            kept.execute("COMMIT")
            kept.execute("BEGIN")
            unit.clear()  # as after a group that was rolled back: nothing is known


def compare_records(ledger: Ledger, tables: Ledger | None, about: list[Any]) -> None:
    for name, values in ask_about(about):
        found = run_query(ledger, name, values)
        assert tables is None or found == run_query(tables, name, values), (name, values)
    for record in about:
        kind: type[Any] = record.__class__
        read: Any = ledger.get(kind, record.id)
        assert tables is None or read == tables.get(kind, record.id)


# -- what is taken back -----------------------------------------------------------------------------


def test_a_list_is_read_once_and_writes_nothing(store: sqlite3.Connection) -> None:
    unit, ledger = open_ledger(store)
    first = deliver(unit, "first")
    unit.flush()
    second = deliver(unit, "second")
    statements: list[str] = []
    store.set_trace_callback(statements.append)
    assert list_ids(ledger) == {first.id, second.id}
    third = deliver(unit, "third")
    assert list_ids(ledger) == {first.id, second.id, third.id}
    store.set_trace_callback(None)
    assert len(statements) == 1
    assert statements[0].startswith("SELECT")


def test_a_refused_request_leaves_nothing_in_a_list(store: sqlite3.Connection) -> None:
    unit, ledger = open_ledger(store)
    first = deliver(unit, "first")
    unit.begin_request()
    gone = deliver(unit, "gone")
    assert list_ids(ledger) == {first.id, gone.id}
    assert unit.take_back()
    assert list_ids(ledger) == {first.id}
    assert ledger.get(Delivery, gone.id) is None


def test_a_group_that_is_rolled_back_leaves_nothing(store: sqlite3.Connection) -> None:
    unit, ledger = open_ledger(store)
    kept = deliver(unit, "kept")
    unit.flush()
    store.execute("COMMIT")
    store.execute("BEGIN")
    lost = deliver(unit, "lost")
    assert list_ids(ledger) == {kept.id, lost.id}
    unit.flush()
    store.rollback()
    unit.clear()
    store.execute("BEGIN")
    assert list_ids(ledger) == {kept.id}
    assert ledger.get(Delivery, lost.id) is None


def test_a_row_that_is_refreshed_without_an_event_is_read_as_it_is(store: sqlite3.Connection) -> None:
    unit, ledger = open_ledger(store)
    first = deliver(unit, "first")
    assert list_ids(ledger) == {first.id}
    changed = deliver(unit, "first", problem="another")
    ledger.refresh(changed)
    assert ledger.get(Delivery, first.id) == changed
    assert ledger.many(Delivery, "deliveries_of_flight", flight=first.flight_id) == [changed]


# -- bounds -----------------------------------------------------------------------------------------


def test_a_long_list_is_read_from_the_table(store: sqlite3.Connection) -> None:
    unit, ledger = open_ledger(store)
    assert not list_ids(ledger)
    names = {deliver(unit, str(number)).id for number in range(LONGEST)}
    assert list_ids(ledger) == names
    assert unit  # nothing was written for that
    names.add(deliver(unit, "one more").id)
    assert list_ids(ledger) == names
    unit.flush()
    names.add(deliver(unit, "and another").id)
    assert list_ids(ledger) == names
    assert not unit  # the table has too many, so all of them were read there


def test_wakes_are_counted_from_a_moment_also_after_the_clock_was_set_back(store: sqlite3.Connection) -> None:
    unit, ledger = open_ledger(store)
    deliver(unit, "wakes", wake=True)
    deliver(unit, "waits")
    unit.flush()

    def count(since: int) -> int:
        return len(ledger.many(Delivery, "wakes_in", conversation=PLACE, since=since, limit=9))

    assert [count(NOW), count(Time(NOW - 1)), count(NOW)] == [0, 1, 0]


def test_a_long_message_is_not_kept(store: sqlite3.Connection) -> None:
    unit, ledger = open_ledger(store)
    for body in ("x", "x" * 5000):
        post_message(body, message="same")(unit)
        unit.flush()
        statements: list[str] = []
        store.set_trace_callback(statements.append)
        found = ledger.get(Message, derive_id("msg", "same"))
        store.set_trace_callback(None)
        assert found is not None
        assert (found.body, bool(statements)) == (body, len(body) > 1)


def test_a_kind_that_is_not_kept_is_read_each_time(store: sqlite3.Connection) -> None:
    _, ledger = open_ledger(store)
    assert ledger.get(Token, derive_id("tok", "none")) is None
    assert ledger.get(Token, None) is None
