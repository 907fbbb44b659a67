"""The only change of history: removing a message body from the log, the row and the search index.

The answer of a flight is stored twice: as its final message and as the flight's output. Both are removed.
"""

import contextlib
import sqlite3
from collections.abc import Generator, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.model.conversation import Message
from scout.model.conversation import redact as tombstone
from scout.model.events.envelope import get_record
from scout.model.flight import Flight
from scout.model.problems.request import NotFound
from scout.store.table import QUERIES, get_table
from scout.store.touched import EventReader

# Exactly the expressions that the trigger on the log allows, for the event at a place of its row.
EMPTIED = (
    "CAST(json_remove(json_set(CAST(data AS TEXT), '$[' || (:seq - first) || '].payload.text', ''), "
    "'$[' || (:seq - first) || '].payload.attachments') AS BLOB)"
)
WITHOUT_OUTPUT = (
    "CAST(json_set(CAST(data AS TEXT), '$[' || (:seq - first) || '].payload.record.output', '') AS BLOB)"
)
_MANY = 10_000  # events of one flight


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
    with overwrite_freed(connection):
        _erase_output(connection, message)
        if message.redacted_at is not None:
            return Redaction(message, first=False)
        gone = tombstone(message, now)
        _erase_body(connection, message)
        table.write(connection, gone)
    return Redaction(gone, first=True)


def _erase_output(connection: sqlite3.Connection, message: Message) -> None:
    """Empty the output of the flight that ended with a message; also if the message was emptied before."""
    flight = _find_answered(connection, message)
    if flight is None:
        return
    for seq in list_outputs(connection, message):
        _rewrite(connection, seq, WITHOUT_OUTPUT)
    get_table(Flight).write(connection, replace(flight, output=""))


def _find_answered(connection: sqlite3.Connection, message: Message) -> Flight | None:
    """Return the flight that ended with a message, while it has the answer too."""
    flight: Flight | None = (
        get_table(Flight).get(connection, message.flight_id) if message.flight_id else None
    )
    return flight if flight is not None and flight.output_message_id == message.id and flight.output else None


def list_outputs(connection: sqlite3.Connection, message: Message) -> Iterator[int]:
    """Yield the numbers of the events with the answer that a message gave to its flight."""
    flight = _find_answered(connection, message)
    for event in EventReader(connection).list_at(flight.id, 0, _MANY) if flight is not None else ():
        record = get_record(event)
        if isinstance(record, Flight) and record.output:
            yield event.seq


def _rewrite(connection: sqlite3.Connection, seq: int, data: str) -> None:
    """Replace the row of the log that has an event by an expression for its data. An archived row stays."""
    query = f"UPDATE events SET data = {data} WHERE seq = :row AND first <= :seq"
    (row,) = connection.execute(QUERIES["log_row_number"], {"seq": seq}).fetchone()
    connection.execute(query, {"seq": seq, "row": row})


def _erase_body(connection: sqlite3.Connection, message: Message) -> None:
    """Empty the event, after the index, which reads the words to remove from the event itself."""
    posted = (message.seq,)
    if connection.execute("SELECT 1 FROM indexed WHERE seq >= ?", posted).fetchone():
        connection.execute("DELETE FROM search WHERE rowid = ?", posted)
        connection.execute("DELETE FROM indexed_events WHERE seq = ?", posted)
        connection.execute("DELETE FROM archived_words WHERE seq = ?", posted)
        connection.execute("UPDATE indexed SET stale = 2")
    _rewrite(connection, message.seq, EMPTIED)


@contextlib.contextmanager
def overwrite_freed(connection: sqlite3.Connection) -> Generator[None]:
    """Overwrite freed bytes of the file with zeros while the context is open."""
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    try:
        yield
    finally:
        connection.execute("PRAGMA secure_delete = OFF").fetchall()
