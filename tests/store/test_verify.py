"""Replay equals the tables row for row, and whatever does not is shown."""

import sqlite3
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scout.base.ids import derive_id
from scout.model.alias import AliasTarget
from scout.model.conversation import Member
from scout.model.events.event_types import ALL
from scout.model.noun import NOUNS
from scout.store.database import connect
from scout.store.derived import DERIVED_TABLES
from scout.store.integrity.verify import verify
from scout.store.log import read_events, read_last_seq
from scout.store.table import TABLES
from scout.store.unit_of_work import append
from tests.model.generate import records
from tests.policy.fleets import agent, alias, endpoint, session
from tests.store.facts import append_records, post_message


def find_path(connection: sqlite3.Connection) -> Path:
    return Path(connection.execute("PRAGMA database_list").fetchone()[2])


def ident(kind: str, name: str) -> str:
    return derive_id(kind, name)


def fill(connection: sqlite3.Connection) -> None:
    one = agent("arc", id=ident("agt", "arc"))
    append_records(
        connection,
        one,
        endpoint(one, "codex", "gpt-5.5", id=ident("ept", "e")),
        session(one, ident("ses", "s"), native_ids={"thread": "0f"}),
        alias("huddy", AliasTarget(agent_id=one.id), id=ident("als", "a")),
    )
    post_message("hello")(connection)


@pytest.mark.rows("R2.3-28")
def test_a_true_store_is_clean(store: sqlite3.Connection) -> None:
    fill(store)
    report = verify(find_path(store))
    assert report.clean
    assert report.events == 5
    assert report.rows > 5


def test_a_store_in_use_is_seen_at_one_moment(store: sqlite3.Connection) -> None:
    fill(store)
    path, done = find_path(store), threading.Event()
    writer = connect(path)

    def write() -> None:
        while not done.is_set():
            writer.execute("BEGIN")
            post_message("more")(writer)
            writer.execute("COMMIT")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        reports = [verify(path) for _ in range(5)]
    finally:
        done.set()
        thread.join()
        writer.close()
    assert [report.differences for report in reports] == [()] * 5
    assert reports[-1].events > reports[0].events


def test_an_empty_store_is_clean(store: sqlite3.Connection) -> None:
    assert verify(find_path(store)).clean


@pytest.mark.parametrize(
    ("damage", "table", "side"),
    [
        ("UPDATE agents SET lifecycle = 'sleeping'", "agents", "both"),
        ("UPDATE messages SET data = CAST(json_set(data, '$.body', 'other') AS BLOB)", "messages", "both"),
        ("DELETE FROM endpoints", "endpoints", "replayed"),
        ("INSERT INTO nodes VALUES ('nod_x', 'x', 0, 'online', CAST('{}' AS BLOB))", "nodes", "stored"),
        ("DELETE FROM endpoint_words WHERE word <> ''", "endpoint_words", "both"),
    ],
)
def test_a_row_that_the_log_does_not_explain_is_shown(
    store: sqlite3.Connection, damage: str, table: str, side: str
) -> None:
    fill(store)
    store.execute(damage)
    report = verify(find_path(store))
    assert not report.clean
    first = report.differences[0]
    assert first.table == table
    sides = {"both": (True, True), "stored": (True, False), "replayed": (False, True)}
    if table != "endpoint_words":
        assert (first.stored is not None, first.replayed is not None) == sides[side]


def test_a_gap_in_the_log_is_shown(store: sqlite3.Connection) -> None:
    fill(store)
    store.execute("DROP TRIGGER events_stay")
    store.execute("DELETE FROM events WHERE seq = 3")
    assert verify(find_path(store)).gaps == (2,)


def test_volatile_fields_may_change_without_an_event(store: sqlite3.Connection) -> None:
    fill(store)
    store.execute("UPDATE endpoints SET last_seen = 5, data = CAST(json_set(data, '$.lastSeen', 5) AS BLOB)")
    assert verify(find_path(store)).clean


@pytest.mark.rows("R2.1-36")
def test_every_noun_has_its_table_and_every_table_its_columns(store: sqlite3.Connection) -> None:
    assert {noun.record for noun in NOUNS.values()} | {Member} == {table.record for table in TABLES.values()}
    for table in TABLES.values():
        found = [row[1] for row in store.execute(f"PRAGMA table_info({table.name})")]
        assert sorted(found) == sorted(["id", *table.columns, "data"])
    for name, columns in DERIVED_TABLES.items():
        assert [row[1] for row in store.execute(f"PRAGMA table_info({name})")] == list(columns)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: str(kind.__struct_config__.tag))
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_fact_is_stored_and_read_back_the_same(
    store: sqlite3.Connection, kind: type, data: st.DataObject
) -> None:
    event = data.draw(records(kind))
    store.execute("BEGIN")
    try:
        append(store, event)
        assert list(read_events(store, event.seq - 1, 1)) == [event]
        assert read_last_seq(store) == event.seq
    finally:
        store.execute("ROLLBACK")
