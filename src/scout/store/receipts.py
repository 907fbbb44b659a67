"""The answers stored under idempotency keys, and when a person last looked."""

import sqlite3
from typing import NamedTuple

from scout.base.time import Time


class Remembered(NamedTuple):
    """The first answer under a key; `hash` shows whether a later request is the same."""

    hash: str
    answer: bytes


def recall(connection: sqlite3.Connection, actor: str, operation: str, key: str) -> Remembered | None:
    """Return the stored answer of this actor, operation and key."""
    query = "SELECT hash, answer FROM receipts WHERE actor = ? AND operation = ? AND key = ?"
    found = connection.execute(query, (actor, operation, key)).fetchone()
    return Remembered(*found) if found else None


def remember(
    connection: sqlite3.Connection,
    actor: str,
    operation: str,
    key: str,
    *,
    receipt: Remembered,
    now: Time,
) -> None:
    """Store the answer in the transaction of its request. A known key raises IntegrityError."""
    connection.execute(
        "INSERT INTO receipts (actor, operation, key, hash, answer, time) VALUES (?, ?, ?, ?, ?, ?)",
        (actor, operation, key, *receipt, int(now)),
    )


def forget(connection: sqlite3.Connection, before: Time, limit: int) -> int:
    """Delete receipts older than `before`, the oldest first; return how many."""
    old = "SELECT actor, operation, key FROM receipts WHERE time < ? ORDER BY time LIMIT ?"
    gone = f"DELETE FROM receipts WHERE (actor, operation, key) IN ({old})"
    return connection.execute(gone, (int(before), limit)).rowcount


def read_last_look(connection: sqlite3.Connection, user: str) -> Time | None:
    """Return when this person last looked, or None."""
    found = connection.execute("SELECT time FROM looks WHERE user = ?", (user,)).fetchone()
    return Time(found[0]) if found else None


def mark_look(connection: sqlite3.Connection, user: str, now: Time) -> None:
    """Record that this person looks now; a clock set back does not undo a later look."""
    connection.execute(
        "INSERT INTO looks VALUES (?, ?) ON CONFLICT (user) DO UPDATE SET time = max(time, excluded.time)",
        (user, int(now)),
    )


def move_back_look(connection: sqlite3.Connection, user: str, now: Time) -> None:
    """Move looks in the future back to now, after the clock was corrected."""
    connection.execute("UPDATE looks SET time = min(time, ?) WHERE user = ?", (int(now), user))


def has_older(connection: sqlite3.Connection, before: Time) -> bool:
    """Whether there are receipts to delete."""
    query = "SELECT 1 FROM receipts WHERE time < ? ORDER BY time LIMIT 1"
    return connection.execute(query, (int(before),)).fetchone() is not None
