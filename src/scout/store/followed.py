"""How far an agent has nothing unread in a talk of many: one place for each membership."""

import sqlite3

from scout.model.conversation import Member, Message
from scout.model.delivery import Delivery

_TAKES_PART = """
INSERT INTO followed SELECT ?, id, ? FROM conversations WHERE id = ? AND kind <> 'dm'
ON CONFLICT DO UPDATE SET read_seq = max(read_seq, excluded.read_seq)
"""
_LEAVES = "DELETE FROM followed WHERE agent_id = ? AND conversation_id = ?"
# Up to the last message before the first that is unread: neither its own, nor delivered to it.
_CATCH_UP = """
UPDATE followed SET read_seq = coalesce((
    SELECT m.seq FROM messages m
    WHERE m.conversation_id = followed.conversation_id AND m.seq > followed.read_seq AND m.seq < coalesce((
        SELECT u.seq FROM messages u
        WHERE u.conversation_id = followed.conversation_id AND u.seq > followed.read_seq
            AND u.sender <> followed.agent_id
            AND NOT EXISTS (
                SELECT 1 FROM deliveries d WHERE d.message_id = u.id AND d.target = followed.agent_id
            )
        ORDER BY u.seq LIMIT 1
    ), 1 << 62)
    ORDER BY m.seq DESC LIMIT 1
), read_seq)
WHERE agent_id = ? AND conversation_id = ?
"""


def follow_member(connection: sqlite3.Connection, member: Member) -> None:
    """An agent joined, left, or has read further."""
    if member.left_at is not None:
        connection.execute(_LEAVES, (member.agent_id, member.conversation_id))
        return
    connection.execute(_TAKES_PART, (member.agent_id, member.read_seq, member.conversation_id))
    connection.execute(_CATCH_UP, (member.agent_id, member.conversation_id))


def follow_message(connection: sqlite3.Connection, message: Message) -> None:
    """Its sender has it read."""
    connection.execute(_CATCH_UP, (message.sender, message.conversation_id))


def follow_delivery(connection: sqlite3.Connection, delivery: Delivery) -> None:
    """A message that is delivered to somebody is in the inbox by its delivery."""
    if delivery.revision == 1 and delivery.conversation_id is not None:
        connection.execute(_CATCH_UP, (delivery.target, delivery.conversation_id))
