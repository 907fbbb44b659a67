"""The inbox of pulling agents: list, claim under a lease, acknowledge or give back."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused
from scout.broker.effects import flight_state
from scout.broker.routing import conversations, posts, routes, unread
from scout.broker.routing.attention_items import shorten_title
from scout.broker.routing.remote import find_node_name
from scout.broker.routing.unread import LATEST, START, Position, Unread
from scout.broker.transaction.paging import (
    build_page,
    decode_bound,
    decode_cursor,
    encode_cursor,
    get_page_size,
)
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.conversation import Conversation, ConversationKind, Message
from scout.model.delivery import (
    DELIVERY,
    Delivery,
    DeliveryMove,
    DeliveryState,
    ack,
    is_due,
    lease,
    nack,
    renew,
)
from scout.model.flight import Flight
from scout.model.problems.request import NotOwner
from scout.policy.permit import Deed
from scout.protocol.channels import ConversationView, MarkRead
from scout.protocol.inbox import (
    AckInbox,
    Claimed,
    ClaimInbox,
    GetDelivery,
    InboxItem,
    ListDeliveries,
    ListInbox,
    NackInbox,
    ReadTo,
    RenewInbox,
    Settled,
)
from scout.protocol.request import Page

_MAIL = 1000  # maximum that is read at once
_REPLIES = 20


def _build_item(tx: Transaction, one: Unread, *, read: bool = False) -> InboxItem:
    message, delivery = one.message, one.delivery
    sender = delivery.sender if delivery else message.sender if message else None
    told = InboxItem(
        message=message,
        sender=tx.address(sender),
        sender_node=find_node_name(tx, sender),
        about=_get_subject(tx, message),
        read=read,
    )
    if message is not None:
        where = tx.conversation(message.conversation_id)
        channel = where.name if where is not None and where.kind is ConversationKind.CHANNEL else None
        to_all = where is not None and where.kind is ConversationKind.BROADCAST
        told = replace(told, channel=channel, broadcast=to_all)
    if delivery is not None:
        return replace(told, delivery_id=delivery.id, delivery=delivery)
    assert message is not None  # an item without a delivery is a message
    return replace(told, conversation_id=message.conversation_id, seq=message.seq)


def _get_subject(tx: Transaction, message: Message | None) -> str:
    """Return the first line of the message that an answer replies to."""
    asked = tx.get(Message, message.in_reply_to) if message else None
    return shorten_title(asked.body) if asked else ""


def list_inbox(tx: Transaction, request: ListInbox) -> Page[InboxItem]:
    """List unread items, oldest first; with `all`, every item ever received, newest first."""
    wanted = get_page_size(request.limit, tx.rules.limits)
    if request.all:
        begin = _parse_position(request.cursor, LATEST)
        found = unread.list_read(tx, tx.sender, wanted + 1, begin)
    else:
        begin = _parse_position(request.cursor, START)
        found = unread.list_unread(tx, tx.sender, wanted + 1, begin)
    shown = found[:wanted]
    items = tuple(_build_item(tx, one, read=request.all and _is_read(tx, one)) for one in shown)
    return Page(items=items, next=_build_cursor(begin, shown) if len(found) > wanted else None)


def _is_read(tx: Transaction, one: Unread) -> bool:
    if one.delivery is not None:
        return one.delivery.state in DELIVERY.terminal
    message = one.message
    return message is not None and message.seq <= unread.find_read_cursor(
        tx, tx.sender, message.conversation_id
    )


def _parse_position(text: str | None, begin: Position) -> Position:
    """Decode a cursor: a delivery id and a log sequence number."""
    place = decode_cursor(text)
    if place is None:
        return begin
    delivery_id, _, number = place.partition(" ")
    if not (number.isascii() and number.isdigit() and int(number) <= LATEST.seq):
        raise Refused(BadRequest(problem="this is not a cursor of this list", field="cursor"))
    return Position(delivery_id, int(number))


def _build_cursor(begin: Position, shown: Sequence[Unread]) -> str:
    """Return the cursor of the next page."""
    deliveries = [one.delivery.id for one in shown if one.delivery]
    numbers = [one.message.seq for one in shown if one.delivery is None and one.message]
    place = Position([begin.delivery_id, *deliveries][-1], [begin.seq, *numbers][-1])
    return encode_cursor(f"{place.delivery_id} {place.seq}")


def claim(tx: Transaction, request: ClaimInbox) -> Claimed:
    """Lease the caller's due deliveries, and return its unread group messages.

    Deliveries that the dispatcher carries cannot be claimed. A group message is not leased: it is returned
    again until the read cursor has moved past it.
    """
    wanted = get_page_size(request.limit, tx.rules.limits)
    found = unread.list_unread(tx, tx.sender, wanted, START, lambda one: _is_free(tx, one))
    return Claimed(items=lease_and_show(tx, found))


def lease_and_show(tx: Transaction, found: Sequence[Unread]) -> tuple[InboxItem, ...]:
    """Lease the items that have a delivery, and return the views of all items."""
    taken = [
        Unread(one.message, _lease_delivery(tx, one.delivery) if one.delivery else None) for one in found
    ]
    return tuple(_build_item(tx, one) for one in taken)


def _is_free(tx: Transaction, delivery: Delivery) -> bool:
    return is_due(delivery, tx.now) and not delivery.wake and _is_mine(tx, delivery)


def _lease_delivery(tx: Transaction, delivery: Delivery) -> Delivery:
    leased = lease(delivery, _get_holder(tx), tx.now, seconds=tx.rules.periods.lease)
    return flight_state.record_delivery(tx, delivery, leased, DeliveryMove.LEASE)


def _is_mine(tx: Transaction, delivery: Delivery) -> bool:
    session_id = tx.actor.session_id
    return session_id is None or is_for(delivery, session_id)


def is_for(delivery: Delivery, session_id: str) -> bool:
    """Whether a session may take the delivery: no other session is its target or holds its lease."""
    held = delivery.leased_by if delivery.state is DeliveryState.LEASED else None
    return delivery.session_id in (None, session_id) and held in (None, session_id)


def lease_deliveries(tx: Transaction, deliveries: Sequence[Delivery]) -> tuple[InboxItem, ...]:
    """Lease exactly these deliveries to the caller."""
    taken = [_lease_delivery(tx, one) for one in deliveries]
    return tuple(_build_item(tx, Unread(tx.get(Message, one.message_id), one)) for one in taken)


def _get_holder(tx: Transaction) -> str:
    """Return the lease holder: the session if the credential is for one, else the agent."""
    return tx.actor.session_id or tx.sender


def acknowledge(tx: Transaction, request: AckInbox) -> Settled:
    """Acknowledge deliveries, claiming unclaimed ones first; safe to repeat."""
    if not (request.delivery_ids or request.conversation_id):
        raise Refused(
            BadRequest(problem="name deliveries, or a conversation and a number", field="deliveryIds")
        )
    if (request.conversation_id is None) is not (request.seq is None):
        raise Refused(BadRequest(problem="conversationId and seq belong together", field="seq"))
    settled = _change_each(tx, request.delivery_ids, _ack_delivery)
    if request.conversation_id is None or request.seq is None:
        return settled
    return replace(settled, cursors=(_read_item(tx, request.conversation_id, request.seq),))


def _read_item(tx: Transaction, conversation_id: str, seq: int) -> ReadTo:
    """Advance the caller's read cursor in a group conversation."""
    conversation = conversations.require_readable(tx, tx.need(Conversation, "conversation", conversation_id))
    if seq < 1:
        raise Refused(BadRequest(problem="log numbers start at 1", field="seq"))
    unread.mark_read(tx, tx.sender, conversation.id, seq)
    return ReadTo(
        conversation_id=conversation.id, seq=unread.find_read_cursor(tx, tx.sender, conversation.id)
    )


