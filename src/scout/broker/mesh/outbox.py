"""The outbox: rows for envelopes to other nodes, and what follows from a receipt or an expiry."""

from scout.base.time import Time
from scout.broker.effects import flight_state, remote_flights
from scout.broker.mesh.members import name_node
from scout.broker.mesh.moves import departure
from scout.broker.mesh.outbox_rows import queue_entry, record_entry
from scout.broker.routing.remote import build_unreachable, has_open_entry, list_entries
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.delivery import (
    CLOCK_SLACK,
    DELIVERY,
    Backoff,
    Delivery,
    DeliveryMove,
    back_off,
    dead_letter,
    hand_over,
    settle_remotely,
)
from scout.model.events.asks import DELIVERY_EVENTS
from scout.model.flight import (
    FLIGHT,
    Flight,
    FlightError,
    FlightPhase,
    FlightState,
    build_error,
    cancel_flight,
    note_flight,
)
from scout.model.mesh.envelope import EnvelopeKind, ReceiptPayload, ReceiptState
from scout.model.mesh.outbox import (
    OPEN,
    OutboxEntry,
    expire_entry,
    forward_entry,
    retry_entry,
    take_receipt,
)
from scout.model.mesh_receipt import OutboxState
from scout.model.node import Node
from scout.model.problems.target import PeerUnreachable
from scout.store.ledger import Ledger

_SOME = 100
_ON_THE_WAY = frozenset({FlightPhase.ACCEPTED, FlightPhase.FORWARDED})


# -- published ---------------------------------------------------------------------------------------


def record_forwarded(tx: Transaction, idents: list[str]) -> None:
    """Record that the server has these envelopes; one that has its receipt already stays as it is."""
    for ident in idents:
        entry = tx.get(OutboxEntry, ident)
        if entry is not None and entry.state is OutboxState.QUEUED:
            wait = back_off(entry.attempts + 1, tx.rules.back_off)
            record_entry(tx, forward_entry(entry, tx.now.plus(wait), tx.now), "forward")
            _show_forwarded(tx, entry)


def _show_forwarded(tx: Transaction, entry: OutboxEntry) -> None:
    _hand_over(tx, entry)
    if entry.kind is EnvelopeKind.ASK:
        _show_way(tx, entry, FlightPhase.FORWARDED, f"sent to node {name_node(tx, entry.node_id)}")


def _hand_over(tx: Transaction, entry: OutboxEntry) -> None:
    """Record that the other node is asked to deliver what an envelope carries."""
    delivery = tx.get(Delivery, entry.delivery_id)
    if delivery is None:
        return
    node = f"node {name_node(tx, entry.node_id)}"
    sent = hand_over(delivery, node, tx.now)
    if sent is not delivery:
        tx.record(DELIVERY_EVENTS[DeliveryMove.LEASE], sent, move=DeliveryMove.LEASE, reason=node)


def _show_way(tx: Transaction, entry: OutboxEntry, phase: FlightPhase, reason: str) -> None:
    """Show in a flight that its ask has come further; what the other node tells is not replaced."""
    flight = tx.get(Flight, entry.subject)
    if flight is None or flight.state is not FlightState.QUEUED or flight.phase not in _ON_THE_WAY:
        return
    flight_state.record_note(tx, note_flight(flight, phase, tx.now, reason=reason))


def find_late(ledger: Ledger, node_id: str, now: Time, rule: Backoff) -> Time | None:
    """Return when the next receipt of a node is late: at once if the clock was set back since."""
    last = ledger.value("outbox_last", node=node_id)
    if last is None:
        return None
    return now if last > _find_longest(now, rule) else Time(ledger.value("outbox_next", node=node_id))


def _find_longest(now: Time, rule: Backoff) -> int:
    """Return the moment until which an envelope may have to wait for a receipt."""
    return int(now.plus(rule.most + CLOCK_SLACK))


def retry_unanswered(tx: Transaction, node_id: str, now: Time) -> int:
    """Queue again what the node has not answered in time; return how many."""
    far = _find_longest(now, tx.rules.back_off)
    late = tx.ledger.many(OutboxEntry, "outbox_unanswered", node=node_id, now=int(now), far=far, limit=_SOME)
    for entry in late:
        record_entry(tx, retry_entry(entry, tx.now), "retry", "no receipt came")
    return len(late)


# -- receipts ----------------------------------------------------------------------------------------


def apply_receipt(tx: Transaction, node_id: str, receipt: ReceiptPayload) -> None:
    """Record what became of an envelope; only the node that it was sent to can tell."""
    entry = tx.get(OutboxEntry, receipt.of)
    if entry is None or entry.node_id != node_id:
        return
    after = take_receipt(entry, receipt.state, tx.now, receipt.problem)
    if after is entry:
        _cancel_late_ask(tx, entry, receipt.state)
        return
    record_entry(tx, after, receipt.state, receipt.problem.message if receipt.problem else "")
    if receipt.state is ReceiptState.ACCEPTED:
        _hand_over(tx, after)  # it was not recorded if the receipt came soon
    if entry.kind is EnvelopeKind.MOVE and receipt.state is ReceiptState.ACCEPTED:
        departure.confirm_move(tx, after)
    elif receipt.moved_to is not None and departure.follow_target(tx, after, receipt.moved_to):
        return
    if receipt.state is ReceiptState.REFUSED:
        error = receipt.problem or FlightError(code="forbidden", message="the other node refused it")
        _give_up(tx, after, error)
    elif receipt.state is ReceiptState.DELIVERED:
        _settle_delivery(tx, after)
    elif entry.kind is EnvelopeKind.ASK:
        node = name_node(tx, node_id)
        _show_way(tx, after, FlightPhase.ACCEPTED, f"node {node} has accepted it")


