"""Histories and fleets of any size, through the store's own append."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.names import NOW, agent_number
from scout.base.ids import derive_id, mint
from scout.model.conversation import MessageKind
from scout.model.delivery import Delivery, DeliveryState
from scout.model.events.asks import DeliveryAcked
from scout.model.events.envelope import Changed
from scout.model.events.presence import AgentRegistered
from scout.model.events.talk import MessagePosted, Posted
from scout.model.ref import Ref
from scout.store import search
from scout.store.database import connect
from scout.store.unit_of_work import append, read_last_seq

_BATCH = 20_000
_TALKS = 5_000  # conversations that the history is spread over
_SENDER = derive_id("agt", "history")
_BODY = "the quick brown fox jumps over the lazy dog while thirty five words go by so that one body is as long as those of the load, number {} of a history"


def seed(home: Path, *, messages: int = 0, agents: int = 0) -> None:
    """Add to the store of a daemon that does not run."""
    connection = connect(home / "scout.db")
    connection.execute("PRAGMA synchronous = OFF")  # a power cut may spoil a benchmark
    first = read_last_seq(connection) + 1
    seq = first
    for batch in _batches(messages):
        connection.execute("BEGIN")
        for number in batch:
            _message(connection, seq, number)
            seq += 2
        connection.execute("COMMIT")
    for batch in _batches(agents):
        connection.execute("BEGIN")
        for number in batch:
            agent = agent_number(number)
            fact = AgentRegistered(payload=Changed(record=agent), **_envelope(seq, agent.id))
            append(connection, fact)
            seq += 1
        connection.execute("COMMIT")
    _index(connection)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _batches(count: int) -> Iterator[range]:
    for start in range(0, count, _BATCH):
        yield range(start, min(start + _BATCH, count))


def _message(connection: sqlite3.Connection, seq: int, number: int) -> None:
    talk, target = derive_id("cnv", str(number % _TALKS)), derive_id("agt", f"reader {number % 1000}")
    ident = mint("msg", NOW // 1000 + number, seq.to_bytes(10, "big"))
    said = Posted(message_id=ident, text=_BODY.format(number), kind=MessageKind.CHAT)
    append(connection, MessagePosted(payload=said, **_envelope(seq, talk)))
    delivery = Delivery(
        id=mint("dlv", NOW // 1000 + number, seq.to_bytes(10, "big")),
        created_at=NOW,
        updated_at=NOW,
        sender=_SENDER,
        target=target,
        conversation_id=talk,
        message_id=ident,
        state=DeliveryState.ACKED,
        attempts=1,
        next_attempt_at=NOW,
    )
    append(connection, DeliveryAcked(payload=Changed(record=delivery), **_envelope(seq + 1, delivery.id)))


def _envelope(seq: int, target: str) -> dict[str, Any]:
    return {
        "id": mint("evt", NOW // 1000, seq.to_bytes(10, "big")),
        "seq": seq,
        "time": NOW,
        "source": Ref.to(_SENDER),
        "target": Ref.to(target),
    }


def _index(connection: sqlite3.Connection) -> None:
    while True:
        connection.execute("BEGIN")
        done = search.index_events(connection, _BATCH)
        connection.execute("COMMIT")
        if not done:
            return