def _ack_delivery(tx: Transaction, delivery: Delivery) -> Delivery:
    if delivery.state is DeliveryState.ACKED:
        return delivery
    if delivery.state is DeliveryState.PENDING and not delivery.wake:
        delivery = _lease_delivery(tx, delivery)
    return record_ack(tx, delivery)


def record_ack(tx: Transaction, delivery: Delivery) -> Delivery:
    """Record the caller's acknowledgement of a delivery, with its session."""
    session_id = tx.actor.session_id
    endpoint = routes.find_endpoint(tx, session_id)
    taken = ack(
        delivery,
        _get_holder(tx),
        tx.now,
        session_id=session_id,
        endpoint_id=endpoint.id if endpoint else None,
    )
    return flight_state.record_delivery(tx, delivery, taken, DeliveryMove.ACK)


def read_conversation(tx: Transaction, request: MarkRead) -> ConversationView:
    """Mark a conversation as read up to a message, default to the end."""
    conversation = tx.need(Conversation, "conversation", request.conversation_id)
    takes_part = conversations.find_membership(tx, conversation.id) is not None
    if not takes_part and conversation != unread.find_broadcast(tx, tx.sender):
        conversations.require_readable(tx, conversation)
        problem = "only members of a conversation can mark it as read"
        raise Refused(BadRequest(problem=problem, field="conversationId"))
    message = posts.find_newest_message(tx, conversation.id)
    if request.message_id is not None:
        message = tx.need(Message, "message", request.message_id)
        if message.conversation_id != conversation.id:
            raise tx.missing("message", request.message_id)
    if message is not None:
        unread.mark_read(tx, tx.sender, conversation.id, message.seq)
        _take_mail(tx, conversation.id, message.seq)
    return conversations.build_conversation_view(tx, ConversationView, conversation)