def confirm_ask(tx: Transaction, node_id: str, flight_id: str) -> None:
    """Record that a node has the ask of a flight that it tells about: the receipt may be late, or lost."""
    for entry in list_entries(tx, flight_id):
        if entry.kind is EnvelopeKind.ASK and entry.state in OPEN:
            apply_receipt(tx, node_id, ReceiptPayload(of=entry.id, state=ReceiptState.ACCEPTED))


def _settle_delivery(tx: Transaction, entry: OutboxEntry) -> None:
    delivery = tx.get(Delivery, entry.delivery_id)
    taken = settle_remotely(delivery, tx.now) if delivery is not None else None
    if delivery is not None and taken is not None and taken is not delivery:
        tx.record(DELIVERY_EVENTS[DeliveryMove.ACK], taken, move=DeliveryMove.ACK, source=delivery.target)


def _cancel_late_ask(tx: Transaction, entry: OutboxEntry, state: ReceiptState) -> None:
    """Cancel an ask that arrived after it was given up here."""
    late = entry.state is OutboxState.EXPIRED and state is ReceiptState.ACCEPTED
    if late and entry.kind is EnvelopeKind.ASK and not has_open_entry(tx, entry.subject, EnvelopeKind.CANCEL):
        queue_cancel(tx, entry)


def queue_cancel(tx: Transaction, asked: OutboxEntry) -> OutboxEntry:
    """Ask the other node to cancel the flight of an ask."""
    return queue_entry(
        tx,
        asked.node_id,
        EnvelopeKind.CANCEL,
        asked.subject,
        sender=asked.sender,
        conversation_id=asked.conversation_id,
    )


# -- given up ----------------------------------------------------------------------------------------


def expire_entries(tx: Transaction) -> int:
    """Give up the envelopes that no node took in time; return how many."""
    old = tx.ledger.many(OutboxEntry, "outbox_expired", now=int(tx.now), limit=_SOME)
    for entry in old:
        error = build_error(_build_unreachable(tx, entry))
        give_up(tx, entry, error)
    return len(old)


def give_up(tx: Transaction, entry: OutboxEntry, error: FlightError) -> None:
    """Expire an envelope, and tell whoever depends on it."""
    record_entry(tx, expire_entry(entry, error, tx.now), "expire", error.message)
    _give_up(tx, entry, error)


def refuse_entry(tx: Transaction, ident: str, error: FlightError) -> None:
    """Give up an envelope that cannot be sent."""
    entry = tx.get(OutboxEntry, ident)
    if entry is not None and entry.state in OPEN:
        give_up(tx, entry, error)


def drop_entry(tx: Transaction, entry: OutboxEntry, reason: str) -> None:
    """Expire an envelope that is no longer needed."""
    record_entry(
        tx, expire_entry(entry, FlightError(code="cancelled", message=reason), tx.now), "expire", reason
    )


def _give_up(tx: Transaction, entry: OutboxEntry, error: FlightError) -> None:
    """Fail the flight of an ask, end one whose cancel was not heard, or return a message to its sender.

    An agent that did not move is brought back.
    """
    if entry.kind is EnvelopeKind.MOVE:
        departure.take_back(tx, entry, error)
        return
    flight = tx.get(Flight, entry.subject)
    if flight is not None and flight.state in FLIGHT.terminal:
        return
    delivery = tx.get(Delivery, entry.delivery_id)
    if entry.kind is EnvelopeKind.ASK and flight is not None:
        remote_flights.fail_remotely(tx, flight, error)
    elif entry.kind is EnvelopeKind.CANCEL and flight is not None:
        _end_unheard(tx, flight, error)
    elif delivery is not None and delivery.state not in DELIVERY.terminal:
        flight_state.record_delivery(tx, delivery, dead_letter(delivery, error.message, tx.now))


def _end_unheard(tx: Transaction, flight: Flight, error: FlightError) -> None:
    """Cancel a flight here whose node did not hear of it."""
    reason = f"cancelled here; the node that runs it did not confirm: {error.message}"
    flight_state.finish_flight(tx, flight, cancel_flight(flight, reason, tx.now))


def _build_unreachable(tx: Transaction, entry: OutboxEntry) -> PeerUnreachable:
    """Return why an envelope expired: how often it was sent, and when its node was last seen."""
    node = tx.get(Node, entry.node_id)
    flight, delivery = tx.get(Flight, entry.subject), tx.get(Delivery, entry.delivery_id)
    target = flight.target if flight else delivery.target if delivery else None
    agent = tx.get(Agent, target)
    if agent is not None and agent.is_remote:
        return build_unreachable(tx, agent, node, attempts=entry.attempts)
    last_seen = node.last_seen if node else None
    return PeerUnreachable(node=name_node(tx, entry.node_id), last_seen=last_seen, attempts=entry.attempts)
