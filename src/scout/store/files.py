"""Who stored a file, and which messages carry it: it follows from the log alone."""

import sqlite3

from scout.model.conversation import Message
from scout.model.events.envelope import Event
from scout.model.events.talk import AttachmentStored


def follow_upload(connection: sqlite3.Connection, event: Event) -> None:
    """An agent stored a file."""
    if isinstance(event, AttachmentStored):
        row = (event.payload.sha256, event.source.id)
        connection.execute("INSERT OR IGNORE INTO file_uploads VALUES (?, ?)", row)


def follow_message(connection: sqlite3.Connection, message: Message) -> None:
    """A message carries its files until it is redacted."""
    if message.redacted_at is not None:
        connection.execute("DELETE FROM file_messages WHERE message_id = ?", (message.id,))
    rows = [(one.sha256, message.id) for one in message.attachments]
    connection.executemany("INSERT OR IGNORE INTO file_messages VALUES (?, ?)", rows)