def _take_mail(tx: Transaction, conversation_id: str, seq: int) -> None:
    """Acknowledge the caller's plain deliveries in the conversation; an ask is acknowledged by its answer."""
    for one in unread.list_unread(tx, tx.sender, _MAIL, wanted=lambda mail: _is_free(tx, mail)):
        message, delivery = one.message, one.delivery
        there = message is not None and message.conversation_id == conversation_id and message.seq <= seq
        if there and delivery is not None and delivery.flight_id is None:
            _ack_delivery(tx, delivery)


def give_back(tx: Transaction, request: NackInbox) -> Settled:
    """Give deliveries back, to be retried later or finally returned to their sender."""

    def reject(tx: Transaction, delivery: Delivery) -> Delivery:
        after = nack(
            delivery,
            _get_holder(tx),
            tx.now,
            problem=request.problem,
            retry_after=request.retry_after,
            rule=tx.rules.back_off,
        )
        return flight_state.record_delivery(tx, delivery, after, DeliveryMove.NACK)

    return _change_each(tx, request.delivery_ids, reject)


def hold_longer(tx: Transaction, request: RenewInbox) -> Settled:
    """Renew the leases of deliveries."""
    seconds = tx.rules.periods.lease

    def extend(tx: Transaction, delivery: Delivery) -> Delivery:
        after = renew(delivery, _get_holder(tx), tx.now, seconds=seconds)
        return flight_state.record_delivery(tx, delivery, after, DeliveryMove.RENEW)

    return _change_each(tx, request.delivery_ids, extend)


def _change_each(
    tx: Transaction, idents: tuple[str, ...], change: Callable[[Transaction, Delivery], Delivery]
) -> Settled:
    return Settled(items=tuple(change(tx, _get_own(tx, ident)) for ident in dict.fromkeys(idents)))


def _get_own(tx: Transaction, ident: str) -> Delivery:
    delivery = tx.need(Delivery, "delivery", ident)
    if delivery.target != tx.sender:
        needs = ("the token of its target",)
        raise Refused(NotOwner(noun="delivery", id=ident, owner_id=delivery.target, needs=needs))
    return delivery


def find_answers(tx: Transaction, flight_id: str) -> tuple[str, ...]:
    """Return the ids of the caller's unread deliveries that report a flight's end."""
    flight = tx.need(Flight, "flight", flight_id)
    ask = tx.get(Ask, flight.ask_id)
    if ask is None or ask.sender != tx.sender:
        return ()
    said = tx.ledger.many(Message, "replies_to", message=ask.message_id, limit=_REPLIES)
    mail = [
        delivery
        for one in said
        for delivery in tx.ledger.many(Delivery, "deliveries_of_message", message=one.id, limit=_REPLIES)
    ]
    return tuple(one.id for one in mail if one.target == tx.sender and _is_free(tx, one))


# -- reading -----------------------------------------------------------------------------------------


def list_deliveries(tx: Transaction, request: ListDeliveries) -> Page[Delivery]:
    """List the deliveries to one agent, newest first."""
    target = tx.sender
    if request.target is not None:
        agent = tx.resolve(request.target).agent
        if agent.id != tx.sender:
            tx.permit(Deed.READ, build_subject(agent))
        target = agent.id
    wanted = get_page_size(request.limit, tx.rules.limits)
    bound = decode_bound(request.cursor)
    found = tx.ledger.many(Delivery, "deliveries_to", agent=target, before=bound, limit=wanted + 1)
    listed = build_page(found, wanted, lambda delivery: delivery.id)
    kept = tuple(one for one in listed.items if request.state in (None, one.state))
    return Page(items=kept, next=listed.next)


def get_delivery(tx: Transaction, request: GetDelivery) -> Delivery:
    """Return one delivery, for its sender, its target, and callers that may read the target."""
    delivery = tx.need(Delivery, "delivery", request.delivery_id)
    if tx.sender not in (delivery.sender, delivery.target):
        tx.permit(Deed.READ, build_subject(tx.need(Agent, "agent", delivery.target)))
    return delivery
