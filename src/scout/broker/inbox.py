"""The inbox of whoever pulls: look, claim for the time of a lease, acknowledge or give back."""

from collections.abc import Callable, Sequence

from scout.base.refusal import Refused
from scout.broker import reaching, settle
from scout.broker.page import before, cursor, page, size
from scout.broker.turn import Turn, subject_of
from scout.model.agent import Agent
from scout.model.conversation import Message
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, ack, is_due, lease, nack, renew
from scout.model.request_problem import NotOwner
from scout.policy.permit import Deed
from scout.protocol.inbox import (
    AckInbox,
    Claimed,
    ClaimInbox,
    GetDelivery,
    InboxItem,
    ListDeliveries,
    ListInbox,
    NackInbox,
    RenewInbox,
    Settled,
)
from scout.protocol.request import Page

__all__ = [
    "acked",
    "acknowledge",
    "claim",
    "claimed",
    "get_delivery",
    "give_back",
    "hold_longer",
    "list_deliveries",
    "list_inbox",
]


def _item(turn: Turn, delivery: Delivery) -> InboxItem:
    message = turn.ledger.get(Message, delivery.message_id)
    return InboxItem(delivery=delivery, message=message, sender=turn.canonical(delivery.sender))


def list_inbox(turn: Turn, request: ListInbox) -> Page[InboxItem]:
    """What waits, oldest first; with `all` everything that ever came, newest first."""
    wanted = size(request.limit, turn.rules.limits)
    if request.all:
        bound = before(request.cursor)
        found = turn.ledger.many(Delivery, "deliveries_to", agent=turn.sender, before=bound, limit=wanted + 1)
    else:
        after = cursor(request.cursor) or ""
        found = turn.ledger.many(Delivery, "inbox", agent=turn.sender, after=after, limit=wanted + 1)
    listed = page(found, wanted, lambda delivery: delivery.id)
    return Page(items=tuple(_item(turn, one) for one in listed.items), next=listed.next)


def claim(turn: Turn, request: ClaimInbox) -> Claimed:
    """Lease what is due to the caller; what a program of Scout's carries is not for the taking."""
    wanted = size(request.limit, turn.rules.limits)
    found: list[Delivery] = []
    after = ""
    while len(found) < wanted:
        rows = turn.ledger.many(Delivery, "inbox", agent=turn.sender, after=after, limit=wanted + 1)
        found += [one for one in rows if is_due(one, turn.now) and not one.wake]
        if len(rows) <= wanted:
            break
        after = rows[-1].id
    return Claimed(items=claimed(turn, found[:wanted]))


def claimed(turn: Turn, deliveries: Sequence[Delivery]) -> tuple[InboxItem, ...]:
    """Lease exactly these to the caller."""
    seconds = turn.rules.periods.lease
    leased = [(one, lease(one, _holder(turn), turn.now, seconds=seconds)) for one in deliveries]
    taken = [settle.delivered(turn, one, after, DeliveryMove.LEASE) for one, after in leased]
    return tuple(_item(turn, one) for one in taken)


def _holder(turn: Turn) -> str:
    """Who holds a lease: the session, where the credential is for one."""
    return turn.actor.session_id or turn.sender


def acknowledge(turn: Turn, request: AckInbox) -> Settled:
    """Taken. What was taken before stays so; what nobody claimed is claimed by this."""
    return _each(turn, request.delivery_ids, _acked)


def _acked(turn: Turn, delivery: Delivery) -> Delivery:
    if delivery.state is DeliveryState.ACKED:
        return delivery
    if delivery.state is DeliveryState.PENDING and not delivery.wake:
        leased = lease(delivery, _holder(turn), turn.now, seconds=turn.rules.periods.lease)
        delivery = settle.delivered(turn, delivery, leased, DeliveryMove.LEASE)
    return acked(turn, delivery)


def acked(turn: Turn, delivery: Delivery) -> Delivery:
    """Store that the caller took a delivery, and in which session."""
    session_id = turn.actor.session_id
    endpoint = reaching.endpoint_of(turn, session_id)
    taken = ack(
        delivery,
        _holder(turn),
        turn.now,
        session_id=session_id,
        endpoint_id=endpoint.id if endpoint else None,
    )
    return settle.delivered(turn, delivery, taken, DeliveryMove.ACK)


def give_back(turn: Turn, request: NackInbox) -> Settled:
    """Not now: again later, or in the end back to its sender."""

    def again(turn: Turn, delivery: Delivery) -> Delivery:
        after = nack(
            delivery,
            _holder(turn),
            turn.now,
            problem=request.problem,
            retry_after=request.retry_after,
            rule=turn.rules.back_off,
        )
        return settle.delivered(turn, delivery, after, DeliveryMove.NACK)

    return _each(turn, request.delivery_ids, again)


def hold_longer(turn: Turn, request: RenewInbox) -> Settled:
    """Still at it."""
    seconds = turn.rules.periods.lease

    def longer(turn: Turn, delivery: Delivery) -> Delivery:
        after = renew(delivery, _holder(turn), turn.now, seconds=seconds)
        return settle.delivered(turn, delivery, after, DeliveryMove.RENEW)

    return _each(turn, request.delivery_ids, longer)


def _each(turn: Turn, idents: tuple[str, ...], change: Callable[[Turn, Delivery], Delivery]) -> Settled:
    return Settled(items=tuple(change(turn, _mine(turn, ident)) for ident in dict.fromkeys(idents)))


def _mine(turn: Turn, ident: str) -> Delivery:
    delivery = turn.need(Delivery, "delivery", ident)
    if delivery.target != turn.sender:
        needs = ("the token of its target",)
        raise Refused(NotOwner(noun="delivery", id=ident, owner_id=delivery.target, needs=needs))
    return delivery


# -- looking -----------------------------------------------------------------------------------------


def list_deliveries(turn: Turn, request: ListDeliveries) -> Page[Delivery]:
    """The deliveries to one agent, newest first."""
    target = turn.sender
    if request.target is not None:
        agent = turn.resolve(request.target).agent
        if agent.id != turn.sender:
            turn.permit(Deed.READ, subject_of(agent))
        target = agent.id
    wanted = size(request.limit, turn.rules.limits)
    bound = before(request.cursor)
    found = turn.ledger.many(Delivery, "deliveries_to", agent=target, before=bound, limit=wanted + 1)
    listed = page(found, wanted, lambda delivery: delivery.id)
    kept = tuple(one for one in listed.items if request.state in (None, one.state))
    return Page(items=kept, next=listed.next)


def get_delivery(turn: Turn, request: GetDelivery) -> Delivery:
    """One delivery, for its sender, its target, and who may read them."""
    delivery = turn.need(Delivery, "delivery", request.delivery_id)
    if turn.sender not in (delivery.sender, delivery.target):
        turn.permit(Deed.READ, subject_of(turn.need(Agent, "agent", delivery.target)))
    return delivery
