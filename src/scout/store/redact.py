"""The only change of history: removing a message body from the log, the row and the search index."""

import contextlib
import sqlite3
from collections.abc import Generator
from typing import NamedTuple

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.model.conversation import Message
from scout.model.conversation import redact as tombstone
from scout.model.problems.request import NotFound
from scout.store.table import QUERIES, get_table

# Exactly the expression that the trigger on the log allows, for the event at a place of its row.
_EMPTIED = (
    "CAST(json_remove(json_set(CAST(data AS TEXT), '$[' || (:seq - first) || '].payload.text', ''), "
    "'$[' || (:seq - first) || '].payload.attachments') AS BLOB)"
)


class Redaction(NamedTuple):
    """The redacted message; `first` is false if it had been redacted before and nothing changed."""

    message: Message
    first: bool


def redact(connection: sqlite3.Connection, message_id: str, now: Time) -> Redaction:
    """Remove the body, inside the caller's transaction.

    If `first`, the caller appends a MessageRedacted with this message as its record
    in the same transaction, so the log shows when and by whom the body was removed.
    """
    table = get_table(Message)
    message: Message | None = table.get(connection, message_id)
    if message is None:
        raise Refused(NotFound(noun="message", id=message_id))
    if message.redacted_at is not None:
        return Redaction(message, first=False)
    gone = tombstone(message, now)
    with overwrite_freed(connection):
        _erase_body(connection, message)
        table.write(connection, gone)
    return Redaction(gone, first=True)


def _erase_body(connection: sqlite3.Connection, message: Message) -> None:
    """Empty the event, after the index, which reads the words to remove from the event itself."""
    posted = (message.seq,)
    if connection.execute("SELECT 1 FROM indexed WHERE seq >= ?", posted).fetchone():
        connection.execute("DELETE FROM search WHERE rowid = ?", posted)
        connection.execute("DELETE FROM indexed_events WHERE seq = ?", posted)
        connection.execute("UPDATE indexed SET stale = 2")
    (row,) = connection.execute(QUERIES["log_row_number"], {"seq": message.seq}).fetchone()
    connection.execute(
        f"UPDATE events SET data = {_EMPTIED} WHERE seq = :row", {"seq": message.seq, "row": row}
    )


@contextlib.contextmanager
def overwrite_freed(connection: sqlite3.Connection) -> Generator[None]:
    """Overwrite freed bytes of the file with zeros while the context is open."""
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    try:
        yield
    finally:
        connection.execute("PRAGMA secure_delete = OFF").fetchall()
