"""What is told in the turn of another message: more of the same sender, and mail that woke nobody."""

from msgspec.structs import replace

from scout.broker.effects import flight_state
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Message, MessageKind
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, is_due, lease

_MOST = 50
_LETTERS = 20


def lease_mail(tx: Transaction, first: Delivery, by: str) -> list[tuple[Delivery, Message]]:
    """What waits in the agent's inbox and woke no program: it rides with this turn, leased with it.

    An ask never does, held or not: it has a turn of its own.
    """
    waiting = tx.ledger.many(Delivery, "inbox", agent=first.target, after="", limit=_MOST)
    quiet = [one for one in waiting if not (one.wake or one.flight_id) and _is_free(tx, one, first)]
    found = [(one, tx.get(Message, one.message_id)) for one in quiet[:_LETTERS]]
    return [_with(tx, one, message, first, by) for one, message in found if message is not None]


def _with(
    tx: Transaction, one: Delivery, message: Message, first: Delivery, by: str
) -> tuple[Delivery, Message]:
    """Lease a delivery for the turn of another."""
    leased = lease(one, by, tx.now, seconds=tx.rules.periods.lease)
    way = {"endpoint_id": first.endpoint_id, "session_id": first.session_id, "carried_with": first.id}
    flight_state.record_delivery(tx, one, replace(leased, **way), DeliveryMove.LEASE)
    return leased, message


def lease_batch(tx: Transaction, first: Delivery, by: str) -> list[tuple[Delivery, Message]]:
    """What else is told in the turn of a delivery that is leased; each of them is leased with it."""
    if not _is_plain(tx.get(Message, first.message_id), first):
        return []
    waiting = tx.ledger.many(Delivery, "inbox", agent=first.target, after=first.id, limit=_MOST)
    found = [(one, tx.get(Message, one.message_id)) for one in waiting if _fits(tx, one, first)]
    return [
        _with(tx, one, message, first, by)
        for one, message in found
        if message is not None and _is_plain(message, one)
    ]


def _fits(tx: Transaction, one: Delivery, first: Delivery) -> bool:
    same = (one.sender, one.conversation_id) == (first.sender, first.conversation_id)
    return same and one.wake and _is_free(tx, one, first)


def _is_free(tx: Transaction, one: Delivery, first: Delivery) -> bool:
    here = one.session_id in (None, first.session_id)
    return here and one.state is DeliveryState.PENDING and is_due(one, tx.now)


def _is_plain(message: Message | None, delivery: Delivery) -> bool:
    """Neither an ask nor anything that belongs to one: those have turns of their own."""
    apart = delivery.flight_id or delivery.ask_id or delivery.work_item_id or delivery.may_repeat
    return message is not None and message.kind is MessageKind.CHAT and not apart
