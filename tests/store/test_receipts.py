"""A key is answered once, for a day; a look is remembered."""

import sqlite3
from pathlib import Path

import pytest

from scout.store.integrity.verify import verify
from scout.store.ledger import Ledger, Remembered
from tests.store.facts import NOW, post_message


def test_an_answer_is_kept_per_actor_operation_and_key(store: sqlite3.Connection) -> None:
    receipt = Remembered("h1", b"{}")
    Ledger(store).remember("ann", "send", "k", receipt=receipt, now=NOW)
    assert Ledger(store).recall("ann", "send", "k") == receipt
    for other in (("bob", "send", "k"), ("ann", "ask", "k"), ("ann", "send", "K")):
        assert Ledger(store).recall(*other) is None
    with pytest.raises(sqlite3.IntegrityError):
        Ledger(store).remember("ann", "send", "k", receipt=Remembered("h2", b""), now=NOW)


def test_old_answers_are_forgotten_oldest_first(store: sqlite3.Connection) -> None:
    for number in range(5):
        Ledger(store).remember(
            "ann", "send", f"k{number}", receipt=Remembered("h", b""), now=NOW.plus(number)
        )
    assert Ledger(store).forget_answers(NOW.plus(4), 3) == 3
    assert [Ledger(store).recall("ann", "send", f"k{number}") is None for number in range(5)] == [
        True
    ] * 3 + [False] * 2
    assert (Ledger(store).forget_answers(NOW.plus(4), 3), Ledger(store).forget_answers(NOW.plus(4), 3)) == (
        1,
        0,
    )
    plan = store.execute(
        "EXPLAIN QUERY PLAN SELECT actor, operation, key FROM receipts WHERE time < 5 ORDER BY time LIMIT 5"
    )
    assert ["receipts_by_time" in row[3] for row in plan] == [True]


def test_a_look_is_remembered_and_never_goes_back(store: sqlite3.Connection) -> None:
    assert Ledger(store).read_last_look("me") is None
    Ledger(store).mark_look("me", NOW.plus(5))
    Ledger(store).mark_look("me", NOW)
    assert Ledger(store).read_last_look("me") == NOW.plus(5)


@pytest.mark.rows("R0-87", "R2.3-19")
def test_receipts_looks_and_the_index_are_outside_verify(store: sqlite3.Connection, tmp_path: Path) -> None:
    post_message("hello")(store)
    Ledger(store).remember("ann", "send", "k", receipt=Remembered("h", b""), now=NOW)
    Ledger(store).mark_look("me", NOW)
    store.execute("UPDATE indexed SET seq = 1")  # and yet nothing is indexed
    assert verify(tmp_path / "scout.db").clean
