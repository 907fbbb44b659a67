"""Histories and fleets of any size, through the store's own append."""

import functools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.names import NOW, agent_number
from scout.base.ids import derive_id, mint
from scout.model.conversation import MessageKind
from scout.model.delivery import Delivery, DeliveryState
from scout.model.events.asks import DeliveryAcked, FlightCompleted
from scout.model.events.envelope import Changed, Event
from scout.model.events.presence import AgentRegistered
from scout.model.events.talk import MessagePosted, Posted
from scout.model.flight import Flight, FlightPhase, FlightState
from scout.model.ref import Ref
from scout.store import search
from scout.store.database import connect
from scout.store.history.feed import prepare_batch, store_batch
from scout.store.log import read_last_seq
from scout.store.unit_of_work import append_requests

_BATCH = 10_000
_TALKS = 5_000  # conversations that the history is spread over
_SENDER = derive_id("agt", "history")
_BODY = "the quick brown fox jumps over the lazy dog while thirty five words go by so that one body is as long as those of the load, number {} of a history"


_derive_id = functools.cache(derive_id)


def seed(home: Path, *, messages: int = 0, agents: int = 0, flights: int = 0) -> None:
    """Add to the store of a daemon that does not run."""
    connection = connect(home / "scout.db")
    connection.execute("PRAGMA synchronous = OFF")  # a power cut may spoil a benchmark
    _store(connection, messages, _message)
    _store(connection, agents, _agent)
    _store(connection, flights, _flight)
    _repeat(connection, lambda: search.index_events(connection, _BATCH) > 0)
    _follow(connection)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _store(
    connection: sqlite3.Connection, count: int, build: Callable[[int, int], tuple[Event, ...]]
) -> None:
    """Append the events of so many items, in transactions of a size that the page cache holds."""
    seq = read_last_seq(connection) + 1
    for batch in _batches(count):
        requests: list[tuple[Event, ...]] = []
        for number in batch:
            requests.append(build(seq, number))
            seq += len(requests[-1])
        connection.execute("BEGIN")
        append_requests(connection, requests)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _batches(count: int) -> Iterator[range]:
    for start in range(0, count, _BATCH):
        yield range(start, min(start + _BATCH, count))


def _message(seq: int, number: int) -> tuple[Event, ...]:
    talk, target = _derive_id("cnv", str(number % _TALKS)), _derive_id("agt", f"reader {number % 1000}")
    ident = mint("msg", NOW // 1000 + number, seq.to_bytes(10, "big"))
    said = Posted(message_id=ident, text=_BODY.format(number), kind=MessageKind.CHAT)
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
    return (
        MessagePosted(payload=said, **_envelope(seq, talk)),
        DeliveryAcked(payload=Changed(record=delivery), **_envelope(seq + 1, delivery.id)),
    )


def _agent(seq: int, number: int) -> tuple[Event, ...]:
    agent = agent_number(number)
    return (AgentRegistered(payload=Changed(record=agent), **_envelope(seq, agent.id)),)


def _flight(seq: int, number: int) -> tuple[Event, ...]:
    flight = Flight(
        id=mint("flt", NOW // 1000 + number, seq.to_bytes(10, "big")),
        created_at=NOW,
        updated_at=NOW,
        ask_id=mint("ask", NOW // 1000 + number, seq.to_bytes(10, "big")),
        conversation_id=_derive_id("cnv", str(number % _TALKS)),
        requester_id=_SENDER,
        target=agent_number(number % 1000).id,
        state=FlightState.COMPLETED,
        phase=FlightPhase.DONE,
        reason="completed",
        next_check_at=None,
        output=_BODY.format(number),
        finished_at=NOW,
    )
    return (FlightCompleted(payload=Changed(record=flight), **_envelope(seq, flight.id)),)


def _envelope(seq: int, target: str) -> dict[str, Any]:
    return {
        "id": mint("evt", NOW // 1000, seq.to_bytes(10, "big")),
        "seq": seq,
        "time": NOW,
        "source": Ref.to(_SENDER),
        "target": Ref.to(target),
    }


def _repeat(connection: sqlite3.Connection, step: Callable[[], bool]) -> None:
    """Make a step in a transaction, until it finds nothing to do: no daemon catches up while it is measured."""
    more = True
    while more:
        connection.execute("BEGIN")
        more = step()
        connection.execute("COMMIT")


def _follow(connection: sqlite3.Connection) -> None:
    """Bring the history and the index of touched records to the end of the log, as a running daemon does."""
    while (batch := prepare_batch(connection, _BATCH)) is not None:
        connection.execute("BEGIN")
        store_batch(connection, batch)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
