"""A key is answered once, for a day; a look is remembered."""

import sqlite3
from pathlib import Path

import pytest

from scout.store.database import connect
from scout.store.integrity.verify import verify
from scout.store.migrate import migrate
from scout.store.receipts import Remembered, forget, mark_look, read_last_look, recall, remember
from tests.store.facts import NOW, post_message


@pytest.fixture
def store(tmp_path: Path):
    connection = connect(tmp_path / "scout.db")
    migrate(connection)
    yield connection
    connection.close()


def test_an_answer_is_kept_per_actor_operation_and_key(store: sqlite3.Connection) -> None:
    receipt = Remembered("h1", b"{}")
    remember(store, "ann", "send", "k", receipt=receipt, now=NOW)
    assert recall(store, "ann", "send", "k") == receipt
    for other in (("bob", "send", "k"), ("ann", "ask", "k"), ("ann", "send", "K")):
        assert recall(store, *other) is None
    with pytest.raises(sqlite3.IntegrityError):
        remember(store, "ann", "send", "k", receipt=Remembered("h2", b""), now=NOW)


def test_old_answers_are_forgotten_oldest_first(store: sqlite3.Connection) -> None:
    for number in range(5):
        remember(store, "ann", "send", f"k{number}", receipt=Remembered("h", b""), now=NOW.plus(number))
    assert forget(store, NOW.plus(4), 3) == 3
    assert [recall(store, "ann", "send", f"k{number}") is None for number in range(5)] == [True] * 3 + [
        False
    ] * 2
    assert (forget(store, NOW.plus(4), 3), forget(store, NOW.plus(4), 3)) == (1, 0)
    plan = store.execute(
        "EXPLAIN QUERY PLAN SELECT actor, operation, key FROM receipts WHERE time < 5 ORDER BY time LIMIT 5"
    )
    assert ["receipts_by_time" in row[3] for row in plan] == [True]


def test_a_look_is_remembered_and_never_goes_back(store: sqlite3.Connection) -> None:
    assert read_last_look(store, "me") is None
    mark_look(store, "me", NOW.plus(5))
    mark_look(store, "me", NOW)
    assert read_last_look(store, "me") == NOW.plus(5)


@pytest.mark.rows("R0-87", "R2.3-19")
def test_receipts_looks_and_the_index_are_outside_verify(store: sqlite3.Connection, tmp_path: Path) -> None:
    post_message("hello")(store)
    remember(store, "ann", "send", "k", receipt=Remembered("h", b""), now=NOW)
    mark_look(store, "me", NOW)
    store.execute("UPDATE indexed SET seq = 1")  # and yet nothing is indexed
    assert verify(tmp_path / "scout.db").clean
